//! One channel of a session: requests to bytes, replies to outcomes. Credits and message ids ([MS-SMB2] 3.2.4.1.2,
//! 3.2.4.1.5), signing and encryption (3.2.4.1.1, 3.2.4.1.8), replies that come later (3.2.5.1.5).

use smb_proto::signing::Sender;
use smb_wire::write::WriteFlags;
use smb_wire::{
    Command, FileId, Header, HeaderFlags, NtStatus, Target, WireError, chain, create, frame, header, read,
    write,
};

use super::compound::{self, Purpose};
use super::protection::Protection;
use super::status::fault;
use crate::{Client, Fault, FaultKind, Framing, Handle, Outcome, Request, Result, Sent};

/// Bytes of data that one credit pays for ([MS-SMB2] 3.1.5.2).
const CREDIT_BYTES: u32 = 65536;
/// Credits that a channel tries to have.
const CREDITS_WANTED: u16 = 512;
/// Requests under way at a time; more message ids than that are never open.
const WINDOW: usize = 8192;
/// What puts data where it is to go in a message.
type Fill<'a> = dyn Fn(&mut [u8]) + 'a;
const TRANSFORM: usize = smb_proto::encryption::TRANSFORM_HEADER_LEN;

/// A request under way.
#[derive(Debug, Clone, Copy)]
struct Pending {
    message_id: u64,
    command: Command,
    tag: usize,
    /// Bytes that were asked for or sent.
    bytes: u32,
    /// The last one of its operation.
    last: bool,
}

/// What was asked under a tag, as far as it has come.
#[derive(Debug, Clone, Default)]
struct Operation {
    /// The tag's own open.
    open: Option<FileId>,
    /// The first thing that went wrong in a compound.
    failed: Option<Fault>,
    /// An open that stays, to be told when the operation ends.
    keeps_open: bool,
}

/// One channel.
pub(super) struct Channel {
    pub(super) protection: Protection,
    pub(super) session_id: u64,
    pub(super) tree_id: u32,
    /// Whether requests are signed, and whether they are encrypted.
    pub(super) sign: bool,
    pub(super) encrypt: bool,
    pub(super) credits: u16,
    pub(super) next_message_id: u64,
    pending: Vec<Option<Pending>>,
    operations: Vec<Operation>,
    directories: Vec<String>,
    files: Vec<FileId>,
}

/// The parts of an operation, each appending a body.
type Part<'p> = &'p dyn Fn(&mut Vec<u8>) -> std::result::Result<Command, WireError>;

impl Channel {
    pub(super) fn new(
        protection: Protection,
        session_id: u64,
        credits: u16,
        next_message_id: u64,
        tags: usize,
    ) -> Self {
        Self {
            protection,
            session_id,
            tree_id: 0,
            sign: true,
            encrypt: false,
            credits,
            next_message_id,
            pending: vec![None; WINDOW],
            operations: vec![Operation::default(); tags.max(1)],
            directories: vec![String::new()],
            files: Vec::new(),
        }
    }

