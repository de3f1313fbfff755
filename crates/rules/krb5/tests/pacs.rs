//! What is taken from a PAC, and which PACs are refused.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod mint;

use acl::Sid;
use anabranch_krb5::crypto::Enctype;
use anabranch_krb5::{
    Acceptor, Noted, Pac, PacError, Randomness, Reason, ReplayId, Replays, Request, Settings, Time,
};
use mint::{NOW, PacOf, Ticket, Token, around_pac, key, keytab, lay_out, sign};

struct Forgetful;

impl Replays for Forgetful {
    fn note(&self, _: ReplayId, _: Time) -> Noted {
        Noted::First
    }
}

const SHA1: Enctype = Enctype::Aes256Sha1;

/// What is taken from a PAC that comes in a ticket of alice.
fn taken_of(enctype: Enctype, pac: &[u8]) -> Result<Pac, Reason> {
    let acceptor = Acceptor::new(keytab(&key(enctype, 0x11)), Settings::default());
    let ticket = Ticket { authorization_data: Some(around_pac(pac)), ..Ticket::new(enctype) };
    let randomness = Randomness { confounder: [1; 16], subkey: [4; 32].into(), sequence_number: [0; 4] };
    let token = Token::new(&ticket).encode();
    let request =
        Request { token: &token, now: Time::from_unix(NOW), channel: None, randomness: &randomness };
    acceptor
        .accept(&request, &Forgetful)
        .map(|accepted| accepted.pac.unwrap())
        .map_err(|refused| refused.reason)
}

fn taken(pac: &[u8]) -> Result<Pac, Reason> {
    taken_of(SHA1, pac)
}

/// Why a PAC is refused.
fn fault(pac: &[u8]) -> PacError {
    match taken(pac) {
        Err(Reason::Pac(fault)) => fault,
        other => panic!("{other:?}"),
    }
}

fn service_key() -> anabranch_krb5::Key {
    key(SHA1, 0x11)
}

fn sid(text: &str) -> Sid {
    text.parse().unwrap()
}

fn texts(sids: &[Sid]) -> Vec<String> {
    sids.iter().map(ToString::to_string).collect()
}

/// A signed PAC with another buffer of this type.
fn with_buffer(kind: u32, bytes: Vec<u8>) -> Vec<u8> {
    let mut buffers = PacOf::new().buffers();
    buffers.retain(|(known, _)| *known != kind);
    buffers.push((kind, bytes));
    sign(&buffers, &service_key())
}

#[test]
fn a_pac_has_the_user_and_all_groups() {
    for enctype in Enctype::ALL {
        let pac = taken_of(enctype, &PacOf::new().signed(&key(enctype, 0x11))).unwrap();
        let logon = pac.logon.unwrap();
        assert_eq!((logon.account.as_str(), logon.domain.as_str()), ("alice", "LAB"));
        assert_eq!(logon.sid, sid("S-1-5-21-1-2-3-1103"));
        assert_eq!(logon.primary_group, sid("S-1-5-21-1-2-3-513"));
        let domain = ["S-1-5-21-1-2-3-513", "S-1-5-21-1-2-3-1201", "S-1-5-21-1-2-3-1202"];
        assert_eq!(texts(logon.domain_groups()), domain);
        assert_eq!(texts(logon.extra_sids()), ["S-1-18-1", "S-1-5-21-7-8-9-1500"]);
        assert_eq!(texts(logon.resource_groups()), ["S-1-5-21-1-2-3-1301"]);
        assert_eq!(logon.groups().len(), 6);
        let upn = pac.upn.unwrap();
        assert_eq!(
            (upn.upn.as_str(), upn.dns_domain.as_str(), upn.is_constructed),
            ("alice@lab.test", "lab.test", false)
        );
    }
}

