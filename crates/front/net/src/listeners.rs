//! Listeners and tasks that begin and end together, while the shards and what else runs there go on.

use std::future::Future;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::SockRef;

use crate::crew::{self, Crew, Group};
use crate::shards::{Door, Shared, accept_all};
use crate::stop::Present;
use crate::{Listener, Service, Term};

/// Connections that may wait to be accepted, as far as the system allows (net.core.somaxconn): many may arrive at once.
const BACKLOG: i32 = 4096;
/// How often to look whether all has ended.
const LOOK: Duration = Duration::from_millis(1);

/// Listeners, their connections, and tasks. When this is dropped, they are told to end.
#[derive(Debug)]
pub struct Listeners {
    crew: Arc<Crew>,
    shared: Shared,
    group: Group,
    present: Present,
}

/// Makes [`Listeners`] of running shards, for those who do not have the shards.
#[derive(Debug, Clone)]
pub struct NewListeners {
    pub(crate) crew: Arc<Crew>,
    pub(crate) shared: Shared,
}

impl NewListeners {
    /// There are none yet. When the `term` is over, their connections get nothing any more.
    #[must_use]
    pub fn make(&self, term: Term) -> Listeners {
        Listeners::new(&self.crew, &self.shared, Some(term))
    }
}

impl Listeners {
    pub(crate) fn new(crew: &Arc<Crew>, shared: &Shared, term: Option<Term>) -> Self {
        let (group, present) = crew.open_group(term);
        Self { crew: Arc::clone(crew), shared: shared.clone(), group, present }
    }

    /// Serves the connections that arrive at any of the `listeners`. All listeners of the same shards share the places of
    /// the services of one name, so that more addresses do not admit more connections.
    ///
    /// # Errors
    /// A listener cannot be made non-blocking, or its address cannot be had once for each shard.
    pub fn listen_at_all<S: Service>(
        &self,
        listeners: impl IntoIterator<Item = impl Into<Listener>>,
        service: Arc<S>,
    ) -> io::Result<()> {
        let places = self.shared.occupancy.places(service.name(), service.connections());
        let door = Door::new(service, &self.crew, self.group, &self.shared, places);
        for listener in listeners {
            match listener.into() {
                Listener::Tcp(listener) => self.accept_at(listener, &door)?,
                #[cfg(feature = "quic")]
                Listener::Quic(listener) => listener.open(&self.crew, &door)?,
            }
        }
        Ok(())
    }

    fn accept_at<S: Service>(&self, listener: TcpListener, door: &Door<S>) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        SockRef::from(&listener).listen(BACKLOG)?;
        let door = door.clone();
        self.begin(Box::new(move |stop| {
            let (listener, door) = (listener.try_clone()?, door.clone());
            Ok(Box::new(move || {
                tokio::task::spawn_local(accept_all(listener, door, stop));
            }))
        }))
    }

    /// Runs a task beside the connections. The task runs until it is done, or is dropped at the end. If its shard is
    /// given up, `make` starts it again.
    ///
    /// # Errors
    /// The shards have ended.
    pub fn spawn<F>(&self, make: impl Fn() -> F + Send + Sync + 'static) -> io::Result<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.begin(Box::new(move |mut stop| {
            let task = make();
            let until_stopped = async move {
                tokio::select! {
                    () = task => {}
                    () = stop.given() => {}
                }
            };
            Ok(Box::new(move || {
                tokio::task::spawn_local(until_stopped);
            }))
        }))
    }

    /// Starts something on the first shard, and on the shard that takes its place.
    pub(crate) fn begin(&self, start: crew::Start) -> io::Result<()> {
        self.crew.begin(self.group, 0, start)
    }

    /// Accepts no more connections, ends those that are there, and waits until they have cleaned up and what they have
    /// changed is done. Returns false if that takes longer. No shard must call this.
    #[must_use]
    pub fn end(self, within: Duration) -> bool {
        self.crew.end_group(self.group);
        let deadline = Instant::now() + within;
        while !self.present.is_last() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        self.crew.end_group(self.group);
    }
}
