use acl::{AceBody, Newborn};
use nfs_wire::v4::acl::{AceFlags as Flags, AceMask as Mask, AclFlags, ace_type};
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const NO: Flags = Flags::empty();
const FD: Flags = Flags::FILE_INHERIT.union(Flags::DIRECTORY_INHERIT);
const FDI: Flags = FD.union(Flags::INHERIT_ONLY);
const DIR: Subject<'static> =
    Subject { owner: Sid::of_user(1000), group: Sid::of_group(100), is_dir: true, names: None };
const FILE: Subject<'static> = Subject { is_dir: false, ..DIR };

fn allow(who: &str, flags: Flags, mask: Mask) -> wire::Ace<'_> {
    wire::Ace { ace_type: ALLOW, flags, mask, who: Text(who.as_bytes()) }
}

fn deny(who: &str, flags: Flags, mask: Mask) -> wire::Ace<'_> {
    wire::Ace { ace_type: DENY, ..allow(who, flags, mask) }
}

fn described(subject: &Subject<'_>, control: Control, acl: Acl) -> SecurityDescriptor {
    let newborn = Newborn { owner: subject.owner, group: subject.group, is_dir: subject.is_dir };
    SecurityDescriptor { control, dacl: Some(acl), ..SecurityDescriptor::default() }.given_to(&newborn)
}

/// The list that a client reads after it has set this one.
fn comes_back(subject: &Subject<'_>, aces: &[wire::Ace<'_>]) -> ReplyAcl {
    let (control, acl) = given_acl(aces, subject).unwrap();
    ReplyAcl::of(&described(subject, control, acl))
}

fn refused(subject: &Subject<'_>, ace: wire::Ace<'_>) -> Status {
    given_acl(&[ace], subject).unwrap_err()
}

#[test]
fn whom_entries_are_about_comes_back() {
    let aces: Vec<_> =
        ["OWNER@", "GROUP@", "EVERYONE@", "AUTHENTICATED@", "NETWORK@", "INTERACTIVE@", "DIALUP@"]
            .into_iter()
            .chain(["BATCH@", "ANONYMOUS@", "SERVICE@", "0", "4294967295", "S-1-5-21-1-2-3-1000"])
            .map(|who| deny(who, NO, Mask::READ_DATA))
            .chain([allow("50", Flags::IDENTIFIER_GROUP, Mask::WRITE_DATA)])
            .collect();
    assert_eq!(comes_back(&FILE, &aces).acl(), aces);
    let (_, acl) = given_acl(&aces, &FILE).unwrap();
    let sids: Vec<_> = acl.aces.iter().map(|ace| ace.statement().unwrap().2).collect();
    assert_eq!(sids[..4], [FILE.owner, FILE.group, Sid::EVERYONE, Sid::AUTHENTICATED_USERS]);
    // [MS-DTYP] 2.4.2.4
    let well_known = ["S-1-5-2", "S-1-5-4", "S-1-5-1", "S-1-5-3", "S-1-5-7", "S-1-5-6"];
    assert_eq!(sids[4..10], well_known.map(|text| text.parse::<Sid>().unwrap()));
    assert_eq!(
        sids[10..],
        [Sid::of_user(0), Sid::of_user(u32::MAX), "S-1-5-21-1-2-3-1000".parse().unwrap(), Sid::of_group(50)]
    );
}

#[test]
fn special_identifiers_ignore_the_group_flag() {
    let aces = [allow("EVERYONE@", Flags::IDENTIFIER_GROUP, Mask::READ_DATA)];
    assert_eq!(comes_back(&FILE, &aces).acl(), [allow("EVERYONE@", NO, Mask::READ_DATA)]);
}

#[test]
fn what_owners_inherit_is_kept_for_the_creator() {
    for who in ["OWNER@", "GROUP@"] {
        for flags in [FD, FDI, FD | Flags::NO_PROPAGATE_INHERIT, Flags::FILE_INHERIT] {
            let aces = [allow(who, flags, Mask::READ_DATA), allow("7", FD, Mask::WRITE_DATA)];
            assert_eq!(comes_back(&DIR, &aces).acl(), aces, "{who} {flags:?}");
        }
    }
    let (_, acl) = given_acl(&[allow("OWNER@", FD, Mask::READ_DATA)], &DIR).unwrap();
    let inherited = AceFlags::OBJECT_INHERIT | AceFlags::CONTAINER_INHERIT | AceFlags::INHERIT_ONLY;
    assert_eq!(
        acl.aces,
        [
            Ace::allow(DIR.owner, AccessMask::READ_DATA, AceFlags::empty()),
            Ace::allow(Sid::CREATOR_OWNER, AccessMask::READ_DATA, inherited),
        ]
    );
}

