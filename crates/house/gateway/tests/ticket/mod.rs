//! Logons with tickets over SMB, and the keytabs of servers that accept them.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anabranch_krb5::Enctype;
use anabranch_krb5::der::{Builder, OCTET_STRING, Reader, SEQUENCE, context};
use smb_proto::preauth::PreauthHash;
use smb_wire::{Command, NtStatus, session_setup};

use crate::client::{Client, Protection, Reply};
use crate::gss;
use crate::mint::{self, REALM, key, read_ap_rep};

/// Sends one token, to which the server has one answer; what is signed with includes the request.
pub(crate) fn ask(client: &mut Client, ticket: &mint::Ticket<'_>) -> (Reply, PreauthHash) {
    let body = client.session_setup_body(&negotiation(&gss::token(ticket)));
    let header = client.header(Command::SessionSetup);
    let mut preauth = client.preauth;
    preauth.update(&client.send_with(&header, &body));
    (client.receive(), preauth)
}

/// Logs on with one token.
pub(crate) fn log_on(client: &mut Client, ticket: &mint::Ticket<'_>) {
    let (reply, preauth) = ask(client, ticket);
    assert_eq!(reply.status(), NtStatus::SUCCESS);
    let response = session_setup::Response::decode(&reply.message).unwrap();
    let proof = read_ap_rep(&answer_in(response.security_buffer), &ticket.session);
    client.session_id = reply.header.session_id;
    let (dialect, cipher, algorithm) = (client.dialect, client.cipher, client.signing_algorithm);
    let protection =
        Protection::new(dialect, cipher, algorithm, &proof.subkey.1, &preauth, client.session_id);
    protection.verify(&mut reply.message.clone());
    client.protection = Some(protection);
    client.sign = true;
}

/// NegTokenInit with Kerberos alone, behind the header of the GSS-API. RFC 4178 4.2.1, RFC 2743 3.1.
fn negotiation(token: &[u8]) -> Vec<u8> {
    const OID: u8 = 6;
    /// 1.3.6.1.5.5.2
    const SPNEGO: [u8; 6] = [0x2b, 6, 1, 5, 5, 2];
    /// 1.2.840.113554.1.2.2
    const KERBEROS: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 2];
    let mut builder = Builder::default();
    builder.element(0x60, |message| {
        message.element(context(0), |init| {
            init.element(SEQUENCE, |fields| {
                fields.element(context(2), |field| field.primitive(OCTET_STRING, token));
                fields.element(context(0), |field| {
                    field.element(SEQUENCE, |mechanisms| mechanisms.primitive(OID, &KERBEROS));
                });
            });
        });
        message.primitive(OID, &SPNEGO);
    });
    builder.finish()
}

/// The responseToken of a NegTokenResp. RFC 4178 4.2.2.
fn answer_in(response: &[u8]) -> Vec<u8> {
    let fields = Reader::new(response).element(context(1)).unwrap();
    let mut fields = Reader::new(Reader::new(fields).element(SEQUENCE).unwrap());
    fields.element(context(0)).unwrap();
    fields.element(context(1)).unwrap();
    Reader::new(fields.element(context(2)).unwrap()).element(OCTET_STRING).unwrap().to_vec()
}

/// Writes a keytab with the keys of these services, which only its owner may read.
pub(crate) fn write_keytab(path: &Path, services: &[&[&str]]) {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).unwrap();
    let entries: Vec<u8> = services.iter().flat_map(|service| entry(service)).collect();
    file.write_all(&[&[5, 2][..], &entries].concat()).unwrap();
}

/// An entry of a keytab with the key of [`mint::Ticket::new`]. MIT krb5, doc/formats/keytab_file_format.rst.
fn entry(service: &[&str]) -> Vec<u8> {
    const KVNO: u8 = 3;
    let counted = |bytes: &[u8]| [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat();
    let enctype = Enctype::Aes256Sha1;
    let components: Vec<u8> = service.iter().flat_map(|part| counted(part.as_bytes())).collect();
    let entry = [
        &u16::try_from(service.len()).unwrap().to_be_bytes()[..],
        &counted(REALM.as_bytes()),
        &components,
        &1_u32.to_be_bytes(), // KRB5_NT_PRINCIPAL
        &0_u32.to_be_bytes(), // the time of the entry
        &[KVNO],
        &u16::try_from(enctype.number()).unwrap().to_be_bytes(),
        &counted(key(enctype, 0x11).as_bytes()),
    ];
    let entry = entry.concat();
    [&u32::try_from(entry.len()).unwrap().to_be_bytes()[..], &entry].concat()
}
