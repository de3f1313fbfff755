//! CHANGE_NOTIFY. [MS-SMB2] 3.3.5.19, [MS-FSA] 2.1.5.11.

use anabranch_smb_server::Config;
use smb_wire::change_notify::{ChangeNotifyFlags, CompletionFilter, Request, Response};
use smb_wire::create::CreateOptions;
use smb_wire::fscc::FileInfoClass;
use smb_wire::fscc::file_info::{Rename, RenameFlags};
use smb_wire::fscc::notify::{Action, Change};
use smb_wire::{AccessMask, Command, FileId, Header, NtStatus};

use crate::client::{Client, Reply, TestServer, close_body};
use crate::information::set;
use crate::opening::{Opening, delete, make_file};

pub(crate) const NAMES: CompletionFilter = CompletionFilter::FILE_NAME.union(CompletionFilter::DIR_NAME);

/// A CHANGE_NOTIFY.
#[derive(Clone, Copy)]
pub(crate) struct Watch {
    pub(crate) dir: FileId,
    pub(crate) filter: CompletionFilter,
    pub(crate) tree: bool,
    pub(crate) room: u32,
}

impl Watch {
    pub(crate) fn names(dir: FileId) -> Self {
        Self { dir, filter: NAMES, tree: false, room: 1000 }
    }

    pub(crate) fn body(self) -> Vec<u8> {
        let flags = if self.tree { ChangeNotifyFlags::WATCH_TREE } else { ChangeNotifyFlags::empty() };
        let request = Request {
            flags,
            output_buffer_length: self.room,
            file_id: self.dir,
            completion_filter: self.filter,
        };
        let mut body = Vec::new();
        request.encode(&mut body);
        body
    }

    /// Sends it; there is nothing to tell yet.
    pub(crate) fn begin(self, client: &mut Client) -> Header {
        let sent = client.send(Command::ChangeNotify, &self.body());
        let interim = client.receive();
        assert_eq!(interim.status(), NtStatus::PENDING);
        assert_eq!(interim.header.message_id, sent.message_id);
        interim.header
    }

    /// Sends it; there is something to tell.
    pub(crate) fn ask(self, client: &mut Client) -> Reply {
        client.call(Command::ChangeNotify, &self.body())
    }
}

pub(crate) fn changes(reply: &Reply) -> Vec<(Action, String)> {
    assert_eq!(reply.status(), NtStatus::SUCCESS);
    let data = Response::decode(&reply.message).unwrap().output_buffer;
    let changes = Change::list(data).map(Result::unwrap);
    changes.map(|change| (change.action, change.name.decode().unwrap())).collect()
}

pub(crate) fn one(action: Action, name: &str) -> Vec<(Action, String)> {
    vec![(action, name.to_owned())]
}

pub(crate) fn cancel(client: &mut Client, waiting: &Header) {
    let mut header = client.header(Command::Cancel);
    client.next_message_id -= 1; // CANCEL uses no identifier
    header.message_id = waiting.message_id;
    header.target = waiting.target;
    client.send_with(&header, &[4, 0, 0, 0]);
}

/// A directory, open to be watched, and a second client to change things.
struct Watched {
    watcher: Client,
    dir: FileId,
    other: Client,
}

impl Watched {
    fn new(server: &TestServer) -> Self {
        let (mut watcher, other) = (server.client(), server.client());
        Opening::directory().try_out(&mut watcher, "d").unwrap();
        let dir = open_directory(&mut watcher);
        Self { watcher, dir, other }
    }
}

fn open_directory(client: &mut Client) -> FileId {
    let options = CreateOptions::DIRECTORY_FILE;
    let access = AccessMask::LIST_DIRECTORY;
    Opening { options, access, ..Opening::default() }.send(client, "d").unwrap().id
}

#[test]
fn a_change_answers_the_request_that_waits() {
    let server = TestServer::start(Config::default());
    let mut test = Watched::new(&server);
    let watch = Watch::names(test.dir);
    watch.begin(&mut test.watcher);
    assert!(test.watcher.is_alive(), "others are answered meanwhile");
    make_file(&mut test.other, r"d\new", b"data");
    assert_eq!(changes(&test.watcher.receive()), one(Action::Added, "new"));
    watch.begin(&mut test.watcher);
    delete(&mut test.other, r"d\new").unwrap();
    assert_eq!(changes(&test.watcher.receive()), one(Action::Removed, "new"));
}

#[test]
fn changes_between_requests_are_kept() {
    let server = TestServer::start(Config::default());
    let mut test = Watched::new(&server);
    let watch = Watch::names(test.dir);
    let waiting = watch.begin(&mut test.watcher);
    cancel(&mut test.watcher, &waiting);
    assert_eq!(test.watcher.receive().status(), NtStatus::CANCELLED);
    make_file(&mut test.other, r"d\a", b"");
    Opening::directory().try_out(&mut test.other, r"d\b").unwrap();
    let file = Opening::default().send(&mut test.other, r"d\a").unwrap().id;
    let mut renamed = Vec::new();
    let wanted = Rename { flags: RenameFlags::empty(), root_directory: 0, name: r"d\c".into() };
    wanted.encode_into(&mut renamed).unwrap();
    set(&mut test.other, file, FileInfoClass::Rename, &renamed).unwrap();
    let told = changes(&watch.ask(&mut test.watcher));
    let names = [
        (Action::Added, "a"),
        (Action::Added, "b"),
        (Action::RenamedOldName, "a"),
        (Action::RenamedNewName, "c"),
    ];
    assert_eq!(told, names.map(|(action, name)| (action, name.to_owned())));
    watch.begin(&mut test.watcher);
}

