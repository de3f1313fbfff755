//! The operations of protocols, as they are counted.

use std::cmp::Ordering;

/// The most different operations that come over one connection.
pub const APIS_MAX: usize = 128;

/// An operation of a protocol, as it is counted.
#[derive(Debug, Clone, Copy)]
pub struct Api {
    /// The name of the protocol in metrics.
    pub protocol: &'static str,
    /// The number of the operation, below [`APIS_MAX`]. Operations that come over one connection have different numbers.
    pub number: usize,
    /// The name in metrics. Operations of a protocol that share a name are counted together.
    pub name: &'static str,
    /// Where its data goes, if it moves data.
    pub data: Option<Direction>,
}

/// Where the data of an operation goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the client (Azure Monitor: Egress).
    Read,
    /// From the client (Azure Monitor: Ingress).
    Write,
}

impl Api {
    /// An operation that moves no data.
    ///
    /// # Panics
    /// While it is compiled, if the number is not below [`APIS_MAX`].
    #[must_use]
    pub const fn new(protocol: &'static str, number: usize, name: &'static str) -> Self {
        assert!(number < APIS_MAX, "a connection's accounts have no place for this number");
        Self { protocol, number, name, data: None }
    }

    /// Whether the operation moves data. All others are about names and attributes, as in the metadata share of Azure Files.
    #[must_use]
    pub fn moves_data(&self) -> bool {
        self.data.is_some()
    }

    /// Whether its bytes are sent to the client: Egress.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.data == Some(Direction::Read)
    }

    /// Whether its bytes are received from the client: Ingress.
    #[must_use]
    pub fn is_write(&self) -> bool {
        self.data == Some(Direction::Write)
    }

    fn key(&self) -> (&'static str, &'static str) {
        (self.protocol, self.name)
    }
}

/// Operations that are counted together are equal.
impl PartialEq for Api {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Api {}

impl PartialOrd for Api {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Api {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
pub(crate) mod of_tests {
    //! Operations for the tests of other files.

    use super::{Api, Direction};

    pub(crate) static CLOSE: Api = Api::new("test", 2, "Close");
    pub(crate) static READ: Api = Api { data: Some(Direction::Read), ..Api::new("test", 3, "Read") };
    pub(crate) static WRITE: Api = Api { data: Some(Direction::Write), ..Api::new("test", 4, "Write") };
}
