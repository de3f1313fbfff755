use super::*;
use crate::crypto::hex;

struct Written<'a> {
    realm: &'a str,
    parts: &'a [&'a str],
    kvno: u8,
    enctype: i16,
    key: &'a [u8],
    end: &'a [u8],
}

const CIFS: Written<'_> = Written {
    realm: "LAB.TEST",
    parts: &["cifs", "files.lab.test"],
    kvno: 3,
    enctype: 18,
    key: &[7; 32],
    end: &[0, 0, 0, 3],
};

fn counted(bytes: &[u8]) -> Vec<u8> {
    [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
}

fn record(written: &Written<'_>) -> Vec<u8> {
    let mut bytes = u16::try_from(written.parts.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend(counted(written.realm.as_bytes()));
    written.parts.iter().for_each(|part| bytes.extend(counted(part.as_bytes())));
    bytes.extend([0, 0, 0, 1, 0, 0, 0, 99, written.kvno]);
    bytes.extend(written.enctype.to_be_bytes());
    bytes.extend(counted(written.key));
    bytes.extend(written.end);
    [&i32::try_from(bytes.len()).unwrap().to_be_bytes()[..], &bytes].concat()
}

fn file(records: &[Vec<u8>]) -> Vec<u8> {
    [&[5, 2][..], &records.concat()].concat()
}

fn principal(parts: &[&str], realm: &str) -> Principal {
    Principal::new(parts, realm).unwrap()
}

#[test]
fn entries_are_read() {
    let keytab = Keytab::parse(&file(&[record(&CIFS)])).unwrap();
    let [entry] = keytab.entries() else { panic!("one entry") };
    assert_eq!(entry.principal().as_str(), "cifs/files.lab.test@LAB.TEST");
    assert_eq!((entry.kvno(), entry.enctype(), entry.timestamp().as_unix()), (3, Enctype::Aes256Sha1, 99));
    assert_eq!(entry.key.as_bytes(), [7; 32]);
}

#[test]
fn holes_and_the_end_are_passed_over() {
    let hole = [&(-9_i32).to_be_bytes()[..], &[0xee; 9]].concat();
    let records = [hole.clone(), record(&CIFS), hole, record(&Written { kvno: 4, end: &[], ..CIFS })];
    assert_eq!(Keytab::parse(&file(&records)).unwrap().entries().len(), 2);
    let ended = [record(&CIFS), vec![0; 4], vec![0xee; 40]];
    assert_eq!(Keytab::parse(&file(&ended)).unwrap().entries().len(), 1);
}

#[test]
fn the_long_version_counts_if_it_is_there() {
    let kvno =
        |end: &[u8]| Keytab::parse(&file(&[record(&Written { end, ..CIFS })])).unwrap().entries()[0].kvno();
    assert_eq!(kvno(&[]), 3);
    assert_eq!(kvno(&[0, 0, 0]), 3);
    assert_eq!(kvno(&[0, 0, 0, 0]), 3);
    assert_eq!(kvno(&[0, 0, 1, 3]), 0x103);
    assert_eq!(kvno(&[0, 0, 1, 3, 0, 0, 0, 0]), 0x103);
}

/// A keytab that has 8 bits of the version fits every version with these bits; one that has all bits fits one version.
#[test]
fn versions_are_compared_with_as_many_bits_as_there_are() {
    let fits = |end: &[u8], wanted| {
        let keytab = Keytab::parse(&file(&[record(&Written { end, ..CIFS })])).unwrap();
        let service = principal(&["CIFS", "Files.Lab.Test"], "lab.test");
        keytab.keys(&service, Enctype::Aes256Sha1, wanted, HostRule::Listed).count() == 1
    };
    for wanted in [None, Some(3), Some(0x103), Some(0xffff_ff03)] {
        assert!(fits(&[], wanted), "{wanted:?}");
    }
    assert!(!fits(&[], Some(4)));
    for wanted in [None, Some(0x103)] {
        assert!(fits(&[0, 0, 1, 3], wanted), "{wanted:?}");
    }
    for wanted in [Some(3), Some(0x203)] {
        assert!(!fits(&[0, 0, 1, 3], wanted), "{wanted:?}");
    }
}

#[test]
fn what_is_missing_is_said() {
    let keytab =
        Keytab::parse(&file(&[record(&CIFS), record(&Written { kvno: 5, end: &[], ..CIFS })])).unwrap();
    let cifs = principal(&["cifs", "files.lab.test"], "LAB.TEST");
    let other = principal(&["nfs", "x"], "R");
    let missing = |service, enctype, kvno| keytab.missing(service, enctype, kvno);
    assert_eq!(missing(&other, Enctype::Aes256Sha1, Some(1)), Reason::NoSuchService);
    assert_eq!(missing(&cifs, Enctype::Aes128Sha1, Some(3)), Reason::NoSuchEnctype { number: 17 });
    let version = Reason::NoSuchKeyVersion { wanted: 7, newest: 5 };
    assert_eq!(missing(&cifs, Enctype::Aes256Sha1, Some(7)), version);
}

#[test]
fn other_types_are_left_out_and_doubles_too() {
    let rc4 = Written { enctype: 23, key: &[1; 16], ..CIFS };
    let keytab = Keytab::parse(&file(&[record(&rc4), record(&CIFS), record(&CIFS)])).unwrap();
    assert_eq!((keytab.entries().len(), keytab.skipped()), (1, 1));
    assert_eq!(Keytab::parse(&file(&[record(&rc4)])).unwrap_err(), KeytabError::NoKeys { skipped: 1 });
    assert_eq!(Keytab::parse(&[5, 2]).unwrap_err(), KeytabError::NoKeys { skipped: 0 });
}

#[test]
fn broken_files_are_refused_with_the_place() {
    for bytes in [&[][..], &[5], &[5, 3], b"not a keytab"] {
        assert_eq!(Keytab::parse(bytes).unwrap_err(), KeytabError::NotKeytab);
    }
    assert_eq!(Keytab::parse(&[5, 1, 0]).unwrap_err(), KeytabError::OldVersion);
    let whole = file(&[record(&CIFS), record(&Written { kvno: 4, ..CIFS })]);
    let second = 2 + record(&CIFS).len();
    for length in second + 1..whole.len() {
        let error = Keytab::parse(&whole[..length]).unwrap_err();
        assert_eq!(error, KeytabError::Truncated { offset: second }, "{length}");
    }
    let key = Written { key: &[7; 16], ..CIFS };
    let error = KeytabError::KeyLength { offset: 2, enctype: Enctype::Aes256Sha1, given: 16 };
    assert_eq!(Keytab::parse(&file(&[record(&key)])).unwrap_err(), error);
    for (parts, error) in [
        (&["a@b"][..], NameError::Character),
        (&[], NameError::Empty),
        (&["a"; 9], NameError::TooManyComponents),
    ] {
        let error = KeytabError::Name { offset: 2, error };
        assert_eq!(Keytab::parse(&file(&[record(&Written { parts, ..CIFS })])).unwrap_err(), error);
    }
    let endless = [&[5, 2][..], &i32::MIN.to_be_bytes(), &[0; 100]].concat();
    assert_eq!(Keytab::parse(&endless).unwrap_err(), KeytabError::Truncated { offset: 2 });
}

#[test]
fn keytabs_are_limited() {
    let rc4 = record(&Written { enctype: 23, key: &[1; 16], realm: "R", parts: &["a"], ..CIFS });
    let most = [vec![rc4.clone(); ENTRIES_MAX - 1], vec![record(&CIFS)]].concat();
    assert_eq!(Keytab::parse(&file(&most)).unwrap().skipped(), ENTRIES_MAX - 1);
    let more = [most, vec![rc4]].concat();
    assert_eq!(Keytab::parse(&file(&more)).unwrap_err(), KeytabError::TooManyEntries);
    let mut large = file(&[record(&CIFS)]);
    large.resize(BYTES_MAX, 0);
    assert!(Keytab::parse(&large).is_ok());
    large.push(0);
    assert_eq!(Keytab::parse(&large).unwrap_err(), KeytabError::TooLarge);
}

#[test]
fn previous_keys_are_added() {
    let mut keytab = Keytab::parse(&file(&[record(&CIFS)])).unwrap();
    let before = file(&[record(&CIFS), record(&Written { kvno: 2, end: &[], ..CIFS })]);
    keytab.add(Keytab::parse(&before).unwrap()).unwrap();
    assert_eq!(keytab.entries().iter().map(Entry::kvno).collect::<Vec<_>>(), [3, 2]);
}

#[test]
fn a_keytab_shows_no_keys() {
    let keytab = Keytab::parse(&file(&[record(&Written { key: &hex(&"ab".repeat(32)), ..CIFS })])).unwrap();
    let shown = format!("{keytab:?}").to_lowercase();
    assert!(shown.contains("cifs/files.lab.test@lab.test"), "{shown}");
    assert!(!shown.contains("171") && !shown.contains("abab"), "{shown}");
}

#[test]
fn no_bytes_make_the_parser_panic() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let _ = Keytab::parse(bytes);
        let _ = Keytab::parse(&[&[5, 2][..], bytes].concat());
    });
}
