//! AP-REP: the proof that we are the service. RFC 4120 5.5.2.

use crate::Key;
use crate::crypto::{CONFOUNDER_LEN, CryptoError, Deriver, KeyUsage};
use crate::der::{Builder, GENERALIZED_TIME, OCTET_STRING, SEQUENCE, application, context};
use crate::gss::{Mechanism, TokenId, frame_as};
use crate::time::Time;

const AP_REP: u8 = 15;
const ENC_AP_REP_PART: u8 = 27;

/// What we tell the client.
pub(crate) struct Proof<'a> {
    /// The client's time, from its authenticator
    pub(crate) ctime: Time,
    pub(crate) cusec: i64,
    pub(crate) subkey: &'a Key,
    pub(crate) sequence_number: u32,
}

impl Proof<'_> {
    /// The token, encrypted with the ticket's session key.
    pub(crate) fn token(
        &self,
        session: &Deriver,
        confounder: &[u8; CONFOUNDER_LEN],
        mechanism: Mechanism,
    ) -> Result<Vec<u8>, CryptoError> {
        let sealer = session.sealer(KeyUsage::AP_REP)?;
        let sealed = sealer.sealed(confounder, &zeroize::Zeroizing::new(self.encode()))?;
        let mut builder = Builder::with_capacity(256);
        builder.element(application(AP_REP), |message| {
            message.element(SEQUENCE, |fields| {
                fields.element(context(2), |field| {
                    field.element(SEQUENCE, |data| {
                        data.element(context(2), |field| field.primitive(OCTET_STRING, &sealed));
                        data.element(context(0), |field| field.integer(sealer.enctype().number().into()));
                    });
                });
                fields.element(context(1), |field| field.integer(i64::from(AP_REP)));
                fields.element(context(0), |field| field.integer(5));
            });
        });
        Ok(frame_as(mechanism, TokenId::ApRep, &builder.finish()))
    }

    /// `[APPLICATION 27] SEQUENCE { ctime [0], cusec [1], subkey [2] OPTIONAL, seq-number [3] OPTIONAL }`.
    fn encode(&self) -> Vec<u8> {
        let mut builder = Builder::with_capacity(128);
        builder.element(application(ENC_AP_REP_PART), |message| {
            message.element(SEQUENCE, |fields| {
                fields.element(context(3), |field| field.integer(i64::from(self.sequence_number)));
                fields.element(context(2), |field| {
                    field.element(SEQUENCE, |key| {
                        key.element(context(1), |field| {
                            field.primitive(OCTET_STRING, self.subkey.as_bytes())
                        });
                        key.element(context(0), |field| field.integer(self.subkey.enctype().number().into()));
                    });
                });
                fields.element(context(1), |field| field.integer(self.cusec));
                fields.element(context(0), |field| {
                    field.primitive(GENERALIZED_TIME, &self.ctime.to_text());
                });
            });
        });
        builder.finish()
    }
}
