//! Which tokens are accepted, and why others are not.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod mint;

use std::cell::RefCell;
use std::time::Duration;

use anabranch_krb5::crypto::{Enctype, Key};
use anabranch_krb5::keytab::{Entry, Keytab};
use anabranch_krb5::{
    Accepted, Acceptor, Channel, ChannelBindingRule, ChannelBindings, ContextFlags, KeyOrigin, NameError,
    Noted, PacRule, PerMessage, Randomness, Reason, ReasonClass, Refused, ReplayCache, ReplayId, Replays,
    Request, Settings, Side, Time,
};
use mint::{
    GSS_CHECKSUM, MUTUAL, NOW, REALM, SERVICE, Ticket, Token, around_pac, authorization_data, gss_checksum,
    key, keytab, principal, read_ap_rep, read_krb_error,
};

const SHA1: Enctype = Enctype::Aes256Sha1;

/// The lock around a cache is a cell here.
struct Cell(RefCell<ReplayCache>);

impl Replays for Cell {
    fn note(&self, id: ReplayId, now: Time) -> Noted {
        self.0.borrow_mut().note(id, now)
    }
}

fn replays() -> Cell {
    Cell(RefCell::new(ReplayCache::new(10_000, Duration::from_secs(300))))
}

fn randomness() -> Randomness {
    Randomness { confounder: [1; 16], subkey: [0x44; 32].into(), sequence_number: [0xff, 0, 0, 9] }
}

struct Server {
    acceptor: Acceptor,
    channel: Option<Channel>,
}

impl Server {
    fn new(settings: Settings) -> Self {
        Self { acceptor: Acceptor::new(keytab(&key(SHA1, 0x11)), settings), channel: None }
    }

    fn of(enctype: Enctype) -> Self {
        let acceptor = Acceptor::new(keytab(&key(enctype, 0x11)), Settings::default());
        Self { acceptor, channel: None }
    }

    fn accept(&self, token: &[u8]) -> Result<Accepted, Refused> {
        self.accept_at(token, NOW)
    }

    fn accept_at(&self, token: &[u8], now: i64) -> Result<Accepted, Refused> {
        self.accept_once(token, now, &replays())
    }

    fn accept_once(&self, token: &[u8], now: i64, replays: &dyn Replays) -> Result<Accepted, Refused> {
        let request =
            Request { token, now: Time::from_unix(now), channel: self.channel, randomness: &randomness() };
        self.acceptor.accept(&request, replays)
    }

    fn reason(&self, token: &[u8]) -> Reason {
        self.accept(token).unwrap_err().reason
    }
}

fn server() -> Server {
    Server::new(Settings::default())
}

fn ticket() -> Ticket<'static> {
    Ticket::new(SHA1)
}

/// Why a ticket with a good authenticator is refused.
fn reason_for(ticket: &Ticket<'_>) -> Reason {
    server().reason(&Token::new(ticket).encode())
}

#[test]
fn a_client_with_a_good_ticket_is_accepted() {
    for enctype in Enctype::ALL {
        for session in Enctype::ALL {
            let ticket = Ticket { session: key(session, 0x22), ..Ticket::new(enctype) };
            let accepted = Server::of(enctype).accept(&Token::new(&ticket).encode()).unwrap();
            assert_eq!(accepted.client.as_str(), "alice@LAB.TEST");
            assert_eq!(accepted.service.as_str(), "cifs/files.lab.test@LAB.TEST");
            assert_eq!(accepted.flags.bits(), mint::FLAGS);
            assert_eq!(accepted.ticket_enctype, enctype);
            let times = (accepted.auth_time.as_unix(), accepted.end_time.as_unix());
            assert_eq!(times, (NOW - 60, NOW + 36_000));
            assert_eq!(accepted.pac, None);
            assert_eq!(accepted.context.peer_sequence_number(), 77);
        }
    }
}

#[test]
fn the_reply_proves_the_service_and_has_a_new_key() {
    for enctype in Enctype::ALL {
        let ticket = Ticket::new(enctype);
        let accepted = Server::of(enctype).accept(&Token::new(&ticket).encode()).unwrap();
        let proof = read_ap_rep(&accepted.reply, &ticket.session);
        assert_eq!((proof.ctime, proof.cusec), (b"20261125223233Z".to_vec(), 123_456));
        let subkey = vec![0x44; enctype.key_len()];
        assert_eq!(proof.subkey, (i64::from(enctype.number()), subkey.clone()));
        assert_eq!(accepted.context.session_key().as_bytes(), subkey);
        assert_eq!(proof.sequence_number, 0x3f00_0009);
        assert_eq!(accepted.context.sequence_number(), 0x3f00_0009);
    }
}

