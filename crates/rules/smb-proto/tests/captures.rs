//! Sessions between Samba's client and server (testdata/SOURCES.md). Starting with the key of the authentication, every
//! key is derived, every encrypted message opened and every signature checked, as the client and as the server.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use anabranch_smb_proto as smb_proto;
use smb_proto::dialect::{Cipher, Dialect, SigningAlgorithm};
use smb_proto::encryption::{Opener, TRANSFORM_HEADER_LEN};
use smb_proto::keys::SessionKeys;
use smb_proto::negotiate::{Negotiated, Offer, negotiate};
use smb_proto::preauth::PreauthHash;
use smb_proto::signing::{Sender, SigningKey};
use smb_wire::chain::Chain;
use smb_wire::negotiate::{Request, Response};
use smb_wire::negotiate_context::NegotiateContext;
use smb_wire::{Command, Header, HeaderFlags, NtStatus};

struct Capture {
    values: Vec<(String, Vec<u8>)>,
    frames: Vec<(Sender, Vec<u8>)>,
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

impl Capture {
    fn parse(text: &str) -> Self {
        let (mut values, mut frames) = (Vec::new(), Vec::new());
        for (name, hex) in text.lines().map(|line| line.split_once(' ').unwrap()) {
            match name {
                ">" => frames.push((Sender::Client, bytes(hex))),
                "<" => frames.push((Sender::Server, bytes(hex))),
                _ => values.push((name.to_owned(), bytes(hex))),
            }
        }
        Self { values, frames }
    }

    fn value(&self, name: &str) -> Option<&[u8]> {
        self.values.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_slice())
    }

    /// What the two sides agreed on, from their NEGOTIATE messages. The negotiation under test, offering only what the
    /// server selected, must reach the same result.
    fn negotiated(&self) -> Negotiated {
        let response = Response::decode(&self.frames[1].1).unwrap();
        let dialect = Dialect::from_revision(response.dialect.into()).unwrap();
        let (mut ciphers, mut algorithms) = (vec![Cipher::Aes128Ccm], vec![]);
        for context in &response.contexts {
            match context {
                NegotiateContext::Encryption(ids) => {
                    ciphers = ids.iter().filter_map(|id| Cipher::from_id((*id).into())).collect();
                }
                NegotiateContext::Signing(ids) => {
                    algorithms =
                        ids.iter().filter_map(|id| SigningAlgorithm::from_id((*id).into())).collect();
                }
                _ => {}
            }
        }
        let request = Request::decode(&self.frames[0].1).unwrap();
        let offer = Offer {
            dialects: dialect..=dialect,
            ciphers,
            signing_algorithms: algorithms.clone(),
            transport_security: false,
            capabilities: response.capabilities,
        };
        let agreed = negotiate(&offer, &request).unwrap();
        assert!(algorithms.is_empty() || algorithms == [agreed.signing_algorithm]);
        agreed
    }
}

/// Counts of what was checked.
#[derive(Debug, Default, PartialEq)]
struct Checked {
    signed: usize,
    encrypted: usize,
}

fn replay(text: &str) -> (Negotiated, Checked) {
    let capture = Capture::parse(text);
    let agreed = capture.negotiated();
    let session_key = capture.value("session-key").unwrap();
    let mut preauth = PreauthHash::new();
    let mut keys = None;
    let mut checked = Checked::default();
    for (sender, frame) in capture.frames.iter().cloned() {
        let frame = match open(&agreed, keys.as_ref(), sender, frame) {
            Ok(plain) => {
                checked.encrypted += 1;
                plain
            }
            Err(plain) => plain,
        };
        let ranges: Vec<_> = Chain::new(&frame).map(Result::unwrap).collect();
        for range in ranges {
            let message = &frame[range];
            let header = Header::decode(message).unwrap();
            let last = header.status_or_channel_sequence == NtStatus::SUCCESS.0 && sender == Sender::Server;
            if header.command == Command::Negotiate || (header.command == Command::SessionSetup && !last) {
                preauth.update(message);
            } else if header.command == Command::SessionSetup {
                let derived = SessionKeys::derive(agreed.dialect, agreed.cipher, session_key, &preauth);
                check_keys(&capture, &derived);
                keys = Some(derived);
            }
            if header.flags.contains(HeaderFlags::SIGNED) {
                check_signature(&agreed, keys.as_ref().unwrap(), sender, message);
                checked.signed += 1;
            }
        }
    }
    (agreed, checked)
}

