//! The keys of the configuration file, with what docs/configuration.md and messages say of them.

/// A key of the configuration file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    /// An example of its value, in TOML.
    pub(crate) example: &'static str,
    /// The value that applies where none is given, in TOML; None: there is none, or it depends.
    pub(crate) default: Option<&'static str>,
}

const fn key(name: &'static str, example: &'static str, default: &'static str) -> Key {
    Key { name, example, default: Some(default) }
}

const fn without_default(name: &'static str, example: &'static str) -> Key {
    Key { name, example, default: None }
}

/// The keys at the top of a file.
pub(crate) const SERVER_KEYS: [Key; 66] = [
    without_default("share", "[\"data=/srv/data\"]"),
    key("moved-share", "[\"data=192.0.2.20\"]", "[]"),
    without_default("snapshot-policy", "[{ name = \"office\", hourly = \":05/24\" }]"),
    without_default("pool", "[{ name = \"fast\", directory = \"/srv/fast\" }]"),
    key("deleted-share-retention", "\"30d\"", "\"7d\""),
    without_default("user", "[\"anna=1000\"]"),
    key("smb", "[\"0.0.0.0:445\", \"[::]:445\"]", "[\"0.0.0.0:445\"]"),
    key("smb-quic", "[\"0.0.0.0:443\", \"[::]:443\"]", "[]"),
    key("nfs", "[\"0.0.0.0:2049\", \"[::]:2049\"]", "[\"0.0.0.0:2049\"]"),
    key("control", "\"127.0.0.1:8080\"", "\"127.0.0.1:8080\""),
    key("control-name", "[\"files.example.org\"]", "[]"),
    key("admins", "[\"anna\", \"@staff:read\"]", "[]"),
    without_default("control-certificate", "\"/etc/anabranch/chain.pem\""),
    without_default("control-key", "\"/etc/anabranch/key.pem\""),
    key("state", "\"/var/lib/anabranch\"", "\"/var/lib/anabranch\""),
    key("wait-for-state", "true", "false"),
    key("service-address", "[\"192.0.2.10%eth0\", \"2001:db8::10%eth0/64\"]", "[]"),
    key("ceph-config", "\"/etc/ceph/ceph.conf\"", "\"/etc/ceph/ceph.conf\""),
    key("ceph-user", "\"client.files\"", "\"client.anabranch\""),
    without_default("ceph-file-system", "\"cephfs\""),
    without_default("cluster-gateway", "\"node1\""),
    key("cluster-pool", "\"files.state\"", "\"anabranch\""),
    key("smb-signing", "\"required\"", "\"required\""),
    key("smb-encryption", "\"required\"", "\"enabled\""),
    key("ntlm", "\"off\"", "\"on\""),
    key("smb-encryption-over-quic", "false", "true"),
    key("smb-channel-binding", "\"required\"", "\"accepted\""),
    key("max-channels", "4", "4"),
    without_default("connections-per-address", "100"),
    key("smb-interface", "[\"10.0.0.1;speed=10000000000;rss\"]", "[]"),
    without_default("keytab", "\"/etc/krb5.keytab\""),
    key("domain-id-base", "1000000", "1000000"),
    key("domain-id-mapping", "\"sss\"", "\"rid\""),
    key("domain-nss-names", "\"realm\"", "\"netbios\""),
    without_default("domain-ldap-server", "\"dc1.ad.example.org\""),
    without_default("domain-ldap-base", "\"DC=ad,DC=example,DC=org\""),
    without_default("domain-ldap-account", "\"reader@AD.EXAMPLE.ORG\""),
    without_default("domain-ldap-password-file", "\"/etc/anabranch/ldap.password\""),
    without_default("domain-ldap-ca", "\"/etc/anabranch/ad-ca.pem\""),
    key("domain-sid", "[\"S-1-5-21-1085031214-1563985344-725345543\"]", "[]"),
    key("trusted-domains", "[\"S-1-5-21-2127521184-1604012920-1887927527\"]", "[]"),
    key("account-realm", "[\"EXAMPLE.ORG\"]", "[]"),
    without_default("realm", "\"FILES.EXAMPLE.ORG\""),
    key("nfs-tls", "\"required\"", "\"off\""),
    without_default("nfs-client-ca", "\"/etc/anabranch/clients.pem\""),
    key("nfs-squash", "\"root\"", "\"root\""),
    key("nfs-groups", "\"server\"", "\"client\""),
    key("nfs-lease", "90", "90"),
    key("portmap", "\"on\"", "\"off\""),
    key("log", "\"info,smb_server=debug\"", "\"info\""),
    key("log-format", "\"json\"", "\"text\""),
    key("discovery", "[\"wsd\", \"mdns\"]", "[]"),
    without_default("access-log-file", "\"/var/log/anabranch/access.json\""),
    key("access-log-mib", "100", "100"),
    key("access-log-files", "10", "10"),
    without_default("access-log-syslog", "\"/dev/log\""),
    without_default("access-log-journal", "\"/run/systemd/journal/socket\""),
    key(
        "access-log-kinds",
        "[\"logon\", \"delete\", \"permission\"]",
        "[\"logon\", \"logoff\", \"mount\", \"open\", \"create\", \"delete\", \"rename\", \"permission\", \"administration\"]",
    ),
    key("access-log-outcomes", "\"failures\"", "\"all\""),
    key("access-log-users", "[\"anna\", \"1000\"]", "[]"),
    key("access-log-except-users", "[\"backup\"]", "[]"),
    key("continuous-availability", "[\"data\"]", "[]"),
    key("password-file", "[\"anna=/etc/anabranch/anna.password\"]", "[]"),
    key("include", "[\"conf.d/*.toml\"]", "[]"),
    without_default("bench-metadata-latency", "1000"),
    key("bench-accounting", "true", "true"),
];

