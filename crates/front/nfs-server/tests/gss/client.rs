//! A client with a ticket, and a server that has the key for it.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anabranch_nfs_server::KerberosKeys;
use auth::{Account, AccountList, Mapping, Numbering};
use krb5::keytab::{Entry, Keytab};
use krb5::{Acceptor, Enctype, Key, KeyOrigin, PerMessage, Side, Time};
use nfs_wire::gss::{
    ContextHandle, Credential, InitArgs, InitRes, Numbered, Procedure, Sealed, Service, Signed, Token,
};
use nfs_wire::rpc::{AcceptStatus, AuthStatus, Call, Denied, OpaqueAuth, Reply, ReplyBody, flavor};
use nfs_wire::v3;
use nfs_wire::xdr::{Decode, Encode, Reader};
use share::{Domains, Formula};

use crate::mint::{self, REALM, key, principal, read_ap_rep};
use crate::server::{Client, TestServer};

pub(crate) const NFS: [&str; 2] = ["nfs", "files.lab.test"];
pub(crate) const NULL: (u32, u32, u32) = (v3::PROGRAM, v3::VERSION, 0);

/// The time of the machine, which is the server's.
pub(crate) fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

/// Gives a server a keytab with the key of this service, and the accounts alice and bob.
pub(crate) fn use_keys(server: &TestServer, service: &[&str], enctype: Enctype) {
    let domains = Domains::of_any(Formula::Rid { base: 1_000_000 });
    use_keys_and_numbers(server, service, enctype, Numbering::Formula(Arc::new(domains)));
}

/// The same where users of domains have these numbers.
pub(crate) fn use_keys_and_numbers(
    server: &TestServer,
    service: &[&str],
    enctype: Enctype,
    numbering: Numbering,
) {
    let entry = Entry::new(principal(service, REALM), 3, Time::from_unix(0), key(enctype, 0x11)).unwrap();
    let keytab = Keytab::new(vec![entry]).unwrap();
    let services = ["nfs", "host"].map(str::to_owned).to_vec();
    let acceptor = Acceptor::new(keytab, krb5::Settings { services, ..krb5::Settings::default() });
    let account = |name: &str, uid| Account {
        name: name.to_owned(),
        nt_hash: None,
        keys: None,
        uid,
        gid: uid,
        groups: vec![uid + 1],
        disabled: false,
        sid: None,
    };
    let accounts = Arc::new(AccountList(vec![account("alice", 1000), account("bob", 2000)]));
    let mapping = Mapping { numbering, account_realms: vec![REALM.to_owned()], trusted: Vec::new() };
    server.server.use_kerberos(Some(KerberosKeys { acceptor, mapping, accounts }));
}

/// A server with keys.
pub(crate) fn server() -> TestServer {
    let server = TestServer::start();
    use_keys(&server, &NFS, Enctype::Aes256Sha1);
    server
}

/// A ticket of now.
pub(crate) fn ticket<'a>(client: &'a [&'a str]) -> mint::Ticket<'a> {
    let now = now();
    mint::Ticket {
        service: &NFS,
        client,
        auth_time: now - 60,
        start_time: Some(now - 30),
        end_time: now + 3600,
        ..mint::Ticket::new(Enctype::Aes256Sha1)
    }
}

/// The first token of a client with this ticket.
pub(crate) fn token(ticket: &mint::Ticket<'_>) -> Vec<u8> {
    let cusec = i64::from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_micros());
    mint::Token { ctime: now(), cusec, ..mint::Token::new(ticket) }.encode()
}

/// What a server has made of a first token.
pub(crate) struct Begun {
    pub(crate) major: u32,
    pub(crate) handle: Vec<u8>,
    pub(crate) token: Vec<u8>,
    pub(crate) window: u32,
    pub(crate) verifier: Vec<u8>,
}

/// Sends a first token, and takes the reply.
pub(crate) fn begin(client: &mut Client, token: &[u8]) -> Result<Begun, ReplyBody<'static>> {
    send_first(client, token);
    begun(client)
}

