//! A storage that does not answer when the server starts: the other shares are served, and so is this one when it answers.

use std::path::Path;
use std::process::Command;

use crate::asked::{OK, ask, health, until, until_health};
use crate::fuse::Fuse;
use crate::logged::logged;
use crate::needs;
use crate::nfs::{Nfs, Status};
use crate::raw::Client;
use crate::server::{Server, flags, path, program};
use smb_proto::dialect::Dialect;
use smb_wire::create::{
    CreateDisposition, CreateOptions, ImpersonationLevel, OplockLevel, Request, Response, ShareAccess,
};
use smb_wire::create_context::{DurableFlags, RequestContext};
use smb_wire::negotiate::Capabilities;
use smb_wire::{AccessMask, Command as SmbCommand, FileAttributes, FileId, Guid, NtStatus, header};
use tempfile::TempDir;

const ROOT: (u32, u32) = (0, 0);
/// NFS3ERR_JUKEBOX (RFC 1813 2.6): retry later.
const JUKEBOX: Status = Status(10_008);
/// MNT3ERR_SERVERFAULT (RFC 1813 5.1.5)
const SERVER_FAULT: Status = Status(10_006);

/// What `anabranch share list` says, with this share in it.
fn list(directory: &TempDir, name: &str) -> String {
    let listed = program(&["share", "list", "--state", &path(directory, "state")]).output().unwrap();
    let text = String::from_utf8(listed.stdout).unwrap();
    assert!(text.lines().any(|line| line.starts_with(&format!("{name} "))), "{text}");
    text
}

fn start(directory: &TempDir, more: &[String], log: &Path) -> Server {
    let arguments = [flags(directory), more.to_vec()].concat();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
    Server::start_logging(&arguments, log.into())
}

fn use_other_share(server: &Server, name: &str) {
    let mut client = Nfs::connect(server.address("nfs"));
    let root = client.mount(ROOT, "/data").unwrap();
    assert_eq!(client.mkdir(ROOT, &root, name), Status::OK);
}

#[test]
fn a_share_whose_storage_is_silent_at_the_start_is_served_when_it_answers() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("late");
    std::fs::create_dir(&at).unwrap();
    let Some(late) = Fuse::mount(&at) else {
        return needs::not_tested("there is no FUSE here, or no right to mount");
    };
    let log = directory.path().join("log");
    let said = || std::fs::read_to_string(&log).unwrap();
    let share = ["--share".to_owned(), format!("late={}", path(&directory, "late"))];
    let mut server = start(&directory, &share, &log);
    let root = Nfs::connect(server.address("nfs")).mount(ROOT, "/late").unwrap();
    assert_eq!(server.end_with("TERM"), Some(0));

    late.fall_silent();
    let mut server = start(&directory, &share, &log);
    let late = late; // to be dropped before the server, which nothing ends that waits for it
    use_other_share(&server, "meanwhile");
    let said_health = health(&server);
    assert!(said_health.starts_with("HTTP/1.0 503 "), "{said_health}");
    let expected = "stuck\nshare late: its storage does not answer: it is not served yet\n";
    assert!(said_health.ends_with(expected), "{said_health}");
    assert!(ask(&server, "/metrics").contains("anabranch_share_alarm{share=\"late\",kind=\"stuck\"} 1\n"));
    let listed = list(&directory, "late");
    assert!(listed.contains("late is not served: its storage does not answer"), "{listed}");
    logged(&log, "the share late is not served: its storage does not answer");
    let mut client = Nfs::connect(server.address("nfs"));
    assert_eq!(client.mount(ROOT, "/late"), Err(SERVER_FAULT));
    assert_eq!(client.look(ROOT, &root), JUKEBOX, "what is stale is given up for good");

    // Nor does it hold up who reads the configuration again.
    let pid = server.child.id().to_string();
    assert!(Command::new("kill").args(["-s", "HUP", &pid]).status().unwrap().success());
    until("the configuration is read", || said().contains("the configuration was read again"));
    let ran = program(&["reload", "--state", &path(&directory, "state")]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    use_other_share(&server, "reloaded");
    assert!(health(&server).ends_with(expected));

    late.speak_again();
    until_health(&server, |said| said.ends_with(OK));
    until("it is told", || said().contains("the storage of the share late answers: it is served"));
    assert_eq!(client.look(ROOT, &root), Status::OK);
    assert_eq!(client.mount(ROOT, "/late"), Ok(root));
    assert!(!list(&directory, "late").contains("is not served"));
    assert_eq!(server.end_with("TERM"), Some(0));
}

