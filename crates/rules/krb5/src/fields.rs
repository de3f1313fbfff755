//! The fields of the messages of Kerberos: a SEQUENCE of elements, each behind its number. RFC 4120 5.

use crate::der::{
    DerError, GENERAL_STRING, GENERALIZED_TIME, OCTET_STRING, Reader, SEQUENCE, application, context,
};
use crate::time::Time;
use crate::{Enctype, Key};

/// Reads fields in the order of their numbers. Fields behind those that are read are ignored: RFC 4120 5.1 permits
/// more in later versions.
#[derive(Debug)]
pub struct Fields<'a>(Reader<'a>);

impl<'a> Fields<'a> {
    /// The fields of a SEQUENCE.
    pub fn of_sequence(bytes: &'a [u8]) -> Result<Self, DerError> {
        Ok(Self(Reader::new(Reader::new(bytes).element(SEQUENCE)?)))
    }

    /// The fields of a message: `[APPLICATION number] SEQUENCE`.
    pub fn of_message(bytes: &'a [u8], number: u8) -> Result<Self, DerError> {
        Self::of_sequence(Reader::new(bytes).element(application(number))?)
    }

    /// The content of a field.
    pub fn raw(&mut self, number: u8) -> Result<&'a [u8], DerError> {
        self.0.element(context(number))
    }

    /// The content of a field, if it is there.
    pub fn optional(&mut self, number: u8) -> Result<Option<&'a [u8]>, DerError> {
        self.0.optional(context(number))
    }

    /// An INTEGER of at most eight bytes.
    pub fn integer(&mut self, number: u8) -> Result<i64, DerError> {
        Reader::new(self.raw(number)?).integer()
    }

    /// An INTEGER, if the field is there.
    pub fn optional_integer(&mut self, number: u8) -> Result<Option<i64>, DerError> {
        self.optional(number)?.map(|field| Reader::new(field).integer()).transpose()
    }

    /// The first 32 bits of a BIT STRING.
    pub fn flags(&mut self, number: u8) -> Result<u32, DerError> {
        Reader::new(self.raw(number)?).flags()
    }

    /// An OCTET STRING.
    pub fn octets(&mut self, number: u8) -> Result<&'a [u8], DerError> {
        Reader::new(self.raw(number)?).element(OCTET_STRING)
    }

    /// A GeneralString.
    pub fn text(&mut self, number: u8) -> Result<&'a [u8], DerError> {
        Reader::new(self.raw(number)?).element(GENERAL_STRING)
    }

    /// A KerberosTime.
    pub fn time(&mut self, number: u8) -> Result<Time, DerError> {
        time(self.raw(number)?)
    }

    /// A KerberosTime, if the field is there.
    pub fn optional_time(&mut self, number: u8) -> Result<Option<Time>, DerError> {
        self.optional(number)?.map(time).transpose()
    }
}

fn time(field: &[u8]) -> Result<Time, DerError> {
    Time::from_text(Reader::new(field).element(GENERALIZED_TIME)?).ok_or(DerError)
}

/// What is wrong with a key in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFault {
    /// Not the bytes of a key
    Malformed,
    /// The number of an encryption type that is not here
    Enctype(i64),
}

impl From<DerError> for KeyFault {
    fn from(_: DerError) -> Self {
        Self::Malformed
    }
}

/// EncryptionKey: `SEQUENCE { keytype [0] Int32, keyvalue [1] OCTET STRING }`. RFC 4120 5.2.9.
pub fn key(bytes: &[u8]) -> Result<Key, KeyFault> {
    let mut fields = Fields::of_sequence(bytes)?;
    let number = fields.integer(0)?;
    let enctype = Enctype::from_number(number).ok_or(KeyFault::Enctype(number))?;
    Key::new(enctype, fields.octets(1)?).map_err(|_| KeyFault::Malformed)
}

/// EncryptedData. RFC 4120 5.2.9.
#[derive(Clone, Copy, Debug)]
pub struct EncryptedData<'a> {
    /// The number of an encryption type
    pub etype: i64,
    /// The version of the key, if the sender says it
    pub kvno: Option<u32>,
    /// The encrypted bytes, with confounder and tag
    pub cipher: &'a [u8],
}

impl<'a> EncryptedData<'a> {
    /// Decodes `SEQUENCE { etype [0] Int32, kvno [1] UInt32 OPTIONAL, cipher [2] OCTET STRING }`.
    ///
    /// # Errors
    /// [`DerError`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DerError> {
        let mut fields = Fields::of_sequence(bytes)?;
        let etype = fields.integer(0)?;
        let kvno = fields.optional_integer(1)?.map(unsigned).transpose()?;
        Ok(Self { etype, kvno, cipher: fields.octets(2)? })
    }
}

/// A UInt32. Some programs write numbers from 2^31 on as negative ones.
pub fn unsigned(value: i64) -> Result<u32, DerError> {
    let [a, b, c, d, rest @ ..] = value.to_le_bytes();
    let fits = rest == [0; 4] || i32::try_from(value).is_ok();
    if fits { Ok(u32::from_le_bytes([a, b, c, d])) } else { Err(DerError) }
}
