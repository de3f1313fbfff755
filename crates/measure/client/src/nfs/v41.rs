//! One connection of an NFSv4.1 session: a part of the session's slots is its own.

use nfs_wire::v4::attr::{Attribute, AttributeSet, Attributes, AttributesBuf, Value};
use nfs_wire::v4::compound::{ArgOp, Res, ResOp, encode_args};
use nfs_wire::v4::open::{Claim, CreateHow, How, ShareAccess, ShareDeny, Want};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{
    ClientId, FileHandle, Name, OwnerId, SessionId, StableHow, StateOwner, Stateid, Verifier,
};
use nfs_wire::v4::{
    PROGRAM, VERSION, close, create, destroy_session, getattr, lookup, open, putfh, read, readdir, remove,
    sequence, write,
};
use nfs_wire::xdr::Decode;

use super::rpc::{Calls, Data, Identity, Procedure, garbled};
use crate::{Client, Fault, FaultKind, Framing, Handle, Outcome, Request, Result, Sent};

pub(super) const COMPOUND: Procedure = Procedure { program: PROGRAM, version: VERSION, number: 1 };

/// What is remembered of a call.
#[derive(Debug, Clone, Copy)]
struct SentCall {
    tag: usize,
    slot: u32,
    bytes: u32,
    opens: bool,
}

/// What a COMPOUND is sent for.
#[derive(Clone, Copy)]
struct Asked<'a> {
    tag: usize,
    /// The most bytes of data in its results.
    bytes: u32,
    /// The handle in its results becomes the tag's own open.
    opens: bool,
    cache_this: bool,
    /// Goes behind the last operation.
    data: Option<Data<'a>>,
}

impl Asked<'_> {
    /// An operation without data that changes nothing.
    fn by(tag: usize) -> Self {
        Self { tag, bytes: 0, opens: false, cache_this: false, data: None }
    }

    /// An operation that must not be done twice.
    fn change_by(tag: usize) -> Self {
        Self { cache_this: true, ..Self::by(tag) }
    }
}

/// A file or directory, and the stateid it is open under.
type Object = (Vec<u8>, Option<Stateid>);

/// One connection.
pub(super) struct Connection {
    calls: Calls<SentCall>,
    client_id: ClientId,
    session_id: SessionId,
    /// The session's highest slot.
    highest_slot: u32,
    /// The free slots of this connection, and the sequence id of each slot's next request.
    free: Vec<(u32, u32)>,
    /// The sequence ids of the slots in use.
    in_use: Vec<(u32, u32)>,
    owner: Vec<u8>,
    directories: Vec<Object>,
    files: Vec<Object>,
    opens: Vec<Object>,
}

/// The session that a connection belongs to, and which of its slots are the connection's.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) client_id: ClientId,
    pub(super) session_id: SessionId,
    pub(super) highest_slot: u32,
    pub(super) slots: std::ops::Range<u32>,
    pub(super) number: u32,
}

impl Connection {
    pub(super) fn new(part: &Part, identity: Identity, first: u32, tags: usize) -> Self {
        Self {
            calls: Calls::new(identity, first),
            client_id: part.client_id,
            session_id: part.session_id,
            highest_slot: part.highest_slot,
            free: part.slots.clone().rev().map(|slot| (slot, 1)).collect(),
            in_use: Vec::new(),
            owner: format!("anabranch-load {}", part.number).into_bytes(),
            directories: Vec::new(),
            files: Vec::new(),
            opens: vec![(Vec::new(), None); tags.max(1)],
        }
    }

    /// The first slot's sequence ids have been used so often before.
    pub(super) fn used(&mut self, slot: u32, times: u32) {
        if let Some(free) = self.free.iter_mut().find(|(free, _)| *free == slot) {
            free.1 += times;
        }
    }