#[test]
fn a_storage_that_fails_in_the_end_is_told_and_tried_again_by_command() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("late");
    std::fs::create_dir(&at).unwrap();
    let Some(late) = Fuse::mount(&at) else {
        return needs::not_tested("there is no FUSE here, or no right to mount");
    };
    let log = directory.path().join("log");
    let state = path(&directory, "state");
    let create = program(&["share", "create", "late", &path(&directory, "late"), "--state", &state]).output();
    let create = create.unwrap();
    assert!(create.status.success(), "{}", String::from_utf8_lossy(&create.stderr));

    late.fall_silent();
    let mut server = start(&directory, &[], &log);
    let late = late; // as above
    use_other_share(&server, "meanwhile");
    assert!(health(&server).starts_with("HTTP/1.0 503 "));
    assert!(list(&directory, "late").contains("late is not served: its storage does not answer"));
    late.abort();
    until_health(&server, |said| said.ends_with(OK));
    let listed = list(&directory, "late");
    assert!(
        listed.contains("late is not served: share late: ") && !listed.contains("does not answer"),
        "{listed}"
    );
    logged(&log, "correct this, and send the server SIGHUP");

    let set = program(&["share", "set", "late", "--state", &state]).output().unwrap();
    assert!(set.status.success(), "{}", String::from_utf8_lossy(&set.stderr));
    assert!(!list(&directory, "late").contains("is not served"));
    assert!(Nfs::connect(server.address("nfs")).mount(ROOT, "/late").is_ok());
    assert_eq!(server.end_with("TERM"), Some(0));
}

const CREATE: Guid = Guid([0x11; 16]);

fn smb_client(server: &Server) -> Client {
    let mut client = Client::connect(server.address("smb").parse().unwrap());
    client.capabilities |= Capabilities::PERSISTENT_HANDLES;
    client.negotiate(&[Dialect::Smb311]);
    client.log_in("anna", "hush-hush").unwrap();
    client
}

/// Opens `file` with this context.
fn open(client: &mut Client, context: RequestContext<'static>) -> Result<FileId, NtStatus> {
    let request = Request {
        requested_oplock_level: OplockLevel::None,
        impersonation_level: ImpersonationLevel::Impersonation,
        desired_access: AccessMask::from_bits_retain(0x0012_019F),
        file_attributes: FileAttributes::NORMAL,
        share_access: ShareAccess::READ,
        create_disposition: CreateDisposition::Open,
        create_options: CreateOptions::empty(),
        name: "file".into(),
        contexts: vec![context],
    };
    // Offsets and padding count from the header.
    let mut body = vec![0; header::LEN];
    request.encode(&mut body).unwrap();
    let reply = client.call(SmbCommand::Create, &body[header::LEN..]).ok()?;
    Ok(Response::decode(&reply.message).unwrap().file_id)
}

/// [MS-SMB2] 3.3.5.9.12: what a persistent handle stands for outlives the server.
#[test]
fn persistent_opens_of_a_silent_storage_wait_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path().join("late");
    std::fs::create_dir(&at).unwrap();
    let Some(late) = Fuse::mount(&at) else {
        return needs::not_tested("there is no FUSE here, or no right to mount");
    };
    let log = directory.path().join("log");
    let share = format!("late={}", path(&directory, "late"));
    let flags = ["--share", &share, "--continuous-availability", "late"].map(str::to_owned);
    let mut server = start(&directory, &flags, &log);
    let mut client = smb_client(&server);
    client.tree_connect("late").unwrap();
    let persistent = DurableFlags::PERSISTENT;
    let asking =
        RequestContext::DurableHandleRequestV2 { timeout_ms: 0, flags: persistent, create_guid: CREATE };
    let file_id = open(&mut client, asking).unwrap();
    assert_eq!(server.end_with("KILL"), None);

    late.fall_silent();
    let mut server = start(&directory, &flags, &log);
    let late = late; // as above
    let mut client = smb_client(&server);
    assert_eq!(client.tree_connect("late").unwrap_err(), NtStatus::BAD_NETWORK_NAME);
    late.speak_again();
    until("it is served", || client.tree_connect("late").is_ok());
    let asking = RequestContext::DurableHandleReconnectV2 { file_id, create_guid: CREATE, flags: persistent };
    let again = open(&mut client, asking).unwrap();
    assert_eq!(again.persistent, file_id.persistent);
    assert_eq!(client.read(again, 0, 4).unwrap(), b"data");
    assert!(!std::fs::read_to_string(&log).unwrap().contains("a persistent open is lost"));
    assert_eq!(server.end_with("TERM"), Some(0));
}
