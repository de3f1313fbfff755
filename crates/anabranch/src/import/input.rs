//! What is read for an import.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use import::{Machine, Reader, accounts};

use crate::config::READ_BY_OTHERS;
use crate::log;
use crate::problem::{Cause, Problem, Result};

/// Bytes of a file that is read.
const BYTES_MAX: u64 = 16 << 20;

fn trouble(path: &Path, why: impl std::fmt::Display) -> Problem {
    Problem::new(Cause::Settings, format!("cannot read {}: {why}", path.display()), "")
}

fn bytes(from: impl Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= BYTES_MAX) {
        Ok(bytes)
    } else {
        Err(std::io::Error::other("it is larger than 16 MiB"))
    }
}

fn utf8(path: &Path, bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|e| {
        let valid = e.as_bytes().get(..e.utf8_error().valid_up_to()).unwrap_or_default();
        let line = valid.iter().filter(|b| **b == b'\n').count() + 1;
        let advice = format!("Convert it, for example: iconv -f ISO-8859-1 -t UTF-8 {}", path.display());
        Problem::new(Cause::Settings, format!("{} line {line} is not UTF-8 text", path.display()), advice)
    })
}

/// The text of a file.
///
/// # Errors
/// It cannot be read, or is not UTF-8.
pub(super) fn text(path: &Path) -> Result<String> {
    let bytes = File::open(path).and_then(bytes).map_err(|e| trouble(path, e))?;
    utf8(path, bytes)
}

/// The name and text of the file with the accounts. A warning, if others may read it.
///
/// # Errors
/// It cannot be read, or is a database.
pub(super) fn users(path: &Path) -> Result<(String, String)> {
    let (name, bytes) = if path == Path::new("-") {
        ("standard input".to_owned(), bytes(std::io::stdin()))
    } else {
        let file = File::open(path).map_err(|e| trouble(path, e))?;
        let found = file.metadata().map_err(|e| trouble(path, e))?;
        let name = path.display().to_string();
        if found.is_file() && found.mode() & READ_BY_OTHERS != 0 {
            let warning = format!(
                "warning: users other than its owner may read {name}, which contains hashes that are as good as passwords: chmod 600 {name}\n"
            );
            log::say(std::io::stderr(), &warning);
        }
        (name, bytes(file))
    };
    let bytes = bytes.map_err(|e| trouble(path, e))?;
    if accounts::is_database(&bytes) {
        let advice =
            "Have Samba print its accounts: (umask 077; pdbedit -L -w > accounts), and give --users accounts";
        return Err(Problem::new(Cause::Settings, format!("{name} is a database of Samba"), advice));
    }
    Ok((name, utf8(path, bytes)?))
}

/// The names and texts of files of exports. Of a directory, "only a file which name is ended with .exports and not started with ."
///
/// # Errors
/// One cannot be read.
pub(super) fn exports(paths: &[PathBuf]) -> Result<Vec<(String, String)>> {
    let mut texts = Vec::new();
    for path in paths {
        for file in files(path)? {
            texts.push((file.display().to_string(), text(&file)?));
        }
    }
    Ok(texts)
}

fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let is_table = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.ends_with(".exports") && !name.starts_with('.')
    };
    let entries = fs::read_dir(path).map_err(|e| trouble(path, e))?;
    let mut files = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .filter(|path| path.as_ref().map_or(true, is_table))
        .collect::<std::io::Result<Vec<_>>>()
        .map_err(|e| trouble(path, e))?;
    files.sort();
    Ok(files)
}

/// Files that smb.conf includes.
pub(super) struct Files;

impl Reader for Files {
    fn read(&self, path: &str) -> std::result::Result<Option<String>, String> {
        let path = Path::new(path);
        match File::open(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e.to_string()),
            Ok(file) => {
                let bytes = bytes(file).map_err(|e| e.to_string())?;
                utf8(path, bytes).map(Some).map_err(|problem| problem.what)
            }
        }
    }
}

/// The machine on which the program runs.
pub(super) struct ThisMachine {
    passwd: String,
}

impl ThisMachine {
    pub(super) fn look() -> Self {
        Self { passwd: fs::read_to_string("/etc/passwd").unwrap_or_default() }
    }
}

impl Machine for ThisMachine {
    fn user(&self, name: &str) -> Option<(u32, String)> {
        self.passwd.lines().find_map(|line| {
            let mut fields = line.split(':');
            (fields.next()? == name).then_some(())?;
            let uid = fields.nth(1)?.parse().ok()?;
            Some((uid, fields.nth(2)?.to_owned()))
        })
    }

    fn host_name(&self) -> Option<String> {
        rustix::system::uname().nodename().to_str().ok().map(str::to_owned)
    }

    fn variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}
