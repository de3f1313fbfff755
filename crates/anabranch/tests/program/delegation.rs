//! A client that lets a server act in its place sends a ticket of its own for that, inside the token with which it logs on
//! (RFC 4121 4.1.1, Deleg). This server has no use for it: it is neither kept nor written down.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::time::{SystemTime, UNIX_EPOCH};

use auth::spnego::{KERBEROS, MechTypes, NegTokenInit};
use krb5::{Enctype, Key};
use smb_proto::dialect::Dialect;
use smb_wire::NtStatus;
use tempfile::TempDir;

use crate::mint;
use crate::mint::{FLAGS, GSS_CHECKSUM, REALM, SERVICE, gss_checksum};
use crate::raw::Client;
use crate::server::{Server, path};

/// GSS_C_DELEG_FLAG
const DELEGATION: u32 = 1;
/// What the forwarded ticket consists of, again and again.
const FORWARDED: [u8; 8] = [0xa7, 0x5c, 0xe1, 0x93, 0x0d, 0xb8, 0x66, 0x2f];
/// What the key of the ticket consists of with which the client logs on: whoever has it can read its token.
const SESSION_KEY: [u8; 8] = [0x4e, 0xd1, 0x97, 0x3b, 0xf0, 0x85, 0xca, 0x12];
/// What the server has to keep: the comment of a share.
const KEPT: [u8; 8] = *b"qXzv7KpL";

/// A keytab with the key of [`SERVICE`] that `mint` makes tickets with.
fn keytab() -> Vec<u8> {
    let text = |text: &str| [&u16::try_from(text.len()).unwrap().to_be_bytes(), text.as_bytes()].concat();
    let key = [&[0, 18, 0, 32][..], &[0x11; 32]].concat();
    let names = [text(REALM), text(SERVICE[0]), text(SERVICE[1])].concat();
    // two components; the type of the name, a time, the version, the key, the version again
    let entry = [&[0, 2][..], &names, &[0, 0, 0, 1, 0, 0, 0, 0, 3], &key, &[0, 0, 0, 3]].concat();
    [&[5, 2][..], &u32::try_from(entry.len()).unwrap().to_be_bytes(), &entry].concat()
}

fn start(directory: &TempDir) -> Server {
    let write = |name: &str, content: &[u8]| {
        fs::write(directory.path().join(name), content).unwrap();
        fs::set_permissions(directory.path().join(name), Permissions::from_mode(0o600)).unwrap();
    };
    fs::create_dir(directory.path().join("data")).unwrap();
    write("keytab", &keytab());
    let comment = String::from_utf8(KEPT.repeat(8)).unwrap();
    let config = format!(
        r#"
        smb = "127.0.0.1:0"
        nfs = "off"
        control = "127.0.0.1:0"
        state = "{}"
        keytab = "{}"
        account-realm = ["{REALM}"]
        log = "trace"
        [[share]]
        name = "data"
        directory = "{}"
        comment = "{comment}"
        [[user]]
        name = "alice"
        password = "unused"
        uid = 1000
        "#,
        path(directory, "state"),
        path(directory, "keytab"),
        path(directory, "data"),
    );
    write("anabranch.toml", config.as_bytes());
    let log = File::create(directory.path().join("log")).unwrap();
    Server::start_logging(&["serve", "--config", &path(directory, "anabranch.toml")], log.into())
}

/// SPNEGO's first token of alice, who forwards a ticket.
fn token() -> Vec<u8> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seconds = i64::try_from(now.as_secs()).unwrap();
    let ticket = mint::Ticket {
        session: Key::new(Enctype::Aes256Sha1, &SESSION_KEY.repeat(4)).unwrap(),
        auth_time: seconds - 60,
        start_time: Some(seconds - 30),
        end_time: seconds + 3600,
        ..mint::Ticket::new(Enctype::Aes256Sha1)
    };
    let forwarded = FORWARDED.repeat(250);
    // DlgOpt, Dlgth and the ticket, which is a KRB-CRED
    let length = u16::try_from(forwarded.len()).unwrap().to_le_bytes();
    let checksum = [&gss_checksum(FLAGS | DELEGATION, [0; 16])[..], &[1, 0], &length, &forwarded].concat();
    let token = mint::Token {
        checksum: Some((GSS_CHECKSUM, checksum)),
        ctime: seconds,
        cusec: now.subsec_micros().into(),
        ..mint::Token::new(&ticket)
    };
    let token = token.encode();
    NegTokenInit { mech_types: MechTypes::new(&[KERBEROS]), mech_token: Some(&token), mech_list_mic: None }
        .encode()
}

/// Whether a process has this pattern in its memory, twice in a row: at any place of a word it is one of eight words.
fn has(process: u32, pattern: [u8; 8]) -> bool {
    let rotated = |by: usize| {
        let mut word = pattern;
        word.rotate_left(by);
        u64::from_ne_bytes(word)
    };
    let words: [u64; 8] = std::array::from_fn(rotated);
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap();
    let memory = File::open(format!("/proc/{process}/mem")).unwrap();
    let mut chunk = vec![0; 1 << 20];
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let (start, rest) = line.split_once('-').unwrap();
        let (end, _) = rest.split_once(' ').unwrap();
        let [mut at, end] = [start, end].map(|text| u64::from_str_radix(text, 16).unwrap());
        while at < end {
            let most = usize::try_from(end - at).unwrap().min(chunk.len());
            // a mapping may have ended meanwhile
            let Ok(read) = memory.read_at(&mut chunk[..most], at) else { break };
            let mut before = None;
            for word in chunk[..read].as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)) {
                if before == Some(word) && words.contains(&word) {
                    return true;
                }
                before = Some(word);
            }
            at += u64::try_from(read.max(8)).unwrap();
        }
    }
    false
}

#[test]
fn a_forwarded_ticket_is_neither_kept_nor_written_down() {
    let directory = TempDir::new().unwrap();
    let server = start(&directory);
    let mut client = Client::connect(server.address("smb").parse().unwrap());
    client.negotiate(&[Dialect::Smb311]);
    assert_eq!(client.session_setup(&token()).1.status(), NtStatus::SUCCESS);
    // The session is there, and nothing of its logon is under way.
    let process = server.child.id();
    assert!(has(process, KEPT), "the memory can be read");
    assert!(!has(process, FORWARDED), "the forwarded ticket is in memory");
    assert!(!has(process, SESSION_KEY), "the key that opens the client's token is in memory");
    let log = fs::read(directory.path().join("log")).unwrap();
    let hex: String = FORWARDED.iter().map(|byte| format!("{byte:02x}")).collect();
    let text = String::from_utf8_lossy(&log);
    assert!(text.contains("session begins"), "the log is complete: {text}");
    assert!(!text.to_lowercase().contains(&hex) && !log.windows(8).any(|part| part == FORWARDED));
}
