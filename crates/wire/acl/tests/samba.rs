//! What new objects inherit, compared with Samba (testdata/samba-inherited.txt).

use anabranch_acl::{AccessMask, Ace, AceBody, AceFlags, Acl, Control, Newborn, SecurityDescriptor, Sid};

const OWNER: Sid = Sid::of_user(1000);
const GROUP: Sid = Sid::of_group(100);

fn sid(text: &str) -> Sid {
    match text {
        "OWNER" => OWNER,
        "GROUP" => GROUP,
        text => text.parse().expect("a SID"),
    }
}

fn ace(who: &str, flags: &str, mask: &str) -> Ace {
    let mask = u32::from_str_radix(mask.trim_start_matches("0x"), 16).expect("a mask");
    let flags = AceFlags::from_bits_retain(flags.parse().expect("flags"));
    Ace::allow(sid(who), AccessMask::from_bits_retain(mask), flags)
}

/// The entries in written form; none for a dash.
fn aces(text: &str) -> Vec<Ace> {
    let entries = text.split_whitespace().filter(|entry| *entry != "-");
    entries
        .map(|entry| match entry.split('/').collect::<Vec<_>>()[..] {
            [who, flags, mask] => ace(who, flags, mask),
            _ => panic!("{entry}"),
        })
        .collect()
}

fn inherited(parent: Ace, is_dir: bool) -> Vec<Ace> {
    let everybody = Ace::allow(Sid::EVERYONE, AccessMask::FILE_ALL, AceFlags::empty());
    let dacl = Some(Acl { revision: 2, aces: vec![everybody, parent] });
    let parent = SecurityDescriptor { control: Control::DACL_PRESENT, dacl, ..SecurityDescriptor::default() };
    let child = parent.inherited_by(&Newborn { owner: OWNER, group: GROUP, is_dir });
    child.map(|child| child.dacl.expect("a list").aces).unwrap_or_default()
}

/// smbcacls shows entries in an order of its own.
fn sorted(mut aces: Vec<Ace>) -> Vec<Ace> {
    aces.sort_by_key(|ace| match &ace.body {
        AceBody::Basic { sid, mask, .. } => (*sid, ace.flags.bits(), mask.bits()),
        AceBody::Other { .. } => (Sid::EVERYONE, 0, 0),
    });
    aces
}

#[test]
fn as_samba_has_it() {
    let table = include_str!("../testdata/samba-inherited.txt");
    let mut count = 0;
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let [entry, of_file, of_dir] = line.split('|').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let [who, flags, mask] = entry.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{line}") };
        let parent = ace(who, flags, mask);
        assert_eq!(sorted(inherited(parent.clone(), false)), sorted(aces(of_file)), "file: {line}");
        assert_eq!(sorted(inherited(parent, true)), sorted(aces(of_dir)), "directory: {line}");
        count += 1;
    }
    assert_eq!(count, 120);
}
