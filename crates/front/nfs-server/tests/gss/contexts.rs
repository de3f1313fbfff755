//! Contexts begin and end: RFC 2203 5.2, 5.3.3 and 5.4.

use krb5::Enctype;
use nfs_wire::gss::{Procedure, SEQUENCE_MAX, Service, major};
use nfs_wire::rpc::{AcceptStatus, AuthStatus, Denied, OpaqueAuth, ReplyBody};
use nfs_wire::v3;
use nfs_wire::xdr::Encode;

use crate::client::{Context, NFS, NULL, Outcome, begin, now, record, server, ticket, token, use_keys};
use crate::mint::{self, read_krb_error};
use crate::server::{Client, TestServer};

const SERVICES: [Service; 3] = [Service::None, Service::Integrity, Service::Privacy];

fn denied(status: AuthStatus) -> ReplyBody<'static> {
    ReplyBody::Denied(Denied::AuthError(status))
}

#[test]
fn a_context_begins_with_a_ticket_and_protects_calls() {
    let server = server();
    let mut client = server.client();
    let ticket = ticket(&["alice"]);
    for service in SERVICES {
        let mut context = Context::begin(&mut client, &ticket, service);
        assert_eq!(context.handle.len(), 16);
        for _ in 0..3 {
            assert_eq!(context.exchange(&mut client, NULL, &()), Outcome::Ran(Vec::new()), "{service:?}");
        }
    }
}

#[test]
fn all_encryption_types_serve() {
    for enctype in [Enctype::Aes128Sha1, Enctype::Aes256Sha1, Enctype::Aes128Sha256, Enctype::Aes256Sha384] {
        let server = TestServer::start();
        use_keys(&server, &NFS, enctype);
        let mut client = server.client();
        let of_now = ticket(&["alice"]);
        let ticket =
            mint::Ticket { key: mint::key(enctype, 0x11), session: mint::key(enctype, 0x22), ..of_now };
        let context = Context::begin(&mut client, &ticket, Service::None);
        for service in SERVICES {
            // One context serves all three: the service is that of the call.
            let mut context = Context { sequence: 10 * service as u32, ..context.with(service) };
            let outcome = context.exchange(&mut client, NULL, &());
            assert_eq!(outcome, Outcome::Ran(Vec::new()), "{enctype:?} {service:?}");
        }
    }
}

#[test]
fn a_context_belongs_to_the_server_and_not_to_a_connection() {
    let server = server();
    let mut context = Context::begin(&mut server.client(), &ticket(&["alice"]), Service::Integrity);
    let mut other = server.client();
    assert_eq!(context.exchange(&mut other, NULL, &()), Outcome::Ran(Vec::new()));
}

#[test]
fn without_a_keytab_no_context_begins() {
    let server = TestServer::start();
    let refused = begin(&mut server.client(), &token(&ticket(&["alice"]))).err();
    assert_eq!(refused, Some(denied(AuthStatus::RejectedCredential)));
    use_keys(&server, &NFS, Enctype::Aes256Sha1);
    assert!(begin(&mut server.client(), &token(&ticket(&["alice"]))).is_ok());
}

#[test]
fn a_ticket_that_is_refused_begins_none() {
    let server = server();
    let mut client = server.client();
    let mut refused = |ticket: &mint::Ticket<'_>| {
        let begun = begin(&mut client, &token(ticket)).unwrap();
        assert!(begun.handle.is_empty() && begun.verifier.is_empty());
        (begun.major, begun.token)
    };
    let good = ticket(&["alice"]);
    let old = mint::Ticket { end_time: now() - 400, ..good.clone() };
    let (status, answer) = refused(&old);
    assert_eq!((status, read_krb_error(&answer).code), (major::CREDENTIALS_EXPIRED, 32));
    // Within the difference that clocks may have, the acceptor takes it, but nothing could be done with it.
    let over = mint::Ticket { end_time: now() - 5, ..good.clone() };
    assert_eq!(refused(&over).0, major::CREDENTIALS_EXPIRED);
    let forged = mint::Ticket { key: mint::key(Enctype::Aes256Sha1, 0x12), ..good.clone() };
    assert_eq!(refused(&forged).0, major::FAILURE);
    let other_service = mint::Ticket { service: &["cifs", "files.lab.test"], ..good.clone() };
    assert_eq!(refused(&other_service).0, major::FAILURE);
    let unknown = mint::Ticket { client: &["carol"], ..good };
    assert_eq!(refused(&unknown).0, major::FAILURE, "no account has that name");
    assert_eq!(begin(&mut client, b"no token").unwrap().major, major::BAD_MECHANISM);
    let counts = server.server.context_counts();
    assert_eq!((counts.refused, counts.begun, counts.present), (6, 0, 0));
    let told = server.server.refused_tickets();
    let of_user =
        told.iter().map(|refused| refused.client.as_deref().map(|name| &name[..5])).collect::<Vec<_>>();
    assert_eq!(of_user[..2], [None, Some("carol")], "the last one first");
    assert!(told.iter().any(|refused| refused.service.as_deref() == Some("cifs/files.lab.test@LAB.TEST")));
}

