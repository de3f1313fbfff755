use super::*;
use crate::FailureClass;
use crate::accounts::{AccountList, nt_hash};
use crate::initiator::{Credentials, Initiator, InitiatorError, InitiatorStep, Randomness};
use crate::ntlm::{
    self, AnswerOptions, AnsweringClient, AuthenticateMessage, MessageSigner, NegotiateFlags, Side, answer,
    negotiate_message,
};
use crate::spnego::{KERBEROS, MechTypes, NegState, NegTokenInit, NegTokenResp};

const SERVER_CHALLENGE: [u8; 8] = [0x51; 8];
const NOW: u64 = 0x01dd_0000_0000_0000;

fn config() -> Config {
    let names = ServerNames {
        nb_computer: "ANABRANCH".into(),
        nb_domain: "WORKGROUP".into(),
        dns_computer: "anabranch.example".into(),
        dns_domain: "example".into(),
    };
    Config { names, allow_anonymous: false, guest: None, kerberos: None, iakerb: None, ntlm: Ntlm::On }
}

fn account(name: &str, password: &str) -> Account {
    Account {
        name: name.into(),
        nt_hash: Some(nt_hash(password)),
        keys: None,
        uid: 1000,
        gid: 100,
        groups: vec![27],
        sid: None,
        disabled: false,
    }
}

fn accounts() -> AccountList {
    let disabled = Account { disabled: true, ..account("gone", "secret") };
    AccountList(vec![account("Ann", "secret"), disabled, account("empty", "")])
}

fn nonces() -> Nonces {
    Nonces {
        server_challenge: SERVER_CHALLENGE,
        confounder: [0x52; 16],
        subkey: [0x53; 32],
        sequence_number: [0x54; 4],
        kdc: [5, 6, 7].map(|fill| kdc::Randomness::new([fill; 32], [fill; 16], [fill; 16])),
    }
}

fn acceptor(config: Config) -> Acceptor {
    Acceptor::new(Arc::new(config), nonces(), NOW)
}

fn proceed(step: Step) -> (Vec<u8>, Acceptor) {
    match step {
        Step::Continue { reply, next, .. } => (reply, next),
        other => panic!("{other:?}"),
    }
}

fn failed(step: Step) -> Reason {
    match step {
        Step::Fail(failure) => failure.reason,
        other => panic!("{other:?}"),
    }
}

fn done(step: Step) -> Authenticated {
    match step {
        Step::Done(authenticated) => authenticated,
        other => panic!("{other:?}"),
    }
}

/// A client of bare NTLM, whose answer can be modified.
struct Client {
    user: &'static str,
    password: &'static str,
    options: AnswerOptions,
}

impl Default for Client {
    fn default() -> Self {
        Self { user: "ann", password: "secret", options: AnswerOptions::default() }
    }
}

impl Client {
    /// Logs on, with `bend` applied to the last message.
    fn log_on_bent(&self, config: Config, bend: impl Fn(Vec<u8>) -> Vec<u8>) -> Step {
        let negotiate = negotiate_message();
        let (challenge, next) = proceed(acceptor(config).step(&negotiate, &accounts()));
        next.step(&bend(self.answer(&negotiate, &challenge)), &accounts())
    }

    fn log_on(&self) -> Step {
        self.log_on_bent(config(), |message| message)
    }

    fn answer(&self, negotiate: &[u8], challenge: &[u8]) -> Vec<u8> {
        let with = AnsweringClient {
            user: self.user,
            domain: "WORKGROUP",
            nt_hash: &nt_hash(self.password),
            client_challenge: [0xc1; 8],
            session_key: [0x5e; 16],
            timestamp: NOW,
            options: self.options,
        };
        answer(&with, negotiate, challenge).unwrap().0
    }
}

/// All options for a client's answer.
fn all_options() -> impl Iterator<Item = AnswerOptions> {
    (0..8).map(|bits| AnswerOptions {
        mic: bits & 1 != 0,
        target_info: bits & 2 != 0,
        key_exchange: bits & 4 != 0,
        channel_bindings: None,
    })
}

