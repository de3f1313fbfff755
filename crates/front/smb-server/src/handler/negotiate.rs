//! NEGOTIATE. [MS-SMB2] 3.3.5.4, and the reply to an SMB1 client that also supports SMB2: 3.3.5.3.

use net::{Buffer, Transport};
use smb_proto::dialect::{Cipher, Dialect, SigningAlgorithm};
use smb_proto::negotiate::{Negotiated, Offer, negotiate};
use smb_proto::session::Protection;
use smb_wire::negotiate::{Capabilities, Dialect as WireDialect, Request, Response, SecurityMode};
use smb_wire::negotiate_context::NegotiateContext;
use smb_wire::{Command, Guid, Header, HeaderFlags, Target, header, smb1};

use crate::compound;
use crate::connection::Connection;
use crate::context::RequestContext;
use crate::operation::Operation;
use crate::receive::Violation;
use crate::server::{Server, now, random};
use crate::status::Failure;

/// MaxTransactSize and similar values in the reply to SMB1, which only settles the dialect.
const IO_BYTES_UPGRADE: u32 = 64 * 1024;

/// The properties of NEGOTIATE.
pub(crate) const OPERATION: Operation = Operation { answer_bytes: 512, ..Operation::of(Command::Negotiate) };

/// Answers the request.
pub(crate) async fn handle(ctx: &RequestContext, request: Request<'_>) -> Result<Buffer, Failure> {
    let conn = &ctx.connection;
    let negotiated = negotiate(&offer(&ctx.server, conn.peer.transport), &request)?;
    if negotiated.dialect >= Dialect::Smb311 {
        conn.extend_preauth(&ctx.message);
    }
    let negotiated = conn.negotiated.get_or_init(|| negotiated);
    conn.endpoint.set_secured(negotiated.transport_security);
    tracing::debug!(
        peer = %conn.peer.address, dialect = ?negotiated.dialect, cipher = ?negotiated.cipher,
        signing = ?negotiated.signing_algorithm, transport_security = negotiated.transport_security, "negotiated"
    );
    let (salt, token) = (random(), ctx.server.security_token());
    let answer = response(
        &ctx.server,
        negotiated.dialect.revision().into(),
        negotiated.server_capabilities,
        conn.io_bytes_max(),
        negotiated.response_contexts(&salt),
        &token,
    );
    encode(ctx.reply(), &answer)
}

/// The offer of this server over this transport.
fn offer(server: &Server, transport: Transport) -> Offer {
    let encrypts = server.config.encryption != Protection::Off;
    let mut capabilities = Capabilities::LARGE_MTU | Capabilities::LEASING | Capabilities::DIRECTORY_LEASING;
    capabilities.set(Capabilities::ENCRYPTION, encrypts);
    capabilities.set(Capabilities::PERSISTENT_HANDLES, server.offers_persistence());
    capabilities.set(Capabilities::MULTI_CHANNEL, server.config.offers_multichannel());
    Offer {
        dialects: server.config.dialects.clone(),
        ciphers: if encrypts { Cipher::ALL.to_vec() } else { Vec::new() },
        signing_algorithms: SigningAlgorithm::ALL.to_vec(),
        transport_security: transport == Transport::Quic && !server.config.encryption_over_quic,
        capabilities,
    }
}

/// The SecurityMode of this server. 3.3.5.4: signing is always enabled.
pub(crate) fn security_mode(server: &Server) -> SecurityMode {
    let mut mode = SecurityMode::SIGNING_ENABLED;
    mode.set(SecurityMode::SIGNING_REQUIRED, server.config.signing == Protection::Required);
    mode
}

fn response<'a>(
    server: &'a Server,
    dialect: WireDialect,
    capabilities: Capabilities,
    io_bytes_max: u32,
    contexts: Vec<NegotiateContext<'a>>,
    security_buffer: &'a [u8],
) -> Response<'a> {
    Response {
        security_mode: security_mode(server),
        dialect,
        server_guid: server.guid(),
        capabilities,
        max_transact_size: io_bytes_max,
        max_read_size: io_bytes_max,
        max_write_size: io_bytes_max,
        system_time: now(),
        server_start_time: server.started,
        security_buffer,
        contexts,
    }
}

fn encode(mut buffer: Buffer, response: &Response<'_>) -> Result<Buffer, Failure> {
    buffer.append_with(|bytes, origin| {
        // Offsets count from the header, alignment from the start of the message, so the response is encoded
        // separately.
        let mut body = vec![0; header::LEN];
        response.encode(&mut body)?;
        bytes.truncate(origin);
        bytes.extend_from_slice(&body);
        Ok::<_, Failure>(())
    })?;
    Ok(buffer)
}

/// Answers an SMB1 NEGOTIATE with an SMB2 one. 3.3.5.3.1: "SMB 2.???" gets the wildcard revision, and the client
/// negotiates again in SMB2; 3.3.5.3.2: "SMB 2.002" alone settles on that dialect.
///
/// # Errors
/// Anything else, since SMB1 itself is not supported.
pub(crate) fn answer_smb1(conn: &Connection, frame: &[u8]) -> Result<Buffer, Violation> {
    if conn.negotiated.get().is_some() || conn.upgraded.get() {
        return Err("an SMB1 message on an SMB2 connection".into());
    }
    let request =
        smb1::NegotiateRequest::decode(frame).map_err(|e| Violation(format!("SMB1 NEGOTIATE: {e}")))?;
    let dialects = &conn.server.config.dialects;
    let dialect = if request.offers(smb1::SMB_2_WILDCARD) && *dialects.end() > Dialect::Smb202 {
        WireDialect::Wildcard
    } else if request.offers(smb1::SMB_2_002) && dialects.contains(&Dialect::Smb202) {
        let negotiated = settle_on_smb202(conn)?;
        let _ = conn.negotiated.set(negotiated);
        WireDialect::Smb202
    } else {
        return Err("an SMB1 client that speaks no SMB2".into());
    };
    conn.upgraded.set(true);
    let mut window = conn.window.borrow_mut();
    window.consume(0, 1).map_err(|e| Violation(e.to_string()))?;
    let header = Header { credits: window.grant(1), ..upgrade_header() };
    let token = conn.server.security_token();
    let none = Capabilities::empty();
    let answer = response(&conn.server, dialect, none, IO_BYTES_UPGRADE, Vec::new(), &token);
    let mut empty = Buffer::with_capacity(512);
    empty.append(&[0; header::LEN]);
    let message = encode(empty, &answer).map_err(|_| "a token that is too long")?;
    compound::frame_of(&header, message, None).ok_or_else(|| "a reply that is too long".into())
}

fn settle_on_smb202(conn: &Connection) -> Result<Negotiated, Violation> {
    let request = Request {
        security_mode: SecurityMode::SIGNING_ENABLED,
        capabilities: Capabilities::empty(),
        client_guid: Guid::ZERO,
        dialects: vec![WireDialect::Smb202],
        contexts: Vec::new(),
    };
    negotiate(&offer(&conn.server, conn.peer.transport), &request)
        .map_err(|status| Violation(status.to_string()))
}

fn upgrade_header() -> Header {
    Header {
        credit_charge: 0,
        status_or_channel_sequence: 0,
        command: Command::Negotiate,
        credits: 1,
        flags: HeaderFlags::SERVER_TO_REDIR,
        next_command: 0,
        message_id: 0,
        target: Target::Sync { tree_id: 0 },
        session_id: 0,
        signature: [0; 16],
    }
}
