//! Named pipes of IPC$: DCE/RPC to the Server and the Workstation Service, and the FSCTLs without a file.
//! [MS-SRVS] 3.1.4, [MS-WKST] 3.2.4, [MS-LSAT] 3.1.4, [MS-SMB2] 3.3.5.15.

use anabranch_smb_server::{Config, Dialect};
use smb_wire::create::CreateDisposition;
use smb_wire::dcerpc::{self, Bind, Body, Pdu, PduFlags, PresentationContext, PresentationResult, SyntaxId};
use smb_wire::fscc::fsctl::{Fsctl, ValidateNegotiateRequest, ValidateNegotiateResponse};
use smb_wire::ioctl::{IoctlFlags, Request};
use smb_wire::negotiate::Dialect as WireDialect;
use smb_wire::{Command, FileId, NtStatus, Sid, dssetup, lsarpc, read, srvsvc, wkssvc};

use crate::client::{CLIENT_GUID, Client, PASSWORD, TestServer, USER, read_body};
use crate::guest::without_a_name;
use crate::ioctl::{ioctl, output};

fn pdu(call_id: u32, body: Body<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    Pdu::new(call_id, body).encode_into(&mut bytes).unwrap();
    bytes
}

pub(crate) fn bind(interface: SyntaxId) -> Vec<u8> {
    let context = |context_id, syntax| PresentationContext {
        context_id,
        abstract_syntax: interface,
        transfer_syntaxes: vec![syntax],
    };
    let contexts = vec![context(0, SyntaxId::NDR), context(1, SyntaxId::NDR64)];
    pdu(1, Body::Bind(Bind { max_xmit_frag: 4280, max_recv_frag: 4280, assoc_group_id: 0, contexts }))
}

/// A pipe on which an interface is bound.
pub(crate) fn bound(server: &TestServer, name: &str, interface: SyntaxId) -> (Client, FileId) {
    let mut client = server.log_in();
    client.tree_connect("IPC$").unwrap();
    let pipe = client.create(name, CreateDisposition::Open).unwrap();
    let reply = ioctl(&mut client, Fsctl::PipeTransceive, pipe, &bind(interface), 4096).ok().unwrap();
    let answer = output(&reply);
    let (answer, _) = Pdu::decode(&answer).unwrap();
    let Body::BindAck(ack) = answer.body else { panic!("{answer:?}") };
    let accepted = PresentationResult::Acceptance(SyntaxId::NDR);
    assert_eq!(ack.results, [accepted, PresentationResult::ProviderRejection(2)]);
    (client, pipe)
}

fn request(opnum: u16, stub: &[u8]) -> Vec<u8> {
    pdu(7, Body::Request { alloc_hint: 0, context_id: 0, opnum, stub })
}

fn share_enum(sticky: bool) -> Vec<u8> {
    let call = srvsvc::Request::ShareEnum {
        sticky,
        server_name: Some(r"\\server".to_owned()),
        level: 1,
        preferred_maximum_length: u32::MAX,
        resume_handle: Some(0),
    };
    let mut stub = Vec::new();
    call.encode_into(&mut stub).unwrap();
    request(call.opnum(), &stub)
}

fn names_of(answer: &[u8]) -> Vec<(String, u32)> {
    let (answer, length) = Pdu::decode(answer).unwrap();
    assert_eq!(answer.call_id, 7);
    let Body::Response { stub, .. } = answer.body else { panic!("{answer:?} of {length}") };
    let (response, error) = srvsvc::Response::decode(15, stub).unwrap();
    assert_eq!(error, srvsvc::win32::SUCCESS);
    let srvsvc::Response::ShareEnum { shares, total_entries, .. } = response else { panic!() };
    assert_eq!(total_entries as usize, shares.len());
    shares.into_iter().map(|share| (share.name, share.share_type)).collect()
}

