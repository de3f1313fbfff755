//! exports(5) becomes a configuration.

mod kind;
mod options;
mod share;
mod tokens;

use gateway::settings::same_share_name;

use crate::Error;
use crate::draft::{Draft, Imported, Share};
use crate::note::{Notes, Place};
use options::Options;
use tokens::{Token, tokens};

/// A file of exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File<'a> {
    /// The name.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
}

/// A directory, and the clients that may use it.
struct Export {
    path: String,
    clients: Vec<Client>,
}

struct Client {
    place: Place,
    name: String,
    options: Options,
}

/// The configuration for this server.
///
/// # Errors
/// exportfs(8) does not understand a line.
pub fn exports(files: &[File<'_>]) -> Result<Imported, Error> {
    let mut exports: Vec<Export> = Vec::new();
    for file in files {
        read(file, &mut exports)?;
    }
    let mut notes = Notes::default();
    let names: Vec<&str> = files.iter().map(|file| file.name).collect();
    let head = vec![
        format!("Made by `anabranch import exports` from {}.", names.join(", ")),
        "Shares that are written as comments are not served: each says why. Remove the # of its lines when that is settled.".to_owned(),
    ];
    let settings = vec!["smb = \"off\" # exports(5) is about NFS only".to_owned()];
    let mut draft = Draft { head, settings, ..Draft::default() };
    for export in exports {
        let name = name_for(&export.path, &draft.shares);
        let share = share::share(export, name, &mut notes);
        draft.shares.push(share);
    }
    Ok(draft.finish(notes))
}

/// Adds the exports of a file. A directory may be on several lines.
fn read(file: &File<'_>, exports: &mut Vec<Export>) -> Result<(), Error> {
    let mut words: Vec<(usize, String)> = Vec::new();
    for token in tokens(file.text) {
        match token {
            Token::Word { line, bytes } => {
                let place = Place { file: file.name.to_owned(), line };
                let word = String::from_utf8(bytes)
                    .map_err(|_| Error::new(&place, "the line is not UTF-8 text", "Rename the directory."))?;
                words.push((line, word));
            }
            Token::End if words.is_empty() => {}
            Token::End => add(file.name, std::mem::take(&mut words), exports)?,
        }
    }
    Ok(())
}

/// Adds a line: a directory, options that hold from then on, and clients.
fn add(file: &str, words: Vec<(usize, String)>, exports: &mut Vec<Export>) -> Result<(), Error> {
    let mut words = words.into_iter().peekable();
    let Some((mut line, path)) = words.next() else { return Ok(()) };
    let place = |line| Place { file: file.to_owned(), line };
    let mut defaults = Options::default();
    let mut clients = Vec::new();
    let mut is_open_end = true;
    for (at, word) in words {
        line = at;
        if let Some(options) = word.strip_prefix('-') {
            defaults.add(options);
            is_open_end = true;
            continue;
        }
        is_open_end = false;
        let (name, list) = match word.split_once('(') {
            None => (word.as_str(), ""),
            Some((name, list)) => {
                let list = list.strip_suffix(')').filter(|list| !list.contains(')'));
                let what = || {
                    Error::new(
                        &place(at),
                        format!("{word} has no list of options in parentheses"),
                        "exportfs refuses the line, too.",
                    )
                };
                (name, list.ok_or_else(what)?)
            }
        };
        let mut options = defaults.clone();
        options.add(list);
        clients.push(Client { place: place(at), name: name.to_owned(), options });
    }
    if is_open_end {
        // Without a client, everybody is one.
        clients.push(Client { place: place(line), name: String::new(), options: defaults });
    }
    match exports.iter_mut().find(|export| export.path == path) {
        Some(export) => export.clients.extend(clients),
        None => exports.push(Export { path, clients }),
    }
    Ok(())
}

/// The last part of the path; where another share has it, more parts.
fn name_for(path: &str, shares: &[Share]) -> String {
    let is_bad = |c: char| c.is_control() || "\"\\[]:|<>+=;,*?".contains(c);
    let clean = |part: &str| part.chars().map(|c| if is_bad(c) { '-' } else { c }).collect::<String>();
    let parts: Vec<String> = path.split('/').map(clean).filter(|part| !part.is_empty()).collect();
    let is_free = |name: &String| !shares.iter().any(|share| same_share_name(&share.name, name));
    let from = |count: usize| parts.get(parts.len().saturating_sub(count)..).unwrap_or_default().join("-");
    let by_path = (1..=parts.len()).map(from);
    let root = (parts.is_empty()).then(|| "root".to_owned());
    let base = root.clone().unwrap_or_else(|| from(1));
    let numbered = (2_usize..).map(|number| format!("{base}-{number}"));
    root.into_iter().chain(by_path).chain(numbered).find(is_free).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_ends_of_paths() {
        let mut shares: Vec<Share> = Vec::new();
        for (path, expected) in [
            ("/srv/data", "data"),
            ("/export/data", "export-data"),
            ("/export/DATA/", "DATA-2"),
            ("/", "root"),
            ("/a/x:y", "x-y"),
        ] {
            let name = name_for(path, &shares);
            assert_eq!(name, expected);
            shares.push(Share { name, ..Share::default() });
        }
    }

    /// What a client may do: (may write, users that are squashed from none to all, needs a privileged port).
    fn told(admitted: clients::Admitted) -> (bool, u8, bool) {
        let squashed = match admitted.squash {
            None | Some(access::Squash::None) => 0,
            Some(access::Squash::Root) => 1,
            Some(access::Squash::All) => 2,
        };
        (!admitted.read_only, squashed, admitted.secure_port)
    }

    /// What the kernel gives a client: by the first kind that matches it, in the order of the line.
    fn kernel_gives(line: &[(&str, &str)], address: &str, patterns: [bool; 2]) -> Option<(bool, u8, bool)> {
        let matches = |name: &str| match name {
            "*.example.org" => patterns[0],
            "@net" => patterns[1],
            // 10.X.7.Y
            "10.0.7.0/255.0.255.0" => address.starts_with("10.") && address.split('.').nth(2) == Some("7"),
            name => clients::network(name).is_none_or(|network| {
                network
                    .contains(&access::Names::default(), address.parse::<std::net::IpAddr>().unwrap().into())
            }),
        };
        let rank = |name: &str| kind::Kind::of(name).rank();
        let (_, options) =
            line.iter().filter(|(name, _)| matches(name)).min_by_key(|(name, _)| rank(name))?;
        let mut read = Options::default();
        read.add(options);
        read.admitted().ok().map(told)
    }

    use crate::clients;
    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(2000))]
        #[test]
        fn nobody_gets_more_than_the_kernel_gives(
            line in proptest::collection::vec(
                (
                    proptest::sample::select(
                        &["*", "10.0.0.0/8", "10.0.7.0/24", "10.0.7.9", "192.0.2.1", "*.example.org", "@net", "10.0.7.0/255.0.255.0"][..],
                    ),
                    proptest::sample::select(&["rw", "ro", "rw,all_squash", "rw,no_root_squash,insecure", "rw,sec=krb5", ""][..]),
                ),
                1..6,
            ),
            patterns: [bool; 2],
        ) {
            let clients: Vec<String> = line.iter().map(|(name, options)| format!("{name}({options})")).collect();
            let text = format!("/a {}", clients.join(" "));
            let mut exports = Vec::new();
            read(&File { name: "e", text: &text }, &mut exports).unwrap();
            let share = share::share(exports.remove(0), "a".to_owned(), &mut Notes::default());
            for address in ["10.0.7.9", "10.0.7.8", "10.1.7.1", "10.1.1.1", "192.0.2.1", "203.0.113.1"] {
                let kernel = kernel_gives(&line, address, patterns);
                let is_for = |rule: &&clients::ClientRule| {
                    rule.network.contains(&access::Names::default(), address.parse::<std::net::IpAddr>().unwrap().into())
                };
                let rule = share.clients.iter().flatten().find(is_for).filter(|_| share.closed.is_empty());
                let Some(here) = rule.and_then(|rule| rule.admitted).map(told) else { continue };
                let Some(kernel) = kernel else { panic!("{text} {address} {patterns:?}: {here:?}") };
                let is_less = here.0 <= kernel.0 && here.1 >= kernel.1 && here.2 >= kernel.2;
                proptest::prop_assert!(is_less, "{} {} {:?}: {:?} {:?}", text, address, patterns, here, kernel);
            }
        }
    }
}