/// Decodes a message, changes it, and encodes it again.
fn rebuilt(message: &[u8], change: impl Fn(&mut AuthenticateMessage<'_>)) -> Vec<u8> {
    let mut decoded = AuthenticateMessage::decode(message).unwrap();
    change(&mut decoded);
    decoded.encode()
}

#[test]
fn the_right_password_lets_in_and_agrees_on_the_key() {
    for options in all_options() {
        let authenticated = done(Client { options, ..Client::default() }.log_on());
        let Identity::Account(account) = authenticated.identity else { panic!("an account") };
        assert_eq!((account.name.as_str(), account.uid), ("Ann", 1000));
        assert_eq!(authenticated.session_key == [0x5e; 16].into(), options.key_exchange);
        assert_eq!(authenticated.mic, options.mic);
        assert!(authenticated.reply.is_empty());
    }
}

/// A mistake of the best-known library: if the MIC is left out, the proof is not checked.
#[test]
fn a_wrong_password_never_lets_in() {
    for options in all_options() {
        for password in ["Secret", "", "secret ", "wrong"] {
            let client = Client { password, options, ..Client::default() };
            assert_eq!(failed(client.log_on()), Reason::WrongPassword, "{options:?}");
        }
        let client = Client { user: "nobody", options, ..Client::default() };
        assert_eq!(failed(client.log_on()), Reason::UnknownUser);
        let client = Client { user: "gone", options, ..Client::default() };
        assert_eq!(failed(client.log_on()), Reason::Disabled);
        let client = Client { user: "gone", password: "wrong", options };
        assert_eq!(failed(client.log_on()), Reason::WrongPassword);
    }
}

#[test]
fn an_unknown_user_and_a_wrong_password_look_the_same() {
    assert_eq!(Reason::UnknownUser.class(), FailureClass::LogonFailure);
    assert_eq!(Reason::WrongPassword.class(), FailureClass::LogonFailure);
    assert_eq!(Reason::Disabled.class(), FailureClass::AccountDisabled);
}

#[test]
fn names_are_compared_without_case_and_responses_follow_the_name_as_written() {
    for user in ["Ann", "ANN", "aNN"] {
        assert!(matches!(Client { user, ..Client::default() }.log_on(), Step::Done(_)), "{user}");
    }
}

#[test]
fn a_name_with_a_domain_or_realm_is_the_local_account() {
    for user in ["ann@REALM", "ANN@files.example.org", "DOMAIN\\ann"] {
        let authenticated = done(Client { user, ..Client::default() }.log_on());
        let Identity::Account(account) = authenticated.identity else { panic!("an account") };
        assert_eq!(account.name, "Ann", "{user}");
        let wrong = Client { user, password: "Secret", ..Client::default() };
        assert_eq!(failed(wrong.log_on()), Reason::WrongPassword, "{user}");
    }
    let stranger = Client { user: "annie@ann", ..Client::default() };
    assert_eq!(failed(stranger.log_on()), Reason::UnknownUser);
}

#[test]
fn an_account_with_an_empty_password_wants_a_response_too() {
    let client = Client { user: "empty", password: "", ..Client::default() };
    done(client.log_on());
    let bare = client.log_on_bent(config(), |message| rebuilt(&message, |message| message.nt_response = &[]));
    assert_eq!(failed(bare), Reason::EmptyResponse);
}

#[test]
fn responses_that_are_not_ntlmv2_are_refused() {
    let with = |nt: &'static [u8], lm: &'static [u8]| {
        let change = move |message: &mut AuthenticateMessage<'_>| {
            (message.nt_response, message.lm_response) = (nt, lm);
        };
        failed(Client::default().log_on_bent(config(), |message| rebuilt(&message, change)))
    };
    assert_eq!(with(&[], &[7; 24]), Reason::EmptyResponse); // LMv2 alone
    assert_eq!(with(&[], &[]), Reason::EmptyResponse);
    assert_eq!(with(&[7; 24], &[7; 24]), Reason::Ntlmv1);
    for short in [&[7; 1][..], &[7; 16], &[7; 23], &[7; 25], &[7; 43], &[7; 47]] {
        let step = Client::default()
            .log_on_bent(config(), |message| rebuilt(&message, |message| message.nt_response = short));
        assert_eq!(failed(step), Reason::Malformed, "{} bytes", short.len());
    }
    assert_eq!(with(&[7; 48], &[]), Reason::Malformed); // RespType is not 1
}

