//! Guests: clients without a name and users without an account, on the shares that let them in. [MS-SMB2] 3.3.5.5.3.

use anabranch_smb_server::{Config, Dialect, Protection};
use share::Terms;
use smb_wire::create::{CreateAction, CreateDisposition, CreateOptions, OplockLevel};
use smb_wire::create_context::RequestContext;
use smb_wire::negotiate::SecurityMode;
use smb_wire::session_setup::{Response, SessionFlags};
use smb_wire::tree_connect::ShareType;
use smb_wire::{AccessMask, Command, HeaderFlags, NtStatus};
use storage::conformance::MAY;
use storage::{Name, SetAttributes, Wait, Want};

use crate::client::{Client, GUEST, PASSWORD, Reply, SHARE, TestServer, USER, create_body};
use crate::durable::{Asking, disconnect};
use crate::opening::{Opening, make_file};

/// A server of which one share lets guests in.
fn open(config: Config) -> TestServer {
    TestServer::on_terms(config, Terms::GUESTS)
}

fn negotiated(server: &TestServer) -> Client {
    let mut client = server.connect();
    client.negotiate(&[Dialect::Smb311]);
    client
}

/// An NTLM message of a client without a name: every field empty, [MS-NLMP] 3.2.5.1.2.
fn anonymous_authenticate() -> Vec<u8> {
    let mut message = b"NTLMSSP\0\x03\0\0\0".to_vec();
    for _ in 0..6 {
        message.extend_from_slice(&[0, 0, 0, 0, 64, 0, 0, 0]);
    }
    message.extend_from_slice(&0x0000_0A05_u32.to_le_bytes());
    message
}

/// What a session that proves nothing is: its flags, from an answer that is not signed.
fn admitted(client: &mut Client, reply: Reply) -> Result<SessionFlags, NtStatus> {
    client.protection = None;
    let reply = reply.ok()?;
    assert!(!reply.is_signed() && !reply.encrypted, "there is no key");
    Ok(Response::decode(&reply.message).unwrap().session_flags)
}

/// Logs on without a name.
pub(crate) fn without_a_name(client: &mut Client) -> Result<SessionFlags, NtStatus> {
    let (_, reply) = client.session_setup(&auth::ntlm::negotiate_message());
    assert_eq!(reply.status(), NtStatus::MORE_PROCESSING_REQUIRED);
    client.session_id = reply.header.session_id;
    let (_, reply) = client.session_setup(&anonymous_authenticate());
    admitted(client, reply)
}

/// Logs on with a name and a password.
fn with_a_name(client: &mut Client, user: &str, password: &str) -> Result<SessionFlags, NtStatus> {
    let (reply, _) = client.authenticate(user, password)?;
    admitted(client, reply)
}

/// Logs on by a name that nobody has.
pub(crate) fn stranger(client: &mut Client) -> Result<SessionFlags, NtStatus> {
    with_a_name(client, "stranger", "whatever")
}

type Logon = fn(&mut Client) -> Result<SessionFlags, NtStatus>;

/// The two ways to come as a guest, what the session's flags say then, and what the client hears where there are none.
const WAYS: [(Logon, SessionFlags, NtStatus); 2] = [
    (stranger, SessionFlags::IS_GUEST, NtStatus::LOGON_FAILURE),
    (without_a_name, SessionFlags::IS_NULL, NtStatus::ACCESS_DENIED),
];

/// A guest on the share.
fn guest(server: &TestServer) -> Client {
    let mut client = negotiated(server);
    stranger(&mut client).unwrap();
    client.tree_connect(SHARE).unwrap();
    client
}

#[test]
fn a_guest_comes_to_the_share_that_says_so_and_to_the_list() {
    let server = open(Config::default());
    for (log_in, flags, _) in WAYS {
        let mut client = negotiated(&server);
        assert_eq!(log_in(&mut client), Ok(flags));
        assert_eq!(client.tree_connect("Fixed").unwrap_err(), NtStatus::ACCESS_DENIED);
        assert_eq!(client.tree_connect("IPC$").unwrap().share_type, ShareType::Pipe);
        assert_eq!(client.tree_connect("data").unwrap().share_type, ShareType::Disk);
        let file = client.create("left here", CreateDisposition::OpenIf).unwrap();
        client.write(file, 0, b"by a guest").unwrap();
        assert_eq!(client.read(file, 0, 100).unwrap(), b"by a guest");
        client.close(file).unwrap();
    }
}

