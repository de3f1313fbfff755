//! A state database as bytes: whether it is sound.
//!
//! redb panics over some kinds of damage, where it might return an error, and repairs others on the disk without a word. So
//! a database is looked at in memory first: a panic is caught there, and the file stays as it is.

use std::cell::Cell;
use std::fs;
use std::io::{self, ErrorKind};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::{Arc, Once};
use std::time::Duration;

use parking_lot::RwLock;
use redb::{Database, StorageBackend};

/// Readings of a file that is written at the same time, and how long after each other.
const READINGS_MAX: usize = 200;
const READING_PAUSE: Duration = Duration::from_millis(10);

/// A database in memory. Clones are the same one.
#[derive(Debug, Clone)]
struct Memory(Arc<RwLock<Vec<u8>>>);

/// What is wrong with a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage(pub String);

/// The database that these bytes are, closed cleanly: what a server that was killed has left open is repaired.
///
/// # Errors
/// It is damaged.
pub fn checked(bytes: Vec<u8>) -> Result<Vec<u8>, Damage> {
    if bytes.is_empty() {
        return Err(Damage("it is empty".to_owned()));
    }
    let memory = Memory(Arc::new(RwLock::new(bytes)));
    let opened = memory.clone();
    quietly(move || {
        let mut database = open(opened)?;
        match database.check_integrity().map_err(|e| e.to_string())? {
            true => Ok(()),
            false => Err("parts of it are not what they should be".to_owned()),
        }
    })
    .map_err(Damage)?;
    let bytes = std::mem::take(&mut *memory.0.write());
    Ok(bytes)
}

/// A database in memory, of bytes that are sound.
///
/// # Errors
/// They are not.
pub fn database(bytes: Vec<u8>) -> Result<Database, Damage> {
    quietly(|| open(Memory(Arc::new(RwLock::new(bytes))))).map_err(Damage)
}

fn open(memory: Memory) -> Result<Database, String> {
    Database::builder().create_with_backend(memory).map_err(|e| e.to_string())
}

/// The bytes of a database as they were at one moment, also while a server writes it: those that two readings agree in.
///
/// # Errors
/// It cannot be read, or is never the same.
pub fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut before = fs::read(file)?;
    for _ in 0..READINGS_MAX {
        let now = fs::read(file)?;
        if now == before {
            return Ok(now);
        }
        before = now;
        std::thread::sleep(READING_PAUSE);
    }
    Err(io::Error::new(ErrorKind::ResourceBusy, "it changes all the time"))
}

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs this; a panic is an error, of which nothing is printed.
pub(crate) fn quietly<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                before(info);
            }
        }));
    });
    IS_QUIET.set(true);
    let ran = panic::catch_unwind(AssertUnwindSafe(run));
    IS_QUIET.set(false);
    ran.unwrap_or_else(|_| Err("its pages do not fit together".to_owned()))
}

impl Memory {
    fn range(offset: u64, length: usize, all: usize) -> io::Result<std::ops::Range<usize>> {
        let start = usize::try_from(offset).ok();
        let range = start.and_then(|start| Some(start..start.checked_add(length)?));
        range.filter(|range| range.end <= all).ok_or_else(|| ErrorKind::UnexpectedEof.into())
    }
}

impl StorageBackend for Memory {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.read().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let bytes = self.0.read();
        let range = Self::range(offset, out.len(), bytes.len())?;
        bytes
            .get(range)
            .map(|found| out.copy_from_slice(found))
            .ok_or_else(|| ErrorKind::UnexpectedEof.into())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.write().resize(usize::try_from(len).map_err(|_| ErrorKind::OutOfMemory)?, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut bytes = self.0.write();
        let range = Self::range(offset, data.len(), bytes.len())?;
        bytes
            .get_mut(range)
            .map(|place| place.copy_from_slice(data))
            .ok_or_else(|| ErrorKind::UnexpectedEof.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;
    use crate::records::Secrets;

    fn sound() -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("state");
        let state = State::open(&place).unwrap();
        for n in 0..50 {
            state.server().share_id(&format!("share-{n}")).unwrap();
            state.set_account(&format!("user-{n}"), &Secrets::of_hash(n)).unwrap();
        }
        drop(state);
        fs::read(place.join("anabranch.redb")).unwrap()
    }

    /// Each bit of the header, and one in some hundred of the rest.
    #[test]
    fn a_flipped_bit_is_found_or_harmless_and_never_a_panic() {
        let sound = sound();
        checked(sound.clone()).unwrap();
        let mut found = 0;
        for bit in (0..512 * 8).chain((512 * 8..sound.len() * 8).step_by(337)) {
            let mut flipped = sound.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            match checked(flipped) {
                Err(_) => found += 1,
                Ok(harmless) => {
                    let database = database(harmless).unwrap();
                    let state = State::in_memory(database);
                    for n in 0..50 {
                        assert_eq!(
                            state.account(&format!("user-{n}")).unwrap(),
                            Some(Secrets::of_hash(n)),
                            "bit {bit}"
                        );
                    }
                }
            }
        }
        assert!(found > 100, "{found}");
    }

    #[test]
    fn what_is_no_database_or_a_part_of_one_is_damaged() {
        let sound = sound();
        assert_eq!(checked(Vec::new()).unwrap_err(), Damage("it is empty".to_owned()));
        for length in [1, 100, 320, 4096, 10_000, sound.len() - 4096, sound.len() - 1] {
            assert!(checked(sound[..length].to_vec()).is_err(), "{length}");
        }
        assert!(checked(vec![0; 65_536]).is_err() && checked(vec![b'x'; 65_536]).is_err());
    }
}