#[test]
fn an_answer_to_another_challenge_is_refused() {
    let negotiate = negotiate_message();
    let (challenge, _) = proceed(acceptor(config()).step(&negotiate, &accounts()));
    for mic in [true, false] {
        let options = AnswerOptions { mic, ..AnswerOptions::default() };
        let recorded = Client { options, ..Client::default() }.answer(&negotiate, &challenge);
        let later =
            Acceptor::new(Arc::new(config()), Nonces { server_challenge: [0x52; 8], ..nonces() }, NOW);
        let (_, next) = proceed(later.step(&negotiate, &accounts()));
        assert_eq!(failed(next.step(&recorded, &accounts())), Reason::WrongPassword);
    }
}

/// [MS-NLMP] 2.2.2.1: what is sent of a channel must be this one; zeros and nothing are the same.
#[test]
fn a_password_that_is_bound_to_a_channel_is_good_for_that_channel_alone() {
    use krb5::{ChannelBindingRule, ChannelBindings};
    let (ours, other) = (ChannelBindings::sent([1; 16]), ChannelBindings::sent([2; 16]));
    let through = |channel, channel_bindings, password| {
        let options = AnswerOptions { channel_bindings, ..AnswerOptions::default() };
        let client = Client { options, password, ..Client::default() };
        let negotiate = negotiate_message();
        let begun = acceptor(config()).through(channel).step(&negotiate, &accounts());
        let (challenge, next) = proceed(begun);
        match next.step(&client.answer(&negotiate, &challenge), &accounts()) {
            Step::Done(_) => Ok(()),
            step => Err(failed(step)),
        }
    };
    for (rule, unbound) in
        [(ChannelBindingRule::IfSent, Ok(())), (ChannelBindingRule::Required, Err(Reason::NoChannelBindings))]
    {
        let channel = Some(Channel { bindings: ours, rule });
        assert_eq!(through(channel, ours, "secret"), Ok(()));
        assert_eq!(through(channel, None, "secret"), unbound);
        assert_eq!(through(channel, other, "secret"), Err(Reason::OtherChannel));
        // The status of a wrong password and that of a wrong channel are the same.
        assert_eq!(through(channel, other, "wrong"), Err(Reason::WrongPassword));
        assert_eq!(Reason::OtherChannel.class(), Reason::WrongPassword.class());
        assert_eq!(Reason::NoChannelBindings.class(), Reason::WrongPassword.class());
    }
    for sent in [None, ours, other] {
        assert_eq!(through(None, sent, "secret"), Ok(()), "there is no channel to compare with");
    }
}

#[test]
fn the_mic_cannot_be_taken_out_on_the_way() {
    let client = Client::default();
    // the field cut out, the flag left
    let cut = |message: Vec<u8>| rebuilt(&message, |message| message.mic = None);
    assert_eq!(failed(client.log_on_bent(config(), cut)), Reason::MissingMic);
    // the field zeroed
    let zeroed = |message: Vec<u8>| rebuilt(&message, |message| message.mic = Some([0; 16]));
    assert_eq!(failed(client.log_on_bent(config(), zeroed)), Reason::WrongMic);
    // the flag cleared, or the pair turned into another one: the proof covers it
    let flags = [6, 0, 4, 0, 2, 0, 0, 0];
    for (at, value) in [(4, 0), (0, 0x0a)] {
        let bend = move |mut message: Vec<u8>| {
            let start = message.windows(8).position(|window| window == flags).unwrap();
            message[start + at] = value;
            message
        };
        assert_eq!(failed(client.log_on_bent(config(), bend)), Reason::WrongPassword);
    }
}

