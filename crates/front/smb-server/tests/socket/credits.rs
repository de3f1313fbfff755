//! Credits and the sequence window. [MS-SMB2] 3.3.5.2.3, 3.3.5.2.5, 3.3.4.1.2.

use anabranch_smb_server::{Config, Dialect};
use smb_wire::create::CreateDisposition;
use smb_wire::{Command, NtStatus};

use crate::client::{PASSWORD, TestServer, USER, read_body, write_body};

const ECHO: [u8; 4] = [4, 0, 0, 0];

#[test]
fn a_client_gets_what_it_asks_for_up_to_the_limit() {
    let server = TestServer::start(Config::default());
    let mut client = server.connect();
    client.credits_asked = 8192;
    let granted = client.negotiate(&[Dialect::Smb311]).header.credits;
    assert_eq!(granted, 64, "little before anybody has logged on");
    let mut held = granted;
    held = held - 1 + client.log_in_granted();
    assert!(held > 64, "{held}");
    client.tree_connect("Data").unwrap();
    // ask on and on: never more than 8,192 in all
    let mut total = 0_u32;
    for _ in 0..4 {
        total += u32::from(client.call(Command::Echo, &ECHO).header.credits);
    }
    assert!(total <= 8192);
}

impl crate::client::Client {
    /// Logs on; the credits that the last answer granted.
    fn log_in_granted(&mut self) -> u16 {
        self.log_in(USER, PASSWORD).unwrap().header.credits
    }
}

#[test]
fn nobody_is_left_without_credits() {
    let server = TestServer::start(Config::default());
    let mut client = server.connect();
    client.credits_asked = 0;
    client.negotiate(&[Dialect::Smb311]);
    client.log_in(USER, PASSWORD).unwrap();
    for _ in 0..100 {
        assert_eq!(client.call(Command::Echo, &ECHO).header.credits, 1);
    }
}

#[test]
fn an_identifier_is_used_once() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    assert!(client.is_alive());
    client.next_message_id -= 1;
    client.send(Command::Echo, &ECHO);
    client.expect_closed();
}

#[test]
fn an_identifier_that_was_not_granted_ends_the_connection() {
    let server = TestServer::start(Config::default());
    for id in [100_000, u64::MAX, u64::MAX - 1] {
        let mut client = server.client();
        client.next_message_id = id - 1;
        let mut header = client.header(Command::Echo);
        header.message_id = id;
        client.send_with(&header, &ECHO);
        client.expect_closed();
    }
}

#[test]
fn identifiers_may_be_left_out_and_used_later() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let start = client.next_message_id;
    for id in [start + 3, start + 1, start, start + 2] {
        client.next_message_id = id;
        assert!(client.is_alive());
    }
    client.next_message_id = start + 4;
    assert!(client.is_alive());
}

#[test]
fn a_payload_is_paid_for() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = client.create("large", CreateDisposition::Create).unwrap();
    for (charge, length, status) in [
        (1_u16, 65_537, NtStatus::INVALID_PARAMETER),
        (2, 65_537, NtStatus::SUCCESS),
        (15, 1 << 20, NtStatus::INVALID_PARAMETER),
        (16, 1 << 20, NtStatus::SUCCESS),
    ] {
        for write in [true, false] {
            let (command, body) = if write {
                (Command::Write, write_body(file, 0, &vec![1; length]))
            } else {
                (Command::Read, read_body(file, 0, u32::try_from(length).unwrap()))
            };
            let mut header = client.header(command);
            header.credit_charge = charge;
            client.next_message_id += u64::from(charge) - 1;
            client.send_with(&header, &body);
            assert_eq!(client.receive().status(), status, "{command:?} {charge} {length}");
        }
    }
    assert!(client.is_alive(), "each identifier of a charge is used up");
}

#[test]
fn smb202_has_single_credits() {
    let server = TestServer::start(Config::default());
    let mut client = server.connect();
    client.negotiate(&[Dialect::Smb202]);
    client.log_in(USER, PASSWORD).unwrap();
    client.tree_connect("Data").unwrap();
    // CreditCharge is reserved there: it counts as one whatever it says
    let mut header = client.header(Command::Echo);
    header.credit_charge = 50;
    client.send_with(&header, &ECHO);
    client.receive().ok().unwrap();
    assert!(client.is_alive());
    let file = client.create("f", CreateDisposition::Create).unwrap();
    let body = read_body(file, 0, 65_537);
    assert_eq!(client.call(Command::Read, &body).status(), NtStatus::INVALID_PARAMETER);
}
