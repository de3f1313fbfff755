//! The connections to the control address: their number is limited, and one address cannot have all of them. When there
//! is no room left, the connection that has been silent for longest gives way.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Limits of the connections to the control address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ControlLimits {
    /// The most connections at a time.
    pub(crate) connections_max: usize,
    /// The most connections of one address.
    pub(crate) of_one_address_max: usize,
    /// The time until the head of a request must be complete, including the TLS handshake.
    pub(crate) head_time: Duration,
    /// The time from the beginning of the connection to the last byte of the answer.
    pub(crate) connection_time: Duration,
}

impl Default for ControlLimits {
    fn default() -> Self {
        Self {
            connections_max: 64,
            of_one_address_max: 32,
            head_time: Duration::from_secs(10),
            connection_time: Duration::from_secs(30),
        }
    }
}

/// The open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    limits: ControlLimits,
    /// Guards the list, oldest first.
    entries: Mutex<Vec<OpenConnection>>,
}

#[derive(Debug)]
struct OpenConnection {
    address: IpAddr,
    has_asked: Arc<AtomicBool>,
    /// Dropped when the connection must end.
    _stay: oneshot::Sender<()>,
}

/// A connection's place, held until this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    connections: Arc<Connections>,
    has_asked: Arc<AtomicBool>,
    stay: oneshot::Receiver<()>,
}

impl Connections {
    pub(crate) fn new(limits: ControlLimits) -> Arc<Self> {
        Arc::new(Self { limits, entries: Mutex::default() })
    }

    /// A place for a connection from this address. None if there is no room and all others wait for an answer.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let mut entries = self.entries.lock();
        let of_address = entries.iter().filter(|entry| entry.address == address).count();
        let from = (of_address >= self.limits.of_one_address_max).then_some(address);
        if from.is_some() || entries.len() >= self.limits.connections_max {
            let gives_way = |entry: &OpenConnection| {
                !entry.has_asked.load(Ordering::Relaxed)
                    && from.is_none_or(|address| entry.address == address)
            };
            let oldest = entries.iter().position(gives_way)?;
            entries.remove(oldest);
        }
        let (sender, stay) = oneshot::channel();
        let has_asked = Arc::new(AtomicBool::new(false));
        entries.push(OpenConnection { address, has_asked: Arc::clone(&has_asked), _stay: sender });
        drop(entries);
        Some(Place { connections: Arc::clone(self), has_asked, stay })
    }
}

impl Place {
    /// The flag to set when the head of a request is complete. From then on the connection does not give way.
    pub(crate) fn has_asked(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.has_asked)
    }

    /// Waits until the connection must give way to another one.
    pub(crate) async fn must_go(&mut self) {
        let _ = (&mut self.stay).await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.entries.lock().retain(|entry| !Arc::ptr_eq(&entry.has_asked, &self.has_asked));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connections() -> Arc<Connections> {
        Connections::new(ControlLimits {
            connections_max: 4,
            of_one_address_max: 2,
            ..ControlLimits::default()
        })
    }

    fn address(n: u8) -> IpAddr {
        [127, 0, 0, n].into()
    }

    fn is_there(place: &mut Place) -> bool {
        matches!(place.stay.try_recv(), Err(oneshot::error::TryRecvError::Empty))
    }

    #[test]
    fn the_oldest_silent_one_of_an_address_gives_way_to_a_further_one() {
        let connections = connections();
        let [mut other, mut first, mut second] = [2, 1, 1].map(|n| connections.enter(address(n)).unwrap());
        assert!(is_there(&mut first) && is_there(&mut second));
        let mut third = connections.enter(address(1)).unwrap();
        assert!(!is_there(&mut first), "two of one address at a time");
        assert!(is_there(&mut second) && is_there(&mut third) && is_there(&mut other));
        drop(second);
        let _fourth = connections.enter(address(1)).unwrap();
        assert!(is_there(&mut third), "there was room");
    }

    #[test]
    fn who_waits_for_an_answer_does_not_give_way() {
        let connections = connections();
        let mut places = [1, 1, 2, 2].map(|n| connections.enter(address(n)).unwrap());
        places[..3].iter().for_each(|place| place.has_asked().store(true, Ordering::Relaxed));
        assert!(connections.enter(address(1)).is_none(), "both of the address wait");
        let last = connections.enter(address(3)).unwrap();
        assert!(!is_there(&mut places[3]), "the only one that is silent");
        last.has_asked().store(true, Ordering::Relaxed);
        assert!(connections.enter(address(3)).is_none() && connections.enter(address(4)).is_none());
        assert_eq!(connections.entries.lock().len(), 4);
        drop((places, last));
        assert_eq!(connections.entries.lock().len(), 0);
    }
}
