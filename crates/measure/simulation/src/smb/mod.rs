//! A client of SMB 3.1.1: signing, leases, durable handles, byte-range locks, several channels.

mod channel;

use std::collections::HashMap;
use std::future::poll_fn;
use std::ops::Range;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use smb_proto::dialect::SigningAlgorithm;
use smb_wire::create::{CreateDisposition, CreateOptions, ImpersonationLevel, OplockLevel, ShareAccess};
use smb_wire::create_context::{DurableFlags, Lease, LeaseState, LeaseV2, RequestContext, ResponseContext};
use smb_wire::lock::{LockElement, LockFlags};
use smb_wire::read::Channel as Transport;
use smb_wire::write::WriteFlags;
use smb_wire::{
    AccessMask, Command, FileAttributes, FileId, Guid, NtStatus, close, create, lock, read, tree_connect,
    write,
};

use crate::machine;
use crate::model::LockOwner;
use crate::piece::{Doing, Piece, lockable, stamps};
use crate::servers::SHARE;
use crate::world::{BLOCKS, FILES, OwnName, PATIENCE, World, Written, file_name};
use channel::{Answer, Channel, Session};

/// The most channels of a session.
const CHANNELS_MAX: usize = 3;
/// The most requests side by side.
const REQUESTS_MAX: usize = 4;
/// How stale a read from a lease may be, because the break may take that long to arrive. No other delay is that long.
const BREAK: Duration = Duration::from_millis(200);
const FILE_READ_WRITE: u32 = 0x0012_019F;
const DELETE_AND_SYNCHRONIZE: u32 = 0x0011_0080;

/// A file that the client has open.
struct Open {
    id: FileId,
    create_guid: Guid,
    lease: LeaseState,
    durable: bool,
    locked: Vec<Range<u64>>,
    /// The blocks that were read under the lease, with their values.
    cached: HashMap<u64, u64>,
}

struct Client {
    world: Rc<World>,
    number: u32,
    guid: Guid,
    /// The signing algorithm. It is the same on all channels of a session, as required ([MS-SMB2] 3.3.5.5.2).
    algorithm: SigningAlgorithm,
    session: Option<Session>,
    channels: Vec<Channel>,
    opens: Vec<Option<Open>>,
    /// Files whose leases were broken since the last request was sent.
    broken: Vec<usize>,
    names: [OwnName; 2],
}

/// The channel of a request ended before the reply came.
struct Lost;

/// Performs random operations until the simulation is over.
pub(crate) async fn run(world: Rc<World>, number: u32) {
    let mut guid = Guid::ZERO;
    world.fill(&mut guid.0);
    let mut client = Client {
        world: Rc::clone(&world),
        number,
        guid,
        algorithm: if world.once_in(2) { SigningAlgorithm::AesGmac } else { SigningAlgorithm::AesCmac },
        session: None,
        channels: Vec::new(),
        opens: (0..FILES).map(|_| None).collect(),
        broken: Vec::new(),
        names: [OwnName::default(); 2],
    };
    while !world.is_over() {
        client.look_at_breaks();
        client.look_at_channels();
        let done = match world.below(100) {
            _ if client.channels.is_empty() => client.establish().await,
            0..=34 => client.data().await,
            35..=49 => {
                client.read_from_lease();
                Ok(())
            }
            50..=63 => client.open().await,
            64..=71 => client.lock().await,
            72..=78 => client.unlock().await,
            79..=89 => client.close().await,
            90..=95 => client.name().await,
            96..=97 => client.bind().await,
            98 => {
                client.channels[0].cut();
                Ok(())
            }
            _ => Err(Lost),
        };
        if done.is_err() {
            client.leave();
        }
        let most = if world.once_in(4) { world.leisure } else { 0 };
        client.idle(most).await;
    }
}

impl Client {
    fn owner(&self, file: usize) -> LockOwner {
        LockOwner { client: self.number, open: file as u64 }
    }

    fn lease_key(&self, file: usize) -> [u8; 16] {
        let mut key = self.guid.0;
        key[0] = u8::try_from(file).unwrap_or(0);
        key
    }

    /// Cuts all channels: no pending request is answered any more.
    fn leave(&mut self) {
        self.channels.iter().for_each(Channel::cut);
        self.channels.clear();
    }

