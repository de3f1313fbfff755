//! Named pipes of IPC$, in message mode: each message that a client writes or reads is a DCE/RPC PDU. C706 chapter 12,
//! [MS-RPCE] 2.2.2.

mod dssetup;
mod lsarpc;
mod samr;
mod srvsvc;
mod well_known;
mod wkssvc;

use std::collections::VecDeque;

use parking_lot::Mutex;
use share::ShareTable;
use smb_wire::dcerpc::{
    Bind, BindAck, Body, Pdu, PduFlags, PresentationContext, PresentationResult, SyntaxId, fault, fragments,
};
use smb_wire::{NtStatus, WireError};

use crate::directory::Directory;

/// The most bytes of a fragment, either way: what Windows offers.
const FRAGMENT_BYTES_MAX: u16 = 4280;
/// The most bytes of a call's arguments.
const ARGUMENTS_BYTES_MAX: usize = 64 * 1024;
/// The most replies that wait to be read.
const ANSWERS_MAX: usize = 64;
/// The only association group of this server: pipes are independent.
const ASSOCIATION: u32 = 1;

/// Reasons of a provider rejection, C706 12.6.3.1.
const ABSTRACT_SYNTAX_NOT_SUPPORTED: u16 = 1;
const TRANSFER_SYNTAXES_NOT_SUPPORTED: u16 = 2;

/// The workgroup of a server without a domain.
const WORKGROUP: &str = "WORKGROUP";

/// The pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Service {
    /// `\srvsvc`: the shares and the server itself.
    Srvsvc,
    /// `\wkssvc`: the name of the server.
    Wkssvc,
    /// `\lsarpc`: the names of users and groups.
    Lsarpc,
    /// `\samr`: the accounts and groups.
    Samr,
}

/// What may be called through a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interface {
    Srvsvc,
    Wkssvc,
    Lsarpc,
    Dssetup,
    Samr,
}

/// The server, as its pipes describe it to a user.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Host<'a> {
    /// Its NetBIOS name.
    pub(crate) name: &'a str,
    pub(crate) shares: &'a ShareTable,
    /// Who SIDs and names stand for.
    pub(crate) directory: &'a dyn Directory,
    /// The name of the user who asks; None if the user has not authenticated.
    pub(crate) user: Option<&'a str>,
}

/// A call whose arguments are complete.
#[derive(Debug)]
struct Call {
    id: u32,
    context_id: u16,
    interface: Interface,
    opnum: u16,
    arguments: Vec<u8>,
}

/// A pipe that a client has open.
#[derive(Debug)]
pub(crate) struct Pipe {
    service: Service,
    /// The presentation contexts that were accepted, by their identifiers.
    contexts: Vec<(u16, Interface)>,
    /// The most bytes of a fragment that the client accepts.
    fragment_bytes_max: u16,
    /// The arguments of a call whose last fragment has not arrived.
    arguments: Vec<u8>,
    /// Replies, one message each. The first one may have been read in part.
    answers: VecDeque<Vec<u8>>,
}

/// The result of a read: bytes, and whether the message has more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) bytes: Vec<u8>,
    pub(crate) more: bool,
}

/// The failure of a call inside RPC: the status of the fault.
type Fault = u32;

impl Service {
    fn named(name: &str) -> Option<Self> {
        let is = |service: &str| name.eq_ignore_ascii_case(service);
        if is("srvsvc") {
            Some(Self::Srvsvc)
        } else if is("wkssvc") {
            Some(Self::Wkssvc)
        } else if is("lsarpc") {
            Some(Self::Lsarpc)
        } else if is("samr") {
            Some(Self::Samr)
        } else {
            None
        }
    }

    /// The interfaces behind the pipe.
    fn interfaces(self) -> &'static [Interface] {
        match self {
            Self::Srvsvc => &[Interface::Srvsvc],
            Self::Wkssvc => &[Interface::Wkssvc],
            Self::Lsarpc => &[Interface::Lsarpc, Interface::Dssetup],
            Self::Samr => &[Interface::Samr],
        }
    }

    fn address(self) -> &'static [u8] {
        match self {
            Self::Srvsvc => br"\PIPE\srvsvc",
            Self::Wkssvc => br"\PIPE\wkssvc",
            // The name of the pipe's owner, as in Windows.
            Self::Lsarpc | Self::Samr => br"\PIPE\lsass",
        }
    }
}

