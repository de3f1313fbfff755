//! The effective configuration for people: a configuration file with the source of each value beside it.

use std::fmt::Write;

use control::configuration::{Configuration, Section, Setting, Source};

/// The widest column of settings: the sources of longer ones stand behind them.
const COLUMN_MAX: usize = 48;

/// The configuration as a file. It can be read again, except for passwords, which are left out.
pub(crate) fn render(configuration: &Configuration) -> String {
    let mut text = String::new();
    if configuration.files.len() > 1 {
        let _ = writeln!(text, "# from {}\n", configuration.files.join(", "));
    }
    write_settings(&mut text, &configuration.settings);
    let tables = [
        ("snapshot-policy", &configuration.snapshot_policies),
        ("pool", &configuration.pools),
        ("share", &configuration.shares),
        ("user", &configuration.users),
    ];
    for (table, sections) in tables {
        for Section { settings, .. } in sections {
            let _ = writeln!(text, "\n[[{table}]]");
            write_settings(&mut text, settings);
        }
    }
    text
}

fn write_settings(text: &mut String, settings: &[Setting]) {
    let lines: Vec<(String, String)> = settings.iter().map(|one| (line(one), source(one))).collect();
    let widths = lines.iter().map(|(line, _)| line.chars().count()).filter(|width| *width <= COLUMN_MAX);
    let width = widths.max().unwrap_or(0);
    for (line, source) in lines {
        let _ = writeln!(text, "{line:width$}  # {source}");
    }
}

/// A line of the file; a comment if there is no value, or the value is not shown.
fn line(Setting { key, value, .. }: &Setting) -> String {
    match toml::Value::try_from(value) {
        Ok(value) => format!("{key} = {value}"),
        Err(_) => format!("# {key}"),
    }
}

fn source(setting: &Setting) -> String {
    let source = match (setting.source, &setting.file, setting.line) {
        (Source::File, Some(file), Some(line)) => format!("{file} line {line}"),
        (Source::File, ..) => "the file".to_owned(),
        (Source::Default, ..) if setting.value.is_null() => "not set".to_owned(),
        (Source::Default, ..) => "default".to_owned(),
        (Source::CommandLine, ..) => "command line".to_owned(),
        (Source::Environment, ..) => {
            format!("environment, {}", setting.variable.as_deref().unwrap_or_default())
        }
        (Source::System, ..) => "the users of this machine".to_owned(),
        (Source::State, ..) => "the state database".to_owned(),
    };
    let is_hidden = setting.value.is_null() && setting.source != Source::Default;
    if is_hidden { format!("{source}; not shown") } else { source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Given;

    #[test]
    fn what_is_shown_is_a_file_again() {
        let given = Given {
            share: vec!["data=/srv/\"data\"".parse().unwrap()],
            user: vec!["anna=1000:100:hush-hush".parse().unwrap()],
            nfs: vec!["off".parse().unwrap()],
            log: Some("debug".to_owned()),
            ..Given::default()
        };
        let shown = super::super::of(&given);
        let text = render(&shown);
        assert!(text.contains("nfs = [\"off\"]") && text.contains("# command line\n"), "{text}");
        assert!(text.contains("# password"), "{text}");
        assert!(!text.contains("hush"), "{text}");
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.toml");
        std::fs::write(&file, &text).unwrap();
        let again = crate::config::read(&file);
        assert_eq!(again.from.mistakes, [], "{text}");
        assert_eq!(again.share, given.share);
        assert_eq!((again.user[0].uid, again.user[0].gid, again.log), (Some(1000), Some(100), given.log));
        assert_eq!(again.nfs, given.nfs);
    }
}
