//! The accounts and groups of the server, through the pipe `samr`. [MS-SAMR] 3.1.5. What Samba's clients make of it is tested
//! with these (`tests/interop/smbcacls.sh`).

use std::sync::Arc;

use anabranch_smb_server::{AccountEntry, Config, Dialect, Directory, LookUp};
use share::Terms;
use smb_wire::create::CreateDisposition;
use smb_wire::dcerpc::fault;
use smb_wire::fscc::fsctl::Fsctl;
use smb_wire::{FileId, NtStatus, Sid, samr};

use crate::client::{Client, TestServer};
use crate::guest::without_a_name;
use crate::ioctl::ioctl;
use crate::pipes::{ask, bind, bound, utf16, words};

const MACHINE: &str = "S-1-5-21-7-8-9";

/// A server with this many accounts: `user-1000` with the RID 1000, and so on. Every tenth is disabled.
#[derive(Debug)]
struct Accounts(u32);

impl Directory for Accounts {
    fn machine(&self) -> Option<Sid> {
        MACHINE.parse().ok()
    }

    fn accounts(&self) -> Vec<AccountEntry> {
        let machine = self.machine().unwrap();
        let account = |rid: u32| AccountEntry {
            sid: machine.member(rid).unwrap(),
            name: format!("user-{rid}"),
            uid: rid - 1000,
            disabled: rid.is_multiple_of(10),
        };
        (1000..1000 + self.0).rev().map(account).collect()
    }

    fn of_sids(&self, sids: Vec<Sid>) -> LookUp {
        Box::pin(async move { vec![None; sids.len()] })
    }

    fn of_names(&self, names: Vec<String>) -> LookUp {
        Box::pin(async move { vec![None; names.len()] })
    }
}

fn server(accounts: u32) -> TestServer {
    TestServer::start(Config { directory: Arc::new(Accounts(accounts)), ..Config::default() })
}

/// A client that has the pipe open.
struct Samr {
    client: Client,
    pipe: FileId,
}

impl Samr {
    fn new(server: &TestServer) -> Self {
        let (client, pipe) = bound(server, "samr", samr::INTERFACE);
        Self { client, pipe }
    }

    fn call(&mut self, opnum: u16, parts: &[&[u8]]) -> Result<Vec<u8>, u32> {
        ask(&mut self.client, self.pipe, opnum, &parts.concat())
    }

    /// The handle that a call returns.
    fn handle(&mut self, opnum: u16, parts: &[&[u8]]) -> Result<Vec<u8>, u32> {
        let answer = self.call(opnum, parts).unwrap();
        let (handle, status) = answer.split_at(20);
        if status == [0; 4] { Ok(handle.to_vec()) } else { Err(status_of(status)) }
    }

    /// SamrConnect2, SamrOpenDomain
    fn domain(&mut self, sid: &str) -> Vec<u8> {
        let server = self.handle(57, &[&words(&[0, 1])]).unwrap();
        self.handle(7, &[&server, &words(&[1]), &ndr_sid(sid)]).unwrap()
    }
}

fn ndr_sid(sid: &str) -> Vec<u8> {
    let sid: Sid = sid.parse().unwrap();
    let mut bytes = words(&[u32::try_from(sid.sub_authorities().len()).unwrap()]);
    sid.encode_into(&mut bytes);
    bytes
}

fn status_of(answer: &[u8]) -> u32 {
    u32::from_le_bytes(*answer.last_chunk().unwrap())
}

/// The number of 32 bits at a place of an answer.
fn word(answer: &[u8], index: usize) -> u32 {
    u32::from_le_bytes(answer[4 * index..4 * index + 4].try_into().unwrap())
}

fn names(answer: &[u8], name: &str) -> bool {
    answer.windows(2 * name.len()).any(|part| part == utf16(name))
}

#[test]
fn a_list_goes_on_where_it_ended_and_has_a_thousand_entries_at_most() {
    let server = server(1500);
    let mut samr = Samr::new(&server);
    let domain = samr.domain(MACHINE);
    // SamrEnumerateUsersInDomain: resume, control, bytes
    let mut list = |resume, control, bytes| {
        let answer = samr.call(13, &[&domain, &words(&[resume, control, bytes])]).unwrap();
        (word(&answer, 0), word(&answer, 2), status_of(&answer), answer)
    };
    let more = NtStatus::MORE_ENTRIES.0;
    let (resume, count, status, answer) = list(0, 0, u32::MAX);
    assert_eq!((resume, count, status), (1999, 1000, more));
    assert!(names(&answer, "user-1000") && names(&answer, "user-1999") && !names(&answer, "user-2000"));
    let (resume, count, status, answer) = list(resume, 0, u32::MAX);
    assert_eq!((resume, count, status), (2499, 500, 0));
    assert!(names(&answer, "user-2000") && names(&answer, "user-2499"));
    assert_eq!(list(resume, 0, u32::MAX).1, 0);
    // One entry at least, and no more bytes than are wanted.
    assert_eq!((list(0, 0, 0).0, list(0, 0, 0).1, list(0, 0, 0).2), (1000, 1, more));
    assert!((2..100).contains(&list(0, 0, 1000).1));
    // Those that are disabled
    let (_, count, status, _) = list(0, samr::account_control::DISABLED, u32::MAX);
    assert_eq!((count, status), (150, 0));
    // SamrQueryDisplayInformation: class, first, entries, bytes; the number is behind two sums and the class.
    let mut display = |first, entries| {
        let class = [1, 0, 0, 0];
        let answer = samr.call(40, &[&domain, &class, &words(&[first, entries, u32::MAX])]).unwrap();
        (word(&answer, 3), status_of(&answer))
    };
    assert_eq!(display(0, u32::MAX), (1000, more));
    assert_eq!((display(1000, u32::MAX), display(1499, 7), display(0, 3)), ((500, 0), (1, 0), (3, more)));
    assert_eq!(display(u32::MAX, 10), (0, 0));
}

