//! What clients see of quotas.

use std::io::IoSlice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use acl::Sid;
use anabranch_smb_server::{Config, QUOTA_LIST_BYTES_MAX, QUOTA_ROWS_MAX};
use share::{
    Caller, NewLimits, QUOTAS_MAX, QuotaAuthority, QuotaChange, QuotaChangeError, QuotaChanging, QuotaRule,
    Share,
};
use smb_proto::dialect::Dialect;
use smb_wire::create::{CreateDisposition, CreateOptions};
use smb_wire::fscc::FsInfoClass;
use smb_wire::fscc::fs_info::{Attribute, Control, FileSystemAttributes, FullSize};
use smb_wire::fscc::quota::{self, DELETE, NO_LIMIT, Quota};
use smb_wire::query_info::{self, InfoType, QueryInfoFlags};
use smb_wire::query_quota::{Of, QueryQuota};
use smb_wire::{AccessMask, Command, FileId, FileTime, NtStatus};
use storage::conformance::MAY;
use storage::{Name, NewKind, NewNode, SetAttributes, Stability, Wait};

use crate::client::{Client, GUEST, OTHER_USER, PASSWORD, SHARE, TestServer};
use crate::information::{Query, set_any};
use crate::opening::{ALL, Opening};

const FILE: &str = r"$Extend\$Quota:$Q:$INDEX_ALLOCATION";

fn of_volume(client: &mut Client, file: FileId, class: FsInfoClass) -> Vec<u8> {
    let info_type = InfoType::FileSystem;
    let query = Query { info_type, class: class.into(), additional: 0, limit: 4096 };
    query.get(client, file).unwrap()
}

/// Waits until all files were counted since the quotas were changed, or a count was asked for.
fn wait_for_count(server: &TestServer) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let status = || runtime.block_on(server.share.quota_status()).unwrap().unwrap();
    while status().is_counting {
        assert!(Instant::now() < deadline, "it was not counted");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(status().counted.is_some());
}

#[test]
fn a_full_quota_is_told_and_held() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = client.create("f", CreateDisposition::Create).unwrap();
    let has_quotas = |client: &mut Client| {
        let told = of_volume(client, file, FsInfoClass::Attribute);
        let told = Attribute::decode(&told).unwrap().file_system_attributes;
        told.contains(FileSystemAttributes::VOLUME_QUOTAS)
    };
    let control =
        |client: &mut Client| Control::decode(&of_volume(client, file, FsInfoClass::Control)).unwrap();
    assert!(!has_quotas(&mut client) && control(&mut client).file_system_control_flags == 0);
    server.share.set_quota_rules(vec!["/ hard=16KiB".parse().unwrap(), "* soft=1MiB".parse().unwrap()]);
    wait_for_count(&server);
    assert!(has_quotas(&mut client));
    let told = control(&mut client);
    assert_eq!((told.default_quota_threshold, told.default_quota_limit), (1 << 20, u64::MAX));
    assert_eq!(
        told.file_system_control_flags, 0x32,
        "FILE_VC_QUOTA_ENFORCE and _LOG_, and all files were counted"
    );
    client.write(file, 0, &[1; 3 * 4096]).unwrap();
    let size = FullSize::decode(&of_volume(&mut client, file, FsInfoClass::FullSize)).unwrap();
    let unit = u64::from(size.sectors_per_allocation_unit * size.bytes_per_sector);
    assert_eq!(size.total_allocation_units * unit, 4 * 4096);
    assert_eq!(size.caller_available_allocation_units * unit, 4096);
    assert_eq!(client.write(file, 3 * 4096, &[2; 4097]), Err(NtStatus::DISK_FULL));
    client.write(file, 3 * 4096, &[2; 4096]).unwrap();
    assert_eq!(client.write(file, 4 * 4096, &[3]), Err(NtStatus::DISK_FULL));
    client.write(file, 0, &[4; 4 * 4096]).unwrap();
}

/// Keeps quotas in the share alone. The user with the number 1002 administers the server.
#[derive(Debug)]
struct InShare(Arc<Share>);

impl QuotaAuthority for InShare {
    fn is_administrator(&self, caller: &Caller) -> bool {
        caller.identity.uid() == 1002
    }

