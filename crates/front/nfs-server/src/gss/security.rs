//! The security flavors of NFS, and which of them a share admits over which connections.

use krb5::gss::KERBEROS;
use nfs_wire::gss::Service;
use nfs_wire::rpc::flavor;
use nfs_wire::v4::secinfo::SecInfo;
use share::Terms;

use super::Gss;

/// What carries calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Channel {
    /// A connection that does not encrypt.
    Plain,
    /// TLS.
    Encrypted,
}

/// How a call is secured: by the connection, and by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Security {
    pub(crate) channel: Channel,
    pub(crate) flavor: Flavor,
}

impl Security {
    /// Whether a share with these terms may be used by such calls.
    pub(crate) fn suffices(self, terms: Terms) -> bool {
        let Self { channel, flavor } = self;
        let named = terms & Terms::RPC_FLAVORS;
        let is_named = named.is_empty() || named.contains(flavor.term());
        let has_tls = channel == Channel::Encrypted;
        let is_encrypted = has_tls || flavor == Flavor::Krb5p;
        is_named
            && (is_encrypted || !terms.contains(Terms::ENCRYPTED))
            && (has_tls || !terms.contains(Terms::TLS))
    }
}

/// How a call itself is secured. Calls of AUTH_NONE count as those of AUTH_SYS: both only state who sends them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Flavor {
    /// Not at all.
    Sys,
    /// Its header is protected against changes.
    Krb5,
    /// All of it is protected against changes.
    Krb5i,
    /// Its arguments and results are encrypted as well.
    Krb5p,
}

impl Flavor {
    /// In the order in which the server names them: the flavor that costs least is first. A client that wants more asks for
    /// it, and a share that demands more does not admit the others.
    const ALL: [Self; 4] = [Self::Sys, Self::Krb5, Self::Krb5i, Self::Krb5p];

    fn term(self) -> Terms {
        match self {
            Self::Sys => Terms::RPC_SYS,
            Self::Krb5 => Terms::RPC_KRB5,
            Self::Krb5i => Terms::RPC_KRB5I,
            Self::Krb5p => Terms::RPC_KRB5P,
        }
    }

    /// A bit for each flavor.
    pub(crate) fn bit(self) -> u8 {
        match self {
            Self::Sys => 1,
            Self::Krb5 => 1 << 1,
            Self::Krb5i => 1 << 2,
            Self::Krb5p => 1 << 3,
        }
    }

    /// The names that mount(8) has for the flavors whose bits are set.
    pub(crate) fn in_bits(bits: u8) -> Vec<&'static str> {
        Self::ALL.into_iter().filter(|flavor| bits & flavor.bit() != 0).map(Self::name).collect()
    }

    fn name(self) -> &'static str {
        match self {
            Self::Sys => "sys",
            Self::Krb5 => "krb5",
            Self::Krb5i => "krb5i",
            Self::Krb5p => "krb5p",
        }
    }

    /// The number of the flavor in MOUNT's list. RFC 2623 4: "pseudo flavors".
    fn number(self) -> u32 {
        match self {
            Self::Sys => flavor::AUTH_SYS,
            Self::Krb5 => 390_003,
            Self::Krb5i => 390_004,
            Self::Krb5p => 390_005,
        }
    }

    /// The flavor in the results of SECINFO (RFC 8881 18.29). The object identifier of the mechanism is without its tag and its
    /// length, as the Linux client has it (gss_krb5_mech.c) and the Linux server sends it.
    fn described(self) -> SecInfo<'static> {
        let gss = |service: Service| SecInfo::Gss { oid: KERBEROS, qop: 0, service: service as u32 };
        match self {
            Self::Sys => SecInfo::Flavor(flavor::AUTH_SYS),
            Self::Krb5 => gss(Service::None),
            Self::Krb5i => gss(Service::Integrity),
            Self::Krb5p => gss(Service::Privacy),
        }
    }
}

/// The flavors that a share, or the root of all shares, admits over a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Admitted {
    terms: Terms,
    channel: Channel,
    has_kerberos: bool,
}

impl Admitted {
    /// The flavors of a share with these terms, or of what belongs to no share and has none.
    pub(crate) fn by(terms: Terms, channel: Channel, gss: &Gss) -> Self {
        Self { terms, channel, has_kerberos: gss.is_offered() }
    }

    pub(crate) fn all(self) -> impl Iterator<Item = Flavor> {
        Flavor::ALL.into_iter().filter(move |flavor| {
            let security = Security { channel: self.channel, flavor: *flavor };
            security.suffices(self.terms) && (*flavor == Flavor::Sys || self.has_kerberos)
        })
    }

    /// The flavors as MOUNT names them.
    pub(crate) fn numbers(self) -> Vec<u32> {
        self.all().map(Flavor::number).collect()
    }

    /// The flavors as SECINFO names them.
    pub(crate) fn described(self) -> Vec<SecInfo<'static>> {
        self.all().map(Flavor::described).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(terms: Terms) -> Vec<Flavor> {
        over(Channel::Plain, terms)
    }

    fn over(channel: Channel, terms: Terms) -> Vec<Flavor> {
        Admitted { terms, channel, has_kerberos: true }.all().collect()
    }

    #[test]
    fn a_share_that_names_none_admits_all() {
        assert_eq!(admitted(Terms::empty()), Flavor::ALL);
        let without_keys = Admitted { terms: Terms::empty(), channel: Channel::Plain, has_kerberos: false };
        assert_eq!(without_keys.numbers(), [1]);
        assert_eq!(Admitted { has_kerberos: true, ..without_keys }.numbers(), [1, 390_003, 390_004, 390_005]);
    }

    #[test]
    fn a_share_admits_what_it_names() {
        assert_eq!(admitted(Terms::RPC_SYS), [Flavor::Sys]);
        assert_eq!(admitted(Terms::RPC_KRB5P | Terms::RPC_KRB5I), [Flavor::Krb5i, Flavor::Krb5p]);
    }

    #[test]
    fn a_share_that_requires_encryption_admits_krb5p_alone_without_tls() {
        assert_eq!(admitted(Terms::ENCRYPTED), [Flavor::Krb5p]);
        assert_eq!(admitted(Terms::ENCRYPTED | Terms::RPC_SYS | Terms::RPC_KRB5P), [Flavor::Krb5p]);
        assert_eq!(admitted(Terms::ENCRYPTED | Terms::RPC_KRB5), []);
    }

    #[test]
    fn tls_encrypts_calls_of_all_flavors() {
        assert_eq!(over(Channel::Encrypted, Terms::ENCRYPTED), Flavor::ALL);
        assert_eq!(over(Channel::Encrypted, Terms::ENCRYPTED | Terms::RPC_KRB5), [Flavor::Krb5]);
    }

    #[test]
    fn a_share_that_requires_tls_admits_nothing_without_it() {
        for terms in [Terms::TLS, Terms::TLS | Terms::ENCRYPTED] {
            assert_eq!((admitted(terms), over(Channel::Encrypted, terms)), (vec![], Flavor::ALL.to_vec()));
        }
    }
}