/// RFC 4121 2: the acceptor's subkey, else the client's, else the ticket's key.
#[test]
fn without_mutual_authentication_the_client_chooses_the_key() {
    let one_way = Some((GSS_CHECKSUM, gss_checksum(0x3c, [0; 16])));
    let token = Token { checksum: one_way.clone(), ..Token::new(&ticket()) };
    let accepted = server().accept(&token.encode()).unwrap();
    assert_eq!(accepted.reply, b"");
    assert_eq!(accepted.context.session_key().as_bytes(), [0x33; 32]);
    assert_eq!(accepted.context.sequence_number(), 77);
    let token = Token { checksum: one_way, subkey: None, sequence_number: None, ..Token::new(&ticket()) };
    let accepted = server().accept(&token.encode()).unwrap();
    assert_eq!(accepted.context.session_key().as_bytes(), [0x22; 32]);
    assert_eq!(accepted.context.sequence_number(), 0);
}

#[test]
fn both_sides_understand_each_other() {
    for enctype in Enctype::ALL {
        for (flags, origin) in [(0x3e, KeyOrigin::Acceptor), (0x3c, KeyOrigin::Initiator)] {
            let checksum = Some((GSS_CHECKSUM, gss_checksum(flags, [0; 16])));
            let token = Token { checksum, ..Token::new(&Ticket::new(enctype)) };
            let accepted = Server::of(enctype).accept(&token.encode()).unwrap();
            let server = accepted.context.per_message().unwrap();
            let client = PerMessage::new(accepted.context.session_key(), Side::Initiator, origin).unwrap();
            assert_eq!(client.verify_mic(&[b"m"], server.mic(4, &[b"m"]).as_ref()), Ok(4));
            assert_eq!(server.verify_mic(&[b"m"], client.mic(5, &[b"m"]).as_ref()), Ok(5));
        }
    }
}

/// Section 2.4 of the design: what the client asks for is in the authenticated checksum.
#[test]
fn mutual_authentication_is_asked_for_in_the_checksum() {
    for options in [0, 0x2000_0000] {
        let token = Token { options, ..Token::new(&ticket()) };
        assert_ne!(server().accept(&token.encode()).unwrap().reply, b"", "{options:x}");
        let checksum = Some((GSS_CHECKSUM, gss_checksum(0x3e & !MUTUAL, [0; 16])));
        let token = Token { options, checksum, ..Token::new(&ticket()) };
        assert_eq!(server().accept(&token.encode()).unwrap().reply, b"", "{options:x}");
    }
}

#[test]
fn a_token_needs_the_checksum_of_the_gss_api() {
    let with = |checksum| server().reason(&Token { checksum, ..Token::new(&ticket()) }.encode());
    assert_eq!(with(None), Reason::NoGssChecksum);
    assert_eq!(with(Some((16, vec![0; 12]))), Reason::NoGssChecksum);
    assert_eq!(with(Some((GSS_CHECKSUM, vec![0; 24]))), Reason::Malformed);
    assert_eq!(with(Some((GSS_CHECKSUM, gss_checksum(0x103e, [0; 16])))), Reason::DceStyle);
}

#[test]
fn a_forwarded_ticket_is_dropped() {
    let secret = b"the forwarded ticket of alice";
    let length = u16::try_from(secret.len()).unwrap().to_le_bytes();
    let octets = [&gss_checksum(0x3f, [0; 16])[..], &[1, 0], &length, secret].concat();
    let token = Token { checksum: Some((GSS_CHECKSUM, octets.clone())), ..Token::new(&ticket()) };
    let accepted = server().accept(&token.encode()).unwrap();
    assert!(accepted.flags.contains(ContextFlags::DELEGATION));
    let shown = format!("{accepted:?}");
    assert!(!shown.contains("forwarded"), "{shown}");
    let cut = octets[..octets.len() - 1].to_vec();
    let token = Token { checksum: Some((GSS_CHECKSUM, cut)), ..Token::new(&ticket()) };
    assert_eq!(server().reason(&token.encode()), Reason::Malformed);
}

