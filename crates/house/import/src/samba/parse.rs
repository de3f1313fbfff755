//! Sections and parameters, as `lib/param/loadparm.c` reads them.

use std::collections::BTreeMap;

use super::lines::{Line, lines};
use super::parameter::{self, Scope};
use super::value;
use crate::note::{Grade, Note, Notes, Place};
use crate::{Error, Machine, Reader};

/// Files that include each other, at most (`MAX_INCLUDE_DEPTH`).
const INCLUDES_MAX: usize = 100;
/// Bytes of all files together.
const TEXT_BYTES_MAX: usize = 16 << 20;

/// Why a file was not read, and a share is closed.
pub(super) const INCLUDED: &str =
    "the included file depends on the client or the user, and what it restricts is not known";

/// The value of a parameter, and where it is from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The value. That of `writeable` is turned around, and is one of `read only`.
    pub value: String,
    /// The line.
    pub place: Place,
    /// The parameter, as written.
    pub written: String,
    /// Whether the section itself has the parameter; otherwise it is from `[global]` or was copied.
    pub is_own: bool,
}

/// A section, by the canonical names of its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The name, as written.
    pub name: String,
    /// Where the section begins.
    pub place: Place,
    /// The effective values that are not Samba's defaults.
    pub settings: BTreeMap<String, Setting>,
}

/// A configuration of Samba.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// `[global]`: the parameters of the server, and the defaults of sections that come later.
    pub global: Section,
    /// The other sections, in their order.
    pub sections: Vec<Section>,
    /// The files that were read.
    pub files: Vec<String>,
    /// All parameters, in the order of the lines: section, canonical name, setting.
    pub(super) lines: Vec<(String, String, Setting)>,
}

pub(super) struct Parser<'a> {
    reader: &'a dyn Reader,
    machine: &'a dyn Machine,
    pub(super) configuration: Configuration,
    /// The section to which lines belong; None: `[global]`.
    current: Option<usize>,
    bytes_read: usize,
    pub(super) notes: Notes,
}

/// A name without white space, in lower case (`strwicmp`).
fn squashed(name: &str) -> String {
    name.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect()
}

/// Without one white space at each end.
fn trim_one_space(text: &str) -> &str {
    let text = text.strip_prefix(char::is_whitespace).unwrap_or(text);
    text.strip_suffix(char::is_whitespace).unwrap_or(text)
}

impl<'a> Parser<'a> {
    pub(super) fn new(file: &str, reader: &'a dyn Reader, machine: &'a dyn Machine) -> Self {
        let place = Place { file: file.to_owned(), line: 1 };
        let global = Section { name: "global".to_owned(), place, settings: BTreeMap::new() };
        let configuration =
            Configuration { global, sections: Vec::new(), files: Vec::new(), lines: Vec::new() };
        Self { reader, machine, configuration, current: None, bytes_read: 0, notes: Notes::default() }
    }

    pub(super) fn file(&mut self, name: &str, text: &str, depth: usize) -> Result<(), Error> {
        self.bytes_read = self.bytes_read.saturating_add(text.len());
        if !self.configuration.files.iter().any(|known| known == name) {
            self.configuration.files.push(name.to_owned());
        }
        for Line { number, text } in lines(text) {
            let place = Place { file: name.to_owned(), line: number };
            match text.strip_prefix('[') {
                Some(rest) => self.section(rest, &place)?,
                None => self.parameter(&text, &place, depth)?,
            }
        }
        Ok(())
    }

    fn section(&mut self, rest: &str, place: &Place) -> Result<(), Error> {
        let refuse =
            |what: &str| Err(Error::new(place, what, "Samba does not load such a file: correct it."));
        let Some((name, _)) = rest.split_once(']') else {
            return refuse("the name of the section has no ]");
        };
        if name.is_empty() {
            return refuse("the section has no name");
        }
        if matches!(squashed(name).as_str(), "global" | "globals") {
            self.current = None;
            return Ok(());
        }
        self.current = self.find(name).or_else(|| {
            let defaults = self
                .configuration
                .global
                .settings
                .iter()
                .filter(|(name, _)| parameter::scope(name) == Scope::Share);
            let inherited = |(name, setting): (&String, &Setting)| {
                (name.clone(), Setting { is_own: false, ..setting.clone() })
            };
            let settings = defaults.map(inherited).collect();
            self.configuration.sections.push(Section {
                name: name.to_owned(),
                place: place.clone(),
                settings,
            });
            self.configuration.sections.len().checked_sub(1)
        });
        Ok(())
    }

    /// Names of sections are compared regardless of case.
    fn find(&self, name: &str) -> Option<usize> {
        let name = name.to_lowercase();
        self.configuration.sections.iter().position(|section| section.name.to_lowercase() == name)
    }

    fn section_name(&self) -> String {
        let section = self.current.and_then(|index| self.configuration.sections.get(index));
        section.unwrap_or(&self.configuration.global).name.clone()
    }

    fn note(&mut self, grade: Grade, name: &str, value: &str, place: &Place, why: &str) {
        self.notes.add(Note {
            grade,
            place: place.clone(),
            section: self.section_name(),
            parameter: name.to_owned(),
            value: value.to_owned(),
            why: why.to_owned(),
        });
    }