impl Interface {
    fn syntax(self) -> SyntaxId {
        match self {
            Self::Srvsvc => smb_wire::srvsvc::INTERFACE,
            Self::Wkssvc => smb_wire::wkssvc::INTERFACE,
            Self::Lsarpc => smb_wire::lsarpc::INTERFACE,
            Self::Dssetup => smb_wire::dssetup::INTERFACE,
            Self::Samr => smb_wire::samr::INTERFACE,
        }
    }
}

impl Call {
    /// The results. Only look-ups of names wait.
    async fn run(&self, host: &Host<'_>) -> Result<Vec<u8>, Fault> {
        match self.interface {
            Interface::Srvsvc => srvsvc::call(host, self.opnum, &self.arguments),
            Interface::Wkssvc => wkssvc::call(host, self.opnum, &self.arguments),
            Interface::Dssetup => dssetup::call(self.opnum, &self.arguments),
            Interface::Samr => samr::call(host, self.opnum, &self.arguments),
            Interface::Lsarpc => lsarpc::call(host, self.opnum, &self.arguments).await,
        }
    }
}

/// Takes complete PDUs that a client writes. The replies wait to be read.
///
/// # Errors
/// STATUS_INVALID_PARAMETER for bytes that are not a PDU; STATUS_INSUFFICIENT_RESOURCES when the client does not read
/// the answers.
pub(crate) async fn write(pipe: &Mutex<Pipe>, host: &Host<'_>, mut bytes: &[u8]) -> Result<(), NtStatus> {
    while !bytes.is_empty() {
        let taken = pipe.lock().take(&mut bytes)?;
        if let Some(call) = taken {
            let results = call.run(host).await;
            pipe.lock().finish(&call, results).map_err(|_| NtStatus::INVALID_PARAMETER)?;
        }
    }
    Ok(())
}

