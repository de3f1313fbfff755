//! The client's side of a security context of RPCSEC_GSS with Kerberos. RFC 2203.

use krb5::{ContextFlags, PerMessage, Protection};
use nfs_wire::gss::{self, ContextHandle, InitArgs, InitRes, Procedure, Service, Signed, Token, major};
use nfs_wire::rpc::{AcceptStatus, Call, OpaqueAuth, Reply, ReplyBody, flavor};
use nfs_wire::xdr::{Decode, Encode, Reader, Writer};

use super::rpc::{self, finish, garbled};
use crate::{Fault, FaultKind, NfsSecurity, NfsTarget, Result, Wire, World, ticket};

/// The first components of an NFS server's name. RFC 8881 2.2.1.1.1.
const SERVICE_NAME: &str = "nfs";
/// What the client wants of a context. RFC 2203 5.2.2: calls are numbered by RPCSEC_GSS, and arrive in any order, so the
/// detection of replays and of the order must be off.
const FLAGS: ContextFlags =
    ContextFlags::MUTUAL.union(ContextFlags::INTEGRITY).union(ContextFlags::CONFIDENTIALITY);
/// The bytes of an opaque's length.
const LENGTH_BYTES: usize = 4;

/// A context: calls of it are numbered, and carry a checksum; `service` says what is protected besides their header.
#[derive(Debug)]
pub(super) struct Context {
    keys: PerMessage,
    handle: Vec<u8>,
    service: Service,
    /// The number of the next call.
    sequence: u32,
    /// Calls that may be under way at a time, counted from the oldest one.
    pub(super) window: u32,
    /// What the next sealed message is confounded with: random, and counted up.
    confounder: u128,
}

impl Context {
    /// Makes a context on a connection: a ticket of the user's, and the server's proof that it can read it. RFC 2203 5.2.
    pub(super) fn begin<N: World>(
        world: &N,
        wire: &mut N::Wire,
        target: &NfsTarget,
        procedure: rpc::Procedure,
    ) -> Result<Option<Self>> {
        let Some(service) = service(target.security) else { return Ok(None) };
        let ticket = ticket::of_user(world, SERVICE_NAME, &target.host)?;
        let (initiator, token) = ticket::shown(world, &ticket, FLAGS)?;
        wire.send(&first_call(procedure, &token))?;
        let reply = wire.receive()?;
        let (verifier, result) = first_reply(&reply)?;
        let refused = |text: String| Fault::new(FaultKind::WrongPassword, text);
        if result.major != major::COMPLETE {
            let what = format!("the server makes no security context: GSS major status {:#x}", result.major);
            return Err(refused(match initiator.finish(result.token.0) {
                Err(why) if !result.token.0.is_empty() => format!("{what}; {why}"),
                _ => what,
            }));
        }
        let keys = initiator.finish(result.token.0).map_err(|why| refused(why.to_string()))?;
        // RFC 2203 5.2.3.1: the verifier is the checksum of the window
        keys.verify_mic(&[&result.sequence_window.to_be_bytes()], verifier)
            .map_err(|why| refused(format!("the server's first reply: {why}")))?;
        let mut confounder = [0; 16];
        world.random(&mut confounder)?;
        let handle = result.handle.0.to_vec();
        let confounder = u128::from_ne_bytes(confounder);
        Ok(Some(Self { keys, handle, service, sequence: 1, window: result.sequence_window, confounder }))
    }

    /// What calls are signed with, and what they are encrypted with.
    pub(super) fn protection(&self) -> (Option<String>, Option<String>) {
        let enctype = self.keys.enctype().name();
        match self.service {
            Service::None => (None, None),
            Service::Integrity => (Some(format!("krb5i {enctype}")), None),
            Service::Privacy => (None, Some(format!("krb5p {enctype}"))),
        }
    }

    /// The number of the next call, and its credential.
    pub(super) fn credential(&mut self) -> (u32, Vec<u8>) {
        let sequence = self.sequence;
        self.sequence += 1;
        let handle = ContextHandle(&self.handle);
        let service = self.service as u32;
        (sequence, gss::Credential { procedure: Procedure::Data, sequence, service, handle }.encode_to_vec())
    }

    /// Appends the verifier of a call whose header, without it, is `out` from `header` on. RFC 2203 5.3.1.
    pub(super) fn append_verifier(&self, header: usize, out: &mut Vec<u8>) {
        let mic = self.keys.mic(0, &[out.get(header..).unwrap_or_default()]);
        let verifier = OpaqueAuth { flavor: flavor::RPCSEC_GSS, body: mic.as_ref() };
        verifier.encode(&mut Writer::new(out));
    }

    /// Appends what stands before the arguments of a call.
    pub(super) fn append_head(&self, sequence: u32, out: &mut Vec<u8>) {
        match self.service {
            Service::None => return,
            Service::Integrity => out.extend_from_slice(&[0; LENGTH_BYTES]),
            Service::Privacy => out.extend_from_slice(&[0; LENGTH_BYTES + PerMessage::SEALED_HEAD]),
        }
        out.extend_from_slice(&sequence.to_be_bytes());
    }