/// The keys of `[[share]]`.
pub(crate) const SHARE_KEYS: [Key; 32] = [
    without_default("name", "\"data\""),
    without_default("directory", "\"/srv/data\""),
    key("read-only", "true", "false"),
    key("guest", "true", "false"),
    key("continuous-availability", "true", "false"),
    key("access-based-enumeration", "true", "false"),
    key("metadata-cache", "false", "true"),
    key("reserved-names", "[\".snapshots\"]", "[]"),
    key("encrypted", "true", "false"),
    key("tls-required", "true", "false"),
    key("plan", "\"azure-files-v2-ssd capacity=1TiB iops=5000 throughput=200MiB/s\"", "\"unlimited\""),
    key("tier", "\"ssd\"", "\"\""),
    key("protocols", "[\"smb\"]", "[\"smb\", \"nfs\"]"),
    key("client", "[\"10.0.0.0/8 access=ro\"]", "[]"),
    key("devices", "true", "false"),
    key("set-id", "true", "false"),
    key("secure-port", "true", "false"),
    key("nfs-security", "[\"krb5i\", \"krb5p\"]", "[\"sys\", \"krb5\", \"krb5i\", \"krb5p\"]"),
    key("nfs-groups", "\"server\"", "\"\""),
    key("nfs-snapshots", "\"hidden\"", "\"off\""),
    key("read", "[\"anna\", \"@staff\"]", "[]"),
    key("write", "[\"otto\"]", "[]"),
    key("elevated", "[\"@leads\"]", "[]"),
    key("admin", "[\"eva\"]", "[]"),
    key("default-role", "\"reader\"", "\"\""),
    key("comment", "\"What we do\"", "\"\""),
    key("hidden", "true", "false"),
    key("access-log", "false", "true"),
    key("snapshot-policy", "\"office\"", "\"\""),
    key("recycle-bin", "\"on keep=30d\"", "\"off\""),
    key("ransomware-alarm", "\"on snapshot=7d\"", "\"on files=20 within=1m\""),
    key("quotas", "[\"anna soft=8GiB hard=10GiB\", \"/projects hard=1TiB\"]", "[]"),
];

