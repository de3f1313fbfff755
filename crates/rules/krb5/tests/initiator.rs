//! The client's side against the acceptor, and against servers that have no proof.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod mint;

use anabranch_krb5::ccache::{Credential, CredentialCache};
use anabranch_krb5::crypto::{CryptoError, Enctype, KeyUsage};
use anabranch_krb5::der::Builder;
use anabranch_krb5::gss::{TokenId, frame};
use anabranch_krb5::{
    Accepted, Acceptor, ContextFlags, Initiator, InitiatorError, Noted, PerMessage, Randomness, Refused,
    ReplayId, Replays, Request, Settings, Time,
};
use mint::{NOW, REALM, SERVICE, Ticket, key, keytab, principal};

struct Forgetful;

impl Replays for Forgetful {
    fn note(&self, _: ReplayId, _: Time) -> Noted {
        Noted::First
    }
}

fn randomness(fill: u8) -> Randomness {
    Randomness { confounder: [fill; 16], subkey: [fill; 32].into(), sequence_number: [0xff, fill, 0, 1] }
}

fn credential(ticket: &Ticket<'_>) -> Credential {
    let (client, service) = (principal(&["alice"], REALM), principal(&SERVICE, REALM));
    Credential::new(
        client,
        service,
        ticket.session.clone(),
        Time::from_unix(ticket.end_time),
        ticket.encode(),
    )
}

const FLAGS: ContextFlags = ContextFlags::MUTUAL.union(ContextFlags::INTEGRITY);

fn begin(ticket: &Ticket<'_>, cusec: u32) -> (Initiator, Vec<u8>) {
    Initiator::begin(&credential(ticket), FLAGS, Time::from_unix(NOW), cusec, &randomness(7)).unwrap()
}

fn accept(enctype: Enctype, token: &[u8]) -> Result<Accepted, Refused> {
    let acceptor = Acceptor::new(keytab(&key(enctype, 0x11)), Settings::default());
    let randomness = randomness(3);
    let request = Request { token, now: Time::from_unix(NOW), channel: None, randomness: &randomness };
    acceptor.accept(&request, &Forgetful)
}

/// Whether a message of each side arrives at the other one, signed and sealed.
fn talk(client: &PerMessage, server: &PerMessage) {
    for (from, to) in [(client, server), (server, client)] {
        assert_eq!(to.verify_mic(&[b"message"], from.mic(5, &[b"message"]).as_ref()), Ok(5));
        let mut sealed = vec![0; PerMessage::SEALED_HEAD];
        sealed.extend_from_slice(b"message");
        sealed.resize(sealed.len() + from.sealed_tail(), 0);
        from.seal(6, &[9; 16], &mut sealed).unwrap();
        let opened = to.unwrap(&mut sealed).unwrap();
        assert_eq!(&sealed[opened.message], b"message");
    }
}

#[test]
fn the_acceptor_and_the_initiator_understand_each_other() {
    for enctype in Enctype::ALL {
        let (initiator, token) = begin(&Ticket::new(enctype), 17);
        let accepted = accept(enctype, &token).unwrap();
        assert_eq!(accepted.client.as_str(), "alice@LAB.TEST");
        assert_eq!(accepted.flags, FLAGS);
        talk(&initiator.finish(&accepted.reply).unwrap(), &accepted.context.per_message().unwrap());
    }
}

#[test]
fn the_time_of_each_token_is_its_own() {
    let ticket = Ticket::new(Enctype::Aes256Sha1);
    let (_, first) = begin(&ticket, 1);
    let (second, _) = begin(&ticket, 2);
    let reply = accept(Enctype::Aes256Sha1, &first).unwrap().reply;
    assert_eq!(second.finish(&reply).unwrap_err(), InitiatorError::NoProof);
}

#[test]
fn a_server_without_the_key_has_no_proof() {
    let ticket = Ticket::new(Enctype::Aes256Sha1);
    let (initiator, _) = begin(&ticket, 1);
    // another ticket, whose session key is known to another server
    let other = Ticket { session: key(Enctype::Aes256Sha1, 0x77), ..ticket };
    let (_, token) = begin(&other, 1);
    let reply = accept(Enctype::Aes256Sha1, &token).unwrap().reply;
    assert_eq!(initiator.finish(&reply).unwrap_err(), InitiatorError::NoProof);
}

#[test]
fn a_refusal_has_its_code() {
    let ticket = Ticket { end_time: NOW - 301, ..Ticket::new(Enctype::Aes256Sha1) };
    let (initiator, token) = begin(&ticket, 1);
    let reply = accept(Enctype::Aes256Sha1, &token).unwrap_err().reply.unwrap();
    // KRB_AP_ERR_TKT_EXPIRED, RFC 4120 7.5.9
    assert_eq!(initiator.finish(&reply).unwrap_err(), InitiatorError::Refused { code: 32 });
}

#[test]
fn what_is_no_proof_is_refused() {
    let ticket = Ticket::new(Enctype::Aes128Sha256);
    let (_, token) = begin(&ticket, 1);
    let reply = accept(Enctype::Aes128Sha256, &token).unwrap().reply;
    let finish = |token: &[u8]| begin(&ticket, 1).0.finish(token);
    assert!(finish(&reply).is_ok());
    for bit in 0..reply.len() * 8 {
        let mut changed = reply.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        // nothing protects the mechanism's second name, and it decides nothing
        if let Ok(keys) = finish(&changed) {
            talk(&keys, &accept(Enctype::Aes128Sha256, &token).unwrap().context.per_message().unwrap());
        }
    }
    for length in 0..reply.len() {
        assert!(finish(&reply[..length]).is_err(), "{length}");
    }
    for other in [token, frame(TokenId::Error, b"\x7e\x00"), frame(TokenId::ApRep, b"")] {
        assert_eq!(finish(&other).unwrap_err(), InitiatorError::Malformed);
    }
    assert_eq!(InitiatorError::from(CryptoError), InitiatorError::Library);
}

#[test]
fn no_credential_cache_makes_the_parser_panic() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let _ = CredentialCache::parse(bytes);
        let framed = [&[5, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, b'R', 0, 0, 0, 1, b'a'][..], bytes];
        let _ = CredentialCache::parse(&framed.concat());
    });
}

#[test]
fn no_reply_makes_the_initiator_panic() {
    let ticket = Ticket::new(Enctype::Aes256Sha1);
    let sealer = ticket.session.deriver().unwrap().sealer(KeyUsage::AP_REP).unwrap();
    bolero::check!().for_each(|bytes: &[u8]| {
        for id in [TokenId::ApRep, TokenId::Error] {
            let _ = begin(&ticket, 1).0.finish(&frame(id, bytes));
        }
        let cipher = sealer.sealed(&[1; 16], bytes).unwrap();
        let mut builder = Builder::default();
        mint::put_ap_rep(&mut builder, &cipher);
        let _ = begin(&ticket, 1).0.finish(&frame(TokenId::ApRep, &builder.finish()));
    });
}
