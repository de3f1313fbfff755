//! A gateway as one of a cluster. What is to be is in the register ([`state::cluster::Register`]): which gateways there are, and which of
//! them is to serve which vserver. Commands change the register; each gateway looks at it, and does its part ([`keeper`]). So a command
//! may be given to any gateway, and one that was not there when something was decided does its part when it is back.

mod accounts;
mod attempts;
mod calls;
mod carriers;
mod changes;
mod definition;
mod keeper;
mod keytabs;
mod placement;
mod share_changes;
mod shares;
mod troubles;
mod users;
mod went;

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use state::cluster::{ClusterStore, Fenced, Listening, Register};
use state::store::StoreError;

use crate::problem::{Cause, Problem, Result, serving};
use crate::settings::{CephPlace, ClusterSettings};
use crate::vserver_commands::Host;

/// The namespace in the pool.
const NAMESPACE: &str = "anabranch";

/// Connects to the store in which the gateways of a cluster agree.
pub type Connect = Box<dyn Fn() -> std::result::Result<Arc<dyn ClusterStore>, state::Error> + Send + Sync>;

/// See the module.
pub(crate) struct Seat {
    host: Arc<Host>,
    settings: ClusterSettings,
    connect: Connect,
    /// Guards the connection; None: there is none yet, or it was of no use any more.
    connected: Mutex<Option<Connected>>,
    /// Guards why this gateway has no place, or cannot do its part.
    problem: Mutex<Option<String>>,
    /// Guards which interfaces of this gateway have no carrier, as far as vservers use them.
    cut_off: Mutex<Vec<String>>,
    wake: mpsc::Sender<Wake>,
}

/// A connection to the store, on which is heard what changes.
struct Connected {
    store: Arc<dyn ClusterStore>,
    /// None: nobody has made the cluster.
    register: Option<Arc<Register>>,
    listening: Option<Box<dyn Listening>>,
}

/// Why the keeper is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wake {
    Look,
    End,
}

/// The thread that does what the register says, until this is dropped.
#[derive(Debug)]
pub(crate) struct Seated {
    wake: mpsc::Sender<Wake>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Seated {
    /// A gateway of a cluster whose gateways agree in RADOS. It connects when it can.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn of_rados(host: &Arc<Host>, settings: &ClusterSettings, ceph: &CephPlace) -> Result<Self> {
        let place = rados::Place {
            configuration: ceph.configuration.clone(),
            user: ceph.user.clone(),
            pool: settings.pool.clone(),
            namespace: NAMESPACE.to_owned(),
        };
        let name = settings.gateway.clone();
        let connect = move || {
            rados::Gateway::connect(&place, &name).map(|store| Arc::new(store) as Arc<dyn ClusterStore>)
        };
        Self::begin(host, settings.clone(), Box::new(connect))
    }

    /// # Errors
    /// The system has no more threads.
    pub(crate) fn begin(host: &Arc<Host>, settings: ClusterSettings, connect: Connect) -> Result<Self> {
        let (wake, woken) = mpsc::channel();
        let seat = Arc::new(Seat {
            host: Arc::clone(host),
            settings,
            connect,
            connected: Mutex::default(),
            problem: Mutex::default(),
            cut_off: Mutex::default(),
            wake: wake.clone(),
        });
        let told = Arc::downgrade(&seat);
        host.administration.set_seat(told);
        let thread = std::thread::Builder::new().name("cluster".to_owned());
        let thread =
            thread.spawn(move || keeper::keep(&seat, &woken)).map_err(serving("cannot start a thread"))?;
        Ok(Self { wake, thread: Some(thread) })
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        // The thread may have failed.
        let _ = self.wake.send(Wake::End);
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that does what the cluster says has failed");
        }
    }
}

impl Seat {
    fn name(&self) -> &str {
        &self.settings.gateway
    }

    /// The store. It is connected to if it is not.
    fn store(&self) -> Result<Arc<dyn ClusterStore>> {
        let mut connected = self.connected.lock();
        if let Some(connected) = &*connected {
            return Ok(Arc::clone(&connected.store));
        }
        let store = (self.connect)()?;
        *connected = Some(Connected { store: Arc::clone(&store), register: None, listening: None });
        Ok(store)
    }

    /// The register; None: nobody has made the cluster.
    fn register(&self) -> Result<Option<Arc<Register>>> {
        // It connects.
        self.store()?;
        self.listened_register().map_err(|error| self.failed(&error))
    }

    /// The register in the store that is connected to, on which this gateway listens from now on.
    fn listened_register(&self) -> std::result::Result<Option<Arc<Register>>, StoreError> {
        let mut guard = self.connected.lock();
        let Some(connected) = guard.as_mut() else { return Ok(None) };
        if connected.register.is_none() {
            connected.register = Register::open(&connected.store)?.map(Arc::new);
        }
        let Some(register) = &connected.register else { return Ok(None) };
        if connected.listening.as_ref().is_none_or(|listening| listening.is_broken()) {
            connected.listening = None;
            let wake = self.wake.clone();
            let heard = Box::new(move || wake.send(Wake::Look).unwrap_or_default());
            connected.listening = Some(register.listen(heard)?);
        }
        Ok(Some(Arc::clone(register)))
    }

    /// Connects anew the next time.
    fn disconnect(&self) {
        let connected = self.connected.lock().take();
        // What is under way at another thread keeps it for as long.
        drop(connected);
    }

    /// The problem of a store that does not do what it is asked.
    fn trouble(&self, error: &StoreError) -> Problem {
        let advice = if error.is::<Fenced>() {
            "It connects anew by itself."
        } else {
            "Look whether the cluster is well: ceph -s"
        };
        Problem::new(Cause::Silent, format!("the cluster of the gateway {}: {error}", self.name()), advice)
    }

    /// Has all gateways look at the register, this one too. Nobody waits until they have.
    fn tell(&self, register: &Arc<Register>) {
        let _ = self.wake.send(Wake::Look);
        let register = Arc::clone(register);
        let told = std::thread::Builder::new().name("cluster-tell".to_owned()).spawn(move || {
            if let Err(error) = register.tell() {
                tracing::debug!("the other gateways were not told: {error}");
            }
        });
        if let Err(error) = told {
            tracing::debug!("the other gateways are not told: {error}");
        }
    }
}