    fn change(&self, share: &Share, _: &Caller, changes: Vec<QuotaChange>) -> QuotaChanging {
        assert_eq!(share.id(), self.0.id());
        let mut rules: Vec<QuotaRule> = self.0.quota_rules().to_vec();
        for QuotaChange { uid, to } in changes {
            let who = uid.map_or_else(|| "*".to_owned(), |uid| uid.to_string());
            let count = rules.len();
            rules.retain(|rule| rule.subject.to_string() != who);
            let limit =
                |name, bytes: Option<u64>| bytes.map_or(String::new(), |bytes| format!(" {name}={bytes}B"));
            match to {
                NewLimits::Removed if rules.len() == count => {
                    return Box::pin(async { Err(QuotaChangeError::NotThere) });
                }
                NewLimits::Removed => {}
                NewLimits::Amounts { soft, hard } => {
                    match format!("{who}{}{}", limit("soft", soft), limit("hard", hard)).parse() {
                        Ok(rule) => rules.push(rule),
                        Err(_) => return Box::pin(async { Err(QuotaChangeError::Limits) }),
                    }
                }
            }
        }
        self.0.set_quota_rules(rules);
        Box::pin(async { Ok(()) })
    }
}

/// Makes a file of a user in the root, without the server.
fn make_file(server: &TestServer, uid: u32, blocks: usize) {
    let new = NewNode { kind: NewKind::Regular, mode: 0o600, uid, gid: uid };
    let name = format!("f{uid}");
    let node = server.share.root().create(Name::new(name.as_bytes()).unwrap(), &new, MAY).unwrap();
    let data = vec![1; 4096 * blocks];
    node.write(0, &[IoSlice::new(&data)], Stability::Unstable, Wait::May(MAY)).unwrap();
}

/// A server with quotas, in whose share the users 1000, 1001 and 1002 have a file of 4, 8 and 12 KiB.
fn with_quotas(rules: &[&str]) -> TestServer {
    let server = TestServer::start(Config::default());
    server.server.change_quotas_with(Arc::new(InShare(Arc::clone(&server.share))));
    let root = server.share.root();
    for (uid, blocks) in [(1000, 1), (1001, 2), (1002, 3)] {
        make_file(&server, uid, blocks);
    }
    root.set_attributes(&SetAttributes { mode: Some(0o777), ..SetAttributes::default() }, MAY).unwrap();
    server.share.set_quota_rules(rules.iter().map(|rule| rule.parse().unwrap()).collect());
    wait_for_count(&server);
    server
}

fn client_of(server: &TestServer, user: &str) -> Client {
    let mut client = server.connect();
    client.negotiate(&[Dialect::Smb311]);
    client.log_in(user, PASSWORD).unwrap();
    client.tree_connect(SHARE).unwrap();
    client
}

fn open(client: &mut Client) -> FileId {
    Opening::default().send(client, FILE).unwrap().id
}

/// Sends a request whose payload, or that of its reply, is so long.
fn send_charged(client: &mut Client, command: Command, body: &[u8], payload: usize) {
    let mut header = client.header(command);
    // [MS-SMB2] 3.2.4.1.5: 1 for each 64 KiB that are begun.
    header.credit_charge = u16::try_from(payload.div_ceil(64 << 10).max(1)).unwrap();
    client.next_message_id += u64::from(header.credit_charge) - 1;
    client.send_with(&header, body);
}

/// QUERY_INFO with these bytes, into so many.
fn ask(client: &mut Client, file_id: FileId, input_buffer: &[u8], limit: u32) -> Result<Vec<u8>, NtStatus> {
    let request = query_info::Request {
        info_type: InfoType::Quota,
        info_class: 0,
        output_buffer_length: limit,
        additional_information: 0,
        flags: QueryInfoFlags::empty(),
        file_id,
        input_buffer,
    };
    let mut body = Vec::new();
    request.encode(&mut body).unwrap();
    let payload = input_buffer.len().max(usize::try_from(limit).unwrap());
    send_charged(client, Command::QueryInfo, &body, payload);
    let reply = client.receive().ok()?;
    Ok(query_info::Response::decode(&reply.message).unwrap().output_buffer.to_vec())
}

/// The users who are told, with what they hold, their soft and their hard limit.
fn list(
    client: &mut Client,
    file: FileId,
    return_single: bool,
    of: Of<'_>,
) -> Result<Vec<(String, [i64; 3])>, NtStatus> {
    let mut input = Vec::new();
    QueryQuota { return_single, of }.encode_into(&mut input).unwrap();
    let told = ask(client, file, &input, 4096)?;
    let told = Quota::list(&told).map(Result::unwrap);
    Ok(told.map(|q| (q.sid.to_string(), [q.used, q.threshold, q.limit])).collect())
}

