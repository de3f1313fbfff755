//! A new directory for the members of a group.

use std::io;
use std::path::Path;
use std::sync::Arc;

use acl::{AccessMask, Ace, AceFlags, Acl, Control, SecurityDescriptor, Sid};
use rustix::fs::{Gid, Mode, OFlags, XattrFlags, fchmod, fchown, fsetxattr, mkdir, open};
use rustix::process::geteuid;
use storage::StoredDescriptor;

use crate::probe;

/// The permission bits of the directory. With the set-group-ID bit, new objects belong to the group.
const MODE: u32 = 0o2770;
/// What members may do: everything but change permissions and owners.
const MEMBERS: AccessMask =
    AccessMask::FILE_ALL.difference(AccessMask::WRITE_DAC.union(AccessMask::WRITE_OWNER));

/// [MS-DTYP] 2.4.5: the revision of an ACL without object entries.
const ACL_REVISION: u8 = 2;

/// Creates the directory `path` for the members of the group `gid`: they may create, change and remove everything in it,
/// whoever of them has created it, and nobody else may enter it. The directory belongs to the user of this process. New
/// objects inherit an access control list that says so.
///
/// # Errors
/// Those of mkdir(2), chown(2) and setxattr(2): the directory exists already, its parent does not exist, this user may
/// not give it to the group, or its file system has no extended attributes. Then there is no new directory.
pub fn create_for_group(path: &Path, gid: u32) -> io::Result<()> {
    mkdir(path, Mode::RWXU)?;
    give(path, gid).inspect_err(|_| {
        // It is empty, and what failed is reported.
        let _ = std::fs::remove_dir(path);
    })
}

fn give(path: &Path, gid: u32) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = open(path, flags, Mode::empty())?;
    fchown(&directory, None, Some(Gid::from_raw(gid)))?;
    fchmod(&directory, Mode::from_raw_mode(MODE))?;
    let uid = geteuid().as_raw();
    let stored = StoredDescriptor::of_bits_and_owners(MODE, uid, gid, Arc::new(descriptor(uid, gid)));
    let value = stored.encode().map_err(|_| io::ErrorKind::InvalidInput)?;
    fsetxattr(&directory, probe::descriptor_xattr(&directory), &value, XattrFlags::CREATE)?;
    Ok(())
}

fn descriptor(uid: u32, gid: u32) -> SecurityDescriptor {
    let to_all_below = AceFlags::OBJECT_INHERIT | AceFlags::CONTAINER_INHERIT;
    let aces = vec![
        Ace::allow(Sid::of_user(uid), AccessMask::FILE_ALL, AceFlags::empty()),
        Ace::allow(Sid::CREATOR_OWNER, AccessMask::FILE_ALL, to_all_below | AceFlags::INHERIT_ONLY),
        Ace::allow(Sid::of_group(gid), MEMBERS, to_all_below),
    ];
    SecurityDescriptor {
        control: Control::DACL_PRESENT,
        owner: Some(Sid::of_user(uid)),
        group: Some(Sid::of_group(gid)),
        sacl: None,
        dacl: Some(Acl { revision: ACL_REVISION, aces }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use rustix::fs::getxattr;
    use rustix::process::getegid;
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn members_and_nobody_else() {
        let directory = TempDir::new().unwrap();
        let (path, gid) = (directory.path().join("projects"), getegid().as_raw());
        create_for_group(&path, gid).unwrap();
        let made = std::fs::metadata(&path).unwrap();
        assert_eq!((made.mode() & 0o7777, made.gid()), (MODE, gid));
        let mut value = [0; 1024];
        let opened = std::fs::File::open(&path).unwrap().into();
        let length = getxattr(&path, probe::descriptor_xattr(&opened), &mut value).unwrap();
        let stored = StoredDescriptor::decode(&value[..length]).unwrap();
        let expected = descriptor(geteuid().as_raw(), gid);
        assert_eq!(
            Some(stored),
            Some(StoredDescriptor::of_bits_and_owners(MODE, geteuid().as_raw(), gid, Arc::new(expected)))
        );
    }

    #[test]
    fn a_directory_that_exists_stays_as_it_is() {
        let directory = TempDir::new().unwrap();
        let before = std::fs::metadata(directory.path()).unwrap().mode();
        let refused = create_for_group(directory.path(), getegid().as_raw()).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::metadata(directory.path()).unwrap().mode(), before);
    }
}
