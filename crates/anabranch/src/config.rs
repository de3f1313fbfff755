//! The configuration file: TOML, with the names of the flags.
//!
//! ```toml
//! smb = "0.0.0.0:445"
//! state = "/var/lib/anabranch"
//!
//! [[share]]
//! name = "data"
//! directory = "/srv/data"
//!
//! [[user]]
//! name = "anna"
//! password = "..."
//! ```

mod include;
mod reader;
mod tables;

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use self::reader::Reader;
use crate::place::{Mistake, Place, Places, Section};
use crate::settings::{From, Given, Lists, SERVER_KEYS, UserGiven};

/// The keys whose values add up if several files have them.
const LISTS: [&str; 10] = [
    "share",
    "moved-share",
    "snapshot-policy",
    "pool",
    "user",
    "control-name",
    "admins",
    "smb-interface",
    "continuous-availability",
    "password-file",
];

/// Modes with which others than its owner may read a file.
pub(crate) const READ_BY_OTHERS: u32 = 0o044;

/// Reads a configuration file, and those that it includes. What is wrong with them is in `from.mistakes`; the rest is what
/// is right.
pub(crate) fn read(path: &Path) -> Given {
    let mut reading = Reading::default();
    let (mut given, includes) = reading.read_file(path);
    for (place, pattern) in includes {
        for file in reading.included(path, &place, &pattern) {
            let (more, nested) = reading.read_file(&file);
            if let Some((place, _)) = nested.into_iter().next() {
                let what = "an included file cannot include others".to_owned();
                let advice = format!("Include it in {}.", path.display());
                reading.mistakes.push(Mistake { place: Some(place), what, advice });
            }
            given = given.combined(more, Lists::Add);
        }
    }
    let Reading { mistakes, places, files, exposed } = reading;
    let place = || Some(path.to_owned());
    Given { from: From { shares: place(), users: place(), exposed, files, places, mistakes }, ..given }
}

/// The settings in a text, which is that of this file. What is wrong with it is in `from.mistakes`; what it includes is not
/// read.
pub(crate) fn parse(path: &Path, text: &str) -> Given {
    let mut reading = Reading::default();
    let (given, _) = reading.parse(path, text);
    let Reading { mistakes, places, .. } = reading;
    Given { from: From { places, mistakes, ..From::default() }, ..given }
}

/// What is known of the files so far.
#[derive(Debug, Default)]
struct Reading {
    mistakes: Vec<Mistake>,
    places: Places,
    files: Vec<PathBuf>,
    /// Files with passwords that others than their owner may read.
    exposed: Vec<PathBuf>,
}

impl Reading {
    /// Reads one file; returns what it has, and the patterns of the files that it includes with their places.
    fn read_file(&mut self, path: &Path) -> (Given, Vec<(Place, String)>) {
        match contents(path) {
            Err(e) => {
                let what = format!("cannot read {}: {e}", path.display());
                let advice = "Name a file that exists, and that this user may read.".to_owned();
                self.mistakes.push(Mistake { place: None, what, advice });
                Default::default()
            }
            Ok((text, mode)) => {
                self.files.push(path.to_owned());
                let (given, includes) = self.parse(path, &text);
                if mode & READ_BY_OTHERS != 0 && given.user.iter().any(UserGiven::has_secret) {
                    self.exposed.push(path.to_owned());
                }
                (given, includes)
            }
        }
    }

    fn parse(&mut self, path: &Path, text: &str) -> (Given, Vec<(Place, String)>) {
        let mut reader = Reader::new(path, text, &mut self.mistakes, &mut self.places);
        let mut top = reader.parse();
        let included = top.remove_entry(include::KEY.name);
        reader.refuse_repeated(&mut top, &LISTS);
        reader.enter(&Section::Server, None, &top);
        let (shares, users) = (top.remove("share"), top.remove("user"));
        let (policies, pools) = (top.remove("snapshot-policy"), top.remove("pool"));
        let (given, _): (Given, _) = reader.read_keys(&top, &SERVER_KEYS);
        let (share, user) = (reader.read_shares(shares.as_ref()), reader.read_users(users.as_ref()));
        let includes = included.map(|included| reader.read_includes(included)).unwrap_or_default();
        let snapshot_policy = reader.read_policies(policies.as_ref());
        let pool = reader.read_pools(pools.as_ref());
        (Given { share, user, snapshot_policy, pool, ..given }, includes)
    }