#[test]
fn a_ticket_is_used_once() {
    let server = server();
    let token = token(&ticket(&["alice"]));
    assert_eq!(begin(&mut server.client(), &token).unwrap().major, major::COMPLETE);
    assert_eq!(begin(&mut server.client(), &token).unwrap().major, major::FAILURE);
}

#[test]
fn malformed_control_calls_are_denied() {
    let server = server();
    let mut client = server.client();
    let context = Context::begin(&mut client, &ticket(&["alice"]), Service::None);
    let mut outcome = |record: Vec<u8>| {
        client.send_record(&record);
        context.receive(&mut client, 7, 0)
    };
    let none = Context { handle: Vec::new(), ..context.clone() };
    let bare = |ids, credential: &[u8]| record(7, ids, credential, OpaqueAuth::NONE);
    let init = none.credential(Procedure::Init, 0);
    let getattr = (v3::PROGRAM, v3::VERSION, 1);
    assert_eq!(outcome(bare(getattr, &init)), Outcome::Denied(AuthStatus::BadCredential));
    let with_handle = context.credential(Procedure::Init, 0);
    assert_eq!(outcome(bare(NULL, &with_handle)), Outcome::Denied(AuthStatus::BadCredential));
    assert_eq!(outcome(context.header(7, NULL, &init)), Outcome::Denied(AuthStatus::BadVerifier));
    let more = context.credential(Procedure::ContinueInit, 0);
    assert_eq!(outcome(bare(NULL, &more)), Outcome::Denied(AuthStatus::GssCredentialProblem));
    let mut version_2 = init.clone();
    version_2[3] = 2;
    assert_eq!(outcome(bare(NULL, &version_2)), Outcome::Denied(AuthStatus::RejectedCredential));
    let cut = &init[..init.len() - 4];
    assert_eq!(outcome(bare(NULL, cut)), Outcome::Denied(AuthStatus::BadCredential));
    let without_verifier = bare(NULL, &context.credential(Procedure::Data, 1));
    assert_eq!(outcome(without_verifier), Outcome::Denied(AuthStatus::BadVerifier));
    let no_service = [&context.credential(Procedure::Data, 1)[..12], &[0, 0, 0, 4, 0, 0, 0, 0]].concat();
    assert_eq!(outcome(bare(NULL, &no_service)), Outcome::Denied(AuthStatus::BadCredential));
}

#[test]
fn a_context_that_is_unknown_or_changed_is_a_problem_of_the_credential() {
    let server = server();
    let mut client = server.client();
    let context = Context::begin(&mut client, &ticket(&["alice"]), Service::Integrity);
    let mut unknown = Context { handle: vec![7; 16], ..context.clone() };
    let problem = Outcome::Denied(AuthStatus::GssCredentialProblem);
    assert_eq!(unknown.exchange(&mut client, NULL, &()), problem);
    let mut none = Context { handle: Vec::new(), ..context.clone() };
    assert_eq!(none.exchange(&mut client, NULL, &()), problem);
    // Any bit of the header: here the procedure, which the checksum covers.
    let mut call = context.call_of(1, 9, NULL, &());
    call[23] ^= 1;
    client.send_record(&call);
    assert_eq!(context.receive(&mut client, 9, 1), problem);
    // What was refused has used up no number.
    client.send_record(&context.call_of(1, 10, NULL, &()));
    assert_eq!(context.receive(&mut client, 10, 1), Outcome::Ran(Vec::new()));
}

