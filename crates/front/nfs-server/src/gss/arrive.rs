//! What arrives with RPCSEC_GSS: RFC 2203 5.3.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use bytes::BytesMut;
use krb5::Protection;
use net::{Answer, Buffer};
use nfs_proto::gss::contexts::Unusable;
use nfs_proto::gss::window::Noted;
use nfs_wire::gss::{Credential, Numbered, Procedure, SEQUENCE_MAX, Sealed, Service, Signed};
use nfs_wire::rpc::{AcceptStatus, AuthStatus, Call, CallError as Unread, flavor};
use nfs_wire::xdr::{Decode, Reader, XdrError};

use super::{Context, Protected, begin, now};
use crate::call::CallError;
use crate::connection::Connection;
use crate::received::Received;
use crate::{reply, run};

/// Where the flavor of the credential is in a call (RFC 5531 9): after xid, CALL, RPC version, program, version, procedure.
const FLAVOR_AT: Range<usize> = 24..28;
/// Where a call says that it is one, and of which version of RPC.
const CALL_AT: Range<usize> = 4..12;
const CALL: [u8; 8] = [0, 0, 0, 0, 0, 0, 0, 2];

/// Whether a message is a call with a credential of RPCSEC_GSS.
pub(crate) fn is_meant(frame: &[u8]) -> bool {
    frame.get(FLAVOR_AT) == Some(&flavor::RPCSEC_GSS.to_be_bytes()) && frame.get(CALL_AT) == Some(&CALL)
}

/// What becomes of a message with RPCSEC_GSS.
enum Arrived {
    /// A call, whose arguments are here.
    Call(Protected, Range<usize>),
    /// A call of the control procedures, or one that is not carried out.
    Answered(Buffer),
    /// A call that begins a context.
    Begins(Answer),
    /// A call that is dropped.
    Dropped,
}

/// Opens a call in its buffer, or answers it.
///
/// # Errors
/// What becomes of a message that is no call to be run.
pub(crate) fn open(connection: &Rc<Connection>, mut frame: BytesMut) -> Result<Received, Answer> {
    let (parts, head) = match parts(&frame) {
        Ok(parts) => parts,
        Err(Unread::Rejected(rejected)) => return Err(Answer::Now(reply::reply(&rejected, &()))),
        Err(Unread::Unanswerable) => return Err(Answer::Close("a message that is no RPC call".to_owned())),
    };
    connection.has_called.set(true);
    match arrive(connection, &mut frame, &parts, &head) {
        Ok(Arrived::Call(protected, arguments)) => {
            let record = frame.freeze();
            Received::decode(&record)
                .map(|received| received.protected(protected, arguments))
                .map_err(|_| Answer::Nothing)
        }
        Ok(Arrived::Answered(reply)) => Err(Answer::Now(reply)),
        Ok(Arrived::Begins(answer)) => Err(answer),
        Ok(Arrived::Dropped) => Err(Answer::Nothing),
        Err(not_run) => Err(Answer::Now(run::not_run(head.xid, not_run))),
    }
}

/// Where the parts of a call are in its record.
struct Parts {
    credential: Range<usize>,
    verifier: Range<usize>,
    /// After the credential: what the verifier is the checksum of ends here.
    header_end: usize,
    arguments: usize,
}

/// What of the header is needed.
struct Head {
    xid: u32,
    program: u32,
    version: u32,
    procedure: u32,
    verifier_flavor: u32,
}

fn parts(frame: &[u8]) -> Result<(Parts, Head), Unread> {
    let mut reader = Reader::new(frame);
    let Call { xid, program, version, procedure, credential, verifier } = Call::decode(&mut reader)?;
    let place = |part: &[u8]| {
        let begin = part.as_ptr().addr().saturating_sub(frame.as_ptr().addr());
        begin..begin.saturating_add(part.len())
    };
    let (credential, arguments) = (place(credential.body), place(reader.rest()).start);
    let padded = credential.len().next_multiple_of(4);
    let header_end = credential.start.saturating_add(padded);
    let parts = Parts { credential, verifier: place(verifier.body), header_end, arguments };
    Ok((parts, Head { xid, program, version, procedure, verifier_flavor: verifier.flavor }))
}

fn arrive(
    connection: &Rc<Connection>,
    frame: &mut BytesMut,
    parts: &Parts,
    head: &Head,
) -> Result<Arrived, CallError> {
    run::check_program(connection, head.program, head.version)?;
    if connection.lacks_tls() {
        return Err(AuthStatus::TooWeak.into());
    }
    let credential = frame.get(parts.credential.clone()).unwrap_or_default();
    let credential = Credential::from_bytes(credential).map_err(|error| match error {
        // RFC 2203 5.1: a server that does not have the version rejects the credential.
        XdrError::UndefinedValue { kind: "version of RPCSEC_GSS", .. } => AuthStatus::RejectedCredential,
        _ => AuthStatus::BadCredential,
    })?;
    match credential.procedure {
        Procedure::Init => {
            // 5.2.2: the procedure is NULL, and there is no verifier yet.
            if head.procedure != 0 || !credential.handle.0.is_empty() {
                return Err(AuthStatus::BadCredential.into());
            }
            if head.verifier_flavor != flavor::AUTH_NONE || !parts.verifier.is_empty() {
                return Err(AuthStatus::BadVerifier.into());
            }
            let arguments = frame.get(parts.arguments..).unwrap_or_default();
            begin::answer(connection, head.xid, arguments).map(Arrived::Begins)
        }
        // Kerberos needs one token of each side, so no context waits for another.
        Procedure::ContinueInit => Err(AuthStatus::GssCredentialProblem.into()),
        Procedure::Data | Procedure::Destroy => {
            let Credential { procedure, sequence, service, handle } = credential;
            let service = Service::try_from(service).map_err(|_| AuthStatus::BadCredential)?;
            let context = find(connection, handle.0)?;
            check_header(&context, frame, parts, head)?;
            // 5.3.3.1: after MAXSEQ, the client must begin another context.
            if sequence >= SEQUENCE_MAX {
                return Err(AuthStatus::GssContextProblem.into());
            }
            if context.window.lock().note(sequence) == Noted::Repeated {
                return Ok(Arrived::Dropped);
            }
            connection.server.gss.count_call(service);
            let protected = Protected { context, sequence, service };
            match procedure {
                Procedure::Destroy => destroy(connection, frame, parts, head, &protected),
                _ => data(frame, parts.arguments, head.xid, protected),
            }
        }
    }
}

