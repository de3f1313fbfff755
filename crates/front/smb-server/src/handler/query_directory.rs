//! QUERY_DIRECTORY. [MS-SMB2] 3.3.5.18, [MS-FSA] 2.1.5.6.3.
//!
//! Names that are not UTF-8 are left out, since no client could open them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use net::Buffer;
use share::{Case, Pick};
use smb_wire::codec::Utf16;
use smb_wire::fscc::FileInfoClass;
use smb_wire::fscc::directory_info::{DirectoryWriter, Entry, is_directory_class};
use smb_wire::fscc::next_entry::DoesNotFit;
use smb_wire::query_directory::{QueryDirectoryFlags, Request, Response};
use smb_wire::{AccessMask, Command, NtStatus};
use storage::{Attributes, NodeRef, Want};

use crate::attributes;
use crate::context::OnShare;
use crate::front;
use crate::name::{self, Pattern};
use crate::operation::{Needs, Operation};
use crate::state::open::{Enumeration, Location, Open};
use crate::status::Failure;

/// The most names scanned before other requests get their turn: a pattern may match few of many.
const SCAN_MAX: usize = 4096;
/// The most entries looked up before other requests get their turn.
const TAKE_MAX: usize = 256;
/// Entries are aligned to this many bytes.
const ALIGNMENT: usize = 8;

/// The properties of QUERY_DIRECTORY.
pub(crate) const OPERATION: Operation = Operation {
    on_share: Some(front::operation(Command::QueryDirectory, "QueryDirectory")),
    needs: Needs::Open,
    answer_bytes: 8,
    ..Operation::of(Command::QueryDirectory)
};

/// Answers the request.
pub(crate) async fn handle(ctx: &OnShare<'_>, request: Request<'_>) -> Result<Buffer, Failure> {
    let open = ctx.open(request.file_id)?;
    let ctx = &ctx.of(&open);
    let class = request.file_information_class;
    let limit = check(ctx, &open, &request)?;
    ctx.room_for(limit).await;
    let mut slot = open.enumeration.lock().await;
    let enumeration = prepare(&mut slot, &request)?;
    let from_start = enumeration.at == Location::Start;
    let mut data = Vec::with_capacity(limit.min(usize::from(u16::MAX)));
    let mut answer = ListingReply {
        ctx,
        open: &open,
        class,
        single: request.flags.contains(QueryDirectoryFlags::RETURN_SINGLE_ENTRY),
        limit,
        used: 0,
        count: 0,
        entries: DirectoryWriter::new(class, &mut data, limit)?,
    };
    answer.fill(enumeration).await?;
    if answer.count == 0 {
        let none = if from_start { NtStatus::NO_SUCH_FILE } else { NtStatus::NO_MORE_FILES };
        return Err(none.into());
    }
    ctx.moved(data.len());
    let mut reply = ctx.reply_with(data.len());
    reply.append_with(|out, _| Response { output_buffer: &data }.encode(out))?;
    Ok(reply)
}

/// Checks everything that does not involve the directory. Returns the most bytes of the reply.
fn check(ctx: &OnShare<'_>, open: &Open, request: &Request<'_>) -> Result<usize, Failure> {
    if !open.is_directory || request.output_buffer_length > ctx.io_bytes_max() {
        return Err(NtStatus::INVALID_PARAMETER.into());
    }
    if !open.granted_access.contains(AccessMask::LIST_DIRECTORY) {
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    let class = request.file_information_class;
    if !is_directory_class(class) {
        return Err(NtStatus::INVALID_INFO_CLASS.into());
    }
    let limit = usize::try_from(request.output_buffer_length).unwrap_or(usize::MAX);
    // [MS-FSA] 2.1.5.6.3.1 and the following sections.
    if limit < Entry::byte_len(class, 0)? {
        return Err(NtStatus::INFO_LENGTH_MISMATCH.into());
    }
    Ok(limit)
}

/// The enumeration with the flags of the request applied. SMB2_INDEX_SPECIFIED can give a new pattern, but no position:
/// entries have none (their `FileIndex` is 0).
fn prepare<'e>(
    slot: &'e mut Option<Enumeration>,
    request: &Request<'_>,
) -> Result<&'e mut Enumeration, Failure> {
    let flags = request.flags;
    if flags.contains(QueryDirectoryFlags::REOPEN) {
        *slot = None;
    }
    if let Some(enumeration) = slot.as_mut() {
        if flags.contains(QueryDirectoryFlags::INDEX_SPECIFIED) && !request.file_name.is_empty() {
            enumeration.pattern = Pattern::parse(&request.file_name)?;
        }
        if flags.contains(QueryDirectoryFlags::RESTART_SCANS) {
            enumeration.at = Location::Start;
        }
    }
    if slot.is_none() {
        *slot = Some(Enumeration { pattern: Pattern::parse(&request.file_name)?, at: Location::Start });
    }
    slot.as_mut().ok_or_else(|| NtStatus::INTERNAL_ERROR.into())
}

