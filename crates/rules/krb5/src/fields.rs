//! The fields of the messages of Kerberos: a SEQUENCE of elements, each behind its number. RFC 4120 5.

use crate::der::{
    DerError, GENERAL_STRING, GENERALIZED_TIME, OCTET_STRING, Reader, SEQUENCE, application, context,
};
use crate::time::Time;
use crate::{Enctype, Key};

/// Reads fields in the order of their numbers. Fields behind those that are read are ignored: RFC 4120 5.1 permits
/// more in later versions.
pub(crate) struct Fields<'a>(Reader<'a>);

impl<'a> Fields<'a> {
    /// The fields of a SEQUENCE.
    pub(crate) fn of_sequence(bytes: &'a [u8]) -> Result<Self, DerError> {
        Ok(Self(Reader::new(Reader::new(bytes).element(SEQUENCE)?)))
    }

    /// The fields of a message: `[APPLICATION number] SEQUENCE`.
    pub(crate) fn of_message(bytes: &'a [u8], number: u8) -> Result<Self, DerError> {
        Self::of_sequence(Reader::new(bytes).element(application(number))?)
    }

    /// The content of a field.
    pub(crate) fn raw(&mut self, number: u8) -> Result<&'a [u8], DerError> {
        self.0.element(context(number))
    }

    /// The content of a field, if it is there.
    pub(crate) fn optional(&mut self, number: u8) -> Result<Option<&'a [u8]>, DerError> {
        self.0.optional(context(number))
    }

    pub(crate) fn integer(&mut self, number: u8) -> Result<i64, DerError> {
        Reader::new(self.raw(number)?).integer()
    }

    pub(crate) fn optional_integer(&mut self, number: u8) -> Result<Option<i64>, DerError> {
        self.optional(number)?.map(|field| Reader::new(field).integer()).transpose()
    }

    pub(crate) fn flags(&mut self, number: u8) -> Result<u32, DerError> {
        Reader::new(self.raw(number)?).flags()
    }

    pub(crate) fn octets(&mut self, number: u8) -> Result<&'a [u8], DerError> {
        Reader::new(self.raw(number)?).element(OCTET_STRING)
    }

    pub(crate) fn text(&mut self, number: u8) -> Result<&'a [u8], DerError> {
        Reader::new(self.raw(number)?).element(GENERAL_STRING)
    }

    pub(crate) fn time(&mut self, number: u8) -> Result<Time, DerError> {
        time(self.raw(number)?)
    }

    pub(crate) fn optional_time(&mut self, number: u8) -> Result<Option<Time>, DerError> {
        self.optional(number)?.map(time).transpose()
    }
}

fn time(field: &[u8]) -> Result<Time, DerError> {
    Time::from_text(Reader::new(field).element(GENERALIZED_TIME)?).ok_or(DerError)
}

/// What is wrong with a key in a message.
pub(crate) enum KeyFault {
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
pub(crate) fn key(bytes: &[u8]) -> Result<Key, KeyFault> {
    let mut fields = Fields::of_sequence(bytes)?;
    let number = fields.integer(0)?;
    let enctype = Enctype::from_number(number).ok_or(KeyFault::Enctype(number))?;
    Key::new(enctype, fields.octets(1)?).map_err(|_| KeyFault::Malformed)
}

/// EncryptedData. RFC 4120 5.2.9.
#[derive(Clone, Copy)]
pub(crate) struct EncryptedData<'a> {
    /// The number of an encryption type
    pub(crate) etype: i64,
    pub(crate) kvno: Option<u32>,
    pub(crate) cipher: &'a [u8],
}

impl<'a> EncryptedData<'a> {
    pub(crate) fn decode(bytes: &'a [u8]) -> Result<Self, DerError> {
        let mut fields = Fields::of_sequence(bytes)?;
        let etype = fields.integer(0)?;
        let kvno = fields.optional_integer(1)?.map(unsigned).transpose()?;
        Ok(Self { etype, kvno, cipher: fields.octets(2)? })
    }
}

/// A UInt32. Some programs write numbers from 2^31 on as negative ones.
pub(crate) fn unsigned(value: i64) -> Result<u32, DerError> {
    let [a, b, c, d, rest @ ..] = value.to_le_bytes();
    let fits = rest == [0; 4] || i32::try_from(value).is_ok();
    if fits { Ok(u32::from_le_bytes([a, b, c, d])) } else { Err(DerError) }
}
