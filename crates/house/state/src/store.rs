//! What the state needs of a database: values read by their keys, tables read as a whole, and batches that are written all or not at all.

use std::error::Error;
use std::fmt;

/// Why a database cannot be used, in its own words.
pub type StoreError = Box<dyn Error + Send + Sync>;

/// A key and its value, in the form of their table.
pub type KeyValue = (Vec<u8>, Vec<u8>);

/// What keys and values of a table are. Whoever keeps types on the disk (redb does) keeps these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// UTF-8 to bytes.
    TextToBytes,
    /// UTF-8 to a number of 32 bits, its lowest byte first.
    TextToU32,
    /// UTF-8 to a number of 64 bits, its lowest byte first.
    TextToU64,
    /// UTF-8 to 16 bytes.
    TextToHash,
    /// A number of 64 bits, its lowest byte first, to bytes.
    NumberToBytes,
    /// Bytes to nothing.
    BytesToNothing,
}

/// A table: a name, and what is in it. Two tables have never the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    /// Its name on the disk.
    pub name: &'static str,
    /// What is in it.
    pub form: Form,
}

/// One change of a [`Batch`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The value of this key is this one from now on.
    Put {
        /// The table of the value.
        table: Table,
        /// In the table's form.
        key: Vec<u8>,
        /// In the table's form.
        value: Vec<u8>,
    },
    /// The key has no value any more.
    Remove {
        /// The table of the value.
        table: Table,
        /// In the table's form.
        key: Vec<u8>,
    },
    /// The table is gone, with all that is in it.
    Drop {
        /// The name of the table.
        table: String,
    },
}

/// What must still be so for a [`Batch`] to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The table of the value.
    pub table: Table,
    /// In the table's form.
    pub key: Vec<u8>,
    /// None: there is none.
    pub value: Option<Vec<u8>>,
}

/// Changes that are made together or not at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// What its writer has read, and has decided by.
    pub expected: Vec<Expected>,
    /// In the order in which they are made.
    pub changes: Vec<Change>,
}

/// A database that outlives the process. Readers and writers may come from several threads, and from several machines where the
/// database is one that can be shared: so nobody holds anything between a reading and a writing, and a batch says what it was decided by.
pub trait Store: fmt::Debug + Send + Sync {
    /// The value of a key; None: it has none.
    ///
    /// # Errors
    /// The database cannot be read.
    fn read(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError>;

    /// All keys of a table and their values, in the order of the keys: numbers by their size, all else by its bytes.
    ///
    /// # Errors
    /// The database cannot be read.
    fn scan(&self, table: Table) -> Result<Vec<KeyValue>, StoreError>;

    /// Writes a batch, and returns when it is on stable storage; false: something is not as it was expected, and nothing was written.
    ///
    /// # Errors
    /// The database cannot be written.
    fn write(&self, batch: &Batch) -> Result<bool, StoreError>;
}

impl Table {
    /// The change that gives a key a value.
    pub fn put(self, key: &[u8], value: &[u8]) -> Change {
        Change::Put { table: self, key: key.to_vec(), value: value.to_vec() }
    }

    /// The change that takes the value of a key away.
    pub fn remove(self, key: &[u8]) -> Change {
        Change::Remove { table: self, key: key.to_vec() }
    }

    /// That a key has this value, or none.
    pub fn expect(self, key: &[u8], value: Option<&[u8]>) -> Expected {
        Expected { table: self, key: key.to_vec(), value: value.map(<[u8]>::to_vec) }
    }
}

impl From<Vec<Change>> for Batch {
    /// A batch that expects nothing: it is written whatever there is.
    fn from(changes: Vec<Change>) -> Self {
        Self { expected: Vec::new(), changes }
    }
}