fn listed(sids: &[&str]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut list = quota::sid_writer(&mut out, 1 << 20);
    sids.iter().for_each(|sid| quota::push_sid(&mut list, &sid.parse().unwrap()).unwrap());
    out
}

fn user(uid: u32, of: [i64; 3]) -> (String, [i64; 3]) {
    (format!("S-1-22-1-{uid}"), of)
}

#[test]
fn a_list_of_sids_has_64_kib_at_most() {
    let server = with_quotas(&RULES);
    let mut ann = server.client();
    let file = open(&mut ann);
    let one = listed(&["S-1-22-1-1001"; 2]).len() - listed(&["S-1-22-1-1001"]).len();
    let most = vec!["S-1-22-1-1001"; QUOTA_LIST_BYTES_MAX / one];
    assert!(!list(&mut ann, file, false, Of::Listed(&listed(&most))).unwrap().is_empty());
    let more = vec!["S-1-22-1-1001"; QUOTA_LIST_BYTES_MAX / one + 2];
    assert_eq!(list(&mut ann, file, false, Of::Listed(&listed(&more))), Err(NtStatus::INVALID_PARAMETER));
    assert!(ann.is_alive());
}

#[test]
fn a_reply_has_so_many_quotas_and_the_rest_comes_next() {
    let server = with_quotas(&RULES);
    let most = u32::try_from(QUOTA_ROWS_MAX).unwrap();
    (2000..2000 + most).for_each(|uid| make_file(&server, uid, 1));
    server.share.count_quotas_again();
    wait_for_count(&server);
    let mut ann = server.client();
    let file = open(&mut ann);
    let mut told = |of| {
        let mut input = Vec::new();
        QueryQuota { return_single: false, of }.encode_into(&mut input).unwrap();
        let told = ask(&mut ann, file, &input, 1 << 20).unwrap();
        Quota::list(&told).map(|quota| quota.unwrap().sid.to_string()).collect::<Vec<_>>()
    };
    let (first, next) = (told(Of::First), told(Of::Next));
    assert_eq!((first.len(), next.len()), (QUOTA_ROWS_MAX, 3));
    assert_eq!((&*first[0], &*first[3], &*next[2]), ("S-1-22-1-1000", "S-1-22-1-2000", "S-1-22-1-6095"));
}

const RULES: [&str; 3] = ["1000 soft=64KiB hard=128KiB", "* hard=1MiB", "@7 hard=1MiB"];

#[test]
fn quotas_are_listed_from_the_first_one_on_and_one_by_one() {
    let server = with_quotas(&RULES);
    let mut ann = server.client();
    let file = open(&mut ann);
    let all = [
        user(1000, [4096, 64 << 10, 128 << 10]),
        user(1001, [8192, NO_LIMIT, 1 << 20]),
        user(1002, [12288, NO_LIMIT, 1 << 20]),
    ];
    assert_eq!(list(&mut ann, file, false, Of::First).unwrap(), all);
    assert_eq!(list(&mut ann, file, false, Of::Next), Err(NtStatus::NO_MORE_ENTRIES));
    for of in [Of::First, Of::Next, Of::Next].into_iter().zip(&all) {
        assert_eq!(list(&mut ann, file, true, of.0).unwrap(), std::slice::from_ref(of.1));
    }
    assert_eq!(list(&mut ann, file, true, Of::Next), Err(NtStatus::NO_MORE_ENTRIES));
    // Each open has a place of its own.
    let other = open(&mut ann);
    assert_eq!(list(&mut ann, other, false, Of::Next).unwrap(), all);
    let from = |sid: &str| Of::From(sid.parse().unwrap());
    assert_eq!(list(&mut ann, file, false, from("S-1-22-1-1001")).unwrap(), all[1..]);
    assert_eq!(list(&mut ann, file, true, from("S-1-22-1-1001")).unwrap(), all[1..2]);
    assert_eq!(list(&mut ann, file, false, Of::Next).unwrap(), all[2..]);
    for nobody in ["S-1-22-1-1003", "S-1-5-21-1-2-3-4"] {
        assert_eq!(list(&mut ann, file, false, from(nobody)), Err(NtStatus::INVALID_PARAMETER), "{nobody}");
    }
    // Who holds nothing is held back all the same; who is nobody has zeroes.
    let sids = listed(&["S-1-22-1-1001", "S-1-22-1-5", "S-1-5-21-1-2-3-4", "S-1-22-1-0"]);
    let told = list(&mut ann, file, false, Of::Listed(&sids)).unwrap();
    let nobody = |sid: &str| (sid.to_owned(), [0; 3]);
    let five = user(5, [0, NO_LIMIT, 1 << 20]);
    assert_eq!(told, [all[1].clone(), five, nobody("S-1-5-21-1-2-3-4"), nobody("S-1-22-1-0")]);
    assert_eq!(list(&mut ann, file, true, Of::Listed(&sids)).unwrap(), all[1..2]);
    // The file system can be asked through it; a file it is not.
    let volume = of_volume(&mut ann, file, FsInfoClass::Attribute);
    assert!(Attribute::decode(&volume).is_ok());
    assert_eq!(ann.read(file, 0, 1), Err(NtStatus::INVALID_DEVICE_REQUEST));
    assert_eq!(ann.write(file, 0, &[1]), Err(NtStatus::INVALID_DEVICE_REQUEST));
    ann.close(file).unwrap();
    assert_eq!(ann.close(file), Err(NtStatus::FILE_CLOSED));
}