#[test]
fn user_to_user_is_refused() {
    let token = Token { options: 0x4000_0000, ..Token::new(&ticket()) };
    assert_eq!(server().reason(&token.encode()), Reason::UserToUser);
}

#[test]
fn an_invalid_ticket_is_refused() {
    assert_eq!(reason_for(&Ticket { flags: 0x41e0_0000, ..ticket() }), Reason::InvalidTicket);
}

#[test]
fn only_aes_is_accepted() {
    for number in [1, 3, 16, 21, 23, 24, 25, 26, -128, 1 << 40] {
        let reason = Reason::Enctype { number };
        assert_eq!(reason_for(&Ticket { etype: Some(number), ..ticket() }), reason);
        assert_eq!(reason_for(&Ticket { session_etype: Some(number), ..ticket() }), reason);
    }
}

#[test]
fn a_ticket_needs_a_key_of_its_type() {
    let other = Ticket { etype: Some(17), ..ticket() };
    assert_eq!(reason_for(&other), Reason::NoSuchEnctype { number: 17 });
    // the session key says aes128, and has the length of aes256
    assert_eq!(reason_for(&Ticket { session_etype: Some(17), ..ticket() }), Reason::Malformed);
    // the authenticator says another type than the ticket's key
    let token = Token { session: key(Enctype::Aes256Sha384, 0x22), ..Token::new(&ticket()) };
    assert_eq!(server().reason(&token.encode()), Reason::WrongAuthenticator);
}

#[test]
fn keys_are_found_by_name_and_version() {
    let refused = |ticket: &Ticket<'_>| reason_for(ticket);
    assert_eq!(refused(&Ticket { service: &["cifs", "other.lab.test"], ..ticket() }), Reason::NoSuchService);
    assert_eq!(refused(&Ticket { service_realm: "OTHER.TEST", ..ticket() }), Reason::NoSuchService);
    assert_eq!(refused(&Ticket { service: &["HTTP", "files.lab.test"], ..ticket() }), Reason::OtherService);
    let version = Reason::NoSuchKeyVersion { wanted: 4, newest: 3 };
    assert_eq!(refused(&Ticket { kvno: Some(4), ..ticket() }), version);
    assert_eq!(refused(&Ticket { key: key(SHA1, 0x12), ..ticket() }), Reason::WrongKey);
    for kvno in [None, Some(3), Some(0x103)] {
        assert!(server().accept(&Token::new(&Ticket { kvno, ..ticket() }).encode()).is_ok(), "{kvno:?}");
    }
    let service = ["CIFS", "Files.LAB.test"];
    let renamed = Ticket { service: &service, service_realm: "lab.TEST", ..ticket() };
    assert!(server().accept(&Token::new(&renamed).encode()).is_ok());
}

/// A domain controller gives all names of an account one key, so the name says nothing.
#[test]
fn a_relabelled_ticket_is_accepted_as_the_name_it_has() {
    let shared = key(SHA1, 0x11);
    let entry = |service| {
        let name = principal(&[service, "files.lab.test"], REALM);
        Entry::new(name, 3, Time::from_unix(0), shared.clone()).unwrap()
    };
    let keytab = Keytab::new(vec![entry("host"), entry("cifs"), entry("nfs")]).unwrap();
    let acceptor = Acceptor::new(keytab, Settings::default());
    let server = Server { acceptor, channel: None };
    let swapped = Ticket { service: &["host", "files.lab.test"], ..ticket() };
    let accepted = server.accept(&Token::new(&swapped).encode()).unwrap();
    assert_eq!(accepted.service.as_str(), "host/files.lab.test@LAB.TEST");
    let swapped = Ticket { service: &["nfs", "files.lab.test"], ..ticket() };
    assert_eq!(server.reason(&Token::new(&swapped).encode()), Reason::OtherService);
    // Another front has the same keys for services of its own.
    let other = Server { acceptor: server.acceptor.for_services(vec!["nfs".to_owned()]), channel: None };
    let reason =
        |ticket: &Ticket<'_>| other.accept(&Token::new(ticket).encode()).err().map(|refused| refused.reason);
    assert_ne!(reason(&swapped), Some(Reason::OtherService));
    assert_eq!(reason(&ticket()), Some(Reason::OtherService));
}

