//! A client written from RFC 4120 for these tests, against the KDC: what it gets, what it does not, and any bytes.
//! MIT's library is the client in `tests/interop/iakerb.sh`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use anabranch_kdc::{Answer, Client, ClientKeys, Clients, Kdc, Outcome, Randomness, Refusal, Settings};
use krb5::crypto::KeyUsage;
use krb5::der::{
    BIT_STRING, Builder, GENERAL_STRING, GENERALIZED_TIME, OCTET_STRING, Reader, SEQUENCE, application,
    context,
};
use krb5::fields::{EncryptedData, Fields};
use krb5::{Enctype, Key, NameType, Principal, Time};

const REALM: &str = "FILES.TEST";
const NOW: Time = Time::from_unix(1_795_645_953);

fn key(fill: u8, enctype: Enctype) -> Key {
    Key::new(enctype, &[fill; 32]).unwrap()
}

struct Known;

impl Clients for Known {
    fn client(&self, name: &str) -> Option<Client> {
        let fill = match name.to_lowercase().as_str() {
            "anna" => 1,
            "gone" => 2,
            _ => return None,
        };
        let keys = vec![key(fill, Enctype::Aes256Sha384), key(fill, Enctype::Aes256Sha1)];
        Some(Client {
            name: name.to_lowercase(),
            sid: format!("S-1-5-21-1-2-3-{}", 1000 + u32::from(fill)).parse().unwrap(),
            keys: Arc::new(ClientKeys { salt: format!("{REALM}{name}"), keys }),
            is_disabled: fill == 2,
        })
    }
}

/// The account anna of another day: removed, and added again.
struct Again;

impl Clients for Again {
    fn client(&self, name: &str) -> Option<Client> {
        Some(Client { sid: "S-1-5-21-1-2-3-1009".parse().unwrap(), ..Known.client(name)? })
    }
}

fn kdc() -> Kdc {
    let settings = Settings {
        realm: REALM.to_owned(),
        services: vec!["cifs".to_owned()],
        domain: "FILES".to_owned(),
        clock_skew: Duration::from_secs(300),
        lifetime: Duration::from_secs(36_000),
    };
    Kdc::new(settings, &[[11; 32].into(), [12; 32].into(), [13; 32].into()]).unwrap()
}

fn answer(request: &[u8]) -> Answer {
    answer_of(&kdc(), request, &Known)
}

fn answer_of(kdc: &Kdc, request: &[u8], clients: &dyn Clients) -> Answer {
    kdc.answer(request, NOW, &Randomness::new([21; 32], [22; 16], [23; 16]), clients)
}

fn principal(components: &[&str]) -> Principal {
    Principal::new(components, REALM).unwrap()
}

/// What a client asks.
#[derive(Clone)]
struct Ask {
    client: Option<Principal>,
    realm: &'static str,
    service: Principal,
    options: u32,
    till: Time,
    etypes: Vec<i64>,
    padata: Vec<(i64, Vec<u8>)>,
}

impl Ask {
    fn anna() -> Self {
        Self {
            client: Some(principal(&["anna"])),
            realm: REALM,
            service: principal(&["krbtgt", REALM]),
            options: 0x4000_0000,
            till: NOW.plus(86_400),
            etypes: vec![20, 18],
            padata: Vec::new(),
        }
    }

    fn named(name: &str) -> Self {
        Self { client: Some(principal(&[name])), ..Self::anna() }
    }

    fn with_password(mut self, key: &Key, at: Time) -> Self {
        self.padata.push((2, timestamp(key, at)));
        self
    }