impl Pipe {
    /// The pipe with this name, if there is one: `srvsvc`, with or without a leading backslash.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let service = Service::named(name.strip_prefix('\\').unwrap_or(name))?;
        Some(Self {
            service,
            contexts: Vec::new(),
            fragment_bytes_max: FRAGMENT_BYTES_MAX,
            arguments: Vec::new(),
            answers: VecDeque::new(),
        })
    }

    /// Takes the first PDU of `bytes`. A call whose arguments it completes is to be answered with [`Pipe::finish`].
    fn take(&mut self, bytes: &mut &[u8]) -> Result<Option<Call>, NtStatus> {
        if self.answers.len() >= ANSWERS_MAX {
            return Err(NtStatus::INSUFFICIENT_RESOURCES);
        }
        let (pdu, length) = Pdu::decode(bytes).map_err(|_| NtStatus::INVALID_PARAMETER)?;
        let call = self.begin(&pdu).map_err(|_| NtStatus::INVALID_PARAMETER)?;
        *bytes = bytes.get(length..).unwrap_or_default();
        Ok(call)
    }

    fn finish(&mut self, call: &Call, results: Result<Vec<u8>, Fault>) -> Result<(), WireError> {
        match results {
            Ok(results) => self.respond(call.id, call.context_id, &results),
            Err(status) => self.fail(call.id, call.context_id, status),
        }
    }

    /// Up to `count` bytes of the first reply; `None` when there is none.
    pub(crate) fn read(&mut self, count: usize) -> Option<Message> {
        let first = self.answers.front_mut()?;
        if first.len() <= count {
            return self.answers.pop_front().map(|bytes| Message { bytes, more: false });
        }
        let rest = first.split_off(count);
        Some(Message { bytes: std::mem::replace(first, rest), more: true })
    }

    fn begin(&mut self, pdu: &Pdu<'_>) -> Result<Option<Call>, WireError> {
        match &pdu.body {
            Body::Bind(bind) => {
                let ack = self.bind(bind);
                self.answer(pdu.call_id, Body::BindAck(ack))?;
            }
            Body::AlterContext(bind) => {
                let ack = self.bind(bind);
                self.answer(pdu.call_id, Body::AlterContextResponse(ack))?;
            }
            Body::Request { context_id, opnum, stub, .. } => {
                if pdu.flags.contains(PduFlags::FIRST_FRAG) {
                    self.arguments.clear();
                }
                if self.arguments.len().saturating_add(stub.len()) > ARGUMENTS_BYTES_MAX {
                    self.fail(pdu.call_id, *context_id, fault::PROTOCOL_ERROR)?;
                    return Ok(None);
                }
                self.arguments.extend_from_slice(stub);
                if !pdu.flags.contains(PduFlags::LAST_FRAG) {
                    return Ok(None);
                }
                let arguments = std::mem::take(&mut self.arguments);
                let bound = self.contexts.iter().find(|(id, _)| id == context_id);
                let Some((context_id, interface)) = bound.copied() else {
                    self.fail(pdu.call_id, *context_id, fault::UNKNOWN_INTERFACE)?;
                    return Ok(None);
                };
                return Ok(Some(Call { id: pdu.call_id, context_id, interface, opnum: *opnum, arguments }));
            }
            Body::Other(_)
            | Body::BindAck(_)
            | Body::BindNak(_)
            | Body::AlterContextResponse(_)
            | Body::Response { .. }
            | Body::Fault { .. } => {}
        }
        Ok(None)
    }

    fn bind(&mut self, bind: &Bind) -> BindAck {
        // C706 12.6.4.4: every implementation accepts at least 1,432 bytes.
        self.fragment_bytes_max = bind.max_recv_frag.clamp(1432, FRAGMENT_BYTES_MAX);
        BindAck {
            max_xmit_frag: self.fragment_bytes_max,
            max_recv_frag: FRAGMENT_BYTES_MAX,
            assoc_group_id: ASSOCIATION,
            secondary_address: self.service.address().to_vec(),
            results: bind.contexts.iter().map(|context| self.accept(context)).collect(),
        }
    }

    fn accept(&mut self, context: &PresentationContext) -> PresentationResult {
        if context.transfer_syntaxes.iter().any(SyntaxId::is_feature_negotiation) {
            return PresentationResult::NegotiateAck(0);
        }
        let asked = |interface: &&Interface| interface.syntax() == context.abstract_syntax;
        let Some(interface) = self.service.interfaces().iter().find(asked) else {
            return PresentationResult::ProviderRejection(ABSTRACT_SYNTAX_NOT_SUPPORTED);
        };
        if !context.transfer_syntaxes.contains(&SyntaxId::NDR) {
            return PresentationResult::ProviderRejection(TRANSFER_SYNTAXES_NOT_SUPPORTED);
        }
        self.contexts.retain(|(id, _)| *id != context.context_id);
        if self.contexts.len() < usize::from(u8::MAX) {
            self.contexts.push((context.context_id, *interface));
        }
        PresentationResult::Acceptance(SyntaxId::NDR)
    }

    fn respond(&mut self, call_id: u32, context_id: u16, results: &[u8]) -> Result<(), WireError> {
        let mut left = results.len();
        for (flags, stub) in fragments(results, self.fragment_bytes_max) {
            let alloc_hint = u32::try_from(left).unwrap_or(u32::MAX);
            left = left.saturating_sub(stub.len());
            let body = Body::Response { alloc_hint, context_id, stub };
            let mut message = Vec::new();
            Pdu { flags, ..Pdu::new(call_id, body) }.encode_into(&mut message)?;
            self.answers.push_back(message);
        }
        Ok(())
    }

    fn fail(&mut self, call_id: u32, context_id: u16, status: Fault) -> Result<(), WireError> {
        self.answer(call_id, Body::Fault { context_id, status })
    }

    fn answer(&mut self, call_id: u32, body: Body<'_>) -> Result<(), WireError> {
        let mut message = Vec::new();
        Pdu::new(call_id, body).encode_into(&mut message)?;
        self.answers.push_back(message);
        Ok(())
    }
}
