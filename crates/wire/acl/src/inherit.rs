//! What a new object inherits. [MS-DTYP] 2.5.3.4.

use crate::{Ace, AceBody, AceFlags, Acl, Control, SecurityDescriptor, Sid};

/// The flags that tell which objects inherit an entry.
const INHERITABLE: AceFlags = AceFlags::OBJECT_INHERIT.union(AceFlags::CONTAINER_INHERIT);

/// A new object in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Newborn {
    /// The owner, which replaces CREATOR OWNER.
    pub owner: Sid,
    /// The group, which replaces CREATOR GROUP.
    pub group: Sid,
    /// Whether the object is a directory.
    pub is_dir: bool,
}

impl SecurityDescriptor {
    /// The descriptor that a new object inherits from a directory with this descriptor; None when no entry is inherited
    /// by objects of its kind, so that the default applies.
    #[must_use]
    pub fn inherited_by(&self, newborn: &Newborn) -> Option<Self> {
        let dacl = self.dacl.as_ref()?;
        // 2.5.3.5: what is inherited from a directory without automatic inheritance is not marked as inherited.
        let automatic = self.control.contains(Control::DACL_AUTO_INHERITED);
        let mark = if automatic { AceFlags::INHERITED } else { AceFlags::empty() };
        let mut aces = Vec::new();
        for ace in &dacl.aces {
            inherit(ace, newborn, mark, &mut aces);
        }
        if aces.is_empty() {
            return None;
        }
        let mut control = Control::DACL_PRESENT;
        control.set(Control::DACL_AUTO_INHERITED, automatic);
        Some(Self {
            control,
            owner: Some(newborn.owner),
            group: Some(newborn.group),
            sacl: None,
            dacl: Some(Acl { revision: dacl.revision, aces }),
        })
    }

    /// This descriptor for an object with this owner and group.
    #[must_use]
    pub fn owned_by(&self, newborn: &Newborn) -> Self {
        Self { owner: Some(newborn.owner), group: Some(newborn.group), ..self.clone() }
    }

    /// The descriptor of a new object whose creator supplied this one: with the object's owner and group, and with
    /// generic rights mapped.
    #[must_use]
    pub fn given_to(&self, newborn: &Newborn) -> Self {
        let mut given = self.owned_by(newborn);
        given.sacl = None;
        given.control = settled(given.control);
        if let Some(dacl) = &mut given.dacl {
            dacl.map_generic();
        }
        given
    }
}

/// The control flags that are kept of those that a client sets. Automatic inheritance has taken place when the client
/// both requests it and states it; the request itself is not kept.
#[must_use]
pub fn settled(control: Control) -> Control {
    let automatic = Control::DACL_AUTO_INHERITED | Control::DACL_AUTO_INHERIT_REQ;
    let mut kept = control & (Control::DACL_PRESENT | Control::DACL_PROTECTED);
    kept.set(Control::DACL_AUTO_INHERITED, control.contains(automatic));
    kept
}

impl Acl {
    /// Maps generic rights, except in entries that are only inherited.
    pub fn map_generic(&mut self) {
        for ace in self.aces.iter_mut().filter(|ace| ace.is_effective()) {
            if let AceBody::Basic { mask, .. } = &mut ace.body {
                *mask = mask.mapped();
            }
        }
    }
}

/// Appends what a new object inherits from an entry of the directory: the table of [MS-DTYP] 2.5.3.4.4. When an entry
/// applies both to a new directory and to objects in it, it becomes two entries if the one for the directory itself
/// differs.
fn inherit(ace: &Ace, newborn: &Newborn, mark: AceFlags, into: &mut Vec<Ace>) {
    let kind = if newborn.is_dir { AceFlags::CONTAINER_INHERIT } else { AceFlags::OBJECT_INHERIT };
    let is_for_itself = ace.flags.contains(kind);
    let goes_on = newborn.is_dir
        && ace.flags.intersects(INHERITABLE)
        && !ace.flags.contains(AceFlags::NO_PROPAGATE_INHERIT);
    let passed_on = (ace.flags & INHERITABLE) | mark;
    let concrete = concrete(&ace.body, newborn);
    if is_for_itself && goes_on && concrete == ace.body {
        into.push(Ace { flags: passed_on, body: concrete });
        return;
    }
    if is_for_itself {
        into.push(Ace { flags: mark, body: concrete });
    }
    if goes_on {
        into.push(Ace { flags: passed_on | AceFlags::INHERIT_ONLY, body: ace.body.clone() });
    }
}