#[test]
fn what_does_not_fit_comes_next_and_malformed_requests_are_refused() {
    let server = with_quotas(&RULES);
    let mut ann = server.client();
    let file = open(&mut ann);
    let mut first = Vec::new();
    QueryQuota { return_single: false, of: Of::First }.encode_into(&mut first).unwrap();
    for limit in [0, 55] {
        assert_eq!(ask(&mut ann, file, &first, limit), Err(NtStatus::BUFFER_TOO_SMALL), "{limit}");
    }
    for (limit, length) in [(56, 56), (111, 56), (112, 112), (167, 112)] {
        assert_eq!(ask(&mut ann, file, &first, limit).unwrap().len(), length, "{limit}");
    }
    assert_eq!(list(&mut ann, file, false, Of::Next).unwrap()[0].0, "S-1-22-1-1002");
    let one = listed(&["S-1-22-1-1000"]);
    let of_list = |length: u32, sids: &[u8]| [&[0; 4], &length.to_le_bytes()[..], &[0; 8], sids].concat();
    let with = |at: usize, value: u8| {
        let mut list = one.clone();
        list[at] = value;
        of_list(24, &list)
    };
    let bad = [
        Vec::new(),
        vec![0; 15],
        of_list(28, &one),
        of_list(u32::MAX, &one),
        of_list(22, &one),
        of_list(4, &one),
        // NextEntryOffset leads nowhere, or to itself; the SID is too long, too short, or no SID.
        with(0, 25),
        with(0, 2),
        with(4, 17),
        with(4, 255),
        with(4, 12),
        with(8, 2),
        with(9, 16),
    ];
    for input in &bad {
        assert_eq!(ask(&mut ann, file, input, 4096), Err(NtStatus::INVALID_PARAMETER), "{input:?}");
    }
    for buffer in [&[][..], &[0; 39], &[0; 64], &[255; 64], &one] {
        let refused = set_any(&mut ann, file, (InfoType::Quota, 0, 0), buffer);
        assert_eq!(refused, Err(NtStatus::INVALID_PARAMETER), "{buffer:?}");
    }
    let control = (InfoType::FileSystem, FsInfoClass::Control.into(), 0);
    assert_eq!(set_any(&mut ann, file, control, &[0; 47]), Err(NtStatus::INFO_LENGTH_MISMATCH));
    let plain = ann.create("plain", CreateDisposition::Create).unwrap();
    assert_eq!(ask(&mut ann, plain, &first, 4096), Err(NtStatus::NOT_SUPPORTED));
    assert_eq!(set_any(&mut ann, plain, control, &[0; 48]), Err(NtStatus::NOT_SUPPORTED));
    assert!(ann.is_alive());
}

#[test]
fn the_file_of_the_quotas_is_there_and_stays() {
    let server = with_quotas(&RULES);
    let mut ann = server.client();
    let mut send = |opening: Opening, name: &str| opening.send(&mut ann, name).map(|opened| opened.id);
    assert!(send(Opening::with(CreateDisposition::OpenIf), r"$EXTEND\$quota:$q:$index_allocation").is_ok());
    for (disposition, status) in [
        (CreateDisposition::Create, NtStatus::OBJECT_NAME_COLLISION),
        (CreateDisposition::Supersede, NtStatus::ACCESS_DENIED),
        (CreateDisposition::Overwrite, NtStatus::ACCESS_DENIED),
        (CreateDisposition::Unknown(9), NtStatus::INVALID_PARAMETER),
    ] {
        assert_eq!(send(Opening::with(disposition), FILE), Err(status), "{disposition:?}");
    }
    for (options, status) in [
        (CreateOptions::DIRECTORY_FILE, NtStatus::NOT_A_DIRECTORY),
        (CreateOptions::DELETE_ON_CLOSE, NtStatus::CANNOT_DELETE),
    ] {
        assert_eq!(send(Opening { options, ..Opening::default() }, FILE), Err(status), "{options:?}");
    }
    let nothing = Opening { access: AccessMask::empty(), ..Opening::default() };
    assert_eq!(send(nothing, FILE), Err(NtStatus::ACCESS_DENIED));
    assert_eq!(send(Opening::default(), r"$Extend\$Quota"), Err(NtStatus::OBJECT_PATH_NOT_FOUND));
}

