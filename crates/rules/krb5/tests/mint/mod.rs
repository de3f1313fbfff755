//! Makes what a KDC, a domain controller and a client make: tickets, PACs and tokens, right ones and wrong ones.
#![allow(dead_code, reason = "each test uses a part")]

use acl::Sid;
use anabranch_krb5::crypto::{Enctype, Key, KeyUsage};
use anabranch_krb5::der::{
    BIT_STRING, Builder, GENERAL_STRING, GENERALIZED_TIME, OCTET_STRING, Reader, SEQUENCE, context, element,
};
use anabranch_krb5::gss::{TokenId, frame, unframe};
use anabranch_krb5::keytab::{Entry, Keytab};
use anabranch_krb5::{Principal, Time};

/// 2026-11-25 22:32:33 UTC.
pub(crate) const NOW: i64 = 1_795_645_953;
pub(crate) const REALM: &str = "LAB.TEST";
pub(crate) const SERVICE: [&str; 2] = ["cifs", "files.lab.test"];
pub(crate) const MUTUAL: u32 = 0x2;
pub(crate) const FLAGS: u32 = 0x3e;
pub(crate) const GSS_CHECKSUM: i64 = 0x8003;
const CONFOUNDER: [u8; 16] = [0x5c; 16];

pub(crate) fn key(enctype: Enctype, fill: u8) -> Key {
    Key::new(enctype, &vec![fill; enctype.key_len()]).unwrap()
}

pub(crate) fn principal(components: &[&str], realm: &str) -> Principal {
    Principal::new(components, realm).unwrap()
}

/// A keytab with the key of [`SERVICE`], version 3.
pub(crate) fn keytab(key: &Key) -> Keytab {
    let entry = Entry::new(principal(&SERVICE, REALM), 3, Time::from_unix(0), key.clone()).unwrap();
    Keytab::new(vec![entry]).unwrap()
}

fn put_time(builder: &mut Builder, number: u8, unix: i64) {
    builder.element(context(number), |field| field.primitive(GENERALIZED_TIME, text(unix).as_bytes()));
}

/// `YYYYMMDDHHMMSSZ`, counted day by day.
pub(crate) fn text(unix: i64) -> String {
    let (mut day, second) = (unix.div_euclid(86_400), unix.rem_euclid(86_400));
    let leap = |year: i64| (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let mut year = 1970;
    while day >= 365 + i64::from(leap(year)) {
        day -= 365 + i64::from(leap(year));
        year += 1;
    }
    let days = [31, 28 + i64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= days[month] {
        day -= days[month];
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}{:02}{:02}{hour:02}{minute:02}{second:02}Z", month + 1, day + 1)
}

pub(crate) fn put_name(builder: &mut Builder, number: u8, components: &[&str]) {
    builder.element(context(number), |field| {
        field.element(SEQUENCE, |name| {
            name.element(context(1), |field| {
                field.element(SEQUENCE, |list| {
                    for part in components.iter().rev() {
                        list.primitive(GENERAL_STRING, part.as_bytes());
                    }
                });
            });
            name.element(context(0), |field| field.integer(1));
        });
    });
}

fn put_text(builder: &mut Builder, number: u8, text: &str) {
    builder.element(context(number), |field| field.primitive(GENERAL_STRING, text.as_bytes()));
}

fn put_flags(builder: &mut Builder, number: u8, flags: u32) {
    let bits = [&[0][..], &flags.to_be_bytes()].concat();
    builder.element(context(number), |field| field.primitive(BIT_STRING, &bits));
}

fn put_key(builder: &mut Builder, number: u8, etype: i64, key: &[u8]) {
    builder.element(context(number), |field| {
        field.element(SEQUENCE, |fields| {
            fields.element(context(1), |field| field.primitive(OCTET_STRING, key));
            fields.element(context(0), |field| field.integer(etype));
        });
    });
}

fn put_encrypted(builder: &mut Builder, number: u8, etype: i64, kvno: Option<i64>, cipher: &[u8]) {
    builder.element(context(number), |field| {
        field.element(SEQUENCE, |fields| {
            fields.element(context(2), |field| field.primitive(OCTET_STRING, cipher));
            if let Some(kvno) = kvno {
                fields.element(context(1), |field| field.integer(kvno));
            }
            fields.element(context(0), |field| field.integer(etype));
        });
    });
}

pub(crate) fn sealed(key: &Key, usage: KeyUsage, plain: &[u8]) -> Vec<u8> {
    key.deriver().unwrap().sealer(usage).unwrap().sealed(&CONFOUNDER, plain).unwrap()
}

/// A ticket as a KDC makes it.
#[derive(Clone)]
pub(crate) struct Ticket<'a> {
    pub(crate) service: &'a [&'a str],
    pub(crate) service_realm: &'a str,
    pub(crate) key: Key,
    /// The number of the encryption type outside; that of `key` by default
    pub(crate) etype: Option<i64>,
    pub(crate) kvno: Option<i64>,
    pub(crate) flags: u32,
    pub(crate) session: Key,
    /// The number of the session key's type; that of `session` by default
    pub(crate) session_etype: Option<i64>,
    pub(crate) client: &'a [&'a str],
    pub(crate) client_realm: &'a str,
    pub(crate) auth_time: i64,
    pub(crate) start_time: Option<i64>,
    pub(crate) end_time: i64,
    /// AuthorizationData
    pub(crate) authorization_data: Option<Vec<u8>>,
}

