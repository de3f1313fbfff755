//! The domain whose directory it is.

/// The names of a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Domain {
    /// The name before the backslash.
    pub(crate) netbios: String,
    /// The name in DNS.
    pub(crate) dns: String,
}

impl Domain {
    /// Whether the domain has this name. Neither form distinguishes case.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        [&self.netbios, &self.dns].iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_has_two_names() {
        let domain = Domain { netbios: "ADLAB".to_owned(), dns: "ad.lab.test".to_owned() };
        for name in ["ADLAB", "adlab", "AD.LAB.TEST"] {
            assert!(domain.is_called(name), "{name}");
        }
        for other in ["", "AD", "lab.test", "ad.lab.test."] {
            assert!(!domain.is_called(other), "{other}");
        }
    }
}