    /// The files that a pattern means, without those that were read already.
    fn included(&mut self, path: &Path, place: &Place, pattern: &str) -> Vec<PathBuf> {
        let files = include::files(path, pattern).unwrap_or_else(|e| {
            let what = format!("include: {pattern:?}: {e}");
            let advice = format!("For example: include = {}", include::KEY.example);
            self.mistakes.push(Mistake { place: Some(place.clone()), what, advice });
            Vec::new()
        });
        let is_missing = |file: &&PathBuf| !file.exists();
        if let Some(file) = files.iter().find(is_missing) {
            let what = format!("include: there is no file {}", file.display());
            let advice =
                "Create it, or use a pattern such as conf.d/*.toml, which may match no file.".to_owned();
            self.mistakes.push(Mistake { place: Some(place.clone()), what, advice });
        }
        files.into_iter().filter(|file| file.exists() && !self.files.contains(file)).collect()
    }
}

/// The text of a file, and its mode.
fn contents(path: &Path) -> io::Result<(String, u32)> {
    let mut open = File::open(path)?;
    let mode = open.metadata()?.mode();
    let mut text = String::new();
    open.read_to_string(&mut text)?;
    Ok((text, mode))
}

#[cfg(test)]
mod tests {
    use share::{Kind, Terms};

    use super::*;
    use crate::place::problem;
    use crate::problem::{Cause, Problem};
    use crate::settings::{CLIENT_KEYS, Key, POLICY_KEYS, POOL_KEYS, SHARE_KEYS, Settings, USER_KEYS};

    fn parse(file: &str, text: &str) -> Result<Given, Problem> {
        let mut reading = Reading::default();
        let (given, _) = reading.parse(Path::new(file), text);
        problem(reading.mistakes).map_or(Ok(given), Err)
    }