    fn body(&self) -> Vec<u8> {
        let mut builder = Builder::default();
        builder.element(SEQUENCE, |fields| {
            fields.element(context(8), |field| {
                field.element(SEQUENCE, |list| {
                    self.etypes.iter().rev().for_each(|number| list.integer(*number));
                });
            });
            fields.element(context(7), |field| field.integer(77));
            fields.element(context(5), |field| field.primitive(GENERALIZED_TIME, &self.till.to_text()));
            fields.element(context(3), |field| self.service.put(field, NameType::Service));
            fields.element(context(2), |field| field.primitive(GENERAL_STRING, self.realm.as_bytes()));
            if let Some(client) = &self.client {
                fields.element(context(1), |field| client.put(field, NameType::Principal));
            }
            let bits = [&[0][..], &self.options.to_be_bytes()].concat();
            fields.element(context(0), |field| field.primitive(BIT_STRING, &bits));
        });
        builder.finish()
    }

    fn encode(&self, number: u8) -> Vec<u8> {
        let mut builder = Builder::default();
        builder.element(application(number), |message| {
            message.element(SEQUENCE, |fields| {
                fields.element(context(4), |field| field.bytes(&self.body()));
                fields.element(context(3), |field| {
                    field.element(SEQUENCE, |list| {
                        for (kind, value) in self.padata.iter().rev() {
                            list.element(SEQUENCE, |fields| {
                                fields.element(context(2), |field| field.primitive(OCTET_STRING, value));
                                fields.element(context(1), |field| field.integer(*kind));
                            });
                        }
                    });
                });
                fields.element(context(2), |field| field.integer(number.into()));
                fields.element(context(1), |field| field.integer(5));
            });
        });
        builder.finish()
    }

    /// A TGS-REQ with this ticket.
    fn with_ticket(&self, ticket: &[u8], session: &Key, ctime: Time) -> Vec<u8> {
        let deriver = session.deriver().unwrap();
        let checksum = deriver.checksum_key(KeyUsage::TGS_REQ_CHECKSUM).unwrap().tag(&[&self.body()]);
        let mut plain = Builder::default();
        plain.element(application(2), |message| {
            message.element(SEQUENCE, |fields| {
                fields.element(context(5), |field| field.primitive(GENERALIZED_TIME, &ctime.to_text()));
                fields.element(context(4), |field| field.integer(0));
                fields.element(context(3), |field| {
                    field.element(SEQUENCE, |sum| {
                        sum.element(context(1), |field| field.primitive(OCTET_STRING, checksum.as_ref()));
                        sum.element(context(0), |field| {
                            field.integer(session.enctype().checksum_number().into());
                        });
                    });
                });
                fields.element(context(2), |field| principal(&["anna"]).put(field, NameType::Principal));
                fields.element(context(1), |field| field.primitive(GENERAL_STRING, REALM.as_bytes()));
                fields.element(context(0), |field| field.integer(5));
            });
        });
        let sealer = deriver.sealer(KeyUsage::TGS_REQ_AUTHENTICATOR).unwrap();
        let sealed = sealer.sealed(&[9; 16], &plain.finish()).unwrap();
        let mut proof = Builder::default();
        proof.element(application(14), |message| {
            message.element(SEQUENCE, |fields| {
                fields.element(context(4), |field| field.bytes(&encrypted(session, &sealed)));
                fields.element(context(3), |field| field.bytes(ticket));
                fields.element(context(2), |field| field.primitive(BIT_STRING, &[0; 5]));
                fields.element(context(1), |field| field.integer(14));
                fields.element(context(0), |field| field.integer(5));
            });
        });
        Self { padata: vec![(1, proof.finish())], ..self.clone() }.encode(12)
    }
}

fn encrypted(key: &Key, cipher: &[u8]) -> Vec<u8> {
    let mut builder = Builder::default();
    builder.element(SEQUENCE, |data| {
        data.element(context(2), |field| field.primitive(OCTET_STRING, cipher));
        data.element(context(0), |field| field.integer(key.enctype().number().into()));
    });
    builder.finish()
}

/// PA-ENC-TIMESTAMP.
fn timestamp(key: &Key, at: Time) -> Vec<u8> {
    let mut plain = Builder::default();
    plain.element(SEQUENCE, |fields| {
        fields.element(context(0), |field| field.primitive(GENERALIZED_TIME, &at.to_text()));
    });
    let sealer = key.deriver().unwrap().sealer(KeyUsage::AS_REQ_TIMESTAMP).unwrap();
    encrypted(key, &sealer.sealed(&[8; 16], &plain.finish()).unwrap())
}

