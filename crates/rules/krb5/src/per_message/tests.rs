use super::*;
use crate::Enctype;

fn contexts(enctype: Enctype, origin: KeyOrigin) -> (PerMessage, PerMessage) {
    let key = Key::new(enctype, &vec![0x42; enctype.key_len()]).unwrap();
    let side = |side| PerMessage::new(&key, side, origin).unwrap();
    (side(Side::Initiator), side(Side::Acceptor))
}

fn each(check: impl Fn(Enctype, &PerMessage, &PerMessage)) {
    for enctype in Enctype::ALL {
        for origin in [KeyOrigin::Acceptor, KeyOrigin::Initiator] {
            let (initiator, acceptor) = contexts(enctype, origin);
            check(enctype, &initiator, &acceptor);
            check(enctype, &acceptor, &initiator);
        }
    }
}

fn sealed(context: &PerMessage, number: u64, message: &[u8]) -> Vec<u8> {
    let head = [0xee; PerMessage::SEALED_HEAD];
    let mut buffer = [&head[..], message, &vec![0xee; context.sealed_tail()]].concat();
    context.seal(number, &[5; 16], &mut buffer).unwrap();
    buffer
}

fn signed(context: &PerMessage, number: u64, message: &[u8]) -> Vec<u8> {
    let head = [0xee; PerMessage::SIGNED_HEAD];
    let mut buffer = [&head[..], message, &vec![0xee; context.signed_tail()]].concat();
    context.sign(number, &mut buffer).unwrap();
    buffer
}

const LENGTHS: [usize; 7] = [0, 1, 15, 16, 17, 100, 1000];

#[test]
fn a_mic_is_of_one_message_in_any_parts() {
    each(|enctype, ours, theirs| {
        let mic = ours.mic(7, &[b"one ", b"message"]);
        assert_eq!(mic.as_ref().len(), 16 + enctype.tag_len());
        assert_eq!(theirs.verify_mic(&[b"one message"], mic.as_ref()), Ok(7));
        let many: Vec<&[u8]> = b"one message".chunks(1).collect();
        assert_eq!(theirs.verify_mic(&many, mic.as_ref()), Ok(7));
        assert_eq!(theirs.verify_mic(&[b"one massage"], mic.as_ref()), Err(PerMessageError::Changed));
        assert_eq!(ours.verify_mic(&[b"one message"], mic.as_ref()), Err(PerMessageError::OwnToken));
    });
}

#[test]
fn every_changed_bit_and_length_of_a_mic_is_refused() {
    each(|_, ours, theirs| {
        let mic = ours.mic(u64::MAX, &[b"message"]).as_ref().to_vec();
        for bit in 0..mic.len() * 8 {
            let mut other = mic.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(theirs.verify_mic(&[b"message"], &other).is_err(), "{bit}");
        }
        for length in 0..mic.len() {
            assert!(theirs.verify_mic(&[b"message"], &mic[..length]).is_err(), "{length}");
        }
    });
}

#[test]
fn messages_come_out_of_wrap_tokens() {
    each(|_, ours, theirs| {
        for length in LENGTHS {
            let message = vec![0x77; length];
            for (mut token, protection) in [
                (sealed(ours, 9, &message), Protection::Sealed),
                (signed(ours, 9, &message), Protection::Signed),
            ] {
                let unwrapped = theirs.unwrap(&mut token).unwrap();
                assert_eq!((unwrapped.sequence_number, unwrapped.protection), (9, protection));
                assert_eq!(token[unwrapped.message], message);
            }
        }
    });
}

/// RFC 4121 4.2.5: "The receiver MUST be able to interpret all possible rotation count values, including rotation counts
/// greater than the length of the token."
#[test]
fn rotated_tokens_are_turned_back() {
    each(|_, ours, theirs| {
        for whole in [sealed(ours, 1, b"the message"), signed(ours, 1, b"the message")] {
            for count in [0, 1, 12, 16, 28, 40, 100, 0xffff_u16] {
                let mut token = whole.clone();
                token[6..8].copy_from_slice(&count.to_be_bytes());
                let body = &mut token[16..];
                let turned = usize::from(count) % body.len();
                body.rotate_right(turned);
                let unwrapped = theirs.unwrap(&mut token).unwrap();
                assert_eq!(&token[unwrapped.message], b"the message", "{count}");
            }
        }
    });
}