fn expected() -> Vec<(String, u32)> {
    use srvsvc::share_type::{DISK, IPC, SPECIAL};
    vec![("Data".into(), DISK), ("Fixed".into(), DISK), ("IPC$".into(), IPC | SPECIAL)]
}

#[test]
fn shares_are_listed() {
    let server = TestServer::start(Config::default());
    let (mut client, pipe) = bound(&server, "srvsvc", srvsvc::INTERFACE);
    let reply = ioctl(&mut client, Fsctl::PipeTransceive, pipe, &share_enum(false), 65_536).ok().unwrap();
    assert_eq!(names_of(&output(&reply)), expected());
    let reply = ioctl(&mut client, Fsctl::PipeTransceive, pipe, &share_enum(true), 65_536).ok().unwrap();
    assert_eq!(names_of(&output(&reply)), expected(), "all shares outlive a restart");
    client.close(pipe).unwrap();
    assert_eq!(client.close(pipe), Err(NtStatus::FILE_CLOSED));
}

#[test]
fn a_long_answer_is_read_in_parts() {
    let server = TestServer::start(Config::default());
    let (mut client, pipe) = bound(&server, r"\SrvSvc", srvsvc::INTERFACE);
    let reply = ioctl(&mut client, Fsctl::PipeTransceive, pipe, &share_enum(false), 100);
    assert_eq!(reply.status(), NtStatus::BUFFER_OVERFLOW);
    let mut answer = output(&reply);
    assert_eq!(answer.len(), 100);
    loop {
        let reply = client.call(Command::Read, &read_body(pipe, 0, 64));
        answer.extend_from_slice(read::Response::decode(&reply.message).unwrap().data);
        match reply.status() {
            NtStatus::BUFFER_OVERFLOW => {}
            status => {
                assert_eq!(status, NtStatus::SUCCESS);
                break;
            }
        }
    }
    assert_eq!(names_of(&answer), expected());
    assert_eq!(client.read(pipe, 0, 64), Err(NtStatus::PIPE_EMPTY));
}

#[test]
fn a_call_may_come_in_fragments() {
    let server = TestServer::start(Config::default());
    let (mut client, pipe) = bound(&server, "srvsvc", srvsvc::INTERFACE);
    let whole = share_enum(false);
    let (whole, _) = Pdu::decode(&whole).unwrap();
    let Body::Request { opnum, stub, .. } = whole.body else { panic!() };
    let (first, last) = stub.split_at(16);
    for (flags, stub) in [(PduFlags::FIRST_FRAG, first), (PduFlags::LAST_FRAG, last)] {
        let body = Body::Request { alloc_hint: 0, context_id: 0, opnum, stub };
        let mut bytes = Vec::new();
        Pdu { flags, ..Pdu::new(7, body) }.encode_into(&mut bytes).unwrap();
        client.write(pipe, 0, &bytes).unwrap();
    }
    assert_eq!(names_of(&client.read(pipe, 0, 65_536).unwrap()), expected());
}

#[test]
fn the_workstation_says_its_name() {
    let server = TestServer::start(Config { server_name: "HERE".to_owned(), ..Config::default() });
    let (mut client, pipe) = bound(&server, "wkssvc", wkssvc::INTERFACE);
    let mut stub = Vec::new();
    let call = wkssvc::WkstaGetInfoRequest { server_name: None, level: 100 };
    call.encode_into(&mut stub).unwrap();
    let call = request(wkssvc::OPNUM_WKSTA_GET_INFO, &stub);
    let reply = ioctl(&mut client, Fsctl::PipeTransceive, pipe, &call, 4096).ok().unwrap();
    let answer = output(&reply);
    let (answer, _) = Pdu::decode(&answer).unwrap();
    let Body::Response { stub, .. } = answer.body else { panic!("{answer:?}") };
    let (response, error) = wkssvc::WkstaGetInfoResponse::decode(stub).unwrap();
    assert_eq!((error, response.wksta.unwrap().computer_name.as_str()), (0, "HERE"));
}

