//! What of the settings counts from the next start on.

use super::Given;

/// The names of the settings of which this is true.
pub(super) fn named<const N: usize>(
    settings: [(&'static str, bool); N],
) -> impl Iterator<Item = &'static str> {
    settings.into_iter().filter_map(|(name, is_so)| is_so.then_some(name))
}

impl Given {
    /// The settings of `other` that a server that was started with these settings uses as soon as it reads them.
    pub(crate) fn used_at_once(&self, other: &Self) -> Vec<&'static str> {
        let mut names = vec![
            "share",
            "moved-share",
            "snapshot-policy",
            "pool",
            "continuous-availability",
            "deleted-share-retention",
            "user",
            "password-file",
            "keytab",
            "domain-id-base",
            "domain-id-mapping",
            "domain-nss-names",
            "domain-ldap-server",
            "domain-ldap-base",
            "domain-ldap-account",
            "domain-ldap-password-file",
            "domain-ldap-ca",
            "domain-sid",
            "trusted-domains",
            "account-realm",
            "realm",
            "admins",
            "access-log-file",
            "access-log-mib",
            "access-log-files",
            "access-log-syslog",
            "access-log-journal",
            "access-log-kinds",
            "access-log-outcomes",
            "access-log-users",
            "access-log-except-users",
        ];
        if self.is_certificate_used_at_once(other) {
            names.extend(["control-certificate", "control-key"]);
        }
        names
    }

    /// Whether a server that was started with these settings uses the certificate of `other` at once. Whether the
    /// control address has a configured certificate at all is decided at the start.
    pub(crate) fn is_certificate_used_at_once(&self, other: &Self) -> bool {
        self.control_certificate.is_some() && other.control_certificate.is_some()
    }

    /// The names of the settings for measurements that differ.
    fn measurements_differ(&self, other: &Self) -> impl Iterator<Item = &'static str> {
        named([
            ("bench-metadata-latency", self.bench_metadata_latency != other.bench_metadata_latency),
            ("bench-accounting", self.bench_accounting != other.bench_accounting),
        ])
    }

    /// Of the settings of the control address's certificate, those that differ and count from the next start on.
    fn certificates_differ(&self, other: &Self) -> impl Iterator<Item = &'static str> + use<> {
        let is_late = !self.is_certificate_used_at_once(other);
        named([
            ("control-certificate", is_late && self.control_certificate != other.control_certificate),
            ("control-key", is_late && self.control_key != other.control_key),
        ])
    }

    /// Of the settings of the log, those that differ.
    fn log_differs(&self, other: &Self) -> impl Iterator<Item = &'static str> + use<> {
        named([("log-format", self.log_format != other.log_format), ("log", self.log != other.log)])
    }

    /// Of the settings of several machines, those that differ.
    fn machines_differ(&self, other: &Self) -> impl Iterator<Item = &'static str> {
        let of_ceph = self.cluster.differ(&other.cluster).chain(self.ceph.differ(&other.ceph));
        of_ceph.chain(self.two_machines.differ(&other.two_machines))
    }

    /// The names of the settings that differ here and count from the next start on: all but [`Self::used_at_once`].
    pub(crate) fn differs_until_restart(&self, other: &Self) -> Vec<&'static str> {
        let Self {
            from: _,
            share: _,
            moved_share: _,
            snapshot_policy: _,
            pool: _,
            continuous_availability: _,
            user: _,
            password_file: _,
            access_log: _,
            kerberos: _,
            deleted_shares: _,
            admins: _,
            smb,
            smb_quic,
            nfs,
            control,
            control_name,
            control_certificate: _,
            control_key: _,
            state,
            smb_signing,
            smb_encryption,
            ntlm,
            smb_encryption_over_quic,
            smb_channel_binding,
            max_channels,
            connections_per_address,
            smb_interface,
            nfs_tls,
            nfs_client_ca,
            nfs_squash,
            nfs_groups,
            portmap,
            bench_metadata_latency: _,
            bench_accounting: _,
            nfs_lease,
            log_format: _,
            log: _,
            discovery,
            ceph: _,
            cluster: _,
            two_machines: _,
        } = self;
        let differ = named([
            ("smb", *smb != other.smb),
            ("smb-quic", *smb_quic != other.smb_quic),
            ("nfs", *nfs != other.nfs),
            ("control", *control != other.control),
            ("control-name", *control_name != other.control_name),
            ("state", *state != other.state),
            ("smb-signing", *smb_signing != other.smb_signing),
            ("smb-encryption", *smb_encryption != other.smb_encryption),
            ("ntlm", *ntlm != other.ntlm),
            ("smb-encryption-over-quic", *smb_encryption_over_quic != other.smb_encryption_over_quic),
            ("smb-channel-binding", *smb_channel_binding != other.smb_channel_binding),
            ("max-channels", *max_channels != other.max_channels),
            ("connections-per-address", *connections_per_address != other.connections_per_address),
            ("smb-interface", *smb_interface != other.smb_interface),
            ("nfs-tls", *nfs_tls != other.nfs_tls),
            ("nfs-client-ca", *nfs_client_ca != other.nfs_client_ca),
            ("nfs-squash", *nfs_squash != other.nfs_squash),
            ("nfs-groups", *nfs_groups != other.nfs_groups),
            ("portmap", *portmap != other.portmap),
            ("nfs-lease", *nfs_lease != other.nfs_lease),
            ("discovery", *discovery != other.discovery),
        ]);
        let differ = differ.chain(self.certificates_differ(other)).chain(self.measurements_differ(other));
        differ.chain(self.machines_differ(other)).chain(self.log_differs(other)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_users_are_used_at_once_and_the_rest_is_named() {
        let before =
            Given { share: vec!["a=/x".parse().unwrap()], max_channels: Some(2), ..Given::default() };
        let shares = Given { share: vec!["b=/x".parse().unwrap()], ..before.clone() };
        assert_eq!(before.differs_until_restart(&shares), Vec::<&str>::new());
        let other = Given { max_channels: None, log: Some("debug".to_owned()), ..shares };
        assert_eq!(before.differs_until_restart(&other), ["max-channels", "log"]);
    }

    #[test]
    fn another_certificate_is_used_at_once_but_not_the_first_or_none() {
        let of = |name: &str| Given {
            control_certificate: Some(format!("{name}.pem").into()),
            control_key: Some(format!("{name}.key").into()),
            ..Given::default()
        };
        assert_eq!(of("a").differs_until_restart(&of("b")), Vec::<&str>::new());
        assert!(of("a").used_at_once(&of("b")).contains(&"control-key"));
        let none = Given::default();
        for (started, now) in [(&none, &of("a")), (&of("a"), &none)] {
            assert_eq!(started.differs_until_restart(now), ["control-certificate", "control-key"]);
            assert!(!started.used_at_once(now).contains(&"control-certificate"));
        }
    }
}