impl Ticket<'_> {
    /// A good ticket of alice.
    pub(crate) fn new(enctype: Enctype) -> Self {
        Self {
            service: &SERVICE,
            service_realm: REALM,
            key: key(enctype, 0x11),
            etype: None,
            kvno: Some(3),
            flags: 0x40e0_0000,
            session: key(enctype, 0x22),
            session_etype: None,
            client: &["alice"],
            client_realm: REALM,
            auth_time: NOW - 60,
            start_time: Some(NOW - 30),
            end_time: NOW + 36_000,
            authorization_data: None,
        }
    }

    pub(crate) fn content(&self) -> Vec<u8> {
        let mut builder = Builder::default();
        builder.element(0x63, |message| {
            message.element(SEQUENCE, |fields| {
                if let Some(data) = &self.authorization_data {
                    fields.element(context(10), |field| field.bytes(data));
                }
                put_time(fields, 7, self.end_time);
                if let Some(start) = self.start_time {
                    put_time(fields, 6, start);
                }
                put_time(fields, 5, self.auth_time);
                // transited: a type and nothing
                fields.element(context(4), |field| {
                    field.bytes(&[0x30, 9, 0xa0, 3, 2, 1, 1, 0xa1, 2, 4, 0]);
                });
                put_name(fields, 3, self.client);
                put_text(fields, 2, self.client_realm);
                let etype = self.session_etype.unwrap_or_else(|| self.session.enctype().number().into());
                put_key(fields, 1, etype, self.session.as_bytes());
                put_flags(fields, 0, self.flags);
            });
        });
        builder.finish()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let cipher = sealed(&self.key, KeyUsage::TICKET, &self.content());
        self.encode_around(&cipher)
    }

    pub(crate) fn encode_around(&self, cipher: &[u8]) -> Vec<u8> {
        let etype = self.etype.unwrap_or_else(|| self.key.enctype().number().into());
        let mut builder = Builder::default();
        builder.element(0x61, |message| {
            message.element(SEQUENCE, |fields| {
                put_encrypted(fields, 3, etype, self.kvno, cipher);
                put_name(fields, 2, self.service);
                put_text(fields, 1, self.service_realm);
                fields.element(context(0), |field| field.integer(5));
            });
        });
        builder.finish()
    }
}

