//! RPC: what is answered before any procedure runs (RFC 5531).

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use nfs_wire::mount;
use nfs_wire::record_mark::{FRAGMENTS_MAX, Mark};
use nfs_wire::rpc::{AcceptStatus, AuthStatus, Denied, OpaqueAuth, Reply, ReplyBody, flavor};
use nfs_wire::v3::{self, Procedure, getattr};
use nfs_wire::xdr::{Decode, Encode, Writer};
use share::Squash;

use crate::client::{Raw, TestServer, call_record, export};

const NULL: (u32, u32, u32) = (v3::PROGRAM, v3::VERSION, 0);

#[test]
fn null_answers_anybody() {
    let server = TestServer::start();
    let mut client = server.client();
    for flavor in [flavor::AUTH_NONE, flavor::AUTH_SYS, 77] {
        client.send_record(&call_record(5, NULL, OpaqueAuth { flavor, body: b"any" }, &()));
        let record = client.receive_record();
        let reply = Reply::from_bytes(&record).unwrap();
        assert_eq!(reply, Reply { xid: 5, body: ReplyBody::accepted(AcceptStatus::Success) });
    }
}

/// RFC 2203 5.2.2: a context begins with a NULL call. There is none to be had, in any version.
#[test]
fn null_begins_no_context() {
    let server = TestServer::start();
    let mut client = server.client();
    // version, RPCSEC_GSS_INIT, sequence number, service, an empty handle
    let init = [1_u32, 1, 0, 1, 0].map(u32::to_be_bytes).concat();
    let credential = OpaqueAuth { flavor: flavor::RPCSEC_GSS, body: &init };
    for ids in [NULL, (v3::PROGRAM, 4, 0), (mount::PROGRAM, mount::VERSION, 0)] {
        client.send_record(&call_record(5, ids, credential, &()));
        let denied = ReplyBody::Denied(Denied::AuthError(AuthStatus::RejectedCredential));
        assert_eq!(Reply::from_bytes(&client.receive_record()).unwrap().body, denied, "{ids:?}");
    }
}

/// RFC 5531 11 has no word on empty fragments: they are counted like others.
#[test]
fn empty_fragments_are_bounded() {
    let server = TestServer::start();
    let mut client = server.client();
    let empty = Mark { last: false, length: 0 }.to_bytes();
    let _ = client.stream.write_all(&empty.repeat(FRAGMENTS_MAX + 1));
    assert!(client.is_closed());
}

#[test]
fn who_is_silent_and_has_no_state_has_to_go() {
    let silence = Duration::from_secs(2);
    let server = TestServer::with(Arc::default(), export(Squash::None), 1, |_| {}, |c| c.silence = silence);
    let (mut mounted, root) = server.mounted();
    mounted.attributes(root);
    let mut called = server.client();
    called.exchange(NULL, &());
    assert!(called.is_closed() && mounted.is_closed());
    server.client().exchange(NULL, &());
}

#[test]
fn unknown_programs_versions_and_procedures() {
    let server = TestServer::start();
    let mut client = server.client();
    let mut status = |ids| match client.exchange(ids, &()).0 {
        ReplyBody::Accepted { status, .. } => status,
        ReplyBody::Denied(denied) => panic!("{denied:?}"),
    };
    assert_eq!(status((100_227, 3, 0)), AcceptStatus::ProgramUnavailable);
    assert_eq!(status((v3::PROGRAM, 5, 1)), AcceptStatus::ProgramMismatch { low: 3, high: 4 });
    assert_eq!(status((v3::PROGRAM, 2, 0)), AcceptStatus::ProgramMismatch { low: 3, high: 4 });
    assert_eq!(status((mount::PROGRAM, 1, 1)), AcceptStatus::ProgramMismatch { low: 3, high: 3 });
    assert_eq!(status((v3::PROGRAM, 3, 22)), AcceptStatus::ProcedureUnavailable);
    assert_eq!(status((mount::PROGRAM, 3, 6)), AcceptStatus::ProcedureUnavailable);
}

#[test]
fn arguments_that_do_not_decode() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let good = getattr::Args { object: root }.encode_to_vec();
    let short = &good[..good.len() - 4];
    let long = [&good[..], &[0; 4]].concat();
    let lying = [&[0xff; 4][..], &good[4..]].concat();
    for bad in [short, &long, &lying, &[]] {
        for procedure in (1..=21).chain([1]) {
            let (body, _) = client.exchange((v3::PROGRAM, v3::VERSION, procedure), &Raw(bad));
            if procedure == Procedure::GetAttr as u32 {
                assert_eq!(body, ReplyBody::accepted(AcceptStatus::GarbageArgs));
            }
        }
    }
    let (body, _) = client.exchange((mount::PROGRAM, mount::VERSION, 1), &Raw(&[0xff; 4]));
    assert_eq!(body, ReplyBody::accepted(AcceptStatus::GarbageArgs));
    client.attributes(root);
}

