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

mod reader;
mod tables;

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use self::reader::Reader;
use crate::place::{Mistake, Places, Section};
use crate::settings::{From, Given, SERVER_KEYS, UserGiven};

/// Modes with which others than its owner may read a file.
pub(crate) const READ_BY_OTHERS: u32 = 0o044;

/// Reads a configuration file. What is wrong with it is in `from.mistakes`; the rest is what is right.
pub(crate) fn read(path: &Path) -> Given {
    let (text, mode) = match contents(path) {
        Ok(contents) => contents,
        Err(e) => {
            let what = format!("cannot read {}: {e}", path.display());
            let advice = "Name a file that exists, and that this user may read.".to_owned();
            let mistakes = vec![Mistake { place: None, what, advice }];
            return Given { from: From { mistakes, ..From::default() }, ..Given::default() };
        }
    };
    let mut given = parse(path, &text);
    if mode & READ_BY_OTHERS != 0 && given.user.iter().any(UserGiven::has_secret) {
        given.from.exposed = Some(path.to_owned());
    }
    given
}

/// The text of a file, and its mode.
fn contents(path: &Path) -> io::Result<(String, u32)> {
    let mut open = File::open(path)?;
    let mode = open.metadata()?.mode();
    let mut text = String::new();
    open.read_to_string(&mut text)?;
    Ok((text, mode))
}

/// The settings in a text, which is that of this file. What is wrong with it is in `from.mistakes`.
pub(crate) fn parse(path: &Path, text: &str) -> Given {
    let (mut mistakes, mut places) = (Vec::new(), Places::default());
    let mut reader = Reader::new(path, text, &mut mistakes, &mut places);
    let mut top = reader.parse();
    reader.enter(&Section::Server, None, &top);
    let (shares, users) = (top.remove("share"), top.remove("user"));
    let given: Given = reader.read_keys(&top, &SERVER_KEYS);
    let (share, user) = (reader.read_shares(shares.as_ref()), reader.read_users(users.as_ref()));
    let place = || Some(path.to_owned());
    let files = vec![path.to_owned()];
    let from = From { shares: place(), users: place(), exposed: None, files, places, mistakes };
    Given { from, share, user, ..given }
}

#[cfg(test)]
mod tests {
    use share::Terms;

    use super::*;
    use crate::place::problem;
    use crate::problem::{Cause, Problem};
    use crate::settings::{CLIENT_KEYS, Key, SHARE_KEYS, Settings, USER_KEYS};

    fn parse(file: &str, text: &str) -> Result<Given, Problem> {
        let given = super::parse(Path::new(file), text);
        problem(given.from.mistakes.clone()).map_or(Ok(given), Err)
    }

    #[test]
    fn every_setting_can_be_given() {
        let text = r#"
            smb = ["127.0.0.1:10445", "[::1]:10445"]
            nfs = "[::1]:12049"
            control = "127.0.0.1:18080"
            control-name = ["files.example.org"]
            control-certificate = "/etc/anabranch/chain.pem"
            control-key = "/etc/anabranch/key.pem"
            state = "/var/lib/x"
            smb-signing = "required"
            smb-encryption = "required"
            max-channels = 4
            connections-per-address = 100
            smb-interface = ["10.0.0.1", "10.0.1.1"]
            nfs-squash = "none"
            nfs-lease = 30
            bench-metadata-latency = 1000
            bench-accounting = false
            log-format = "json"
            log = "debug"
            continuous-availability = ["data"]
            password-file = ["anna=/etc/anabranch/anna.password"]
            [[share]]
            name = "data"
            directory = "/srv/data"
            read-only = true
            guest = true
            continuous-availability = true
            access-based-enumeration = true
            metadata-cache = false
            reserved-names = [".snapshots"]
            encrypted = true
            plan = "azure-files-v1 capacity=1TiB"
            devices = true
            set-id = true
            secure-port = true
            protocols = ["smb", "nfs"]
            read = ["anna", "@staff"]
            write = ["otto"]
            comment = "What we do"
            hidden = true
            [[share.client]]
            network = "10.0.0.0/8"
            access = "ro"
            squash = "all"
            protocols = ["nfs"]
            secure-port = true
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
        let given = parse("f", text).unwrap();
        for Key { name, .. } in SERVER_KEYS.iter().chain(&SHARE_KEYS).chain(&CLIENT_KEYS).chain(&USER_KEYS) {
            assert!(text.contains(name), "{name} is not in this test");
        }
        let share = &given.share[0].0;
        assert_eq!((share.terms, share.metadata_cache), (Terms::all(), false));
        assert_eq!((share.rules.rights.len(), share.comment.as_str()), (3, "What we do"));
        assert_eq!(share.reserved_names, [".snapshots"]);
        let expected = "10.0.0.0/8 access=ro squash=all protocols=nfs secure-port";
        assert_eq!(share.rules.clients.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
        assert_eq!(share.plan.to_string(), "azure-files-v1 capacity=1TiB");
        assert_eq!((given.user[0].uid, given.user[0].groups.as_deref()), (Some(1000), Some(&[50, 51][..])));
        let settings = Settings::new(given).unwrap();
        assert_eq!(settings.gateway.smb_signing, smb_server::Protection::Required);
        assert_eq!(settings.gateway.smb_interfaces.len(), 2);
        assert_eq!(settings.nfs, ["[::1]:12049".parse().unwrap()]);
        assert_eq!(settings.gateway.nfs_lease.as_secs(), 30);
    }

    #[test]
    fn shares_and_users_can_be_given_as_on_the_command_line() {
        let given = parse("f", "share = [\"data=/srv\"]\nuser = [\"anna:pw\"]").unwrap();
        assert!(given.share[0].0.terms.is_empty());
        assert_eq!((given.share[0].0.name.as_str(), given.user[0].password.as_deref()), ("data", Some("pw")));
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
        assert!(refused("share = [\"x\"]").what.contains("NAME=DIR"));
        assert!(refused("not toml").what.starts_with("a.toml line 1: "));
    }
}
