//! A client of NFSv4.1: sessions, opens, locks, delegations, and reclaims after a restart of the server.

mod answer;
mod session;

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use nfs_wire::v4::attr::{AttributesBuf, Value};
use nfs_wire::v4::compound::{ArgOp, ResOp};
use nfs_wire::v4::lock::{LockType, Locker};
use nfs_wire::v4::open::{Claim, CreateHow, How, ShareAccess, ShareDeny, Want};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{ClientId, FileHandle, Name, OwnerId, SessionId, StableHow, StateOwner, Stateid};
use nfs_wire::v4::{
    PROGRAM, VERSION, close, delegreturn, lock, locku, lookup, open, putfh, read, remove, write,
};

use crate::machine;
use crate::model::LockOwner;
use crate::piece::{Doing, Piece, lockable, stamps};
use crate::rpc::{Asked, Procedure, Rpc};
use crate::world::{BLOCKS, FILES, OwnName, World, Written, file_name};
use answer::{called, found, locked, opened, results};

const COMPOUND: Procedure = Procedure { program: PROGRAM, version: VERSION, number: 1 };
/// Slots of a session: the number of requests side by side.
const SLOTS: usize = 4;
const HIGHEST_SLOT: u32 = 3;
/// How stale a read from a delegation may be, because the recall may take that long to arrive. No other delay is that
/// long.
const RECALL: Duration = Duration::from_millis(200);
/// How long a client counts on its lease. The server's lease time is 90 s.
const LEASE: Duration = Duration::from_secs(85);
/// A client that reclaims within this time after a restart gets its state back. The lease time is 90 s.
const IN_TIME: Duration = Duration::from_secs(60);
/// How often a client tries an operation that the server asks it to retry.
const ATTEMPTS: u32 = 400;

struct Session {
    client_id: ClientId,
    id: SessionId,
    /// The sequence id of each slot's next request.
    slots: [u32; SLOTS],
    /// The run of the servers in which the session was made.
    run: u8,
}

/// A file that the client has open.
struct Open {
    stateid: Stateid,
    locks: Option<Stateid>,
    locked: Vec<Range<u64>>,
    delegation: Option<Stateid>,
    /// The blocks that were read under the delegation, with their values.
    cached: HashMap<u64, u64>,
}

struct Client {
    rpc: Rpc,
    world: Rc<World>,
    number: u32,
    session: Option<Session>,
    /// The number of the client's life. A client that has lost its lease begins a new life.
    life: u8,
    /// When the last requests were sent, and when the last requests that renewed the lease were sent.
    asked: Duration,
    renewed: Duration,
    /// The run of the servers in which the client got all the state that it holds.
    held_in: u8,
    root: Vec<u8>,
    files: Vec<Vec<u8>>,
    opens: Vec<Option<Open>>,
    names: [OwnName; 2],
    /// Stateids of delegations that the server has recalled.
    recalled: Vec<Stateid>,
}

/// Why there is no reply.
enum Lost {
    /// The simulation is over.
    Over,
    /// The server no longer knows the session.
    Session,
    /// The lease has expired, or the server has revoked state.
    Lease,
}