/// The code of a KRB-ERROR, and its e-data.
fn error(reply: &[u8]) -> (i64, Vec<u8>) {
    let mut fields = Fields::of_message(reply, 30).unwrap();
    let code = {
        fields.integer(0).unwrap();
        fields.integer(1).unwrap();
        fields.time(4).unwrap();
        fields.integer(5).unwrap();
        fields.integer(6).unwrap()
    };
    fields.text(9).unwrap();
    fields.raw(10).unwrap();
    let data = fields.optional(12).unwrap();
    (code, data.map_or_else(Vec::new, |data| Reader::new(data).element(OCTET_STRING).unwrap().to_vec()))
}

/// The ticket and the session key of a reply, with its end.
fn opened(reply: &[u8], number: u8, key: &Key, usage: KeyUsage) -> (Vec<u8>, Key, Time) {
    let mut fields = Fields::of_message(reply, number).unwrap();
    assert_eq!((fields.integer(0).unwrap(), fields.integer(1).unwrap()), (5, i64::from(number)));
    fields.optional(2).unwrap();
    fields.text(3).unwrap();
    fields.raw(4).unwrap();
    let ticket = fields.raw(5).unwrap().to_vec();
    let data = EncryptedData::decode(fields.raw(6).unwrap()).unwrap();
    let mut cipher = data.cipher.to_vec();
    let plain = key.deriver().unwrap().opener(usage).unwrap().open(&mut cipher).unwrap().to_vec();
    let mut fields = Fields::of_message(&plain, if number == 11 { 25 } else { 26 }).unwrap();
    let session = krb5::fields::key(fields.raw(0).unwrap()).unwrap();
    fields.raw(1).unwrap();
    assert_eq!(fields.integer(2).unwrap(), 77, "the nonce comes back");
    fields.flags(4).unwrap();
    fields.time(5).unwrap();
    fields.optional_time(6).unwrap();
    (ticket, session, fields.time(7).unwrap())
}

fn ticket_granting() -> (Vec<u8>, Key) {
    let own = key(1, Enctype::Aes256Sha384);
    let Answer { reply, outcome } = answer(&Ask::anna().with_password(&own, NOW).encode(10));
    assert_eq!(outcome, Outcome::Proved("anna".to_owned()));
    let (ticket, session, end) = opened(&reply, 11, &own, KeyUsage::AS_REP);
    assert_eq!(end, NOW.plus(36_000), "no longer than tickets last");
    (ticket, session)
}

#[test]
fn without_a_proof_known_and_unknown_clients_are_answered_alike() {
    let known = answer(&Ask::anna().encode(10));
    let (code, data) = error(&known.reply);
    assert_eq!((code, &known.outcome), (25, &Outcome::Open), "KDC_ERR_PREAUTH_REQUIRED");
    let salted = |data: &[u8], salt: &[u8]| data.windows(salt.len()).filter(|part| *part == salt).count();
    assert_eq!(salted(&data, b"FILES.TESTanna"), 2, "one for each type");
    // as long a name, so that all else is the same
    let (code, other) = error(&answer(&Ask::named("otto").encode(10)).reply);
    assert_eq!((code, salted(&other, b"FILES.TESTotto")), (25, 2));
    assert_eq!(String::from_utf8_lossy(&other).replace("otto", "anna"), String::from_utf8_lossy(&data));
}