#[test]
fn lists_that_are_not_announced_are_not_used() {
    let none = PacOf {
        groups: vec![],
        extra_sids: vec![],
        resource_domain: None,
        resource_groups: vec![],
        upn: None,
        requestor: None,
        ..PacOf::new()
    };
    let pac = taken(&none.signed(&service_key())).unwrap();
    assert_eq!(pac.upn, None);
    assert_eq!(texts(pac.logon.unwrap().groups()), ["S-1-5-21-1-2-3-513"]);
    // the lists are there, and UserFlags do not say so
    let mut info = PacOf::new().logon_info();
    let flags = info.windows(4).position(|bytes| bytes == 0x220_u32.to_le_bytes()).unwrap();
    info[flags..flags + 4].fill(0);
    let logon = taken(&with_buffer(1, info)).unwrap().logon.unwrap();
    assert_eq!(logon.groups().len(), 3);
}

/// [MS-PAC] 2.5, UserId.
#[test]
fn a_user_of_another_kind_is_the_first_extra_sid() {
    let pac = PacOf { user: 0, requestor: None, ..PacOf::new() };
    let logon = taken(&pac.signed(&service_key())).unwrap().logon.unwrap();
    assert_eq!(logon.sid, sid("S-1-18-1"));
    let pac = PacOf { user: 0, requestor: None, extra_sids: vec![], ..PacOf::new() };
    assert_eq!(fault(&pac.signed(&service_key())), PacError::Sid);
}

#[test]
fn a_forged_pac_is_refused() {
    let good = PacOf::new().signed(&service_key());
    assert!(taken(&good).is_ok());
    for bit in 0..good.len() * 8 {
        let mut forged = good.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        match taken(&forged) {
            Err(Reason::Pac(_)) => {}
            // the KDC's signature is for KDCs
            Ok(pac) => assert_eq!(pac, taken(&good).unwrap(), "{bit}"),
            Err(reason) => panic!("{bit}: {reason}"),
        }
    }
    for length in 0..good.len() {
        assert!(matches!(taken(&good[..length]), Err(Reason::Pac(_))), "{length}");
    }
    assert_eq!(fault(&PacOf::new().signed(&key(SHA1, 0x12))), PacError::WrongSignature);
}

/// The place of the content of a buffer.
fn place(pac: &[u8], kind: u32) -> usize {
    let entry = (0..).map(|n| 8 + 16 * n).find(|at| pac[*at..*at + 4] == kind.to_le_bytes()).unwrap();
    usize::try_from(u32::from_le_bytes(*pac[entry + 8..].first_chunk().unwrap())).unwrap()
}

#[test]
fn signatures_have_the_type_of_the_key() {
    let good = PacOf::new().signed(&service_key());
    let server = place(&good, 6);
    for number in [15, 19, 20, -138, 7, 0] {
        let mut other = good.clone();
        other[server..server + 4].copy_from_slice(&i32::to_le_bytes(number));
        let fault = fault(&other);
        let too_short = [PacError::Length, PacError::SignatureType(number)];
        assert!(too_short.contains(&fault), "{number}: {fault}");
    }
    let mut zero = good;
    zero[server + 4..server + 16].fill(0);
    assert_eq!(fault(&zero), PacError::WrongSignature);
}

#[test]
fn a_pac_without_signatures_is_refused() {
    let buffers = PacOf::new().buffers();
    assert_eq!(fault(&lay_out(&buffers).0), PacError::Unsigned);
    for kind in [6, 7] {
        let signature = [&16_u32.to_le_bytes()[..], &[0; 12]].concat();
        let one = [&buffers[..], &[(kind, signature)]].concat();
        assert_eq!(fault(&lay_out(&one).0), PacError::Unsigned);
    }
}

