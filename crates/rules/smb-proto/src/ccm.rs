//! AES-CCM with SMB's 11-byte nonce and 16-byte tag, in place, through the EVP cipher interface of AWS-LC: the safe
//! wrapper of that library has no CCM. This is the crate's only `unsafe` code.
#![expect(unsafe_code, reason = "AES-CCM is only reachable through the C interface")]

use std::ptr::{NonNull, null, null_mut};

use aws_lc_sys::{
    EVP_CIPHER, EVP_CIPHER_CTX, EVP_CIPHER_CTX_ctrl, EVP_CIPHER_CTX_free, EVP_CIPHER_CTX_new,
    EVP_CTRL_AEAD_GET_TAG, EVP_CTRL_AEAD_SET_IVLEN, EVP_CTRL_AEAD_SET_TAG, EVP_CipherInit_ex,
    EVP_CipherUpdate, EVP_aes_128_ccm, EVP_aes_256_ccm,
};

pub(crate) const NONCE_LEN: usize = 11;
pub(crate) const TAG_LEN: usize = 16;

/// The library refused, or the tag is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CcmError;

/// An AES-CCM key: 16 bytes for AES-128, 32 for AES-256.
///
/// The key schedule is made for each message: an EVP context serves one message at a time, and a lock on the way of
/// every message would cost more than the schedule (about 0.1 us beside the 60 us of 64 KiB).
pub(crate) struct CcmKey {
    bytes: [u8; 32],
    len: usize,
}

impl CcmKey {
    /// Takes a key of 16 or 32 bytes.
    pub(crate) fn new(key: &[u8]) -> Result<Self, CcmError> {
        if key.len() != 16 && key.len() != 32 {
            return Err(CcmError);
        }
        let mut bytes = [0; 32];
        for (byte, given) in bytes.iter_mut().zip(key) {
            *byte = *given;
        }
        Ok(Self { bytes, len: key.len() })
    }

    /// Encrypts `in_out` and returns its tag.
    pub(crate) fn seal(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        in_out: &mut [u8],
    ) -> Result<[u8; TAG_LEN], CcmError> {
        let mut tag = [0; TAG_LEN];
        let context = Context::new()?;
        context.start(self, nonce, Direction::Seal)?;
        context.run(aad, in_out)?;
        context.control(EVP_CTRL_AEAD_GET_TAG, TAG_LEN, &mut tag)?;
        Ok(tag)
    }

    /// Checks the tag and decrypts `in_out`; its content is undefined if the tag is wrong.
    pub(crate) fn open(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        tag: &[u8; TAG_LEN],
        in_out: &mut [u8],
    ) -> Result<(), CcmError> {
        let mut tag = *tag;
        let context = Context::new()?;
        context.start(self, nonce, Direction::Open(&mut tag))?;
        context.run(aad, in_out)
    }

    fn cipher(&self) -> *const EVP_CIPHER {
        // SAFETY: both functions take nothing and return a pointer to a static, immutable table.
        unsafe { if self.len == 32 { EVP_aes_256_ccm() } else { EVP_aes_128_ccm() } }
    }
}

enum Direction<'a> {
    Seal,
    Open(&'a mut [u8; TAG_LEN]),
}

/// An owned EVP context for one message.
struct Context(NonNull<EVP_CIPHER_CTX>);

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the pointer came from EVP_CIPHER_CTX_new and is freed once, here.
        unsafe { EVP_CIPHER_CTX_free(self.0.as_ptr()) }
    }
}

impl Context {
    fn new() -> Result<Self, CcmError> {
        // SAFETY: takes nothing; null is checked for.
        let context = unsafe { EVP_CIPHER_CTX_new() };
        NonNull::new(context).map(Self).ok_or(CcmError)
    }

    /// Sets cipher, lengths, the expected tag, key and nonce: lengths and tag come before key and nonce.
    fn start(&self, key: &CcmKey, nonce: &[u8; NONCE_LEN], direction: Direction<'_>) -> Result<(), CcmError> {
        let seal = i32::from(matches!(direction, Direction::Seal));
        // SAFETY: the context is live; the cipher is a static table; null for engine, key and nonce means "later".
        check(unsafe { EVP_CipherInit_ex(self.0.as_ptr(), key.cipher(), null_mut(), null(), null(), seal) })?;
        self.control_bare(EVP_CTRL_AEAD_SET_IVLEN, NONCE_LEN)?;
        match direction {
            Direction::Seal => self.control_bare(EVP_CTRL_AEAD_SET_TAG, TAG_LEN)?,
            Direction::Open(tag) => self.control(EVP_CTRL_AEAD_SET_TAG, TAG_LEN, tag)?,
        }
        // SAFETY: the context is live and holds the cipher already, whose key length is at most the 32 bytes that
        // `key.bytes` has (CcmKey::new admits 16 and 32 only, `cipher` follows it); the nonce has the length that
        // was set above.
        check(unsafe {
            EVP_CipherInit_ex(self.0.as_ptr(), null(), null_mut(), key.bytes.as_ptr(), nonce.as_ptr(), seal)
        })
    }

    /// Announces the message's length, adds the associated data and transforms the message in place. When opening,
    /// the library compares the tag before this returns.
    fn run(&self, aad: &[u8], in_out: &mut [u8]) -> Result<(), CcmError> {
        if in_out.is_empty() {
            return Err(CcmError); // the library skips an empty update and with it the tag; no SMB message is empty
        }
        let message_len = i32::try_from(in_out.len()).map_err(|_| CcmError)?;
        let aad_len = i32::try_from(aad.len()).map_err(|_| CcmError)?;
        let mut written = 0;
        // SAFETY: the context is live; a null output with a null input announces the total length; a null output
        // with an input reads `aad_len` bytes from the borrowed slice.
        check(unsafe { EVP_CipherUpdate(self.0.as_ptr(), null_mut(), &mut written, null(), message_len) })?;
        // SAFETY: as above.
        check(unsafe { EVP_CipherUpdate(self.0.as_ptr(), null_mut(), &mut written, aad.as_ptr(), aad_len) })?;
        let buffer = in_out.as_mut_ptr();
        // SAFETY: the buffer is exclusively borrowed and `message_len` long; CCM is a stream mode that writes as
        // many bytes as it reads, and the interface allows output and input to be the same buffer.
        check(unsafe {
            EVP_CipherUpdate(self.0.as_ptr(), buffer, &mut written, buffer.cast_const(), message_len)
        })?;
        if written == message_len { Ok(()) } else { Err(CcmError) }
    }

    fn control_bare(&self, command: i32, value: usize) -> Result<(), CcmError> {
        let value = i32::try_from(value).map_err(|_| CcmError)?;
        // SAFETY: the context is live; these commands read only the number.
        check(unsafe { EVP_CIPHER_CTX_ctrl(self.0.as_ptr(), command, value, null_mut()) })
    }

    fn control(&self, command: i32, value: usize, tag: &mut [u8; TAG_LEN]) -> Result<(), CcmError> {
        let value = i32::try_from(value).map_err(|_| CcmError)?;
        // SAFETY: the context is live; the command reads or writes `value` bytes, which is TAG_LEN, the size of the
        // exclusively borrowed array.
        check(unsafe { EVP_CIPHER_CTX_ctrl(self.0.as_ptr(), command, value, tag.as_mut_ptr().cast()) })
    }
}

/// The library's convention: 1 for success. EVP_CipherUpdate of a CCM context returns 0 when a tag is wrong.
fn check(result: i32) -> Result<(), CcmError> {
    if result == 1 { Ok(()) } else { Err(CcmError) }
}