    /// Forgets the channels that have ended. A break that needs no acknowledgment may be lost with a channel, so the
    /// client no longer relies on cached data.
    fn look_at_channels(&mut self) {
        let before = self.channels.len();
        self.channels.retain(|channel| !channel.is_over());
        if self.channels.len() < before {
            for open in self.opens.iter_mut().flatten() {
                open.lease = LeaseState::empty();
                open.cached.clear();
            }
        }
    }

    /// The state of a lease that a reply has granted: empty if its break arrived over another channel before the reply.
    fn present(&self, file: usize, granted: LeaseState) -> LeaseState {
        if self.broken.contains(&file) { LeaseState::empty() } else { granted }
    }

    /// Processes the breaks that have arrived: data that no lease covers any more is dropped from the cache at once.
    fn look_at_breaks(&mut self) {
        for lease in self.channels.iter_mut().flat_map(|channel| channel.breaks.drain(..)) {
            self.world.note(
                self.number,
                "smb break",
                &[lease.lease_key[0].into(), lease.new_lease_state.bits().into()],
            );
            let file = usize::from(lease.lease_key[0]);
            self.broken.push(file);
            if let Some(open) = self.opens.get_mut(file).and_then(Option::as_mut) {
                open.lease = lease.new_lease_state;
                if !lease.new_lease_state.contains(LeaseState::READ) {
                    open.cached.clear();
                }
            }
        }
    }

    /// Sends no request for a while. Breaks may come over any channel.
    async fn idle(&mut self, most: u64) {
        let until = tokio::time::Instant::now() + Duration::from_millis(self.world.below(most + 1));
        let mut channels: Vec<_> =
            self.channels.iter_mut().map(|channel| Box::pin(channel.answer())).collect();
        let answered = poll_fn(|context| {
            let mut ended = Poll::Pending;
            channels.retain_mut(|channel| match channel.as_mut().poll(context) {
                Poll::Pending => true,
                Poll::Ready(answer) => {
                    ended = if answer.is_some() { Poll::Ready(()) } else { Poll::Pending };
                    false
                }
            });
            ended
        });
        if tokio::time::timeout_at(until, answered).await.is_ok() {
            self.world.fail(self.number, "an answer that nothing has asked for".to_owned());
        }
    }

    /// The status of a reply. Anything but success and the allowed statuses is a fault of the server.
    fn outcome(&self, what: &str, answer: &Answer, allowed: &[NtStatus]) -> NtStatus {
        let status = answer.0.status();
        self.world.note(self.number, what, &[status.0.into()]);
        if status != NtStatus::SUCCESS && !allowed.contains(&status) && !GONE.contains(&status) {
            self.world.fail(self.number, format!("{what}: {status:?}"));
        }
        status
    }