#[test]
fn a_key_that_does_not_fit_is_followed_by_the_next() {
    let entry =
        |fill| Entry::new(principal(&SERVICE, REALM), 3, Time::from_unix(0), key(SHA1, fill)).unwrap();
    let keytab = Keytab::new(vec![entry(0x99), entry(0x11)]).unwrap();
    let server = Server { acceptor: Acceptor::new(keytab, Settings::default()), channel: None };
    assert!(server.accept(&Token::new(&ticket()).encode()).is_ok());
}

#[test]
fn names_with_separators_or_too_many_parts_are_refused() {
    for part in ["a/b", "a@b", "a\0b"] {
        let name = Reason::Name(NameError::Character);
        assert_eq!(reason_for(&Ticket { client: &[part], ..ticket() }), name, "{part:?}");
        assert_eq!(reason_for(&Ticket { client_realm: part, ..ticket() }), name, "{part:?}");
        assert_eq!(reason_for(&Ticket { service: &["cifs", part], ..ticket() }), name, "{part:?}");
    }
    let most = Ticket { client: &["a"; 8], ..ticket() };
    assert_eq!(server().accept(&Token::new(&most).encode()).unwrap().client.name(), "a/a/a/a/a/a/a/a");
    let more = Ticket { client: &["a"; 9], ..ticket() };
    assert_eq!(reason_for(&more), Reason::Name(NameError::TooManyComponents));
}

#[test]
fn the_authenticator_must_be_of_the_ticket() {
    let token = Token { client: &["bob"], ..Token::new(&ticket()) };
    assert_eq!(server().reason(&token.encode()), Reason::OtherClient);
    let token = Token { client: &["ALICE"], ..Token::new(&ticket()) };
    assert_eq!(server().reason(&token.encode()), Reason::OtherClient);
    let token = Token { client_realm: "OTHER.TEST", ..Token::new(&ticket()) };
    assert_eq!(server().reason(&token.encode()), Reason::OtherClient);
    let token = Token { session: key(SHA1, 0x23), ..Token::new(&ticket()) };
    assert_eq!(server().reason(&token.encode()), Reason::WrongAuthenticator);
    let token = Token { cusec: 1_000_000, ..Token::new(&ticket()) };
    assert_eq!(server().reason(&token.encode()), Reason::Malformed);
}

#[test]
fn clocks_may_differ_by_five_minutes() {
    for ahead in [-300, 0, 300] {
        let token = Token { ctime: NOW + ahead, ..Token::new(&ticket()) };
        assert!(server().accept(&token.encode()).is_ok(), "{ahead}");
    }
    for seconds in [-301, 301, -4_000_000, 4_000_000] {
        let token = Token { ctime: NOW + seconds, ..Token::new(&ticket()) };
        assert_eq!(server().reason(&token.encode()), Reason::ClockSkew { seconds });
    }
}

#[test]
fn tickets_begin_and_end() {
    for start in [None, Some(NOW + 300)] {
        assert!(server().accept(&Token::new(&Ticket { start_time: start, ..ticket() }).encode()).is_ok());
    }
    let early = Ticket { start_time: Some(NOW + 301), ..ticket() };
    assert_eq!(reason_for(&early), Reason::NotYetValid { seconds: 301 });
    // without a start, the ticket begins when its client was authenticated
    let early = Ticket { start_time: None, auth_time: NOW + 400, ..ticket() };
    assert_eq!(reason_for(&early), Reason::NotYetValid { seconds: 400 });
    assert!(server().accept(&Token::new(&Ticket { end_time: NOW - 300, ..ticket() }).encode()).is_ok());
    assert_eq!(reason_for(&Ticket { end_time: NOW - 301, ..ticket() }), Reason::Expired { seconds: 301 });
    let narrow = Server::new(Settings { clock_skew: Duration::from_secs(1), ..Settings::default() });
    let over = Ticket { end_time: NOW - 2, ..ticket() };
    assert_eq!(narrow.reason(&Token::new(&over).encode()), Reason::Expired { seconds: 2 });
}