/// A file that another user creates in the directory: `OWNER@` is its own owner, the number stays.
#[test]
fn a_child_inherits_for_its_own_owner() {
    let aces = [allow("OWNER@", FD, Mask::READ_DATA), allow("1000", FD, Mask::WRITE_DATA)];
    let (control, acl) = given_acl(&aces, &DIR).unwrap();
    let parent = described(&DIR, control, acl);
    let newborn = Newborn { owner: Sid::of_user(7), group: Sid::of_group(7), is_dir: false };
    let told = ReplyAcl::of(&parent.inherited_by(&newborn).unwrap());
    assert_eq!(told.acl(), [allow("OWNER@", NO, Mask::READ_DATA), allow("1000", NO, Mask::WRITE_DATA)]);
}

#[test]
fn rights_are_those_of_windows() {
    // RFC 8881 6.2.1.3, [MS-DTYP] 2.4.3
    assert_eq!(RIGHTS.bits(), 0x001f_01ff);
    let all = allow("7", NO, RIGHTS | RETENTION);
    let (_, acl) = given_acl(&[all], &FILE).unwrap();
    assert_eq!(acl.aces, [Ace::allow(Sid::of_user(7), AccessMask::FILE_ALL, AceFlags::empty())]);
    let told = ReplyAcl::of(&described(
        &FILE,
        Control::DACL_PRESENT,
        Acl {
            revision: 2,
            aces: vec![Ace::allow(Sid::of_user(7), AccessMask::GENERIC_READ, AceFlags::empty())],
        },
    ));
    assert_eq!(told.acl()[0].mask.bits(), 0x0012_0089);
}

#[test]
fn what_nobody_keeps_is_refused() {
    let ace = allow("7", NO, Mask::READ_DATA);
    assert_eq!(refused(&FILE, wire::Ace { ace_type: ace_type::AUDIT, ..ace }), Status::AttrNotSupp);
    assert_eq!(refused(&FILE, wire::Ace { ace_type: 9, ..ace }), Status::AttrNotSupp);
    assert_eq!(refused(&FILE, wire::Ace { flags: Flags::FILE_INHERIT, ..ace }), Status::AttrNotSupp);
    assert_eq!(refused(&FILE, wire::Ace { flags: Flags::DIRECTORY_INHERIT, ..ace }), Status::AttrNotSupp);
    assert_eq!(refused(&DIR, wire::Ace { flags: Flags::INHERIT_ONLY, ..ace }), Status::AttrNotSupp);
    assert_eq!(refused(&DIR, wire::Ace { flags: Flags::FAILED_ACCESS, ..ace }), Status::Inval);
    assert_eq!(refused(&DIR, wire::Ace { flags: Flags::from_bits_retain(0x100), ..ace }), Status::Inval);
    assert_eq!(refused(&DIR, wire::Ace { mask: Mask::from_bits_retain(0x800), ..ace }), Status::Inval);
    for (who, status) in [
        (&b""[..], Status::Inval),
        (b"\xff", Status::Inval),
        (b"somebody@example.org", Status::BadOwner),
        (b"owner@", Status::BadOwner),
        (b"S-1-", Status::BadOwner),
    ] {
        assert_eq!(refused(&FILE, wire::Ace { who: Text(who), ..ace }), status, "{who:?}");
    }
}

#[test]
fn a_list_has_at_most_1024_entries() {
    let aces = vec![allow("7", NO, Mask::READ_DATA); ENTRIES_MAX + 1];
    assert_eq!(given_acl(&aces, &FILE), Err(Status::NoSpc));
    let (_, acl) = given_acl(&aces[1..], &FILE).unwrap();
    let mut bytes = Vec::new();
    described(&FILE, Control::DACL_PRESENT, acl).encode_into(&mut bytes).unwrap();
}