#[test]
fn only_the_password_gets_a_ticket_and_all_else_is_told_the_same() {
    for (number, enctype) in [(20, Enctype::Aes256Sha384), (18, Enctype::Aes256Sha1)] {
        let ask = |name: &str| Ask { etypes: vec![number], ..Ask::named(name) };
        let own = key(1, enctype);
        let right = answer(&ask("anna").with_password(&own, NOW).encode(10));
        opened(&right.reply, 11, &own, KeyUsage::AS_REP);
        let wrong = answer(&ask("anna").with_password(&key(9, enctype), NOW).encode(10));
        let unknown = answer(&ask("otto").with_password(&key(9, enctype), NOW).encode(10));
        let nobody = answer(&ask("otto").with_password(&key(13, enctype), NOW).encode(10));
        let refused = |refusal, client: &str| Outcome::Refused { refusal, client: client.to_owned() };
        assert_eq!(wrong.outcome, refused(Refusal::WrongPassword, "anna"));
        assert_eq!(unknown.outcome, refused(Refusal::UnknownClient, "otto"));
        assert_eq!(
            nobody.outcome,
            refused(Refusal::UnknownClient, "otto"),
            "the key of nobody opens nothing"
        );
        assert_eq!(error(&wrong.reply), (24, Vec::new()), "KDC_ERR_PREAUTH_FAILED");
        assert_eq!((&wrong.reply, &wrong.reply), (&unknown.reply, &nobody.reply));
        let gone = answer(&ask("gone").with_password(&key(2, enctype), NOW).encode(10));
        assert_eq!((error(&gone.reply).0, gone.outcome), (18, refused(Refusal::Disabled, "gone")));
        let gone = answer(&ask("gone").with_password(&key(9, enctype), NOW).encode(10));
        assert_eq!((gone.reply, gone.outcome), (wrong.reply, refused(Refusal::WrongPassword, "gone")));
    }
}

#[test]
fn a_clock_that_is_wrong_is_told_to_who_knows_the_password() {
    let own = key(1, Enctype::Aes256Sha384);
    for (seconds, code) in [(-301, 37), (301, 37)] {
        let said = answer(&Ask::anna().with_password(&own, NOW.plus(seconds)).encode(10));
        assert_eq!((error(&said.reply).0, said.outcome), (code, Outcome::Proved("anna".to_owned())));
        let guessed =
            answer(&Ask::anna().with_password(&key(9, Enctype::Aes256Sha384), NOW.plus(seconds)).encode(10));
        assert_eq!(error(&guessed.reply).0, 24);
    }
    for seconds in [-300, 300] {
        let said = answer(&Ask::anna().with_password(&own, NOW.plus(seconds)).encode(10));
        opened(&said.reply, 11, &own, KeyUsage::AS_REP);
    }
}

#[test]
fn what_this_kdc_does_not_do_is_refused() {
    let code = |ask: &Ask| error(&answer(&ask.encode(10)).reply).0;
    for bit in [2, 4, 6, 14, 16, 28, 30, 31] {
        assert_eq!(code(&Ask { options: 1 << (31 - bit), ..Ask::anna() }), 13, "option {bit}");
    }
    assert_eq!(code(&Ask { realm: "OTHER.TEST", ..Ask::anna() }), 68);
    assert_eq!(code(&Ask { service: principal(&["cifs", "files.test"]), ..Ask::anna() }), 7);
    assert_eq!(code(&Ask { service: principal(&["krbtgt", "OTHER.TEST"]), ..Ask::anna() }), 7);
    for etypes in [vec![], vec![23], vec![17, 19], vec![-133, 1 << 40]] {
        assert_eq!(code(&Ask { etypes, ..Ask::anna() }), 14);
    }
    assert_eq!(code(&Ask { etypes: vec![18; 64], ..Ask::anna() }), 25);
    assert_eq!(code(&Ask { etypes: vec![18; 65], ..Ask::anna() }), 60);
    assert_eq!(code(&Ask { padata: vec![(150, vec![]); 32], ..Ask::anna() }), 25);
    assert_eq!(code(&Ask { padata: vec![(150, vec![]); 33], ..Ask::anna() }), 60);
    assert_eq!(code(&Ask { client: None, ..Ask::anna() }), 60);
    let large = Ask { padata: vec![(150, vec![0; 64 << 10])], ..Ask::anna() };
    assert_eq!(code(&large), 60);
}