#[test]
fn a_context_ends_with_its_ticket() {
    let server = server();
    let mut client = server.client();
    let short = mint::Ticket { end_time: now() + 10, ..ticket(&["alice"]) };
    let mut context = Context::begin(&mut client, &short, Service::None);
    let mut seen = Vec::new();
    for _ in 0..600 {
        match context.exchange(&mut client, NULL, &()) {
            Outcome::Ran(_) => std::thread::sleep(std::time::Duration::from_millis(100)),
            Outcome::Denied(status) => {
                seen.push(status);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, [AuthStatus::GssContextProblem]);
    let counts = server.server.context_counts();
    assert_eq!((counts.begun, counts.expired, counts.displaced, counts.present), (1, 1, 0, 0));
    assert!(counts.calls[0] > 0 && counts.calls[1..] == [0, 0], "{counts:?}");
}

#[test]
fn a_client_ends_its_context() {
    let server = server();
    let mut client = server.client();
    let mut context = Context::begin(&mut client, &ticket(&["alice"]), Service::Privacy);
    let destroy = context.header(20, NULL, &context.credential(Procedure::Destroy, 1));
    client.send_record(&destroy);
    assert_eq!(context.with(Service::None).receive(&mut client, 20, 1), Outcome::Ran(Vec::new()));
    context.sequence = 2;
    let gone = Outcome::Denied(AuthStatus::GssCredentialProblem);
    assert_eq!(context.exchange(&mut client, NULL, &()), gone);
}

#[test]
fn contexts_of_an_address_end_when_it_is_disconnected() {
    let server = server();
    let mut context = Context::begin(&mut server.client(), &ticket(&["alice"]), Service::None);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(server.server.disconnect([127, 0, 0, 1].into()));
    let gone = Outcome::Denied(AuthStatus::GssCredentialProblem);
    assert_eq!(context.exchange(&mut server.client(), NULL, &()), gone);
}

#[test]
fn a_number_that_was_seen_or_is_too_old_gets_no_reply() {
    let server = server();
    let mut client = server.client();
    let context = Context::begin(&mut client, &ticket(&["alice"]), Service::None);
    let send = |client: &mut Client, sequence, xid| {
        client.send_record(&context.call_of(sequence, xid, NULL, &()));
    };
    send(&mut client, 1000, 1);
    assert_eq!(context.receive(&mut client, 1, 1000), Outcome::Ran(Vec::new()));
    send(&mut client, 1000, 2);
    send(&mut client, 872, 3);
    send(&mut client, 873, 4);
    assert_eq!(context.receive(&mut client, 4, 873), Outcome::Ran(Vec::new()), "the others were dropped");
    send(&mut client, 873, 5);
    send(&mut client, 1001, 6);
    assert_eq!(context.receive(&mut client, 6, 1001), Outcome::Ran(Vec::new()));
    send(&mut client, SEQUENCE_MAX, 7);
    let problem = Outcome::Denied(AuthStatus::GssContextProblem);
    assert_eq!(context.receive(&mut client, 7, SEQUENCE_MAX), problem);
    send(&mut client, SEQUENCE_MAX - 1, 8);
    assert_eq!(context.receive(&mut client, 8, SEQUENCE_MAX - 1), Outcome::Ran(Vec::new()));
}

#[test]
fn programs_that_are_not_there_are_told_before_the_context_is_asked() {
    let server = server();
    let mut client = server.client();
    let mut context = Context::begin(&mut client, &ticket(&["alice"]), Service::None);
    let call = context.call(30, (100_099, 1, 0), &());
    client.send_record(&call);
    let reply = client.receive_record();
    let expected =
        nfs_wire::rpc::Reply { xid: 30, body: ReplyBody::accepted(AcceptStatus::ProgramUnavailable) };
    assert_eq!(reply, expected.encode_to_vec());
}
