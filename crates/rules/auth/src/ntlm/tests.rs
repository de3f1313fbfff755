use rc4::StreamCipher;

use super::acceptor::Challenge;
use super::crypto::{rc4, rc4_once, verify_hmac_md5};
use super::*;
use crate::accounts::{Account, AccountList, nt_hash};
use crate::spnego::{NTLMSSP, NegTokenResp, Token, neg_token_init2};
use crate::{Identity, Reason};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn array<const N: usize>(hex: &str) -> [u8; N] {
    bytes(hex).try_into().unwrap()
}

fn account(name: &str, password: &str) -> AccountList {
    let account = Account {
        name: name.into(),
        nt_hash: Some(nt_hash(password)),
        keys: None,
        uid: 1000,
        gid: 1000,
        groups: vec![],
        sid: None,
        disabled: false,
    };
    AccountList(vec![account])
}

/// The example of [MS-NLMP] 4.2: User "User", domain "Domain", password "Password", server challenge 01..ef, client
/// challenge aa.., time 0, random session key 55.. .
mod example {
    use super::*;

    const SERVER_CHALLENGE: &str = "0123456789abcdef";
    const TEMP: &str = "01010000000000000000000000000000aaaaaaaaaaaaaaaa00000000
        02000c0044006f006d00610069006e0001000c005300650072007600650072000000000000000000";
    /// 4.2.4.3
    const CHALLENGE: &str = "4e544c4d53535000020000000c000c003800000033828ae20123456789abcdef
        0000000000000000240024004400000006007017 0000000f
        53006500720076006500720002000c0044006f006d00610069006e0001000c00530065007200760065007200
        00000000";
    /// 4.2.4.3
    const AUTHENTICATE: &str = "4e544c4d5353500003000000180018006c00000054005400840000000c000c00
        480000000800080054000000100010005c00000010001000d8000000358288e2
        0501280a0000000f44006f006d00610069006e00550073006500720043004f00
        4d005000550054004500520086c35097ac9cec102554764a57cccc19aaaaaaaa
        aaaaaaaa68cd0ab851e51c96aabc927bebef6a1c010100000000000000000000
        00000000aaaaaaaaaaaaaaaa0000000002000c0044006f006d00610069006e00
        01000c005300650072007600650072000000000000000000c5dad2544fc97990
        94ce1ce90bc9d03e";

    fn response_key() -> [u8; 16] {
        let domain: Vec<u8> = "Domain".encode_utf16().flat_map(u16::to_le_bytes).collect();
        ntowf_v2(&nt_hash("Password"), "User", &domain)
    }

    /// 4.2.4.1.1, 4.2.4.1.2, 4.2.4.2.2
    #[test]
    fn the_keys_and_the_proof() {
        assert_eq!(response_key(), array("0c868a403bfd7a93a3001ef22ef02e3f"));
        let proof = nt_proof(&response_key(), &array(SERVER_CHALLENGE), &bytes(TEMP));
        assert_eq!(proof, array("68cd0ab851e51c96aabc927bebef6a1c"));
        let key = session_base_key(&response_key(), &proof);
        assert_eq!(key, array("8de40ccadbc14a82f15cb0ad0de95ca3"));
        // 4.2.4.2.3
        assert_eq!(rc4_once(&key, &[0x55; 16]), array("c5dad2544fc9799094ce1ce90bc9d03e"));
    }

    #[test]
    fn the_messages_decode() {
        let challenge = bytes(CHALLENGE);
        let challenge = ChallengeMessage::decode(&challenge).unwrap();
        assert_eq!(challenge.server_challenge, array(SERVER_CHALLENGE));
        assert_eq!(challenge.target_name, b"S\0e\0r\0v\0e\0r\0");
        let pairs = AvPairs::decode(challenge.target_info).unwrap();
        assert_eq!(pairs.find(AvId::NbDomainName), Some(&b"D\0o\0m\0a\0i\0n\0"[..]));
        assert_eq!(pairs.find(AvId::NbComputerName), Some(&b"S\0e\0r\0v\0e\0r\0"[..]));
        assert_eq!(pairs.find(AvId::Timestamp), None);
        let authenticate = bytes(AUTHENTICATE);
        let message = AuthenticateMessage::decode(&authenticate).unwrap();
        assert_eq!((message.user, message.mic), (&b"U\0s\0e\0r\0"[..], None));
        assert_eq!(message.workstation, b"C\0O\0M\0P\0U\0T\0E\0R\0");
        assert_eq!(message.nt_response[16..], bytes(TEMP));
    }

