//! Values that are impossible by themselves, and values that contradict each other.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use ::share::{Protocols, Terms};
use gateway::settings::same_share_name;

use super::{Given, ListenGiven, NfsTlsGiven, PortmapGiven, Requirement, ShareGiven};
use crate::log_names;
use crate::place::{Section, Wrong};

/// The channels of a session.
const CHANNELS: RangeInclusive<u32> = 1..=32;
/// Seconds of an NFSv4 client's lease.
const NFS_LEASE: RangeInclusive<u32> = 10..=3600;

impl Given {
    /// Adds what is wrong with the values.
    pub(super) fn check(&self, wrong: &mut Vec<Wrong>) {
        let mut add = |key, what: String, advice: &str| {
            wrong.push(Wrong::new(Section::Server, key, what, advice));
        };
        if let Some(channels) = self.max_channels.filter(|channels| !CHANNELS.contains(channels)) {
            let what = format!("max-channels is {channels}");
            add("max-channels", what, "Give a number from 1 (multichannel off) to 32.");
        }
        if let Some(lease) = self.nfs_lease.filter(|lease| !NFS_LEASE.contains(lease)) {
            let advice = "Give 10 to 3600 seconds: clients renew the lease several times within it.";
            add("nfs-lease", format!("nfs-lease is {lease}"), advice);
        }
        if let Some(address) = self.two_machines.repeated() {
            let what = format!("service-address: the address {address} is given twice");
            add("service-address", what, "Remove one.");
        }
        if let Some(what) = self.cluster.wrong_name() {
            add("cluster-gateway", what, "Give it the name of its machine, for example.");
        }
        for (key, what, advice) in self.access_log.check() {
            add(key, what, advice);
        }
        let nfs_is_off = !self.nfs.is_empty() && self.nfs.iter().all(|at| *at == ListenGiven::Off);
        if nfs_is_off && self.portmap.is_some_and(|portmap| portmap != PortmapGiven::Off) {
            let what = "portmap is for clients of NFSv3, and NFS is off".to_owned();
            add("portmap", what, "Give NFS an address, or leave portmap out.");
        }
        if let Some(Err(problem)) = self.log.as_deref().map(log_names::parse) {
            add("log", problem.what, &problem.advice);
        }
        let advice = "Give both control-certificate and control-key, or neither.";
        match (&self.control_certificate, &self.control_key) {
            (Some(_), None) => {
                add(
                    "control-certificate",
                    "the control address has a certificate and no key".to_owned(),
                    advice,
                );
            }
            (None, Some(_)) => {
                add("control-key", "the control address has a key and no certificate".to_owned(), advice);
            }
            _ => {}
        }
        self.check_names(wrong);
        self.check_policies(wrong);
        self.check_encryption(wrong);
        self.check_nfs_tls(wrong);
        self.check_quic(wrong);
    }

    /// Shares with a snapshot policy that nobody declares.
    fn check_policies(&self, wrong: &mut Vec<Wrong>) {
        let is_declared = |name: &str| {
            let names = self.snapshot_policy.iter().map(|policy| policy.0.policy.name());
            name.is_empty() || names.into_iter().any(|declared| declared.eq_ignore_ascii_case(name))
        };
        for share in self.share.iter().filter(|share| !is_declared(&share.0.snapshot_policy)) {
            let (name, policy) = (&share.0.name, &share.0.snapshot_policy);
            let what = format!("the share {name}: no snapshot policy {policy} is declared");
            let advice = format!("Declare it: [[snapshot-policy]] with name = \"{policy}\"");
            wrong.push(Wrong::new(Section::share(name), "snapshot-policy", what, advice));
        }
    }

