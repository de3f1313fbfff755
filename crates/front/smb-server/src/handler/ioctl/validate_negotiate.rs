//! FSCTL_VALIDATE_NEGOTIATE_INFO: checks that the negotiation was not changed in transit. [MS-SMB2] 3.3.5.15.12.

use net::Buffer;
use smb_proto::dialect::Dialect;
use smb_wire::NtStatus;
use smb_wire::fscc::fsctl::{ValidateNegotiateRequest, ValidateNegotiateResponse};
use smb_wire::ioctl::Request;

use super::{require_room, respond};
use crate::context::Admitted;
use crate::handler::negotiate::security_mode;
use crate::status::Failure;

/// Answers the request. If it does not match what the client is known to have sent, the connection ends.
pub(super) fn handle(ctx: &Admitted<'_>, request: &Request<'_>) -> Result<Buffer, Failure> {
    let conn = &ctx.connection;
    let negotiated = conn.negotiated.get().ok_or(NtStatus::INVALID_PARAMETER)?;
    // In SMB 3.1.1 the preauthentication hash protects it: "the server MUST terminate the transport connection".
    if negotiated.dialect == Dialect::Smb311 {
        conn.disconnect("FSCTL_VALIDATE_NEGOTIATE_INFO in SMB 3.1.1");
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    require_room(request, ValidateNegotiateResponse::LEN, NtStatus::INVALID_PARAMETER)?;
    let asked = ValidateNegotiateRequest::decode(request.input)?;
    let dialects: Vec<u16> = asked.dialects.iter().map(|dialect| u16::from(*dialect)).collect();
    let matches = dialects == negotiated.client_dialects
        && asked.capabilities == negotiated.client_capabilities
        && asked.guid == negotiated.client_guid
        && asked.security_mode == negotiated.client_security_mode;
    if !matches {
        conn.disconnect("the negotiation was changed on the way");
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    let mut output = Vec::with_capacity(ValidateNegotiateResponse::LEN);
    let response = ValidateNegotiateResponse {
        capabilities: negotiated.server_capabilities,
        guid: ctx.server.guid(),
        security_mode: security_mode(&ctx.server),
        dialect: negotiated.dialect.revision(),
    };
    response.encode_into(&mut output);
    respond(ctx, request, &output)
}