/// 5.3.3.3: a handle that names no context is a problem of the credential, one that has ended a problem of the context.
fn find(connection: &Connection, handle: &[u8]) -> Result<Arc<Context>, AuthStatus> {
    let mut contexts = connection.server.gss.contexts.lock();
    contexts.find(handle, now().as_unix()).map(Arc::clone).map_err(|unusable| match unusable {
        Unusable::Unknown => AuthStatus::GssCredentialProblem,
        Unusable::Expired => AuthStatus::GssContextProblem,
    })
}

/// 5.3.1: the verifier is the checksum of the header, up to and including the credential.
fn check_header(context: &Context, frame: &[u8], parts: &Parts, head: &Head) -> Result<(), AuthStatus> {
    if head.verifier_flavor != flavor::RPCSEC_GSS {
        return Err(AuthStatus::BadVerifier);
    }
    let header = frame.get(..parts.header_end).unwrap_or_default();
    let verifier = frame.get(parts.verifier.clone()).unwrap_or_default();
    // 5.3.3.4.2
    let checked = context.keys.verify_mic(&[header], verifier);
    checked.map(|_| ()).map_err(|_| AuthStatus::GssCredentialProblem)
}

/// 5.4: the context is forgotten, and the reply is the last that it protects. Clients send no arguments, protected or not.
fn destroy(
    connection: &Connection,
    frame: &[u8],
    parts: &Parts,
    head: &Head,
    protected: &Protected,
) -> Result<Arrived, CallError> {
    if head.procedure != 0 {
        return Err(AuthStatus::BadCredential.into());
    }
    let credential = frame.get(parts.credential.clone()).unwrap_or_default();
    if let Ok(Credential { handle, .. }) = Credential::from_bytes(credential)
        && let Ok(handle) = handle.0.try_into()
    {
        connection.server.gss.contexts.lock().remove(&handle);
    }
    let header_only = Protected { service: Service::None, ..protected.clone() };
    Ok(Arrived::Answered(header_only.close(reply::success(head.xid, &()))))
}

/// The arguments of a call, opened in place.
fn data(frame: &mut [u8], begin: usize, xid: u32, protected: Protected) -> Result<Arrived, CallError> {
    let Protected { context, sequence, service } = &protected;
    let arguments = match service {
        Service::None => Some(begin..frame.len()),
        Service::Integrity => signed(context, frame, begin, *sequence),
        Service::Privacy => sealed(context, frame, begin, *sequence),
    };
    match arguments {
        Some(arguments) => Ok(Arrived::Call(protected, arguments)),
        // 5.3.3.4.2 and 5.3.3.4.3: "GARBAGE_ARGS", in a reply whose verifier is right.
        None => {
            let garbage = run::not_run(xid, AcceptStatus::GarbageArgs.into());
            Ok(Arrived::Answered(protected.close(garbage)))
        }
    }
}

/// 5.3.2.2: the checksum is over the number and the arguments, and the number is that of the credential.
fn signed(context: &Context, frame: &[u8], begin: usize, sequence: u32) -> Option<Range<usize>> {
    let Signed { body, checksum } = Signed::from_bytes(frame.get(begin..)?).ok()?;
    context.keys.verify_mic(&[body], checksum).ok()?;
    (Numbered::of(body).ok()?.sequence == sequence).then_some(())?;
    let start = begin.checked_add(4 + Numbered::HEAD_BYTES)?;
    let end = begin.checked_add(4)?.checked_add(body.len())?;
    Some(start..end)
}

/// 5.3.2.3: as before, inside a token that nobody else can open.
fn sealed(context: &Context, frame: &mut [u8], begin: usize, sequence: u32) -> Option<Range<usize>> {
    let length = Sealed::from_bytes(frame.get(begin..)?).ok()?.body.len();
    let token = begin.checked_add(4)?;
    let token = token..token.checked_add(length)?;
    let opened = context.keys.unwrap(frame.get_mut(token.clone())?).ok()?;
    if opened.protection != Protection::Sealed {
        return None;
    }
    let place =
        token.start.checked_add(opened.message.start)?..token.start.checked_add(opened.message.end)?;
    (Numbered::of(frame.get(place.clone())?).ok()?.sequence == sequence).then_some(())?;
    Some(place.start.checked_add(Numbered::HEAD_BYTES)?..place.end)
}
