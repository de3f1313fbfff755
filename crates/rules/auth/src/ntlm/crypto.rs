//! The computations of NTLMv2. [MS-NLMP] 3.3.2, 3.4.5.1.

use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use rc4::{Rc4, StreamCipher};

use crate::accounts::upper_case;

fn keyed(key: &[u8; 16], parts: &[&[u8]]) -> Hmac<Md5> {
    let mut mac = <Hmac<Md5> as KeyInit>::new(&padded(key).into());
    for part in parts {
        mac.update(part);
    }
    mac
}

/// HMAC pads its key with zeros to the block size (RFC 2104), so this is the same key, in a size that cannot fail.
fn padded(key: &[u8; 16]) -> [u8; 64] {
    let mut block = [0; 64];
    for (byte, given) in block.iter_mut().zip(key) {
        *byte = *given;
    }
    block
}

pub(super) fn hmac_md5(key: &[u8; 16], parts: &[&[u8]]) -> [u8; 16] {
    keyed(key, parts).finalize().into_bytes().into()
}

/// Whether `tag` is a prefix of HMAC-MD5 over the parts, compared in constant time. An empty tag never matches.
pub(super) fn verify_hmac_md5(key: &[u8; 16], parts: &[&[u8]], tag: &[u8]) -> bool {
    !tag.is_empty() && keyed(key, parts).verify_truncated_left(tag).is_ok()
}

/// RC4 with a key of 16 bytes.
pub(super) fn rc4(key: &[u8; 16]) -> Rc4 {
    // RC4 repeats its key up to 256 bytes, so this is the same key, in a size that cannot fail
    let mut repeated = [0; 32];
    for (byte, given) in repeated.iter_mut().zip(key.iter().cycle()) {
        *byte = *given;
    }
    <Rc4 as KeyInit>::new(&repeated.into())
}

/// RC4K of 16 bytes. [MS-NLMP] 6.
pub(super) fn rc4_once(key: &[u8; 16], data: &[u8; 16]) -> [u8; 16] {
    let mut output = *data;
    rc4(key).apply_keystream(&mut output);
    output
}

/// NTOWFv2: the key of a user's responses. `user` is the name as the client wrote it, `domain` its domain in UTF-16LE
/// as received. [MS-NLMP] 3.3.2: HMAC_MD5(NT hash, UNICODE(Uppercase(User) + UserDom)).
pub fn ntowf_v2(nt_hash: &[u8; 16], user: &str, domain: &[u8]) -> [u8; 16] {
    let mut name = Vec::with_capacity(user.len().saturating_mul(2));
    for unit in user.chars().map(upper_case).collect::<String>().encode_utf16() {
        name.extend_from_slice(&unit.to_le_bytes());
    }
    hmac_md5(nt_hash, &[&name, domain])
}

/// NTProofStr. [MS-NLMP] 3.3.2: HMAC_MD5(ResponseKeyNT, ServerChallenge + temp).
pub fn nt_proof(response_key: &[u8; 16], server_challenge: &[u8; 8], temp: &[u8]) -> [u8; 16] {
    hmac_md5(response_key, &[server_challenge, temp])
}

/// SessionBaseKey. [MS-NLMP] 3.3.2: HMAC_MD5(ResponseKeyNT, NTProofStr).
pub fn session_base_key(response_key: &[u8; 16], proof: &[u8; 16]) -> [u8; 16] {
    hmac_md5(response_key, &[proof])
}
