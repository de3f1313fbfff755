//! The interfaces of this machine.

use std::collections::BTreeMap;
use std::io;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::LinkAddr;

use crate::{Error, Result, ServiceAddress};

/// Ethernet, in the numbers of ARP (RFC 826; linux/if_arp.h: `ARPHRD_ETHER`).
const ETHERNET: u16 = 1;

/// An interface that is up.
#[derive(Debug, Clone)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) index: u32,
    /// None: it has no address of Ethernet, so that there are no neighbours to tell.
    pub(crate) ethernet: Option<Ethernet>,
}

/// Where frames of an Ethernet leave this machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ethernet {
    pub(crate) link: LinkAddr,
    pub(crate) address: [u8; 6],
}

/// All interfaces of this machine by name, and whether each has a carrier: it is up, and at the other end of the cable is something
/// (netdevice(7): `IFF_UP`, `IFF_RUNNING`).
///
/// # Errors
/// The system does not say.
pub fn carriers() -> io::Result<BTreeMap<String, bool>> {
    let wanted = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING;
    Ok(getifaddrs()?.map(|one| (one.interface_name, one.flags.contains(wanted))).collect())
}

impl Interface {
    /// The interface that an address is to be on.
    ///
    /// # Errors
    /// It is not there, or is down.
    pub(crate) fn named(wanted: &ServiceAddress) -> Result<Self> {
        let cannot = |why: String, advice: String| Error {
            what: format!("cannot raise the service address {wanted}: {why}"),
            advice,
        };
        let all = getifaddrs().map_err(|e| {
            cannot(format!("the system does not say which interfaces there are: {e}"), String::new())
        })?;
        // Each interface has one entry with its link-layer address, whatever that is.
        let mut links: Vec<_> = all
            .filter_map(|one| Some((one.interface_name, one.flags, *one.address?.as_link_addr()?)))
            .collect();
        links.sort_by(|one, other| one.0.cmp(&other.0));
        let Some((name, flags, link)) = links.iter().find(|(name, ..)| *name == wanted.interface) else {
            let names: Vec<_> = links.iter().map(|(name, ..)| name.as_str()).collect();
            let why = format!("there is no interface {}", wanted.interface);
            return Err(cannot(why, format!("The interfaces of this machine are: {}", names.join(", "))));
        };
        if !flags.contains(InterfaceFlags::IFF_UP) {
            let advice = format!("ip link set {name} up");
            return Err(cannot(format!("the interface {name} is down"), advice));
        }
        let is_ethernet = link.hatype() == ETHERNET && !flags.contains(InterfaceFlags::IFF_LOOPBACK);
        let ethernet = link.addr().filter(|_| is_ethernet).map(|address| Ethernet { link: *link, address });
        let index = u32::try_from(link.ifindex()).unwrap_or_default();
        Ok(Self { name: name.clone(), index, ethernet })
    }
}