    /// Puts one message, or a related compound, into a frame. `bytes` is the data that it moves.
    fn send(
        &mut self,
        tag: usize,
        parts: &[Part<'_>],
        bytes: u32,
        fill: Option<&Fill<'_>>,
        out: &mut Vec<u8>,
    ) -> Result<Sent> {
        let charge = u16::try_from(bytes.div_ceil(CREDIT_BYTES).max(1)).unwrap_or(u16::MAX);
        let all = charge.saturating_add(u16::try_from(parts.len()).unwrap_or(1) - 1);
        if self.credits < all || self.is_taken(all) {
            return Ok(Sent::NotNow);
        }
        let begin = out.len();
        let room = frame::PREFIX_LEN + if self.encrypt { TRANSFORM } else { 0 };
        out.resize(begin + room, 0);
        let (first, mut start) = (out.len(), out.len());
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                let next = chain::link(out, start).map_err(|e| Fault::protocol(e.to_string()))?;
                self.sign(out.get_mut(start..).unwrap_or_default())?;
                start = next;
            }
            let last = index + 1 == parts.len();
            self.message(tag, *part, index > 0, last, charge, bytes, out)?;
            if let Some(fill) = fill {
                let data = out.len();
                out.resize(data + bytes as usize, 0);
                fill(out.get_mut(data..).unwrap_or_default());
            }
        }
        self.sign(out.get_mut(start..).unwrap_or_default())?;
        if let (true, Some(sealer)) = (self.encrypt, &self.protection.sealer) {
            let sealed = out.get_mut(first - TRANSFORM..).unwrap_or_default();
            sealer.seal(sealed).map_err(|e| Fault::protocol(e.to_string()))?;
        }
        let length = out.len() - begin - frame::PREFIX_LEN;
        let prefix = frame::encode_prefix(length).map_err(|e| Fault::protocol(e.to_string()))?;
        if let Some(room) = out.get_mut(begin..begin + frame::PREFIX_LEN) {
            room.copy_from_slice(&prefix);
        }
        Ok(Sent::Yes)
    }

    #[expect(clippy::too_many_arguments, reason = "what a header says")]
    fn message(
        &mut self,
        tag: usize,
        part: Part<'_>,
        related: bool,
        last: bool,
        charge: u16,
        bytes: u32,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let message_id = self.next_message_id;
        let at = out.len();
        out.resize(at + header::LEN, 0);
        let command = part(out).map_err(|e| Fault::protocol(e.to_string()))?;
        let mut flags = HeaderFlags::empty();
        flags.set(HeaderFlags::RELATED_OPERATIONS, related);
        let head = Header {
            credit_charge: charge,
            status_or_channel_sequence: 0,
            command,
            credits: charge.max(CREDITS_WANTED.saturating_sub(self.credits)),
            flags,
            next_command: 0,
            message_id,
            target: Target::Sync { tree_id: self.tree_id },
            session_id: self.session_id,
            signature: [0; 16],
        };
        if let Some(room) = out.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
            head.write_to(room);
        }
        self.next_message_id += u64::from(charge);
        self.credits -= charge;
        *self.slot(message_id) = Some(Pending { message_id, command, tag, bytes, last });
        Ok(())
    }

    fn sign(&self, message: &mut [u8]) -> Result<()> {
        if !self.sign || self.encrypt {
            return Ok(());
        }
        self.protection.signing.sign(message, Sender::Client).map_err(|e| Fault::protocol(e.to_string()))
    }

    fn slot(&mut self, message_id: u64) -> &mut Option<Pending> {
        let at = usize::try_from(message_id % WINDOW as u64).unwrap_or(0);
        &mut self.pending[at]
    }

    /// Whether an old request still waits where one of the next ones would be noted.
    fn is_taken(&mut self, ids: u16) -> bool {
        (0..u64::from(ids)).any(|n| {
            let id = self.next_message_id + n;
            self.slot(id).is_some()
        })
    }

    fn path(&self, directory: usize, name: &str) -> String {
        match self.directories.get(directory).map(String::as_str) {
            None | Some("") => name.to_owned(),
            Some(path) => format!("{path}\\{name}"),
        }
    }

    /// An open, and what is done with it until it is closed again.
    fn open_and_close(
        &mut self,
        tag: usize,
        path: &str,
        purpose: Purpose,
        out: &mut Vec<u8>,
    ) -> Result<Sent> {
        let open = |out: &mut Vec<u8>| compound::create(path, purpose, out);
        let close = |out: &mut Vec<u8>| compound::close(FileId::ANY, out);
        if purpose == Purpose::ListDirectory {
            let list = |out: &mut Vec<u8>| compound::list(FileId::ANY, out);
            return self.send(tag, &[&open, &list, &close], 0, None, out);
        }
        self.send(tag, &[&open, &close], 0, None, out)
    }

    fn own_open(&self, tag: usize) -> FileId {
        self.operations.get(tag).and_then(|o| o.open).unwrap_or(FileId::ANY)
    }

    fn file(&self, file: usize) -> FileId {
        self.files.get(file).copied().unwrap_or(FileId::ANY)
    }

    /// Checks that a message is right in itself and takes its credits; the request that it ends.
    fn answered(&mut self, message: &mut [u8], encrypted: bool) -> Result<Option<(Header, Pending)>> {
        let head =
            Header::decode(message).map_err(|e| Fault::protocol(format!("a reply without a header: {e}")))?;
        if !head.flags.contains(HeaderFlags::SERVER_TO_REDIR) {
            return Err(Fault::protocol("the server sent a request"));
        }
        self.credits = self.credits.saturating_add(head.credits);
        if head.message_id == u64::MAX || head.status() == NtStatus::PENDING {
            return Ok(None);
        }
        self.verify(&head, message, encrypted)?;
        let unasked =
            || Fault::protocol(format!("a reply to request {}, which waits for none", head.message_id));
        let slot = self.slot(head.message_id);
        let pending = slot
            .filter(|p| p.message_id == head.message_id && p.command == head.command)
            .ok_or_else(unasked)?;
        *slot = None;
        Ok(Some((head, pending)))
    }

    /// [MS-SMB2] 3.2.5.1.3: of what is not encrypted the signature must be right, and must be there.
    fn verify(&self, head: &Header, message: &mut [u8], encrypted: bool) -> Result<()> {
        if encrypted || !self.sign || head.status() == NtStatus::USER_SESSION_DELETED {
            return Ok(());
        }
        let wrong = |why: &str| {
            Err(Fault::new(FaultKind::WrongSignature, format!("a reply to {:?} {why}", head.command)))
        };
        if self.encrypt {
            return wrong("is not encrypted");
        }
        if !head.flags.contains(HeaderFlags::SIGNED) {
            return wrong("is not signed");
        }
        match self.protection.signing.verify(message, Sender::Server) {
            Ok(()) => Ok(()),
            Err(_) => wrong("has a wrong signature"),
        }
    }

    /// The messages of a frame, decrypted if they were encrypted.
    fn opened<'m>(&self, message: &'m mut [u8]) -> Result<(&'m mut [u8], bool)> {
        if message.first() != Some(&smb_wire::transform::PROTOCOL_ID[0]) {
            return Ok((message, false));
        }
        let wrong = |why: &str| Fault::new(FaultKind::WrongSignature, format!("an encrypted reply {why}"));
        let opener =
            self.protection.opener.as_ref().ok_or_else(|| wrong("on a connection that has no keys"))?;
        opener.open(message).map(|plain| (plain, true)).map_err(|_| wrong("cannot be decrypted"))
    }

    /// A frame with one request that is not a [`crate::Request`].
    pub(super) fn request(&mut self, command: Command, body: &[u8]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        let part = |out: &mut Vec<u8>| {
            out.extend_from_slice(body);
            Ok(command)
        };
        match self.send(0, &[&part], 0, None, &mut out)? {
            Sent::Yes => Ok(out),
            Sent::NotNow | Sent::NotNeeded => Err(Fault::protocol("the server lets not one request in")),
        }
    }

    /// The reply to it, if this is it.
    pub(super) fn reply<'m>(&mut self, frame: &'m mut [u8]) -> Result<Option<(Header, &'m [u8])>> {
        let (message, encrypted) = self.opened(frame)?;
        Ok(self.answered(message, encrypted)?.map(|(head, _)| (head, &*message)))
    }

    fn message_received(
        &mut self,
        message: &mut [u8],
        encrypted: bool,
        done: &mut dyn FnMut(usize, Outcome<'_>),
    ) -> Result<()> {
        let Some((head, pending)) = self.answered(message, encrypted)? else { return Ok(()) };
        if pending.command == Command::Read {
            done(pending.tag, data(&head, pending, message)?);
            return Ok(());
        }
        if pending.command == Command::Write {
            done(pending.tag, written(&head, message)?);
            return Ok(());
        }
        let Some(operation) = self.operations.get_mut(pending.tag) else { return Ok(()) };
        if head.status() != NtStatus::SUCCESS && operation.failed.is_none() {
            operation.failed = Some(fault(&format!("{:?}", pending.command), head.status()));
        } else if pending.command == Command::Create && operation.failed.is_none() {
            let response = create::Response::decode(message).map_err(|e| Fault::protocol(e.to_string()))?;
            operation.open = Some(response.file_id);
        }
        if pending.last {
            let outcome = match (operation.failed.take(), operation.open) {
                (Some(fault), _) => Outcome::Refused(fault),
                (None, Some(file_id)) if operation.keeps_open => Outcome::Handle(Handle::Open(file_id)),
                (None, _) => Outcome::Done,
            };
            done(pending.tag, outcome);
        }
        Ok(())
    }
}