    /// Sends a request over a random channel, and returns its reply.
    async fn ask(
        &mut self,
        command: Command,
        body: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> Result<Answer, Lost> {
        let which = self.world.pick(self.channels.len().max(1));
        self.broken.clear();
        self.channels.get_mut(which).ok_or(Lost)?.send(command, body);
        let answer = self.answer(which).await?.ok_or(Lost)?;
        if GONE.contains(&answer.0.status()) { Err(Lost) } else { Ok(answer) }
    }

    /// Returns the next reply over a channel; `None` when the channel has ended. Other channels meanwhile bring only
    /// breaks, which are acknowledged.
    async fn answer(&mut self, which: usize) -> Result<Option<Answer>, Lost> {
        let mut channels: Vec<_> =
            self.channels.iter_mut().map(|channel| Some(Box::pin(channel.answer()))).collect();
        let mut unasked = false;
        let answer = poll_fn(|context| {
            let mut found = Poll::Pending;
            for (number, channel) in channels.iter_mut().enumerate() {
                let Some(waiting) = channel else { continue };
                if let Poll::Ready(answer) = waiting.as_mut().poll(context) {
                    *channel = None;
                    if number == which {
                        found = Poll::Ready(answer);
                    } else {
                        unasked |= answer.is_some();
                    }
                }
            }
            found
        });
        let answer = tokio::time::timeout(PATIENCE, answer).await;
        drop(channels);
        self.look_at_breaks();
        if unasked {
            self.world.fail(self.number, "an answer that nothing has asked for".to_owned());
        }
        answer.map_err(|_| {
            self.world.fail(self.number, "a request was never answered".to_owned());
            Lost
        })
    }

    /// Makes a session in place of the lost one, and opens again the opens that the server has kept.
    async fn establish(&mut self) -> Result<(), Lost> {
        self.world.locks.borrow_mut().uncertain(self.number);
        let Some(mut channel) = Channel::open(&self.world, self.number, self.guid, self.algorithm).await
        else {
            self.world.pause(1000).await;
            return Ok(());
        };
        let previous = self.session.map_or(0, |session| session.id);
        let mut session = channel.log_on(None, previous).await.ok_or(Lost)?;
        let path = format!("\\\\server\\{SHARE}");
        let request =
            tree_connect::Request { flags: tree_connect::RequestFlags::empty(), path: path.as_str().into() };
        let answer =
            channel.ask(Command::TreeConnect, |out| request.encode(out).is_ok()).await.ok_or(Lost)?;
        if self.outcome("smb tree connect", &answer, &[]) != NtStatus::SUCCESS {
            return Err(Lost);
        }
        session.tree_id = answer.0.tree_id().unwrap_or(0);
        channel.tree_id = session.tree_id;
        self.session = Some(session);
        self.channels = vec![channel];
        for file in 0..FILES {
            self.reconnect(file).await?;
        }
        Ok(())
    }

    /// Binds a further channel to the session.
    async fn bind(&mut self) -> Result<(), Lost> {
        let Some(session) = self.session else { return Ok(()) };
        if self.channels.len() >= CHANNELS_MAX {
            return Ok(());
        }
        if let Some(mut channel) = Channel::open(&self.world, self.number, self.guid, self.algorithm).await
            && channel.log_on(Some(session), 0).await.is_some()
        {
            self.world.note(self.number, "smb channel", &[self.channels.len() as u64]);
            self.channels.push(channel);
        }
        Ok(())
    }

    /// Reconnects an open that the server has kept for the disconnected client ([MS-SMB2] 3.2.4.4).
    async fn reconnect(&mut self, file: usize) -> Result<(), Lost> {
        let Some(before) = self.opens[file].take() else { return Ok(()) };
        let owner = self.owner(file);
        if !before.durable {
            self.world.locks.borrow_mut().closed(owner);
            return Ok(());
        }
        let again = RequestContext::DurableHandleReconnectV2 {
            file_id: before.id,
            create_guid: before.create_guid,
            flags: DurableFlags::empty(),
        };
        let lease = self.lease(file, before.lease);
        let request =
            self.create(file_name(file), CreateDisposition::Open, FILE_READ_WRITE, vec![again, lease]);
        let answer = self.ask(Command::Create, request).await;
        let Ok(answer) = answer else {
            self.opens[file] = Some(before);
            return Err(Lost);
        };
        const LEFT: &[NtStatus] = &[NtStatus::OBJECT_NAME_NOT_FOUND, NtStatus::FILE_NOT_AVAILABLE];
        let status = self.outcome("smb reconnect", &answer, LEFT);
        let Some((id, lease, _)) = opened(&answer).filter(|_| status == NtStatus::SUCCESS) else {
            self.world.locks.borrow_mut().closed(owner);
            return Ok(());
        };
        let again = self.world.locks.borrow_mut().certain_again(owner);
        self.world.check(self.number, again);
        let lease = self.present(file, lease);
        self.opens[file] = Some(Open { id, lease, cached: HashMap::new(), ..before });
        Ok(())
    }

    fn lease(&self, file: usize, state: LeaseState) -> RequestContext<'static> {
        let v2 = Some(LeaseV2 { parent_key: [0; 16], epoch: 0 });
        RequestContext::RequestLease(Lease {
            key: self.lease_key(file),
            state,
            flags: smb_wire::create_context::LeaseFlags::empty(),
            v2,
        })
    }

