use proptest::prelude::*;

use super::*;

fn pair(cipher: Cipher) -> (Sealer, Opener) {
    let key: Vec<u8> = (1..).take(cipher.key_len()).collect();
    (Sealer::new(cipher, &key, 0x1234_5678_9abc, [9, 8, 7, 6]).unwrap(), Opener::new(cipher, &key).unwrap())
}

fn sealed(sealer: &Sealer, message: &[u8]) -> Vec<u8> {
    let mut frame = vec![0xaa; TRANSFORM_HEADER_LEN];
    frame.extend_from_slice(message);
    sealer.seal(&mut frame).unwrap();
    frame
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// The transformed messages of "Encryption in SMB 3.0: A protocol perspective" (Microsoft, 2012): a WRITE and a READ
/// between Windows 8 and Windows Server 2012, AES-128-CCM.
#[test]
fn microsofts_example_of_smb_3_0_opens() {
    let client_out = bytes("261B72350558F2E9DCF613070383EDBF");
    let client_in = bytes("8FE2B57EC34D2DB5B1A9727F526BBDB5");
    let write_request = "FD534D4281A286535415445DAE393921E44FA42E66E69A111892584FB5ED524A
        744DA3EE87000000000001001100001400E4080025C8FEE16605A437832D1CD5
        2DA9F4645333482A175FE5384563F45FCDAFAEF38BC62BA4D5C62897996625A4
        4C29BE5658DE2E6117585779E7B59FFD971278D08580D7FA899E410E910EABF5
        AA1DB43050B33B49182637759AC15D84BFCDF5B6B238993C0F4CF4D6012023F6
        C627297075D84B7803912D0A9639634453595EF3E33FFE4E7AC2AB";
    let read_response = "FD534D42ABD518B68C2F04D7879F482B689EB83F870000000000000011000014
        00E4080067000000000001001100001400E40800493D6FE2BDBEB435CF5F5469
        70C7BB57BF20E713C75A3D045507E0D68E5C0346659D6FFB8AC1504A786CA2BB
        89C9E7FE4F313E910A04180D2D0EA7DF636329E5A3285984500EF86FE9D55DA4
        FAB9531CFDD4C551D47F3C73124BB4590A45052B694048B991CCF5";
    for (key, frame) in [(client_out, write_request), (client_in, read_response)] {
        let mut frame = bytes(frame);
        assert_eq!(session_id(&frame), Some(0x0008_e400_1400_0011));
        let opener = Opener::new(Cipher::Aes128Ccm, &key).unwrap();
        let message = opener.open(&mut frame).unwrap();
        assert!(message.starts_with(b"\xfeSMB"));
        assert!(message.ends_with(b"Smb3 encryption testing"));
    }
}

/// The same WRITE, sealed with its own nonce: byte for byte what Windows sent.
#[test]
fn microsofts_example_of_smb_3_0_seals() {
    let message = bytes(
        "FE534D4240000100000000000900400008000000000000000400000000000000
        FFFE0000010000001100001400E4080000000000000000000000000000000000
        3100700017000000000000000000000015010000390000020100000039020000
        00000000000000007000000000000000536D623320656E6372797074696F6E20
        74657374696E67",
    );
    let key = bytes("261B72350558F2E9DCF613070383EDBF");
    let aead = Aead::new(Cipher::Aes128Ccm, &key).unwrap();
    let header = bytes(
        "FD534D420000000000000000000000000000000066E69A111892584FB5ED524A
        744DA3EE87000000000001001100001400E40800",
    );
    let mut encrypted = message.clone();
    let tag = aead.seal(header[20..36].try_into().unwrap(), &header[AAD], &mut encrypted).unwrap();
    assert_eq!(tag.to_vec(), bytes("81A286535415445DAE393921E44FA42E"));
    assert!(encrypted.starts_with(&bytes("25C8FEE16605A437832D1CD52DA9F464")));
    assert!(encrypted.ends_with(&bytes("E33FFE4E7AC2AB")));
}

#[test]
fn no_nonce_comes_twice_and_unused_bytes_are_zero() {
    for cipher in Cipher::ALL {
        let (sealer, _) = pair(cipher);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..600 {
            let frame = sealed(&sealer, &[7; 64]);
            let nonce = frame[20..36].to_vec();
            assert!(nonce[cipher.nonce_len()..].iter().all(|byte| *byte == 0));
            assert!(seen.insert(nonce));
        }
    }
}

#[test]
fn what_is_no_encrypted_message_is_refused() {
    let (sealer, opener) = pair(Cipher::Aes128Gcm);
    let good = sealed(&sealer, &[7; 64]);
    for length in 0..good.len() {
        assert!(opener.open(&mut good[..length].to_vec()).is_err());
    }
    let change = |at: usize, value: u8| {
        let mut frame = good.clone();
        frame[at] = value;
        opener.open(&mut frame).unwrap_err()
    };
    assert!(matches!(change(0, 0xfe), OpenError::Malformed(_)));
    assert!(matches!(change(36, 63), OpenError::Malformed(_)));
    assert!(matches!(change(42, 2), OpenError::Malformed(_)));
    assert_eq!(change(44, 0), OpenError::Forged);
    assert_eq!(session_id(&good), Some(0x1234_5678_9abc));
    assert_eq!(session_id(b"\xfeSMB"), None);
    assert_eq!(sealer.seal(&mut [0; TRANSFORM_HEADER_LEN]), Err(SealError::Length));
    assert_eq!(sealer.seal(&mut [0; 5]), Err(SealError::Length));
    assert!(matches!(Sealer::new(Cipher::Aes256Gcm, &[1; 16], 1, [0; 4]), Err(SealError::Key)));
    assert!(matches!(Opener::new(Cipher::Aes128Ccm, &[1; 32]), Err(SealError::Key)));
}

#[test]
fn the_ciphers_and_keys_are_told_apart() {
    for cipher in Cipher::ALL {
        for other in Cipher::ALL {
            let (sealer, _) = pair(cipher);
            let (_, opener) = pair(other);
            let mut frame = sealed(&sealer, &[7; 100]);
            assert_eq!(opener.open(&mut frame).is_ok(), cipher == other);
        }
    }
}

proptest! {
    #[test]
    fn opening_undoes_sealing(
        which in 0..4usize,
        message in prop::collection::vec(any::<u8>(), 1..3000),
        flip in any::<prop::sample::Index>(),
        bit in 0..8u32,
    ) {
        let (sealer, opener) = pair(Cipher::ALL[which]);
        let frame = sealed(&sealer, &message);
        prop_assert!(message.len() < 16 || frame[TRANSFORM_HEADER_LEN..] != message[..]);
        let mut copy = frame.clone();
        prop_assert_eq!(opener.open(&mut copy).unwrap(), &message[..]);
        // any changed bit is noticed, even in the header
        let mut forged = frame;
        let at = flip.index(forged.len());
        forged[at] ^= 1 << bit;
        prop_assert!(opener.open(&mut forged).is_err());
    }
}

#[test]
fn no_bytes_make_opening_panic() {
    let openers: Vec<Opener> = Cipher::ALL.into_iter().map(|cipher| pair(cipher).1).collect();
    bolero::check!().for_each(|bytes: &[u8]| {
        // unchanged, and as a message of the right size, so that they get as far as decryption
        let header = TransformHeader {
            signature: [0; 16],
            nonce: [1; 16],
            original_message_size: u32::try_from(bytes.len()).unwrap(),
            flags: FLAG_ENCRYPTED,
            session_id: 1,
        };
        let framed = [header.to_bytes().as_slice(), bytes].concat();
        for opener in &openers {
            assert!(opener.open(&mut bytes.to_vec()).is_err());
            assert!(opener.open(&mut framed.clone()).is_err());
        }
    });
}
