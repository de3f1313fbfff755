//! A client of NFSv3.

use std::rc::Rc;
use std::time::Duration;

use nfs_wire::mount::{self, DirPath};
use nfs_wire::v3::attr::SetAttributes;
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::{CookieVerifier, DirOpArgs, FileHandle, Name, StableHow};
use nfs_wire::v3::{self, create, lookup, read, readdir, remove, rename, write};
use nfs_wire::xdr::{Decode, Encode};

use crate::machine;
use crate::model::Listing;
use crate::piece::{Doing, Piece};
use crate::rpc::{Asked, Procedure, Rpc, uncalled};
use crate::servers::SHARE;
use crate::world::{BLOCKS, FILES, OwnName, World, Written, file_name, known_names};

/// The most calls that a client sends side by side.
const CALLS_MAX: u64 = 4;
/// How often a client tries to make or remove a name before it gives up on a server that always asks for a retry.
const ATTEMPTS: u32 = 200;

/// The least bytes of a page of a listing, and how many more a page may have: room for a few names.
const PAGE_LEAST: u64 = 300;
const PAGE_MORE: u64 = 2000;

struct Client {
    rpc: Rpc,
    world: Rc<World>,
    number: u32,
    root: FileHandle,
    files: Vec<FileHandle>,
    names: [OwnName; 3],
}

/// Makes the files of the share, filled with zeros.
pub(crate) async fn make_files(world: Rc<World>) -> Option<()> {
    let mut client = Client::mounted(world, 0).await?;
    for file in 0..FILES {
        let how = create::How::Unchecked(SetAttributes { mode: Some(0o666), ..SetAttributes::default() });
        let name = file_name(file);
        let place = DirOpArgs { dir: client.root, name: Name(name.as_bytes()) };
        let call = client.call(v3::Procedure::Create, &create::Args { place, how });
        let answer = client.one(call).await?;
        let made = create::Res::from_bytes(&answer).ok()?.ok()?.object?;
        let piece = Piece { file, first: 0, blocks: u32::try_from(BLOCKS).unwrap_or(0) };
        let (data, stable) = (piece.stamped(0), StableHow::FileSync);
        let args = write::Args { file: made, offset: 0, count: piece.bytes(), stable, data: &data };
        let call = client.call(v3::Procedure::Write, &args);
        client.one(call).await?;
    }
    Some(())
}

/// Performs random operations until the simulation is over.
pub(crate) async fn run(world: Rc<World>, number: u32) {
    let Some(mut client) = Client::mounted(Rc::clone(&world), number).await else { return };
    while !world.is_over() {
        let done = match world.below(100) {
            0..=79 => client.data().await,
            80..=89 => client.name().await,
            90..=91 => client.rename().await,
            92..=93 => client.look().await,
            94..=97 => client.list().await,
            _ => {
                client.rpc.hang_up();
                Some(())
            }
        };
        if done.is_none() {
            return;
        }
        world.pause(if world.once_in(4) { world.leisure } else { 0 }).await;
    }
}

impl Client {
    async fn mounted(world: Rc<World>, number: u32) -> Option<Self> {
        let mut rpc = Rpc::new(Rc::clone(&world), number);
        let mnt = Procedure {
            program: mount::PROGRAM,
            version: mount::VERSION,
            number: mount::Procedure::Mnt as u32,
        };
        let call = rpc.call(mnt, |w| DirPath(format!("/{SHARE}").as_bytes()).encode(w));
        let answer = rpc.ask(&[call], &mut uncalled).await?.pop()?;
        let Ok(Ok(mounted)) = mount::MntRes::from_bytes(&answer) else {
            world.fail(number, "the share cannot be mounted".to_owned());
            return None;
        };
        let mut this = Self {
            rpc,
            world,
            number,
            root: mounted.file_handle,
            files: Vec::new(),
            names: [OwnName::default(); 3],
        };
        if number > 0 {
            for file in 0..FILES {
                let name = file_name(file);
                let what = DirOpArgs { dir: this.root, name: Name(name.as_bytes()) };
                let call = this.call(v3::Procedure::Lookup, &lookup::Args { what });
                let answer = this.one(call).await?;
                let Ok(Ok(found)) = lookup::Res::from_bytes(&answer) else {
                    this.world.fail(number, format!("{name} is not found"));
                    return None;
                };
                this.files.push(found.object);
            }
        }
        Some(this)
    }

    fn call(&mut self, procedure: v3::Procedure, arguments: &impl Encode) -> Asked {
        let procedure = Procedure { program: v3::PROGRAM, version: v3::VERSION, number: procedure as u32 };
        self.rpc.call(procedure, |w| arguments.encode(w))
    }

