//! KRB-ERROR: why a client is refused. RFC 4120 5.9.1.

use crate::der::{Builder, GENERAL_STRING, GENERALIZED_TIME, SEQUENCE, application, context};
use crate::gss::{TokenId, frame};
use crate::name::Principal;
use crate::reason::Reason;
use crate::time::Time;

const KRB_ERROR: u8 = 30;
/// NT-SRV-INST. RFC 4120 6.2.
const SERVICE_INSTANCE: i64 = 2;

/// The token that says this. It has our time, with which Windows corrects its own and tries again.
pub(crate) fn token(reason: Reason, now: Time, service: &Principal) -> Vec<u8> {
    let mut builder = Builder::with_capacity(256);
    builder.element(application(KRB_ERROR), |message| {
        message.element(SEQUENCE, |fields| {
            fields.element(context(10), |field| service.encode(field, SERVICE_INSTANCE));
            fields.element(context(9), |field| field.primitive(GENERAL_STRING, service.realm().as_bytes()));
            fields.element(context(6), |field| field.integer(reason.error_code()));
            fields.element(context(5), |field| field.integer(0));
            fields.element(context(4), |field| field.primitive(GENERALIZED_TIME, &now.to_text()));
            fields.element(context(1), |field| field.integer(i64::from(KRB_ERROR)));
            fields.element(context(0), |field| field.integer(5));
        });
    });
    frame(TokenId::Error, &builder.finish())
}