fn data<'m>(head: &Header, pending: Pending, message: &'m [u8]) -> Result<Outcome<'m>> {
    if head.status() != NtStatus::SUCCESS {
        return Ok(Outcome::Refused(fault("READ", head.status())));
    }
    let response = read::Response::decode(message).map_err(|e| Fault::protocol(e.to_string()))?;
    if response.data.len() > pending.bytes as usize {
        return Err(Fault::protocol("a READ brought more than was asked for"));
    }
    Ok(Outcome::Data(response.data))
}

fn written(head: &Header, message: &[u8]) -> Result<Outcome<'static>> {
    if head.status() != NtStatus::SUCCESS {
        return Ok(Outcome::Refused(fault("WRITE", head.status())));
    }
    let response = write::Response::decode(message).map_err(|e| Fault::protocol(e.to_string()))?;
    Ok(Outcome::Written(response.count))
}

/// A WRITE whose data follows: the codec copies data, this leaves the room for it.
fn write_head(
    file_id: FileId,
    offset: u64,
    length: u32,
    out: &mut Vec<u8>,
) -> std::result::Result<Command, WireError> {
    const DATA_OFFSET: std::ops::Range<usize> = 2..4;
    const LENGTH: std::ops::Range<usize> = 4..8;
    let at = out.len();
    write::Request::new(file_id, offset, &[], WriteFlags::empty()).encode(out)?;
    out.truncate(at + 48);
    let body = out.get_mut(at..).unwrap_or_default();
    if let Some(room) = body.get_mut(DATA_OFFSET) {
        room.copy_from_slice(&112u16.to_le_bytes());
    }
    if let Some(room) = body.get_mut(LENGTH) {
        room.copy_from_slice(&length.to_le_bytes());
    }
    Ok(Command::Write)
}