    async fn one(&mut self, call: Asked) -> Option<Vec<u8>> {
        self.rpc.ask(&[call], &mut uncalled).await?.pop()
    }

    /// Reads and writes, side by side.
    async fn data(&mut self) -> Option<()> {
        let begun = machine::elapsed();
        let calls: Vec<_> = (0..=self.world.below(CALLS_MAX)).map(|_| self.piece()).collect();
        let asked: Vec<_> = calls.iter().map(|(asked, _)| asked.clone()).collect();
        let Some(answers) = self.rpc.ask(&asked, &mut uncalled).await else {
            self.world.unanswered(calls.into_iter().map(|(_, doing)| doing));
            return None;
        };
        for ((_, doing), answer) in calls.into_iter().zip(answers) {
            match doing {
                Doing::Read(piece) => self.has_read(piece, &answer, begun),
                Doing::Write(piece, stamp) => self.has_written(piece, stamp, &answer),
            }
        }
        Some(())
    }

    fn piece(&mut self) -> (Asked, Doing) {
        let piece = Piece::by(&self.world);
        let (file, offset, count) = (self.files[piece.file], piece.offset(), piece.bytes());
        if self.world.once_in(2) {
            let call = self.call(v3::Procedure::Read, &read::Args { file, offset, count });
            return (call, Doing::Read(piece));
        }
        let stamp = self.world.begin_write(piece);
        let data = piece.stamped(stamp);
        let stable = if self.world.once_in(3) { StableHow::FileSync } else { StableHow::Unstable };
        let args = write::Args { file, offset, count, stable, data: &data };
        let call = self.call(v3::Procedure::Write, &args);
        (call, Doing::Write(piece, stamp))
    }

    fn has_read(&self, piece: Piece, answer: &[u8], begun: Duration) {
        match read::Res::from_bytes(answer) {
            Ok(Ok(read)) => {
                let Piece { file, first, blocks } = piece;
                self.world.note(self.number, "nfs3 read", &[file as u64, first, blocks.into()]);
                self.world.check_read(self.number, piece, read.data, begun);
            }
            Ok(Err(failure)) => self.refused("nfs3 read refused", failure.status),
            Err(error) => self.world.fail(self.number, format!("READ: {error}")),
        }
    }

    fn has_written(&self, piece: Piece, stamp: u64, answer: &[u8]) {
        match write::Res::from_bytes(answer) {
            Ok(Ok(written)) => {
                let Piece { file, first, blocks } = piece;
                self.world.note(self.number, "nfs3 write", &[file as u64, first, blocks.into(), stamp]);
                if written.count != piece.bytes() {
                    self.world.fail(self.number, format!("a WRITE wrote {} bytes", written.count));
                }
                self.world.end_write(piece, stamp, Written::Acknowledged);
            }
            Ok(Err(failure)) => {
                let became = match failure.status {
                    Status::Io | Status::NoSpc => Written::Unanswered,
                    // The call may already have been carried out before the servers restarted.
                    _ if self.rpc.sent_again => Written::Unanswered,
                    _ => Written::Refused,
                };
                self.world.end_write(piece, stamp, became);
                self.refused("nfs3 write refused", failure.status);
            }
            Err(error) => self.world.fail(self.number, format!("WRITE: {error}")),
        }
    }

    /// Fails the simulation, unless the refusal comes from locks of other clients, faults of the store or waits.
    fn refused(&self, what: &str, status: Status) {
        self.world.note(self.number, what, &[status as u64]);
        if !matches!(status, Status::JukeBox | Status::Io | Status::NoSpc | Status::Acces) {
            self.world.fail(self.number, format!("{what}: {status:?}"));
        }
    }

    /// Makes or removes a name that only this client uses, so the outcome is known.
    async fn name(&mut self) -> Option<()> {
        let which = self.world.pick(self.names.len());
        let is_there = self.names[which].is_there;
        let name = self.names[which].text(self.number, which);
        let run = self.world.servers.borrow().runs();
        for _ in 0..ATTEMPTS {
            let place = DirOpArgs { dir: self.root, name: Name(name.as_bytes()) };
            let call = if is_there {
                self.call(v3::Procedure::Remove, &remove::Args { object: place })
            } else {
                let how =
                    create::How::Guarded(SetAttributes { mode: Some(0o600), ..SetAttributes::default() });
                self.call(v3::Procedure::Create, &create::Args { place, how })
            };
            let answer = self.one(call).await?;
            let status = if is_there {
                remove::Res::from_bytes(&answer).map(|res| res.err().map(|failure| failure.status))
            } else {
                create::Res::from_bytes(&answer).map(|res| res.err().map(|failure| failure.status))
            };
            // The duplicate request cache is lost when the server restarts.
            let was_away = self.world.servers.borrow().runs() != run;
            match status {
                Ok(None) => break,
                Ok(Some(Status::Exist)) if !is_there && was_away => break,
                Ok(Some(Status::NoEnt)) if is_there && was_away => break,
                Ok(Some(Status::Io | Status::NoSpc)) => {
                    self.names[which].give_up();
                    return Some(());
                }
                Ok(Some(Status::JukeBox)) => self.world.pause(500).await,
                other => {
                    self.world.fail(self.number, format!("{name}, there: {is_there}: {other:?}"));
                    return None;
                }
            }
        }
        self.world.note(self.number, if is_there { "nfs3 remove" } else { "nfs3 create" }, &[which as u64]);
        self.names[which].turn();
        Some(())
    }

