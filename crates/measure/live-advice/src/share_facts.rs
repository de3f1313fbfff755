//! The activity of a share on a running server, next to the measurements of its client.

use advise::{Facts, Limits as Rates, Reached};
use control::activity::ShareActivity;
use control::shares::Share;
use control_client::path_part;
use gateway::control_access::Access;
use load::result::ResultFile;
use load::target::Target;

use crate::error::{Error, Result};

/// The share that a target names.
///
/// # Errors
/// The target names no share.
pub fn share_of(target: &Target) -> Result<String> {
    let no_share = || Error::NoShare { target: target.to_string() };
    target.share().filter(|name| !name.is_empty()).map(str::to_owned).ok_or_else(no_share)
}

/// The share, if commands may change it.
///
/// # Errors
/// The configuration declares it, or the server cannot be asked.
pub fn changeable(access: &Access, name: &str) -> Result<Share> {
    let share: Share = control_client::get(access, &format!("/v1/shares/{}", path_part(name)))?;
    match &share.declared_in {
        None => Ok(share),
        Some(place) => Err(Error::Declared { share: name.to_owned(), place: place.clone() }),
    }
}

/// The activity of a share.
///
/// # Errors
/// There is no such share, or the server cannot be asked.
pub fn activity(access: &Access, name: &str) -> Result<ShareActivity> {
    Ok(control_client::get(access, &format!("/v1/shares/{}/activity", path_part(name)))?)
}

fn calls(activity: &ShareActivity) -> u64 {
    activity.apis.iter().map(|api| api.calls).sum()
}

/// Checks that a target is a share of this server: the server must have counted the operations that were measured there.
/// Another server may have a share of the same name.
///
/// # Errors
/// The target is a share of another server.
pub fn check_that_it_is_ours(
    measured: &ResultFile,
    before: &ShareActivity,
    after: &ShareActivity,
    target: &Target,
) -> Result<()> {
    let repetitions = measured.rows.iter().flat_map(|row| &row.repetitions);
    let done: u64 =
        repetitions.flat_map(|repetition| repetition.operations.values()).map(|tally| tally.count).sum();
    if done > 0 && calls(after).saturating_sub(calls(before)) >= done {
        return Ok(());
    }
    Err(Error::OtherServer { target: target.to_string(), share: after.name.clone() })
}

/// Adds what the server knows about a measurement to the facts that the client found.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counters, for a ratio")]
pub fn with_account(facts: Facts, before: &ShareActivity, after: &ShareActivity) -> Facts {
    let throttled = |activity: &ShareActivity| activity.apis.iter().map(|api| api.throttled).sum::<u64>();
    let waited = throttled(after).saturating_sub(throttled(before)) as f64;
    let all = calls(after).saturating_sub(calls(before)).max(1) as f64;
    let limit = |name: &str| after.limits.get(name).map(|rate| *rate as f64);
    Facts {
        reached: Reached { throttled_share: Some(waited / all), ..facts.reached },
        limits: Rates { file_iops: limit("file-iops"), file_bytes: limit("file-throughput"), ..facts.limits },
        ..facts
    }
}
