//! Vservers as the register has them, as the API tells them, and as a gateway serves them.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use control::cluster::{NewVserver as Asked, VserverShare as ToldShare};
use share::{Terms, folded_name};
use state::ShareRecord;
use state::cluster::{VserverRecord, VserverShareRecord};

use crate::cephfs;
use crate::reach::{Reach, VserverAddress};
use crate::settings::check_share_name;
use crate::vserver_commands::NewVserver;
use crate::vserver_shares::VserverShare;
use crate::vservers::check_vserver_name;

/// The most shares of a vserver.
pub(super) const SHARES_MAX: usize = 1000;

/// The record of a new vserver.
///
/// # Errors
/// Why there can be no such vserver, in words.
pub(super) fn record_of(asked: &Asked, gateway: &str) -> Result<VserverRecord, String> {
    let Asked { name, addresses, smb_port, nfs_port, shares, .. } = asked;
    let share = |share: &ToldShare| {
        let mut terms = Terms::empty();
        terms.set(Terms::READ_ONLY, share.is_read_only);
        terms.set(Terms::CONTINUOUSLY_AVAILABLE, share.is_continuously_available);
        VserverShareRecord::plain(&share.name, &share.directory, terms, &share.plan)
    };
    let record = VserverRecord {
        name: name.clone(),
        gateway: gateway.to_owned(),
        addresses: addresses.clone(),
        smb: *smb_port,
        nfs: *nfs_port,
        shares: shares.iter().map(share).collect(),
        ..VserverRecord::default()
    };
    check(&record)?;
    Ok(record)
}

fn check(record: &VserverRecord) -> Result<(), String> {
    check_vserver_name(&record.name)?;
    let of = |what: &str| format!("the vserver {}: {what}", record.name);
    if record.addresses.is_empty() {
        return Err(of("it has no address"));
    }
    if record.smb.is_none() && record.nfs.is_none() {
        return Err(of("both SMB and NFS are off"));
    }
    if record.shares.is_empty() || record.shares.len() > SHARES_MAX {
        return Err(of(&format!("it has 1 to {SHARES_MAX} shares")));
    }
    let mut names = HashSet::new();
    for VserverShareRecord { share, .. } in &record.shares {
        check_share_name(&share.name).map_err(|why| of(&why))?;
        if !names.insert(folded_name(&share.name)) {
            return Err(of(&format!("the share {} is given twice", share.name)));
        }
        place_of(&share.directory).map_err(|why| of(&why))?;
    }
    definition(record).map(drop)
}

/// The directory of a share in CephFS, in its form. A directory of the machine is fenced by nobody: two gateways could write there.
///
/// # Errors
/// It is none, in words.
pub(super) fn place_of(directory: &Path) -> Result<PathBuf, String> {
    let place = cephfs::absolute(directory);
    let written = directory.display();
    let place = place.ok_or_else(|| format!("{written} is not in CephFS: expected cephfs:/PATH"))?;
    place.map_err(|why| format!("{written} {why}"))
}

/// The interfaces on which the addresses of a vserver are.
pub(super) fn interfaces(record: &VserverRecord) -> BTreeSet<String> {
    let addresses = record.addresses.iter().filter_map(|text| text.parse::<VserverAddress>().ok());
    addresses.filter_map(|address| Some(address.moving()?.interface.clone())).collect()
}

/// What is to be served.
///
/// # Errors
/// The record is one of another version, or was never checked. In words.
pub(super) fn definition(record: &VserverRecord) -> Result<NewVserver, String> {
    let of = |what: String| format!("the vserver {}: {what}", record.name);
    let addresses = record.addresses.iter().map(|text| text.parse::<VserverAddress>());
    let addresses = addresses.collect::<Result<Vec<_>, _>>().map_err(of)?;
    let (mut shares, mut coming) = (Vec::new(), Vec::new());
    for one in &record.shares {
        match (served(&one.share), &one.coming) {
            (Ok(share), None) => shares.push(share),
            (Ok(share), Some(_)) => coming.push(share),
            (Err(why), None) => return Err(of(why)),
            // The vserver is served without it. What is wrong is told when it is to be opened.
            (Err(_), Some(_)) => {}
        }
    }
    let reach = Reach::Addresses { addresses, smb: record.smb, nfs: record.nfs };
    Ok(NewVserver { name: record.name.clone(), shares, coming, reach })
}

