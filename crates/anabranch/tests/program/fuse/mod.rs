//! A file system of the test's own, which stops answering when it is told to, and begins again: the least of the FUSE protocol
//! (linux/fuse.h, version 7.31). It holds one file, `file`.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use rustix::io::{FdFlags, fcntl_setfd};

const ROOT: u64 = 1;
const FILE: u64 = 2;
const NEW: u64 = 3;
const CONTENT: &[u8] = b"data";

const ENOENT: i32 = 2;
const ENOSYS: i32 = 38;

/// Mounted as long as it lives.
pub(crate) struct Fuse {
    at: PathBuf,
    answers: Arc<Answers>,
}

struct Answers {
    device: File,
    /// Guards the requests that were not answered since it fell silent; None: it answers.
    unanswered: Mutex<Option<Vec<Vec<u8>>>>,
}

impl Drop for Fuse {
    fn drop(&mut self) {
        self.abort();
    }
}

impl Fuse {
    /// None where the system has no FUSE, or this user may not mount.
    pub(crate) fn mount(at: &Path) -> Option<Self> {
        Self::mount_as("fuse", at)
    }

    /// Mounts it as this kind of file system: `fuse.NAME`, as programs are told by their mounts.
    pub(crate) fn mount_as(kind: &str, at: &Path) -> Option<Self> {
        let device = OpenOptions::new().read(true).write(true).open("/dev/fuse").ok()?;
        fcntl_setfd(&device, FdFlags::empty()).ok()?;
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", device.as_raw_fd());
        let mounted = Command::new("mount").args(["-i", "-t", kind, "-o", &options, "test"]).arg(at).status();
        if !mounted.is_ok_and(|status| status.success()) {
            return None;
        }
        fcntl_setfd(&device, FdFlags::CLOEXEC).ok()?;
        let answers = Arc::new(Answers { device, unanswered: Mutex::default() });
        let answered = Arc::clone(&answers);
        std::thread::spawn(move || answered.serve());
        Some(Self { at: at.to_owned(), answers })
    }

    /// It answers nothing from now on.
    pub(crate) fn fall_silent(&self) {
        self.answers.unanswered.lock().unwrap().get_or_insert_default();
    }

    /// It answers again, first what it was asked meanwhile.
    pub(crate) fn speak_again(&self) {
        let mut unanswered = self.answers.unanswered.lock().unwrap();
        for request in unanswered.take().into_iter().flatten() {
            self.answers.answer(&Request(&request));
        }
    }

    /// How many requests were not answered since it fell silent.
    pub(crate) fn unanswered(&self) -> usize {
        self.answers.unanswered.lock().unwrap().as_ref().map_or(0, Vec::len)
    }

    /// Whoever waits for it gets an error (`umount2(2)`, MNT_FORCE: the kernel gives the connection up).
    pub(crate) fn abort(&self) {
        let _ = Command::new("umount").args(["-f", "-l"]).arg(&self.at).output();
    }
}

impl Answers {
    fn serve(&self) {
        let mut buffer = vec![0; 1 << 20];
        while let Ok(length) = (&self.device).read(&mut buffer) {
            let request = Request(&buffer[..length]);
            // FORGET, INTERRUPT and BATCH_FORGET have no answer.
            if matches!(request.opcode(), 2 | 36 | 42) {
                continue;
            }
            match &mut *self.unanswered.lock().unwrap() {
                Some(unanswered) => unanswered.push(request.0.to_vec()),
                None => self.answer(&request),
            }
        }
    }

    fn answer(&self, request: &Request<'_>) {
        let (error, body) = match answer(request) {
            Ok(body) => (0, body),
            Err(error) => (-error, Vec::new()),
        };
        let mut reply = u32::try_from(16 + body.len()).unwrap().to_ne_bytes().to_vec();
        reply.extend(error.to_ne_bytes());
        reply.extend(&request.0[8..16]);
        reply.extend(body);
        // Who has asked may have been interrupted.
        let _ = (&self.device).write(&reply);
    }
}

struct Request<'a>(&'a [u8]);

impl Request<'_> {
    fn opcode(&self) -> u32 {
        self.word(4)
    }

    fn node(&self) -> u64 {
        u64::from_ne_bytes(self.0[16..24].try_into().unwrap())
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.0[at..at + 4].try_into().unwrap())
    }
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

fn longs(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

/// `struct fuse_attr`
fn attributes(node: u64) -> Vec<u8> {
    let (mode, links, size) = if node == ROOT { (0o40755, 2, 0) } else { (0o100_644, 1, 4) };
    let numbers = longs(&[node, size, 1, 1_000_000_000, 1_000_000_000, 1_000_000_000]);
    [numbers, words(&[0, 0, 0, mode, links, 0, 0, 0, 4096, 0])].concat()
}

/// `struct fuse_entry_out`, which is forgotten at once.
fn entry(node: u64) -> Vec<u8> {
    [longs(&[node, 1, 0, 0]), words(&[0, 0]), attributes(node)].concat()
}

/// `struct fuse_open_out`; FOPEN_DIRECT_IO: the kernel keeps no data.
fn open() -> Vec<u8> {
    [longs(&[1]), words(&[1, 0])].concat()
}

fn answer(request: &Request<'_>) -> Result<Vec<u8>, i32> {
    match request.opcode() {
        // LOOKUP
        1 if request.0[40..] == *b"file\0" => Ok(entry(FILE)),
        1 => Err(ENOENT),
        // GETATTR, SETATTR
        3 | 4 => Ok([longs(&[0, 0]), attributes(request.node())].concat()),
        // OPEN, OPENDIR
        14 | 27 => Ok(open()),
        // READ: the offset is the second number of its body.
        15 if request.0[48..56] == [0; 8] => Ok(CONTENT.to_vec()),
        15 | 28 => Ok(Vec::new()),
        // WRITE: all of it.
        16 => Ok(words(&[request.word(56), 0])),
        // STATFS
        17 => {
            Ok([longs(&[1000, 500, 500, 1000, 500]), words(&[4096, 255, 4096, 0, 0, 0, 0, 0, 0, 0])].concat())
        }
        // RELEASE, FSYNC, FLUSH, RELEASEDIR, ACCESS
        18 | 20 | 25 | 29 | 34 => Ok(Vec::new()),
        // INIT: the server's version, and how much may be written at once.
        26 => Ok([words(&[7, 31, 0, 0, 0, 65_536, 1]), vec![0; 36]].concat()),
        // CREATE
        35 => Ok([entry(NEW), open()].concat()),
        _ => Err(ENOSYS),
    }
}