/// What a call on a pipe returns: the stub, or the status of the fault.
pub(crate) fn ask(client: &mut Client, pipe: FileId, opnum: u16, stub: &[u8]) -> Result<Vec<u8>, u32> {
    let reply = ioctl(client, Fsctl::PipeTransceive, pipe, &request(opnum, stub), 65_536).ok().unwrap();
    let (mut fragment, mut results) = (output(&reply), Vec::new());
    loop {
        let (answer, _) = Pdu::decode(&fragment).unwrap();
        match answer.body {
            Body::Response { stub, .. } => results.extend_from_slice(stub),
            Body::Fault { status, .. } => return Err(status),
            other => panic!("{other:?}"),
        }
        if answer.flags.contains(PduFlags::LAST_FRAG) {
            return Ok(results);
        }
        fragment = client.read(pipe, 0, 65_536).unwrap();
    }
}

/// Numbers of 32 bits in the order of NDR.
pub(crate) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// LSAPR_SID_ENUM_BUFFER with these SIDs.
fn sids(sids: &[Sid]) -> Vec<u8> {
    let count = u32::try_from(sids.len()).unwrap();
    let mut stub = words(&[count, 1, count]);
    stub.extend(words(&vec![1; sids.len()]));
    for sid in sids {
        stub.extend(words(&[u32::try_from(sid.sub_authorities().len()).unwrap()]));
        sid.encode_into(&mut stub);
    }
    stub
}

/// LSAPR_TRANSLATED_NAMES without names, the level LsapLookupWksta, and the count.
const NO_NAMES: [u32; 4] = [0, 0, 1, 0];

pub(crate) fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[test]
fn sids_have_names() {
    let server = TestServer::start(Config::default());
    let (mut client, pipe) = bound(&server, "lsarpc", lsarpc::INTERFACE);
    // LsarOpenPolicy2
    let opened = ask(&mut client, pipe, 44, &[]).unwrap();
    let (policy, status) = opened.split_at(20);
    assert_eq!(status, [0; 4]);
    let look_up = |sids_stub: Vec<u8>| [policy, &sids_stub, &words(&NO_NAMES)].concat();
    let unknown: Sid = "S-1-5-21-1-2-3-1000".parse().unwrap();
    let asked = look_up(sids(&[Sid::EVERYONE, Sid::ADMINISTRATORS, unknown]));
    let answer = ask(&mut client, pipe, 15, &asked).unwrap();
    for name in ["Everyone", "Administrators", "BUILTIN", "S-1-5-21-1-2-3-1000"] {
        assert!(answer.windows(2 * name.len()).any(|part| part == utf16(name)), "{name}");
    }
    let end = words(&[2, NtStatus::SOME_NOT_MAPPED.0]);
    assert!(answer.ends_with(&end), "two are mapped");
    let none = ask(&mut client, pipe, 15, &look_up(sids(&[unknown]))).unwrap();
    assert!(none.ends_with(&words(&[0, NtStatus::NONE_MAPPED.0])));
    let nothing = ask(&mut client, pipe, 15, &look_up(words(&[0, 0]))).unwrap();
    assert!(nothing.ends_with(&words(&[0, 0])));

    let most = look_up(sids(&vec![Sid::EVERYONE; lsarpc::LOOKUPS_MAX]));
    assert!(ask(&mut client, pipe, 15, &most).unwrap().ends_with(&words(&[1000, 0])));
    let too_many = look_up(sids(&vec![Sid::EVERYONE; lsarpc::LOOKUPS_MAX + 1]));
    assert_eq!(ask(&mut client, pipe, 15, &too_many), Err(dcerpc::fault::BAD_STUB_DATA));
    let stranger = [&[7; 20][..], &sids(&[Sid::EVERYONE]), &words(&NO_NAMES)].concat();
    assert_eq!(ask(&mut client, pipe, 15, &stranger), Err(dcerpc::fault::CONTEXT_MISMATCH));
    assert_eq!(ask(&mut client, pipe, 4, &[]), Err(dcerpc::fault::OP_RANGE_ERROR), "nothing is set");
}

