//! Remote procedure calls, RFC 5531: the headers that precede a procedure's arguments and results.

use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_enum};

/// The version of the RPC protocol itself.
pub const RPC_VERSION: u32 = 2;

/// The longest credential or verifier body in bytes (RFC 5531 8.2: `opaque body<400>`).
pub const AUTH_BODY_BYTES_MAX: usize = 400;

/// Authentication flavors, RFC 5531 8.2.
pub mod flavor {
    /// No authentication.
    pub const AUTH_NONE: u32 = 0;
    /// User and group numbers as the client states them ([`AuthSys`](crate::auth_sys::AuthSys)).
    pub const AUTH_SYS: u32 = 1;
    /// A short form of AUTH_SYS that a server may hand out.
    pub const AUTH_SHORT: u32 = 2;
    /// RPCSEC_GSS, RFC 2203.
    pub const RPCSEC_GSS: u32 = 6;
    /// Asks whether a server has TLS, RFC 9289 4.1.
    pub const AUTH_TLS: u32 = 7;
}

const CALL: u32 = 0;
const REPLY: u32 = 1;
const MSG_ACCEPTED: u32 = 0;
const MSG_DENIED: u32 = 1;

/// A credential or a verifier, RFC 5531 8.2: a flavor and a body that only the flavor defines.
#[doc(alias = "opaque_auth")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpaqueAuth<'a> {
    /// One of [`flavor`], or one that this crate does not know.
    pub flavor: u32,
    /// At most [`AUTH_BODY_BYTES_MAX`] bytes.
    pub body: &'a [u8],
}

impl OpaqueAuth<'_> {
    /// AUTH_NONE, whose body is empty (RFC 5531 10.1).
    pub const NONE: Self = Self { flavor: flavor::AUTH_NONE, body: &[] };
}

impl Encode for OpaqueAuth<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.u32(self.flavor);
        writer.opaque(self.body);
    }
}

impl<'a> Decode<'a> for OpaqueAuth<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        Ok(Self { flavor: reader.u32()?, body: reader.opaque(AUTH_BODY_BYTES_MAX)? })
    }
}

/// The header of a call; the procedure's arguments follow it.
#[doc(alias = "call_body")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call<'a> {
    /// The client's number for this call, repeated in the reply.
    pub xid: u32,
    /// Program number: NFS, MOUNT.
    pub program: u32,
    /// Version of the program.
    pub version: u32,
    /// Procedure of that version.
    pub procedure: u32,
    /// Who the caller claims to be.
    pub credential: OpaqueAuth<'a>,
    /// The proof of the credential; empty for AUTH_NONE and AUTH_SYS.
    pub verifier: OpaqueAuth<'a>,
}

/// Why a message is not a call with which a procedure can be run, and how to answer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallError {
    /// The message is not a call, or ends before its version: there is no way to answer it.
    Unanswerable,
    /// The header itself decides the answer to the call: this reply.
    Rejected(Reply<'static>),
}

impl<'a> Call<'a> {
    /// Reads the header and leaves the reader at the procedure's arguments.
    ///
    /// # Errors
    /// [`CallError`], which holds the reply that RFC 5531 section 9 asks for: RPC_MISMATCH for another RPC version,
    /// AUTH_ERROR for a credential or a verifier over 400 bytes, GARBAGE_ARGS for a header that is cut off.
    pub fn decode(reader: &mut Reader<'a>) -> Result<Self, CallError> {
        let Some([xid, CALL, rpc_version]) = reader.words() else { return Err(CallError::Unanswerable) };
        let rejected = |body| CallError::Rejected(Reply { xid, body });
        if rpc_version != RPC_VERSION {
            let mismatch = Denied::RpcMismatch { low: RPC_VERSION, high: RPC_VERSION };
            return Err(rejected(ReplyBody::Denied(mismatch)));
        }
        let garbage = |_| rejected(ReplyBody::accepted(AcceptStatus::GarbageArgs));
        let authentication = |error, status| match error {
            XdrError::TooLong { .. } => rejected(ReplyBody::Denied(Denied::AuthError(status))),
            error => garbage(error),
        };
        let Some([program, version, procedure]) = reader.words() else {
            return Err(rejected(ReplyBody::accepted(AcceptStatus::GarbageArgs)));
        };
        Ok(Self {
            xid,
            program,
            version,
            procedure,
            credential: OpaqueAuth::decode(reader)
                .map_err(|error| authentication(error, AuthStatus::BadCredential))?,
            verifier: OpaqueAuth::decode(reader)
                .map_err(|error| authentication(error, AuthStatus::BadVerifier))?,
        })
    }
}