/// The plaintext frame, which is opened if it is encrypted.
fn open(
    agreed: &Negotiated,
    keys: Option<&SessionKeys>,
    sender: Sender,
    mut frame: Vec<u8>,
) -> Result<Vec<u8>, Vec<u8>> {
    if frame[0] != 0xfd {
        return Err(frame);
    }
    let keys = keys.unwrap();
    let key = if sender == Sender::Client { keys.decryption } else { keys.encryption }.unwrap();
    let opener = Opener::new(agreed.cipher.unwrap(), key.as_bytes()).unwrap();
    opener.open(&mut frame).unwrap();
    Ok(frame.split_off(TRANSFORM_HEADER_LEN))
}

fn check_keys(capture: &Capture, keys: &SessionKeys) {
    let Some(signing) = capture.value("signing-key") else { return };
    assert_eq!(keys.signing, signing, "signing");
    assert_eq!(keys.application, capture.value("application-key").unwrap(), "application");
    if let (Some(out), Some(into)) = (keys.encryption, keys.decryption) {
        assert_eq!(out.as_bytes(), capture.value("server-out-key").unwrap(), "server out");
        assert_eq!(into.as_bytes(), capture.value("server-in-key").unwrap(), "server in");
    }
}

/// The signature is right, signing again gives the same bytes, and any change makes it wrong.
fn check_signature(agreed: &Negotiated, keys: &SessionKeys, sender: Sender, message: &[u8]) {
    let key = SigningKey::new(agreed.signing_algorithm, &keys.signing).unwrap();
    let mut copy = message.to_vec();
    assert_eq!(key.verify(&mut copy, sender), Ok(()));
    assert_eq!(copy, message);
    key.sign(&mut copy, sender).unwrap();
    assert_eq!(copy, message);
    *copy.last_mut().unwrap() ^= 1;
    assert!(key.verify(&mut copy, sender).is_err());
    let other = if sender == Sender::Client { Sender::Server } else { Sender::Client };
    let gmac = agreed.signing_algorithm == SigningAlgorithm::AesGmac;
    assert_eq!(key.verify(&mut message.to_vec(), other).is_err(), gmac, "only GMAC covers the direction");
}

macro_rules! capture {
    ($name:literal) => {
        replay(include_str!(concat!("../testdata/captures/", $name, ".txt")))
    };
}

#[test]
fn signed_sessions() {
    use SigningAlgorithm::{AesCmac, AesGmac, HmacSha256};
    let sessions = [
        (capture!("smb202-sign"), Dialect::Smb202, HmacSha256),
        (capture!("smb210-sign"), Dialect::Smb210, HmacSha256),
        (capture!("smb302-sign"), Dialect::Smb302, AesCmac),
        (capture!("smb311-cmac"), Dialect::Smb311, AesCmac),
        (capture!("smb311-hmac"), Dialect::Smb311, HmacSha256),
        (capture!("smb311-gmac"), Dialect::Smb311, AesGmac),
        (capture!("smb311-aes256gcm-sign"), Dialect::Smb311, AesGmac),
    ];
    for ((agreed, checked), dialect, algorithm) in sessions {
        assert_eq!((agreed.dialect, agreed.signing_algorithm), (dialect, algorithm));
        assert!(checked.signed >= 24 && checked.encrypted == 0, "{dialect:?} {algorithm:?}: {checked:?}");
    }
}

#[test]
fn encrypted_sessions() {
    let sessions = [
        (capture!("smb300-encrypt"), Dialect::Smb300, Cipher::Aes128Ccm),
        (capture!("smb311-aes128ccm"), Dialect::Smb311, Cipher::Aes128Ccm),
        (capture!("smb311-aes128gcm"), Dialect::Smb311, Cipher::Aes128Gcm),
        (capture!("smb311-aes256ccm"), Dialect::Smb311, Cipher::Aes256Ccm),
        (capture!("smb311-aes256gcm"), Dialect::Smb311, Cipher::Aes256Gcm),
    ];
    for ((agreed, checked), dialect, cipher) in sessions {
        assert_eq!((agreed.dialect, agreed.cipher), (dialect, Some(cipher)));
        // the final SESSION_SETUP response is signed
        assert!(checked.encrypted >= 24 && checked.signed >= 1, "{dialect:?} {cipher:?}: {checked:?}");
    }
}

/// The complete logon of "SMB 2 and SMB 3 security in Windows 10" (Microsoft, 2017): preauthentication hash, keys, and
/// the signature of the last response, which Windows made.
#[test]
fn microsofts_example_of_smb_3_1_1() {
    let (agreed, checked) = replay(include_str!("../testdata/microsoft-smb311.txt"));
    assert_eq!((agreed.dialect, agreed.cipher), (Dialect::Smb311, Some(Cipher::Aes128Gcm)));
    assert_eq!(checked, Checked { signed: 1, encrypted: 0 });
}