/// Windows puts filler behind a message (RFC 4121 4.2.3: EC).
#[test]
fn filler_is_cut_off() {
    let (initiator, acceptor) = contexts(Enctype::Aes256Sha1, KeyOrigin::Initiator);
    let head = [5, 4, 2, 0xff, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let plain = [&b"message"[..], &[0xff; 3], &head].concat();
    let body = initiator.seal.sealed(&[5; 16], &plain).unwrap();
    let mut token = [&head[..], &body].concat();
    let unwrapped = acceptor.unwrap(&mut token).unwrap();
    assert_eq!(&token[unwrapped.message], b"message");
    let more = [5, 4, 2, 0xff, 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    let body = initiator.seal.sealed(&[5; 16], &[&b"message"[..], &[0xff; 3], &more].concat()).unwrap();
    let unwrapped = acceptor.unwrap(&mut [&more[..], &body].concat());
    assert_eq!(unwrapped, Err(PerMessageError::Malformed));
}

#[test]
fn every_changed_bit_and_length_of_a_wrap_token_is_refused() {
    each(|_, ours, theirs| {
        for whole in
            [sealed(ours, 1, b"a message of some length"), signed(ours, 1, b"a message of some length")]
        {
            for bit in 0..whole.len() * 8 {
                let mut token = whole.clone();
                token[bit / 8] ^= 1 << (bit % 8);
                assert!(theirs.unwrap(&mut token).is_err(), "{bit}");
            }
            for length in 0..whole.len() {
                assert!(theirs.unwrap(&mut whole[..length].to_vec()).is_err(), "{length}");
            }
        }
    });
}

#[test]
fn the_two_ways_and_the_two_kinds_of_keys_are_apart() {
    let (initiator, acceptor) = contexts(Enctype::Aes256Sha1, KeyOrigin::Acceptor);
    let (other_initiator, _) = contexts(Enctype::Aes256Sha1, KeyOrigin::Initiator);
    assert_eq!(initiator.unwrap(&mut sealed(&initiator, 1, b"m")), Err(PerMessageError::OwnToken));
    assert_eq!(acceptor.unwrap(&mut sealed(&other_initiator, 1, b"m")), Err(PerMessageError::OtherKey));
    assert_eq!(
        acceptor.verify_mic(&[b"m"], other_initiator.mic(1, &[b"m"]).as_ref()),
        Err(PerMessageError::OtherKey)
    );
    // a token that claims to be of the other side does not verify either
    let mut token = sealed(&acceptor, 1, b"m");
    token[2] ^= SENT_BY_ACCEPTOR;
    assert_eq!(acceptor.unwrap(&mut token), Err(PerMessageError::Changed));
}

#[test]
fn short_buffers_are_refused() {
    let (initiator, _) = contexts(Enctype::Aes256Sha384, KeyOrigin::Acceptor);
    let room = PerMessage::SEALED_HEAD + initiator.sealed_tail();
    for length in 0..room {
        let sealed = initiator.seal(1, &[0; 16], &mut vec![0; length]);
        assert_eq!(sealed, Err(PerMessageError::Malformed), "{length}");
    }
    assert_eq!(initiator.seal(1, &[0; 16], &mut vec![0; room]), Ok(()));
    let room = PerMessage::SIGNED_HEAD + initiator.signed_tail();
    for length in 0..room {
        assert_eq!(initiator.sign(1, &mut vec![0; length]), Err(PerMessageError::Malformed), "{length}");
    }
    assert_eq!(initiator.sign(1, &mut vec![0; room]), Ok(()));
}

#[test]
fn no_bytes_make_unwrapping_panic() {
    let (_, acceptor) = contexts(Enctype::Aes256Sha1, KeyOrigin::Initiator);
    bolero::check!().for_each(|bytes: &[u8]| {
        assert!(acceptor.verify_mic(&[b"message"], bytes).is_err());
        assert!(acceptor.unwrap(&mut bytes.to_vec()).is_err());
        let head = [&[5, 4, 2, 0xff][..], bytes].concat();
        assert!(acceptor.unwrap(&mut head.clone()).is_err());
    });
}