/// A token as a client makes it.
#[derive(Clone)]
pub(crate) struct Token<'a> {
    pub(crate) ticket: Vec<u8>,
    pub(crate) session: Key,
    pub(crate) options: u32,
    pub(crate) client: &'a [&'a str],
    pub(crate) client_realm: &'a str,
    /// The type and octets of the checksum
    pub(crate) checksum: Option<(i64, Vec<u8>)>,
    pub(crate) ctime: i64,
    pub(crate) cusec: i64,
    pub(crate) subkey: Option<Key>,
    pub(crate) sequence_number: Option<i64>,
}

/// The octets of a GSS-API checksum.
pub(crate) fn gss_checksum(flags: u32, bindings: [u8; 16]) -> Vec<u8> {
    [&[16, 0, 0, 0][..], &bindings, &flags.to_le_bytes()].concat()
}

impl<'a> Token<'a> {
    pub(crate) fn new(ticket: &Ticket<'a>) -> Self {
        Self {
            ticket: ticket.encode(),
            session: ticket.session.clone(),
            options: 0x2000_0000,
            client: ticket.client,
            client_realm: ticket.client_realm,
            checksum: Some((GSS_CHECKSUM, gss_checksum(FLAGS, [0; 16]))),
            ctime: NOW,
            cusec: 123_456,
            subkey: Some(key(ticket.session.enctype(), 0x33)),
            sequence_number: Some(77),
        }
    }

    pub(crate) fn authenticator(&self) -> Vec<u8> {
        let mut builder = Builder::default();
        builder.element(0x62, |message| {
            message.element(SEQUENCE, |fields| {
                if let Some(number) = self.sequence_number {
                    fields.element(context(7), |field| field.integer(number));
                }
                if let Some(subkey) = &self.subkey {
                    put_key(fields, 6, subkey.enctype().number().into(), subkey.as_bytes());
                }
                put_time(fields, 5, self.ctime);
                fields.element(context(4), |field| field.integer(self.cusec));
                if let Some((kind, octets)) = &self.checksum {
                    fields.element(context(3), |field| {
                        field.element(SEQUENCE, |checksum| {
                            checksum.element(context(1), |field| field.primitive(OCTET_STRING, octets));
                            checksum.element(context(0), |field| field.integer(*kind));
                        });
                    });
                }
                put_name(fields, 2, self.client);
                put_text(fields, 1, self.client_realm);
                fields.element(context(0), |field| field.integer(5));
            });
        });
        builder.finish()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        self.encode_around(&sealed(&self.session, KeyUsage::AP_REQ_AUTHENTICATOR, &self.authenticator()))
    }

    pub(crate) fn encode_around(&self, authenticator: &[u8]) -> Vec<u8> {
        let mut builder = Builder::default();
        builder.element(0x6e, |message| {
            message.element(SEQUENCE, |fields| {
                put_encrypted(fields, 4, self.session.enctype().number().into(), None, authenticator);
                fields.element(context(3), |field| field.bytes(&self.ticket));
                put_flags(fields, 2, self.options);
                fields.element(context(1), |field| field.integer(14));
                fields.element(context(0), |field| field.integer(5));
            });
        });
        frame(TokenId::ApReq, &builder.finish())
    }
}

/// An AP-REP around what is encrypted with the session key of [`Ticket::new`] of aes256-sha1.
pub(crate) fn put_ap_rep(builder: &mut Builder, cipher: &[u8]) {
    builder.element(0x6f, |message| {
        message.element(SEQUENCE, |fields| {
            put_encrypted(fields, 2, 18, None, cipher);
            fields.element(context(1), |field| field.integer(15));
            fields.element(context(0), |field| field.integer(5));
        });
    });
}

/// What a client reads in an AP-REP.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    pub(crate) ctime: Vec<u8>,
    pub(crate) cusec: i64,
    pub(crate) subkey: (i64, Vec<u8>),
    pub(crate) sequence_number: i64,
}