#[test]
fn domains_groups_and_users_are_found() {
    let server = server(3);
    let mut samr = Samr::new(&server);
    let host = samr.handle(0, &[&words(&[0, 1])]).unwrap();
    // SamrEnumerateDomainsInSamServer
    let answer = samr.call(6, &[&host, &words(&[0, u32::MAX])]).unwrap();
    assert!(names(&answer, "ANABRANCH") && names(&answer, "Builtin") && status_of(&answer) == 0);
    // SamrOpenDomain of another one
    let unknown = samr.handle(7, &[&host, &words(&[1]), &ndr_sid("S-1-5-21-1-1-1")]);
    assert_eq!(unknown, Err(NtStatus::NO_SUCH_DOMAIN.0));
    let domain = samr.domain(MACHINE);
    // SamrOpenUser, SamrOpenGroup, SamrOpenAlias
    for (opnum, rid, missing) in [
        (34, 1002, NtStatus::NO_SUCH_USER),
        (19, 513, NtStatus::NO_SUCH_GROUP),
        (27, 0, NtStatus::NO_SUCH_ALIAS),
    ] {
        assert_eq!(samr.handle(opnum, &[&domain, &words(&[1, 9])]), Err(missing.0));
        assert_eq!(samr.handle(opnum, &[&domain, &words(&[1, rid])]).is_ok(), rid != 0);
    }
    // SamrGetMembersInAlias: the superuser is the administrator.
    let builtin = samr.domain("S-1-5-32");
    let administrators = samr.handle(27, &[&builtin, &words(&[1, 544])]).unwrap();
    let answer = samr.call(33, &[&administrators]).unwrap();
    assert_eq!(word(&answer, 0), 1);
    let root: Sid = "S-1-5-21-7-8-9-1000".parse().unwrap();
    let mut bytes = Vec::new();
    root.encode_into(&mut bytes);
    assert!(answer.windows(bytes.len()).any(|part| part == bytes));
    // SamrGetAliasMembership of a user, and of the superuser
    let mut membership = |sid: &str| {
        let answer = samr.call(16, &[&builtin, &words(&[1, 1, 1, 1]), &ndr_sid(sid)]).unwrap();
        let count = word(&answer, 0) as usize;
        (0..count).map(|index| word(&answer, 3 + index)).collect::<Vec<_>>()
    };
    assert_eq!(membership("S-1-5-21-7-8-9-1001"), [545]);
    assert_eq!(membership("S-1-5-21-7-8-9-1000"), [544, 545]);
    assert_eq!(membership("S-1-5-21-7-8-9-4711"), [0; 0]);
    // SamrRidToSid
    let answer = samr.call(65, &[&domain, &words(&[1001])]).unwrap();
    assert!(answer.ends_with(&[0; 4]) && word(&answer, 0) != 0);
}

#[test]
fn a_thousand_rids_are_looked_up_among_very_many_accounts() {
    let server = server(100_000);
    let mut samr = Samr::new(&server);
    let domain = samr.domain(MACHINE);
    // SamrLookupIdsInDomain
    let mut look_up = |rids: &[u32]| {
        let count = u32::try_from(rids.len()).unwrap();
        samr.call(18, &[&domain, &words(&[count, 1000, 0, count]), &words(rids)]).unwrap()
    };
    let last: Vec<u32> = (100_000..101_000).collect();
    let answer = look_up(&last);
    assert_eq!(status_of(&answer), 0);
    assert!(names(&answer, "user-100000") && names(&answer, "user-100999"));
    let answer = look_up(&[101_000, 513, 1000]);
    assert_eq!(status_of(&answer), NtStatus::SOME_NOT_MAPPED.0);
    assert!(names(&answer, "None") && names(&answer, "user-1000"));
    assert_eq!(status_of(&look_up(&[101_000])), NtStatus::NONE_MAPPED.0);
}

