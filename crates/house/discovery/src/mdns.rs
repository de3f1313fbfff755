//! DNS-SD over mDNS: `_smb._tcp`, and `_nfs._tcp` for each share (RFC 6762, RFC 6763). The `mdns-sd` crate is the responder.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use mdns_sd::{IfKind, ServiceDaemon, ServiceInfo};

use crate::host::Host;
use crate::interfaces::Interface;

const SMB: &str = "_smb._tcp.local.";
const NFS: &str = "_nfs._tcp.local.";
/// The most shares that are announced.
const SHARES_MAX: usize = 256;
/// The most bytes of an instance's name (RFC 6763 4.1.1: one label).
const INSTANCE_BYTES_MAX: usize = 63;
/// How long the responder may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

/// What is announced of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Service {
    of_type: &'static str,
    instance: String,
    addresses: Vec<IpAddr>,
    port: u16,
    /// The path of an export; none for SMB.
    path: Option<String>,
}

/// The responder.
pub(crate) struct Mdns {
    daemon: ServiceDaemon,
    host: Host,
    enabled: Vec<IpAddr>,
    /// By their full names, as the responder knows them.
    announced: HashMap<String, Service>,
}

impl Mdns {
    /// # Errors
    /// The responder cannot be started.
    pub(crate) fn start(host: &Host) -> mdns_sd::Result<Self> {
        let daemon = ServiceDaemon::new()?;
        daemon.disable_interface(IfKind::All)?;
        Ok(Self { daemon, host: host.clone(), enabled: Vec::new(), announced: HashMap::new() })
    }

    /// Announces the services at these interfaces, and withdraws those that are not there any more.
    pub(crate) fn announce(&mut self, smb: &[Interface], nfs: &[Interface], shares: &[String]) {
        if let Err(error) = self.enable(smb, nfs).and_then(|()| self.change(&self.wanted(smb, nfs, shares))) {
            tracing::warn!("mDNS: {error}");
        }
    }

    /// Listens to these interfaces alone.
    fn enable(&mut self, smb: &[Interface], nfs: &[Interface]) -> mdns_sd::Result<()> {
        let mut wanted: Vec<IpAddr> = smb.iter().chain(nfs).map(|interface| interface.address).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let kinds = |addresses: Vec<&IpAddr>| -> Vec<IfKind> {
            addresses.into_iter().map(|address| IfKind::Addr(*address)).collect()
        };
        let gone = kinds(self.enabled.iter().filter(|address| !wanted.contains(address)).collect());
        let come = kinds(wanted.iter().filter(|address| !self.enabled.contains(address)).collect());
        if !gone.is_empty() {
            self.daemon.disable_interface(gone)?;
        }
        if !come.is_empty() {
            self.daemon.enable_interface(come)?;
        }
        self.enabled = wanted;
        Ok(())
    }

    fn wanted(&self, smb: &[Interface], nfs: &[Interface], shares: &[String]) -> Vec<Service> {
        let addresses = |at: &[Interface]| at.iter().map(|interface| interface.address).collect::<Vec<_>>();
        let mut services = Vec::new();
        if let Some(listening) = self.host.smb.as_ref().filter(|_| !smb.is_empty()) {
            let (instance, addresses, port) = (self.host.name.clone(), addresses(smb), listening.port);
            services.push(Service { of_type: SMB, instance, addresses, port, path: None });
        }
        if let Some(listening) = self.host.nfs.as_ref().filter(|_| !nfs.is_empty()) {
            services.extend(shares.iter().take(SHARES_MAX).map(|share| Service {
                of_type: NFS,
                instance: shortened(&format!("{share} on {}", self.host.name)),
                addresses: addresses(nfs),
                port: listening.port,
                path: Some(format!("/{share}")),
            }));
        }
        services
    }

    fn change(&mut self, wanted: &[Service]) -> mdns_sd::Result<()> {
        let gone: Vec<String> = self
            .announced
            .iter()
            .filter(|(_, service)| !wanted.contains(service))
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            self.announced.remove(&name);
            self.daemon.unregister(&name)?;
        }
        let known: Vec<Service> = self.announced.values().cloned().collect();
        for service in wanted.iter().filter(|service| !known.contains(service)) {
            let host = format!("{}.local.", self.host.name);
            let properties: Vec<(&str, &str)> =
                service.path.iter().map(|path| ("path", path.as_str())).collect();
            let Service { of_type, instance, addresses, port, .. } = service;
            let info = ServiceInfo::new(of_type, instance, &host, &addresses[..], *port, &properties[..])?;
            let name = info.get_fullname().to_owned();
            self.daemon.register(info)?;
            self.announced.insert(name, service.clone());
        }
        Ok(())
    }

    /// Withdraws everything.
    pub(crate) fn end(self) {
        if let Ok(ended) = self.daemon.shutdown() {
            // The responder sends its goodbyes before it answers.
            let _ = ended.recv_timeout(GOODBYE);
        }
    }
}

/// As much of a name as one label takes.
fn shortened(name: &str) -> String {
    let mut end = name.len().min(INSTANCE_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.get(..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_between_characters() {
        assert_eq!(shortened("short"), "short");
        assert_eq!(shortened(&"x".repeat(64)).len(), 63);
        assert_eq!(shortened(&"\u{fc}".repeat(40)).len(), 62);
    }
}