    #[test]
    fn the_client_is_let_in() {
        let challenge = Challenge::of(b"", &bytes(CHALLENGE));
        let outcome =
            challenge.authenticate(&bytes(AUTHENTICATE), None, &account("user", "Password")).unwrap();
        assert_eq!(outcome.session_key, [0x55; 16]);
        assert!(!outcome.mic);
        let refused = challenge.authenticate(&bytes(AUTHENTICATE), None, &account("User", "password"));
        assert_eq!(refused.unwrap_err(), (Reason::WrongPassword, Some("User".into())));
    }

    /// 4.2.4.4: the example encrypts the message first, with the same RC4 stream.
    #[test]
    fn signatures() {
        let flags = NegotiateFlags::from_bits_retain(0xe28a_8233);
        let mut signer = MessageSigner::new(&[0x55; 16], flags, Side::Client).unwrap();
        let mut plaintext: Vec<u8> = "Plaintext".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let message = plaintext.clone();
        rc4(&array("59f600973cc4960a25480a7c196e4c58")).apply_keystream(&mut plaintext);
        assert_eq!(plaintext, bytes("54e50165bf1936dc996020c1811b0f06fb5f"));
        signer.encrypt(&mut plaintext.clone());
        assert_eq!(signer.sign(&message), array("010000007fb38ec5c55d497600000000"));
    }
}

/// An exchange of tokens between other implementations (testdata/SOURCES.md).
struct Capture {
    hint: Option<Vec<u8>>,
    session_key: Option<[u8; 16]>,
    tokens: Vec<Vec<u8>>,
}

impl Capture {
    fn parse(text: &str) -> Self {
        let mut capture = Self { hint: None, session_key: None, tokens: Vec::new() };
        for (name, hex) in text.lines().map(|line| line.split_once(' ').unwrap()) {
            match name {
                "hint" => capture.hint = Some(bytes(hex)),
                "session-key" => capture.session_key = Some(array(hex)),
                _ => capture.tokens.push(bytes(hex)),
            }
        }
        capture
    }

    fn negotiate(&self) -> (&[u8], Vec<u8>) {
        let Token::Init(init) = Token::decode(&self.tokens[0]).unwrap() else { panic!("a NegTokenInit") };
        (init.mech_token.unwrap(), init.mech_types.encoding)
    }

    fn response(&self, index: usize) -> NegTokenResp<'_> {
        let Token::Resp(response) = Token::decode(&self.tokens[index]).unwrap() else {
            panic!("a NegTokenResp")
        };
        assert_eq!(response.encode(), self.tokens[index], "our encoding is theirs");
        response
    }

    fn challenge(&self) -> Challenge {
        Challenge::of(self.negotiate().0, self.response(1).response_token.unwrap())
    }

    fn authenticate(&self) -> &[u8] {
        self.response(2).response_token.unwrap()
    }

    /// Both sides' MICs over the mechanism list.
    fn check_mech_list_mics(&self, key: &[u8; 16], flags: NegotiateFlags) {
        let (_, list) = self.negotiate();
        for (index, side) in [(2, Side::Client), (3, Side::Server)] {
            let mic = self.response(index).mech_list_mic.unwrap();
            assert!(MessageSigner::new(key, flags, side).unwrap().verify(&list, mic), "{side:?}");
            assert_eq!(MessageSigner::new(key, flags, side).unwrap().sign(&list), mic);
        }
    }
}

#[test]
fn smbclient_logs_on() {
    let capture = Capture::parse(include_str!("../../testdata/captures/smbclient.txt"));
    assert_eq!(capture.hint.as_deref(), Some(neg_token_init2(&[NTLMSSP]).as_slice()));
    let challenge = capture.challenge();
    let outcome =
        challenge.authenticate(capture.authenticate(), None, &account("bench", "bench-pass")).unwrap();
    assert_eq!(Some(outcome.session_key), capture.session_key);
    assert!(outcome.mic);
    capture.check_mech_list_mics(&outcome.session_key, outcome.flags);

    let refused = challenge.authenticate(capture.authenticate(), None, &account("bench", "wrong"));
    assert_eq!(refused.unwrap_err(), (Reason::WrongPassword, Some("bench".into())));
    let refused = challenge.authenticate(capture.authenticate(), None, &account("someone", "bench-pass"));
    assert_eq!(refused.unwrap_err(), (Reason::UnknownUser, Some("bench".into())));
    // any changed byte of the message is noticed: by the proof, or by the MIC
    for at in 0..capture.authenticate().len() {
        let mut forged = capture.authenticate().to_vec();
        forged[at] ^= 0x01;
        let outcome = challenge.authenticate(&forged, None, &account("bench", "bench-pass"));
        assert!(outcome.is_err(), "byte {at}");
    }
}

