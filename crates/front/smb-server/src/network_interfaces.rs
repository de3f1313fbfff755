//! The addresses to which clients may open further channels, as reported by FSCTL_QUERY_NETWORK_INTERFACE_INFO.
//!
//! They are read from the kernel each time, unless the administrator names them. Addresses that clients could not use
//! are left out: those on which the server does not listen, link-local ones, and those of interfaces that are down. The
//! loopback interface is reported only if the server listens on nothing else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use net::InterfaceAddr;
use parking_lot::Mutex;

use crate::config::{GivenInterface, Interface, Interfaces};

/// How long an answer of the kernel is valid.
const FRESH: Duration = Duration::from_secs(1);
/// The assumed speed of an interface with an unknown speed, in bits per second. As a rule, such an interface is
/// virtual.
const LINK_SPEED: u64 = 10_000_000_000;
/// The most addresses that a client gets.
const ADDRESSES_MAX: usize = 256;
/// Numbers of interfaces that the kernel does not know begin here.
const UNKNOWN_INDEX: u32 = 1 << 24;

/// The addresses that are reported to clients, read again when they are a second old.
#[derive(Debug)]
pub(crate) struct NetworkInterfaces {
    settings: Interfaces,
    /// Guards what was read last, and when.
    read: Mutex<Option<(Instant, Arc<[Interface]>)>>,
}

impl NetworkInterfaces {
    /// The addresses of a server with these settings.
    pub(crate) fn new(settings: Interfaces) -> Self {
        Self { settings, read: Mutex::new(None) }
    }

    /// The addresses, if they were read a moment ago.
    pub(crate) fn fresh(&self) -> Option<Arc<[Interface]>> {
        let read = self.read.lock();
        read.as_ref().filter(|(at, _)| at.elapsed() < FRESH).map(|(_, interfaces)| Arc::clone(interfaces))
    }

    /// The current addresses. This may wait for the kernel, so it must not run on a shard, unless
    /// [`NetworkInterfaces::fresh`] has returned them.
    pub(crate) fn current(&self) -> Arc<[Interface]> {
        if let Some(fresh) = self.fresh() {
            return fresh;
        }
        let known = net::interface_addrs().unwrap_or_else(|e| {
            tracing::warn!("the system does not tell its addresses: {e}");
            Vec::new()
        });
        let told: Arc<[Interface]> = told(&self.settings, &known).into();
        *self.read.lock() = Some((Instant::now(), Arc::clone(&told)));
        told
    }
}

/// The addresses for clients when the kernel has these.
fn told(settings: &Interfaces, known: &[InterfaceAddr]) -> Vec<Interface> {
    let Interfaces { listen, given } = settings;
    if !given.is_empty() {
        return (UNKNOWN_INDEX..).zip(given).map(|(index, given)| as_given(given, index, known)).collect();
    }
    let usable = known.iter().filter(|known| known.is_listened_on(listen));
    usable.take(ADDRESSES_MAX).map(of_kernel).collect()
}

fn of_kernel(known: &InterfaceAddr) -> Interface {
    Interface {
        index: known.index,
        address: known.address,
        link_speed: known.link_speed.unwrap_or(LINK_SPEED),
        // A process receives the data that it sends to its own machine on the processor that it runs on.
        rss: known.receive_queues > 1 || known.is_loopback,
    }
}