    /// Protects the arguments of a call: all that is in `out` from `begin` on, which [`Self::append_head`] has begun. RFC
    /// 2203 5.3.2.
    pub(super) fn protect(&mut self, begin: usize, out: &mut Vec<u8>) -> Result<()> {
        let body = begin + LENGTH_BYTES;
        match self.service {
            Service::None => return Ok(()),
            Service::Integrity => {
                let mic = self.keys.mic(0, &[out.get(body..).unwrap_or_default()]);
                let length = put_length(out, begin)?;
                let mut writer = Writer::new(out);
                writer.pad(length);
                writer.opaque(mic.as_ref());
            }
            Service::Privacy => {
                out.resize(out.len() + self.keys.sealed_tail(), 0);
                self.confounder = self.confounder.wrapping_add(1);
                let sealed = out.get_mut(body..).unwrap_or_default();
                self.keys.seal(0, &self.confounder.to_ne_bytes(), sealed).map_err(changed)?;
                let length = put_length(out, begin)?;
                Writer::new(out).pad(length);
            }
        }
        Ok(())
    }

    /// Checks the reply to call `sequence`: its verifier and what stands behind it from `begin` on. Says where the results are.
    pub(super) fn open(
        &self,
        sequence: u32,
        verifier: &[u8],
        message: &mut [u8],
        begin: usize,
    ) -> Result<std::ops::Range<usize>> {
        self.keys.verify_mic(&[&sequence.to_be_bytes()], verifier).map_err(changed)?;
        let whole = message.len();
        let results = message.get_mut(begin..).unwrap_or_default();
        let (at, length) = match self.service {
            Service::None => return Ok(begin..whole),
            Service::Integrity => {
                let Signed { body, checksum } = Signed::decode(&mut Reader::new(results)).map_err(garbled)?;
                self.keys.verify_mic(&[body], checksum).map_err(changed)?;
                (LENGTH_BYTES, body.len())
            }
            Service::Privacy => {
                let length = Reader::new(results).opaque(whole).map_err(garbled)?.len();
                let sealed = results.get_mut(LENGTH_BYTES..LENGTH_BYTES + length).unwrap_or_default();
                let opened = self.keys.unwrap(sealed).map_err(changed)?;
                if opened.protection != Protection::Sealed {
                    return Err(Fault::new(FaultKind::WrongSignature, "a reply is signed and not encrypted"));
                }
                (LENGTH_BYTES + opened.message.start, opened.message.len())
            }
        };
        let body = begin + at..begin + at + length;
        let number = message.get(body.clone()).and_then(|body| body.first_chunk().copied());
        if number.map(u32::from_be_bytes) != Some(sequence) {
            return Err(Fault::protocol("a reply has the number of another call"));
        }
        Ok(body.start + LENGTH_BYTES..body.end)
    }
}

/// What is protected; `None` without Kerberos.
fn service(security: NfsSecurity) -> Option<Service> {
    match security {
        NfsSecurity::Sys => None,
        NfsSecurity::Krb5 => Some(Service::None),
        NfsSecurity::Krb5i => Some(Service::Integrity),
        NfsSecurity::Krb5p => Some(Service::Privacy),
    }
}

/// The record of the call that begins a context.
fn first_call(procedure: rpc::Procedure, token: &[u8]) -> Vec<u8> {
    let handle = ContextHandle(&[]);
    let credential =
        gss::Credential { procedure: Procedure::Init, sequence: 0, service: Service::None as u32, handle };
    let call = Call {
        xid: 0,
        program: procedure.program,
        version: procedure.version,
        procedure: procedure.number,
        credential: OpaqueAuth { flavor: flavor::RPCSEC_GSS, body: &credential.encode_to_vec() },
        verifier: OpaqueAuth::NONE,
    };
    let args = InitArgs { token: Token(token) };
    let mut record =
        [vec![0; nfs_wire::record_mark::MARK_BYTES], call.encode_to_vec(), args.encode_to_vec()].concat();
    finish(&mut record, 0);
    record
}

/// The verifier and the results of that call.
fn first_reply(message: &[u8]) -> Result<(&[u8], InitRes<'_>)> {
    let mut reader = Reader::new(message);
    match Reply::decode(&mut reader).map_err(garbled)?.body {
        ReplyBody::Accepted { verifier, status: AcceptStatus::Success } => {
            Ok((verifier.body, InitRes::decode(&mut reader).map_err(garbled)?))
        }
        other => Err(Fault::new(
            FaultKind::WrongPassword,
            format!("the server makes no security context with Kerberos: {other:?}"),
        )),
    }
}

/// Writes the length of an opaque that begins at `begin` and goes to the end.
fn put_length(out: &mut [u8], begin: usize) -> Result<usize> {
    let length = out.len() - begin - LENGTH_BYTES;
    let written = u32::try_from(length).map_err(|_| Fault::protocol("a call is too long"))?.to_be_bytes();
    if let Some(room) = out.get_mut(begin..begin + LENGTH_BYTES) {
        room.copy_from_slice(&written);
    }
    Ok(length)
}