/// A reply being written.
struct ListingReply<'a, 'o> {
    ctx: &'a OnShare<'a>,
    open: &'a Open,
    class: FileInfoClass,
    /// One entry is enough.
    single: bool,
    limit: usize,
    /// Bytes of the entries so far.
    used: usize,
    count: usize,
    entries: DirectoryWriter<'o>,
}

/// The progress of an enumeration.
struct Step {
    at: Location,
    /// The next entry does not fit.
    full: bool,
}

impl Step {
    fn to(at: Location) -> Self {
        Self { at, full: false }
    }

    fn full(at: Location) -> Self {
        Self { at, full: true }
    }

    /// The progress after an entry was written, or did not fit.
    fn over(from: Location, to: Location, written: Result<(), DoesNotFit>) -> Self {
        if written.is_ok() { Self::to(to) } else { Self::full(from) }
    }
}

impl ListingReply<'_, '_> {
    /// Writes entries until there is no more room or there are no more entries.
    ///
    /// # Errors
    /// STATUS_BUFFER_OVERFLOW when not even one entry fits.
    async fn fill(&mut self, enumeration: &mut Enumeration) -> Result<(), Failure> {
        while !(self.single && self.count > 0) {
            let step = match enumeration.at {
                Location::Start => self.dot(&enumeration.pattern).await?,
                Location::Parent => self.dot_dot(&enumeration.pattern).await?,
                Location::Behind(cookie) => match enumeration.pattern.literal() {
                    Some(literal) => self.one(literal).await?,
                    None => self.some(&enumeration.pattern, cookie).await?,
                },
                Location::End => break,
            };
            enumeration.at = step.at;
            if step.full && self.count == 0 {
                return Err(NtStatus::BUFFER_OVERFLOW.into());
            }
            if step.full {
                break;
            }
        }
        Ok(())
    }

    fn dir(&self) -> Result<&NodeRef, Failure> {
        Ok(self.open.file()?.node())
    }

    /// The entry `.`
    async fn dot(&mut self, pattern: &Pattern) -> Result<Step, Failure> {
        if !pattern.matches(".") {
            return Ok(Step::to(Location::Parent));
        }
        let attributes = self.ctx.share.attributes(self.ctx.call, self.dir()?, Want::FLAGS).await?;
        Ok(Step::over(Location::Start, Location::Parent, self.push(".", None, Some(&attributes))))
    }

    /// The entry `..`. For the root, and for a directory whose parent the client may not see, it describes the
    /// directory itself.
    async fn dot_dot(&mut self, pattern: &Pattern) -> Result<Step, Failure> {
        if !pattern.matches("..") {
            return Ok(Step::to(Location::Behind(0)));
        }
        let (share, dir) = (self.ctx.share, self.dir()?);
        let parent = share.lookup(self.ctx.call, dir, b"..", Case::Sensitive, Want::FLAGS).await;
        let attributes = match parent {
            Ok(parent) => parent.attributes,
            Err(_) => share.attributes(self.ctx.call, dir, Want::FLAGS).await?,
        };
        Ok(Step::over(Location::Parent, Location::Behind(0), self.push("..", None, Some(&attributes))))
    }

    /// The only entry that a pattern without wildcards can match. It is found without a scan.
    async fn one(&mut self, literal: &str) -> Result<Step, Failure> {
        let Ok(stored) = name::component(literal) else { return Ok(Step::to(Location::End)) };
        let (share, dir) = (self.ctx.share, self.dir()?);
        let found = share.lookup(self.ctx.call, dir, &stored, Case::Insensitive, Want::FLAGS).await;
        let found = match found {
            Ok(found) if share.is_listed(self.ctx.caller(), &found) => found,
            Ok(_) | Err(share::Error::Storage(storage::Error::NotFound)) => {
                return Ok(Step::to(Location::End));
            }
            Err(e) => return Err(e.into()),
        };
        let share = self.ctx.share;
        let attributes = share.as_written(self.ctx.call, &found.node, found.attributes, Want::FLAGS).await?;
        let written = self.entry(&found.name, Some(attributes));
        Ok(Step::over(Location::Behind(0), Location::End, written))
    }

