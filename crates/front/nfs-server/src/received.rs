//! A record with a call, whose header is decoded once.

use std::ops::Range;

use bytes::Bytes;
use nfs_wire::rpc::{Call, CallError, OpaqueAuth};
use nfs_wire::xdr::Reader;

use crate::gss::Protected;

/// A record with a call. A future can own it, unlike a [`Call`], which borrows from its record.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) record: Bytes,
    xid: u32,
    program: u32,
    version: u32,
    procedure: u32,
    flavor: u32,
    /// The place of the credential's body in the record.
    credential: Range<usize>,
    /// The place of the arguments of the procedure.
    arguments: Range<usize>,
    /// With what the call was protected.
    pub(crate) protected: Option<Protected>,
}

impl Received {
    /// Decodes the header of the call in a record.
    ///
    /// # Errors
    /// Those of [`Call::decode`].
    pub(crate) fn decode(record: &Bytes) -> Result<Self, CallError> {
        let mut reader = Reader::new(record);
        let Call { xid, program, version, procedure, credential, verifier: _ } = Call::decode(&mut reader)?;
        let begin = |part: &[u8]| part.as_ptr().addr().saturating_sub(record.as_ptr().addr());
        let credential_at = begin(credential.body);
        Ok(Self {
            xid,
            program,
            version,
            procedure,
            flavor: credential.flavor,
            credential: credential_at..credential_at + credential.body.len(),
            arguments: begin(reader.rest())..record.len(),
            protected: None,
            record: record.clone(),
        })
    }

    /// The same call, which was protected, and whose arguments are here.
    pub(crate) fn protected(self, protected: Protected, arguments: Range<usize>) -> Self {
        Self { protected: Some(protected), arguments, ..self }
    }

    /// The header of the call, without its verifier: that of RPCSEC_GSS is checked when the call arrives, and other flavors
    /// have none.
    pub(crate) fn call(&self) -> Call<'_> {
        let body = self.record.get(self.credential.clone()).unwrap_or_default();
        Call {
            xid: self.xid,
            program: self.program,
            version: self.version,
            procedure: self.procedure,
            credential: OpaqueAuth { flavor: self.flavor, body },
            verifier: OpaqueAuth::NONE,
        }
    }

    /// The arguments of the procedure.
    pub(crate) fn arguments(&self) -> Reader<'_> {
        Reader::new(self.record.get(self.arguments.clone()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_are_those_of_the_header_as_it_was_decoded() {
        // RFC 5531 9: xid, CALL, RPC version, program, version, procedure, AUTH_SYS with 5 bytes, AUTH_NONE, arguments
        let head = [7_u32, 0, 2, 100_003, 3, 6, 1, 5].map(u32::to_be_bytes).concat();
        let rest = [0_u32, 0, 9, 8].map(u32::to_be_bytes).concat();
        for arguments in [8, 0] {
            let record = Bytes::from([&head[..], b"sysab\0\0\0", &rest[..8 + arguments]].concat());
            let mut reader = Reader::new(&record);
            let call = Call::decode(&mut reader).unwrap();
            let received = Received::decode(&record).unwrap();
            assert_eq!((received.call(), received.arguments().rest()), (call, reader.rest()));
            assert_eq!((received.call().credential.body, reader.rest().len()), (&b"sysab"[..], arguments));
        }
        assert!(Received::decode(&Bytes::from_static(b"nonsense")).is_err());
    }
}