#[test]
fn there_are_no_guests_where_no_share_says_so() {
    let server = TestServer::start(Config::default());
    for (log_in, _, refusal) in WAYS {
        assert_eq!(log_in(&mut negotiated(&server)), Err(refusal));
    }
    // Until one does, and from when none does any more.
    server.share.set_terms(Terms::GUESTS);
    for (log_in, flags, _) in WAYS {
        assert_eq!(log_in(&mut negotiated(&server)), Ok(flags));
    }
    server.table.withdraw(server.share.id()).unwrap();
    for (log_in, _, refusal) in WAYS {
        assert_eq!(log_in(&mut negotiated(&server)), Err(refusal));
    }
}

#[test]
fn there_are_no_guests_where_a_key_is_needed() {
    let required = Protection::Required;
    for server in [
        open(Config { encryption: required, ..Config::default() }),
        TestServer::on_terms(Config::default(), Terms::GUESTS | Terms::ENCRYPTED),
    ] {
        for (log_in, _, refusal) in WAYS {
            assert_eq!(log_in(&mut negotiated(&server)), Err(refusal));
        }
    }
    // An anonymous client that may see the list, too.
    let server = open(Config { encryption: required, anonymous_ipc: true, ..Config::default() });
    assert_eq!(without_a_name(&mut negotiated(&server)), Err(NtStatus::ACCESS_DENIED));
    // The client may be the one who insists.
    let server = open(Config::default());
    for (log_in, _, _) in WAYS {
        let mut client = server.connect();
        client.security_mode = SecurityMode::SIGNING_REQUIRED;
        client.negotiate(&[Dialect::Smb311]);
        assert_eq!(log_in(&mut client), Err(NtStatus::ACCESS_DENIED));
    }
}

#[test]
fn guests_come_unsigned_where_users_must_sign() {
    let server = open(Config { signing: Protection::Required, ..Config::default() });
    for (log_in, flags, _) in WAYS {
        let mut client = negotiated(&server);
        assert_eq!(log_in(&mut client), Ok(flags));
        client.tree_connect(SHARE).unwrap();
        client.create("left here", CreateDisposition::OpenIf).unwrap();
    }
    let mut user = server.client();
    user.create("signed", CreateDisposition::OpenIf).unwrap();
    user.sign = false;
    assert_eq!(user.create("unsigned", CreateDisposition::OpenIf), Err(NtStatus::ACCESS_DENIED));
}

#[test]
fn an_encrypted_share_has_no_guests_beside_an_open_one() {
    let server = open(Config::default());
    let fixed = server.table.present().by_name("fixed").cloned().unwrap();
    fixed.set_terms(Terms::GUESTS | Terms::ENCRYPTED);
    let mut client = guest(&server);
    assert_eq!(client.tree_connect("Fixed").unwrap_err(), NtStatus::ACCESS_DENIED);
}

#[test]
fn who_has_an_account_needs_its_password() {
    let server = open(Config::default());
    for (user, password, status) in [
        (USER, "wrong", NtStatus::LOGON_FAILURE),
        ("ANN", "", NtStatus::LOGON_FAILURE),
        ("gone", PASSWORD, NtStatus::ACCOUNT_DISABLED),
    ] {
        assert_eq!(with_a_name(&mut negotiated(&server), user, password), Err(status), "{user}");
    }
    let mut client = server.client();
    assert_eq!(client.session_flags, SessionFlags::empty());
    client.tree_connect("Fixed").unwrap();
}

