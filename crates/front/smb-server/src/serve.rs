//! Frames in, frames out: processes the frames that a connection receives. [MS-SMB2] 3.3.5.2.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};
use net::{Answer, Buffer, Prefix, PrefixError, Protocol};
use smb_wire::{Command, Header, header};

use crate::compound::Compound;
use crate::connection::Connection;
use crate::context::RequestContext;
use crate::handler::{self, cancel, negotiate};
use crate::receive::transport::{self, Checked, Encryption, FrameKind};
use crate::receive::{Violation, request};
use crate::{dispatch, reply};

/// The most bytes of a frame besides the payload of one request: headers, and the small requests of its compound.
const FRAME_OVERHEAD: usize = 64 * 1024;
/// The most bytes of a frame before any user has logged on.
pub const STRANGER_FRAME_BYTES_MAX: usize = 64 * 1024;
/// The most bytes of an ordinary logon. What the logons of a connection take beyond that counts as memory of strangers.
const LOGON_BYTES: usize = 4 * 1024;

impl Connection {
    /// 3.3.5.2, up to the point where requests are processed one by one.
    fn receive(self: Rc<Self>, mut frame: BytesMut) -> Result<Answer, Violation> {
        let encryption = match transport::frame_kind(&frame)? {
            FrameKind::Smb1 => return negotiate::answer_smb1(&self, &frame).map(Answer::Now),
            FrameKind::Plain => None,
            FrameKind::Encrypted => Some(transport::decrypt(&self, &mut frame)?),
        };
        let checked = transport::check_frame(&self, &frame, encryption.as_ref())?;
        let must_be_finished = checked.must_be_finished;
        let answer = Box::pin(self.process(frame, checked, encryption));
        Ok(if must_be_finished { Answer::Certainly(answer) } else { Answer::Later(answer) })
    }

    /// Answers the messages of a frame, one after the other.
    async fn process(
        self: Rc<Self>,
        mut rest: BytesMut,
        checked: Checked,
        encryption: Option<Encryption>,
    ) -> Option<Buffer> {
        let encrypted = encryption.is_some();
        let mut compound = Compound::new(encryption.map(|encryption| encryption.crypto));
        for header in checked.into_headers() {
            let length = match usize::try_from(header.next_command) {
                Ok(next) if (header::LEN..rest.len()).contains(&next) => next,
                _ => rest.len(),
            };
            // The last message takes all memory of the frame with it.
            let message =
                if length == rest.len() { std::mem::take(&mut rest) } else { rest.split_to(length) };
            compound = self.answer_message(header, message, encrypted, compound).await;
            if self.is_dropped() {
                return None;
            }
        }
        let answer = compound.take_frame().unwrap_or_else(|fault| {
            self.disconnect(fault.0);
            None
        });
        if self.ends_behind_answer() {
            answer.into_iter().for_each(|answer| self.outbox.send(answer));
            self.outbox.break_off("too many logons have failed");
            return None;
        }
        answer
    }

    /// Answers one message, and adds the reply to the compound.
    async fn answer_message(
        self: &Rc<Self>,
        header: Header,
        mut message: BytesMut,
        encrypted: bool,
        compound: Compound,
    ) -> Compound {
        let operation = handler::operation(header.command);
        let mut ctx = RequestContext::new(self, header, operation, encrypted, compound);
        let admitted = request::admit(&mut ctx, &mut message);
        // A request that may wait for long must not hold all memory that was received together with it.
        ctx.message = if operation.lingers { Bytes::copy_from_slice(&message) } else { message.freeze() };
        if header.command == Command::Cancel {
            if admitted.is_ok() {
                cancel::handle(&ctx);
            }
            return ctx.compound.into_inner();
        }
        let outcome = match admitted {
            Ok(subject) => dispatch::dispatch(&mut ctx, &subject).await,
            Err(failure) => Err(failure),
        };
        if ctx.async_id.get().is_some() {
            self.requests.borrow_mut().remove(header.message_id);
        }
        if !self.is_dropped() {
            reply::complete(&ctx, outcome);
        }
        ctx.compound.into_inner()
    }
}

impl Protocol for Connection {
    fn prefix(&self, prefix: [u8; 4]) -> Result<Prefix, PrefixError> {
        let length = smb_wire::frame::decode_prefix(prefix).map_err(|e| PrefixError(e.to_string()))?;
        let most = if self.is_known() {
            usize::try_from(self.io_bytes_max()).unwrap_or(usize::MAX).saturating_add(FRAME_OVERHEAD)
        } else {
            STRANGER_FRAME_BYTES_MAX
        };
        if length > most {
            return Err(PrefixError(format!("a frame of {length} bytes, where at most {most} are taken")));
        }
        Ok(Prefix { length, last: true })
    }

    fn shown(&self, certificate: &[u8]) {
        self.note_certificate(certificate);
    }

    fn is_known(&self) -> bool {
        self.is_known()
    }

    fn held_bytes(&self) -> usize {
        self.logons_bytes().saturating_sub(LOGON_BYTES)
    }

    fn answer(self: Rc<Self>, frame: BytesMut) -> Answer {
        self.endpoint.note_frame();
        if self.is_dropped() {
            return Answer::Nothing;
        }
        self.receive(frame).unwrap_or_else(|violation| Answer::Close(violation.0))
    }

    fn closed(self: Rc<Self>) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async move { self.end_sessions().await })
    }
}