/// Sends a first token.
pub(crate) fn send_first(client: &mut Client, token: &[u8]) {
    let credential = Credential {
        procedure: Procedure::Init,
        sequence: 0,
        service: Service::None as u32,
        handle: ContextHandle(&[]),
    };
    let record = record(client.xid, NULL, &credential.encode_to_vec(), OpaqueAuth::NONE);
    client.xid += 1;
    client.send_record(&[record, InitArgs { token: Token(token) }.encode_to_vec()].concat());
}

/// The reply to a first token.
pub(crate) fn begun(client: &mut Client) -> Result<Begun, ReplyBody<'static>> {
    let reply = client.receive_record();
    let mut reader = Reader::new(&reply);
    match Reply::decode(&mut reader).unwrap().body {
        ReplyBody::Accepted { verifier, status: AcceptStatus::Success } => {
            let result = InitRes::from_bytes(reader.rest()).unwrap();
            Ok(Begun {
                major: result.major,
                handle: result.handle.0.to_vec(),
                token: result.token.0.to_vec(),
                window: result.sequence_window,
                verifier: verifier.body.to_vec(),
            })
        }
        ReplyBody::Accepted { status, .. } => Err(ReplyBody::accepted(status)),
        ReplyBody::Denied(denied) => Err(ReplyBody::Denied(denied)),
    }
}

/// The header of a call.
pub(crate) fn record(
    xid: u32,
    (program, version, procedure): (u32, u32, u32),
    credential: &[u8],
    verifier: OpaqueAuth<'_>,
) -> Vec<u8> {
    let credential = OpaqueAuth { flavor: flavor::RPCSEC_GSS, body: credential };
    Call { xid, program, version, procedure, credential, verifier }.encode_to_vec()
}

/// A context of the client.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) keys: Arc<PerMessage>,
    pub(crate) handle: Vec<u8>,
    /// The number of the next call.
    pub(crate) sequence: u32,
    pub(crate) service: Service,
}

/// What came of a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It ran, and has these results.
    Ran(Vec<u8>),
    NotRun(AcceptStatus),
    Denied(AuthStatus),
}

impl Context {
    /// Begins a context with a ticket.
    pub(crate) fn begin(client: &mut Client, ticket: &mint::Ticket<'_>, service: Service) -> Self {
        Self::of(&begin(client, &token(ticket)).unwrap(), ticket, service)
    }

    /// The context that has begun with a ticket.
    pub(crate) fn of(begun: &Begun, ticket: &mint::Ticket<'_>, service: Service) -> Self {
        assert_eq!(begun.major, 0);
        let proof = read_ap_rep(&begun.token, &ticket.session);
        let enctype = Enctype::from_number(proof.subkey.0).unwrap();
        let key = Key::new(enctype, &proof.subkey.1).unwrap();
        let keys = PerMessage::new(&key, Side::Initiator, KeyOrigin::Acceptor).unwrap();
        keys.verify_mic(&[&begun.window.to_be_bytes()], &begun.verifier).unwrap();
        Self { keys: Arc::new(keys), handle: begun.handle.clone(), sequence: 1, service }
    }

    pub(crate) fn with(&self, service: Service) -> Self {
        Self { service, ..self.clone() }
    }

    pub(crate) fn credential(&self, procedure: Procedure, sequence: u32) -> Vec<u8> {
        let handle = ContextHandle(&self.handle);
        Credential { procedure, sequence, service: self.service as u32, handle }.encode_to_vec()
    }

    /// A header with its checksum.
    pub(crate) fn header(&self, xid: u32, ids: (u32, u32, u32), credential: &[u8]) -> Vec<u8> {
        let bare = record(xid, ids, credential, OpaqueAuth::NONE);
        let checked = &bare[..bare.len() - 8];
        let mic = self.keys.mic(0, &[checked]);
        record(xid, ids, credential, OpaqueAuth { flavor: flavor::RPCSEC_GSS, body: mic.as_ref() })
    }