#[test]
fn requests_of_one_open_are_answered_in_their_order() {
    let server = TestServer::start(Config::default());
    let mut test = Watched::new(&server);
    let watch = Watch::names(test.dir);
    let waiting: Vec<_> = (0..3).map(|_| watch.begin(&mut test.watcher).message_id).collect();
    for (message_id, name) in waiting.into_iter().zip(["a", "b", "c"]) {
        make_file(&mut test.other, &format!(r"d\{name}"), b"");
        let reply = test.watcher.receive();
        assert_eq!(reply.header.message_id, message_id);
        assert_eq!(changes(&reply), one(Action::Added, name));
    }
}

#[test]
fn filters_and_trees() {
    let server = TestServer::start(Config::default());
    let mut test = Watched::new(&server);
    Opening::directory().try_out(&mut test.other, r"d\sub").unwrap();
    let sizes = Watch { filter: CompletionFilter::SIZE, tree: true, ..Watch::names(test.dir) };
    sizes.begin(&mut test.watcher);
    make_file(&mut test.other, r"d\sub\f", b"");
    let file = Opening::default().send(&mut test.other, r"d\sub\f").unwrap().id;
    test.other.write(file, 0, b"data").unwrap();
    assert_eq!(changes(&test.watcher.receive()), one(Action::Modified, r"sub\f"), "no name has changed");
    let flat = open_directory(&mut test.watcher);
    Watch::names(flat).begin(&mut test.watcher);
    make_file(&mut test.other, r"d\sub\g", b"");
    make_file(&mut test.other, r"d\g", b"");
    assert_eq!(changes(&test.watcher.receive()), one(Action::Added, "g"), "not what lies deeper");
}

#[test]
fn what_does_not_fit_is_not_told() {
    let server = TestServer::start(Config::default());
    let mut test = Watched::new(&server);
    let watch = Watch { room: 64, ..Watch::names(test.dir) };
    let waiting = watch.begin(&mut test.watcher);
    cancel(&mut test.watcher, &waiting);
    assert_eq!(test.watcher.receive().status(), NtStatus::CANCELLED);
    let look_yourself = |reply: &Reply| {
        assert_eq!(reply.status(), NtStatus::NOTIFY_ENUM_DIR);
        assert!(Response::decode(&reply.message).unwrap().output_buffer.is_empty());
    };
    for n in 0..4 {
        make_file(&mut test.other, &format!(r"d\file-{n}"), b"");
    }
    look_yourself(&watch.ask(&mut test.watcher));
    // The first request's room holds for all.
    let roomy = Watch { room: 1000, ..watch };
    roomy.begin(&mut test.watcher);
    make_file(&mut test.other, &format!(r"d\{}", "n".repeat(60)), b"");
    look_yourself(&test.watcher.receive());
    roomy.begin(&mut test.watcher);
    make_file(&mut test.other, r"d\short", b"");
    assert_eq!(changes(&test.watcher.receive()), one(Action::Added, "short"));
}

#[test]
fn closing_ends_the_wait() {
    let server = TestServer::start(Config::default());
    let mut test = Watched::new(&server);
    let waiting = Watch::names(test.dir).begin(&mut test.watcher);
    test.watcher.send(Command::Close, &close_body(test.dir));
    let replies = [test.watcher.receive(), test.watcher.receive()];
    let ended = replies.iter().find(|reply| reply.header.message_id == waiting.message_id).unwrap();
    assert_eq!(ended.status(), NtStatus::NOTIFY_CLEANUP);
    assert!(!server.share.changes().is_watched(), "nothing is collected any more");
}

#[test]
fn a_directory_that_is_to_be_deleted_ends_the_wait() {
    let server = TestServer::start(Config::default());
    let mut test = Watched::new(&server);
    let watch = Watch::names(test.dir);
    watch.begin(&mut test.watcher);
    watch.begin(&mut test.watcher);
    delete(&mut test.other, "d").unwrap();
    for _ in 0..2 {
        assert_eq!(test.watcher.receive().status(), NtStatus::DELETE_PENDING);
    }
    assert_eq!(watch.ask(&mut test.watcher).status(), NtStatus::DELETE_PENDING);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let server = TestServer::start(Config::default());
    let mut test = Watched::new(&server);
    let huge = Watch { room: u32::MAX, ..Watch::names(test.dir) };
    assert_eq!(huge.ask(&mut test.watcher).status(), NtStatus::INVALID_PARAMETER);
    make_file(&mut test.other, r"d\file", b"");
    let file = Opening::default().send(&mut test.watcher, r"d\file").unwrap().id;
    assert_eq!(Watch::names(file).ask(&mut test.watcher).status(), NtStatus::INVALID_PARAMETER);
    let access = AccessMask::READ_ATTRIBUTES;
    let blind = Opening { access, ..Opening::default() }.send(&mut test.watcher, "d").unwrap().id;
    assert_eq!(Watch::names(blind).ask(&mut test.watcher).status(), NtStatus::ACCESS_DENIED);
    assert!(!server.share.changes().is_watched());
}

/// However many requests wait, a CANCEL and whatever else comes is read.
#[test]
fn who_waits_too_often_is_refused_and_can_still_cancel() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let dir = Opening::directory().send(&mut client, "d").unwrap().id;
    let first = Watch::names(dir).begin(&mut client);
    let most = Config::default().limits.pending_requests_max;
    for _ in 1..most {
        Watch::names(dir).begin(&mut client);
    }
    assert_eq!(Watch::names(dir).ask(&mut client).status(), NtStatus::INSUFFICIENT_RESOURCES);
    assert!(client.is_alive());
    cancel(&mut client, &first);
    assert_eq!(client.receive().status(), NtStatus::CANCELLED);
    Watch::names(dir).begin(&mut client);
}