    /// Gives a file of the client's own another name, in place of the file that has that name, if there is one.
    async fn rename(&mut self) -> Option<()> {
        let (from, to) = (self.world.pick(self.names.len()), self.world.pick(self.names.len()));
        if from == to || !self.names[from].is_there {
            return Some(());
        }
        let [old, new] = [from, to].map(|which| self.names[which].text(self.number, which));
        let run = self.world.servers.borrow().runs();
        for _ in 0..ATTEMPTS {
            let place = |name| DirOpArgs { dir: self.root, name: Name(name) };
            let arguments = rename::Args { from: place(old.as_bytes()), to: place(new.as_bytes()) };
            let call = self.call(v3::Procedure::Rename, &arguments);
            let answer = self.one(call).await?;
            let was_away = self.world.servers.borrow().runs() != run;
            match rename::Res::from_bytes(&answer).map(|res| res.err().map(|failure| failure.status)) {
                Ok(None) => break,
                // The call was carried out before the server was started again.
                Ok(Some(Status::NoEnt)) if was_away => break,
                Ok(Some(Status::Io | Status::NoSpc)) => {
                    [from, to].into_iter().for_each(|which| self.names[which].give_up());
                    return Some(());
                }
                Ok(Some(Status::JukeBox)) => self.world.pause(500).await,
                other => {
                    self.world.fail(self.number, format!("{old} to {new}: {other:?}"));
                    return None;
                }
            }
        }
        self.world.note(self.number, "nfs3 rename", &[from as u64, to as u64]);
        self.names[from].is_there = false;
        self.names[to].is_there = true;
        Some(())
    }

    /// Looks for a name of the client's own.
    async fn look(&mut self) -> Option<()> {
        let which = self.world.pick(self.names.len());
        let is_there = self.names[which].is_there;
        let name = self.names[which].text(self.number, which);
        let what = DirOpArgs { dir: self.root, name: Name(name.as_bytes()) };
        let call = self.call(v3::Procedure::Lookup, &lookup::Args { what });
        let answer = self.one(call).await?;
        let found = lookup::Res::from_bytes(&answer).map(|res| res.err().map(|failure| failure.status));
        self.world.note(self.number, "nfs3 look", &[which as u64, is_there.into()]);
        match found {
            Ok(None) if is_there => {}
            Ok(Some(Status::NoEnt)) if !is_there => {}
            Ok(Some(Status::JukeBox | Status::Io)) => {}
            other => self.world.fail(self.number, format!("{name}, there: {is_there}, is found: {other:?}")),
        }
        Some(())
    }

    /// Lists the directory, a few names at a time.
    async fn list(&mut self) -> Option<()> {
        let (mut listing, mut cookie, mut cookie_verifier) =
            (Listing::default(), 0, CookieVerifier::default());
        for _ in 0..ATTEMPTS {
            let count = u32::try_from(PAGE_LEAST + self.world.below(PAGE_MORE)).unwrap_or(u32::MAX);
            let arguments = readdir::Args { dir: self.root, cookie, cookie_verifier, count };
            let call = self.call(v3::Procedure::ReadDir, &arguments);
            let answer = self.one(call).await?;
            match readdir::Res::from_bytes(&answer) {
                Ok(Ok(page)) => {
                    let names =
                        page.listing.entries.iter().map(|entry| String::from_utf8_lossy(entry.name.0));
                    names.for_each(|name| listing.tell(&name));
                    cookie_verifier = page.cookie_verifier;
                    cookie = page.listing.entries.last().map_or(cookie, |last| last.cookie);
                    if page.listing.eof {
                        self.world.note(self.number, "nfs3 list", &[cookie]);
                        let known = known_names(self.number, &self.names);
                        self.world.check(self.number, listing.check(known));
                        return Some(());
                    }
                }
                Ok(Err(failure)) => {
                    self.refused("nfs3 list refused", failure.status);
                    self.world.pause(500).await;
                }
                Err(error) => {
                    self.world.fail(self.number, format!("READDIR: {error}"));
                    return None;
                }
            }
        }
        Some(())
    }
}