impl Encode for Call<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        for word in [self.xid, CALL, RPC_VERSION, self.program, self.version, self.procedure] {
            writer.u32(word);
        }
        self.credential.encode(writer);
        self.verifier.encode(writer);
    }
}

/// The header of a reply; after [`AcceptStatus::Success`] the procedure's results follow it.
#[doc(alias = "reply_body")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply<'a> {
    /// The number of the call that this answers.
    pub xid: u32,
    /// Accepted or denied.
    pub body: ReplyBody<'a>,
}

/// RFC 5531 section 9: whether the call was understood and its caller authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyBody<'a> {
    /// Both: the call was accepted.
    Accepted {
        /// The server's own proof; AUTH_NONE unless a security flavor says otherwise.
        verifier: OpaqueAuth<'a>,
        /// Whether the procedure ran.
        status: AcceptStatus,
    },
    /// The call was not understood, or its caller not authenticated.
    Denied(Denied),
}

impl ReplyBody<'_> {
    /// Accepted with an AUTH_NONE verifier.
    #[must_use]
    pub fn accepted(status: AcceptStatus) -> Self {
        Self::Accepted { verifier: OpaqueAuth::NONE, status }
    }
}

/// The outcome of a call that was accepted.
#[doc(alias = "accept_stat")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptStatus {
    /// The procedure ran. Its results follow, which may be an error of the procedure.
    Success,
    /// This server does not have the program.
    ProgramUnavailable,
    /// The server has the program in other versions.
    ProgramMismatch {
        /// The lowest version that the server has.
        low: u32,
        /// The highest version that the server has.
        high: u32,
    },
    /// The version has no such procedure.
    ProcedureUnavailable,
    /// The arguments do not decode.
    GarbageArgs,
    /// The server failed, for example for lack of memory.
    SystemError,
}

/// Why a call was denied.
#[doc(alias = "rejected_reply")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// The RPC version is not supported.
    RpcMismatch {
        /// Lowest version supported.
        low: u32,
        /// Highest version supported.
        high: u32,
    },
    /// The caller was not authenticated.
    AuthError(AuthStatus),
}

xdr_enum! {
    /// Why authentication failed, RFC 5531 section 9 (the values that are not obsolete).
    #[doc(alias = "auth_stat")]
    AuthStatus {
        /// The credential is malformed.
        BadCredential = 1,
        /// The client must begin a new session.
        RejectedCredential = 2,
        /// The verifier is malformed.
        BadVerifier = 3,
        /// The verifier has expired or was replayed.
        RejectedVerifier = 4,
        /// The flavor is too weak for this server.
        TooWeak = 5,
        /// The response's verifier is bogus (found by a client).
        InvalidResponse = 6,
        /// Another reason.
        Failed = 7,
        /// No credentials for the user (RPCSEC_GSS).
        GssCredentialProblem = 13,
        /// Problem with the context (RPCSEC_GSS).
        GssContextProblem = 14,
    }
}

impl Encode for Reply<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.u32(self.xid);
        writer.u32(REPLY);
        match self.body {
            ReplyBody::Accepted { verifier, status } => {
                writer.u32(MSG_ACCEPTED);
                verifier.encode(writer);
                status.encode(writer);
            }
            ReplyBody::Denied(denied) => {
                writer.u32(MSG_DENIED);
                denied.encode(writer);
            }
        }
    }
}

impl<'a> Decode<'a> for Reply<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        let xid = reader.u32()?;
        match reader.u32()? {
            REPLY => {}
            value => return Err(XdrError::UndefinedValue { kind: "reply", value }),
        }
        let body = match reader.u32()? {
            MSG_ACCEPTED => ReplyBody::Accepted {
                verifier: OpaqueAuth::decode(reader)?,
                status: AcceptStatus::decode(reader)?,
            },
            MSG_DENIED => ReplyBody::Denied(Denied::decode(reader)?),
            value => return Err(XdrError::UndefinedValue { kind: "reply_stat", value }),
        };
        Ok(Self { xid, body })
    }
}

impl Encode for AcceptStatus {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.u32(match self {
            Self::Success => 0,
            Self::ProgramUnavailable => 1,
            Self::ProgramMismatch { .. } => 2,
            Self::ProcedureUnavailable => 3,
            Self::GarbageArgs => 4,
            Self::SystemError => 5,
        });
        if let Self::ProgramMismatch { low, high } = *self {
            writer.u32(low);
            writer.u32(high);
        }
    }
}

impl Decode<'_> for AcceptStatus {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        Ok(match reader.u32()? {
            0 => Self::Success,
            1 => Self::ProgramUnavailable,
            2 => Self::ProgramMismatch { low: reader.u32()?, high: reader.u32()? },
            3 => Self::ProcedureUnavailable,
            4 => Self::GarbageArgs,
            5 => Self::SystemError,
            value => return Err(XdrError::UndefinedValue { kind: "accept_stat", value }),
        })
    }
}