    fn parameter(&mut self, text: &str, place: &Place, depth: usize) -> Result<(), Error> {
        let Some((name, value)) = text.split_once('=') else {
            let why = "it is neither a section nor a parameter, and Samba ignores it";
            self.note(Grade::NotNeeded, "", text, place, why);
            return Ok(());
        };
        let (written, value) = (trim_one_space(name), trim_one_space(value));
        if written.is_empty() {
            let advice = "Samba does not load such a file: correct it.";
            return Err(Error::new(place, "the parameter has no name", advice));
        }
        let (name, is_inverted) = parameter::canonical(&squashed(written));
        let scope = parameter::scope(&name);
        if self.current.is_some() && scope == Scope::Server {
            let why = "it belongs to [global]: here Samba ignores it";
            self.note(Grade::NotNeeded, written, value, place, why);
            return Ok(());
        }
        let mut value = value.to_owned();
        if parameter::is_boolean(&name) {
            let Some(is_on) = value::boolean(&value) else {
                let what = format!("{written} = {value} is neither yes nor no");
                return Err(Error::new(place, what, "Samba does not load such a file: correct it."));
            };
            value = if is_on == is_inverted { "no" } else { "yes" }.to_owned();
        }
        let setting = Setting { value, place: place.clone(), written: written.to_owned(), is_own: true };
        match name.as_str() {
            "include" => return self.include(&setting, depth),
            "copy" => self.copy(&setting)?,
            "config file" if !setting.value.is_empty() => {
                let what =
                    format!("Samba reads another configuration instead of this one: {}", setting.value);
                return Err(Error::new(place, what, "Import that file."));
            }
            _ => {}
        }
        self.set(name, setting);
        Ok(())
    }

    fn set(&mut self, name: String, setting: Setting) {
        let section = match self.current {
            Some(index) => self.configuration.sections.get_mut(index),
            None => Some(&mut self.configuration.global),
        };
        let Some(section) = section else { return };
        self.configuration.lines.push((section.name.clone(), name.clone(), setting.clone()));
        section.settings.insert(name, setting);
    }

    /// The file takes the place of the line: sections that begin in it go on after it.
    fn include(&mut self, setting: &Setting, depth: usize) -> Result<(), Error> {
        let Setting { value, place, written, .. } = setting;
        if value.eq_ignore_ascii_case("registry") {
            let why = "shares in Samba's registry are not read: import what `net conf list` prints, too";
            self.note(Grade::NoCounterpart, written, value, place, why);
            return Ok(());
        }
        let machine = self.machine;
        let known = |name: &str| match name {
            "h" => machine.host_name(),
            name => machine.variable(name.strip_prefix("$(")?.strip_suffix(')')?),
        };
        let Some(path) = value::substitute(value::string(value), &known) else {
            let why = INCLUDED;
            self.note(Grade::ChangesAccess, written, value, place, why);
            // The section is marked: what it restricts is not known.
            self.set("include".to_owned(), setting.clone());
            return Ok(());
        };
        if depth >= INCLUDES_MAX || self.bytes_read > TEXT_BYTES_MAX {
            let what = format!("{path} is included, after {INCLUDES_MAX} files that include each other");
            return Err(Error::new(place, what, "Files must not include themselves."));
        }
        let trouble = |why| Error::new(place, format!("cannot read the included file {path}: {why}"), "");
        match self.reader.read(&path).map_err(trouble)? {
            Some(text) => self.file(&path, &text, depth.saturating_add(1)),
            None => {
                self.note(
                    Grade::NotNeeded,
                    written,
                    value,
                    place,
                    "the file does not exist, and Samba goes on",
                );
                Ok(())
            }
        }
    }

    /// Everything that the section does not have itself becomes what the other section has, defaults of Samba included.
    fn copy(&mut self, setting: &Setting) -> Result<(), Error> {
        let source = self.find(&setting.value).filter(|source| Some(*source) != self.current);
        let source = source.and_then(|index| self.configuration.sections.get(index)).cloned();
        let Some(source) = source else {
            let what = format!("there is no section [{}] above to be copied", setting.value);
            return Err(Error::new(&setting.place, what, "Samba does not load such a file: correct it."));
        };
        let Some(target) = self.current.and_then(|index| self.configuration.sections.get_mut(index)) else {
            return Ok(());
        };
        target.settings.retain(|_, setting| setting.is_own);
        for (name, setting) in source.settings.into_iter().filter(|(name, _)| name != "copy") {
            target.settings.entry(name).or_insert(Setting { is_own: false, ..setting });
        }
        Ok(())
    }
}

impl Section {
    /// The value of a parameter; None: Samba's default.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&str> {
        self.settings.get(name).map(|setting| setting.value.as_str())
    }

    /// Whether a boolean is on; where it is not written, the default.
    pub(super) fn is_on(&self, name: &str, default: bool) -> bool {
        self.value(name).map_or(default, |value| value == "yes")
    }

    /// The entries of a list.
    pub(super) fn list(&self, name: &str) -> Vec<String> {
        self.value(name).map(value::list).unwrap_or_default()
    }
}