/// Performs random operations until the simulation is over.
pub(crate) async fn run(world: Rc<World>, number: u32) {
    let mut client = Client {
        rpc: Rpc::new(Rc::clone(&world), number),
        world: Rc::clone(&world),
        number,
        session: None,
        life: 1,
        asked: Duration::ZERO,
        renewed: Duration::ZERO,
        held_in: 0,
        root: Vec::new(),
        files: Vec::new(),
        opens: (0..FILES).map(|_| None).collect(),
        names: [OwnName::default(); 2],
        recalled: Vec::new(),
    };
    while !world.is_over() {
        let done = match world.below(100) {
            _ if client.session.is_none() => client.establish().await,
            _ if !client.recalled.is_empty() => client.give_delegations_back().await,
            0..=34 => client.data().await,
            35..=49 => {
                client.read_from_delegation();
                Ok(())
            }
            50..=63 => client.open().await,
            64..=71 => client.lock().await,
            72..=79 => client.unlock().await,
            80..=91 => client.close().await,
            92..=97 => client.name().await,
            _ => {
                client.rpc.hang_up();
                Ok(())
            }
        };
        match done {
            Ok(()) => {}
            Err(Lost::Over) => return,
            Err(Lost::Lease) => client.begin_anew(),
            Err(Lost::Session) => {
                client.lose_session();
                // Other clients must wait for a client that comes back late after a restart.
                world.pause(if world.once_in(2) { 20_000 } else { 0 }).await;
            }
        }
        // A client that was asked for a delegation gives it back before it rests.
        let rests = world.once_in(4) && client.recalled.is_empty();
        let most = if rests { world.leisure } else { 0 };
        if rests {
            // Without a connection, no recall reaches the client, and other clients would wait for it in vain.
            client.rpc.connect();
        }
        let recalled = &mut client.recalled;
        client.rpc.idle(most, &mut |call| called(call, recalled)).await;
    }
}

fn put(object: &[u8]) -> ArgOp<'_> {
    ArgOp::PutFh(putfh::Args { object: FileHandle(object) })
}

/// A stateid that stands for the newest state (RFC 8881 8.2.2).
fn newest(stateid: Stateid) -> Stateid {
    Stateid { seqid: 0, ..stateid }
}

fn look(name: &[u8]) -> ArgOp<'_> {
    ArgOp::Lookup(lookup::Args { name: Name(name) })
}

impl Client {
    fn owner(&self, file: usize) -> LockOwner {
        LockOwner { client: self.number, open: file as u64 }
    }

    /// The status of the whole COMPOUND. Anything but success and the allowed statuses is a fault of the server.
    fn outcome(&self, what: &str, answer: &[u8], allowed: &[Status]) -> Result<(), Status> {
        let Some((status, _)) = results(answer) else { return Err(Status::BadXdr) };
        self.world.note(self.number, what, &[status.map_or_else(|status| status as u64, |()| 0)]);
        if let Err(status) = status
            && !allowed.contains(&status)
        {
            self.world.fail(self.number, format!("{what}: {status:?}"));
        }
        status
    }

    async fn open_as(
        &mut self,
        object: &[u8],
        claim: Claim<'_>,
        how: How<'_>,
        want: Want,
    ) -> Result<Vec<u8>, Lost> {
        let owner = format!("opener {}", self.number);
        let client_id = self.session.as_ref().ok_or(Lost::Session)?.client_id;
        let args = open::Args {
            seqid: 0,
            share_access: ShareAccess::BOTH.with_want(want),
            share_deny: ShareDeny::NONE,
            owner: StateOwner { client_id, owner: OwnerId(owner.as_bytes()) },
            how,
            claim,
        };
        self.compound(&[put(object), ArgOp::Open(args), ArgOp::GetFh]).await
    }

    async fn open(&mut self) -> Result<(), Lost> {
        let file = self.world.pick(FILES);
        if self.opens[file].is_some() {
            return Ok(());
        }
        let want = [Want::None, Want::Read, Want::Any, Want::NoPreference][self.world.pick(4)];
        let (root, name) = (self.root.clone(), file_name(file));
        let answer = self.open_as(&root, Claim::Null(Name(name.as_bytes())), How::NoCreate, want).await?;
        if self.outcome("nfs4 open", &answer, &[Status::Delay, Status::Grace, Status::Io]).is_ok() {
            self.opens[file] = opened(&answer);
        }
        Ok(())
    }