/// Windows corrects its clock with the time in a KRB-ERROR and tries again.
#[test]
fn the_client_is_told_with_our_time() {
    let told = |token: Vec<u8>| {
        let refused = server().accept(&token).unwrap_err();
        let error = read_krb_error(&refused.reply.unwrap());
        assert_eq!(error.stime, b"20261125223233Z");
        assert_eq!((error.realm.as_str(), error.name), (REALM, SERVICE.map(str::to_owned).to_vec()));
        error.code
    };
    assert_eq!(told(Token { ctime: NOW + 301, ..Token::new(&ticket()) }.encode()), 37);
    assert_eq!(told(Token::new(&Ticket { end_time: NOW - 301, ..ticket() }).encode()), 32);
    assert_eq!(told(Token::new(&Ticket { start_time: Some(NOW + 301), ..ticket() }).encode()), 33);
    assert_eq!(told(Token::new(&Ticket { key: key(SHA1, 0x12), ..ticket() }).encode()), 41);
    assert_eq!(told(Token::new(&Ticket { kvno: Some(4), ..ticket() }).encode()), 44);
    assert_eq!(told(Token { session: key(SHA1, 0x23), ..Token::new(&ticket()) }.encode()), 31);
    assert_eq!(told(Token { client: &["bob"], ..Token::new(&ticket()) }.encode()), 36);
}

#[test]
fn a_refusal_names_the_client_once_the_ticket_is_ours() {
    let refused = server().accept(&Token { ctime: 0, ..Token::new(&ticket()) }.encode()).unwrap_err();
    assert_eq!(refused.client.unwrap().as_str(), "alice@LAB.TEST");
    let refused =
        server().accept(&Token::new(&Ticket { key: key(SHA1, 9), ..ticket() }).encode()).unwrap_err();
    assert_eq!(refused.client, None);
    assert_eq!(refused.service.unwrap().as_str(), "cifs/files.lab.test@LAB.TEST");
    assert_eq!(refused.reason.class(), ReasonClass::Keytab);
    let refused = server().accept(b"no token").unwrap_err();
    assert_eq!((refused.reason, refused.service, refused.reply), (Reason::NotKerberos, None, None));
}

#[test]
fn a_token_is_accepted_once_on_all_shards() {
    let replays = replays();
    let shards = [server(), server()];
    let token = Token::new(&ticket()).encode();
    assert!(shards[0].accept_once(&token, NOW, &replays).is_ok());
    for later in [0, 1, 299] {
        for shard in &shards {
            let refused = shard.accept_once(&token, NOW + later, &replays).unwrap_err();
            assert_eq!((refused.reason, refused.client.is_some()), (Reason::Replayed, true));
            assert_eq!(read_krb_error(&refused.reply.unwrap()).code, 34);
        }
    }
    // after its time it is refused before the cache is asked
    let refused = shards[0].accept_once(&token, NOW + 301, &replays).unwrap_err();
    assert_eq!(refused.reason, Reason::ClockSkew { seconds: -301 });
    // what no key covers does not make another token of it
    let relabelled = Token { options: 0, ..Token::new(&ticket()) }.encode();
    assert_eq!(shards[1].accept_once(&relabelled, NOW, &replays).unwrap_err().reason, Reason::Replayed);
}

#[test]
fn a_token_that_is_refused_is_not_remembered() {
    let replays = replays();
    let token = Token { ctime: NOW + 302, ..Token::new(&ticket()) }.encode();
    let refused = server().accept_once(&token, NOW, &replays).unwrap_err();
    assert_eq!(refused.reason, Reason::ClockSkew { seconds: 302 });
    assert!(server().accept_once(&token, NOW + 2, &replays).is_ok());
}

#[test]
fn a_full_replay_cache_refuses() {
    let replays = Cell(RefCell::new(ReplayCache::new(64, Duration::from_secs(300))));
    let outcomes: Vec<_> = (0..1000)
        .map(|cusec| Token { cusec, ..Token::new(&ticket()) }.encode())
        .map(|token| server().accept_once(&token, NOW, &replays).map_err(|refused| refused.reason))
        .collect();
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 64);
    let full = |outcome: &&Result<_, _>| matches!(outcome, Err(Reason::ReplayCacheFull));
    assert_eq!(outcomes.iter().filter(full).count(), 936);
}

#[test]
fn a_client_that_binds_itself_must_be_bound_to_this_channel() {
    let ours = ChannelBindings::sent([7; 16]);
    let token = |bindings| {
        let checksum = Some((GSS_CHECKSUM, gss_checksum(mint::FLAGS, bindings)));
        Token { checksum, ..Token::new(&ticket()) }.encode()
    };
    for (rule, unbound) in
        [(ChannelBindingRule::IfSent, None), (ChannelBindingRule::Required, Some(Reason::NoChannelBindings))]
    {
        let server = Server { channel: Some(Channel { bindings: ours, rule }), ..server() };
        let reason = |token: &[u8]| server.accept(token).err().map(|refused| refused.reason);
        assert_eq!(reason(&token([7; 16])), None);
        assert_eq!(reason(&token([8; 16])), Some(Reason::OtherChannel));
        assert_eq!(reason(&token([0; 16])), unbound);
    }
    // without a channel there is nothing to compare with
    assert!(server().accept(&token([7; 16])).is_ok() && server().accept(&token([0; 16])).is_ok());
}

