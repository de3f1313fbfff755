//! WS-Discovery (April 2005), SOAP over UDP (September 2004) and the metadata of the Devices Profile (February 2006), as far as
//! Windows needs them to list a host. [MS-DPWSSN] and [MS-PBSD] have the types of hosts.

mod http;
mod message;
mod udp;

use std::rc::Rc;
use std::time::{Duration, SystemTime};

use tokio::task::JoinHandle;

use self::message::Endpoint;
use self::udp::Group;
use crate::host::Host;
use crate::interfaces::Interface;

/// How long the last messages may take.
const BYE: Duration = Duration::from_secs(1);

/// The host in the networks of its interfaces.
pub(crate) struct Wsd {
    endpoint: Rc<Endpoint>,
    served: Vec<Served>,
}

/// What runs for one interface.
struct Served {
    interface: Interface,
    group: Rc<Group>,
    tasks: [JoinHandle<()>; 2],
}

impl Wsd {
    pub(crate) fn new(host: &Host) -> Self {
        // "MUST be incremented ... each time the service has gone down, lost state, and came back up" (section 7).
        let instance = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        Self { endpoint: Rc::new(Endpoint::new(host.id, &host.name, instance)), served: Vec::new() }
    }

    /// Answers at these interfaces, and at no other.
    pub(crate) fn serve_at(&mut self, interfaces: &[Interface]) {
        self.served.retain(|served| {
            let stays =
                interfaces.contains(&served.interface) && served.tasks.iter().all(|task| !task.is_finished());
            if !stays {
                served.tasks.iter().for_each(JoinHandle::abort);
            }
            stays
        });
        for interface in interfaces.iter().filter(|interface| interface.v4().is_some()) {
            if self.served.iter().any(|served| served.interface == *interface) {
                continue;
            }
            match self.serve(interface) {
                Ok(served) => self.served.push(served),
                Err(error) => {
                    tracing::warn!("WS-Discovery at {} ({}): {error}", interface.address, interface.name)
                }
            }
        }
    }

    fn serve(&self, interface: &Interface) -> std::io::Result<Served> {
        let group = Rc::new(Group::join(interface, &self.endpoint)?);
        let metadata = http::listen(interface)?;
        let http =
            tokio::task::spawn_local(http::serve(metadata, interface.clone(), Rc::clone(&self.endpoint)));
        let answering = Rc::clone(&group);
        let udp = tokio::task::spawn_local(async move {
            answering.tell_hello().await;
            answering.answer().await;
        });
        Ok(Served { interface: interface.clone(), group, tasks: [http, udp] })
    }

    /// Says that the host goes.
    pub(crate) async fn end(self) {
        for served in &self.served {
            served.tasks.iter().for_each(JoinHandle::abort);
        }
        let farewell = async {
            for served in &self.served {
                served.group.tell_bye().await;
            }
        };
        let _ = tokio::time::timeout(BYE, farewell).await;
    }
}