/// 2.5.3.4.7 PostProcessACL
fn concrete(body: &AceBody, newborn: &Newborn) -> AceBody {
    match body {
        AceBody::Basic { ace_type, mask, sid } => {
            let sid = match *sid {
                Sid::CREATOR_OWNER => newborn.owner,
                Sid::CREATOR_GROUP => newborn.group,
                sid => sid,
            };
            AceBody::Basic { ace_type: *ace_type, mask: mask.mapped(), sid }
        }
        other @ AceBody::Other { .. } => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AccessMask;

    const OI: AceFlags = AceFlags::OBJECT_INHERIT;
    const CI: AceFlags = AceFlags::CONTAINER_INHERIT;
    const NP: AceFlags = AceFlags::NO_PROPAGATE_INHERIT;
    const IO: AceFlags = AceFlags::INHERIT_ONLY;
    const ID: AceFlags = AceFlags::INHERITED;
    const NO: AceFlags = AceFlags::empty();
    const OWNER: Sid = Sid::of_user(10);
    const READ: AccessMask = AccessMask::READ_DATA;

    fn child(is_dir: bool) -> Newborn {
        Newborn { owner: OWNER, group: Sid::of_group(20), is_dir }
    }

    fn parent(aces: Vec<Ace>, control: Control) -> SecurityDescriptor {
        let dacl = Some(Acl { revision: 2, aces });
        SecurityDescriptor { control: control | Control::DACL_PRESENT, dacl, ..SecurityDescriptor::default() }
    }

    fn inherited(ace: Ace, is_dir: bool) -> Vec<Ace> {
        let child = parent(vec![ace], NO_CONTROL).inherited_by(&child(is_dir));
        child.map(|child| child.dacl.unwrap().aces).unwrap_or_default()
    }

    const NO_CONTROL: Control = Control::empty();

    /// [MS-DTYP] 2.5.3.4.4, the table; "IO and ID do not play a part". Where the table says "IO,CI,OI" for a container
    /// that inherits CI,OI, Windows and Samba have CI,OI: the entry also applies to that container.
    #[test]
    fn the_table_of_flags() {
        let table = [
            (NO, None, None),
            (OI, Some(IO | OI), Some(NO)),
            (OI | NP, None, Some(NO)),
            (CI, Some(CI), None),
            (CI | NP, Some(NO), None),
            (CI | OI, Some(CI | OI), Some(NO)),
            (CI | OI | NP, Some(NO), Some(NO)),
        ];
        for (flags, of_dir, of_file) in table {
            for also in [NO, IO, ID, IO | ID] {
                let ace = Ace::allow(Sid::EVERYONE, READ, flags | also);
                let as_one = |flags: Option<AceFlags>| {
                    flags.map(|flags| Ace::allow(Sid::EVERYONE, READ, flags)).into_iter().collect::<Vec<_>>()
                };
                assert_eq!(inherited(ace.clone(), true), as_one(of_dir), "{flags:?} {also:?} directory");
                assert_eq!(inherited(ace, false), as_one(of_file), "{flags:?} {also:?} file");
            }
        }
    }

    #[test]
    fn creators_and_generic_rights_are_resolved_for_the_object_and_kept_for_what_follows() {
        let ace = Ace::allow(Sid::CREATOR_OWNER, AccessMask::GENERIC_READ, CI | OI | IO);
        let own = |flags| Ace::allow(OWNER, AccessMask::FILE_READ, flags);
        assert_eq!(inherited(ace.clone(), false), [own(NO)]);
        assert_eq!(inherited(ace.clone(), true), [own(NO), ace]);
        let once = Ace::deny(Sid::CREATOR_GROUP, READ, CI | NP);
        assert_eq!(inherited(once, true), [Ace::deny(Sid::of_group(20), READ, NO)]);
    }

    #[test]
    fn automatic_inheritance_marks_what_it_hands_down() {
        let ace = Ace::allow(Sid::EVERYONE, READ, OI);
        let automatic = parent(vec![ace.clone()], Control::DACL_AUTO_INHERITED | Control::DACL_PROTECTED);
        let child = automatic.inherited_by(&child(false)).unwrap();
        assert_eq!(child.control, Control::DACL_PRESENT | Control::DACL_AUTO_INHERITED);
        assert_eq!(child.dacl.unwrap().aces, [Ace::allow(Sid::EVERYONE, READ, ID)]);
        assert_eq!(child.owner, Some(OWNER));
    }

    #[test]
    fn nothing_for_its_kind_is_no_descriptor() {
        let ace = Ace::allow(Sid::EVERYONE, READ, CI);
        assert_eq!(parent(vec![ace], NO_CONTROL).inherited_by(&child(false)), None);
        assert_eq!(SecurityDescriptor::default().inherited_by(&child(false)), None);
    }

    #[test]
    fn what_a_client_sets_is_settled() {
        let (done, asked) = (Control::DACL_AUTO_INHERITED, Control::DACL_AUTO_INHERIT_REQ);
        let present = Control::DACL_PRESENT;
        assert_eq!(settled(present | done), present);
        assert_eq!(settled(present | asked), present);
        assert_eq!(settled(present | asked | done), present | done);
        assert_eq!(
            settled(present | Control::DACL_PROTECTED | Control::SACL_PRESENT),
            present | Control::DACL_PROTECTED
        );
        let aces = vec![
            Ace::allow(Sid::EVERYONE, AccessMask::GENERIC_ALL, NO),
            Ace::allow(Sid::EVERYONE, AccessMask::GENERIC_ALL, OI | IO),
        ];
        let given = parent(aces, NO_CONTROL).given_to(&child(true)).dacl.unwrap().aces;
        assert_eq!(given[0], Ace::allow(Sid::EVERYONE, AccessMask::FILE_ALL, NO));
        assert_eq!(given[1], Ace::allow(Sid::EVERYONE, AccessMask::GENERIC_ALL, OI | IO));
    }
}