/// A share as it is to be served.
///
/// # Errors
/// The record is one of another version, or was never checked. In words.
pub(super) fn served(share: &ShareRecord) -> Result<VserverShare, String> {
    let in_words = |error: state::Error| error.what;
    let directory = share.directory.clone();
    let directory = cephfs::absolute(&directory).and_then(Result::ok).unwrap_or(directory);
    Ok(VserverShare {
        name: share.name.clone(),
        directory,
        terms: share.terms(),
        rules: share.rules().map_err(in_words)?,
        comment: share.comment.clone(),
        provisioned: share.provisioned().map_err(in_words)?,
    })
}

/// The first address of a vserver that another one has on the same port.
pub(super) fn shared_address(one: &VserverRecord, other: &VserverRecord) -> Option<String> {
    let ip = |text: &String| text.parse::<VserverAddress>().ok().map(|address| address.ip());
    let meets = |mine: Option<u16>, theirs: Option<u16>| mine.is_some() && mine == theirs;
    if !meets(one.smb, other.smb) && !meets(one.nfs, other.nfs) {
        return None;
    }
    let taken: HashSet<_> = other.addresses.iter().filter_map(ip).collect();
    one.addresses.iter().find(|text| ip(text).is_some_and(|ip| taken.contains(&ip))).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> Asked {
        let share = ToldShare {
            name: "data".to_owned(),
            directory: "cephfs:/data".to_owned(),
            is_continuously_available: true,
            ..ToldShare::default()
        };
        Asked {
            name: "files".to_owned(),
            addresses: vec!["192.0.2.10%eth0/24".to_owned()],
            smb_port: Some(445),
            nfs_port: Some(2049),
            shares: vec![share],
            gateway: None,
        }
    }

    #[test]
    fn what_is_asked_for_is_what_is_served() {
        let record = record_of(&asked(), "a").unwrap();
        assert_eq!((&*record.name, &*record.gateway), ("files", "a"));
        let served = definition(&record).unwrap();
        assert_eq!(served.shares[0].terms, Terms::CONTINUOUSLY_AVAILABLE);
        assert_eq!(served.shares[0].directory, PathBuf::from("cephfs:/data"));
    }

    #[test]
    fn what_cannot_be_is_refused_in_words() {
        let refused = |change: &dyn Fn(&mut Asked), why: &str| {
            let mut asked = asked();
            change(&mut asked);
            let found = record_of(&asked, "a").unwrap_err();
            assert!(found.contains(why), "{found}");
        };
        refused(&|asked| asked.name = "Files".to_owned(), "cannot be the name");
        refused(&|asked| asked.addresses.clear(), "no address");
        refused(&|asked| asked.addresses[0] = "eth0".to_owned(), "is not an address");
        refused(&|asked| (asked.smb_port, asked.nfs_port) = (None, None), "both SMB and NFS are off");
        refused(&|asked| asked.shares.clear(), "1 to 1000 shares");
        refused(&|asked| asked.shares.push(asked.shares[0].clone()), "given twice");
        refused(&|asked| asked.shares[0].directory = "data".to_owned(), "is not in CephFS");
        refused(&|asked| asked.shares[0].directory = "cephfs:/../data".to_owned(), "has . or ..");
        refused(&|asked| asked.shares[0].directory = "/srv/data".to_owned(), "is not in CephFS");
        refused(&|asked| asked.shares[0].plan = "gold".to_owned(), "a plan that cannot be");
    }

    #[test]
    fn two_vservers_share_no_address_on_one_port() {
        let one = record_of(&asked(), "a").unwrap();
        let other = VserverRecord { addresses: vec!["192.0.2.10".to_owned()], ..one.clone() };
        assert_eq!(shared_address(&other, &one).as_deref(), Some("192.0.2.10"));
        let apart = VserverRecord { smb: Some(1445), nfs: None, ..other };
        assert_eq!(shared_address(&apart, &one), None);
    }
}
