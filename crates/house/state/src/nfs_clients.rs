//! NFSv4 clients that hold something, in the state database: they may reclaim it after this program has ended, however it
//! ended.

use std::io;
use std::sync::Arc;

use nfs_server::{ClientRecord, ClientRecords};

use crate::store::{Form, Store, Table};

/// Clients by the names that they have for themselves.
pub(crate) const CLIENTS: Table = Table { name: "nfs-clients", form: Form::BytesToNothing };

/// The table of clients.
#[derive(Debug)]
pub struct NfsClientTable(pub Arc<dyn Store>);

impl ClientRecords for NfsClientTable {
    fn keep(&self, record: &ClientRecord) -> io::Result<()> {
        let change = CLIENTS.put(&record.owner, &[]);
        self.0.write(&vec![change].into()).map(drop).map_err(io::Error::other)
    }

    fn forget(&self, records: &[ClientRecord]) -> io::Result<()> {
        let changes: Vec<_> = records.iter().map(|record| CLIENTS.remove(&record.owner)).collect();
        self.0.write(&changes.into()).map(drop).map_err(io::Error::other)
    }

    fn all(&self) -> io::Result<Vec<ClientRecord>> {
        let all = self.0.scan(CLIENTS).map_err(io::Error::other)?;
        Ok(all.into_iter().map(|(owner, _)| ClientRecord { owner }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;

    fn record(owner: &[u8]) -> ClientRecord {
        ClientRecord { owner: owner.to_vec() }
    }

    #[test]
    fn what_is_kept_is_there_after_a_restart_and_what_is_forgotten_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let state = State::open(&directory.path().join("state")).unwrap();
        let known = NfsClientTable(state.store());
        assert_eq!(known.all().unwrap(), []);
        for owner in [&b"a"[..], b"b\0\xff", b"c", b"a"] {
            known.keep(&record(owner)).unwrap();
        }
        known.forget(&[record(b"c"), record(b"nobody")]).unwrap();
        drop((known, state));
        let state = State::open(&directory.path().join("state")).unwrap();
        assert_eq!(NfsClientTable(state.store()).all().unwrap(), [record(b"a"), record(b"b\0\xff")]);
    }
}
