//! `anabranch share create --for-group`: the directory of a share that the members of a group use together.

use std::io::ErrorKind;
use std::path::PathBuf;

use control::shares::NewShare;
use nix::unistd::Group;

use crate::problem::{Cause, Problem, Result};

/// The directory that was made. It is removed again unless it is kept, so that a share that is refused leaves nothing behind.
#[derive(Debug)]
pub(super) struct Made(Option<PathBuf>);

impl Made {
    /// The share exists: the directory stays.
    pub(super) fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            // It is empty. If it cannot be removed, an empty directory stays.
            let _ = std::fs::remove_dir(path);
        }
    }
}

/// Makes the directory of a new share for the members of a group of this system, and the share one that admits only them.
///
/// # Errors
/// There is no such group, or the directory cannot be made.
pub(super) fn make(group: &str, new: &mut NewShare) -> Result<Made> {
    let group = group.trim_start_matches('@');
    let gid = gid_of(group)?;
    let path = PathBuf::from(&new.directory);
    if gateway::path_in_cephfs(&path).is_some() {
        let what = format!(
            "the directory {} cannot be created for the group {group}: it lies in CephFS",
            new.directory
        );
        return Err(Problem::new(
            Cause::Directory,
            what,
            "Create the directory there, and the share without --group.",
        ));
    }
    storage_local::create_for_group(&path, gid).map_err(|error| {
        let what =
            format!("the directory {} cannot be created for the group {group}: {error}", new.directory);
        Problem::new(Cause::Directory, what, advice(error.kind(), group))
    })?;
    new.rules.write = Some(vec![format!("@{group}")]);
    Ok(Made(Some(path)))
}

fn gid_of(group: &str) -> Result<u32> {
    match Group::from_name(group) {
        Ok(Some(found)) => Ok(found.gid.as_raw()),
        Ok(None) => Err(Problem::new(
            Cause::Refused,
            format!("this system has no group {group}"),
            format!(
                "Create it: groupadd {group}; and add its members: usermod --append --groups {group} USER"
            ),
        )),
        Err(error) => Err(Problem::new(
            Cause::Refused,
            format!("the name service of this system does not say what the group {group} is: {error}"),
            "Try again when it answers (getent group), or use a group of /etc/group",
        )),
    }
}

fn advice(kind: ErrorKind, group: &str) -> String {
    match kind {
        ErrorKind::AlreadyExists => format!(
            "To serve it with its present permissions, pass --write @{group} instead; or name a directory that does not exist"
        ),
        ErrorKind::NotFound => "Create the directory above it first".to_owned(),
        ErrorKind::PermissionDenied => "Run the command as root".to_owned(),
        ErrorKind::Unsupported => {
            "Its file system has no extended attributes, which hold the access control list: choose another one"
                .to_owned()
        }
        _ => String::new(),
    }
}