fn changed(why: krb5::PerMessageError) -> Fault {
    Fault::new(FaultKind::WrongSignature, format!("a reply is not protected as it must be: {why}"))
}

#[cfg(test)]
mod tests {
    use krb5::{Enctype, Key, KeyOrigin, Side};

    use super::*;

    fn sides(service: Service) -> (Context, PerMessage) {
        let key = Key::new(Enctype::Aes256Sha1, &[7; 32]).unwrap();
        let keys = |side| PerMessage::new(&key, side, KeyOrigin::Acceptor).unwrap();
        let keys_of_server = keys(Side::Acceptor);
        let (keys, handle) = (keys(Side::Initiator), vec![1, 2, 3]);
        (Context { keys, handle, service, sequence: 5, window: 8, confounder: 9 }, keys_of_server)
    }

    /// The results of call 5 in a Wrap token of the server.
    fn wrapped(server: &PerMessage, how: Protection) -> Vec<u8> {
        let body = [&5_u32.to_be_bytes()[..], b"results."].concat();
        let token = match how {
            Protection::Sealed => {
                let tail = vec![0; server.sealed_tail()];
                let mut token = [&[0; PerMessage::SEALED_HEAD][..], &body, &tail].concat();
                server.seal(0, &[4; 16], &mut token).unwrap();
                token
            }
            Protection::Signed => {
                let tail = vec![0; server.signed_tail()];
                let mut token = [&[0; PerMessage::SIGNED_HEAD][..], &body, &tail].concat();
                server.sign(0, &mut token).unwrap();
                token
            }
        };
        let mut message = b"head".to_vec();
        Writer::new(&mut message).opaque(&token);
        message
    }

    #[test]
    fn a_sealed_reply_is_opened_and_one_that_is_only_signed_is_refused() {
        let (context, server) = sides(Service::Privacy);
        let verifier = server.mic(0, &[&5_u32.to_be_bytes()]);
        let open = |sequence, mut message: Vec<u8>| {
            let results = context.open(sequence, verifier.as_ref(), &mut message, 4)?;
            Ok::<_, Fault>(message[results].to_vec())
        };
        assert_eq!(open(5, wrapped(&server, Protection::Sealed)), Ok(b"results.".to_vec()));
        let refused = |outcome: Result<Vec<u8>>| outcome.unwrap_err().kind;
        assert_eq!(refused(open(5, wrapped(&server, Protection::Signed))), FaultKind::WrongSignature);
        assert_eq!(refused(open(6, wrapped(&server, Protection::Sealed))), FaultKind::WrongSignature);
        let mut changed = wrapped(&server, Protection::Sealed);
        changed[30] ^= 1;
        assert_eq!(refused(open(5, changed)), FaultKind::WrongSignature);
    }

    #[test]
    fn signed_arguments_are_those_that_the_server_checks() {
        let (mut context, server) = sides(Service::Integrity);
        let mut out = Vec::new();
        context.append_head(5, &mut out);
        out.extend_from_slice(b"arg.");
        context.protect(0, &mut out).unwrap();
        let Signed { body, checksum } = Signed::from_bytes(&out).unwrap();
        assert_eq!(body, [&5_u32.to_be_bytes()[..], b"arg."].concat());
        assert_eq!(server.verify_mic(&[body], checksum), Ok(0));
    }

    /// A server that looks at the calls in another order, as one with several threads may.
    #[test]
    fn no_call_is_numbered_beyond_the_window_of_the_oldest_one_under_way() {
        let (context, server) = sides(Service::None);
        let (first, first_sequence, window) = (100, context.sequence, context.window);
        let mut calls = rpc::Calls::new(rpc::Identity::Proved(Box::new(context)), first);
        let null = rpc::Procedure { program: 100_003, version: 3, number: 0 };
        let answer = |calls: &mut rpc::Calls<()>, xid: u32| {
            let mic = server.mic(0, &[&(first_sequence + xid - first).to_be_bytes()]);
            let verifier = OpaqueAuth { flavor: flavor::RPCSEC_GSS, body: mic.as_ref() };
            let body = ReplyBody::Accepted { verifier, status: AcceptStatus::Success };
            calls.reply(&mut Reply { xid, body }.encode_to_vec()).map(drop).unwrap();
        };
        let fill = |calls: &mut rpc::Calls<()>| {
            let mut sent = 0;
            while calls.has_room() {
                calls.call(null, (), &mut Vec::new(), |_| {}, None).unwrap();
                sent += 1;
            }
            sent
        };
        assert_eq!(fill(&mut calls), window);
        (first + 1..first + window).for_each(|xid| answer(&mut calls, xid));
        assert!(!calls.has_room(), "the oldest one is still under way");
        answer(&mut calls, first);
        assert_eq!(fill(&mut calls), window);
        answer(&mut calls, first + window);
        assert_eq!(fill(&mut calls), 1);
    }
}
