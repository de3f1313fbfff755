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

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use clap::Args as _;
use toml::de::{DeTable, DeValue};

use crate::problem::{Cause, Problem, Result};
use crate::settings::{CLIENT_KEYS, From, Given, SHARE_KEYS, USER_KEYS, UserGiven};

/// Modes with which others than its owner may read a file.
pub(crate) const READ_BY_OTHERS: u32 = 0o044;

/// Reads a configuration file.
///
/// # Errors
/// It cannot be read, is not TOML, has a setting that does not exist, or one with an impossible value.
pub(crate) fn read(path: &Path) -> Result<Given> {
    let trouble = |e| Problem::new(Cause::Settings, format!("cannot read {}: {e}", path.display()), "");
    let mut open = File::open(path).map_err(trouble)?;
    let mode = open.metadata().map_err(trouble)?.mode();
    let mut text = String::new();
    open.read_to_string(&mut text).map_err(trouble)?;
    let given = parse(&path.display().to_string(), &text)?;
    let is_exposed = mode & READ_BY_OTHERS != 0 && given.user.iter().any(UserGiven::has_secret);
    let place = || Some(path.to_owned());
    let from = From { shares: place(), users: place(), exposed: place().filter(|_| is_exposed) };
    Ok(Given { from, ..given })
}

/// The settings in a text, which is that of the file named.
///
/// # Errors
/// As those of [`read`] about the text.
pub(crate) fn parse(file: &str, text: &str) -> Result<Given> {
    let table = DeTable::parse(text).map_err(|e| refuse(file, text, e.span(), e.message()))?;
    if let Some(unknown) = find_unknown(table.get_ref()) {
        return Err(unknown.refuse(file, text));
    }
    // Not the error's own text: it would repeat the line, which may hold a password.
    toml::from_str(text).map_err(|e| refuse(file, text, e.span(), e.message()))
}

/// The names of all settings: those of the flags.
fn settings() -> Vec<String> {
    let command = Given::augment_args(clap::Command::new("names"));
    command.get_arguments().filter_map(|flag| flag.get_long().map(str::to_owned)).collect()
}

struct Unknown {
    name: String,
    place: Range<usize>,
    known: Vec<String>,
}

impl Unknown {
    fn refuse(&self, file: &str, text: &str) -> Problem {
        let line = line_of(text, self.place.start);
        let advice = match nearest(&self.name, &self.known) {
            Some(known) => format!("Did you mean `{known}`?"),
            None => format!("The settings here are: {}.", self.known.join(", ")),
        };
        Problem::new(
            Cause::Settings,
            format!("{file} line {line}: there is no setting `{}`", self.name),
            advice,
        )
    }
}

fn refuse(file: &str, text: &str, place: Option<Range<usize>>, message: &str) -> Problem {
    let line = place.map_or(1, |place| line_of(text, place.start));
    Problem::new(Cause::Settings, format!("{file} line {line}: {message}"), "")
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|b| *b == b'\n').count() + 1
}

fn find_unknown(top: &DeTable<'_>) -> Option<Unknown> {
    unknown_key(top, &settings()).or_else(|| {
        let inner = |setting: &str, keys: &[&str]| {
            let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
            let DeValue::Array(tables) = top.get(setting)?.get_ref() else { return None };
            tables.iter().find_map(|table| unknown_key(table.get_ref().as_table()?, &keys))
        };
        inner("share", &SHARE_KEYS)
            .or_else(|| inner("user", &USER_KEYS))
            .or_else(|| unknown_of_client(top.get("share")?.get_ref()))
    })
}

/// In the tables `[[share.client]]`.
fn unknown_of_client(shares: &DeValue<'_>) -> Option<Unknown> {
    let known = CLIENT_KEYS.map(str::to_owned);
    let of_share = |share: &DeValue<'_>| {
        let clients = share.as_table()?.get("client")?.get_ref().as_array()?;
        clients.iter().find_map(|client| unknown_key(client.get_ref().as_table()?, &known))
    };
    shares.as_array()?.iter().find_map(|share| of_share(share.get_ref()))
}

fn unknown_key(table: &DeTable<'_>, known: &[String]) -> Option<Unknown> {
    table.keys().find(|key| !known.iter().any(|k| k == key.get_ref().as_ref())).map(|key| Unknown {
        name: key.get_ref().to_string(),
        place: key.span(),
        known: known.to_vec(),
    })
}

/// The known name that `name` was most likely meant to be.
fn nearest<'a>(name: &str, known: &'a [String]) -> Option<&'a String> {
    let name = name.to_lowercase().replace('_', "-");
    let distance = |k: &String| strsim::damerau_levenshtein(&name, k);
    let near = known.iter().min_by_key(|k| distance(k))?;
    let contained = known.iter().find(|k| k.len() > 2 && (k.contains(&name) || name.contains(k.as_str())));
    if distance(near) <= 1 + near.len() / 4 { Some(near) } else { contained }
}

#[cfg(test)]
mod tests {
    use share::Terms;

    use super::*;
    use crate::settings::Settings;

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
        "#;
        let given = parse("f", text).unwrap();
        for name in settings() {
            assert!(text.contains(&name), "{name} is not in this test");
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
        assert_eq!(refused("[[share]]\nguests = true").advice, "Did you mean `guest`?");
        assert_eq!(refused("[[user]]\npasword = \"x\"").advice, "Did you mean `password`?");
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
