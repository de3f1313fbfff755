//! Messages of Samba 4.17 clients and servers: decoded, compared with what tshark saw in them, and encoded again.
//! `testdata/SOURCES.md` tells how they were captured.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anabranch_smb_wire as smb;
use smb::{Command, FileTime, Header, Utf16};

mod seen;

fn testdata() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

/// Name and bytes of the golden messages whose names start with `prefix`, in order.
fn messages(prefix: &str) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = fs::read_dir(testdata())
        .expect("testdata")
        .map(|entry| entry.expect("entry").file_name().into_string().expect("a name in ASCII"))
        .filter(|name| name.starts_with(prefix) && name.ends_with(".bin"))
        .map(|name| (name.clone(), fs::read(testdata().join(name)).expect("a golden message")))
        .collect();
    all.sort();
    all
}

/// What tshark saw: file, field, values.
fn expected() -> BTreeMap<String, Vec<(String, Vec<String>)>> {
    let table = fs::read_to_string(testdata().join("fields.tsv")).expect("fields.tsv");
    let mut by_file: BTreeMap<String, Vec<(String, Vec<String>)>> = BTreeMap::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let [file, field, values] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let values = values.split(',').map(str::to_owned).collect();
        by_file.entry(file.to_owned()).or_default().push((field.to_owned(), values));
    }
    by_file
}

/// A LOCK request without a lock element, sent to be refused.
const WITHOUT_LOCKS: &str = "lock.1.bin";

#[test]
fn lock_without_locks_is_refused() {
    let message = fs::read(testdata().join(WITHOUT_LOCKS)).expect("a golden message");
    assert_eq!(smb::lock::Request::decode(&message), Err(smb::WireError::Truncated));
}

