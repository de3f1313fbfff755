//! Addresses by which clients find a service, whichever machine runs it. The machine whose server has the state puts them on an
//! interface, and tells its neighbours that they are here now: by an ARP announcement (RFC 5227), or by an unsolicited neighbour
//! advertisement (RFC 4861). When the server ends, it takes them away again.
//!
//! The invariant: an address that somebody else has put on the interface is announced, and never taken away. The kernel keeps the mark
//! of those that this crate has added (`IFA_PROTO`, Linux 5.18), so that a server knows what one before it, which was killed, has left.

mod address;
mod announce;
mod interface;
mod rtnetlink;

use std::io;
use std::net::IpAddr;

use rustix::thread::CapabilitySet;

pub use crate::address::ServiceAddress;
use crate::announce::Announcer;
use crate::interface::Interface;
pub use crate::interface::carriers;
use crate::rtnetlink::{Place, Present, RouteSocket};

/// What is wrong, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What is wrong, and where.
    pub what: String,
    /// What to do about it.
    pub advice: String,
}

/// A result that fails with an [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Addresses that are on interfaces of this machine for as long as the value lives.
#[derive(Debug, Default)]
pub struct Raised {
    all: Vec<(IpAddr, Interface)>,
    /// Those that are taken away at the end.
    own: Vec<(ServiceAddress, Place)>,
    announcer: Option<Announcer>,
}

/// What becomes of an address that is to be on an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Add,
    /// A server before this one has left it where it is to be.
    TakeOver,
    /// A server before this one has left it elsewhere.
    Move(Place),
    /// Somebody else has put it there.
    Leave,
    /// Somebody else has put it on another interface.
    Refuse,
}

/// Checks that the addresses could be raised, and changes nothing.
///
/// # Errors
/// An interface is not there or is down, or this process lacks the right.
pub fn check(addresses: &[ServiceAddress]) -> Result<()> {
    for address in addresses {
        Interface::named(address)?;
    }
    if let Some(address) = addresses.first() {
        check_rights(address)?;
    }
    Ok(())
}

/// Puts the addresses on their interfaces. They are not announced yet.
///
/// # Errors
/// What [`check`] says, another interface has an address already, or the kernel refuses one. Those that were added are taken away
/// again.
pub fn raise(addresses: &[ServiceAddress]) -> Result<Raised> {
    check(addresses)?;
    let mut raised = Raised::default();
    let Some(first) = addresses.first() else { return Ok(raised) };
    let mut socket = RouteSocket::open().map_err(|e| refused(first, &e))?;
    for address in addresses {
        let interface = Interface::named(address)?;
        let place = Place { index: interface.index, prefix: address.prefix };
        let present = socket.list().map_err(|e| refused(address, &e))?;
        let is_own = match step(address, place, &present) {
            Step::Refuse => return Err(elsewhere(address)),
            Step::Leave => {
                tracing::info!(
                    "{address} is there already, and stays when the server ends: others have added it"
                );
                false
            }
            Step::TakeOver => {
                tracing::info!("{address} is there already: a server that was killed has left it");
                true
            }
            Step::Move(left) => {
                socket.remove(address.address, left).map_err(|e| refused(address, &e))?;
                socket.add(address.address, place).map_err(|e| refused(address, &e))?;
                true
            }
            Step::Add => {
                socket.add(address.address, place).map_err(|e| refused(address, &e))?;
                true
            }
        };
        if is_own {
            raised.own.push((address.clone(), place));
        }
        raised.all.push((address.address, interface));
    }
    Ok(raised)
}

/// Takes away those of the addresses that a server on this machine has left, because it was killed. Those that are gone.
///
/// # Errors
/// The kernel does not say which addresses there are, or refuses to remove one.
pub fn withdraw_left(addresses: &[ServiceAddress]) -> io::Result<Vec<IpAddr>> {
    if addresses.is_empty() {
        return Ok(Vec::new());
    }
    let mut socket = RouteSocket::open()?;
    let left = socket.list()?;
    let is_ours =
        |present: &&Present| present.is_ours && addresses.iter().any(|one| one.address == present.address);
    let mut gone = Vec::new();
    for present in left.iter().filter(is_ours) {
        socket.remove(present.address, present.place)?;
        gone.push(present.address);
    }
    Ok(gone)
}

