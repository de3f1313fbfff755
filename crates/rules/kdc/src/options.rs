//! What clients ask for and do not get. RFC 4120 5.4.1, KDCOptions.

/// Bit `number`, where bit 0 is the highest one. RFC 4120 5.2.8.
const fn bit(number: u32) -> u32 {
    1 << 31_u32.saturating_sub(number)
}

/// Requests for another kind of ticket than this KDC makes: FORWARDED, PROXY, POSTDATED, CNAME-IN-ADDL-TKT ([MS-SFU]),
/// REQUEST-ANONYMOUS (RFC 8062), ENC-TKT-IN-SKEY, RENEW, VALIDATE. FORWARDABLE, RENEWABLE and the like are wishes: a ticket
/// without them is an answer.
const REFUSED: u32 = bit(2) | bit(4) | bit(6) | bit(14) | bit(16) | bit(28) | bit(30) | bit(31);

/// INITIAL and PRE-AUTHENT. RFC 4120 5.3, TicketFlags.
pub(crate) const TICKET_GRANTING: u32 = bit(9) | bit(10);
/// PRE-AUTHENT.
pub(crate) const SERVICE: u32 = bit(10);

/// Whether a request with these options can be answered.
pub(crate) fn are_possible(options: u32) -> bool {
    options & REFUSED == 0
}
