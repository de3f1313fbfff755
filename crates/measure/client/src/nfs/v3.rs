//! One connection of an NFSv3 client.

use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::{CreatedOk, DirOpArgs, FileHandle, Name, StableHow};
use nfs_wire::v3::{self, PROGRAM, VERSION, attr::SetAttributes};
use nfs_wire::xdr::{Decode, Encode, Reader, Writer};

use super::rpc::{Calls, Data, Identity, Procedure, garbled};
use crate::{Client, Fault, FaultKind, Framing, Handle, Outcome, Request, Result, Sent};

/// What is remembered of a call.
#[derive(Debug, Clone, Copy)]
struct SentCall {
    tag: usize,
    procedure: v3::Procedure,
    bytes: u32,
}

/// The numbers of a procedure.
fn number(procedure: v3::Procedure) -> Procedure {
    Procedure { program: PROGRAM, version: VERSION, number: procedure as u32 }
}

/// One connection.
pub(super) struct Connection {
    calls: Calls<SentCall>,
    directories: Vec<FileHandle>,
    files: Vec<FileHandle>,
    /// The file behind each tag's own open.
    opens: Vec<Option<FileHandle>>,
}

impl Connection {
    pub(super) fn new(identity: Identity, first: u32, tags: usize) -> Self {
        let calls = Calls::new(identity, first);
        Self { calls, directories: Vec::new(), files: Vec::new(), opens: vec![None; tags.max(1)] }
    }

    fn call(
        &mut self,
        tag: usize,
        procedure: v3::Procedure,
        bytes: u32,
        out: &mut Vec<u8>,
        arguments: impl FnOnce(&mut Writer<'_>),
    ) -> Result<Sent> {
        let kept = SentCall { tag, procedure, bytes };
        self.calls.call(number(procedure), kept, out, arguments, None)?;
        Ok(Sent::Yes)
    }

    fn place<'n>(&self, directory: usize, name: &'n str) -> Result<DirOpArgs<'n>> {
        Ok(DirOpArgs { dir: handle(&self.directories, directory)?, name: Name(name.as_bytes()) })
    }

    fn ended<'m>(&mut self, kept: SentCall, results: &mut Reader<'m>) -> Result<Outcome<'m>> {
        use v3::Procedure::{Create, GetAttr, Lookup, MkDir, Null, Read, ReadDirPlus, Remove, RmDir, Write};
        Ok(match kept.procedure {
            Read => match v3::read::Res::decode(results).map_err(garbled)? {
                Ok(read) if read.data.len() > kept.bytes as usize => {
                    return Err(Fault::protocol("a READ brought more than was asked for"));
                }
                Ok(read) => Outcome::Data(read.data),
                Err(failure) => refused("READ", failure.status),
            },
            Write => match v3::write::Res::decode(results).map_err(garbled)? {
                Ok(written) => Outcome::Written(written.count),
                Err(failure) => refused("WRITE", failure.status),
            },
            Create => self.made(
                kept,
                "CREATE",
                v3::create::Res::decode(results).map_err(garbled)?.map_err(|f| f.status),
            )?,
            MkDir => self.made(
                kept,
                "MKDIR",
                v3::mkdir::Res::decode(results).map_err(garbled)?.map_err(|f| f.status),
            )?,
            Lookup => match v3::lookup::Res::decode(results).map_err(garbled)? {
                Ok(found) => {
                    self.remember(kept.tag, found.object);
                    Outcome::Handle(Handle::Nfs3(found.object))
                }
                Err(failure) => refused("LOOKUP", failure.status),
            },
            GetAttr => done(
                "GETATTR",
                v3::getattr::Res::decode(results).map_err(garbled)?.map(drop).map_err(|f| f.status),
            ),
            ReadDirPlus => done(
                "READDIRPLUS",
                v3::readdirplus::Res::decode(results).map_err(garbled)?.map(drop).map_err(|f| f.status),
            ),
            Remove => done(
                "REMOVE",
                v3::remove::Res::decode(results).map_err(garbled)?.map(drop).map_err(|f| f.status),
            ),
            RmDir => done(
                "RMDIR",
                v3::rmdir::Res::decode(results).map_err(garbled)?.map(drop).map_err(|f| f.status),
            ),
            Null => Outcome::Done,
            other => return Err(Fault::protocol(format!("a reply to {}", other.name()))),
        })
    }

    /// What CREATE or MKDIR has made.
    fn made(
        &mut self,
        kept: SentCall,
        what: &str,
        outcome: std::result::Result<CreatedOk, Status>,
    ) -> Result<Outcome<'static>> {
        match outcome {
            Ok(made) => {
                let object =
                    made.object.ok_or_else(|| Fault::protocol(format!("{what} has given no filehandle")))?;
                self.remember(kept.tag, object);
                Ok(Outcome::Handle(Handle::Nfs3(object)))
            }
            Err(status) => Ok(refused(what, status)),
        }
    }

    fn remember(&mut self, tag: usize, file: FileHandle) {
        if let Some(open) = self.opens.get_mut(tag) {
            *open = Some(file);
        }
    }
}