/// The number of a read-only domain controller may follow a signature. [MS-PAC] 2.8.
#[test]
fn the_kdc_may_sign_as_it_likes() {
    let all = [&PacOf::new().buffers()[..], &[(6, [&[16, 0, 0, 0][..], &[0; 14]].concat())]].concat();
    let kdc = [&(-138_i32).to_le_bytes()[..], &[0; 16]].concat();
    let (mut pac, _) = lay_out(&[&all[..], &[(7, kdc)]].concat());
    let checksum = service_key().deriver().unwrap();
    let checksum = checksum.checksum_key(anabranch_krb5::crypto::KeyUsage::PAC).unwrap().tag(&[&pac]);
    let (server, kdc) = (place(&pac, 6) + 4, place(&pac, 7) + 4);
    pac[server..server + 12].copy_from_slice(checksum.as_ref());
    pac[kdc..kdc + 16].fill(0xdc);
    assert!(taken(&pac).is_ok());
}

#[test]
fn a_pac_is_about_the_client_of_the_ticket() {
    let with = |name, auth_time| taken(&PacOf { name, auth_time, ..PacOf::new() }.signed(&service_key()));
    for name in ["alice", "ALICE", "alice@LAB.TEST", "Alice@lab.test"] {
        assert!(with(name, NOW - 60).is_ok(), "{name}");
    }
    for name in ["bob", "alice@OTHER.TEST", "alice@", "alic", "alicea", "", "alice\0"] {
        assert_eq!(with(name, NOW - 60), Err(Reason::Pac(PacError::OtherClient)), "{name}");
    }
    for auth_time in [NOW - 61, NOW - 59, 0] {
        assert_eq!(with("alice", auth_time), Err(Reason::Pac(PacError::OtherClient)), "{auth_time}");
    }
    let mut buffers = PacOf::new().buffers();
    buffers.retain(|(kind, _)| *kind != 10);
    assert_eq!(fault(&sign(&buffers, &service_key())), PacError::OtherClient);
}

#[test]
fn a_pac_has_one_user() {
    let other = Some(sid("S-1-5-21-1-2-3-500"));
    let pac = PacOf { requestor: other, ..PacOf::new() }.signed(&service_key());
    assert_eq!(fault(&pac), PacError::OtherSid);
    let mut bytes = Vec::new();
    sid("S-1-5-21-1-2-3-500").encode_into(&mut bytes);
    let numbers = [0_u16, 20, 0, 20, 2, 0, 0, 20, 28, 20];
    let upn = [numbers.map(u16::to_le_bytes).concat(), bytes].concat();
    assert_eq!(fault(&with_buffer(12, upn)), PacError::OtherSid);
}

/// The directory of a PAC with this many entries, in a PAC of this length.
fn directory(entries: &[[u32; 4]], length: usize) -> Vec<u8> {
    let count = u32::try_from(entries.len()).unwrap();
    let numbers = [count, 0].into_iter().chain(entries.iter().flatten().copied());
    let mut pac: Vec<u8> = numbers.flat_map(u32::to_le_bytes).collect();
    pac.resize(length.max(pac.len()), 0);
    pac
}

#[test]
fn buffers_lie_apart_inside_the_pac() {
    // type, size, offset (64 bits)
    let cases = [
        (&[[1, 8, 24, 0]][..], PacError::Unsigned),
        (&[[1, 76, 24, 0]], PacError::Unsigned),
        (&[[1, 77, 24, 0]], PacError::Length),
        (&[[1, u32::MAX, 24, 0]], PacError::Length),
        (&[[1, 8, 24, 1]], PacError::Length),
        (&[[1, 8, 104, 0]], PacError::Length),
        (&[[1, 8, 28, 0]], PacError::Layout),
        (&[[1, 8, 16, 0]], PacError::Layout),
        (&[[1, 8, 40, 0], [1, 8, 48, 0]], PacError::Layout),
        (&[[1, 9, 40, 0], [10, 8, 48, 0]], PacError::Layout),
        (&[[1, 8, 40, 0], [10, 8, 40, 0]], PacError::Layout),
        (&[[1, 8, 40, 0], [10, 8, 48, 0]], PacError::Unsigned),
    ];
    for (entries, expected) in cases {
        assert_eq!(fault(&directory(entries, 100)), expected, "{entries:?}");
    }
    let many =
        |count: u32| -> Vec<_> { (0..count).map(|kind| [kind + 100, 0, 8 * 66 + 8 * count, 0]).collect() };
    assert_eq!(fault(&directory(&many(32), 2000)), PacError::Unsigned);
    assert_eq!(fault(&directory(&many(33), 2000)), PacError::Directory);
    assert_eq!(fault(&[0, 0, 0, 0, 1, 0, 0, 0]), PacError::Directory);
    assert_eq!(fault(&[0, 0, 0, 0, 0, 0, 0]), PacError::Length);
}

