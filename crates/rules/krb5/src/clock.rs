//! What time it is for a KDC. It says so with every refusal: RFC 4120 5.9.1, KRB-ERROR has `stime`, "the current time on the
//! server". So one asks for a ticket that no KDC gives.

use crate::der::{BIT_STRING, Builder, GENERAL_STRING, GENERALIZED_TIME, SEQUENCE, application, context};
use crate::fields::Fields;
use crate::time::Time;

const AS_REQ: u8 = 10;
const KRB_ERROR: u8 = 30;
/// The version of the protocol.
const VERSION: i64 = 5;
/// A client that no realm has: RFC 6111 3.1 reserves names whose first component is this for standards.
const WELL_KNOWN: &str = "WELLKNOWN";
/// KRB_NT_WELLKNOWN. RFC 6111 3.1.
const WELL_KNOWN_NAME: i64 = 11;
/// NT-SRV-INST. RFC 4120 6.2.
const SERVICE_INSTANCE: i64 = 2;
/// aes256-cts-hmac-sha1-96. RFC 3962 7.
const AES256: i64 = 18;
/// No options. RFC 4120 5.4.1.
const NO_OPTIONS: [u8; 5] = [0; 5];
/// RFC 4120 5.4.1, `till`: with "19700101000000Z" the KDC chooses the end of the ticket.
const ANY_END: Time = Time::from_unix(0);

/// The most bytes of a KDC's answer. Refusals have some hundreds.
pub const ANSWER_BYTES_MAX: usize = 64 << 10;

/// The request for a ticket of the realm for a client that does not exist: an AS-REQ, RFC 4120 5.4.1. `nonce` is any number.
#[must_use]
pub fn question(realm: &str, nonce: u32) -> Vec<u8> {
    let mut message = Builder::with_capacity(256);
    // the builder writes from the end
    message.element(application(AS_REQ), |request| {
        request.element(SEQUENCE, |fields| {
            fields.element(context(4), |field| put_body(field, realm, nonce));
            fields.element(context(2), |field| field.integer(i64::from(AS_REQ)));
            fields.element(context(1), |field| field.integer(VERSION));
        });
    });
    message.finish()
}

fn put_body(field: &mut Builder, realm: &str, nonce: u32) {
    field.element(SEQUENCE, |body| {
        body.element(context(8), |field| field.element(SEQUENCE, |types| types.integer(AES256)));
        body.element(context(7), |field| field.integer(i64::from(nonce)));
        body.element(context(5), |field| field.primitive(GENERALIZED_TIME, &ANY_END.to_text()));
        body.element(context(3), |field| put_name(field, SERVICE_INSTANCE, ["krbtgt", realm]));
        body.element(context(2), |field| field.primitive(GENERAL_STRING, realm.as_bytes()));
        body.element(context(1), |field| put_name(field, WELL_KNOWN_NAME, [WELL_KNOWN, "CLOCK"]));
        body.element(context(0), |field| field.primitive(BIT_STRING, &NO_OPTIONS));
    });
}

fn put_name(field: &mut Builder, kind: i64, parts: [&str; 2]) {
    field.element(SEQUENCE, |name| {
        name.element(context(1), |field| {
            field.element(SEQUENCE, |strings| {
                parts.iter().rev().for_each(|part| strings.primitive(GENERAL_STRING, part.as_bytes()));
            });
        });
        name.element(context(0), |field| field.integer(kind));
    });
}

/// The KDC's time in its answer, in whole seconds; None: it is no refusal with a time.
#[must_use]
pub fn time(answer: &[u8]) -> Option<Time> {
    let mut fields = Fields::of_message(answer, KRB_ERROR).ok()?;
    let head = (fields.integer(0).ok()?, fields.integer(1).ok()?);
    fields.optional(2).ok()?; // ctime
    fields.optional(3).ok()?; // cusec
    if head == (VERSION, i64::from(KRB_ERROR)) { fields.time(4).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::der::{INTEGER, Reader};

    /// Built by hand from the ASN.1 of RFC 4120 5.9.1.
    fn refusal(ctime: bool) -> Vec<u8> {
        let mut message = Builder::default();
        message.element(application(KRB_ERROR), |error| {
            error.element(SEQUENCE, |fields| {
                fields.element(context(6), |field| field.integer(6));
                fields.element(context(5), |field| field.integer(123_456));
                fields.element(context(4), |field| field.primitive(GENERALIZED_TIME, b"20261126055959Z"));
                if ctime {
                    fields.element(context(3), |field| field.integer(1));
                    fields.element(context(2), |field| field.primitive(GENERALIZED_TIME, b"19700101000000Z"));
                }
                fields.element(context(1), |field| field.integer(30));
                fields.element(context(0), |field| field.integer(5));
            });
        });
        message.finish()
    }

    #[test]
    fn a_refusal_has_the_time_of_the_kdc() {
        for ctime in [false, true] {
            assert_eq!(time(&refusal(ctime)), Some(Time::from_unix(1_795_672_799)));
        }
        let good = refusal(true);
        for length in 0..good.len() {
            assert_eq!(time(&good[..length]), None, "{length}");
        }
        assert_eq!(time(&question("AD.TEST", 1)), None);
    }

    #[test]
    fn the_question_is_an_as_req() {
        let question = question("AD.LAB.TEST", 7);
        let mut reader = Reader::new(&question);
        let mut request = Reader::new(reader.element(application(AS_REQ)).unwrap());
        let mut fields = Reader::new(request.element(SEQUENCE).unwrap());
        assert_eq!(fields.element(context(1)).unwrap(), [INTEGER, 1, 5]);
        assert_eq!(fields.element(context(2)).unwrap(), [INTEGER, 1, 10]);
        let mut body =
            Reader::new(Reader::new(fields.element(context(4)).unwrap()).element(SEQUENCE).unwrap());
        for field in [0, 1, 2, 3, 5, 7, 8] {
            body.element(context(field)).unwrap();
        }
        assert!(body.is_empty() && fields.is_empty() && reader.is_empty());
    }
}