/// SET_INFO of a user's limits.
fn set_limits(client: &mut Client, file: FileId, of: &[(&str, i64, i64)]) -> Result<(), NtStatus> {
    let mut buffer = Vec::new();
    let mut list = quota::writer(&mut buffer, 64 << 10);
    for (sid, threshold, limit) in of {
        let sid: Sid = sid.parse().unwrap();
        let (threshold, limit) = (*threshold, *limit);
        Quota { change_time: FileTime::UNSET, used: 9, threshold, limit, sid }.push(&mut list).unwrap();
    }
    set_any(client, file, (InfoType::Quota, 0, 0), &buffer)
}

fn rules(server: &TestServer) -> Vec<String> {
    server.share.quota_rules().iter().map(ToString::to_string).collect()
}

#[test]
fn administrators_set_quotas() {
    let server = with_quotas(&RULES);
    let mut ann = server.client();
    let file = open(&mut ann);
    let two = [("S-1-22-1-1000", 0, 4096), ("S-1-22-1-1003", 1, NO_LIMIT)];
    set_limits(&mut ann, file, &two).unwrap();
    assert_eq!(rules(&server), ["* hard=1MiB", "@7 hard=1MiB", "1000 hard=4KiB", "1003 soft=1B"]);
    for none in [NO_LIMIT, 0] {
        set_limits(&mut ann, file, &[("S-1-22-1-1003", none, none)]).unwrap();
        wait_for_count(&server);
        let told = list(&mut ann, file, false, Of::Listed(&listed(&["S-1-22-1-1003"]))).unwrap();
        let unlimited = [user(1003, [0, NO_LIMIT, NO_LIMIT])];
        assert_eq!(told, unlimited, "who has no limit is not like each other");
    }
    set_limits(&mut ann, file, &[("S-1-22-1-1003", 5, DELETE), ("S-1-22-1-1000", 5, DELETE)]).unwrap();
    assert_eq!(rules(&server), ["* hard=1MiB", "@7 hard=1MiB"]);
    for (wanted, status) in [
        (("S-1-22-1-1003", 0, DELETE), NtStatus::NO_MATCH),
        (("S-1-22-1-1003", 2, 1), NtStatus::INVALID_PARAMETER),
        (("S-1-22-1-1003", -3, 1), NtStatus::INVALID_PARAMETER),
        (("S-1-22-1-1003", 1, i64::MIN), NtStatus::INVALID_PARAMETER),
        (("S-1-5-21-1-2-3-4", 1, 1), NtStatus::INVALID_PARAMETER),
        (("S-1-5-32-544", NO_LIMIT, 1), NtStatus::ACCESS_DENIED),
    ] {
        assert_eq!(set_limits(&mut ann, file, &[wanted]), Err(status), "{wanted:?}");
    }
    set_limits(&mut ann, file, &[("S-1-5-32-544", 1, NO_LIMIT)]).unwrap();
    let sids: Vec<String> = (0..=QUOTAS_MAX).map(|uid| format!("S-1-22-1-{}", 5000 + uid)).collect();
    let too_many: Vec<_> = sids.iter().map(|sid| (&**sid, 0, 4096)).collect();
    assert_eq!(set_limits(&mut ann, file, &too_many), Err(NtStatus::INSUFFICIENT_RESOURCES));
    assert_eq!(rules(&server), ["* hard=1MiB", "@7 hard=1MiB"], "nothing is changed");
    // An administrator of the server, to whom the share gives nothing special.
    let mut administrator = client_of(&server, GUEST);
    let of_administrator = open(&mut administrator);
    set_limits(&mut administrator, of_administrator, &[("S-1-22-1-1000", NO_LIMIT, 4096)]).unwrap();
    assert_eq!(list(&mut administrator, of_administrator, false, Of::First).unwrap().len(), 3);
    set_limits(&mut ann, file, &[("S-1-22-1-1000", 5, DELETE)]).unwrap();
    assert_eq!(rules(&server), ["* hard=1MiB", "@7 hard=1MiB"]);
}