impl Raised {
    /// Tells the neighbours where the addresses are: now, some seconds later in case they were not heard, and every ten seconds, as long
    /// as they are here.
    pub fn announce(&mut self, are_here: impl Fn() -> bool + Send + 'static) {
        if !self.all.is_empty() {
            self.announcer = Some(Announcer::start(self.all.clone(), are_here));
        }
    }

    /// Takes the addresses away that were not there before.
    pub fn withdraw(&mut self) {
        self.announcer = None;
        self.all.clear();
        for (address, place) in self.own.drain(..) {
            match RouteSocket::open().and_then(|mut socket| socket.remove(address.address, place)) {
                Ok(()) => tracing::info!("{address} is no longer here"),
                Err(e) => tracing::error!("cannot remove {address}: {e}"),
            }
        }
    }
}

impl Drop for Raised {
    fn drop(&mut self) {
        self.withdraw();
    }
}

/// What to do about an address that is to be at this place, with what is there.
fn step(address: &ServiceAddress, place: Place, present: &[Present]) -> Step {
    match present.iter().find(|one| one.address == address.address) {
        None => Step::Add,
        Some(one) if one.is_ours && one.place == place => Step::TakeOver,
        Some(one) if one.is_ours => Step::Move(one.place),
        Some(one) if one.place.index == place.index => Step::Leave,
        Some(_) => Step::Refuse,
    }
}

fn check_rights(address: &ServiceAddress) -> Result<()> {
    let Ok(sets) = rustix::thread::capabilities(None) else { return Ok(()) };
    let wanted = [("CAP_NET_ADMIN", CapabilitySet::NET_ADMIN), ("CAP_NET_RAW", CapabilitySet::NET_RAW)];
    let missing = wanted.iter().filter(|(_, one)| !sets.effective.contains(*one)).map(|(name, _)| *name);
    match missing.collect::<Vec<_>>()[..] {
        [] => Ok(()),
        ref missing => Err(Error {
            what: format!("this process may not raise the service address {address}: it lacks {}", missing.join(" and ")),
            advice: "Start as root, or with these capabilities. The drop-in service-address.conf of the service allows it \
                     (docs/two-machines.md)."
                .to_owned(),
        }),
    }
}

fn refused(address: &ServiceAddress, e: &io::Error) -> Error {
    let advice = match e.kind() {
        io::ErrorKind::PermissionDenied => {
            "Start as root. The drop-in service-address.conf of the service allows it (docs/two-machines.md)."
        }
        _ => "`ip address` lists the addresses of this machine.",
    };
    Error { what: format!("cannot raise the service address {address}: {e}"), advice: advice.to_owned() }
}

fn elsewhere(address: &ServiceAddress) -> Error {
    Error {
        what: format!(
            "the service address {} is on another interface than {} already",
            address.address, address.interface
        ),
        advice: "Remove it there, or name that interface: `ip address` shows which.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_somebody_else_is_left_and_one_that_was_left_is_taken_over() {
        let address: ServiceAddress = "192.0.2.10%eth0/24".parse().unwrap();
        let place = Place { index: 2, prefix: 24 };
        let at = |index, prefix, is_ours| {
            let there = Place { index, prefix };
            let present = Present { address: address.address, place: there, is_ours };
            step(&address, place, &[Present { address: "192.0.2.1".parse().unwrap(), ..present }, present])
        };
        assert_eq!(step(&address, place, &[]), Step::Add);
        assert_eq!(at(2, 24, true), Step::TakeOver);
        assert_eq!(at(2, 32, true), Step::Move(Place { index: 2, prefix: 32 }));
        assert_eq!(at(3, 24, true), Step::Move(Place { index: 3, prefix: 24 }));
        assert_eq!((at(2, 24, false), at(2, 32, false)), (Step::Leave, Step::Leave));
        assert_eq!(at(3, 24, false), Step::Refuse);
    }

    #[test]
    fn loopback_has_a_carrier() {
        assert_eq!(carriers().unwrap().get("lo"), Some(&true));
    }

    #[test]
    fn an_interface_that_is_not_there_is_named_with_those_that_are() {
        let error = check(&["192.0.2.10%none9".parse().unwrap()]).unwrap_err();
        assert!(error.what.contains("no interface none9") && error.advice.contains("lo"), "{error:?}");
        assert_eq!(check(&[]), Ok(()));
    }
}
