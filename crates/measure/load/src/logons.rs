//! What it costs a server to let somebody in.

use std::time::Instant;

use client::{nfs, smb};

use crate::fault::{Fault, Result};
use crate::link::Network;
use crate::result::ProblemKind;
use crate::site::Access;
use crate::target::Target;

/// What logons have cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// How long all of them took, in seconds.
    pub seconds: f64,
    /// The CPU time of the server meanwhile, in seconds. `None` where nobody can tell.
    pub server_cpu_seconds: Option<f64>,
}

/// Logs on to the target so many times, one after the other: each over a connection of its own, which is closed once it is
/// connected to the share.
///
/// # Errors
/// What the server refused, or what is wrong with a connection; a directory knows no logon.
pub fn log_on(target: &Target, access: &Access, times: u32) -> Result<Cost> {
    let cpu = || access.server.process.as_ref().and_then(|process| process.cpu_seconds());
    let (began, before) = (Instant::now(), cpu());
    for _ in 0..times {
        log_on_once(target, access)?;
    }
    let server_cpu_seconds = before.zip(cpu()).map(|(before, after)| after - before);
    Ok(Cost { seconds: began.elapsed().as_secs_f64(), server_cpu_seconds })
}

fn log_on_once(target: &Target, access: &Access) -> Result<()> {
    let Access { security, addresses, timeout, .. } = access;
    let world = Network { timeout: *timeout };
    match target {
        Target::Smb(target) => drop(smb::Session::open(&world, target, security, 1, addresses, 1)?),
        Target::Nfs(target) => drop(nfs::Session::open(&world, target, 1, addresses, 1)?),
        Target::Directory(_) => {
            return Err(Fault::new(ProblemKind::ThisMachine, "a directory has no logon"));
        }
    }
    Ok(())
}