/// RFC 8881 6.4.3.2
#[test]
fn only_the_dacl_knows_of_automatic_inheritance() {
    let aces = vec![allow("7", Flags::INHERITED, Mask::READ_DATA), allow("OWNER@", FD, Mask::READ_DATA)];
    let given = wire::Acl41 { flags: AclFlags::AUTO_INHERIT, aces: aces.clone() };
    let (control, acl) = given_dacl(&given, &DIR).unwrap();
    let told = ReplyAcl::of(&described(&DIR, control, acl));
    assert_eq!(told.dacl(), given);
    assert_eq!(told.acl()[0].flags, NO);
    let told = comes_back(&DIR, &aces);
    assert_eq!(told.dacl().flags, AclFlags::PROTECTED);
    assert_eq!(told.dacl().aces[0].flags, NO);
    let unknown = wire::Acl41 { flags: AclFlags::from_bits_retain(8), aces: vec![] };
    assert_eq!(given_dacl(&unknown, &DIR), Err(Status::Inval));
}

#[test]
fn what_bits_say_stays_bits() {
    for mode in [0o644, 0o700, 0o077, 0o751] {
        for is_dir in [false, true] {
            let by_mode = SecurityDescriptor::of_mode(mode, is_dir, 1000, 100);
            let told = ReplyAcl::of(&by_mode);
            assert!(told.acl().iter().all(|ace| matches!(ace.who.0, b"OWNER@" | b"GROUP@" | b"EVERYONE@")));
            let subject = Subject { is_dir, ..DIR };
            let (control, acl) = given_acl(&told.acl(), &subject).unwrap();
            assert_eq!(described(&subject, control, acl), by_mode, "{mode:o}");
        }
    }
}

#[test]
fn without_a_list_everybody_may_do_everything() {
    let told = ReplyAcl::of(&SecurityDescriptor::default());
    assert_eq!(told.acl(), [allow("EVERYONE@", NO, RIGHTS)]);
}

/// An entry with a condition is shown if it denies. An entry that allows with a condition, or applies to no user, is
/// not shown.
#[test]
fn what_cannot_be_said_otherwise_is_told_as_it_counts() {
    let mut data = AccessMask::READ_DATA.bits().to_le_bytes().to_vec();
    Sid::of_user(7).encode_into(&mut data);
    let conditional =
        |ace_type| Ace { flags: AceFlags::empty(), body: AceBody::Other { ace_type, data: data.clone() } };
    let nobody = Ace::allow(Sid::CREATOR_OWNER, AccessMask::FILE_ALL, AceFlags::empty());
    let aces = vec![conditional(0x0A), conditional(0x09), nobody];
    let told = ReplyAcl::of(&described(&DIR, Control::DACL_PRESENT, Acl { revision: 2, aces }));
    assert_eq!(told.acl(), [deny("7", NO, Mask::READ_DATA)]);
}

fn any_ace() -> impl Strategy<Value = (bool, usize, u32, u32)> {
    (any::<bool>(), 0..6_usize, 0..=0x001f_01ff_u32, 0..4_u32)
}

proptest! {
    /// A client reads the list that it has set, except for a pair that was one entry originally.
    #[test]
    fn a_list_comes_back(entries in vec(any_ace(), 0..8)) {
        const WHO: [&str; 6] = ["OWNER@", "GROUP@", "EVERYONE@", "1000", "7", "S-1-5-18"];
        let inheritance = [NO, FD, FDI, Flags::FILE_INHERIT | Flags::NO_PROPAGATE_INHERIT];
        let aces: Vec<_> = entries
            .iter()
            .map(|(allows, who, mask, flags)| {
                let who = WHO[*who];
                let flags = inheritance[*flags as usize];
                // The number of the owner becomes `OWNER@` unless the entry is inherited.
                let who = if who == "1000" && flags == NO { "8" } else { who };
                let ace = allow(who, flags, RIGHTS & Mask::from_bits_retain(*mask));
                if *allows { ace } else { wire::Ace { ace_type: DENY, ..ace } }
            })
            .collect();
        let pair = aces.windows(2).any(|pair| {
            let same = (pair[0].who, pair[0].mask, pair[0].ace_type) == (pair[1].who, pair[1].mask, pair[1].ace_type);
            same && pair[0].flags == NO && pair[1].flags.contains(Flags::INHERIT_ONLY)
        });
        prop_assume!(!pair);
        let told = comes_back(&DIR, &aces);
        prop_assert_eq!(told.acl(), aces);
    }
}