#[test]
fn the_mic_covers_all_three_messages() {
    let client = Client::default();
    for at in 0..client.answer(&negotiate_message(), &server_challenge_message()).len() {
        let step = client.log_on_bent(config(), |mut message| {
            message[at] ^= 0x80;
            message
        });
        assert!(matches!(step, Step::Fail(_)), "byte {at}");
    }
    // a client that saw another NEGOTIATE or CHALLENGE than were sent
    let negotiate = negotiate_message();
    let (challenge, next) = proceed(acceptor(config()).step(&negotiate, &accounts()));
    let mut stripped = negotiate.clone();
    stripped[15] ^= 0x20;
    let message = client.answer(&stripped, &challenge);
    assert_eq!(failed(next.step(&message, &accounts())), Reason::WrongMic);
    let (mut challenge, next) = proceed(acceptor(config()).step(&negotiate, &accounts()));
    challenge[23] ^= 0x20;
    let message = client.answer(&negotiate, &challenge);
    assert_eq!(failed(next.step(&message, &accounts())), Reason::WrongMic);
}

fn server_challenge_message() -> Vec<u8> {
    proceed(acceptor(config()).step(&negotiate_message(), &accounts())).0
}

#[test]
fn the_challenge_names_the_server_and_its_time() {
    let challenge = server_challenge_message();
    let message = ntlm::ChallengeMessage::decode(&challenge).unwrap();
    assert_eq!(message.server_challenge, SERVER_CHALLENGE);
    let pairs = ntlm::AvPairs::decode(message.target_info).unwrap();
    assert_eq!(pairs.find(ntlm::AvId::Timestamp), Some(&NOW.to_le_bytes()[..]));
    let name: Vec<u8> = "ANABRANCH".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(pairs.find(ntlm::AvId::NbComputerName), Some(name.as_slice()));
    assert_eq!(message.target_name, name);
    // no flag is granted that was not asked for
    let plain = ntlm::NegotiateMessage { flags: NegotiateFlags::UNICODE }.encode();
    let (challenge, _) = proceed(acceptor(config()).step(&plain, &accounts()));
    let granted = ntlm::ChallengeMessage::decode(&challenge).unwrap().flags;
    assert!(!granted.intersects(NegotiateFlags::KEY_EXCH | NegotiateFlags::SIGN | NegotiateFlags::BITS_128));
    let oem = ntlm::NegotiateMessage { flags: NegotiateFlags::OEM }.encode();
    assert_eq!(failed(acceptor(config()).step(&oem, &accounts())), Reason::NoUnicode);
}

#[test]
fn a_client_without_a_name_is_anonymous_and_refused_by_default() {
    let nameless = |message: Vec<u8>| {
        rebuilt(&message, |message| {
            (message.user, message.nt_response, message.lm_response) = (&[], &[], &[0]);
            message.flags |= NegotiateFlags::ANONYMOUS;
        })
    };
    let client = Client::default();
    let step = client.log_on_bent(config(), nameless);
    assert_eq!(failed(step), Reason::Anonymous);
    let open = Config { allow_anonymous: true, ..config() };
    assert_eq!(done(client.log_on_bent(open.clone(), nameless)).identity, Identity::Anonymous);
    let without_unicode = |message: Vec<u8>| {
        rebuilt(&nameless(message), |message| message.flags.remove(NegotiateFlags::UNICODE))
    };
    assert_eq!(done(client.log_on_bent(open.clone(), without_unicode)).identity, Identity::Anonymous);
    let named = |message: Vec<u8>| rebuilt(&message, |m| m.flags.remove(NegotiateFlags::UNICODE));
    assert_eq!(failed(client.log_on_bent(open.clone(), named)), Reason::NoUnicode);
    // a response without a name, and a name without a response, are not anonymous
    let no_name = |message: Vec<u8>| rebuilt(&message, |message| message.user = &[]);
    assert_eq!(failed(client.log_on_bent(open.clone(), no_name)), Reason::UnknownUser);
    let no_response = |message: Vec<u8>| {
        rebuilt(&message, |message| (message.nt_response, message.lm_response) = (&[], &[]))
    };
    assert_eq!(failed(client.log_on_bent(open, no_response)), Reason::EmptyResponse);
}

