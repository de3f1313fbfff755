//! Tokens with any bit changed, cut anywhere, and made of anything.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod mint;

use anabranch_krb5::crypto::Enctype;
use anabranch_krb5::{
    Accepted, Acceptor, Noted, Randomness, Refused, ReplayId, Replays, Request, Settings, Time,
};
use mint::{NOW, PacOf, Ticket, Token, around_pac, key, keytab};

/// Remembers nothing: the same token is tried in many forms.
struct Forgetful;

impl Replays for Forgetful {
    fn note(&self, _: ReplayId, _: Time) -> Noted {
        Noted::First
    }
}

fn accept(acceptor: &Acceptor, token: &[u8]) -> Result<Accepted, Refused> {
    let randomness = Randomness { confounder: [1; 16], subkey: [4; 32].into(), sequence_number: [0; 4] };
    let request = Request { token, now: Time::from_unix(NOW), channel: None, randomness: &randomness };
    acceptor.accept(&request, &Forgetful)
}

fn acceptor(enctype: Enctype) -> Acceptor {
    Acceptor::new(keytab(&key(enctype, 0x11)), Settings::default())
}

fn token(enctype: Enctype) -> Vec<u8> {
    let pac = PacOf::new().signed(&key(enctype, 0x11));
    let ticket = Ticket { authorization_data: Some(around_pac(&pac)), ..Ticket::new(enctype) };
    Token::new(&ticket).encode()
}

/// What must not change, whatever is done to the bytes that no key covers.
fn outcome(accepted: &Accepted) -> String {
    let key = accepted.context.session_key().as_bytes();
    let numbers = (accepted.context.sequence_number(), accepted.context.peer_sequence_number());
    format!(
        "{:?} {:?} {:?} {key:?} {numbers:?} {:?}",
        accepted.client, accepted.pac, accepted.flags, accepted.end_time
    )
}

#[test]
fn a_changed_bit_changes_nothing_of_what_is_accepted() {
    for enctype in Enctype::ALL {
        let (acceptor, whole) = (acceptor(enctype), token(enctype));
        let expected = outcome(&accept(&acceptor, &whole).unwrap());
        let (mut accepted, mut refused) = (0, 0);
        for bit in 0..whole.len() * 8 {
            let mut changed = whole.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            match accept(&acceptor, &changed) {
                Ok(outcome_now) => {
                    assert_eq!(outcome(&outcome_now), expected, "{enctype:?} bit {bit}");
                    accepted += 1;
                }
                Err(_) => refused += 1,
            }
        }
        // options, the version of the key, the type and case of names, spare bits of lengths and flags
        assert!(accepted < 400 && refused > 10_000, "{enctype:?}: {accepted} accepted, {refused} refused");
    }
}

#[test]
fn a_token_that_is_cut_anywhere_is_refused() {
    for enctype in Enctype::ALL {
        let (acceptor, whole) = (acceptor(enctype), token(enctype));
        for length in 0..whole.len() {
            assert!(accept(&acceptor, &whole[..length]).is_err(), "{enctype:?} {length}");
        }
        assert!(accept(&acceptor, &[&whole[..], &[0]].concat()).is_err());
    }
}

/// The same for what the keys cover: a KDC and a client with the right keys may write anything.
#[test]
fn any_content_of_a_ticket_is_survived() {
    let enctype = Enctype::Aes256Sha1;
    let acceptor = acceptor(enctype);
    let pac = PacOf::new().signed(&key(enctype, 0x11));
    let ticket = Ticket { authorization_data: Some(around_pac(&pac)), ..Ticket::new(enctype) };
    let content = ticket.content();
    let mut token = Token::new(&ticket);
    let mut with = |content: &[u8]| {
        let cipher = mint::sealed(&ticket.key, anabranch_krb5::crypto::KeyUsage::TICKET, content);
        token.ticket = ticket.encode_around(&cipher);
        accept(&acceptor, &token.encode())
    };
    assert!(with(&content).is_ok());
    for bit in 0..content.len() * 8 {
        let mut changed = content.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        if let Ok(accepted) = with(&changed) {
            assert!(
                accepted.pac.is_none_or(|pac| pac.logon.is_none_or(|logon| logon.account == "alice")),
                "{bit}"
            );
        }
    }
    for length in 0..content.len() {
        assert!(with(&content[..length]).is_err(), "{length}");
    }
}

#[test]
fn any_content_of_an_authenticator_is_survived() {
    let enctype = Enctype::Aes128Sha256;
    let acceptor = acceptor(enctype);
    let token = Token::new(&Ticket::new(enctype));
    let content = token.authenticator();
    let with = |content: &[u8]| {
        let usage = anabranch_krb5::crypto::KeyUsage::AP_REQ_AUTHENTICATOR;
        accept(&acceptor, &token.encode_around(&mint::sealed(&token.session, usage, content)))
    };
    assert!(with(&content).is_ok());
    for bit in 0..content.len() * 8 {
        let mut changed = content.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        if let Ok(accepted) = with(&changed) {
            assert_eq!(accepted.client.as_str(), "alice@LAB.TEST", "{bit}");
        }
    }
    for length in 0..content.len() {
        assert!(with(&content[..length]).is_err(), "{length}");
    }
}

#[test]
fn no_token_makes_the_acceptor_panic() {
    let enctype = Enctype::Aes256Sha1;
    let acceptor = acceptor(enctype);
    bolero::check!().for_each(|bytes: &[u8]| {
        assert!(accept(&acceptor, bytes).is_err());
        let framed = anabranch_krb5::gss::frame(anabranch_krb5::gss::TokenId::ApReq, bytes);
        assert!(accept(&acceptor, &framed).is_err());
    });
}

#[test]
fn no_content_of_a_ticket_makes_the_acceptor_panic() {
    let enctype = Enctype::Aes256Sha1;
    let acceptor = acceptor(enctype);
    let ticket = Ticket::new(enctype);
    let mut token = Token::new(&ticket);
    bolero::check!().for_each(|bytes: &[u8]| {
        let cipher = mint::sealed(&ticket.key, anabranch_krb5::crypto::KeyUsage::TICKET, bytes);
        token.ticket = ticket.encode_around(&cipher);
        let _ = accept(&acceptor, &token.encode());
    });
}

#[test]
fn no_signed_pac_makes_the_acceptor_panic() {
    let enctype = Enctype::Aes256Sha1;
    let acceptor = acceptor(enctype);
    bolero::check!().for_each(|bytes: &[u8]| {
        let buffers = PacOf::new().buffers();
        for kind in [1, 10, 12, 18, 6] {
            let mut buffers = buffers.clone();
            buffers.retain(|(known, _)| *known != kind);
            buffers.push((kind, bytes.to_vec()));
            let pac = mint::sign(&buffers, &key(enctype, 0x11));
            let ticket = Ticket { authorization_data: Some(around_pac(&pac)), ..Ticket::new(enctype) };
            let _ = accept(&acceptor, &Token::new(&ticket).encode());
        }
        let headers = [1, 0x10, 8, 0, 0xcc, 0xcc, 0xcc, 0xcc, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0];
        let logon = [&headers[..], bytes].concat();
        let pac = mint::sign(&[(1, logon), (10, PacOf::new().client_info())], &key(enctype, 0x11));
        let ticket = Ticket { authorization_data: Some(around_pac(&pac)), ..Ticket::new(enctype) };
        let _ = accept(&acceptor, &Token::new(&ticket).encode());
    });
}