#[test]
fn the_user_of_the_session_is_told_his_name_and_the_role_of_the_server() {
    let server = TestServer::start(Config { server_name: "HERE".to_owned(), ..Config::default() });
    let (mut client, pipe) = bound(&server, "lsarpc", lsarpc::INTERFACE);
    // LsarGetUserName without a server, with pointers for the name and the domain
    let answer = ask(&mut client, pipe, 45, &words(&[0, 0, 1, 0])).unwrap();
    for name in [USER, "HERE"] {
        assert!(answer.windows(2 * name.len()).any(|part| part == utf16(name)), "{name}");
    }
    // DsRolerGetPrimaryDomainInformation, for which the context is another one
    let (mut client, pipe) = bound(&server, "lsarpc", dssetup::INTERFACE);
    let answer = ask(&mut client, pipe, 0, &dssetup::BASIC.to_le_bytes()).unwrap();
    assert!(answer.windows(18).any(|part| part == utf16("WORKGROUP")) && answer.ends_with(&[0; 4]));
    let answer = ask(&mut client, pipe, 0, &9_u16.to_le_bytes()).unwrap();
    assert_eq!(answer, words(&[0, 87]), "ERROR_INVALID_PARAMETER");
}

#[test]
fn names_of_users_are_for_users() {
    let server = TestServer::start(Config { anonymous_ipc: true, ..Config::default() });
    let mut client = server.connect();
    client.negotiate(&[Dialect::Smb311]);
    without_a_name(&mut client).unwrap();
    client.tree_connect("IPC$").unwrap();
    let pipe = client.create("lsarpc", CreateDisposition::Open).unwrap();
    ioctl(&mut client, Fsctl::PipeTransceive, pipe, &bind(lsarpc::INTERFACE), 4096).ok().unwrap();
    assert_eq!(ask(&mut client, pipe, 44, &[]), Err(dcerpc::fault::ACCESS_DENIED));
}

#[test]
fn what_the_services_do_not_know_is_a_fault() {
    let server = TestServer::start(Config::default());
    let (mut client, pipe) = bound(&server, "srvsvc", srvsvc::INTERFACE);
    let unbound = Body::Request { alloc_hint: 0, context_id: 9, opnum: 15, stub: &[] };
    for (call, status) in [
        (request(200, &[]), dcerpc::fault::OP_RANGE_ERROR),
        (request(15, &[1, 2, 3]), dcerpc::fault::BAD_STUB_DATA),
        (pdu(7, unbound), dcerpc::fault::UNKNOWN_INTERFACE),
    ] {
        let reply = ioctl(&mut client, Fsctl::PipeTransceive, pipe, &call, 4096).ok().unwrap();
        let answer = output(&reply);
        let (answer, _) = Pdu::decode(&answer).unwrap();
        let Body::Fault { status: given, .. } = answer.body else { panic!("{answer:?}") };
        assert_eq!(given, status);
    }
    let refused = client.write(pipe, 0, b"this is no PDU");
    assert_eq!(refused, Err(NtStatus::INVALID_PARAMETER));
    for name in ["nothing", "", r"\", "srvsvcs"] {
        let missing = client.create(name, CreateDisposition::Open);
        assert_eq!(missing, Err(NtStatus::OBJECT_NAME_NOT_FOUND), "{name}");
    }
}

#[test]
fn a_pipe_that_nobody_reads_is_full_one_day() {
    let server = TestServer::start(Config::default());
    let (mut client, pipe) = bound(&server, "srvsvc", srvsvc::INTERFACE);
    let call = request(200, &[]).repeat(1000);
    let mut refused = Ok(());
    for _ in 0..3 {
        refused = refused.and_then(|()| client.write(pipe, 0, &call));
    }
    assert_eq!(refused, Err(NtStatus::INSUFFICIENT_RESOURCES));
    assert!(client.is_alive());
}