/// Reads an AP-REP as a client does.
pub(crate) fn read_ap_rep(token: &[u8], session: &Key) -> Proof {
    let Some((TokenId::ApRep, message)) = unframe(token) else { panic!("an AP-REP: {token:x?}") };
    let mut fields = sequence(Reader::new(message).element(0x6f).unwrap());
    assert_eq!(integer(&mut fields, 0), 5);
    assert_eq!(integer(&mut fields, 1), 15);
    let mut data = sequence(fields.element(context(2)).unwrap());
    assert_eq!(integer(&mut data, 0), i64::from(session.enctype().number()));
    let mut cipher = Reader::new(data.element(context(2)).unwrap()).element(OCTET_STRING).unwrap().to_vec();
    let plain = session.deriver().unwrap().opener(KeyUsage::AP_REP).unwrap();
    let plain = plain.open(&mut cipher).unwrap();
    let mut fields = sequence(Reader::new(plain).element(0x7b).unwrap());
    let ctime = Reader::new(fields.element(context(0)).unwrap()).element(GENERALIZED_TIME).unwrap().to_vec();
    let cusec = integer(&mut fields, 1);
    let mut key = sequence(fields.element(context(2)).unwrap());
    let etype = integer(&mut key, 0);
    let bytes = Reader::new(key.element(context(1)).unwrap()).element(OCTET_STRING).unwrap().to_vec();
    Proof { ctime, cusec, subkey: (etype, bytes), sequence_number: integer(&mut fields, 3) }
}

/// What a client reads in a KRB-ERROR.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KrbError {
    pub(crate) stime: Vec<u8>,
    pub(crate) code: i64,
    pub(crate) realm: String,
    pub(crate) name: Vec<String>,
}

/// Reads a KRB-ERROR as a client does.
pub(crate) fn read_krb_error(token: &[u8]) -> KrbError {
    let Some((TokenId::Error, message)) = unframe(token) else { panic!("a KRB-ERROR: {token:x?}") };
    let mut fields = sequence(Reader::new(message).element(0x7e).unwrap());
    assert_eq!((integer(&mut fields, 0), integer(&mut fields, 1)), (5, 30));
    let stime = Reader::new(fields.element(context(4)).unwrap()).element(GENERALIZED_TIME).unwrap().to_vec();
    assert_eq!(integer(&mut fields, 5), 0);
    let code = integer(&mut fields, 6);
    let realm = string(Reader::new(fields.element(context(9)).unwrap()).element(GENERAL_STRING).unwrap());
    let mut name = sequence(fields.element(context(10)).unwrap());
    assert_eq!(integer(&mut name, 0), 2);
    let mut list = sequence(name.element(context(1)).unwrap());
    let mut parts = Vec::new();
    while !list.is_empty() {
        parts.push(string(list.element(GENERAL_STRING).unwrap()));
    }
    KrbError { stime, code, realm, name: parts }
}

fn string(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn sequence(bytes: &[u8]) -> Reader<'_> {
    Reader::new(Reader::new(bytes).element(SEQUENCE).unwrap())
}

fn integer(fields: &mut Reader<'_>, number: u8) -> i64 {
    Reader::new(fields.element(context(number)).unwrap()).integer().unwrap()
}

/// AuthorizationData with one element.
pub(crate) fn authorization_data(kind: i64, data: &[u8]) -> Vec<u8> {
    let mut builder = Builder::default();
    builder.element(SEQUENCE, |list| {
        list.element(SEQUENCE, |fields| {
            fields.element(context(1), |field| field.primitive(OCTET_STRING, data));
            fields.element(context(0), |field| field.integer(kind));
        });
    });
    builder.finish()
}

/// AD-IF-RELEVANT with a PAC.
pub(crate) fn around_pac(pac: &[u8]) -> Vec<u8> {
    authorization_data(1, &authorization_data(128, pac))
}

/// Bytes of a field of a message, for changing it.
pub(crate) fn octets(content: &[u8]) -> Vec<u8> {
    element(OCTET_STRING, content)
}