    fn create(
        &self,
        name: String,
        disposition: CreateDisposition,
        access: u32,
        contexts: Vec<RequestContext<'static>>,
    ) -> impl FnOnce(&mut Vec<u8>) -> bool + use<> {
        let has_lease = contexts.iter().any(|context| matches!(context, RequestContext::RequestLease(_)));
        move |out| {
            let mut options = CreateOptions::NON_DIRECTORY_FILE;
            options.set(CreateOptions::DELETE_ON_CLOSE, access == DELETE_AND_SYNCHRONIZE);
            let request = create::Request {
                requested_oplock_level: if has_lease { OplockLevel::Lease } else { OplockLevel::None },
                impersonation_level: ImpersonationLevel::Impersonation,
                desired_access: AccessMask::from_bits_retain(access),
                file_attributes: FileAttributes::NORMAL,
                share_access: ShareAccess::READ | ShareAccess::WRITE | ShareAccess::DELETE,
                create_disposition: disposition,
                create_options: options,
                name: name.as_str().into(),
                contexts,
            };
            request.encode(out).is_ok()
        }
    }

    async fn open(&mut self) -> Result<(), Lost> {
        let file = self.world.pick(FILES);
        if self.opens[file].is_some() {
            return Ok(());
        }
        let states = [
            LeaseState::empty(),
            LeaseState::READ | LeaseState::HANDLE,
            LeaseState::READ | LeaseState::WRITE | LeaseState::HANDLE,
            LeaseState::READ | LeaseState::WRITE | LeaseState::HANDLE,
        ];
        let wanted = states[self.world.pick(4)];
        let mut create_guid = Guid::ZERO;
        self.world.fill(&mut create_guid.0);
        let mut contexts = Vec::new();
        if !wanted.is_empty() {
            contexts.push(self.lease(file, wanted));
            let (timeout_ms, flags) = (0, DurableFlags::empty());
            contexts.push(RequestContext::DurableHandleRequestV2 { timeout_ms, flags, create_guid });
        }
        let request = self.create(file_name(file), CreateDisposition::Open, FILE_READ_WRITE, contexts);
        let answer = self.ask(Command::Create, request).await?;
        const ALLOWED: &[NtStatus] = &[NtStatus::SHARING_VIOLATION, NtStatus::UNEXPECTED_IO_ERROR];
        if self.outcome("smb open", &answer, ALLOWED) == NtStatus::SUCCESS
            && let Some((id, lease, durable)) = opened(&answer)
        {
            let (locked, cached, lease) = (Vec::new(), HashMap::new(), self.present(file, lease));
            self.opens[file] = Some(Open { id, create_guid, lease, durable, locked, cached });
        }
        Ok(())
    }

    async fn close(&mut self) -> Result<(), Lost> {
        let file = self.world.pick(FILES);
        let Some(open) = self.opens[file].take() else { return Ok(()) };
        self.world.locks.borrow_mut().closed(self.owner(file));
        let answer = self.close_id(open.id).await?;
        self.outcome("smb close", &answer, &[NtStatus::UNEXPECTED_IO_ERROR, NtStatus::DISK_FULL]);
        Ok(())
    }

    async fn close_id(&mut self, file_id: FileId) -> Result<Answer, Lost> {
        let request = close::Request { flags: close::CloseFlags::empty(), file_id };
        self.ask(Command::Close, |out| {
            request.encode(out);
            true
        })
        .await
    }

    async fn lock_request(
        &mut self,
        file_id: FileId,
        range: &Range<u64>,
        flags: LockFlags,
    ) -> Result<Answer, Lost> {
        let element = LockElement { offset: range.start, length: range.end - range.start, flags };
        let (lock_sequence_number, lock_sequence_index) = (0, 0);
        let request =
            lock::Request { lock_sequence_number, lock_sequence_index, file_id, locks: vec![element] };
        self.ask(Command::Lock, |out| request.encode(out).is_ok()).await
    }

    async fn lock(&mut self) -> Result<(), Lost> {
        let file = self.world.pick(FILES);
        let range = lockable(&self.world);
        let Some(open) = &self.opens[file] else { return Ok(()) };
        if open.locked.iter().any(|held| held.start < range.end && range.start < held.end) {
            return Ok(());
        }
        let id = open.id;
        let flags = LockFlags::EXCLUSIVE_LOCK | LockFlags::FAIL_IMMEDIATELY;
        let answer = self.lock_request(id, &range, flags).await?;
        if self.outcome("smb lock", &answer, &[NtStatus::LOCK_NOT_GRANTED]) == NtStatus::SUCCESS {
            let granted = self.world.locks.borrow_mut().granted(
                self.owner(file),
                file,
                range.clone(),
                machine::elapsed(),
            );
            self.world.check(self.number, granted);
            if let Some(open) = &mut self.opens[file] {
                open.locked.push(range);
            }
        }
        Ok(())
    }