    const EVERYTHING: &str = r#"
            moved-share = ["old=192.0.2.20,[2001:db8::20]:20490"]
            smb = ["127.0.0.1:10445", "[::1]:10445"]
            nfs = "[::1]:12049"
            control = "127.0.0.1:18080"
            control-name = ["files.example.org"]
            admins = ["anna", "@staff:read"]
            control-certificate = "/etc/anabranch/chain.pem"
            control-key = "/etc/anabranch/key.pem"
            state = "/var/lib/x"
            wait-for-state = true
            service-address = ["192.0.2.10%eth0", "2001:db8::10%eth0/64"]
            ceph-config = "/etc/ceph/other.conf"
            ceph-user = "client.files"
            ceph-file-system = "cephfs"
            cluster-gateway = "node1"
            cluster-pool = "files.state"
            smb-signing = "required"
            smb-quic = ["127.0.0.1:10443", "[::1]:10443"]
            smb-encryption = "required"
            ntlm = "off"
            smb-encryption-over-quic = false
            smb-channel-binding = "required"
            max-channels = 4
            connections-per-address = 100
            smb-interface = ["10.0.0.1", "10.0.1.1"]
            keytab = "/etc/krb5.keytab"
            domain-id-base = 2000000
            domain-id-mapping = "autorid"
            domain-nss-names = "realm"
            domain-ldap-server = "dc1.ad.example.org"
            domain-ldap-base = "DC=ad,DC=example,DC=org"
            domain-ldap-account = "reader@AD.EXAMPLE.ORG"
            domain-ldap-password-file = "/etc/anabranch/ldap.password"
            domain-ldap-ca = "/etc/anabranch/ad-ca.pem"
            domain-sid = ["S-1-5-21-1085031214-1563985344-725345543"]
            trusted-domains = ["S-1-5-21-2127521184-1604012920-1887927527"]
            account-realm = ["EXAMPLE.ORG"]
            realm = "FILES.EXAMPLE.ORG"
            nfs-tls = "mutual"
            nfs-client-ca = "/etc/anabranch/clients.pem"
            nfs-squash = "none"
            nfs-groups = "server"
            nfs-lease = 30
            deleted-share-retention = "30d"
            portmap = "register"
            bench-metadata-latency = 1000
            bench-accounting = false
            log-format = "json"
            log = "debug"
            discovery = ["wsd", "mdns"]
            access-log-file = "/var/log/anabranch/access.json"
            access-log-mib = 10
            access-log-files = 5
            access-log-syslog = "/dev/log"
            access-log-journal = "/run/systemd/journal/socket"
            access-log-kinds = ["logon", "read"]
            access-log-outcomes = "failures"
            access-log-users = ["anna", "1000"]
            access-log-except-users = ["backup"]
            continuous-availability = ["data"]
            password-file = ["anna=/etc/anabranch/anna.password"]
            include = []
            [[share]]
            name = "data"
            directory = "/srv/data/{user}"
            read-only = true
            guest = true
            continuous-availability = true
            access-based-enumeration = true
            metadata-cache = false
            reserved-names = [".snapshots"]
            encrypted = true
            tls-required = true
            plan = "azure-files-v1 capacity=1TiB"
            tier = "ssd"
            devices = true
            set-id = true
            secure-port = true
            protocols = ["smb", "nfs"]
            read = ["anna", "@staff"]
            write = ["otto"]
            elevated = ["@leads"]
            admin = ["eva"]
            default-role = "none"
            comment = "What we do"
            hidden = true
            access-log = false
            snapshot-policy = "office"
            recycle-bin = "on keep=30d"
            ransomware-alarm = "on files=5 snapshot=7d slow"
            quotas = ["anna soft=8GiB hard=10GiB grace=14d", "/projects hard=1TiB", "* hard=5GiB"]
            nfs-security = ["krb5i", "krb5p"]
            nfs-groups = "server"
            nfs-snapshots = "shown"
            [[share.client]]
            network = "10.0.0.0/8"
            access = "ro"
            squash = "all"
            protocols = ["nfs"]
            secure-port = true
            [[snapshot-policy]]
            name = "office"
            hourly = ":05/24"
            daily = "01:10/14"
            weekly = "sun,wed@02:30/8"
            monthly = "1,15@03:00/12"
            before = ["/usr/local/sbin/hold", "database"]
            after = ["/usr/local/sbin/release"]
            hook-seconds = 30
            [[pool]]
            name = "fast"
            directory = "/srv/fast"
            overcommit = "yes"
            [[user]]
            name = "anna"
            password = "secret"
            uid = 1000
            gid = 100
            groups = [50, 51]
            [[user]]
            name = "otto"
            nt-hash = "0123456789abcdef0123456789ABCDEF"
        "#;