/// The logon information with a number in place of another.
fn with_number(old: u32, new: u32) -> Vec<u8> {
    let mut info =
        PacOf { user: 0x5555, primary_group: 0x6666, requestor: None, ..PacOf::new() }.logon_info();
    let at = info.windows(4).position(|bytes| bytes == old.to_le_bytes()).unwrap();
    info[at..at + 4].copy_from_slice(&new.to_le_bytes());
    let mut buffers = PacOf::new().buffers();
    buffers.retain(|(kind, _)| *kind != 1 && *kind != 18);
    buffers.push((1, info));
    sign(&buffers, &service_key())
}

#[test]
fn groups_are_limited() {
    let count = |count: u32| {
        let mut info = PacOf { user: 0x5555, primary_group: 0x6666, ..PacOf::new() }.logon_info();
        let at = info.windows(4).position(|bytes| bytes == 0x6666_u32.to_le_bytes()).unwrap() + 4;
        info[at..at + 4].copy_from_slice(&count.to_le_bytes());
        fault(&with_buffer(1, info))
    };
    assert_eq!(count(10_001), PacError::TooManyGroups);
    assert_eq!(count(u32::MAX), PacError::TooManyGroups);
    // as many are permitted, but not there
    assert_eq!(count(10_000), PacError::LogonInfo);
    // a token of 64 KiB has room for some thousand
    let pac = PacOf { groups: (2000..7000).collect(), ..PacOf::new() };
    let logon = taken(&pac.signed(&service_key())).unwrap().logon.unwrap();
    assert_eq!(logon.domain_groups().len(), 5001);
}

#[test]
fn sids_have_at_most_15_parts() {
    let of = |count: usize| {
        let domain_sid = Sid::new(5, &vec![1; count]).unwrap();
        let pac = PacOf { domain_sid, requestor: None, ..PacOf::new() };
        taken(&pac.signed(&service_key()))
    };
    assert!(of(14).is_ok());
    // there is no room for a RID
    assert_eq!(of(15), Err(Reason::Pac(PacError::Sid)));
    let mut info = PacOf::new().logon_info();
    let at = info.windows(8).position(|bytes| bytes == [4, 0, 0, 0, 1, 4, 0, 0]).unwrap();
    for (outer, inner) in [(16, 4), (16, 16), (3, 4), (4, 3), (4, 5)] {
        (info[at], info[at + 5]) = (outer, inner);
        assert!(matches!(fault(&with_buffer(1, info.clone())), PacError::Sid | PacError::LogonInfo));
    }
}

#[test]
fn broken_logon_information_is_refused() {
    assert!(taken(&with_number(0x5555, 0x5555)).is_ok());
    let info = PacOf::new().logon_info();
    for length in 0..info.len() {
        let fault = fault(&with_buffer(1, info[..length].to_vec()));
        assert!(matches!(fault, PacError::LogonInfo | PacError::Sid), "{length}: {fault}");
    }
    let mut other = info.clone();
    other[1] = 0;
    assert_eq!(fault(&with_buffer(1, other)), PacError::LogonInfo);
    let odd = [0, 0xd8, 1, 0];
    let mut surrogate = info;
    let at = surrogate.windows(4).position(|bytes| bytes == [b'a', 0, b'l', 0]).unwrap();
    surrogate[at..at + 4].copy_from_slice(&odd);
    assert_eq!(fault(&with_buffer(1, surrogate)), PacError::Text);
}