    async fn unlock(&mut self) -> Result<(), Lost> {
        let file = self.world.pick(FILES);
        let owner = self.owner(file);
        let Some(open) = &mut self.opens[file] else { return Ok(()) };
        let (id, Some(range)) = (open.id, open.locked.pop()) else { return Ok(()) };
        self.world.locks.borrow_mut().given_back(owner, file, &range);
        let answer = self.lock_request(id, &range, LockFlags::UNLOCK).await?;
        self.outcome("smb unlock", &answer, &[]);
        Ok(())
    }

    /// Answers a read from data that was read under a lease. No other client may have changed it.
    fn read_from_lease(&self) {
        let file = self.world.pick(FILES);
        let block = self.world.below(BLOCKS);
        let Some(open) = &self.opens[file] else { return };
        let Some(stamp) = open.cached.get(&block).copied() else { return };
        let is_told = !self.channels.iter().any(|channel| channel.has_more() || channel.is_over());
        if !open.lease.contains(LeaseState::READ) || !is_told {
            return;
        }
        let now = machine::elapsed();
        self.world.note(self.number, "smb cached read", &[file as u64, block, stamp]);
        let finding = self.world.data.borrow_mut().read((file, block), stamp, now.saturating_sub(BREAK), now);
        self.world.check(self.number, finding.map_err(|what| format!("from a lease: {what}")));
        self.world.count();
    }

    /// Reads and writes, side by side on one channel.
    async fn data(&mut self) -> Result<(), Lost> {
        let begun = machine::elapsed();
        let count = 1 + self.world.pick(REQUESTS_MAX);
        let which = self.world.pick(self.channels.len().max(1));
        if !self.channels.get(which).is_some_and(|channel| channel.has_credits(count)) {
            return Ok(());
        }
        let calls: Vec<(u64, Doing)> = (0..count).filter_map(|_| self.piece(which)).collect();
        let mut waiting = calls.clone();
        let mut outcome = Ok(());
        while !waiting.is_empty() {
            let answer = self.answer(which).await?;
            let Some(answer) = answer else { break };
            if GONE.contains(&answer.0.status()) {
                outcome = Err(Lost);
                break;
            }
            let Some(at) = waiting.iter().position(|(id, _)| *id == answer.0.message_id) else { continue };
            match waiting.swap_remove(at).1 {
                Doing::Read(piece) => {
                    let wrote = |block| calls.iter().any(|(_, other)| other.writes(piece.file, block));
                    self.has_read(piece, &answer, begun, &wrote);
                }
                Doing::Write(piece, stamp) => self.has_written(piece, stamp, &answer),
            }
        }
        for (_, doing) in &waiting {
            if let Doing::Write(piece, _) = doing
                && let Some(open) = &mut self.opens[piece.file]
            {
                // The write may be carried out later, and a write does not break its own client's lease.
                open.lease = LeaseState::empty();
                open.cached.clear();
            }
        }
        self.world.unanswered(waiting.into_iter().map(|(_, doing)| doing));
        outcome
    }

    fn piece(&mut self, which: usize) -> Option<(u64, Doing)> {
        let piece = Piece::by(&self.world);
        let (open, channel) = (self.opens[piece.file].as_mut()?, self.channels.get_mut(which)?);
        if self.world.once_in(2) {
            let request = read::Request {
                padding: 0x50,
                flags: read::RequestFlags::empty(),
                length: piece.bytes(),
                offset: piece.offset(),
                file_id: open.id,
                minimum_count: 0,
                channel: Transport::None,
                remaining_bytes: 0,
                channel_info: &[],
            };
            let (id, _) = channel.send(Command::Read, |out| request.encode(out).is_ok());
            return Some((id, Doing::Read(piece)));
        }
        let stamp = self.world.begin_write(piece);
        open.cached.retain(|block, _| !piece.range().contains(block));
        let data = piece.stamped(stamp);
        let request = write::Request::new(open.id, piece.offset(), &data, WriteFlags::empty());
        let (id, _) = channel.send(Command::Write, |out| request.encode(out).is_ok());
        Some((id, Doing::Write(piece, stamp)))
    }