    async fn lock_as(
        &mut self,
        file: usize,
        open: &Open,
        range: &Range<u64>,
        reclaim: bool,
    ) -> Result<Vec<u8>, Lost> {
        let owner = format!("locker {}", self.number);
        let client_id = self.session.as_ref().ok_or(Lost::Session)?.client_id;
        let locker = match open.locks {
            Some(lock_stateid) => Locker::Existing { lock_stateid: newest(lock_stateid), lock_seqid: 0 },
            None => Locker::New {
                open_seqid: 0,
                open_stateid: open.stateid,
                lock_seqid: 0,
                owner: StateOwner { client_id, owner: OwnerId(owner.as_bytes()) },
            },
        };
        let object = self.files[file].clone();
        let (offset, length) = (range.start, range.end - range.start);
        let args = lock::Args { lock_type: LockType::Write, reclaim, offset, length, locker };
        self.compound(&[put(&object), ArgOp::Lock(args)]).await
    }

    async fn lock(&mut self) -> Result<(), Lost> {
        let file = self.world.pick(FILES);
        let range = lockable(&self.world);
        let Some(open) = self.opens[file].take() else { return Ok(()) };
        if open.locked.iter().any(|held| held.start < range.end && range.start < held.end) {
            self.opens[file] = Some(open);
            return Ok(());
        }
        let answer = self.lock_as(file, &open, &range, false).await;
        let open = self.opens[file].insert(open);
        let answer = answer?;
        let stateid = locked(&answer);
        if let Some(stateid) = stateid {
            open.locks = Some(stateid);
            open.locked.push(range.clone());
        }
        const ALLOWED: &[Status] = &[Status::Denied, Status::Delay, Status::Grace, Status::Locked];
        if self.outcome("nfs4 lock", &answer, ALLOWED).is_ok() {
            let granted =
                self.world.locks.borrow_mut().granted(self.owner(file), file, range, machine::elapsed());
            self.world.check(self.number, granted);
        }
        Ok(())
    }

    async fn unlock(&mut self) -> Result<(), Lost> {
        let file = self.world.pick(FILES);
        let owner = self.owner(file);
        let Some(open) = &mut self.opens[file] else { return Ok(()) };
        let (Some(range), Some(lock_stateid)) = (open.locked.pop(), open.locks) else { return Ok(()) };
        self.world.locks.borrow_mut().given_back(owner, file, &range);
        let (offset, length) = (range.start, range.end - range.start);
        let lock_stateid = newest(lock_stateid);
        let args = locku::Args { lock_type: LockType::Write, seqid: 0, lock_stateid, offset, length };
        let object = self.files[file].clone();
        for _ in 0..ATTEMPTS {
            let answer = self.compound(&[put(&object), ArgOp::LockU(args)]).await?;
            if self.outcome("nfs4 unlock", &answer, &[Status::Delay]) != Err(Status::Delay) {
                return Ok(());
            }
            let recalled = &mut self.recalled;
            self.rpc.idle(500, &mut |call| called(call, recalled)).await;
        }
        self.world.fail(self.number, "LOCKU is put off for ever".to_owned());
        Err(Lost::Over)
    }

    async fn close(&mut self) -> Result<(), Lost> {
        let file = self.world.pick(FILES);
        let is_free = |open: &Option<Open>| {
            open.as_ref().is_some_and(|open| open.locked.is_empty() && open.delegation.is_none())
        };
        if !is_free(&self.opens[file]) {
            return Ok(());
        }
        let Some(open) = &self.opens[file] else { return Ok(()) };
        let args = close::Args { seqid: 0, open_stateid: open.stateid };
        let object = self.files[file].clone();
        let answer = self.compound(&[put(&object), ArgOp::Close(args)]).await?;
        if self.outcome("nfs4 close", &answer, &[Status::Delay]).is_ok() {
            self.opens[file] = None;
            self.world.locks.borrow_mut().closed(self.owner(file));
        }
        Ok(())
    }

