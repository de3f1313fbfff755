//! Checks of security descriptors.

use crate::conformance::MAY;
use std::sync::Arc;

use acl::{AccessMask, Ace, AceFlags, Acl, Control, SecurityDescriptor, Sid};

use super::{Subject, attributes_of, directory, file, find, has};
use crate::{Capabilities, Error, NewKind, Node, SetAttributes, Wait, XattrMode};

fn descriptor(aces: usize) -> SecurityDescriptor {
    let ace = Ace::deny(Sid::of_user(7), AccessMask::WRITE_DATA, AceFlags::empty());
    SecurityDescriptor {
        control: Control::DACL_PRESENT,
        owner: Some(Sid::of_user(super::OWNER.0)),
        group: Some(Sid::of_group(super::OWNER.1)),
        sacl: None,
        dacl: Some(Acl { revision: 2, aces: vec![ace; aces] }),
    }
}

fn security(node: &dyn Node) -> Option<Arc<SecurityDescriptor>> {
    node.security(&attributes_of(node), Wait::May(MAY)).unwrap()
}

/// A stored descriptor is returned, also after a restart, until it is removed. Clients do not see where it is stored.
pub fn stored_and_taken_away(subject: &mut dyn Subject) {
    let root = subject.store().root();
    if !has(subject, Capabilities::XATTRS) {
        assert_eq!(root.set_security(Some(descriptor(1)), MAY), Err(Error::NotSupported));
        return;
    }
    for (node, aces) in [(file(&root, "f"), 1), (file(&root, "long"), 60), (directory(&root, "d"), 2)] {
        assert_eq!(security(&*node), None);
        let after = node.set_security(Some(descriptor(aces)), MAY).unwrap();
        assert_eq!(after.id, node.id());
        assert_eq!(security(&*node).as_deref(), Some(&descriptor(aces)));
        assert_eq!(node.xattrs(MAY), Ok(vec![]));
    }
    drop(root);
    subject.restart();
    let node = find(&subject.store().root(), "long").unwrap();
    assert_eq!(security(&*node).as_deref(), Some(&descriptor(60)));
    assert_eq!(node.set_xattr(b"a", b"1", XattrMode::Set, MAY), Ok(()));
    assert_eq!(security(&*node).as_deref(), Some(&descriptor(60)), "other changes leave it");
    node.set_security(None, MAY).unwrap();
    assert_eq!(security(&*node), None);
    node.set_security(None, MAY).unwrap();
}

/// A change of the permission bits puts the descriptor out of force; a change of the other mode bits does not.
pub fn in_force_for_its_mode(subject: &mut dyn Subject) {
    if !has(subject, Capabilities::XATTRS) {
        return;
    }
    let node = file(&subject.store().root(), "f");
    let chmod =
        |mode| node.set_attributes(&SetAttributes { mode: Some(mode), ..SetAttributes::default() }, MAY);
    node.set_security(Some(descriptor(1)), MAY).unwrap();
    chmod(0o4644).unwrap();
    assert_eq!(security(&*node).as_deref(), Some(&descriptor(1)));
    chmod(0o640).unwrap();
    assert_eq!(security(&*node), None);
    node.set_security(Some(descriptor(2)), MAY).unwrap();
    assert_eq!(security(&*node).as_deref(), Some(&descriptor(2)));
    if has(subject, Capabilities::OWNERS) {
        node.set_attributes(&SetAttributes { uid: Some(9), ..SetAttributes::default() }, MAY).unwrap();
        assert_eq!(security(&*node), None);
    }
}

/// A prepared descriptor comes into force with the mode and the owners that it is for. Until then the one before it stays.
pub fn prepared_for_another_mode(subject: &mut dyn Subject) {
    let root = subject.store().root();
    let owners = super::OWNER;
    if !has(subject, Capabilities::XATTRS) {
        assert_eq!(root.prepare_security(descriptor(1), (0o640, owners), MAY), Err(Error::NotSupported));
        return;
    }
    let set = |node: &dyn Node, set: SetAttributes| node.set_attributes(&set, MAY).unwrap();
    let chmod =
        |node: &dyn Node, mode| set(node, SetAttributes { mode: Some(mode), ..SetAttributes::default() });
    let file = file(&root, "f");
    chmod(&*file, 0o644);
    let present = attributes_of(&*file);
    let owners = (present.uid, present.gid);
    file.prepare_security(descriptor(1), (0o640, owners), MAY).unwrap();
    assert_eq!(security(&*file), None, "it had none");
    chmod(&*file, 0o640);
    assert_eq!(security(&*file).as_deref(), Some(&descriptor(1)));
    file.prepare_security(descriptor(2), (0o600, owners), MAY).unwrap();
    assert_eq!(security(&*file).as_deref(), Some(&descriptor(1)));
    assert_eq!(file.xattrs(MAY), Ok(vec![]));
    drop((root, file));
    subject.restart();
    let file = find(&subject.store().root(), "f").unwrap();
    assert_eq!(security(&*file).as_deref(), Some(&descriptor(1)), "still, after a restart");
    chmod(&*file, 0o600);
    assert_eq!(security(&*file).as_deref(), Some(&descriptor(2)));
    chmod(&*file, 0o604);
    assert_eq!(security(&*file), None);
    chmod(&*file, 0o600);
    file.set_security(Some(descriptor(3)), MAY).unwrap();
    chmod(&*file, 0o640);
    assert_eq!(security(&*file), None, "the one before is forgotten");
    if has(subject, Capabilities::OWNERS) {
        chmod(&*file, 0o600);
        file.prepare_security(descriptor(4), (0o660, (9, 9)), MAY).unwrap();
        assert_eq!(security(&*file).as_deref(), Some(&descriptor(3)));
        set(&*file, SetAttributes { uid: Some(9), gid: Some(9), ..SetAttributes::default() });
        assert_eq!(security(&*file).as_deref(), Some(&descriptor(4)), "the owners change before the mode");
        chmod(&*file, 0o660);
        assert_eq!(security(&*file).as_deref(), Some(&descriptor(4)));
    }
}

/// Only files and directories have security descriptors.
pub fn not_of_every_kind(subject: &mut dyn Subject) {
    if !has(subject, Capabilities::XATTRS) {
        return;
    }
    let root = subject.store().root();
    let link = root.create(super::name("l"), &super::new(NewKind::Symlink(b"t")), MAY).unwrap();
    assert_eq!(security(&*link), None);
    assert_eq!(link.set_security(Some(descriptor(1)), MAY), Err(Error::WrongKind));
}