#[test]
fn a_guest_may_do_what_everybody_may() {
    let server = open(Config::default());
    let mode = |mode| SetAttributes { mode: Some(mode), ..SetAttributes::default() };
    let mut owner = server.client();
    make_file(&mut owner, "public", b"for all");
    make_file(&mut owner, "private", b"secret");
    let name = Name::new(b"private").unwrap();
    server.share.root().lookup(name, Wait::May(MAY)).unwrap().set_attributes(&mode(0o600), MAY).unwrap();
    server.share.root().set_attributes(&mode(0o755), MAY).unwrap();

    let denied = Err(NtStatus::ACCESS_DENIED);
    let attempt = |client: &mut Client, access, name: &str| {
        Opening { access, ..Opening::default() }.try_out(client, name)
    };
    for (log_in, ..) in WAYS {
        let mut client = negotiated(&server);
        log_in(&mut client).unwrap();
        client.tree_connect(SHARE).unwrap();
        assert_eq!(attempt(&mut client, AccessMask::READ_DATA, "public"), Ok(CreateAction::Opened));
        for access in [AccessMask::WRITE_DATA, AccessMask::DELETE, AccessMask::WRITE_DAC] {
            assert_eq!(attempt(&mut client, access, "public"), denied, "{access:?}");
        }
        assert_eq!(attempt(&mut client, AccessMask::READ_DATA, "private"), denied);
        assert_eq!(Opening::with(CreateDisposition::Create).try_out(&mut client, "new"), denied);
        assert_eq!(Opening::directory().try_out(&mut client, "new"), denied);
    }
    // What a guest makes is nobody's.
    server.share.root().set_attributes(&mode(0o777), MAY).unwrap();
    make_file(&mut guest(&server), "left", b"");
    let left = server.share.root().lookup(Name::new(b"left").unwrap(), Wait::May(MAY)).unwrap();
    let made = left.attributes(Want::empty(), Wait::May(MAY)).unwrap();
    assert_eq!((made.uid, made.gid), (65_534, 65_534));
}

#[test]
fn a_guest_never_signs() {
    let server = open(Config::default());
    let mut client = guest(&server);
    let mut header = client.header(Command::Create);
    header.flags |= HeaderFlags::SIGNED;
    let body = create_body("signed", CreateDisposition::Create, CreateOptions::empty());
    client.send_with(&header, &body);
    let reply = client.receive();
    assert_eq!((reply.status(), reply.is_signed()), (NtStatus::NOT_SUPPORTED, false));
    assert_eq!(client.create("signed", CreateDisposition::Open), Err(NtStatus::OBJECT_NAME_NOT_FOUND));
}

#[test]
fn a_guest_ends_nobodys_session() {
    let server = open(Config::default());
    let (mut user, mut other) = (server.client(), guest(&server));
    for previous in [user.session_id, other.session_id] {
        for (log_in, ..) in WAYS {
            let mut client = negotiated(&server);
            client.previous_session_id = previous;
            log_in(&mut client).unwrap();
        }
    }
    make_file(&mut user, "the user's", b"");
    make_file(&mut other, "the guest's", b"");
}

#[test]
fn a_session_stays_what_it_is() {
    let server = open(Config::default());
    // a user who comes again as a guest loses the session
    let mut user = server.client();
    assert_eq!(stranger(&mut user), Err(NtStatus::LOGON_FAILURE));
    user.sign = false;
    assert_eq!(user.create("x", CreateDisposition::Create), Err(NtStatus::USER_SESSION_DELETED));
    // and a guest who comes again as a user
    let mut client = guest(&server);
    assert_eq!(with_a_name(&mut client, USER, PASSWORD), Err(NtStatus::ACCESS_DENIED));
    assert_eq!(client.create("x", CreateDisposition::Create), Err(NtStatus::USER_SESSION_DELETED));
    // another name is still a guest
    let mut client = guest(&server);
    assert_eq!(with_a_name(&mut client, "another", ""), Ok(SessionFlags::IS_GUEST));
    client.create("x", CreateDisposition::Create).unwrap();
}

#[test]
fn a_guest_does_not_get_what_an_account_of_that_name_has_open() {
    let server = open(Config::default());
    let mut owner = negotiated(&server);
    owner.log_in(GUEST, PASSWORD).unwrap();
    owner.tree_connect(SHARE).unwrap();
    let durable = || Asking::new(OplockLevel::Batch, vec![RequestContext::DurableHandleRequest]);
    let got = durable().send(&mut owner, "f").unwrap();
    assert!(got.durable);
    disconnect(&server, owner, 1);
    let mut guest = negotiated(&server);
    stranger(&mut guest).unwrap();
    guest.tree_connect(SHARE).unwrap();
    let again = vec![RequestContext::DurableHandleReconnect { file_id: got.id }];
    let taken = Asking::new(OplockLevel::None, again).send(&mut guest, "f");
    assert_eq!(taken.unwrap_err(), NtStatus::OBJECT_NAME_NOT_FOUND);
}