#[test]
fn smbclient_logs_on_with_a_wrong_password() {
    let capture = Capture::parse(include_str!("../../testdata/captures/smbclient-wrong-password.txt"));
    let outcome =
        capture.challenge().authenticate(capture.authenticate(), None, &account("bench", "bench-pass"));
    assert_eq!(outcome.unwrap_err().0, Reason::WrongPassword);
}

#[test]
fn smbclient_is_anonymous() {
    let capture = Capture::parse(include_str!("../../testdata/captures/smbclient-anonymous.txt"));
    let outcome =
        capture.challenge().authenticate(capture.authenticate(), None, &AccountList::default()).unwrap();
    assert_eq!(outcome.identity, Identity::Anonymous);
}

/// Windows 10 and its server; the password is not known, the session key is.
#[test]
fn windows_protects_its_messages_as_we_do() {
    let capture = Capture::parse(include_str!("../../testdata/captures/windows.txt"));
    let key = capture.session_key.unwrap();
    let authenticate = capture.authenticate();
    let message = AuthenticateMessage::decode(authenticate).unwrap();
    let pairs = AvPairs::decode(&message.nt_response[16 + 28..]).unwrap();
    assert!(pairs.flags().contains(AvFlags::MIC));
    assert_eq!(pairs.find(AvId::Timestamp).unwrap(), &message.nt_response[16 + 8..16 + 16]);
    assert_eq!(
        pairs.find(AvId::TargetName).unwrap(),
        "cifs/SUT311".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()
    );
    let parts = [
        capture.negotiate().0,
        capture.response(1).response_token.unwrap(),
        &authenticate[..72],
        &[0; 16],
        &authenticate[88..],
    ];
    assert!(verify_hmac_md5(&key, &parts, &message.mic.unwrap()));
    capture.check_mech_list_mics(&key, message.flags);
}

#[test]
fn av_pairs_that_are_none_are_refused() {
    let good = bytes("0600040002000000 00000000");
    assert_eq!(AvPairs::decode(&good).unwrap().flags(), AvFlags::MIC);
    for length in 0..good.len() {
        assert!(AvPairs::decode(&good[..length]).is_err(), "no end after {length}");
    }
    assert!(AvPairs::decode(&bytes("0600ffff02000000 00000000")).is_err());
    // a second MsvAvFlags clears nothing; one with a wrong size is ignored; what follows the end is not read
    let flags = |hex| AvPairs::decode(&bytes(hex)).unwrap().flags();
    assert_eq!(flags("0600040002000000 0600040000000000 00000000"), AvFlags::MIC);
    assert_eq!(flags("060002000200 00000000"), AvFlags::empty());
    assert_eq!(flags("00000000 0600040002000000"), AvFlags::empty());
}

#[test]
fn payload_outside_the_message_or_in_its_header_is_refused() {
    let names: [&[u8]; 2] = [b"u\0s\0", b"d\0"];
    let message = AuthenticateMessage {
        lm_response: &[1; 24],
        nt_response: &[2; 60],
        domain: names[1],
        user: names[0],
        workstation: &[],
        encrypted_session_key: &[3; 16],
        flags: NegotiateFlags::UNICODE,
        mic: Some([4; 16]),
    };
    let good = message.encode();
    assert_eq!(AuthenticateMessage::decode(&good), Ok(message));
    for length in 0..good.len() {
        assert!(AuthenticateMessage::decode(&good[..length]).is_err(), "{length}");
    }
    let offsets = [16, 24, 32, 40, 56]; // of the fields that are not empty
    for at in offsets {
        for offset in [0, 8, 63, u32::try_from(good.len()).unwrap(), u32::MAX, u32::MAX - 3] {
            let mut bad = good.clone();
            bad[at..at + 4].copy_from_slice(&offset.to_le_bytes());
            assert_eq!(
                AuthenticateMessage::decode(&bad),
                Err(MessageError),
                "field at {at}, offset {offset}"
            );
        }
    }
    // payload in the place of the MIC: then there is no MIC
    let mut bad = good;
    bad[16..20].copy_from_slice(&64u32.to_le_bytes());
    assert_eq!(AuthenticateMessage::decode(&bad).unwrap().mic, None);
}

#[test]
fn no_bytes_make_a_decoder_panic() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let _ = NegotiateMessage::decode(bytes);
        let _ = ChallengeMessage::decode(bytes);
        if let Ok(pairs) = AvPairs::decode(bytes) {
            assert!(pairs.iter().count() <= bytes.len());
            let _ = pairs.flags();
        }
        if let Ok(message) = AuthenticateMessage::decode(bytes) {
            assert_eq!(
                AuthenticateMessage::decode(&message.encode()).map(|again| again.user),
                Ok(message.user)
            );
        }
    });
}
