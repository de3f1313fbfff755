//! `anabranch bench model shell`: a shell, or a command, on a client's machine of a model.

use std::process::Command;

use load::result::Protocol;
use load::target::{SmbLogon, Target};
use model::{Built, Which};
use tokio::signal::unix::{SignalKind, signal};

use super::{build, find};
use crate::bench::arguments::ModelShell;
use crate::problem::{Cause, Problem, Result};

/// Carries out the command. Its exit status is that of the program, so that a script learns of it.
///
/// # Errors
/// The model cannot be built, or the command cannot be started, or it fails.
pub(super) fn run(arguments: &ModelShell) -> Result<()> {
    let (model, _) = find(&arguments.model)?;
    let failed = |e: std::io::Error| Problem::new(Cause::Serving, format!("cannot catch signals: {e}"), "");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    // Ctrl-C is for what runs in the model; the model ends after that.
    let _caught = {
        let _inside = runtime.enter();
        [SignalKind::interrupt(), SignalKind::quit()].map(signal)
    };
    let (built, _) = build(&model, Which::Anabranch)?;
    let mut words = built.entering(arguments.client.as_deref())?;
    words.extend(if arguments.command.is_empty() { vec![shell()] } else { arguments.command.clone() });
    let (program, rest) =
        words.split_first().map_or(("nsenter", &[][..]), |(program, rest)| (program.as_str(), rest));
    let status = Command::new(program).args(rest).envs(variables(&built)).status();
    let status =
        status.map_err(|e| Problem::new(Cause::Serving, format!("{program} cannot be started: {e}"), ""))?;
    if status.success() {
        return Ok(());
    }
    Err(Problem::new(
        Cause::Measuring,
        format!("the command on the client's machine ended with {status}"),
        "",
    ))
}

fn shell() -> String {
    std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned())
}

/// What a command on a client's machine needs to reach the server.
fn variables(built: &Built) -> Vec<(&'static str, String)> {
    let smb = built.target(Protocol::Smb);
    let password = match &smb {
        Target::Smb(target) => match &target.logon {
            SmbLogon::Password { password, .. } => password.clone(),
            SmbLogon::Ticket => String::new(),
        },
        Target::Nfs(_) | Target::Directory(_) => String::new(),
    };
    let nfs = built.target(Protocol::Nfs41);
    vec![("SMB", smb.to_string()), ("NFS", nfs.to_string()), ("ANABRANCH_PASSWORD", password)]
}
