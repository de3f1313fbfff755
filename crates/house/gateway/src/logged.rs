//! The access log of a gateway: what the settings say of it, and what a signal has done.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use access_log::{AccessLog, Actor, Event, Kind, Outcome};

use crate::declared::Declared;
use crate::problem::{Cause, Problem, Result};
use crate::settings::Settings;

/// Uses what the settings say of the access log.
///
/// # Errors
/// The file or a socket cannot be used, or the file lies in a directory that is served; then nothing changes.
pub(crate) fn use_settings(log: &AccessLog, settings: &Settings, declared: &Declared) -> Result<()> {
    if let Some(file) = &settings.access_log.file {
        check_place(&file.path, declared)?;
    }
    log.use_settings(&settings.access_log).map_err(|error| {
        let advice = "Its directory must exist, and this user must be allowed to write there; a socket needs a daemon that has made it.";
        Problem::new(Cause::Settings, error.to_string(), advice)
    })
}

/// # Errors
/// Clients of a share could read or change the file.
fn check_place(file: &Path, declared: &Declared) -> Result<()> {
    let directory =
        file.parent().and_then(|parent| parent.canonicalize().ok()).unwrap_or_else(|| PathBuf::from(file));
    let lies_in = |share: &&crate::declared::DeclaredShare| directory.starts_with(&share.directory);
    let Some(share) = declared.shares.iter().find(lies_in) else { return Ok(()) };
    let what = format!(
        "the access log {} lies in {}, which the share {} serves",
        file.display(),
        share.directory.display(),
        share.given.name
    );
    Err(Problem::new(
        Cause::Settings,
        what,
        "Clients could change it. Give a file in another directory, such as /var/log/anabranch.",
    ))
}

/// Something that a signal has had done, or that was refused.
pub(crate) fn signal(log: &AccessLog, operation: &str, is_done: bool) {
    let (outcome, status) = if is_done { (Outcome::Done, "Success") } else { (Outcome::Refused, "Invalid") };
    log.write(&Event {
        kind: Kind::Administration,
        operation,
        protocol: "signal",
        share: None,
        path: None,
        new_path: None,
        who: Actor::default(),
        from: None,
        outcome,
        status,
        begun: SystemTime::now(),
        took: Duration::ZERO,
    });
}