    /// Sends SEQUENCE and these operations, if a slot is free.
    fn send(&mut self, asked: Asked<'_>, operations: &[ArgOp<'_>], out: &mut Vec<u8>) -> Result<Sent> {
        if !self.calls.has_room() {
            return Ok(Sent::NotNow);
        }
        let Some((slot, sequence_id)) = self.free.pop() else { return Ok(Sent::NotNow) };
        self.in_use.push((slot, sequence_id));
        let Asked { tag, bytes, opens, cache_this, data } = asked;
        let sequence = sequence::Args {
            session_id: self.session_id,
            sequence_id,
            slot_id: slot,
            highest_slot_id: self.highest_slot,
            cache_this,
        };
        let all = [&[ArgOp::Sequence(sequence)], operations].concat();
        let kept = SentCall { tag, slot, bytes, opens };
        self.calls.call(COMPOUND, kept, out, |w| encode_args(w, "", 1, &all), data)?;
        Ok(Sent::Yes)
    }

    /// The slot of a call is free again; it was used if its SEQUENCE succeeded.
    fn give_back(&mut self, slot: u32, used: bool) {
        if let Some(at) = self.in_use.iter().position(|(s, _)| *s == slot) {
            let (slot, sequence_id) = self.in_use.swap_remove(at);
            self.free.push((slot, sequence_id.wrapping_add(u32::from(used))));
        }
    }

    fn ended<'m>(&mut self, kept: SentCall, mut results: Res<'m>) -> Result<Outcome<'m>> {
        let sequence = results.results.next().transpose().map_err(garbled)?;
        self.give_back(kept.slot, matches!(sequence, Some(ResOp::Sequence(Ok(_)))));
        let mut handle = None;
        let mut stateid = None;
        let mut outcome = Outcome::Done;
        for result in results.results {
            match result.map_err(garbled)? {
                ResOp::Read(Ok(read)) if read.data.len() > kept.bytes as usize => {
                    return Err(Fault::protocol("a READ brought more than was asked for"));
                }
                ResOp::Read(Ok(read)) => outcome = Outcome::Data(read.data),
                ResOp::Write(Ok(written)) => outcome = Outcome::Written(written.count),
                ResOp::Open(Ok(open)) => stateid = Some(open.stateid),
                ResOp::GetFh(Ok(found)) => handle = Some(found.object.0.to_vec()),
                other => {
                    other.status().map_or_else(|s| outcome = refused(other.operation().name(), s), |()| {})
                }
            }
        }
        if let Err(status) = results.status {
            return Ok(if matches!(outcome, Outcome::Refused(_) | Outcome::Later) {
                outcome
            } else {
                refused("COMPOUND", status)
            });
        }
        if let Some(handle) = handle {
            // seqid 0: whatever the newest is (RFC 8881 8.2.2).
            let stateid = stateid.map(|s| Stateid { seqid: 0, ..s });
            if let (true, Some(open)) = (kept.opens, self.opens.get_mut(kept.tag)) {
                *open = (handle.clone(), stateid);
            }
            return Ok(Outcome::Handle(Handle::Nfs4(handle, stateid)));
        }
        Ok(outcome)
    }
}

fn object(list: &[Object], at: usize) -> Result<Object> {
    list.get(at).cloned().ok_or_else(|| Fault::protocol("there is no such file"))
}

fn put(handle: &[u8]) -> ArgOp<'_> {
    ArgOp::PutFh(putfh::Args { object: FileHandle(handle) })
}

fn attributes() -> ArgOp<'static> {
    let request = AttributeSet::of(&[Attribute::Type, Attribute::Change, Attribute::Size, Attribute::FileId]);
    ArgOp::GetAttr(getattr::Args { request })
}

pub(super) fn refused(what: &str, status: Status) -> Outcome<'static> {
    let kind = match status {
        Status::Delay | Status::Grace => return Outcome::Later,
        Status::RoFs | Status::Access | Status::Perm => FaultKind::ReadOnly,
        Status::NoSpc | Status::DQuot => FaultKind::NoSpace,
        Status::BadSession | Status::DeadSession | Status::Expired => FaultKind::Closed,
        _ => FaultKind::Refused,
    };
    Outcome::Refused(Fault::new(kind, format!("{what}: NFS4ERR_{}", format!("{status:?}").to_uppercase())))
}

impl Client for Connection {
    fn framing(&self) -> Framing {
        Framing::Rpc
    }

    fn adopt(&mut self, directories: &[Handle], files: &[Handle]) {
        let of = |handle: &Handle| {
            if let Handle::Nfs4(fh, stateid) = handle { Some((fh.clone(), *stateid)) } else { None }
        };
        self.directories = directories.iter().filter_map(of).collect();
        self.files = files.iter().filter_map(of).collect();
    }

