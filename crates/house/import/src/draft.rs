//! The configuration that is being made, and its text.

mod overlaps;

use std::fmt::Write as _;

use serde::Serialize;

use crate::accounts::Account;
use crate::clients::ClientRule;
use crate::note::{Note, Notes};

/// What came of an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// The text of the configuration, with comments. It holds secrets if it has users.
    #[serde(skip)]
    pub text: String,
    /// The shares.
    pub shares: Vec<ImportedShare>,
    /// The users.
    pub users: Vec<ImportedUser>,
    /// What was not carried over, the gravest first.
    pub notes: Vec<Note>,
}

/// A share that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportedShare {
    /// The name.
    pub name: String,
    /// The directory.
    pub directory: String,
    /// Why it is written as a comment, and so not served; empty: it is served.
    pub closed: Vec<String>,
}

/// A user that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportedUser {
    /// The name.
    pub name: String,
    /// Why it is written as a comment; None: it may log on.
    pub closed: Option<String>,
}

/// A share. The keys are those of `[[share]]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) name: String,
    pub(crate) directory: String,
    pub(crate) comment: String,
    pub(crate) protocol: &'static str,
    pub(crate) read_only: bool,
    pub(crate) guest: bool,
    pub(crate) hidden: bool,
    pub(crate) encrypted: bool,
    pub(crate) access_based_enumeration: bool,
    pub(crate) reserved_names: Vec<String>,
    pub(crate) recycle_bin: String,
    pub(crate) read: Vec<String>,
    pub(crate) write: Vec<String>,
    /// None: every client is admitted.
    pub(crate) clients: Option<Vec<ClientRule>>,
    /// Why it is written as a comment.
    pub(crate) closed: Vec<String>,
    /// What the reader of the file should know.
    pub(crate) remarks: Vec<String>,
}

impl Share {
    /// Writes the share as a comment, for this reason too.
    pub(crate) fn close(&mut self, why: impl Into<String>) {
        let why = why.into();
        if !self.closed.contains(&why) {
            self.closed.push(why);
        }
    }
}

/// A configuration in the making.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// What it is made from, and how.
    pub(crate) head: Vec<String>,
    /// Lines before the first table, as they are written.
    pub(crate) settings: Vec<String>,
    pub(crate) shares: Vec<Share>,
    pub(crate) accounts: Vec<AccountLines>,
}

/// An account, and how its uid is written.
#[derive(Debug)]
pub(crate) struct AccountLines {
    pub(crate) account: Account,
    pub(crate) uid: Option<u32>,
    pub(crate) remark: String,
}

impl Draft {
    /// The text, and what it comes to.
    pub(crate) fn finish(mut self, notes: Notes) -> Imported {
        overlaps::close(&mut self.shares);
        let mut text = String::new();
        for line in &self.head {
            comment(&mut text, line);
        }
        if !self.settings.is_empty() {
            text.push('\n');
        }
        for line in &self.settings {
            text.push_str(line);
            text.push('\n');
        }
        self.shares.iter().for_each(|share| write_share(&mut text, share));
        self.accounts.iter().for_each(|lines| write_account(&mut text, lines));
        let shares = self.shares.into_iter().map(|Share { name, directory, closed, .. }| ImportedShare {
            name,
            directory,
            closed,
        });
        let users = self.accounts.into_iter().map(|AccountLines { account, .. }| ImportedUser {
            name: account.name,
            closed: account.closed.map(str::to_owned),
        });
        Imported { text, shares: shares.collect(), users: users.collect(), notes: notes.sorted() }
    }
}

/// A line of comment: what is not ours in it stays on the line.
fn comment(text: &mut String, line: &str) {
    let line: String = line.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    text.push_str(if line.is_empty() { "#" } else { "# " });
    text.push_str(&line);
    text.push('\n');
}

/// A string as TOML writes it, on one line.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn list(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("[{}]", words.join(", "))
}