    /// Names that several shares or users have. Those of a file are unique; those of flags may not be.
    fn check_names(&self, wrong: &mut Vec<Wrong>) {
        let advice = "Names are compared without regard to case.";
        let shares: Vec<&str> = self.share.iter().map(|share| share.0.name.as_str()).collect();
        let users: Vec<&str> = self.user.iter().map(|user| user.name.as_str()).collect();
        for name in repeated(&shares, same_share_name) {
            let what = format!("two shares have the name {name}");
            wrong.push(Wrong::new(Section::share(name), "name", what, advice));
        }
        let moved: Vec<&str> = self.moved_share.iter().map(|moved| moved.0.name.as_str()).collect();
        for name in repeated(&moved, same_share_name) {
            let what = format!("moved-share: the share {name} is given twice");
            wrong.push(Wrong::new(
                Section::Server,
                "moved-share",
                what,
                "Give all addresses of one server together: NAME=ADDR,ADDR",
            ));
        }
        for name in moved.iter().filter(|name| shares.iter().any(|share| same_share_name(share, name))) {
            let what = format!("moved-share: the share {name} is declared, too");
            let advice = "Remove the declaration of the share if another server has it, otherwise this one.";
            wrong.push(Wrong::new(Section::Server, "moved-share", what, advice));
        }
        for name in repeated(&users, auth::same_name) {
            let what = format!("two users have the name {name}");
            wrong.push(Wrong::new(Section::user(name), "name", what, advice));
        }
    }

    fn check_encryption(&self, wrong: &mut Vec<Wrong>) {
        if self.smb_encryption != Some(Requirement::Off) {
            return;
        }
        let is_for_smb = |share: &&ShareGiven| share.0.rules.protocols.contains(Protocols::SMB);
        let encrypted = self.share.iter().filter(|share| share.0.terms.contains(Terms::ENCRYPTED));
        for share in encrypted.filter(is_for_smb) {
            let name = &share.0.name;
            wrong.push(Wrong::new(
                Section::share(name),
                "encrypted",
                format!("the share {name} is encrypted, and smb-encryption is off"),
                "Nobody could use it. Remove smb-encryption, or remove `encrypted` from the share.",
            ));
        }
    }

    fn check_nfs_tls(&self, wrong: &mut Vec<Wrong>) {
        let tls = self.nfs_tls.unwrap_or(NfsTlsGiven::Off);
        let mut add = |key, what: &str, advice: &str| {
            wrong.push(Wrong::new(Section::Server, key, what.to_owned(), advice));
        };
        if tls != NfsTlsGiven::Off && self.control_certificate.is_none() {
            let advice =
                "Give control-certificate and control-key: NFS shows the certificate of the control address.";
            add("nfs-tls", "NFS over TLS has no certificate", advice);
        }
        if tls == NfsTlsGiven::Mutual && self.nfs_client_ca.is_none() {
            let advice = "Give the certificates of those who certify clients: nfs-client-ca";
            add("nfs-tls", "nfs-tls is mutual, and no client has a certificate that counts", advice);
        }
    }

    fn check_quic(&self, wrong: &mut Vec<Wrong>) {
        let mut add = |key, what: String, advice: &str| {
            wrong.push(Wrong::new(Section::Server, key, what, advice));
        };
        if self.smb_quic.is_empty() {
            return;
        }
        if !gateway::HAS_QUIC {
            let what = "this program was built without QUIC".to_owned();
            add("smb-quic", what, "Leave smb-quic out, or use a program that has it.");
        }
        if self.control_certificate.is_none() {
            let advice = "Give control-certificate and control-key: SMB over QUIC shows the certificate of the control address.";
            add("smb-quic", "SMB over QUIC has no certificate".to_owned(), advice);
        }
        let is_repeated = |(n, at): (usize, &SocketAddr)| {
            at.port() != 0 && self.smb_quic.iter().take(n).any(|before| before == at)
        };
        if let Some((_, at)) = self.smb_quic.iter().enumerate().find(|(n, at)| is_repeated((*n, at))) {
            add("smb-quic", format!("smb-quic: the address {at} is given twice"), "Remove one.");
        }
    }
}

/// The names that are the same as an earlier one.
fn repeated<'n>(names: &[&'n str], same: impl Fn(&str, &str) -> bool) -> Vec<&'n str> {
    let is_repeated = |(n, name): &(usize, &&str)| names.iter().take(*n).any(|before| same(before, name));
    names.iter().enumerate().filter(is_repeated).map(|(_, name)| *name).collect()
}
