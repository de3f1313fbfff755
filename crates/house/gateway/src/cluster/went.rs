//! Where the shares are that a vserver has had: in which vserver, and at which addresses.

use std::net::SocketAddr;

use share::NFS_PORT;
use state::cluster::{Register, VserverRecord};
use state::store::StoreError;

use crate::reach::VserverAddress;
use crate::settings::{MovedShare, same_share_name};

/// How often a share may have moved on. What has gone in a circle is nowhere.
const MOVES_MAX: usize = 64;

/// The shares that have gone from a vserver, with the addresses of the vservers that have them now, perhaps by way of others. Those that nobody
/// has any more are left out.
pub(super) fn shares(register: &Register, record: &VserverRecord) -> Result<Vec<MovedShare>, StoreError> {
    let mut gone = Vec::new();
    for (name, to) in &record.went {
        if let Some(owner) = owner(register, name, to)? {
            gone.push(MovedShare { name: name.clone(), addresses: addresses(&owner) });
        }
    }
    Ok(gone)
}

/// The vserver that has a share that has gone to this one.
fn owner(register: &Register, share: &str, to: &str) -> Result<Option<VserverRecord>, StoreError> {
    let mut to = to.to_owned();
    for _ in 0..MOVES_MAX {
        let Some(seen) = register.vserver(&to)? else { return Ok(None) };
        if seen.record.share(share).is_some() {
            return Ok(Some(seen.record));
        }
        let on = seen.record.went.iter().find(|(gone, _)| same_share_name(gone, share));
        let Some((_, on)) = on else { return Ok(None) };
        to.clone_from(on);
    }
    Ok(None)
}

/// Where clients find a vserver: its addresses, with the port of NFS.
fn addresses(record: &VserverRecord) -> Vec<SocketAddr> {
    let addresses = record.addresses.iter().filter_map(|text| text.parse::<VserverAddress>().ok());
    addresses.map(|address| (address.ip(), record.nfs.unwrap_or(NFS_PORT)).into()).collect()
}
