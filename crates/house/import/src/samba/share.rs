//! A section becomes a share.

use gateway::settings::{check_reserved_name, check_share_name};
use share::RecycleBin;

use super::hosts::{self, Hosts};
use super::parameter;
use super::parse::{INCLUDED, Section};
use super::rights::{self, Asked, Rights};
use super::value::{self, Requirement};
use super::vfs::{self, Module};
use super::{HOMES, is_named};
use crate::draft::Share;
use crate::note::{Grade, Note, Notes};

/// Longest comment of a share, in bytes (`state::rules`).
const COMMENT_BYTES_MAX: usize = 256;

/// What is known besides the section.
pub(super) struct Context<'a> {
    pub(super) global: &'a Section,
    /// The names of the accounts that are imported and may log on; None: they are not known.
    pub(super) accounts: Option<&'a [String]>,
    pub(super) host_name: Option<String>,
    /// The user whose home directory is shared.
    pub(super) owner: Option<&'a str>,
}

/// The share in the making.
struct Making<'a> {
    section: &'a Section,
    context: &'a Context<'a>,
    share: Share,
    notes: &'a mut Notes,
}

/// The share of a section. `name` takes the place of `%S`; `home` is the directory if the section has none.
pub(super) fn share(
    section: &Section,
    name: &str,
    home: Option<String>,
    context: &Context<'_>,
    notes: &mut Notes,
) -> Share {
    let share = Share { name: name.to_owned(), protocol: "smb", ..Share::default() };
    let mut making = Making { section, context, share, notes };
    making.name();
    making.directory(home);
    making.comment();
    making.switches();
    making.users();
    making.clients();
    making.names();
    making.encryption();
    making.modules();
    making.modes();
    making.left_out();
    making.share
}