/// A PAC as a domain controller makes it.
#[derive(Clone)]
pub(crate) struct PacOf<'a> {
    pub(crate) name: &'a str,
    pub(crate) auth_time: i64,
    pub(crate) account: &'a str,
    pub(crate) domain: &'a str,
    pub(crate) domain_sid: Sid,
    pub(crate) user: u32,
    pub(crate) primary_group: u32,
    pub(crate) groups: Vec<u32>,
    pub(crate) extra_sids: Vec<Sid>,
    pub(crate) resource_domain: Option<Sid>,
    pub(crate) resource_groups: Vec<u32>,
    pub(crate) upn: Option<&'a str>,
    pub(crate) requestor: Option<Sid>,
}

impl PacOf<'_> {
    /// A PAC of alice.
    pub(crate) fn new() -> Self {
        Self {
            name: "alice",
            auth_time: NOW - 60,
            account: "alice",
            domain: "LAB",
            domain_sid: "S-1-5-21-1-2-3".parse().unwrap(),
            user: 1103,
            primary_group: 513,
            groups: vec![513, 1201, 1202],
            extra_sids: vec!["S-1-18-1".parse().unwrap(), "S-1-5-21-7-8-9-1500".parse().unwrap()],
            resource_domain: Some("S-1-5-21-1-2-3".parse().unwrap()),
            resource_groups: vec![1301],
            upn: Some("alice@lab.test"),
            requestor: Some("S-1-5-21-1-2-3-1103".parse().unwrap()),
        }
    }

    /// The buffers, without signatures.
    pub(crate) fn buffers(&self) -> Vec<(u32, Vec<u8>)> {
        let mut buffers = vec![(1, self.logon_info()), (10, self.client_info())];
        if let Some(upn) = self.upn {
            buffers.push((12, upn_info(upn)));
        }
        if let Some(sid) = self.requestor {
            let mut bytes = Vec::new();
            sid.encode_into(&mut bytes);
            buffers.push((18, bytes));
        }
        buffers
    }

    /// The PAC, signed with a service's key.
    pub(crate) fn signed(&self, key: &Key) -> Vec<u8> {
        sign(&self.buffers(), key)
    }

    pub(crate) fn client_info(&self) -> Vec<u8> {
        let ticks = u64::try_from(self.auth_time + 11_644_473_600).unwrap() * 10_000_000;
        let name = utf16(self.name);
        let length = u16::try_from(name.len()).unwrap();
        [&ticks.to_le_bytes()[..], &length.to_le_bytes(), &name].concat()
    }

    pub(crate) fn logon_info(&self) -> Vec<u8> {
        let mut ndr = Ndr::default();
        ndr.u32(0x2_0000);
        ndr.0.extend([0; 48]);
        let flags = if self.extra_sids.is_empty() { 0 } else { 0x20 };
        let flags = if self.resource_groups.is_empty() { flags } else { flags | 0x200 };
        for text in [self.account, "Full Name", "", "", "", ""] {
            ndr.text_pointer(text);
        }
        ndr.u32(0);
        ndr.u32(self.user);
        ndr.u32(self.primary_group);
        ndr.list(self.groups.len());
        ndr.u32(flags);
        ndr.0.extend([0; 16]);
        ndr.text_pointer("DC1");
        ndr.text_pointer(self.domain);
        ndr.u32(0x2_0004);
        ndr.0.extend([0; 40]);
        ndr.list(self.extra_sids.len());
        ndr.u32(if self.resource_domain.is_some() { 0x2_0008 } else { 0 });
        ndr.list(self.resource_groups.len());
        for text in [self.account, "Full Name", "", "", "", ""] {
            ndr.text(text);
        }
        ndr.rids(&self.groups);
        ndr.text("DC1");
        ndr.text(self.domain);
        ndr.sid(&self.domain_sid);
        ndr.array(self.extra_sids.len());
        for _ in &self.extra_sids {
            ndr.u32(0x2_000c);
            ndr.u32(7);
        }
        self.extra_sids.iter().for_each(|sid| ndr.sid(sid));
        if let Some(domain) = &self.resource_domain {
            ndr.sid(domain);
        }
        ndr.rids(&self.resource_groups);
        let length = u32::try_from(ndr.0.len()).unwrap();
        let private = [&length.to_le_bytes()[..], &[0; 4]].concat();
        [&[1, 0x10, 8, 0, 0xcc, 0xcc, 0xcc, 0xcc][..], &private, &ndr.0].concat()
    }
}

