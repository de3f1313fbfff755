//! A server with an account, a member of a domain, and rules by which SIDs and numbers are the same people.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use acl::Sid;
use anabranch_gateway::kerberos::{IdMapping, KerberosSettings};
use anabranch_gateway::settings::{Settings, ShareSettings, UserSettings};
use anabranch_gateway::{Gateway, PortmapSockets, Prepared, Sockets};
use auth::nt_hash;
use control::Administration as _;
use tempfile::TempDir;

use crate::gss;
use crate::mint::{self, PacOf, REALM};
use crate::model::{Dice, Person};
use crate::no_program::NoProgram;
use crate::routes::{Administrator, Nfs, Numbers, Route, Smb};
use crate::ticket::write_keytab;

/// How long something may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const DESCRIPTORS: u64 = 1000;
pub(crate) const PASSWORD: &str = "correct horse";
/// The superuser of the machine, who writes the lists.
pub(crate) const ADMINISTRATOR: &str = "anna";
pub(crate) const ACCOUNT: &str = "alice";
const MEMBER: &str = "martha";
pub(crate) const SHARE: &str = "data";
const SMB: [&str; 2] = ["cifs", "files.lab.test"];

/// A running server.
pub(crate) struct World {
    gateway: Gateway,
    pub(crate) settings: KerberosSettings,
    account: Numbers,
    account_sid: Sid,
    /// The user of the domain: the domain, the RIDs of the user and of the groups, the first of which is the primary one.
    domain: Sid,
    user: u32,
    groups: Vec<u32>,
    /// The number of the RID 0.
    first: u32,
    _directory: TempDir,
}

impl World {
    /// A server with a random mapping, and random groups.
    pub(crate) fn start(dice: &mut Dice) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let domain = random_domain(dice);
        let (settings, first) = mapping(dice, domain, directory.path());
        let account = Numbers {
            uid: dice.within(1000..60_000),
            gid: dice.within(1000..60_000),
            groups: (0..dice.within(0..15)).map(|_| dice.within(1000..60_000)).collect(),
        };
        let user = dice.within(1000..50_000);
        let groups = (0..dice.within(0..15)).map(|_| dice.within(50_000..100_000));
        let groups = [513].into_iter().chain(groups).collect();
        let gateway = start(directory.path(), &settings, &account);
        let listed = gateway.administration().user(ACCOUNT).unwrap();
        let account_sid = listed.sid.unwrap().parse().unwrap();
        Self { gateway, settings, account, account_sid, domain, user, groups, first, _directory: directory }
    }

    pub(crate) fn stop(self) {
        assert!(self.gateway.stop().unwrap().within(PATIENCE));
    }

    fn smb(&self) -> std::net::SocketAddr {
        self.gateway.addresses().smb[0]
    }

    fn nfs(&self) -> std::net::SocketAddr {
        self.gateway.addresses().nfs[0]
    }

    /// Who writes the lists.
    pub(crate) fn administrator(&self) -> Administrator {
        Administrator(Smb::with_password(self.smb(), ADMINISTRATOR, PASSWORD))
    }

    /// The account, and what it may be called.
    pub(crate) fn account(&self) -> Person {
        let sids = [self.account_sid].into_iter().chain(self.account.sids()).collect();
        Person { name: ACCOUNT, sids }
    }

    /// The user of the domain, and what it may be called.
    pub(crate) fn member(&self) -> Person {
        let of_domain = self.groups.iter().chain([&self.user]).map(|rid| self.domain.member(*rid).unwrap());
        let sids = of_domain.chain(self.member_numbers().sids()).collect();
        Person { name: MEMBER, sids }
    }

    fn member_numbers(&self) -> Numbers {
        let of = |rid: &u32| self.first + rid;
        let groups = self.groups[1..].iter().map(of).collect();
        Numbers { uid: of(&self.user), gid: of(&self.groups[0]), groups }
    }

    /// What neither of the two may be called, however much it looks like it.
    pub(crate) fn strangers(&self) -> Vec<Sid> {
        let machine = self.account_sid.in_domain().unwrap().0;
        let other: Sid = "S-1-5-21-11-22-33".parse().unwrap();
        vec![
            self.domain.member(self.user - 1).unwrap(),
            self.domain.member(512).unwrap(),
            other.member(self.user).unwrap(),
            other.member(self.groups[0]).unwrap(),
            machine.member(500).unwrap(),
            Sid::of_user(999),
            Sid::of_user(self.first + self.user - 1),
            Sid::of_group(self.first + 512),
            Sid::of_group(70_000),
        ]
    }

    /// All ways of the account to a file.
    pub(crate) fn routes_of_the_account(&self) -> Vec<Box<dyn Route>> {
        let ticket = |service: &'static [&'static str]| mint::Ticket { service, ..gss::ticket(&[ACCOUNT]) };
        vec![
            Box::new(Smb::with_password(self.smb(), ACCOUNT, PASSWORD)),
            Box::new(Smb::with_ticket(self.smb(), &ticket(&SMB))),
            Box::new(Nfs::with_ticket(self.nfs(), &ticket(&gss::NFS))),
            Box::new(Nfs::with_numbers(self.nfs(), &self.account)),
        ]
    }

    /// All ways of the user of the domain, who has no password here.
    pub(crate) fn routes_of_the_member(&self) -> Vec<Box<dyn Route>> {
        let template = gss::ticket(&[MEMBER]);
        let pac = PacOf {
            name: MEMBER,
            auth_time: template.auth_time,
            account: MEMBER,
            domain: "AD",
            domain_sid: self.domain,
            user: self.user,
            primary_group: self.groups[0],
            groups: self.groups.clone(),
            extra_sids: Vec::new(),
            resource_domain: None,
            resource_groups: Vec::new(),
            upn: None,
            requestor: None,
        };
        let data = mint::around_pac(&pac.signed(&template.key));
        let ticket = |service: &'static [&'static str]| mint::Ticket {
            service,
            authorization_data: Some(data.clone()),
            ..template.clone()
        };
        vec![
            Box::new(Smb::with_ticket(self.smb(), &ticket(&SMB))),
            Box::new(Nfs::with_ticket(self.nfs(), &ticket(&gss::NFS))),
            Box::new(Nfs::with_numbers(self.nfs(), &self.member_numbers())),
        ]
    }
}