#[test]
fn only_unknown_users_become_guests() {
    let config = Config { guest: Some(account("guest", "")), ..config() };
    let stranger = Client { user: "stranger", ..Client::default() };
    let outcome = done(stranger.log_on_bent(config.clone(), |message| message));
    assert_eq!(outcome.identity, Identity::Guest(account("guest", "")));
    assert_eq!(outcome.session_key, [0; 16].into());
    let wrong = Client { password: "wrong", ..Client::default() };
    assert_eq!(failed(wrong.log_on_bent(config, |message| message)), Reason::WrongPassword);
}

#[test]
fn the_key_must_have_its_size() {
    for length in [0, 8, 15, 17] {
        let key = vec![1; length];
        let step =
            Client { options: AnswerOptions { mic: false, ..AnswerOptions::default() }, ..Client::default() }
                .log_on_bent(config(), |message| {
                    let mut decoded = AuthenticateMessage::decode(&message).unwrap();
                    decoded.encrypted_session_key = &key;
                    decoded.encode()
                });
        assert_eq!(failed(step), Reason::Malformed, "{length}");
    }
}

fn initiator(password: &str) -> (Vec<u8>, Initiator) {
    let credentials = Credentials { user: "ann".into(), domain: String::new(), nt_hash: nt_hash(password) };
    let randomness = Randomness { client_challenge: [1; 8], session_key: [2; 16], timestamp: NOW };
    Initiator::start(credentials, randomness)
}

#[test]
fn both_sides_of_this_program_agree() {
    let (token, client) = initiator("secret");
    let (reply, server) = proceed(acceptor(config()).step(&token, &accounts()));
    let Ok(InitiatorStep::Continue { token, session_key, next }) = client.step(&reply) else {
        panic!("a challenge is answered")
    };
    let outcome = done(server.step(&token, &accounts()));
    assert_eq!((outcome.session_key, outcome.mic), (session_key, true));
    let shown = format!("{outcome:?}{:?}", InitiatorStep::Done);
    assert!(!shown.contains("session_key") && !shown.contains("2, 2"), "{shown}");
    let mut forged = outcome.reply.clone();
    *forged.last_mut().unwrap() ^= 1;
    assert!(matches!(next.step(&outcome.reply), Ok(InitiatorStep::Done)));

    let (token, client) = initiator("secret");
    let (reply, _) = proceed(acceptor(config()).step(&token, &accounts()));
    let Ok(InitiatorStep::Continue { next, .. }) = client.step(&reply) else { panic!() };
    assert_eq!(next.step(&forged).unwrap_err(), InitiatorError::MechListMic);

    let (token, client) = initiator("wrong");
    let (reply, server) = proceed(acceptor(config()).step(&token, &accounts()));
    let Ok(InitiatorStep::Continue { token, .. }) = client.step(&reply) else { panic!() };
    assert_eq!(failed(server.step(&token, &accounts())), Reason::WrongPassword);
}

const SIGNED: NegotiateFlags =
    NegotiateFlags::EXTENDED_SESSION_SECURITY.union(NegotiateFlags::BITS_128).union(NegotiateFlags::KEY_EXCH);

/// Logs on with NTLM as the second choice after Kerberos, and with this MIC over the mechanism list.
fn log_on_after_kerberos(mech_list_mic: Option<&[u8]>) -> Step {
    let init = NegTokenInit {
        mech_types: MechTypes::new(&[KERBEROS, NTLMSSP]),
        mech_token: Some(b"a Kerberos ticket"),
        mech_list_mic: None,
    };
    let (reply, next) = proceed(acceptor(config()).step(&init.encode(), &accounts()));
    let Ok(Token::Resp(response)) = Token::decode(&reply) else { panic!("a NegTokenResp") };
    assert_eq!(response.neg_state, Some(NegState::RequestMic));
    assert_eq!((response.supported_mech, response.response_token), (Some(NTLMSSP), None));
    let negotiate = negotiate_message();
    let token = NegTokenResp { response_token: Some(&negotiate), ..NegTokenResp::default() };
    let (reply, next) = proceed(next.step(&token.encode(), &accounts()));
    let Ok(Token::Resp(response)) = Token::decode(&reply) else { panic!("a NegTokenResp") };
    let message = Client::default().answer(&negotiate, response.response_token.unwrap());
    let token = NegTokenResp { response_token: Some(&message), mech_list_mic, ..NegTokenResp::default() };
    next.step(&token.encode(), &accounts())
}