#[test]
fn this_is_no_dfs_server() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let code = Fsctl::DfsGetReferrals;
    let reply = ioctl(&mut client, code, FileId::ANY, &[4, 0, 0, 0], 4096);
    assert_eq!(reply.status(), NtStatus::FS_DRIVER_REQUIRED);
    let file = FileId { persistent: 1, volatile: 1 };
    assert_eq!(ioctl(&mut client, code, file, &[4, 0], 4096).status(), NtStatus::INVALID_PARAMETER);
}

#[test]
fn a_changed_negotiation_ends_the_connection() {
    let server = TestServer::start(Config::default());
    let asked = ValidateNegotiateRequest {
        capabilities: smb_wire::negotiate::Capabilities::ENCRYPTION
            | smb_wire::negotiate::Capabilities::LARGE_MTU,
        guid: CLIENT_GUID,
        security_mode: smb_wire::negotiate::SecurityMode::SIGNING_ENABLED,
        dialects: vec![WireDialect::Smb210, WireDialect::Smb302],
    };
    let client = || {
        let mut client = server.connect();
        client.negotiate(&[Dialect::Smb210, Dialect::Smb302]);
        client.log_in(USER, PASSWORD).unwrap();
        client.tree_connect("Data").unwrap();
        client
    };
    let encode = |request: &ValidateNegotiateRequest| {
        let mut input = Vec::new();
        request.encode_into(&mut input).unwrap();
        input
    };
    let code = Fsctl::ValidateNegotiateInfo;
    let reply = ioctl(&mut client(), code, FileId::ANY, &encode(&asked), 24).ok().unwrap();
    let answer = ValidateNegotiateResponse::decode(&output(&reply)).unwrap();
    assert_eq!(answer.dialect, Dialect::Smb302.revision());
    assert!(reply.is_signed());
    let changed = ValidateNegotiateRequest { dialects: vec![WireDialect::Smb210], ..asked };
    let mut victim = client();
    let request = Request {
        ctl_code: code,
        file_id: FileId::ANY,
        input: &encode(&changed),
        max_input_response: 0,
        output_count: 0,
        max_output_response: 24,
        flags: IoctlFlags::IS_FSCTL,
    };
    let mut body = Vec::new();
    request.encode(&mut body).unwrap();
    victim.send(Command::Ioctl, &body);
    victim.expect_closed();
}

#[test]
fn only_fsctls_are_taken() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = client.create("f", CreateDisposition::Create).unwrap();
    let unknown = ioctl(&mut client, Fsctl::Unknown(0x0009_FFFF), file, &[], 0);
    assert_eq!(unknown.status(), NtStatus::INVALID_DEVICE_REQUEST);
    let closed = FileId { persistent: 5, volatile: 5 };
    let reply = ioctl(&mut client, Fsctl::Unknown(0x0009_FFFF), closed, &[], 0);
    assert_eq!(reply.status(), NtStatus::FILE_CLOSED);
    let request = Request {
        ctl_code: Fsctl::CreateOrGetObjectId,
        file_id: file,
        input: &[],
        max_input_response: 0,
        output_count: 0,
        max_output_response: 64,
        flags: IoctlFlags::empty(),
    };
    let mut body = Vec::new();
    request.encode(&mut body).unwrap();
    assert_eq!(client.call(Command::Ioctl, &body).status(), NtStatus::NOT_SUPPORTED);
    let first = output(&ioctl(&mut client, Fsctl::CreateOrGetObjectId, file, &[], 64));
    let second = output(&ioctl(&mut client, Fsctl::CreateOrGetObjectId, file, &[], 64));
    assert_eq!((first.len(), &first), (64, &second), "the same file has the same identifier");
}
