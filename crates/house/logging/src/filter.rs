//! Filters of the log: a level, or levels of parts of a program.

/// The levels, from nothing to everything.
pub const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The names that filters of a program may use. The parts of the program are its crates, without their common prefix.
#[derive(Debug, Clone, Copy)]
pub struct Names {
    /// The name of the program, with which the names of all its crates begin.
    pub program: &'static str,
    /// The crates, without the program's name in front.
    pub parts: &'static [&'static str],
    /// Modules that were moved out of the program, and their present places, so that filters that name them still work.
    pub moved: &'static [(&'static str, &'static str)],
}

/// A name that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownName {
    /// A level that does not exist.
    #[error("there is no level {0:?}")]
    Level(String),
    /// A part that does not exist.
    #[error("there is no part {0:?}")]
    Part(String),
}

impl Names {
    /// The filter with the names that the parts have inside: `net=debug` of the program `files` is `files_net=debug`.
    ///
    /// # Errors
    /// A level or a part does not exist.
    pub fn filter(&self, wanted: &str) -> Result<String, UnknownName> {
        let directives = wanted.split(',').map(|directive| self.directive(directive.trim()));
        Ok(directives.collect::<Result<Vec<_>, _>>()?.join(","))
    }

    fn directive(&self, directive: &str) -> Result<String, UnknownName> {
        match directive.split_once('=') {
            None => parse_level(directive),
            Some((part, level)) => {
                let (part, level) = (self.part(part)?, parse_level(level)?);
                let all = std::iter::once(part.clone()).chain(self.moved(&part));
                Ok(all.map(|part| format!("{part}={level}")).collect::<Vec<_>>().join(","))
            }
        }
    }

    /// The present place of a module that was moved out of the program.
    fn moved(&self, part: &str) -> impl Iterator<Item = String> {
        let path = part.strip_prefix(self.program).and_then(|path| path.strip_prefix("::"));
        let path = path.unwrap_or_default();
        let (module, inner) = path.split_at(path.find("::").unwrap_or(path.len()));
        let now = self.moved.iter().filter(move |(before, _)| *before == module);
        now.map(move |(_, now)| format!("{now}{inner}"))
    }

    /// A part, or a module of one: `smb_server::handler`.
    fn part(&self, part: &str) -> Result<String, UnknownName> {
        let program = self.program;
        let unknown = || UnknownName::Part(part.to_owned());
        let (name, module) =
            part.split_once("::").map_or((part, None), |(name, module)| (name, Some(module)));
        let folded = name.to_ascii_lowercase().replace('-', "_");
        let of_crate = folded.strip_prefix(program).and_then(|rest| rest.strip_prefix('_'));
        let inside = of_crate.unwrap_or(&folded);
        let whole = if inside == program {
            program.to_owned()
        } else if self.parts.contains(&inside) {
            format!("{program}_{inside}")
        } else {
            return Err(unknown());
        };
        let is_path = |module: &str| module.bytes().all(|b| b.is_ascii_alphanumeric() || b"_:".contains(&b));
        match module {
            None => Ok(whole),
            Some(module) if is_path(module) => Ok(format!("{whole}::{module}")),
            Some(_) => Err(unknown()),
        }
    }
}

fn parse_level(level: &str) -> Result<String, UnknownName> {
    let folded = level.to_ascii_lowercase();
    if LEVELS.contains(&folded.as_str()) { Ok(folded) } else { Err(UnknownName::Level(level.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: Names =
        Names { program: "files", parts: &["disk", "net"], moved: &[("wire", "files_net::wire")] };

    #[test]
    fn names_become_those_of_crates() {
        for (given, filter) in [
            ("Info", "info"),
            ("warn, NET=debug", "warn,files_net=debug"),
            ("files=off,files_disk::read=trace", "files=off,files_disk::read=trace"),
            ("files::wire::rpc=info", "files::wire::rpc=info,files_net::wire::rpc=info"),
        ] {
            assert_eq!(NAMES.filter(given).as_deref(), Ok(filter));
        }
    }

    #[test]
    fn the_first_name_that_does_not_exist_is_said() {
        assert_eq!(NAMES.filter("warn,loud"), Err(UnknownName::Level("loud".to_owned())));
        assert_eq!(NAMES.filter("nets=loud"), Err(UnknownName::Part("nets".to_owned())));
        assert_eq!(NAMES.filter("net::a[b]=info"), Err(UnknownName::Part("net::a[b]".to_owned())));
    }
}