/// A client that prefers Kerberos: its first token is for Kerberos and is ignored, and the mechanism list must be
/// protected, so that nobody can remove Kerberos from it.
#[test]
fn ntlm_is_taken_from_a_list_that_begins_with_kerberos() {
    let sign = |oids: &[&[u8]]| {
        MessageSigner::new(&[0x5e; 16], SIGNED, Side::Client).unwrap().sign(&MechTypes::new(oids).encoding)
    };
    let outcome = done(log_on_after_kerberos(Some(&sign(&[KERBEROS, NTLMSSP]))));
    let Ok(Token::Resp(response)) = Token::decode(&outcome.reply) else { panic!("a NegTokenResp") };
    assert_eq!(response.neg_state, Some(NegState::AcceptCompleted));
    let mut server = MessageSigner::new(&[0x5e; 16], SIGNED, Side::Server).unwrap();
    let list = MechTypes::new(&[KERBEROS, NTLMSSP]).encoding;
    assert!(server.verify(&list, response.mech_list_mic.unwrap()));

    assert_eq!(failed(log_on_after_kerberos(None)), Reason::MissingMechListMic);
    let of_shorter_list = sign(&[NTLMSSP]);
    assert_eq!(failed(log_on_after_kerberos(Some(&of_shorter_list))), Reason::WrongMechListMic);
    for length in [0, 1, 15, 17] {
        let step = log_on_after_kerberos(Some(&vec![1; length]));
        assert_eq!(failed(step), Reason::WrongMechListMic, "{length} bytes");
    }
}

#[test]
fn what_is_kept_of_a_client_is_counted() {
    let held = |token: &[u8]| proceed(acceptor(config()).step(token, &accounts())).1.held_bytes();
    let listed = |oid: &[u8]| {
        let mech_types = MechTypes::new(&[oid, NTLMSSP]);
        NegTokenInit { mech_types, mech_token: None, mech_list_mic: None }.encode()
    };
    let ordinary = negotiate_message();
    assert!((ordinary.len()..1024).contains(&held(&ordinary)));
    assert!((20..1024).contains(&held(&listed(KERBEROS))));
    let long = [&ordinary[..], &[0; 50_000]].concat();
    assert!((50_000..52_000).contains(&held(&long)));
    // As it was sent, for the MIC, and taken apart.
    assert!((40_000..42_000).contains(&held(&listed(&[1; 20_000]))));
}

#[test]
fn what_does_not_belong_here_is_refused() {
    let init = |oids: &[&[u8]]| {
        NegTokenInit { mech_types: MechTypes::new(oids), mech_token: None, mech_list_mic: None }.encode()
    };
    let refused = |token: &[u8]| failed(acceptor(config()).step(token, &accounts()));
    assert_eq!(refused(&init(&[KERBEROS])), Reason::NoCommonMechanism);
    assert_eq!(refused(&init(&[])), Reason::NoCommonMechanism);
    assert_eq!(refused(b""), Reason::Malformed);
    assert_eq!(refused(b"NTLMSSP\0"), Reason::Malformed);
    assert_eq!(refused(&NegTokenResp::default().encode()), Reason::Malformed);
    // the last message as the first one, and the first one twice
    let answer = Client::default().answer(&negotiate_message(), &server_challenge_message());
    assert_eq!(refused(&answer), Reason::Malformed);
    let (_, next) = proceed(acceptor(config()).step(&negotiate_message(), &accounts()));
    assert_eq!(failed(next.step(&negotiate_message(), &accounts())), Reason::Malformed);
    // a client that gives up
    let (token, _) = initiator("secret");
    let (_, next) = proceed(acceptor(config()).step(&token, &accounts()));
    let reject = NegTokenResp { neg_state: Some(NegState::Reject), ..NegTokenResp::default() };
    assert_eq!(failed(next.step(&reject.encode(), &accounts())), Reason::Malformed);
    // a client that prefers NTLM but sends no token: the acceptor asks for one
    let (_, next) = proceed(acceptor(config()).step(&init(&[NTLMSSP]), &accounts()));
    let token =
        NegTokenResp { response_token: Some(&negotiate_message()), ..NegTokenResp::default() }.encode();
    proceed(next.step(&token, &accounts()));
}