fn random_domain(dice: &mut Dice) -> Sid {
    let parts = [(); 3].map(|()| dice.within(1000..u32::MAX));
    format!("S-1-5-21-{}-{}-{}", parts[0], parts[1], parts[2]).parse().unwrap()
}

/// A mapping of the domain, maybe with a further domain, and the number of the domain's RID 0.
fn mapping(dice: &mut Dice, domain: Sid, directory: &Path) -> (KerberosSettings, u32) {
    let keytab = directory.join("keytab");
    write_keytab(&keytab, &[&SMB, &gss::NFS]);
    let id_base = dice.within(1..20) * 100_000;
    let (id_mapping, domains, first) = match dice.within(0..3) {
        0 => (IdMapping::Rid, vec![domain], id_base),
        1 => (IdMapping::Autorid, vec![random_domain(dice), domain], id_base + share::AUTORID_LEN),
        _ => (IdMapping::Sss, vec![domain], share::Formula::Sss.slice(&domain).first),
    };
    let account_realms = vec![REALM.to_owned()];
    let keytab = Some(keytab);
    (KerberosSettings { keytab, id_base, id_mapping, domains, account_realms, ..Default::default() }, first)
}

fn start(directory: &Path, kerberos: &KerberosSettings, account: &Numbers) -> Gateway {
    let data = directory.join("data");
    std::fs::create_dir(&data).unwrap();
    let user = |name: &str, uid, gid, groups| UserSettings {
        name: name.to_owned(),
        password: None,
        nt_hash: Some(nt_hash(PASSWORD)),
        uid: Some(uid),
        gid: Some(gid),
        groups: Some(groups),
    };
    let Numbers { uid, gid, groups } = account.clone();
    let settings = Settings {
        shares: vec![ShareSettings::new(SHARE, data)],
        users: vec![user(ADMINISTRATOR, 0, 0, Vec::new()), user(ACCOUNT, uid, gid, groups)],
        kerberos: kerberos.clone(),
        ..Settings::new(directory.join("state"))
    };
    let listen = || std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let sockets = Sockets {
        smb: vec![listen()],
        smb_quic: Vec::new(),
        nfs: vec![listen()],
        control: listen(),
        portmap: PortmapSockets::default(),
    };
    Gateway::start(Prepared::new(&settings, DESCRIPTORS).unwrap(), sockets, Arc::new(NoProgram)).unwrap()
}