    fn has_read(&mut self, piece: Piece, answer: &Answer, begun: Duration, wrote: &dyn Fn(u64) -> bool) {
        self.world.note(self.number, "smb read of", &piece.numbers());
        if self.outcome("smb read", answer, FAULTS) != NtStatus::SUCCESS {
            return;
        }
        let Ok(read) = read::Response::decode(&answer.1) else {
            return self.world.fail(self.number, "a READ that cannot be decoded".to_owned());
        };
        self.world.check_read(self.number, piece, read.data, begun);
        let has_lease = |open: &&mut Open| open.lease.contains(LeaseState::READ);
        if let Some(open) = self.opens[piece.file].as_mut().filter(has_lease) {
            let kept = stamps(piece, read.data).filter(|(block, _)| !wrote(*block));
            open.cached.extend(kept.filter_map(|(block, stamp)| Some((block, stamp?))));
        }
    }

    fn has_written(&self, piece: Piece, stamp: u64, answer: &Answer) {
        self.world.note(self.number, "smb write of", &[&piece.numbers()[..], &[stamp]].concat());
        let became = match self.outcome("smb write", answer, FAULTS) {
            NtStatus::SUCCESS => Written::Acknowledged,
            NtStatus::UNEXPECTED_IO_ERROR | NtStatus::DISK_FULL => Written::Unanswered,
            _ => Written::Refused,
        };
        self.world.end_write(piece, stamp, became);
    }

    /// Makes or removes a name that only this client uses, so the outcome is known.
    async fn name(&mut self) -> Result<(), Lost> {
        let which = self.world.pick(self.names.len());
        let is_there = self.names[which].is_there;
        let name = self.names[which].text(self.number, which);
        let request = if is_there {
            self.create(name, CreateDisposition::Open, DELETE_AND_SYNCHRONIZE, Vec::new())
        } else {
            self.create(name, CreateDisposition::Create, FILE_READ_WRITE, Vec::new())
        };
        let done = self.make_or_remove(is_there, request).await;
        match done {
            Ok(true) => self.names[which].turn(),
            Ok(false) | Err(Lost) => self.names[which].give_up(),
        }
        done.map(drop)
    }

    /// Opens a file in a way that makes or removes it, and closes it. Returns whether both requests succeeded.
    async fn make_or_remove(
        &mut self,
        is_there: bool,
        request: impl FnOnce(&mut Vec<u8>) -> bool,
    ) -> Result<bool, Lost> {
        let answer = self.ask(Command::Create, request).await?;
        let status = self.outcome(if is_there { "smb remove" } else { "smb create" }, &answer, FAULTS);
        let Some((id, ..)) = opened(&answer).filter(|_| status == NtStatus::SUCCESS) else {
            return Ok(false);
        };
        let answer = self.close_id(id).await?;
        Ok(self.outcome("smb close", &answer, FAULTS) == NtStatus::SUCCESS)
    }
}

/// Statuses that say that the session, or its opens, are gone: the client begins anew.
const GONE: &[NtStatus] =
    &[NtStatus::USER_SESSION_DELETED, NtStatus::NETWORK_NAME_DELETED, NtStatus::FILE_CLOSED];
/// Statuses of a request that are no fault of the server: faults of the store, locks of other clients.
const FAULTS: &[NtStatus] =
    &[NtStatus::FILE_LOCK_CONFLICT, NtStatus::UNEXPECTED_IO_ERROR, NtStatus::DISK_FULL];

/// The open that a CREATE has made: its FileId, its lease state, and whether it is durable.
fn opened(answer: &Answer) -> Option<(FileId, LeaseState, bool)> {
    let response = create::Response::decode(&answer.1).ok()?;
    let lease = response.contexts.iter().find_map(|context| match context {
        ResponseContext::Lease(lease) => Some(lease.state),
        _ => None,
    });
    let is_durable =
        |context: &ResponseContext<'_>| matches!(context, ResponseContext::DurableHandleV2 { .. });
    let durable = response.contexts.iter().any(is_durable);
    Some((response.file_id, lease.unwrap_or(LeaseState::empty()), durable))
}