/// Knows one user.
#[derive(Debug)]
struct Alice;

const ALICE: &str = "S-1-5-21-1-2-3-1104";

impl super::super::owner::OwnerNames for Alice {
    fn of_uid(&self, uid: u32) -> Option<std::sync::Arc<str>> {
        (uid == 1_001_104).then(|| "alice@AD.TEST".into())
    }
    fn of_sid(&self, sid: &Sid) -> Option<std::sync::Arc<str>> {
        (sid.to_string() == ALICE).then(|| "alice@AD.TEST".into())
    }
    fn uid_of(&self, name: &str) -> Option<u32> {
        name.eq_ignore_ascii_case("alice@AD.TEST").then_some(1_001_104)
    }
    fn sid_of(&self, name: &str) -> Option<Sid> {
        self.uid_of(name).and_then(|_| ALICE.parse().ok())
    }
}

#[test]
fn users_have_names_where_somebody_knows_them() {
    let subject = Subject { names: Some(&Alice), ..FILE };
    let given = [
        allow("alice@ad.test", NO, Mask::READ_DATA),
        allow(ALICE, NO, Mask::READ_DATA),
        allow("1001104", NO, Mask::READ_DATA),
        allow("1001104", Flags::IDENTIFIER_GROUP, Mask::READ_DATA),
        allow("OWNER@", NO, Mask::READ_DATA),
        allow("S-1-5-21-1-2-3-513", NO, Mask::READ_DATA),
    ];
    let (control, acl) = given_acl(&given, &subject).unwrap();
    let sids: Vec<_> = acl.aces.iter().map(|ace| ace.statement().unwrap().2.to_string()).collect();
    assert_eq!(sids[..4], [ALICE, ALICE, "S-1-22-1-1001104", "S-1-22-2-1001104"]);
    let list = ReplyAcl::of(&described(&subject, control, acl));
    let told = |list: &ReplyAcl| list.entries.iter().map(|entry| entry.who.to_string()).collect::<Vec<_>>();
    let named = told(&list.clone().with_names(Some(&Alice)));
    let alice = "alice@AD.TEST";
    assert_eq!(named, [alice, alice, alice, "1001104", "OWNER@", "S-1-5-21-1-2-3-513"]);
    assert_eq!(told(&list.with_names(None))[..2], [ALICE, ALICE]);
    assert_eq!(refused(&subject, allow("bob@AD.TEST", NO, Mask::READ_DATA)), Status::BadOwner);
    assert_eq!(refused(&FILE, allow("alice@AD.TEST", NO, Mask::READ_DATA)), Status::BadOwner);
}

#[test]
fn an_owner_is_named_and_may_be_given_by_name() {
    use super::super::owner::{Owner, given_user};
    let told = |uid, names| String::from_utf8(Owner::of(uid, names).as_bytes().to_vec()).unwrap();
    assert_eq!((told(1_001_104, Some(&Alice)), told(7, Some(&Alice))), ("alice@AD.TEST".into(), "7".into()));
    assert_eq!(told(1_001_104, None), "1001104");
    let given = |text: &str, names| given_user(Text(text.as_bytes()), names);
    assert_eq!(given("Alice@ad.test", Some(&Alice)), Ok(1_001_104));
    assert_eq!((given("7", Some(&Alice)), given("nobody", Some(&Alice))), (Ok(7), Ok(65_534)));
    for bad in ["bob@AD.TEST", "alice", "alice@AD.TEST@AD.TEST", "007"] {
        assert_eq!(given(bad, Some(&Alice)), Err(Status::BadOwner), "{bad}");
    }
    assert_eq!(given("alice@AD.TEST", None), Err(Status::BadOwner));
    assert_eq!(
        (given("", Some(&Alice)), given_user(Text(b"\xff"), Some(&Alice))),
        (Err(Status::Inval), Err(Status::Inval))
    );
}