#[test]
fn another_rpc_version_is_denied() {
    let server = TestServer::start();
    let mut client = server.client();
    let mut record = call_record(5, NULL, OpaqueAuth::NONE, &());
    record[11] = 3;
    client.send_record(&record);
    let record = client.receive_record();
    let mismatch = Denied::RpcMismatch { low: 2, high: 2 };
    assert_eq!(Reply::from_bytes(&record).unwrap().body, ReplyBody::Denied(mismatch));
}

#[test]
fn credentials_that_are_none_are_denied() {
    let server = TestServer::start();
    let (mut client, root) = server.mounted();
    let ids = (v3::PROGRAM, v3::VERSION, Procedure::GetAttr as u32);
    let mut too_many_groups = Vec::new();
    let mut writer = Writer::new(&mut too_many_groups);
    for word in [0, 0, 0, 0, 17] {
        writer.u32(word);
    }
    for group in 0..17 {
        writer.u32(group);
    }
    for (flavor, body, status) in [
        (flavor::AUTH_SYS, &b"none"[..], AuthStatus::BadCredential),
        (flavor::AUTH_SYS, &too_many_groups, AuthStatus::BadCredential),
        (flavor::AUTH_SYS, &[0; 401], AuthStatus::BadCredential),
        (flavor::RPCSEC_GSS, &[0; 20], AuthStatus::RejectedCredential),
        (flavor::AUTH_SHORT, &[0; 20], AuthStatus::RejectedCredential),
    ] {
        let args = getattr::Args { object: root };
        client.send_record(&call_record(5, ids, OpaqueAuth { flavor, body }, &args));
        let record = client.receive_record();
        let denied = ReplyBody::Denied(Denied::AuthError(status));
        assert_eq!(Reply::from_bytes(&record).unwrap().body, denied, "{flavor} {}", body.len());
    }
}

#[test]
fn a_call_in_fragments_is_answered() {
    let server = TestServer::start();
    let mut client = server.client();
    let record = call_record(9, NULL, OpaqueAuth::NONE, &());
    for (index, part) in record.chunks(7).enumerate() {
        let last = (index + 1) * 7 >= record.len();
        let mark = Mark { last, length: u32::try_from(part.len()).unwrap() };
        client.stream.write_all(&mark.to_bytes()).unwrap();
        client.stream.write_all(part).unwrap();
    }
    assert_eq!(Reply::from_bytes(&client.receive_record()).unwrap().xid, 9);
}

#[test]
fn calls_that_arrive_together_are_all_answered() {
    let server = TestServer::start();
    let mut client = server.client();
    let mut stream = Vec::new();
    for xid in 0..300 {
        let record = call_record(xid, NULL, OpaqueAuth::NONE, &());
        stream.extend_from_slice(&Mark::whole_record(record.len()).to_bytes());
        stream.extend_from_slice(&record);
    }
    client.stream.write_all(&stream).unwrap();
    let mut answered: Vec<_> =
        (0..300).map(|_| Reply::from_bytes(&client.receive_record()).unwrap().xid).collect();
    answered.sort_unstable();
    assert_eq!(answered, (0..300).collect::<Vec<_>>());
}

#[test]
fn a_record_that_lies_about_its_length_ends_its_connection_only() {
    let server = TestServer::start();
    let (mut neighbour, root) = server.mounted();
    let mut client = server.client();
    client.stream.write_all(&[0xff; 4]).unwrap();
    assert!(client.is_closed());
    neighbour.attributes(root);
}

#[test]
fn what_is_no_call_ends_its_connection_only() {
    let server = TestServer::start();
    let (mut neighbour, root) = server.mounted();
    let mut client = server.client();
    let reply = Reply { xid: 1, body: ReplyBody::accepted(AcceptStatus::Success) };
    client.send_record(&reply.encode_to_vec());
    assert!(client.is_closed());
    neighbour.attributes(root);
}

/// SMB clients on the wrong port: their first frame, of SMB 2 ([MS-SMB2] 2.1, 2.2.3) or of its predecessor ([MS-CIFS]
/// 2.2.4.52), looks like a fragment with more to come. They are told at once, by a connection that ends.
#[test]
fn an_smb_client_is_hung_up_on_without_an_answer() {
    let server = TestServer::start();
    let (mut neighbour, root) = server.mounted();
    let header = [&b"\xfeSMB\x40\0"[..], &[0; 58]].concat();
    // StructureSize, one dialect, signing enabled, Capabilities, ClientGuid, SMB 2.0.2.
    let body = [&[36, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0][..], &[7; 16], &[0; 8], &[0x02, 0x02]].concat();
    let smb2 = [header, body].concat();
    let smb1 = [&b"\xffSMB\x72"[..], &[0; 28], b"\x0c\0\x02NT LM 0.12\0"].concat();
    for message in [smb2, smb1] {
        let mut client = server.client();
        // A connection without a call would end anyway, after 60 s.
        client.stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        client.stream.write_all(&u32::try_from(message.len()).unwrap().to_be_bytes()).unwrap();
        client.stream.write_all(&message).unwrap();
        let end = client.stream.read(&mut [0]).map_err(|e| e.kind());
        assert!(matches!(end, Ok(0) | Err(ErrorKind::ConnectionReset)), "{:?}: {end:?}", &message[..4]);
    }
    neighbour.attributes(root);
}