fn write_share(text: &mut String, share: &Share) {
    text.push('\n');
    for why in &share.closed {
        comment(text, &format!("Not served: {why}."));
    }
    for remark in &share.remarks {
        comment(text, remark);
    }
    let lines = share_lines(share);
    if share.closed.is_empty() {
        text.push_str(&lines);
    } else {
        lines.lines().for_each(|line| comment(text, line));
    }
}

fn share_lines(share: &Share) -> String {
    let mut lines = String::from("[[share]]\n");
    let mut line = |key: &str, value: String| {
        let _ = writeln!(lines, "{key} = {value}");
    };
    line("name", quoted(&share.name));
    line("directory", quoted(&share.directory));
    if !share.comment.is_empty() {
        line("comment", quoted(&share.comment));
    }
    line("protocols", list(&[share.protocol.to_owned()]));
    let switches = [
        ("read-only", share.read_only),
        ("guest", share.guest),
        ("hidden", share.hidden),
        ("encrypted", share.encrypted),
        ("access-based-enumeration", share.access_based_enumeration),
    ];
    for (key, _) in switches.into_iter().filter(|(_, is_on)| *is_on) {
        line(key, "true".to_owned());
    }
    if !share.recycle_bin.is_empty() {
        line("recycle-bin", quoted(&share.recycle_bin));
    }
    let lists = [("reserved-names", &share.reserved_names), ("read", &share.read), ("write", &share.write)];
    for (key, words) in lists.into_iter().filter(|(_, words)| !words.is_empty()) {
        line(key, list(words));
    }
    for rule in share.clients.iter().flatten() {
        write_client(&mut lines, share.protocol, rule);
    }
    lines
}

fn write_client(lines: &mut String, protocol: &str, rule: &ClientRule) {
    let _ = write!(lines, "[[share.client]]\nnetwork = {}\n", quoted(&rule.network.to_string()));
    let Some(admitted) = rule.admitted else {
        // The client is refused over protocols that the first rule with its network does not list.
        let other = if protocol == "smb" { "nfs" } else { "smb" };
        let _ = writeln!(
            lines,
            "protocols = {} # refused: the share has only {protocol}",
            list(&[other.to_owned()])
        );
        return;
    };
    let access = if admitted.read_only { "ro" } else { "rw" };
    let _ = writeln!(lines, "access = {}", quoted(access));
    if let Some(squash) = admitted.squash {
        let _ = writeln!(lines, "squash = {}", quoted(&squash.to_string()));
    }
    if admitted.secure_port {
        lines.push_str("secure-port = true\n");
    }
}

fn write_account(text: &mut String, lines: &AccountLines) {
    let AccountLines { account, uid, remark } = lines;
    let mut table =
        format!("[[user]]\nname = {}\nnt-hash = {}\n", quoted(&account.name), quoted(&account.nt_hash));
    if let Some(uid) = uid {
        let _ = writeln!(table, "uid = {uid}");
    }
    text.push('\n');
    if !remark.is_empty() {
        comment(text, remark);
    }
    let Some(why) = account.closed else {
        text.push_str(&table);
        return;
    };
    comment(text, &format!("May not log on: {why}."));
    table.lines().for_each(|line| comment(text, line));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_read_as_they_were() {
        for text in ["", "a", "a \"b\" \\c", "tab\tand\nline", "\u{7f}\u{1}\u{fc}\u{1f600}", "[x] # y"] {
            let read: toml::Table = format!("k = {}", quoted(text)).parse().unwrap();
            assert_eq!(read.get("k").and_then(|value| value.as_str()), Some(text));
        }
    }

    #[test]
    fn a_comment_stays_on_its_line() {
        let mut text = String::new();
        comment(&mut text, "a\nshare = [\"x=/\"]\r\u{7f}");
        assert_eq!(text, "# a?share = [\"x=/\"]??\n");
    }
}