#[test]
fn no_token_makes_the_acceptor_panic_or_let_in() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let fresh = acceptor(config()).step(bytes, &accounts());
        assert!(!matches!(fresh, Step::Done(_)));
        let (_, next) = proceed(acceptor(config()).step(&negotiate_message(), &accounts()));
        assert!(matches!(next.step(bytes, &accounts()), Step::Fail(_)));
        let (token, client) = initiator("secret");
        let (_, next) = proceed(acceptor(config()).step(&token, &accounts()));
        assert!(matches!(next.step(bytes, &accounts()), Step::Fail(_)));
        let _ = client.step(bytes);
    });
}

/// Tokens from other implementations, with some bytes changed and some cut off.
#[test]
fn no_changed_token_makes_the_acceptor_panic_or_let_in() {
    let text = concat!(
        include_str!("../../testdata/captures/smbclient.txt"),
        include_str!("../../testdata/captures/windows.txt"),
        include_str!("../../testdata/captures/smbclient-anonymous.txt"),
    );
    let tokens: Vec<Vec<u8>> = text
        .lines()
        .filter_map(|line| line.strip_prefix("> ").or_else(|| line.strip_prefix("< ")))
        .map(|hex| {
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
        })
        .collect();
    bolero::check!().with_type::<(u8, Vec<(u16, u8)>, u16)>().for_each(|(which, changes, length)| {
        let mut token = tokens[usize::from(*which) % tokens.len()].clone();
        for (at, value) in changes {
            let at = usize::from(*at) % token.len();
            token[at] = *value;
        }
        token.truncate(usize::from(*length).max(1));
        let _ = acceptor(config()).step(&token, &accounts());
        let (first, client) = initiator("secret");
        let (_, next) = proceed(acceptor(config()).step(&first, &accounts()));
        assert!(matches!(next.step(&token, &accounts()), Step::Fail(_)));
        let _ = client.step(&token);
    });
}

#[test]
fn without_ntlm_neither_form_of_it_is_accepted() {
    let off =
        || Config { ntlm: Ntlm::Off, allow_anonymous: true, guest: Some(account("guest", "")), ..config() };
    assert_eq!(failed(acceptor(off()).step(&negotiate_message(), &accounts())), Reason::NtlmOff);
    for oids in [&[NTLMSSP][..], &[KERBEROS, NTLMSSP]] {
        let init = NegTokenInit {
            mech_types: MechTypes::new(oids),
            mech_token: Some(&negotiate_message()),
            mech_list_mic: None,
        };
        let Step::Fail(failure) = acceptor(off()).step(&init.encode(), &accounts()) else {
            panic!("a failure")
        };
        assert_eq!((failure.reason, failure.reason.class()), (Reason::NtlmOff, FailureClass::NtlmBlocked));
    }
    assert_eq!(off().mechanisms(), []);
}

/// The password may be right or wrong: which, is not known.
#[test]
fn an_account_without_an_nt_hash_is_refused_as_with_a_wrong_password() {
    let bare = Account { nt_hash: None, ..account("Ann", "secret") };
    for password in ["secret", "", "wrong"] {
        let client = Client { password, ..Client::default() };
        let (challenge, next) = proceed(acceptor(config()).step(&negotiate_message(), &accounts()));
        let answer = client.answer(&negotiate_message(), &challenge);
        let reason = failed(next.step(&answer, &AccountList(vec![bare.clone()])));
        assert_eq!((reason, reason.class()), (Reason::NoNtHash, FailureClass::LogonFailure));
    }
}