/// An interface with the administrator's values. Values that the administrator did not give come from the kernel, if it
/// has the address.
fn as_given(given: &GivenInterface, unknown_index: u32, known: &[InterfaceAddr]) -> Interface {
    let known = known.iter().find(|known| known.address == given.address).map(of_kernel);
    let default =
        Interface { index: unknown_index, address: given.address, link_speed: LINK_SPEED, rss: false };
    let known = known.unwrap_or(default);
    Interface {
        link_speed: given.link_speed.unwrap_or(known.link_speed),
        rss: given.rss || known.rss,
        ..known
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn known(index: u32, address: &str, link_speed: Option<u64>, receive_queues: usize) -> InterfaceAddr {
        let address: IpAddr = address.parse().unwrap();
        let is_loopback = address.is_loopback();
        InterfaceAddr { index, name: format!("if{index}"), address, link_speed, receive_queues, is_loopback }
    }

    fn machine() -> Vec<InterfaceAddr> {
        vec![
            known(1, "127.0.0.1", None, 1),
            known(1, "::1", None, 1),
            known(2, "10.0.0.1", Some(25_000_000_000), 8),
            known(2, "2001:db8::1", Some(25_000_000_000), 8),
            known(2, "fe80::1", Some(25_000_000_000), 8),
            known(3, "192.168.1.1", None, 1),
            known(4, "169.254.3.4", None, 4),
        ]
    }

    fn told_at(listen: &str) -> Vec<(u32, String, u64, bool)> {
        let listen = listen.split_whitespace().map(|address| address.parse().unwrap()).collect();
        let settings = Interfaces { listen, given: Vec::new() };
        let row = |told: Interface| (told.index, told.address.to_string(), told.link_speed, told.rss);
        told(&settings, &machine()).into_iter().map(row).collect()
    }

    #[test]
    fn clients_are_told_of_the_addresses_that_they_can_use() {
        let wired = |address: &str| (2, address.to_owned(), 25_000_000_000, true);
        let other = (3, "192.168.1.1".to_owned(), LINK_SPEED, false);
        assert_eq!(told_at("0.0.0.0"), [wired("10.0.0.1"), other.clone()]);
        assert_eq!(told_at("::"), [wired("10.0.0.1"), wired("2001:db8::1"), other.clone()]);
        assert_eq!(told_at("10.0.0.1"), [wired("10.0.0.1")]);
        assert_eq!(told_at("192.168.1.1"), [other]);
        assert_eq!(told_at("127.0.0.1"), [(1, "127.0.0.1".to_owned(), LINK_SPEED, true)]);
        assert_eq!(told_at("fe80::1"), []);
        assert_eq!(told_at("192.168.1.2"), []);
        assert_eq!(told_at(""), []);
        assert_eq!(told_at("0.0.0.0 ::"), told_at("::"));
        assert_eq!(told_at("192.168.1.1 10.0.0.1"), [wired("10.0.0.1"), told_at("192.168.1.1")[0].clone()]);
        assert_eq!(told_at("127.0.0.1 10.0.0.1"), [wired("10.0.0.1")]);
        assert_eq!(told_at("127.0.0.1 ::1").len(), 2);
    }

    #[test]
    fn what_the_administrator_says_goes_before_what_the_kernel_says() {
        let given = |address: &str, link_speed, rss| GivenInterface {
            address: address.parse().unwrap(),
            link_speed,
            rss,
        };
        let given = vec![
            given("192.168.1.1", Some(1_000), true),
            given("10.0.0.1", None, false),
            given("203.0.113.1", None, false),
        ];
        let told = told(&Interfaces { listen: vec!["10.0.0.1".parse().unwrap()], given }, &machine());
        let rows: Vec<_> = told.iter().map(|told| (told.index, told.link_speed, told.rss)).collect();
        let unknown = (UNKNOWN_INDEX + 2, LINK_SPEED, false);
        assert_eq!(rows, [(3, 1_000, true), (2, 25_000_000_000, true), unknown]);
    }

    #[test]
    fn they_are_read_once_a_moment() {
        let listen = vec!["127.0.0.1".parse().unwrap()];
        let interfaces = NetworkInterfaces::new(Interfaces { listen, given: Vec::new() });
        assert!(interfaces.fresh().is_none());
        let read = interfaces.current();
        assert_eq!(read.len(), 1);
        assert!(Arc::ptr_eq(&read, &interfaces.current()));
    }
}