impl Encode for Denied {
    fn encode(&self, writer: &mut Writer<'_>) {
        match *self {
            Self::RpcMismatch { low, high } => {
                for word in [0, low, high] {
                    writer.u32(word);
                }
            }
            Self::AuthError(status) => {
                writer.u32(1);
                status.encode(writer);
            }
        }
    }
}

impl Decode<'_> for Denied {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, XdrError> {
        match reader.u32()? {
            0 => Ok(Self::RpcMismatch { low: reader.u32()?, high: reader.u32()? }),
            1 => Ok(Self::AuthError(AuthStatus::decode(reader)?)),
            value => Err(XdrError::UndefinedValue { kind: "reject_stat", value }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call_words(rpc_version: u32, credential_bytes: u32) -> Vec<u8> {
        let mut message = Vec::new();
        let mut writer = Writer::new(&mut message);
        for word in [7, CALL, rpc_version, 100_003, 3, 1, flavor::AUTH_SYS] {
            writer.u32(word);
        }
        writer.opaque(&vec![0; credential_bytes as usize]);
        OpaqueAuth::NONE.encode(&mut writer);
        message
    }

    #[test]
    fn a_credential_has_at_most_400_bytes() {
        let message = call_words(2, 400);
        let call = Call::decode(&mut Reader::new(&message)).unwrap();
        assert_eq!(call.credential.body.len(), 400);

        let message = call_words(2, 401);
        let denied = ReplyBody::Denied(Denied::AuthError(AuthStatus::BadCredential));
        assert_eq!(
            Call::decode(&mut Reader::new(&message)),
            Err(CallError::Rejected(Reply { xid: 7, body: denied }))
        );
    }

    #[test]
    fn another_rpc_version_is_a_mismatch() {
        let message = call_words(3, 0);
        let Err(CallError::Rejected(reply)) = Call::decode(&mut Reader::new(&message)) else {
            panic!("not rejected")
        };
        // xid 7, REPLY, MSG_DENIED, RPC_MISMATCH, low 2, high 2 (RFC 5531 section 9)
        let expected = [7_u32, 1, 1, 0, 2, 2].map(u32::to_be_bytes).concat();
        assert_eq!(reply.encode_to_vec(), expected);
    }

    #[test]
    fn a_reply_or_less_than_a_version_is_unanswerable() {
        let reply = Reply { xid: 1, body: ReplyBody::accepted(AcceptStatus::Success) }.encode_to_vec();
        assert_eq!(Call::decode(&mut Reader::new(&reply)), Err(CallError::Unanswerable));
        let call = call_words(2, 0);
        for cut in 0..12 {
            assert_eq!(Call::decode(&mut Reader::new(&call[..cut])), Err(CallError::Unanswerable));
        }
    }

    #[test]
    fn a_call_cut_off_in_its_header_is_garbage() {
        let call = call_words(2, 20);
        for cut in 12..call.len() {
            let Err(CallError::Rejected(reply)) = Call::decode(&mut Reader::new(&call[..cut])) else {
                panic!("cut {cut} not rejected")
            };
            assert_eq!(reply.body, ReplyBody::accepted(AcceptStatus::GarbageArgs), "cut {cut}");
        }
    }

    #[test]
    fn replies_have_the_words_of_section_9() {
        let accepted = |status| Reply { xid: 9, body: ReplyBody::accepted(status) }.encode_to_vec();
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>();
        assert_eq!(accepted(AcceptStatus::Success), words(&[9, 1, 0, 0, 0, 0]));
        assert_eq!(accepted(AcceptStatus::ProgramUnavailable), words(&[9, 1, 0, 0, 0, 1]));
        assert_eq!(
            accepted(AcceptStatus::ProgramMismatch { low: 3, high: 3 }),
            words(&[9, 1, 0, 0, 0, 2, 3, 3])
        );
        assert_eq!(accepted(AcceptStatus::ProcedureUnavailable), words(&[9, 1, 0, 0, 0, 3]));
        assert_eq!(accepted(AcceptStatus::GarbageArgs), words(&[9, 1, 0, 0, 0, 4]));
        assert_eq!(accepted(AcceptStatus::SystemError), words(&[9, 1, 0, 0, 0, 5]));
        let denied = ReplyBody::Denied(Denied::AuthError(AuthStatus::TooWeak));
        assert_eq!(Reply { xid: 9, body: denied }.encode_to_vec(), words(&[9, 1, 1, 1, 5]));
    }
}