    #[test]
    fn every_setting_can_be_given() {
        let given = parse("f", EVERYTHING).unwrap();
        let keys = SERVER_KEYS.iter().chain(&SHARE_KEYS).chain(&CLIENT_KEYS).chain(&USER_KEYS);
        for Key { name, .. } in keys.chain(&POLICY_KEYS).chain(&POOL_KEYS) {
            assert!(EVERYTHING.contains(name), "{name} is not in this test");
        }
        let share = &given.share[0].0;
        let not_named = Terms::RPC_SYS | Terms::RPC_KRB5 | Terms::GROUPS_OF_CLIENT;
        assert_eq!((share.terms, share.metadata_cache), (Terms::all() - not_named, false));
        assert_eq!((share.rules.rights.len(), share.comment.as_str()), (5, "What we do"));
        assert_eq!(share.reserved_names, [".snapshots"]);
        let expected = "10.0.0.0/8 access=ro squash=all protocols=nfs secure-port";
        assert_eq!(share.rules.clients.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
        assert_eq!(share.plan.to_string(), "azure-files-v1 capacity=1TiB");
        assert_eq!(share.tier, Some(limits::Media::Ssd));
        assert_eq!((given.user[0].uid, given.user[0].groups.as_deref()), (Some(1000), Some(&[50, 51][..])));
        let policy = &given.snapshot_policy[0].0;
        assert_eq!((policy.policy.name(), policy.policy.rules().len()), ("office", 4));
        assert_eq!((policy.hooks.before.len(), policy.hooks.time.as_secs()), (2, 30));
        assert_eq!(share.snapshot_policy, "office");
        let pool = &given.pool[0].0;
        assert_eq!(
            (pool.name.as_str(), pool.directory.to_str(), pool.overcommits),
            ("fast", Some("/srv/fast"), true)
        );
        assert_eq!(share.recycle_bin.as_ref().unwrap().to_string(), "on keep=30d");
        assert_eq!(share.ransomware_alarm.unwrap().to_string(), "on files=5 within=1m snapshot=7d slow");
        assert_eq!(share.quotas[0].to_string(), "anna soft=8GiB hard=10GiB grace=14d");
        let settings = Settings::new(given).unwrap();
        assert_eq!(settings.gateway.smb_signing, smb_server::Protection::Required);
        assert_eq!(settings.gateway.smb_interfaces.len(), 2);
        let moved = &settings.gateway.moved[0];
        let there = ["192.0.2.20:2049", "[2001:db8::20]:20490"].map(|address| address.parse().unwrap());
        assert_eq!((moved.name.as_str(), moved.addresses.as_slice()), ("old", &there[..]));
        assert_eq!(settings.smb_quic, ["127.0.0.1:10443".parse().unwrap(), "[::1]:10443".parse().unwrap()]);
        assert!(!settings.gateway.smb_encryption_over_quic);
        assert_eq!(settings.gateway.smb_channel_binding, smb_server::ChannelBinding::Required);
        assert!(settings.waits_for_state);
        assert_eq!(settings.service_addresses.len(), 2);
        let ceph = &settings.gateway.ceph;
        let named = (ceph.configuration.to_str(), ceph.user.as_str(), ceph.file_system.as_deref());
        assert_eq!(named, (Some("/etc/ceph/other.conf"), "client.files", Some("cephfs")));
        let cluster = settings.gateway.cluster.as_ref().unwrap();
        assert_eq!((&*cluster.gateway, &*cluster.pool), ("node1", "files.state"));
        assert_eq!(settings.nfs, ["[::1]:12049".parse().unwrap()]);
        assert_eq!(settings.gateway.nfs_lease.as_secs(), 30);
        assert_eq!(settings.gateway.deleted_share_retention.to_string(), "30d");
        assert!(settings.gateway.discovery.wsd && settings.gateway.discovery.mdns);
        let log = &settings.gateway.access_log;
        assert_eq!(log.file.as_ref().and_then(|file| file.bytes_max), Some(10 << 20));
        assert!(log.kinds.contains(Kind::Read) && !log.kinds.contains(Kind::Open));
        assert_eq!((log.users.only.len(), log.users.except.len()), (2, 1));
        assert_eq!(settings.gateway.portmap, gateway::settings::Portmap::Register);
    }

    #[test]
    fn shares_and_users_can_be_given_as_on_the_command_line() {
        let given = parse("f", "share = [\"data=/srv\"]\nuser = [\"anna:pw\"]").unwrap();
        assert!(given.share[0].0.terms.is_empty());
        assert_eq!((given.share[0].0.name.as_str(), given.user[0].password.as_deref()), ("data", Some("pw")));
    }

    #[test]
    fn nfs_security_names_flavors() {
        let terms = |keys: &str| {
            let share = format!("[[share]]\nname = \"a\"\ndirectory = \"/b\"\n{keys}");
            parse("a.toml", &share).map(|given| given.share[0].0.terms).map_err(|problem| problem.what)
        };
        assert_eq!(terms(""), Ok(Terms::empty()));
        let all = terms("nfs-security = [\"sys\", \"krb5\", \"krb5i\", \"krb5p\"]");
        assert_eq!(all, Ok(Terms::empty()), "the default");
        let signed = terms("nfs-security = [\"krb5i\", \"krb5p\"]");
        assert_eq!(signed, Ok(Terms::RPC_KRB5I | Terms::RPC_KRB5P));
        let wrong = terms("nfs-security = [\"krb5\", \"krb6\"]").unwrap_err();
        assert!(wrong.contains("\"krb6\"") && wrong.contains("krb5i"), "{wrong}");
        assert_eq!(terms("nfs-groups = \"client\""), Ok(Terms::GROUPS_OF_CLIENT));
        let wrong = terms("nfs-groups = \"both\"").unwrap_err();
        assert!(wrong.contains("\"both\"") && wrong.contains("expected client or server"), "{wrong}");
        assert_eq!(terms("nfs-snapshots = \"off\""), Ok(Terms::empty()));
        assert_eq!(terms("nfs-snapshots = \"hidden\""), Ok(Terms::SNAPSHOT_FOLDER));
        let wrong = terms("nfs-snapshots = \"on\"").unwrap_err();
        assert!(wrong.contains("\"on\"") && wrong.contains("expected off, hidden or shown"), "{wrong}");
        assert!(terms("nfs-security = []").unwrap_err().contains("no nfs-security"));
        let never = terms("encrypted = true\nnfs-security = [\"krb5i\"]").unwrap_err();
        assert!(never.contains("no krb5p"), "{never}");
        assert!(terms("encrypted = true\nnfs-security = [\"krb5i\", \"krb5p\"]").is_ok());
    }

    #[test]
    fn a_protocol_can_be_off() {
        let settings = Settings::new(parse("f", "smb = \"off\"").unwrap()).unwrap();
        assert!(settings.smb.is_empty() && settings.nfs.len() == 1);
        let several = parse("f", "smb = [\"127.0.0.1:1\", \"[::1]:1\"]").unwrap();
        assert_eq!(Settings::new(several).unwrap().smb.len(), 2);
        assert!(refused("smb = []").what.contains("there is no address"));
    }

    fn refused(text: &str) -> Problem {
        let problem = parse("a.toml", text).unwrap_err();
        assert_eq!(problem.cause, Cause::Settings);
        problem
    }

    #[test]
    fn an_unknown_setting_is_refused_with_the_nearest_one() {
        let problem = refused("\n\nsmb-singing = \"off\"\n");
        assert_eq!(problem.what, "a.toml line 3: there is no setting `smb-singing`");
        assert_eq!(problem.advice, "Did you mean `smb-signing`?");
        assert_eq!(refused("max_channels = 1").advice, "Did you mean `max-channels`?");
        assert_eq!(refused("signing = 1").advice, "Did you mean `smb-signing`?");
        assert!(refused("colour = 1").advice.contains("nfs-squash"));
        let problem = refused("[[share]]\nname = \"a\"\ndirectroy = \"/b\"");
        assert_eq!(problem.what, "a.toml line 3: there is no setting `directroy`");
        assert_eq!(problem.advice, "Did you mean `directory`?");
        assert_eq!(
            refused("[[share]]\nname = \"a\"\ndirectory = \"/b\"\nguests = true").advice,
            "Did you mean `guest`?"
        );
        assert_eq!(refused("[[user]]\nname = \"a\"\npasword = \"x\"").advice, "Did you mean `password`?");
    }

    #[test]
    fn a_bad_value_is_refused_with_its_line_and_without_its_text() {
        let problem = refused("state = \"x\"\nsmb = \"here\"");
        assert!(problem.what.starts_with("a.toml line 2: "), "{problem}");
        assert!(refused("max-channels = -1").what.contains("line 1"), "negative");
        assert!(
            refused("[[share]]\nname = \"a\"\ndirectory = \"/b\"\nguest = \"no\"").what.contains("line 4")
        );
        assert!(refused("smb-signing = \"maybe\"").what.contains("maybe"));
        assert!(!refused("[[user]]\nname = \"a\"\npassword = [\"hush\"]").what.contains("hush"));
        let plan =
            refused("[[share]]\nname = \"a\"\ndirectory = \"/b\"\nplan = \"azure-files-v1 capacity=1\"");
        assert!(plan.what.contains("the plan of the share a") && plan.what.contains("GiB"), "{plan}");
        let plan = "plan = \"azure-files-v2-hdd capacity=1TiB\"\ntier = \"ssd\"";
        let plan = refused(&format!("[[share]]\nname = \"a\"\ndirectory = \"/b\"\n{plan}"));
        assert!(plan.what.contains("is on ssd, and the plan azure-files-v2-hdd is for hdd"), "{plan}");
        let tier = refused("[[share]]\nname = \"a\"\ndirectory = \"/b\"\ntier = \"tape\"");
        assert!(tier.what.contains("there is no tier `tape`"), "{tier}");
        assert!(refused("share = [\"x\"]").what.contains("NAME=DIR"));
        assert!(refused("not toml").what.starts_with("a.toml line 1: "));
    }
}