#[test]
fn administrators_set_what_each_user_may_hold() {
    let server = with_quotas(&["1000 hard=4KiB"]);
    let mut ann = server.client();
    let file = open(&mut ann);
    let mut control = Control::decode(&of_volume(&mut ann, file, FsInfoClass::Control)).unwrap();
    let what = (InfoType::FileSystem, FsInfoClass::Control.into(), 0);
    let mut set = |ann: &mut Client, file, threshold, limit| {
        (control.default_quota_threshold, control.default_quota_limit) = (threshold, limit);
        control.file_system_control_flags = u32::MAX;
        let mut buffer = Vec::new();
        control.encode_into(&mut buffer);
        set_any(ann, file, what, &buffer)
    };
    set(&mut ann, file, u64::MAX, u64::MAX).unwrap();
    set(&mut ann, file, 4096, 8192).unwrap();
    assert_eq!(rules(&server), ["1000 hard=4KiB", "* soft=4KiB hard=8KiB"]);
    let told = Control::decode(&of_volume(&mut ann, file, FsInfoClass::Control)).unwrap();
    assert_eq!((told.default_quota_threshold, told.default_quota_limit), (4096, 8192));
    assert_eq!(set(&mut ann, file, 2, 1), Err(NtStatus::INVALID_PARAMETER));
    let reading = Opening { access: AccessMask::READ_DATA, ..Opening::default() };
    let reading = reading.send(&mut ann, FILE).unwrap().id;
    assert_eq!(set(&mut ann, reading, 1, 2), Err(NtStatus::ACCESS_DENIED));
    let mut bob = client_of(&server, OTHER_USER);
    let of_bob = open(&mut bob);
    assert_eq!(set(&mut bob, of_bob, 1, 2), Err(NtStatus::ACCESS_DENIED));
    set(&mut ann, file, 0, u64::MAX).unwrap();
    assert_eq!(rules(&server), ["1000 hard=4KiB"]);
}

#[test]
fn other_users_see_their_own_quota_and_set_none() {
    let server = with_quotas(&RULES);
    let mut bob = client_of(&server, OTHER_USER);
    let file = open(&mut bob);
    let own = [user(1000, [4096, 64 << 10, 128 << 10])];
    assert_eq!(list(&mut bob, file, false, Of::First).unwrap(), own);
    assert_eq!(list(&mut bob, file, false, Of::Next), Err(NtStatus::NO_MORE_ENTRIES));
    assert_eq!(list(&mut bob, file, false, Of::Listed(&listed(&["S-1-22-1-1000"]))).unwrap(), own);
    for sids in [&["S-1-22-1-1001"][..], &["S-1-22-1-1000", "S-1-22-1-0"], &["S-1-5-21-1-2-3-4"]] {
        let refused = list(&mut bob, file, false, Of::Listed(&listed(sids)));
        assert_eq!(refused, Err(NtStatus::ACCESS_DENIED), "{sids:?}");
    }
    let from = Of::From("S-1-22-1-1001".parse().unwrap());
    assert_eq!(list(&mut bob, file, false, from), Err(NtStatus::INVALID_PARAMETER));
    assert_eq!(
        set_limits(&mut bob, file, &[("S-1-22-1-1000", NO_LIMIT, NO_LIMIT)]),
        Err(NtStatus::ACCESS_DENIED)
    );
    assert_eq!(rules(&server), RULES);
    assert_eq!(ALL.bits(), 0x001F_01FF, "the open asked for everything");
}

#[test]
fn a_share_without_quotas_has_none_to_list_and_a_server_without_authority_sets_none() {
    let server = TestServer::start(Config::default());
    let mut ann = server.client();
    let file = open(&mut ann);
    assert_eq!(list(&mut ann, file, false, Of::First), Err(NtStatus::NO_MORE_ENTRIES));
    let told = list(&mut ann, file, false, Of::Listed(&listed(&["S-1-22-1-1000"]))).unwrap();
    assert_eq!(told, [user(1000, [0; 3])]);
    let refused = set_limits(&mut ann, file, &[("S-1-22-1-1000", 1, 2)]);
    assert_eq!(refused, Err(NtStatus::NOT_SUPPORTED));
}