#[test]
fn a_server_may_require_a_pac() {
    let server = Server::new(Settings { pac: PacRule::Required, ..Settings::default() });
    let accept = |authorization_data| {
        let ticket = Ticket { authorization_data, ..ticket() };
        server.accept(&Token::new(&ticket).encode()).err().map(|refused| refused.reason)
    };
    assert_eq!(accept(None), Some(Reason::NoPac));
    assert_eq!(accept(Some(authorization_data(2, b"other"))), Some(Reason::NoPac));
    let pac = mint::PacOf::new().signed(&key(SHA1, 0x11));
    assert_eq!(accept(Some(around_pac(&pac))), None);
    // a PAC of a KDC that is no domain controller
    let pac = mint::sign(&[(10, mint::PacOf::new().client_info())], &key(SHA1, 0x11));
    assert_eq!(accept(Some(around_pac(&pac))), Some(Reason::NoPac));
}

#[test]
fn a_client_of_another_realm_needs_a_checked_way_or_a_pac() {
    let foreign = Ticket { client_realm: "OTHER.TEST", ..ticket() };
    assert_eq!(reason_for(&foreign), Reason::TransitedUnchecked);
    let checked = Ticket { flags: foreign.flags | 1 << 19, ..foreign.clone() };
    assert!(server().accept(&Token::new(&checked).encode()).is_ok());
    let pac = mint::PacOf { name: "alice@OTHER.TEST", ..mint::PacOf::new() }.signed(&key(SHA1, 0x11));
    let user = Ticket { authorization_data: Some(around_pac(&pac)), ..foreign };
    assert!(server().accept(&Token::new(&user).encode()).is_ok());
}

#[test]
fn a_token_has_at_most_64_kib() {
    let pad = |length: usize| {
        let data = authorization_data(2, &vec![0; length]);
        Token::new(&Ticket { authorization_data: Some(data), ..ticket() }).encode()
    };
    let (mut length, mut token) = (64_000, pad(64_000));
    while token.len() < 64 << 10 {
        length += (64 << 10) - token.len();
        token = pad(length);
    }
    assert_eq!(token.len(), 64 << 10);
    assert!(server().accept(&token).is_ok());
    let larger = pad(length + 1);
    assert_eq!((larger.len(), server().reason(&larger)), ((64 << 10) + 1, Reason::TooLarge));
}

#[test]
fn other_messages_are_refused() {
    let mut other = Token::new(&ticket()).encode();
    let place = other.windows(2).position(|pair| pair == [1, 0]).unwrap();
    other[place] = 2;
    assert_eq!(server().reason(&other), Reason::Version);
    assert_eq!(server().reason(b""), Reason::NotKerberos);
    assert_eq!(server().reason(b"NTLMSSP\0"), Reason::NotKerberos);
}

#[test]
fn reasons_have_labels_of_their_own() {
    let reasons = [
        Reason::TooLarge,
        Reason::NotKerberos,
        Reason::Malformed,
        Reason::WrongKey,
        Reason::Replayed,
        Reason::Expired { seconds: 1 },
        Reason::ClockSkew { seconds: -1 },
    ];
    let labels: std::collections::BTreeSet<_> = reasons.iter().map(|reason| reason.label()).collect();
    assert_eq!(labels.len(), reasons.len());
    let skew = Reason::ClockSkew { seconds: -400 }.to_string();
    assert!(skew.contains("-400 s"), "{skew}");
}

#[test]
fn nothing_shows_a_key() {
    let accepted = server().accept(&Token::new(&ticket()).encode()).unwrap();
    let shown = format!("{accepted:?} {:?} {:?}", accepted.context, randomness());
    for secret in ["0x44", "68, 68", "4444", "34, 34", "51, 51"] {
        assert!(!shown.contains(secret), "{shown}");
    }
    let _: &Key = accepted.context.session_key();
}