    fn submit(&mut self, tag: usize, request: &Request<'_>, out: &mut Vec<u8>) -> Result<Sent> {
        Ok(match *request {
            Request::Read { file, offset, length } => {
                let (fh, stateid) =
                    self.files.get(file).cloned().ok_or_else(|| Fault::protocol("there is no such file"))?;
                let args =
                    read::Args { stateid: stateid.unwrap_or(Stateid::ANONYMOUS), offset, count: length };
                let asked = Asked { bytes: length, ..Asked::by(tag) };
                self.send(asked, &[put(&fh), ArgOp::Read(args)], out)?
            }
            Request::Write { file, offset, length, fill } => {
                let (fh, stateid) = object(&self.files, file)?;
                let stateid = stateid.unwrap_or(Stateid::ANONYMOUS);
                let args = write::Args { stateid, offset, stable: StableHow::Unstable, data: &[] };
                let asked = Asked { data: Some(Data { length, fill }), ..Asked::by(tag) };
                self.send(asked, &[put(&fh), ArgOp::Write(args)], out)?
            }
            Request::Open { directory, name, make } => self.open(tag, directory, name, make, out)?,
            Request::Close { file } => {
                let (fh, stateid) = match file {
                    Some(file) => object(&self.files, file)?,
                    None => object(&self.opens, tag)?,
                };
                let open_stateid = stateid.ok_or_else(|| Fault::protocol("nothing is open"))?;
                let args = close::Args { seqid: 0, open_stateid };
                self.send(Asked::change_by(tag), &[put(&fh), ArgOp::Close(args)], out)?
            }
            Request::Stat => {
                let (fh, _) = object(&self.opens, tag)?;
                self.send(Asked::by(tag), &[put(&fh), attributes()], out)?
            }
            Request::List { directory } => {
                let (fh, _) = object(&self.directories, directory)?;
                let request = AttributeSet::of(&[Attribute::Type, Attribute::Size, Attribute::FileId]);
                let cookie_verifier = Verifier::default();
                let args =
                    readdir::Args { cookie: 0, cookie_verifier, dir_count: 8192, max_count: 32768, request };
                self.send(Asked::by(tag), &[put(&fh), ArgOp::ReadDir(args)], out)?
            }
            Request::MakeDirectory { parent, name } => {
                let (fh, _) = object(&self.directories, parent)?;
                let mode: AttributesBuf = [Value::Mode(0o755)].into_iter().collect();
                let name = Name(name.as_bytes());
                let args =
                    create::Args { what: create::What::Directory, name, attributes: mode.as_attributes() };
                self.send(Asked::change_by(tag), &[put(&fh), ArgOp::Create(args), ArgOp::GetFh], out)?
            }
            Request::RemoveDirectory { parent: directory, name } | Request::Delete { directory, name } => {
                let (fh, _) = object(&self.directories, directory)?;
                let args = remove::Args { target: Name(name.as_bytes()) };
                self.send(Asked::change_by(tag), &[put(&fh), ArgOp::Remove(args)], out)?
            }
            Request::Nothing => self.send(Asked::by(tag), &[], out)?,
            Request::Leave => self.leave(tag, out)?,
        })
    }

    fn receive(&mut self, message: &mut [u8], done: &mut dyn FnMut(usize, Outcome<'_>)) -> Result<()> {
        let (kept, mut results) = self.calls.reply(message)?;
        let results = Res::decode(&mut results).map_err(garbled)?;
        let outcome = self.ended(kept, results)?;
        done(kept.tag, outcome);
        Ok(())
    }
}

impl Connection {
    /// DESTROY_SESSION alone in its COMPOUND needs no slot (RFC 8881 18.37.3).
    fn leave(&mut self, tag: usize, out: &mut Vec<u8>) -> Result<Sent> {
        let all = [ArgOp::DestroySession(destroy_session::Args { session_id: self.session_id })];
        let kept = SentCall { tag, slot: u32::MAX, bytes: 0, opens: false };
        self.calls.call(COMPOUND, kept, out, |w| encode_args(w, "", 1, &all), None)?;
        Ok(Sent::Yes)
    }

    fn open(
        &mut self,
        tag: usize,
        directory: usize,
        name: &str,
        make: bool,
        out: &mut Vec<u8>,
    ) -> Result<Sent> {
        let (fh, _) = object(&self.directories, directory)?;
        let owner = self.owner.clone();
        let mode: AttributesBuf = [Value::Mode(0o644)].into_iter().collect();
        let how = if make { How::Create(CreateHow::Guarded(mode.as_attributes())) } else { How::NoCreate };
        let args = open::Args {
            seqid: 0,
            share_access: ShareAccess::BOTH.with_want(Want::None),
            share_deny: ShareDeny::NONE,
            owner: StateOwner { client_id: self.client_id, owner: OwnerId(&owner) },
            how,
            claim: Claim::Null(Name(name.as_bytes())),
        };
        let operations = [put(&fh), ArgOp::Open(args), ArgOp::GetFh, attributes()];
        self.send(Asked { opens: true, ..Asked::change_by(tag) }, &operations, out)
    }
}

/// From the root along a path, to a filehandle.
pub(super) fn walk(path: &str) -> Vec<ArgOp<'_>> {
    let names = path.split('/').filter(|name| !name.is_empty());
    let lookups = names.map(|name| ArgOp::Lookup(lookup::Args { name: Name(name.as_bytes()) }));
    std::iter::once(ArgOp::PutRootFh).chain(lookups).chain([ArgOp::GetFh, limits()]).collect()
}

fn limits() -> ArgOp<'static> {
    ArgOp::GetAttr(getattr::Args { request: AttributeSet::of(&[Attribute::MaxRead, Attribute::MaxWrite]) })
}

/// The largest read and write that attributes tell of.
pub(super) fn limits_of(attributes: &Attributes<'_>) -> (u32, u32) {
    let number = |attribute| match attributes.value(attribute) {
        Some(Value::MaxRead(n) | Value::MaxWrite(n)) => u32::try_from(n).unwrap_or(u32::MAX),
        _ => 65536,
    };
    (number(Attribute::MaxRead), number(Attribute::MaxWrite))
}
