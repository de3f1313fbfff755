//! The data of files, without a share.

use acl::SecurityDescriptor;
use storage::conformance::MAY;
use storage::memory::MemoryStore;
use storage::{Name, NewKind, NewNode, Storage};

use super::*;

const OWNER: u32 = 1000;

fn user(uid: u32) -> Arc<Identity> {
    Arc::new(Identity::unix(uid, uid, Vec::new()))
}

/// An object of [`OWNER`] with this mode.
fn object(kind: NewKind<'_>, mode: u32) -> NodeRef {
    let new = NewNode { kind, mode, uid: OWNER, gid: OWNER };
    MemoryStore::new().root().create(Name::new(b"object").unwrap(), &new, MAY).unwrap()
}

fn mode_of(node: &NodeRef) -> u32 {
    node.attributes(Want::empty(), Wait::May(MAY)).unwrap().mode & 0o7777
}

#[test]
fn only_files_have_data() {
    let check = |kind| Data::check(&user(OWNER), &object(kind, 0o700), MAY_READ, MAY).map(drop);
    assert_eq!(check(NewKind::Regular), Ok(()));
    assert_eq!(check(NewKind::Directory), Err(storage::Error::IsDirectory.into()));
    assert_eq!(check(NewKind::Fifo), Err(storage::Error::WrongKind.into()));
}

#[test]
fn the_owner_reads_whatever_the_mode_says_and_others_by_the_mode() {
    let check =
        |uid, mode, rights| Data::check(&user(uid), &object(NewKind::Regular, mode), rights, MAY).map(drop);
    assert_eq!(check(OWNER, 0o000, Access::WRITE_DATA), Ok(()));
    assert_eq!(check(1001, 0o004, MAY_READ), Ok(()));
    assert_eq!(check(1001, 0o001, MAY_READ), Ok(()), "who may execute a program may read it");
    assert_eq!(check(1001, 0o770, MAY_READ), Err(Error::AccessDenied));
    assert_eq!(check(1001, 0o004, Access::WRITE_DATA), Err(Error::AccessDenied));
}

#[test]
fn a_list_that_allows_to_execute_does_not_allow_to_read() {
    let node = object(NewKind::Regular, 0o701);
    node.set_security(Some(SecurityDescriptor::of_mode(0o701, false, OWNER, OWNER)), MAY).unwrap();
    let check = |rights| Data::check(&user(1001), &node, rights, MAY).map(drop);
    assert_eq!(check(MAY_READ), Err(Error::AccessDenied));
}

#[test]
fn a_permission_to_read_is_remembered_for_the_user_who_has_it() {
    let (data, root) = (Data::default(), MemoryStore::new().root());
    let make = |name: &[u8], mode| {
        let new = NewNode { kind: NewKind::Regular, mode, uid: OWNER, gid: OWNER };
        root.create(Name::new(name).unwrap(), &new, MAY).unwrap()
    };
    let (public, secret) = (make(b"public", 0o644), make(b"secret", 0o600));
    // The clock of this store stands at a time long ago, so that its change times are old enough to rely on.
    let ctime = public.attributes(Want::empty(), Wait::May(MAY)).unwrap().ctime;
    let remembered = |node: &NodeRef, uid| data.permitted_at(node.id(), &user(uid));
    assert_eq!(remembered(&public, 1001), None);
    data.permit_read(&user(1001), &public, MAY).unwrap();
    assert_eq!((remembered(&public, 1001), remembered(&public, 1002)), (Some(ctime), None));
    assert_eq!(data.permit_read(&user(1001), &secret, MAY).unwrap_err(), Error::AccessDenied);
    assert_eq!(remembered(&secret, 1001), None);
}

#[test]
fn a_program_that_is_written_loses_its_privilege() {
    let node = object(NewKind::Regular, 0o6755);
    take_privilege_bits(&node, mode_of(&node), MAY).unwrap();
    assert_eq!(mode_of(&node), 0o755);
}