fn handle(list: &[FileHandle], at: usize) -> Result<FileHandle> {
    list.get(at).copied().ok_or_else(|| Fault::protocol("there is no such file"))
}

fn done(what: &str, outcome: std::result::Result<(), Status>) -> Outcome<'static> {
    outcome.map_or_else(|status| refused(what, status), |()| Outcome::Done)
}

fn refused(what: &str, status: Status) -> Outcome<'static> {
    let kind = match status {
        Status::JukeBox => return Outcome::Later,
        Status::RoFs | Status::Acces | Status::Perm => FaultKind::ReadOnly,
        Status::NoSpc | Status::DQuot => FaultKind::NoSpace,
        _ => FaultKind::Refused,
    };
    Outcome::Refused(Fault::new(kind, format!("{what}: NFS3ERR_{}", format!("{status:?}").to_uppercase())))
}

impl Client for Connection {
    fn framing(&self) -> Framing {
        Framing::Rpc
    }

    fn adopt(&mut self, directories: &[Handle], files: &[Handle]) {
        let of = |handle: &Handle| if let Handle::Nfs3(file) = handle { Some(*file) } else { None };
        self.directories = directories.iter().filter_map(of).collect();
        self.files = files.iter().filter_map(of).collect();
    }

    fn submit(&mut self, tag: usize, request: &Request<'_>, out: &mut Vec<u8>) -> Result<Sent> {
        use v3::Procedure as P;
        if !self.calls.has_room() {
            return Ok(Sent::NotNow);
        }
        Ok(match *request {
            Request::Read { file, offset, length } => {
                let args = v3::read::Args { file: handle(&self.files, file)?, offset, count: length };
                self.call(tag, P::Read, length, out, |w| args.encode(w))?
            }
            Request::Write { file, offset, length, fill } => {
                let (file, stable) = (handle(&self.files, file)?, StableHow::Unstable);
                let args = v3::write::Args { file, offset, count: length, stable, data: &[] };
                let kept = SentCall { tag, procedure: P::Write, bytes: length };
                let data = Some(Data { length, fill });
                self.calls.call(number(P::Write), kept, out, |w| args.encode(w), data)?;
                Sent::Yes
            }
            Request::Open { directory, name, make: true } => {
                let attributes = SetAttributes { mode: Some(0o644), ..SetAttributes::default() };
                let args = v3::create::Args {
                    place: self.place(directory, name)?,
                    how: v3::create::How::Guarded(attributes),
                };
                self.call(tag, P::Create, 0, out, |w| args.encode(w))?
            }
            Request::Open { directory, name, make: false } => {
                let args = v3::lookup::Args { what: self.place(directory, name)? };
                self.call(tag, P::Lookup, 0, out, |w| args.encode(w))?
            }
            Request::Close { .. } | Request::Leave => Sent::NotNeeded,
            Request::Stat => {
                let open = self.opens.get(tag).copied().flatten();
                let object = open.ok_or_else(|| Fault::protocol("nothing is open"))?;
                self.call(tag, P::GetAttr, 0, out, |w| v3::getattr::Args { object }.encode(w))?
            }
            Request::List { directory } => {
                let dir = handle(&self.directories, directory)?;
                let cookie_verifier = [0; 8];
                let args = v3::readdirplus::Args {
                    dir,
                    cookie: 0,
                    cookie_verifier,
                    dir_count: 8192,
                    max_count: 32768,
                };
                self.call(tag, P::ReadDirPlus, 0, out, |w| args.encode(w))?
            }
            Request::MakeDirectory { parent, name } => {
                let attributes = SetAttributes { mode: Some(0o755), ..SetAttributes::default() };
                let args = v3::mkdir::Args { place: self.place(parent, name)?, attributes };
                self.call(tag, P::MkDir, 0, out, |w| args.encode(w))?
            }
            Request::RemoveDirectory { parent, name } => {
                let args = v3::rmdir::Args { object: self.place(parent, name)? };
                self.call(tag, P::RmDir, 0, out, |w| args.encode(w))?
            }
            Request::Delete { directory, name } => {
                let args = v3::remove::Args { object: self.place(directory, name)? };
                self.call(tag, P::Remove, 0, out, |w| args.encode(w))?
            }
            Request::Nothing => self.call(tag, P::Null, 0, out, |_| {})?,
        })
    }

    fn receive(&mut self, message: &mut [u8], done: &mut dyn FnMut(usize, Outcome<'_>)) -> Result<()> {
        let (kept, mut results) = self.calls.reply(message)?;
        let outcome = self.ended(kept, &mut results)?;
        done(kept.tag, outcome);
        Ok(())
    }
}
