//! Persistent opens of SMB clients, in the state database: what their clients reclaim after this program has ended, however
//! it ended.

use std::io;
use std::sync::Arc;

use smb_server::{Change, PersistentOpen, PersistentOpens};

use crate::store::{Form, Store, Table};

/// Opens by their persistent identifiers, as JSON.
pub(crate) const OPENS: Table = Table { name: "persistent-opens", form: Form::NumberToBytes };

/// The table of persistent opens.
#[derive(Debug)]
pub struct PersistentOpenTable(pub Arc<dyn Store>);

impl PersistentOpens for PersistentOpenTable {
    fn write(&self, changes: &[Change]) -> io::Result<()> {
        let change = |change: &Change| match change {
            Change::Keep(open) => Ok(OPENS.put(&open.id.to_le_bytes(), &serde_json::to_vec(open)?)),
            Change::Forget(id) => Ok(OPENS.remove(&id.to_le_bytes())),
        };
        let changes = changes.iter().map(change).collect::<io::Result<Vec<_>>>()?;
        self.0.write(&changes.into()).map(drop).map_err(io::Error::other)
    }

    fn all(&self) -> io::Result<Vec<PersistentOpen>> {
        let mut all = Vec::new();
        for (id, json) in self.0.scan(OPENS).map_err(io::Error::other)? {
            match serde_json::from_slice(&json) {
                Ok(open) => all.push(open),
                Err(error) => {
                    let id = id.try_into().map_or(0, u64::from_le_bytes);
                    tracing::warn!("the persistent open {id:x} is given up: {error}");
                }
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use smb_server::{PersistentLease, PersistentLock};

    use super::*;
    use crate::State;

    fn open(id: u64, path: &str) -> PersistentOpen {
        let lock = PersistentLock { offset: u64::MAX, length: 1, exclusive: true };
        let lease = PersistentLease { key: [7; 16], version: 2, epoch: 9, parent_key: Some([8; 16]) };
        PersistentOpen {
            id,
            path: path.to_owned(),
            handle: vec![0, 255],
            locks: vec![lock],
            lease: Some(lease),
            app_instance_version: Some((1, u64::MAX)),
            lock_sequence: vec![None, Some(15)],
            ..PersistentOpen::default()
        }
    }

    #[test]
    fn what_is_kept_is_there_after_a_restart_and_what_is_forgotten_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let state = State::open(&directory.path().join("state")).unwrap();
        let kept = PersistentOpenTable(state.store());
        assert_eq!(kept.all().unwrap(), []);
        let keep = |open: PersistentOpen| Change::Keep(Box::new(open));
        kept.write(&[keep(open(1, "a")), keep(open(u64::MAX, "b")), keep(open(3, "c"))]).unwrap();
        kept.write(&[keep(open(3, "d")), Change::Forget(1), Change::Forget(9)]).unwrap();
        drop((kept, state));
        let state = State::open(&directory.path().join("state")).unwrap();
        assert_eq!(PersistentOpenTable(state.store()).all().unwrap(), [open(3, "d"), open(u64::MAX, "b")]);
    }

    #[test]
    fn what_cannot_be_read_is_given_up_and_the_others_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let state = State::open(&directory.path().join("state")).unwrap();
        let store = state.store();
        assert!(store.write(&vec![OPENS.put(&7_u64.to_le_bytes(), b"{")].into()).unwrap());
        let kept = PersistentOpenTable(store);
        kept.write(&[Change::Keep(Box::new(open(8, "a")))]).unwrap();
        assert_eq!(kept.all().unwrap(), [open(8, "a")]);
    }
}