/// The keys of `[[snapshot-policy]]`.
pub(crate) const POLICY_KEYS: [Key; 8] = [
    without_default("name", "\"office\""),
    without_default("hourly", "\":05/24\""),
    without_default("daily", "\"01:10/14\""),
    without_default("weekly", "\"sun,wed@02:30/8\""),
    without_default("monthly", "\"1,15@03:00/12\""),
    key("before", "[\"/usr/local/sbin/hold\", \"database\"]", "[]"),
    key("after", "[\"/usr/local/sbin/release\", \"database\"]", "[]"),
    key("hook-seconds", "60", "60"),
];

/// The keys of `[[pool]]`.
pub(crate) const POOL_KEYS: [Key; 3] = [
    without_default("name", "\"fast\""),
    without_default("directory", "\"/srv/fast\""),
    key("overcommit", "\"yes\"", "\"no\""),
];

/// The keys of `[[share.client]]`. They have the defaults of the share.
pub(crate) const CLIENT_KEYS: [Key; 5] = [
    without_default("network", "\"10.0.0.0/8\""),
    without_default("access", "\"ro\""),
    without_default("squash", "\"all\""),
    without_default("protocols", "[\"nfs\"]"),
    without_default("secure-port", "true"),
];

/// The keys of `[[user]]`.
pub(crate) const USER_KEYS: [Key; 6] = [
    without_default("name", "\"anna\""),
    without_default("password", "\"...\""),
    without_default("nt-hash", "\"...\""),
    without_default("uid", "1000"),
    without_default("gid", "100"),
    without_default("groups", "[50, 51]"),
];

#[cfg(test)]
mod tests {
    use clap::Args as _;

    use super::*;
    use crate::settings::Given;

    const DOCUMENT: &str = include_str!("../../../../docs/configuration.md");

    /// The keys and defaults in the table below a heading.
    fn documented(heading: &str) -> Vec<(&str, Option<&str>)> {
        let (_, section) = DOCUMENT.split_once(&format!("\n## {heading}\n")).unwrap();
        let section = section.split("\n## ").next().unwrap();
        let code = |cell: &'static str| cell.trim().strip_prefix('`')?.strip_suffix('`');
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
        rows.map(|row| {
            let (key, rest) = row.split_once("` | ").unwrap();
            (key, code(rest.split(" | ").next().unwrap()))
        })
        .collect()
    }

    #[test]
    fn the_page_has_every_key_with_its_default() {
        let known = |keys: &[Key]| {
            let mut keys: Vec<_> = keys.iter().map(|key| (key.name, key.default)).collect();
            keys.sort_unstable();
            keys
        };
        for (heading, keys) in [
            ("Keys of the server", known(&SERVER_KEYS)),
            ("Keys of a share", known(&SHARE_KEYS)),
            ("Keys of an entry of a client list", known(&CLIENT_KEYS)),
            ("Keys of a user", known(&USER_KEYS)),
            ("Keys of a snapshot policy", known(&POLICY_KEYS)),
            ("Keys of a pool", known(&POOL_KEYS)),
        ] {
            let mut documented = documented(heading);
            documented.sort_unstable();
            assert_eq!(documented, keys, "{heading}");
        }
    }

    #[test]
    fn the_keys_of_the_server_are_the_flags() {
        let command = Given::augment_args(clap::Command::new("names"));
        let mut flags: Vec<_> = command.get_arguments().filter_map(|flag| flag.get_long()).collect();
        // A flag has no file to which others could be relative, and no room for a policy or a pool.
        let is_flag = |name: &&str| !["include", "snapshot-policy", "pool"].contains(name);
        let mut keys: Vec<_> = SERVER_KEYS.iter().map(|key| key.name).filter(is_flag).collect();
        flags.sort_unstable();
        keys.sort_unstable();
        assert_eq!(keys, flags);
    }

    #[test]
    fn every_example_is_toml() {
        for key in SERVER_KEYS
            .iter()
            .chain(&SHARE_KEYS)
            .chain(&CLIENT_KEYS)
            .chain(&USER_KEYS)
            .chain(&POLICY_KEYS)
            .chain(&POOL_KEYS)
        {
            for value in [Some(key.example), key.default].into_iter().flatten() {
                let read: Result<toml::Table, _> = toml::from_str(&format!("{} = {value}", key.name));
                assert!(read.is_ok(), "{}: {value}", key.name);
            }
        }
    }
}