impl Client for Channel {
    fn framing(&self) -> Framing {
        Framing::Smb
    }

    fn adopt(&mut self, directories: &[Handle], files: &[Handle]) {
        let path =
            |handle: &Handle| if let Handle::Path(path) = handle { path.clone() } else { String::new() };
        let file_id =
            |handle: &Handle| if let Handle::Open(file_id) = handle { *file_id } else { FileId::ANY };
        self.directories = directories.iter().map(path).collect();
        self.files = files.iter().map(file_id).collect();
    }

    fn submit(&mut self, tag: usize, request: &Request<'_>, out: &mut Vec<u8>) -> Result<Sent> {
        match *request {
            Request::Read { file, offset, length } => {
                let file_id = self.file(file);
                return self.send(
                    tag,
                    &[&|out| compound::read(file_id, offset, length, out)],
                    length,
                    None,
                    out,
                );
            }
            Request::Write { file, offset, length, fill } => {
                let file_id = self.file(file);
                let part = |out: &mut Vec<u8>| write_head(file_id, offset, length, out);
                return self.send(tag, &[&part], length, Some(fill), out);
            }
            _ => {}
        }
        if let Some(operation) = self.operations.get_mut(tag) {
            operation.keeps_open = matches!(request, Request::Open { .. });
        }
        match *request {
            Request::Open { directory, name, make } => {
                let path = self.path(directory, name);
                let purpose = if make { Purpose::MakeFile } else { Purpose::UseFile };
                self.send(tag, &[&|out| compound::create(&path, purpose, out)], 0, None, out)
            }
            Request::Close { file } => {
                let file_id = file.map_or_else(|| self.own_open(tag), |file| self.file(file));
                self.send(tag, &[&|out| compound::close(file_id, out)], 0, None, out)
            }
            Request::Stat => {
                let file_id = self.own_open(tag);
                self.send(tag, &[&|out| compound::stat(file_id, out)], 0, None, out)
            }
            Request::List { directory } => {
                let path = self.path(directory, "");
                self.open_and_close(tag, path.trim_end_matches('\\'), Purpose::ListDirectory, out)
            }
            Request::MakeDirectory { parent, name } => {
                let path = self.path(parent, name);
                self.open_and_close(tag, &path, Purpose::MakeDirectory, out)
            }
            Request::RemoveDirectory { parent, name } => {
                let path = self.path(parent, name);
                self.open_and_close(tag, &path, Purpose::DeleteDirectory, out)
            }
            Request::Delete { directory, name } => {
                let path = self.path(directory, name);
                self.open_and_close(tag, &path, Purpose::DeleteFile, out)
            }
            Request::Leave => Ok(Sent::NotNeeded),
            Request::Nothing | Request::Read { .. } | Request::Write { .. } => {
                let echo = |out: &mut Vec<u8>| {
                    out.extend_from_slice(&[4, 0, 0, 0]);
                    Ok(Command::Echo)
                };
                self.send(tag, &[&echo], 0, None, out)
            }
        }
    }

    fn receive(&mut self, message: &mut [u8], done: &mut dyn FnMut(usize, Outcome<'_>)) -> Result<()> {
        let (message, encrypted) = self.opened(message)?;
        let ranges: Vec<_> = chain::Chain::new(message).collect();
        for range in ranges {
            let range = range.map_err(|e| Fault::protocol(format!("a reply that is not a message: {e}")))?;
            self.message_received(message.get_mut(range).unwrap_or_default(), encrypted, done)?;
        }
        Ok(())
    }
}