    /// The arguments of a call as its service protects them.
    pub(crate) fn protect(&self, sequence: u32, args: &[u8]) -> Vec<u8> {
        let body = [&sequence.to_be_bytes()[..], args].concat();
        match self.service {
            Service::None => args.to_vec(),
            Service::Integrity => {
                let mic = self.keys.mic(0, &[&body]);
                Signed { body: &body, checksum: mic.as_ref() }.encode_to_vec()
            }
            Service::Privacy => {
                let tail = vec![0; self.keys.sealed_tail()];
                let mut buffer = [&[0; PerMessage::SEALED_HEAD][..], &body, &tail].concat();
                self.keys.seal(0, &[9; 16], &mut buffer).unwrap();
                Sealed { body: &buffer }.encode_to_vec()
            }
        }
    }

    /// The next call.
    pub(crate) fn call(&mut self, xid: u32, ids: (u32, u32, u32), args: &impl Encode) -> Vec<u8> {
        let sequence = self.sequence;
        self.sequence += 1;
        self.call_of(sequence, xid, ids, args)
    }

    /// A call of this number.
    pub(crate) fn call_of(
        &self,
        sequence: u32,
        xid: u32,
        ids: (u32, u32, u32),
        args: &impl Encode,
    ) -> Vec<u8> {
        let header = self.header(xid, ids, &self.credential(Procedure::Data, sequence));
        [header, self.protect(sequence, &args.encode_to_vec())].concat()
    }

    /// Sends the next call, and opens its reply.
    pub(crate) fn exchange(
        &mut self,
        client: &mut Client,
        ids: (u32, u32, u32),
        args: &impl Encode,
    ) -> Outcome {
        let (xid, sequence) = (client.xid, self.sequence);
        client.xid += 1;
        let call = self.call(xid, ids, args);
        client.send_record(&call);
        self.receive(client, xid, sequence)
    }

    /// The reply to a call of this number.
    pub(crate) fn receive(&self, client: &mut Client, xid: u32, sequence: u32) -> Outcome {
        self.read(&client.receive_record(), xid, sequence)
    }

    /// Opens the reply to a call of this number.
    pub(crate) fn read(&self, reply: &[u8], xid: u32, sequence: u32) -> Outcome {
        let mut reader = Reader::new(reply);
        let header = Reply::decode(&mut reader).unwrap();
        assert_eq!(header.xid, xid);
        let (verifier, status) = match header.body {
            ReplyBody::Accepted { verifier, status } => (verifier, status),
            ReplyBody::Denied(Denied::AuthError(status)) => return Outcome::Denied(status),
            ReplyBody::Denied(other) => panic!("{other:?}"),
        };
        assert_eq!(verifier.flavor, flavor::RPCSEC_GSS);
        self.keys.verify_mic(&[&sequence.to_be_bytes()], verifier.body).unwrap();
        match status {
            AcceptStatus::Success => Outcome::Ran(self.open(sequence, reader.rest())),
            status => Outcome::NotRun(status),
        }
    }

    fn open(&self, sequence: u32, results: &[u8]) -> Vec<u8> {
        let numbered = |body: &[u8]| {
            let Numbered { sequence: number, data } = Numbered::of(body).unwrap();
            assert_eq!(number, sequence);
            data.to_vec()
        };
        match self.service {
            Service::None => results.to_vec(),
            Service::Integrity => {
                let Signed { body, checksum } = Signed::from_bytes(results).unwrap();
                self.keys.verify_mic(&[body], checksum).unwrap();
                numbered(body)
            }
            Service::Privacy => {
                let mut token = Sealed::from_bytes(results).unwrap().body.to_vec();
                let opened = self.keys.unwrap(&mut token).unwrap();
                assert_eq!(opened.protection, krb5::Protection::Sealed);
                numbered(&token[opened.message])
            }
        }
    }

    /// Calls a procedure of NFSv3.
    pub(crate) fn nfs<R: for<'a> Decode<'a>>(
        &mut self,
        client: &mut Client,
        procedure: v3::Procedure,
        args: &impl Encode,
    ) -> R {
        match self.exchange(client, (v3::PROGRAM, v3::VERSION, procedure as u32), args) {
            Outcome::Ran(results) => R::from_bytes(&results).unwrap(),
            other => panic!("{other:?}"),
        }
    }
}
