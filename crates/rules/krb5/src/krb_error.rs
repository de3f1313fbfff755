//! KRB-ERROR: why a client is refused. RFC 4120 5.9.1.

use crate::der::{Builder, GENERAL_STRING, GENERALIZED_TIME, OCTET_STRING, SEQUENCE, application, context};
use crate::gss::{Mechanism, TokenId, frame_as};
use crate::name::{NameType, Principal};
use crate::reason::Reason;
use crate::time::Time;

const KRB_ERROR: u8 = 30;

/// What a client is told.
#[derive(Clone, Copy, Debug)]
pub struct KrbError<'a> {
    /// RFC 4120 7.5.9
    pub code: i64,
    /// Our time, with which clients correct theirs and try again
    pub now: Time,
    /// The service that refuses
    pub service: &'a Principal,
    /// e-data: what the client needs to do better
    pub data: Option<&'a [u8]>,
}

impl KrbError<'_> {
    /// The message.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut builder = Builder::with_capacity(256);
        builder.element(application(KRB_ERROR), |message| {
            message.element(SEQUENCE, |fields| {
                if let Some(data) = self.data {
                    fields.element(context(12), |field| field.primitive(OCTET_STRING, data));
                }
                fields.element(context(10), |field| self.service.put(field, NameType::Service));
                fields.element(context(9), |field| {
                    field.primitive(GENERAL_STRING, self.service.realm().as_bytes());
                });
                fields.element(context(6), |field| field.integer(self.code));
                fields.element(context(5), |field| field.integer(0));
                fields.element(context(4), |field| field.primitive(GENERALIZED_TIME, &self.now.to_text()));
                fields.element(context(1), |field| field.integer(i64::from(KRB_ERROR)));
                fields.element(context(0), |field| field.integer(5));
            });
        });
        builder.finish()
    }
}

/// The token that says this.
pub(crate) fn token(mechanism: Mechanism, reason: Reason, now: Time, service: &Principal) -> Vec<u8> {
    let error = KrbError { code: reason.error_code(), now, service, data: None };
    frame_as(mechanism, TokenId::Error, &error.encode())
}