/// SamrLookupNamesInDomain: names are the same in any case, those of groups, too.
#[test]
fn names_are_looked_up_whatever_their_case() {
    let server = server(50);
    let mut samr = Samr::new(&server);
    let mut look_up = |domain: &str, name: &str| {
        let domain = samr.domain(domain);
        let text = utf16(name);
        let (bytes, count) = (u16::try_from(text.len()).unwrap(), u32::try_from(text.len() / 2).unwrap());
        let string = [bytes.to_le_bytes(), bytes.to_le_bytes()].concat();
        let parts = [&domain[..], &words(&[1, 1000, 0, 1]), &string, &words(&[1, count, 0, count]), &text];
        let answer = samr.call(17, &parts).unwrap();
        let status = status_of(&answer);
        // One RID behind a count, a pointer and a size.
        (status == 0).then(|| word(&answer, 3)).ok_or(status)
    };
    assert_eq!((look_up(MACHINE, "USER-1003"), look_up(MACHINE, "none")), (Ok(1003), Ok(513)));
    assert_eq!(look_up("S-1-5-32", "aDMINISTRATORS"), Ok(544));
    for (domain, name) in [(MACHINE, "user-1050"), (MACHINE, "Administrators"), ("S-1-5-32", "user-1003")] {
        assert_eq!(look_up(domain, name), Err(NtStatus::NONE_MAPPED.0), "{name}");
    }
}

#[test]
fn every_class_of_information_that_is_known_is_answered_and_no_other() {
    let server = server(2);
    let mut samr = Samr::new(&server);
    let domain = samr.domain(MACHINE);
    let builtin = samr.domain("S-1-5-32");
    let user = samr.handle(34, &[&domain, &words(&[1, 1000])]).unwrap();
    let group = samr.handle(19, &[&domain, &words(&[1, 513])]).unwrap();
    let alias = samr.handle(27, &[&builtin, &words(&[1, 545])]).unwrap();
    let unknown = NtStatus::INVALID_INFO_CLASS.0;
    for (opnum, object, classes) in [
        (8_u16, &domain, &[1_u16, 2, 3, 4, 5, 6, 7, 8, 9, 12][..]),
        (46, &builtin, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 12]),
        (20, &group, &[1, 2, 3, 4, 5]),
        (28, &alias, &[1, 2, 3]),
        (36, &user, &samr::UserInformation::CLASSES),
        (47, &user, &samr::UserInformation::CLASSES),
    ] {
        for class in 0..40_u16 {
            let answer = samr.call(opnum, &[object, &class.to_le_bytes()]).unwrap();
            let expected = if classes.contains(&class) { 0 } else { unknown };
            assert_eq!(status_of(&answer), expected, "{opnum} {class}");
            assert_eq!(word(&answer, 0) != 0, expected == 0, "{opnum} {class}");
        }
    }
}

#[test]
fn nothing_can_be_changed() {
    let server = server(2);
    let mut samr = Samr::new(&server);
    let domain = samr.domain(MACHINE);
    let denied = NtStatus::ACCESS_DENIED.0;
    // SamrCreateUser2InDomain, SamrDeleteUser, SamrSetInformationUser, SamrUnicodeChangePasswordUser2
    for (opnum, length) in [(50, 32), (35, 24), (37, 4), (55, 4)] {
        let answer = samr.call(opnum, &[&domain, &[7; 100]]).unwrap();
        assert_eq!((answer.len(), status_of(&answer)), (length, denied), "{opnum}");
        assert!(answer[..length - 4].iter().all(|byte| *byte == 0), "{opnum}");
    }
    assert_eq!(samr.call(60, &[&domain]), Err(fault::OP_RANGE_ERROR));
}

#[test]
fn a_handle_is_of_its_object_and_a_closed_one_of_none() {
    let server = server(2);
    let mut samr = Samr::new(&server);
    let domain = samr.domain(MACHINE);
    let user = samr.handle(34, &[&domain, &words(&[1, 1000])]).unwrap();
    // SamrEnumerateUsersInDomain, SamrOpenDomain, SamrQueryInformationUser
    for (opnum, handle) in [(13, &user), (7, &domain), (36, &domain)] {
        let answer = samr.call(opnum, &[handle, &words(&[1]), &ndr_sid("S-1-5-32"), &words(&[0, 0, 0])]);
        assert_eq!(answer, Err(fault::CONTEXT_MISMATCH), "{opnum}");
    }
    let closed = samr.handle(1, &[&user]).unwrap();
    assert_eq!(closed, [0; 20]);
    assert_eq!(samr.call(36, &[&closed, &[21, 0]]), Err(fault::CONTEXT_MISMATCH));
    assert_eq!(samr.call(36, &[&user]), Err(fault::BAD_STUB_DATA), "the class is missing");
}

#[test]
fn guests_and_clients_without_a_name_learn_nothing() {
    let config = Config { directory: Arc::new(Accounts(2)), ..Config::default() };
    let server = TestServer::on_terms(config, Terms::GUESTS);
    let mut client = server.connect();
    client.negotiate(&[Dialect::Smb311]);
    without_a_name(&mut client).unwrap();
    client.tree_connect("IPC$").unwrap();
    let pipe = client.create("samr", CreateDisposition::Open).unwrap();
    ioctl(&mut client, Fsctl::PipeTransceive, pipe, &bind(samr::INTERFACE), 4096).ok().unwrap();
    for opnum in [0, 57, 64] {
        assert_eq!(ask(&mut client, pipe, opnum, &words(&[0, 1])), Err(fault::ACCESS_DENIED));
    }
}