fn upn_info(upn: &str) -> Vec<u8> {
    let (upn, domain) = (utf16(upn), utf16("lab.test"));
    let numbers =
        [upn.len(), 16, domain.len(), 16 + upn.len()].map(|n| u16::try_from(n).unwrap().to_le_bytes());
    [&numbers.concat()[..], &[0; 8], &upn, &domain].concat()
}

/// A PAC with these buffers and two signatures, the server's with this key.
pub(crate) fn sign(buffers: &[(u32, Vec<u8>)], key: &Key) -> Vec<u8> {
    let number = u32::try_from(key.enctype().checksum_number()).unwrap();
    let length = key.enctype().tag_len();
    let empty = [&number.to_le_bytes()[..], &vec![0; length]].concat();
    let all = [buffers, &[(6, empty.clone()), (7, empty)]].concat();
    let (mut pac, places) = lay_out(&all);
    let checksum = key.deriver().unwrap().checksum_key(KeyUsage::PAC).unwrap().tag(&[&pac]);
    let server = places[all.len() - 2] + 4;
    pac[server..server + length].copy_from_slice(checksum.as_ref());
    let kdc = places[all.len() - 1] + 4;
    pac[kdc..kdc + length].fill(0xdc);
    pac
}

/// A PAC without signatures, and where its buffers are.
pub(crate) fn lay_out(buffers: &[(u32, Vec<u8>)]) -> (Vec<u8>, Vec<usize>) {
    let mut head = u32::try_from(buffers.len()).unwrap().to_le_bytes().to_vec();
    head.extend([0; 4]);
    let (mut content, mut places) = (Vec::new(), Vec::new());
    let start = 8 + 16 * buffers.len();
    for (kind, bytes) in buffers {
        let place = start + content.len();
        places.push(place);
        head.extend(kind.to_le_bytes());
        head.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
        head.extend(u64::try_from(place).unwrap().to_le_bytes());
        content.extend(bytes);
        content.resize(content.len().next_multiple_of(8), 0);
    }
    (head.into_iter().chain(content).collect(), places)
}

pub(crate) fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

#[derive(Default)]
struct Ndr(Vec<u8>);

impl Ndr {
    fn u32(&mut self, value: u32) {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self.0.extend(value.to_le_bytes());
    }

    fn count(&mut self, count: usize) {
        self.u32(u32::try_from(count).unwrap());
    }

    fn text_pointer(&mut self, text: &str) {
        let length = u32::try_from(utf16(text).len()).unwrap();
        self.u32(length | length << 16);
        self.u32(0x2_0010);
    }

    fn text(&mut self, text: &str) {
        let bytes = utf16(text);
        self.count(bytes.len() / 2);
        self.u32(0);
        self.count(bytes.len() / 2);
        self.0.extend(bytes);
    }

    fn list(&mut self, count: usize) {
        self.count(count);
        self.u32(if count == 0 { 0 } else { 0x2_0014 });
    }

    fn array(&mut self, count: usize) {
        if count > 0 {
            self.count(count);
        }
    }

    fn rids(&mut self, rids: &[u32]) {
        self.array(rids.len());
        for rid in rids {
            self.u32(*rid);
            self.u32(7);
        }
    }

    fn sid(&mut self, sid: &Sid) {
        self.count(sid.sub_authorities().len());
        sid.encode_into(&mut self.0);
    }
}
