//! Hosts that hold NFSv3 locks, in the state database: they are told of a restart of the server, and reclaim the locks.

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use nfs_server::{HostRecord, HostRecords};

use crate::store::{Form, Store, Table};

/// Hosts: their address and the server's, 16 bytes each (IPv4 as mapped IPv6), and the name of the host.
pub(crate) const HOSTS: Table = Table { name: "nfs-lock-hosts", form: Form::BytesToNothing };

/// Bytes of an address.
const ADDRESS_BYTES: usize = 16;

/// The table of hosts.
#[derive(Debug)]
pub struct LockHostTable(pub Arc<dyn Store>);

impl HostRecords for LockHostTable {
    fn keep(&self, record: &HostRecord) -> io::Result<()> {
        let change = HOSTS.put(&key(record), &[]);
        self.0.write(&vec![change].into()).map(drop).map_err(io::Error::other)
    }

    fn forget(&self, records: &[HostRecord]) -> io::Result<()> {
        let changes: Vec<_> = records.iter().map(|record| HOSTS.remove(&key(record))).collect();
        self.0.write(&changes.into()).map(drop).map_err(io::Error::other)
    }

    fn all(&self) -> io::Result<Vec<HostRecord>> {
        let all = self.0.scan(HOSTS).map_err(io::Error::other)?;
        Ok(all.into_iter().filter_map(|(key, _)| record(&key)).collect())
    }
}

fn key(record: &HostRecord) -> Vec<u8> {
    let bytes = |address: IpAddr| match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    };
    [&bytes(record.address)[..], &bytes(record.server), &record.name].concat()
}

fn record(key: &[u8]) -> Option<HostRecord> {
    let (address, rest) = key.split_first_chunk::<ADDRESS_BYTES>()?;
    let (server, name) = rest.split_first_chunk::<ADDRESS_BYTES>()?;
    let address_of = |bytes: &[u8; ADDRESS_BYTES]| IpAddr::V6(Ipv6Addr::from(*bytes)).to_canonical();
    Some(HostRecord { name: name.to_vec(), address: address_of(address), server: address_of(server) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;

    fn host(name: &[u8], address: &str) -> HostRecord {
        let server = IpAddr::from([10, 0, 0, 1]);
        HostRecord { name: name.to_vec(), address: address.parse().unwrap(), server }
    }

    #[test]
    fn what_is_kept_is_there_after_a_restart_and_what_is_forgotten_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let state = State::open(&directory.path().join("state")).unwrap();
        let known = LockHostTable(state.store());
        assert_eq!(known.all().unwrap(), []);
        let (a, b) = (host(b"a\xff", "10.0.0.7"), host(b"", "2001:db8::7"));
        for record in [&a, &b, &host(b"c", "10.0.0.7")] {
            known.keep(record).unwrap();
        }
        known.forget(&[host(b"c", "10.0.0.7"), host(b"a\xff", "10.0.0.8")]).unwrap();
        drop((known, state));
        let state = State::open(&directory.path().join("state")).unwrap();
        let mut all = LockHostTable(state.store()).all().unwrap();
        all.sort_by_key(|record| record.name.clone());
        assert_eq!(all, [b, a]);
    }

    #[test]
    fn a_key_that_is_too_short_is_no_host() {
        assert_eq!((record(b""), record(&[0; 31])), (None, None));
        assert!(record(&[0; 32]).is_some_and(|record| record.name.is_empty()));
    }
}
