//! Random lists, and what they mean: [MS-DTYP] 2.5.3.2, written down a second time, for SIDs only.

use std::collections::HashSet;

use acl::{AccessMask, Ace, AceFlags, AceType, Acl, Control, SecurityDescriptor, Sid};

/// Numbers that follow from a seed (SplitMix64).
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number of a range.
    pub(crate) fn within(&mut self, range: std::ops::Range<u32>) -> u32 {
        range.start + u32::try_from(self.number() % u64::from(range.end - range.start)).unwrap()
    }

    /// One of these.
    pub(crate) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.number() % of.len() as u64).unwrap()]
    }
}

/// What of a file both protocols decide about in the same words: to read its data, to write it, to execute it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rights(AccessMask);

impl Rights {
    pub(crate) const NONE: Self = Self(AccessMask::empty());
    const EACH: [AccessMask; 3] = [AccessMask::READ_DATA, AccessMask::WRITE_DATA, AccessMask::EXECUTE];

    /// Those of a mask that are compared.
    pub(crate) fn among(mask: AccessMask) -> Self {
        Self(mask & (AccessMask::READ_DATA | AccessMask::WRITE_DATA | AccessMask::EXECUTE))
    }
}

/// A user, and everything that a list may call the user.
#[derive(Debug)]
pub(crate) struct Person {
    pub(crate) name: &'static str,
    pub(crate) sids: Vec<Sid>,
}

/// A list on a file.
#[derive(Debug)]
pub(crate) struct Drawn {
    pub(crate) owner: Sid,
    aces: Vec<Ace>,
}

impl Drawn {
    /// A list that speaks of these people, of others, and of everybody.
    pub(crate) fn by(dice: &mut Dice, people: &[Person], strangers: &[Sid]) -> Self {
        let all: Vec<Sid> = people.iter().flat_map(|person| &person.sids).chain(strangers).copied().collect();
        let general = [Sid::EVERYONE, Sid::AUTHENTICATED_USERS, Sid::OWNER_RIGHTS];
        let users: Vec<Sid> = all.iter().copied().filter(|sid| sid.gid().is_none()).collect();
        let owner = dice.pick(&users);
        let count = dice.within(1..7);
        let aces = (0..count).map(|_| {
            let sid = if dice.within(0..8) == 0 { dice.pick(&general) } else { dice.pick(&all) };
            let mut mask = AccessMask::empty();
            for right in Rights::EACH {
                mask.set(right, dice.within(0..2) == 0);
            }
            mask.set(AccessMask::APPEND_DATA | AccessMask::READ_CONTROL, dice.within(0..2) == 0);
            let flags = if dice.within(0..10) == 0 { AceFlags::INHERIT_ONLY } else { AceFlags::empty() };
            if dice.within(0..3) == 0 { Ace::deny(sid, mask, flags) } else { Ace::allow(sid, mask, flags) }
        });
        Self { owner, aces: aces.collect() }
    }

    /// As it is sent.
    pub(crate) fn descriptor(&self) -> SecurityDescriptor {
        SecurityDescriptor {
            control: Control::DACL_PRESENT,
            owner: Some(self.owner),
            dacl: Some(Acl { revision: 2, aces: self.aces.clone() }),
            ..SecurityDescriptor::default()
        }
    }

    /// What a person may do: of each right, the first entry that speaks of the person and the right decides.
    pub(crate) fn decision(&self, person: &Person) -> Rights {
        let mut names: HashSet<Sid> = person.sids.iter().copied().collect();
        if names.contains(&self.owner) {
            names.insert(Sid::OWNER_RIGHTS);
        }
        names.extend([Sid::EVERYONE, Sid::AUTHENTICATED_USERS]);
        let speaking = |right: &AccessMask| {
            let of_file = self.aces.iter().filter(|ace| !ace.flags.contains(AceFlags::INHERIT_ONLY));
            let mut statements = of_file.filter_map(|ace| ace.statement());
            let first = statements.find(|(_, mask, sid)| mask.contains(*right) && names.contains(sid));
            matches!(first, Some((AceType::AccessAllowed, ..)))
        };
        Rights(Rights::EACH.into_iter().filter(speaking).fold(AccessMask::empty(), AccessMask::union))
    }
}
