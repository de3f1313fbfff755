//! The ways to a file: a protocol, and how the user was proved.

use std::net::SocketAddr;

use acl::Sid;
use nfs_wire::gss::Service;
use nfs_wire::v3::types::FileHandle;
use nfs_wire::v3::{Procedure, access};
use smb_proto::dialect::Dialect;
use smb_wire::create::CreateDisposition;
use smb_wire::create_context::RequestContext;
use smb_wire::query_info::{InfoType, SecurityInformation};
use smb_wire::{AccessMask, Command, NtStatus, set_info};

use crate::client::Client;
use crate::gss::Context;
use crate::mint;
use crate::model::{Drawn, Rights};
use crate::opening::Opening;
use crate::server;
use crate::ticket::log_on;
use crate::world::SHARE;

/// A user as the machine has users.
#[derive(Debug, Clone)]
pub(crate) struct Numbers {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
}

impl Numbers {
    /// The SIDs of these numbers.
    pub(crate) fn sids(&self) -> impl Iterator<Item = Sid> {
        let groups = self.groups.iter().chain([&self.gid]).map(|gid| Sid::of_group(*gid));
        groups.chain([Sid::of_user(self.uid)])
    }
}

/// A way to the files of the share.
pub(crate) trait Route {
    fn name(&self) -> &'static str;

    /// What the user may do with a file.
    fn decision(&mut self, name: &str) -> Rights;
}

/// A session of SMB.
pub(crate) struct Smb {
    client: Client,
    name: &'static str,
}

impl Smb {
    pub(crate) fn with_password(address: SocketAddr, user: &str, password: &str) -> Self {
        let mut client = Client::connect(address);
        client.negotiate(&[Dialect::Smb311]);
        client.log_in(user, password).unwrap();
        client.tree_connect(SHARE).unwrap();
        Self { client, name: "SMB with NTLM" }
    }

    pub(crate) fn with_ticket(address: SocketAddr, ticket: &mint::Ticket<'_>) -> Self {
        let mut client = Client::connect(address);
        client.negotiate(&[Dialect::Smb311]);
        log_on(&mut client, ticket);
        client.tree_connect(SHARE).unwrap();
        Self { client, name: "SMB with a ticket" }
    }
}

impl Route for Smb {
    fn name(&self) -> &'static str {
        self.name
    }

    fn decision(&mut self, name: &str) -> Rights {
        let opening = Opening {
            access: AccessMask::MAXIMUM_ALLOWED,
            contexts: vec![RequestContext::QueryMaximalAccess { timestamp: None }],
            ..Opening::default()
        };
        match opening.send(&mut self.client, name) {
            Ok(opened) => {
                self.client.close(opened.id).unwrap();
                let (status, mask) = opened.maximal_access.unwrap();
                assert_eq!(status, NtStatus::SUCCESS);
                Rights::among(mask)
            }
            Err(refused) => {
                assert_eq!(refused, NtStatus::ACCESS_DENIED);
                Rights::NONE
            }
        }
    }
}

/// The superuser, who makes files and writes their lists.
pub(crate) struct Administrator(pub(crate) Smb);

impl Administrator {
    /// Makes a file with this list.
    pub(crate) fn put(&mut self, name: &str, drawn: &Drawn) {
        let client = &mut self.0.client;
        let file = Opening::with(CreateDisposition::Create).send(client, name).unwrap().id;
        let mut buffer = Vec::new();
        drawn.descriptor().encode_into(&mut buffer).unwrap();
        let parts = SecurityInformation::OWNER | SecurityInformation::DACL;
        let request = set_info::Request {
            info_type: InfoType::Security,
            info_class: 0,
            additional_information: parts.bits(),
            file_id: file,
            buffer: &buffer,
        };
        let mut body = Vec::new();
        request.encode(&mut body).unwrap();
        client.call(Command::SetInfo, &body).ok().unwrap();
        client.close(file).unwrap();
    }
}

/// A client of NFSv3.
pub(crate) struct Nfs {
    client: server::Client,
    context: Option<Context>,
    root: FileHandle,
}

impl Nfs {
    pub(crate) fn with_numbers(address: SocketAddr, numbers: &Numbers) -> Self {
        let mut client = server::Client::connect(address);
        client.user = Some((numbers.uid, numbers.gid, numbers.groups.clone()));
        let root = client.mount(&format!("/{SHARE}")).unwrap().file_handle;
        Self { client, context: None, root }
    }

    /// Files are looked up as nobody, and asked about with the ticket.
    pub(crate) fn with_ticket(address: SocketAddr, ticket: &mint::Ticket<'_>) -> Self {
        let nobody = Numbers { uid: 65_534, gid: 65_534, groups: Vec::new() };
        let mut this = Self::with_numbers(address, &nobody);
        this.context = Some(Context::begin(&mut this.client, ticket, Service::Integrity));
        this
    }
}

impl Route for Nfs {
    fn name(&self) -> &'static str {
        if self.context.is_some() { "NFS with a ticket" } else { "NFS with stated numbers" }
    }

    fn decision(&mut self, name: &str) -> Rights {
        use access::Access;
        let object = self.client.lookup(self.root, name).unwrap().object;
        let args = access::Args { object, access: Access::all() };
        let answer: access::Res = match &mut self.context {
            None => self.client.nfs(Procedure::Access, &args),
            Some(context) => context.nfs(&mut self.client, Procedure::Access, &args),
        };
        let may = answer.unwrap().access;
        let mut mask = AccessMask::empty();
        mask.set(AccessMask::READ_DATA, may.contains(Access::READ));
        mask.set(AccessMask::WRITE_DATA, may.contains(Access::MODIFY));
        mask.set(AccessMask::EXECUTE, may.contains(Access::EXECUTE));
        Rights::among(mask)
    }
}