    /// The next entries that match.
    async fn some(&mut self, pattern: &Pattern, cookie: u64) -> Result<Step, Failure> {
        let full = Arc::new(AtomicBool::new(false));
        let pick = self.picker(pattern.clone(), Arc::clone(&full))?;
        let want = (self.class != FileInfoClass::Names).then_some(Want::FLAGS);
        let (share, dir) = (self.ctx.share, self.dir()?);
        let part = share.list_picked(self.ctx.call, dir, cookie, want, pick).await?;
        let mut behind = cookie;
        for entry in &part.entries {
            let attributes = entry.node.as_ref().map(|(_, attributes)| *attributes);
            if self.entry(&entry.name, attributes).is_err() {
                return Ok(Step::full(Location::Behind(behind)));
            }
            behind = entry.cookie;
        }
        if part.end {
            return Ok(Step::to(Location::End));
        }
        let full = full.load(Ordering::Relaxed);
        if !full {
            tokio::task::yield_now().await;
        }
        Ok(Step { at: Location::Behind(part.cookie), full })
    }

    /// Picks the names that match and have room.
    fn picker(
        &self,
        pattern: Pattern,
        full: Arc<AtomicBool>,
    ) -> Result<impl FnMut(&[u8]) -> Pick + Send + 'static, Failure> {
        let fixed = Entry::byte_len(self.class, 0)?;
        let (mut used, limit) = (self.used, self.limit);
        let (mut scan, mut take) = (SCAN_MAX, if self.single { 1 } else { TAKE_MAX });
        Ok(move |stored: &[u8]| {
            if scan == 0 || take == 0 {
                return Pick::Stop;
            }
            scan = scan.saturating_sub(1);
            let Some(shown) = name::to_client(stored).filter(|shown| pattern.matches(shown)) else {
                return Pick::Skip;
            };
            let end = end_of_entry(used, fixed, &shown);
            if end > limit {
                full.store(true, Ordering::Relaxed);
                return Pick::Stop;
            }
            used = end;
            take = take.saturating_sub(1);
            Pick::Take
        })
    }

    /// Writes an entry by its name in the store. An entry that cannot be shown is left out.
    fn entry(&mut self, stored: &[u8], attributes: Option<Attributes>) -> Result<(), DoesNotFit> {
        let Some(shown) = name::to_client(stored) else { return Ok(()) };
        self.push(&shown, self.short_name(stored).as_deref(), attributes.as_ref())
    }

    /// The 8.3 name of an entry whose own name is not an 8.3 name, for the classes that return it.
    fn short_name(&self, stored: &[u8]) -> Option<String> {
        let tells = matches!(
            self.class,
            FileInfoClass::BothDirectory
                | FileInfoClass::IdBothDirectory
                | FileInfoClass::IdExtdBothDirectory
        );
        tells.then(|| share::short_name(stored)).flatten().and_then(|name| String::from_utf8(name).ok())
    }

    /// Whether the class has no field for the reparse tag. [MS-FSCC] 2.4.8: its EaSize is the tag of a reparse point.
    fn tells_tag_as_size(&self) -> bool {
        matches!(
            self.class,
            FileInfoClass::FullDirectory
                | FileInfoClass::BothDirectory
                | FileInfoClass::IdFullDirectory
                | FileInfoClass::IdBothDirectory
        )
    }

    fn push(
        &mut self,
        shown: &str,
        short: Option<&str>,
        attributes: Option<&Attributes>,
    ) -> Result<(), DoesNotFit> {
        let short_name = Utf16::from(short.unwrap_or_default());
        let mut entry = Entry { name: Utf16::from(shown), short_name, ..Entry::default() };
        if let Some(attributes) = attributes {
            let info = attributes::network_open(attributes);
            let reparse_tag = attributes::reparse_tag(attributes);
            entry = Entry {
                ea_size: if self.tells_tag_as_size() { reparse_tag } else { 0 },
                reparse_tag,
                creation_time: info.creation_time,
                last_access_time: info.last_access_time,
                last_write_time: info.last_write_time,
                change_time: info.change_time,
                end_of_file: info.end_of_file,
                allocation_size: info.allocation_size,
                file_attributes: info.file_attributes,
                file_id: u128::from(attributes.id.number),
                ..entry
            };
        }
        self.entries.push(&entry)?;
        let fixed = Entry::byte_len(self.class, 0).unwrap_or(0);
        self.used = end_of_entry(self.used, fixed, shown);
        self.count = self.count.saturating_add(1);
        Ok(())
    }
}

/// The end of an entry that is written after `used` bytes of other entries.
fn end_of_entry(used: usize, fixed: usize, shown: &str) -> usize {
    let start = used.checked_next_multiple_of(ALIGNMENT).unwrap_or(usize::MAX);
    start.saturating_add(fixed).saturating_add(Utf16::from(shown).byte_len())
}