#[test]
fn a_ticket_gets_tickets_for_this_server_alone() {
    let (ticket, session) = ticket_granting();
    let of = |service: &[&str]| Ask { client: None, service: principal(service), ..Ask::anna() };
    let asked = of(&["CIFS", "any.name"]).with_ticket(&ticket, &session, NOW);
    let Answer { reply, outcome } = answer(&asked);
    assert_eq!(outcome, Outcome::Issued);
    opened(&reply, 13, &session, KeyUsage::TGS_REP_SESSION);
    for other in [&["krbtgt", REALM][..], &["nfs", "files"], &["cifs"], &["cifs", "files", "more"], &["anna"]]
    {
        let asked = of(other).with_ticket(&ticket, &session, NOW);
        assert_eq!(error(&answer(&asked).reply).0, 7, "{other:?}");
    }
    let code = |asked: &[u8], clients: &dyn Clients| error(&answer_of(&kdc(), asked, clients).reply).0;
    let cifs = of(&["cifs", "files"]);
    assert_eq!(code(&cifs.with_ticket(&ticket, &session, NOW.plus(301)), &Known), 37);
    assert_eq!(code(&cifs.with_ticket(&ticket, &key(5, Enctype::Aes256Sha384), NOW), &Known), 31);
    assert_eq!(code(&cifs.with_ticket(&ticket, &session, NOW), &Again), 18, "another account of the name");
    assert_eq!(code(&cifs.encode(12), &Known), 60, "no ticket");
    let late = kdc().answer(&asked, NOW.plus(36_001), &Randomness::new([1; 32], [2; 16], [3; 16]), &Known);
    assert_eq!(error(&late.reply).0, 32);
    // The checksum covers the body of the request.
    let mut changed = asked;
    let at = changed.windows(8).position(|part| part == b"any.name").unwrap();
    changed[at] ^= 0x20;
    assert_eq!(code(&changed, &Known), 41);
}

#[test]
fn another_kdc_opens_none_of_these_tickets() {
    let (ticket, session) = ticket_granting();
    let other =
        Kdc::new(kdc().settings().clone(), &[[31; 32].into(), [12; 32].into(), [13; 32].into()]).unwrap();
    let cifs = Ask { client: None, service: principal(&["cifs", "files"]), ..Ask::anna() };
    let asked = cifs.with_ticket(&ticket, &session, NOW);
    assert_eq!(error(&answer_of(&other, &asked, &Known).reply).0, 41);
}

/// A changed bit never makes another outcome than the one of the whole request, or a refusal.
#[test]
fn a_changed_bit_or_a_cut_makes_no_other_client() {
    let (ticket, session) = ticket_granting();
    let own = key(1, Enctype::Aes256Sha384);
    let cifs = Ask { client: None, service: principal(&["cifs", "files"]), ..Ask::anna() };
    let kdc = kdc();
    for (whole, expected) in [
        (Ask::anna().with_password(&own, NOW).encode(10), Outcome::Proved("anna".to_owned())),
        (cifs.with_ticket(&ticket, &session, NOW), Outcome::Issued),
    ] {
        let mut refused = 0;
        for bit in 0..whole.len() * 8 {
            let mut changed = whole.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            match answer_of(&kdc, &changed, &Known).outcome {
                Outcome::Open | Outcome::Refused { .. } => refused += 1,
                outcome => assert_eq!(outcome, expected, "bit {bit}"),
            }
        }
        assert!(refused > whole.len() * 4, "{refused} of {}", whole.len() * 8);
        for length in 0..whole.len() {
            assert_eq!(answer_of(&kdc, &whole[..length], &Known).outcome, Outcome::Open, "{length}");
        }
    }
}

#[test]
fn no_bytes_make_the_kdc_panic() {
    let kdc = kdc();
    bolero::check!().for_each(|bytes: &[u8]| {
        for number in [0x6a, 0x6c] {
            let _ = answer_of(&kdc, &krb5::der::element(number, bytes), &Known);
        }
        let _ = answer_of(&kdc, bytes, &Known);
    });
}
