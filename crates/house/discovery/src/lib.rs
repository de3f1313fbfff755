//! Discovery: clients in the same network find the server without being told its name.
//!
//! Windows lists hosts that answer WS-Discovery ([`wsd`]); macOS and Linux list services of DNS-SD over mDNS ([`mdns`]). One
//! thread does both, on the interfaces at which the server listens. It answers nobody outside of their networks, and does
//! a bounded amount of work for each packet and in each second.
//!
//! This crate knows neither shares nor protocols: whoever starts it says what is to be announced ([`Announced`]).

mod host;
mod interfaces;
mod mdns;
mod wsd;

use std::io;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::LocalSet;

pub use crate::host::{Host, Listening};

use crate::interfaces::Interface;
use crate::mdns::Mdns;
use crate::wsd::Wsd;

/// How often the interfaces and the announcements are looked at anew.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How long the last messages may take at the end.
const FAREWELL: Duration = Duration::from_secs(2);

/// How the server announces itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Protocols {
    /// By WS-Discovery.
    pub wsd: bool,
    /// By DNS-SD over mDNS.
    pub mdns: bool,
}

/// What changes while the server runs.
pub trait Announced: Send {
    /// The names of the shares that everybody may see, and that NFS serves: `NAME` is exported as `/NAME`.
    fn nfs_shares(&self) -> Vec<String>;
}

/// The running discovery. Dropping it withdraws what was announced.
#[derive(Debug)]
pub struct Discovery {
    stop: Option<oneshot::Sender<()>>,
    ended: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Discovery {
    /// Announces a server by these protocols.
    ///
    /// # Errors
    /// The system has no more threads or descriptors.
    pub fn start(protocols: Protocols, host: Host, announced: impl Announced + 'static) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mdns = if protocols.mdns { Some(Mdns::start(&host).map_err(io::Error::other)?) } else { None };
        let ((stop, stopped), (end, ended)) = (oneshot::channel(), sync_channel(1));
        let thread = std::thread::Builder::new().name("discovery".to_owned()).spawn(move || {
            let tasks = LocalSet::new();
            let wsd = (protocols.wsd && host.smb.is_some()).then(|| Wsd::new(&host));
            runtime.block_on(tasks.run_until(run(host, wsd, mdns, announced, stopped)));
            drop(end);
        })?;
        Ok(Self { stop: Some(stop), ended, thread: Some(thread) })
    }
}

impl Drop for Discovery {
    fn drop(&mut self) {
        drop(self.stop.take());
        // The thread ends soon, unless a call of the system hangs.
        let _ = self.ended.recv_timeout(FAREWELL);
        if self.thread.take().is_some_and(|thread| thread.is_finished() && thread.join().is_err()) {
            tracing::error!("the discovery thread ended with a panic");
        }
    }
}

async fn run(
    host: Host,
    mut wsd: Option<Wsd>,
    mut mdns: Option<Mdns>,
    announced: impl Announced,
    mut stopped: oneshot::Receiver<()>,
) {
    let mut look = tokio::time::interval(LOOK_AGAIN);
    loop {
        tokio::select! {
            _ = &mut stopped => break,
            _ = look.tick() => {}
        }
        let interfaces = interfaces::present();
        let at = |listening: &Option<Listening>| -> Vec<Interface> {
            let is_at = |interface: &&Interface| {
                listening.as_ref().is_some_and(|listening| interface.is_listened_at(&listening.addresses))
            };
            interfaces.iter().filter(is_at).cloned().collect()
        };
        let (smb, nfs) = (at(&host.smb), at(&host.nfs));
        if let Some(wsd) = &mut wsd {
            wsd.serve_at(&smb);
        }
        if let Some(mdns) = &mut mdns {
            mdns.announce(&smb, &nfs, &announced.nfs_shares());
        }
    }
    if let Some(wsd) = wsd {
        wsd.end().await;
    }
    if let Some(mdns) = mdns {
        mdns.end();
    }
}