#[test]
fn messages_decode_to_what_tshark_saw_and_encode_to_themselves() {
    let expected = expected();
    let mut wrong = Vec::new();
    for (file, fields) in expected.iter().filter(|(file, _)| *file != WITHOUT_LOCKS) {
        let message = fs::read(testdata().join(file)).expect("a golden message");
        let context = seen::Context::new(fields);
        let (seen, encoded) = match seen::decode(&message, &context) {
            Ok(decoded) => decoded,
            Err(error) => {
                wrong.push(format!("{file}: {error}"));
                continue;
            }
        };
        wrong.extend(seen.differences(fields).into_iter().map(|difference| format!("{file}: {difference}")));
        let (encoded_body, body) = (canonical(&encoded), canonical(&message));
        if encoded_body != body {
            wrong.push(format!("{file}: encoded\n  {}\n  is\n  {}", hex(&encoded_body), hex(&body)));
        }
        if header_without_process_id(&encoded) != header_without_process_id(&message) {
            wrong.push(format!("{file}: header {}\n  is {}", hex(&encoded[..64]), hex(&message[..64])));
        }
    }
    assert!(expected.len() > 200, "{} golden messages", expected.len());
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

/// Where senders have a choice, changes a body to the form in which this crate writes it.
fn canonical(message: &[u8]) -> Vec<u8> {
    let header = Header::decode(message).expect("header");
    let is_request = !header.flags.contains(smb::HeaderFlags::SERVER_TO_REDIR);
    let mut body = message[64..].to_vec();
    match header.command {
        // The offset of an empty buffer.
        Command::Ioctl if is_request => {
            for (offset, count) in [(24, 28), (36, 40)] {
                if body[count..count + 4] == [0; 4] {
                    body[offset..offset + 4].fill(0);
                }
            }
        }
        // The first create context is MxAc without data: its data offset.
        Command::Create if is_request && body.get(104..108) == Some(b"MxAc") => body[98..100].fill(0),
        _ => {}
    }
    // The byte in an ERROR response without data.
    if !is_request && body.len() == 9 && body[..8] == [9, 0, 0, 0, 0, 0, 0, 0] {
        body[8] = 0;
    }
    body
}

/// Clients older than SMB 3 put a process id into a reserved field of the header, and servers return it.
fn header_without_process_id(message: &[u8]) -> Vec<u8> {
    let mut header = message[..64].to_vec();
    if Header::decode(message).expect("header").tree_id().is_some() {
        header[32..36].fill(0);
    }
    header
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn compounds_split_into_their_messages_and_join_again() {
    let frames = messages("chain.");
    assert_eq!(frames.len(), 6);
    for (file, bytes) in frames {
        let (prefix, frame) = bytes.split_first_chunk::<4>().expect("a length prefix");
        assert_eq!(smb::frame::decode_prefix(*prefix), Ok(frame.len()), "{file}");
        assert_eq!(smb::frame::encode_prefix(frame.len()), Ok(*prefix), "{file}");
        let ranges: Vec<_> = smb::chain::Chain::new(frame).collect::<Result<_, _>>().expect("a chain");
        assert!(ranges.len() > 1, "{file}");
        let mut joined = Vec::new();
        let mut previous = None;
        for range in ranges {
            let message = &frame[range];
            if let Some(previous) = previous.replace(joined.len()) {
                previous_is_linked(&mut joined, previous);
            }
            let start = joined.len();
            joined.extend_from_slice(message);
            smb::header::set_next_command(&mut joined[start..], 0);
        }
        assert_eq!(hex(&joined), hex(frame), "{file}");
    }
}

/// Links the message at `previous` to the next one; its padding already exists.
fn previous_is_linked(joined: &mut Vec<u8>, previous: usize) {
    let end = joined.len();
    assert_eq!(smb::chain::link(joined, previous), Ok(end));
}

#[test]
fn smb1_negotiate_offers_smb2() {
    let frames = messages("smb1.");
    assert_eq!(frames.len(), 2);
    for (file, frame) in frames {
        let request = smb::smb1::NegotiateRequest::decode(&frame).expect(&file);
        assert!(request.offers(smb::smb1::SMB_2_002), "{file}: {request:?}");
        assert!(request.offers(b"NT LM 0.12"), "{file}: {request:?}");
        assert_eq!(request.offers(smb::smb1::SMB_2_WILDCARD), file == "smb1.1.bin", "{request:?}");
    }
}

#[test]
fn transform_headers_round_trip() {
    let frames = messages("transform.");
    assert_eq!(frames.len(), 2);
    for (file, frame) in frames {
        let header = smb::transform::TransformHeader::decode(&frame).expect(&file);
        assert_eq!(header.to_bytes(), frame[..52], "{file}");
        assert_eq!(header.original_message_size as usize, frame.len() - 52, "{file}");
        assert_eq!(header.nonce[12..], [0; 4], "{file}: GCM has 12 bytes of nonce");
    }
}

#[test]
fn names_of_golden_requests_are_text() {
    let (_, message) = messages("create.").swap_remove(0);
    let header = Header::decode(&message).expect("header");
    assert_eq!(header.command, Command::Create);
    for (file, message) in messages("create.") {
        if Header::decode(&message).expect("header").flags.contains(smb::HeaderFlags::SERVER_TO_REDIR) {
            continue;
        }
        let request = smb::create::Request::decode(&message).expect(&file);
        let text = request.name.decode().expect(&file);
        assert_eq!(request.name, Utf16::from(text.as_str()), "{file}");
    }
}

#[test]
fn times_are_of_the_day_of_the_capture() {
    let (_, message) = messages("negotiate.")
        .into_iter()
        .find(|(_, message)| {
            Header::decode(message).expect("header").flags.contains(smb::HeaderFlags::SERVER_TO_REDIR)
        })
        .expect("a NEGOTIATE response");
    let response = smb::negotiate::Response::decode(&message).expect("response");
    let (seconds, nanos) = response.system_time.to_unix();
    // 2026-11-20 to 2026-11-21, UTC
    assert!((1_795_132_800..1_795_219_200).contains(&seconds), "{seconds}");
    assert_eq!(FileTime::from_unix(seconds, nanos), response.system_time);
}