    /// Returns the recalled delegations with DELEGRETURN.
    async fn give_delegations_back(&mut self) -> Result<(), Lost> {
        // A client that has waited for a hanging store may be too late.
        const LATE: &[Status] = &[Status::Delay, Status::DelegRevoked];
        while let Some(stateid) = self.recalled.pop() {
            let holds = |open: &Option<Open>| {
                open.as_ref()
                    .and_then(|open| open.delegation)
                    .is_some_and(|delegation| delegation.other == stateid.other)
            };
            let Some(file) = self.opens.iter().position(holds) else { continue };
            let object = self.files[file].clone();
            if let Some(open) = &mut self.opens[file] {
                open.delegation = None;
                open.cached.clear();
            }
            let args = delegreturn::Args { stateid };
            let answer = self.compound(&[put(&object), ArgOp::DelegReturn(args)]).await?;
            // The server recalled the delegation twice, and the client has already returned it.
            if self.outcome("nfs4 delegation return", &answer, LATE) == Err(Status::Delay) {
                if let Some(open) = &mut self.opens[file] {
                    open.delegation = Some(stateid);
                }
                self.recalled.push(stateid);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Answers a read from data that was read under a delegation. No other client may have changed it.
    fn read_from_delegation(&self) {
        let file = self.world.pick(FILES);
        let block = self.world.below(BLOCKS);
        let Some(open) = &self.opens[file] else { return };
        let Some(stamp) = open.cached.get(&block).copied() else { return };
        let is_same_run =
            self.session.as_ref().is_some_and(|session| session.run == self.world.servers.borrow().runs());
        if open.delegation.is_none() || !is_same_run || self.rpc.has_more() || !self.rpc.is_connected() {
            return;
        }
        let now = machine::elapsed();
        self.world.note(self.number, "nfs4 cached read", &[file as u64, block, stamp]);
        let finding =
            self.world.data.borrow_mut().read((file, block), stamp, now.saturating_sub(RECALL), now);
        self.world.check(self.number, finding.map_err(|what| format!("from a delegation: {what}")));
        self.world.count();
    }

    /// Reads and writes, side by side.
    async fn data(&mut self) -> Result<(), Lost> {
        let begun = machine::elapsed();
        let mut calls = Vec::new();
        for slot in 0..=self.world.pick(SLOTS) {
            calls.push(self.piece(slot).ok_or(Lost::Session)?);
        }
        let asked: Vec<_> = calls.iter().map(|(asked, _)| asked.clone()).collect();
        let answers = match self.ask(&asked).await {
            Ok(answers) => answers,
            Err(lost) => {
                self.world.unanswered(calls.iter().map(|(_, doing)| *doing));
                return Err(lost);
            }
        };
        let mut outcome = Ok(());
        for ((_, doing), answer) in calls.iter().zip(&answers) {
            if let Err(lost) = self.has_session(answer) {
                // The request was carried out at most once, before the session was lost.
                self.world.unanswered(std::iter::once(*doing));
                outcome = Err(lost);
                continue;
            }
            match *doing {
                Doing::Read(piece) => {
                    let wrote = |block| calls.iter().any(|(_, other)| other.writes(piece.file, block));
                    self.has_read(piece, answer, begun, &wrote);
                }
                Doing::Write(piece, stamp) => self.has_written(piece, stamp, answer),
            }
        }
        outcome
    }

    fn piece(&mut self, slot: usize) -> Option<(Asked, Doing)> {
        let piece = Piece::by(&self.world);
        let object = self.files.get(piece.file)?.clone();
        let offset = piece.offset();
        let stateid = match &self.opens[piece.file] {
            Some(open) => newest(open.locks.unwrap_or(open.stateid)),
            None => Stateid::ANONYMOUS,
        };
        if self.world.once_in(2) {
            let args = read::Args { stateid, offset, count: piece.bytes() };
            return Some((self.on_slot(slot, &[put(&object), ArgOp::Read(args)])?, Doing::Read(piece)));
        }
        let stamp = self.world.begin_write(piece);
        if let Some(open) = &mut self.opens[piece.file] {
            open.cached.retain(|block, _| !piece.range().contains(block));
        }
        let data = piece.stamped(stamp);
        let stable = if self.world.once_in(3) { StableHow::FileSync } else { StableHow::Unstable };
        let args = write::Args { stateid, offset, stable, data: &data };
        Some((self.on_slot(slot, &[put(&object), ArgOp::Write(args)])?, Doing::Write(piece, stamp)))
    }

    fn has_read(&mut self, piece: Piece, answer: &[u8], begun: Duration, wrote: &dyn Fn(u64) -> bool) {
        self.world.note(self.number, "nfs4 read of", &piece.numbers());
        if self.outcome("nfs4 read", answer, PUT_OFF).is_err() {
            return;
        }
        let Some((_, all)) = results(answer) else { return };
        let Some(ResOp::Read(Ok(read))) = all.last() else { return };
        self.world.check_read(self.number, piece, read.data, begun);
        let is_recalled = !self.recalled.is_empty();
        let keeps = |open: &&mut Open| open.delegation.is_some() && !is_recalled;
        if let Some(open) = self.opens[piece.file].as_mut().filter(keeps) {
            let kept = stamps(piece, read.data).filter(|(block, _)| !wrote(*block));
            open.cached.extend(kept.filter_map(|(block, stamp)| Some((block, stamp?))));
        }
    }

    fn has_written(&self, piece: Piece, stamp: u64, answer: &[u8]) {
        self.world.note(self.number, "nfs4 write of", &[&piece.numbers()[..], &[stamp]].concat());
        let became = match self.outcome("nfs4 write", answer, PUT_OFF) {
            Ok(()) => Written::Acknowledged,
            Err(Status::Io | Status::NoSpc) => Written::Unanswered,
            Err(_) => Written::Refused,
        };
        self.world.end_write(piece, stamp, became);
    }

    /// Makes or removes a name that only this client uses, so the outcome is known.
    async fn name(&mut self) -> Result<(), Lost> {
        let which = self.world.pick(self.names.len());
        let is_there = self.names[which].is_there;
        let name = self.names[which].text(self.number, which);
        let root = self.root.clone();
        let run = self.world.servers.borrow().runs();
        let mode: AttributesBuf = [Value::Mode(0o600)].into_iter().collect();
        for _ in 0..ATTEMPTS {
            let answer = if is_there {
                let args = remove::Args { target: Name(name.as_bytes()) };
                self.compound(&[put(&root), ArgOp::Remove(args)]).await
            } else {
                let how = How::Create(CreateHow::Guarded(mode.as_attributes()));
                self.open_as(&root, Claim::Null(Name(name.as_bytes())), how, Want::None).await
            };
            let answer = match answer {
                Ok(answer) => answer,
                Err(lost) => {
                    self.names[which].give_up();
                    return Err(lost);
                }
            };
            let was_away = self.world.servers.borrow().runs() != run;
            let before = if is_there { Status::NoEnt } else { Status::Exist };
            let mut allowed = vec![Status::Delay, Status::Grace, Status::Io, Status::NoSpc];
            if was_away {
                allowed.push(before);
            }
            match self.outcome(if is_there { "nfs4 remove" } else { "nfs4 create" }, &answer, &allowed) {
                Err(Status::Delay | Status::Grace) => {
                    let recalled = &mut self.recalled;
                    self.rpc.idle(2000, &mut |call| called(call, recalled)).await;
                    continue;
                }
                Err(Status::Io | Status::NoSpc) => self.names[which].give_up(),
                _ => self.names[which].turn(),
            }
            if let (false, Some(object), Some(open)) = (is_there, found(&answer), opened(&answer)) {
                let args = close::Args { seqid: 0, open_stateid: open.stateid };
                self.compound(&[put(&object), ArgOp::Close(args)]).await?;
            }
            return Ok(());
        }
        self.world.fail(self.number, format!("{name} is put off for ever"));
        Err(Lost::Over)
    }
}

/// Statuses of a READ or WRITE that are no fault of the server: faults of the store, locks of other clients, waits.
const PUT_OFF: &[Status] = &[Status::Delay, Status::Grace, Status::Locked, Status::Io, Status::NoSpc];