impl Making<'_> {
    /// Notes what becomes of a parameter.
    fn note(&mut self, grade: Grade, parameter: &str, why: &str) {
        let (section, global) = (&self.section.settings, &self.context.global.settings);
        let Some(setting) = section.get(parameter).or_else(|| global.get(parameter)) else { return };
        let section = self.section.name.clone();
        if grade == Grade::ChangesAccess && !self.share.closed.iter().any(|closed| closed == why) {
            let remark = format!("{}, {} = {}: {why}.", setting.place, setting.written, setting.value);
            if !self.share.remarks.contains(&remark) {
                self.share.remarks.push(remark);
            }
        }
        self.notes.add(Note {
            grade,
            place: setting.place.clone(),
            section,
            parameter: setting.written.clone(),
            value: setting.value.clone(),
            why: why.to_owned(),
        });
    }

    /// Writes the share as a comment because of a parameter.
    fn close(&mut self, parameter: &str, why: &str) {
        self.share.close(why);
        self.note(Grade::ChangesAccess, parameter, why);
    }

    fn substituted(&self, text: &str) -> Option<String> {
        let known = |name: &str| match name {
            "S" => Some(self.share.name.clone()),
            // Only the owner is admitted.
            "u" | "U" => self.context.owner.map(str::to_owned),
            "h" => self.context.host_name.clone(),
            _ => None,
        };
        value::substitute(text, &known)
    }

    fn name(&mut self) {
        let name = self.share.name.trim().to_owned();
        if let Err(why) = check_share_name(&name) {
            self.share.close(why);
        }
        self.share.name = name;
    }

    fn directory(&mut self, home: Option<String>) {
        let path = self.section.value("path").map(|path| value::string(path).to_owned());
        let path = path.filter(|path| !path.is_empty());
        let Some(path) = path.or(home) else {
            let is_home = self.context.owner.is_some();
            self.share.close(if is_home {
                "its home directory is not known here"
            } else {
                "the section has no path"
            });
            return;
        };
        // Samba changes its root before it looks at any path.
        let root = self.context.global.value("root directory").map(value::string).unwrap_or_default();
        let root = root.trim_end_matches('/');
        if let Some(parent) = self.parent_of_homes(&path) {
            self.share.directory = format!("{root}{parent}/{{user}}");
            return self.homes();
        }
        match self.substituted(&path) {
            Some(path) if path.starts_with('/') => self.share.directory = format!("{root}{path}"),
            Some(path) => {
                self.share.directory = path;
                self.close("path", "the path does not begin with /");
            }
            None => {
                self.share.directory = path;
                self.close("path", "the directory depends on the client or the user");
            }
        }
        if self.share.directory.chars().any(char::is_control) {
            self.close("path", "the path has control characters");
        }
    }

    /// The directory before the name of the user, if each user has a directory of that name there.
    fn parent_of_homes(&self, path: &str) -> Option<String> {
        let (parent, variable) = path.trim_end_matches('/').rsplit_once('/')?;
        let is_of_users = self.context.owner.is_none() && self.stands_for_user(variable);
        let parent = self.substituted(parent).filter(|parent| parent.starts_with('/'))?;
        is_of_users.then_some(parent)
    }

    /// Whether a variable of smb.conf(5) is the name of the user: `%S` is the name of the service, which is that of the user for
    /// `[homes]`.
    fn stands_for_user(&self, variable: &str) -> bool {
        matches!(variable, "%u" | "%U") || variable == "%S" && is_named(self.section, HOMES)
    }

    /// Notes what differs from Samba if each user has a directory.
    fn homes(&mut self) {
        if self.section.is_on("guest ok", false) {
            self.note(Grade::ChangesAccess, "guest ok", "guests have no directory of their own");
        }
        if self.section.value("valid users").is_none() {
            self.note(Grade::ChangesAccess, "path", "each user can use the directory of their own name only");
        }
    }

    fn comment(&mut self) {
        let Some(comment) = self.section.value("comment").map(value::string) else { return };
        match self.substituted(comment) {
            Some(comment) if comment.len() <= COMMENT_BYTES_MAX => {
                self.share.comment = comment.replace(char::is_control, " ");
            }
            _ => self.note(
                Grade::NoCounterpart,
                "comment",
                "comments have 256 bytes at most, and no variables",
            ),
        }
    }

    fn switches(&mut self) {
        for parameter in ["available", "-valid"] {
            if !self.section.is_on(parameter, true) {
                self.share.close(format!("Samba does not serve it either ({parameter} = no)"));
            }
        }
        for parameter in ["preexec close", "root preexec close"] {
            if self.section.is_on(parameter, false) {
                self.close(parameter, "a program decides who may connect, and the server starts none");
            }
        }
        if self.section.value("msdfs proxy").is_some_and(|proxy| !proxy.is_empty()) {
            self.close("msdfs proxy", "Samba sends clients to another server");
        }
        let has_unread = |section: &Section| section.settings.contains_key("include");
        if has_unread(self.section) || has_unread(self.context.global) {
            self.close("include", INCLUDED);
        }
        self.share.guest = self.section.is_on("guest ok", false);
        self.share.access_based_enumeration = self.section.is_on("hide unreadable", false);
        self.share.hidden = !self.section.is_on("browseable", true);
        if self.section.is_on("access based share enum", false) {
            self.share.hidden = true;
            self.note(
                Grade::ChangesAccess,
                "access based share enum",
                "lists of shares show the share to nobody",
            );
        }
        if self.share.guest && self.section.is_on("guest only", false) {
            self.note(
                Grade::ChangesAccess,
                "guest only",
                "users with accounts act as themselves, and not as the guest",
            );
        }
    }

    fn users(&mut self) {
        let is_of_users = self.share.directory.ends_with("/{user}");
        let substituted = |name: &str| {
            // Nobody else sees the directory of a user.
            let entries = self.section.list(name).into_iter();
            let entries = entries.filter(|entry| !(is_of_users && self.stands_for_user(entry)));
            // An entry that cannot be substituted keeps its %, and is then left out.
            entries.map(|entry| self.substituted(&entry).unwrap_or(entry)).collect::<Vec<_>>()
        };
        let mut asked = Asked {
            valid: substituted("valid users"),
            invalid: substituted("invalid users"),
            read: substituted("read list"),
            write: substituted("write list"),
            read_only: self.section.is_on("read only", true),
            guest: self.share.guest,
            accounts: self.context.accounts,
        };
        if let (Some(owner), true) = (self.context.owner, asked.valid.is_empty()) {
            asked.valid = vec![owner.to_owned()];
        }
        let (rights, left_out) = rights::rights(&asked);
        for (parameter, why) in left_out {
            self.note(Grade::ChangesAccess, parameter, &why);
        }
        match rights {
            Rights::Open { read_only } => self.share.read_only = read_only,
            Rights::Listed { read, write } => (self.share.read, self.share.write) = (read, write),
            Rights::Closed(why) => {
                let of_invalid = why.starts_with("invalid users");
                self.close(if of_invalid { "invalid users" } else { "valid users" }, &why);
            }
        }
        let is_listed = !(self.share.read.is_empty() && self.share.write.is_empty());
        if self.share.guest && is_listed {
            self.share.guest = false;
            self.note(Grade::ChangesAccess, "guest ok", "a share with a list of users refuses guests");
        }
    }

    fn clients(&mut self) {
        let looks_up_names =
            self.context.global.value("hostname lookups").and_then(value::boolean).unwrap_or(false);
        let of = |section: &Section| {
            hosts::hosts(&section.list("hosts allow"), &section.list("hosts deny"), looks_up_names)
        };
        // "If specified in the [global] section then it will apply to all services, regardless of whether the individual
        // service has a different setting."
        let hosts = of(self.context.global).and_then(|global| hosts::both(global, of(self.section)?));
        match hosts {
            Ok(Hosts { rules, left_out }) => {
                self.share.clients = rules;
                for (entry, why) in left_out {
                    self.note(Grade::ChangesAccess, "hosts allow", &format!("{entry:?} is left out: {why}"));
                }
            }
            Err(why) => {
                let parameter = if why.starts_with("hosts allow") { "hosts allow" } else { "hosts deny" };
                self.close(parameter, &why);
            }
        }
    }

    fn names(&mut self) {
        let veto = self.section.value("veto files").unwrap_or_default().to_owned();
        for name in veto.split('/').map(str::trim).filter(|name| !name.is_empty()) {
            if name.contains(['*', '?', '%']) || check_reserved_name(name).is_err() {
                self.close(
                    "veto files",
                    &format!("veto files refuses {name}, and reserved-names takes no patterns"),
                );
            } else {
                self.share.reserved_names.push(name.to_owned());
            }
        }
    }

    fn encryption(&mut self) {
        let of = |section: &Section| section.value("server smb encrypt").and_then(value::requirement);
        match of(self.section) {
            Some(Requirement::Required) if of(self.context.global) == Some(Requirement::Off) => {
                self.close(
                    "server smb encrypt",
                    "the share requires encryption, and [global] switches it off: Samba refuses everybody",
                );
            }
            Some(Requirement::Required) => self.share.encrypted = true,
            Some(Requirement::Desired)
                if self.section.settings.get("server smb encrypt").is_some_and(|own| own.is_own) =>
            {
                let why = "clients decide whether they encrypt; `encrypted = true` refuses those that do not";
                self.note(Grade::NoCounterpart, "server smb encrypt", why);
            }
            _ => {}
        }
    }

    fn modules(&mut self) {
        for name in self.section.list("vfs objects") {
            match vfs::module(&name) {
                Module::BuiltIn => self.note(
                    Grade::NotNeeded,
                    "vfs objects",
                    &format!("{name}: the server needs no module for it"),
                ),
                Module::Feature => {
                    self.note(Grade::NoCounterpart, "vfs objects", &format!("{name}: there are no modules"))
                }
                Module::RecycleBin => self.recycle_bin(),
                Module::ReadOnly => {
                    self.share.read_only = true;
                    self.note(
                        Grade::ChangesAccess,
                        "vfs objects",
                        &format!("{name} refuses changes: the share is read-only"),
                    );
                }
                Module::Guards(why) => self.close("vfs objects", &format!("the module {name} {why}")),
            }
        }
    }

    /// The settings of Samba's module `recycle`, vfs_recycle(8), which removes nothing from the bin.
    fn recycle_bin(&mut self) {
        let mut words = vec!["on".to_owned()];
        match self.section.value("recycle:maxsize").map(|bytes| bytes.trim().parse::<u64>()) {
            // 0: any size.
            None | Some(Ok(0)) => {}
            Some(Ok(bytes)) => words.push(format!("largest={}KiB", bytes.div_ceil(1024))),
            Some(Err(_)) => {
                let why = "it is not a number of bytes: files of any size go to the recycle bin";
                self.note(Grade::NoCounterpart, "recycle:maxsize", why);
            }
        }
        for (parameter, end) in [("recycle:exclude", ""), ("recycle:exclude_dir", "/")] {
            // Some separate the patterns by `|`.
            for pattern in self.section.list(parameter).iter().flat_map(|entry| entry.split('|')) {
                let pattern = pattern.trim_end_matches('/');
                let word = format!("exclude={}{end}", pattern.replace(' ', "?"));
                if format!("{} {word}", words.join(" ")).parse::<RecycleBin>().is_ok() {
                    words.push(word);
                } else {
                    let why =
                        format!("{pattern} is not the name of one file or directory, or there are too many");
                    self.note(Grade::NoCounterpart, parameter, &why);
                }
            }
        }
        let repository = self.section.value("recycle:repository").unwrap_or("bin");
        if repository != share::RECYCLE_FOLDER {
            let why =
                "the recycle bin is .recycle in the root of the share; what is in Samba's stays where it is";
            self.note(Grade::NoCounterpart, "recycle:repository", why);
        }
        self.share.recycle_bin = words.join(" ");
    }

    /// Says beside the share which parameters that are left out change access; the notes have them already.
    fn left_out(&mut self) {
        for (name, setting) in &self.section.settings {
            if let Some((Grade::ChangesAccess, why)) = parameter::fate(name, &setting.value) {
                let remark = format!("{}, {} = {}: {why}.", setting.place, setting.written, setting.value);
                self.share.remarks.push(remark);
            }
        }
    }

    /// The server gives new files the mode 0644, and new directories 0755.
    fn modes(&mut self) {
        for (parameter, made) in [("create mask", 0o644), ("directory mask", 0o755)] {
            let Some(mask) = self.section.value(parameter).and_then(value::mode) else { continue };
            let (grade, why) = if made & !mask == 0 {
                (Grade::NoCounterpart, "new files have mode 0644 and new directories 0755")
            } else {
                let why = "new files have mode 0644 and new directories 0755, unless the access control list of their \
                           directory says less: more users may read them";
                (Grade::ChangesAccess, why)
            };
            self.note(grade, parameter, why);
        }
    }
}
