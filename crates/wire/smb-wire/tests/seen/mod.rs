//! What this crate sees in a message, under tshark's names.

use anabranch_smb_wire as smb;
use smb::create_context::{Lease, RequestContext, ResponseContext};
use smb::negotiate_context::NegotiateContext;
use smb::{Command, FileId, FileTime, Header, HeaderFlags, Target, Utf16, WireError};

mod buffers;

/// What a response alone does not tell: what the request asked for.
#[derive(Debug, Default)]
pub(crate) struct Context {
    pub(crate) class: Option<u8>,
    pub(crate) file_class: Option<u8>,
    pub(crate) fs_class: Option<u8>,
    pub(crate) find_class: Option<u8>,
    pub(crate) srvsvc_opnum: Option<u8>,
}

impl Context {
    pub(crate) fn new(fields: &[(String, Vec<String>)]) -> Self {
        let find = |name: &str| {
            let (_, values) = fields.iter().find(|(field, _)| field == name)?;
            Some(u8::from_str_radix(&values[0], 16).expect("a class"))
        };
        Self {
            class: find("request.class"),
            file_class: find("request.file_info.infolevel"),
            fs_class: find("request.fs_info.infolevel"),
            find_class: find("request.find.infolevel"),
            srvsvc_opnum: find("request.srvsvc.opnum"),
        }
    }
}

/// Fields and their bytes, in the order of the message.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    fields: Vec<(&'static str, Vec<u8>)>,
    /// Buffers that did not encode to themselves.
    wrong: Vec<String>,
}

/// tshark shows only a part of these, or shows more than the field under the same name.
fn comparable(field: &str, values: &[String]) -> Vec<String> {
    match field {
        // IOCTL responses have another field of this name.
        "smb2.flags" => values[..1].to_vec(),
        _ => values.to_vec(),
    }
}

impl Seen {
    fn add(&mut self, field: &'static str, bytes: impl AsRef<[u8]>) {
        self.fields.push((field, bytes.as_ref().to_vec()));
    }

    fn time(&mut self, field: &'static str, time: FileTime) {
        self.add(field, time.0.to_le_bytes());
    }

    fn file_id(&mut self, id: FileId) {
        self.add("smb2.fid", [id.persistent.to_le_bytes(), id.volatile.to_le_bytes()].concat());
    }

    /// A buffer that was encoded again must be unchanged.
    fn same(&mut self, encoded: &[u8], original: &[u8]) {
        if encoded != original {
            let (encoded, original) = (super::hex(encoded), super::hex(original));
            self.wrong.push(format!("buffer\n  {encoded}\n  is\n  {original}"));
        }
    }

    /// tshark omits empty texts.
    fn text(&mut self, field: &'static str, text: Utf16<'_>) {
        self.bytes(field, &text.to_wire());
    }

    fn bytes(&mut self, field: &'static str, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.add(field, bytes);
        }
    }

    fn values(&self, field: &str) -> Vec<String> {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        self.fields.iter().filter(|(name, _)| *name == field).map(|(_, bytes)| hex(bytes)).collect()
    }

    /// Every field that tshark shows must be here with the same bytes.
    pub(crate) fn differences(&self, expected: &[(String, Vec<String>)]) -> Vec<String> {
        let mut differences = self.wrong.clone();
        for (field, values) in expected.iter().filter(|(field, _)| !field.starts_with("request.")) {
            let (ours, theirs) = (self.values(field), comparable(field, values));
            if ours != theirs {
                differences.push(format!("{field} is {ours:?}, tshark has {theirs:?}"));
            }
        }
        differences
    }
}

type Decoded = Result<(Seen, Vec<u8>), WireError>;

/// Decodes a message. Returns what was seen, and the message encoded again.
pub(crate) fn decode(message: &[u8], context: &Context) -> Decoded {
    let header = Header::decode(message)?;
    let mut seen = Seen::default();
    seen_header(&mut seen, &header);
    let mut out = Vec::new();
    header.encode_into(&mut out);
    if !header.flags.contains(HeaderFlags::SERVER_TO_REDIR) {
        request(&mut seen, header.command, message, &mut out)?;
    } else if message[64] == 9 && message.len() == 64 + 9 {
        // An ERROR response without data has nine bytes. The output buffer responses have eight and their data.
        let response = smb::error_response::Response::decode(message)?;
        seen.add("smb2.error.context_count", [response.context_count]);
        seen.add("smb2.error.byte_count", len32(response.data));
        response.encode(&mut out)?;
    } else {
        response(&mut seen, header.command, message, context, &mut out)?;
    }
    Ok((seen, out))
}

fn len32(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).expect("a short message").to_le_bytes()
}

fn seen_header(seen: &mut Seen, header: &Header) {
    seen.add("smb2.credit.charge", header.credit_charge.to_le_bytes());
    seen.add("smb2.cmd", u16::from(header.command).to_le_bytes());
    seen.add("smb2.flags", header.flags.bits().to_le_bytes());
    seen.add("smb2.chain_offset", header.next_command.to_le_bytes());
    seen.add("smb2.msg_id", header.message_id.to_le_bytes());
    seen.add("smb2.sesid", header.session_id.to_le_bytes());
    seen.add("smb2.signature", header.signature);
    match header.target {
        Target::Sync { tree_id } => seen.add("smb2.tid", tree_id.to_le_bytes()),
        Target::Async { async_id } => seen.add("smb2.aid", async_id.to_le_bytes()),
    }
    if header.flags.contains(HeaderFlags::SERVER_TO_REDIR) {
        seen.add("smb2.nt_status", header.status().0.to_le_bytes());
        seen.add("smb2.credits.granted", header.credits.to_le_bytes());
    } else {
        seen.add("smb2.credits.requested", header.credits.to_le_bytes());
    }
}

fn request(seen: &mut Seen, command: Command, message: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    match command {
        Command::Negotiate => negotiate_request(seen, message, out),
        Command::SessionSetup => session_setup_request(seen, message, out),
        Command::Logoff => smb::logoff::Request::decode(message).map(|request| request.encode(out)),
        Command::TreeConnect => {
            let request = smb::tree_connect::Request::decode(message)?;
            seen.add("smb2.tc.flags", request.flags.bits().to_le_bytes());
            request.encode(out)
        }
        Command::TreeDisconnect => smb::tree_disconnect::Request::decode(message).map(|r| r.encode(out)),
        Command::Create => create_request(seen, message, out),
        Command::Close => {
            let request = smb::close::Request::decode(message)?;
            seen.add("smb2.close.flags", request.flags.bits().to_le_bytes());
            seen.file_id(request.file_id);
            request.encode(out);
            Ok(())
        }
        Command::Flush => {
            let request = smb::flush::Request::decode(message)?;
            seen.file_id(request.file_id);
            request.encode(out);
            Ok(())
        }
        Command::Read => read_request(seen, message, out),
        Command::Write => write_request(seen, message, out),
        Command::Lock => lock_request(seen, message, out),
        Command::Ioctl => {
            let request = smb::ioctl::Request::decode(message)?;
            seen.add("smb2.ioctl.function", u32::from(request.ctl_code).to_le_bytes());
            seen.file_id(request.file_id);
            seen.add("smb2.max_ioctl_in_size", request.max_input_response.to_le_bytes());
            seen.add("smb2.max_ioctl_out_size", request.max_output_response.to_le_bytes());
            seen.add("smb2.ioctl.flags", request.flags.bits().to_le_bytes());
            buffers::ioctl_input(seen, &request)?;
            request.encode(out)
        }
        Command::Cancel => smb::cancel::Request::decode(message).map(|request| request.encode(out)),
        Command::Echo => smb::echo::Request::decode(message).map(|request| request.encode(out)),
        Command::QueryDirectory => query_directory_request(seen, message, out),
        Command::ChangeNotify => {
            let request = smb::change_notify::Request::decode(message)?;
            seen.add("smb2.notify.flags", request.flags.bits().to_le_bytes());
            seen.add("smb2.output_buffer_len", request.output_buffer_length.to_le_bytes());
            seen.file_id(request.file_id);
            seen.add("smb.nt.notify.completion_filter", request.completion_filter.bits().to_le_bytes());
            request.encode(out);
            Ok(())
        }
        Command::QueryInfo => query_info_request(seen, message, out),
        Command::SetInfo => {
            let request = smb::set_info::Request::decode(message)?;
            seen_info_class(seen, request.info_type, request.info_class);
            seen.add("smb2.getsetinfo_additional", request.additional_information.to_le_bytes());
            seen.file_id(request.file_id);
            buffers::set_info(seen, &request)?;
            request.encode(out)
        }
        Command::OplockBreak => {
            let request = smb::oplock_break::Request::decode(message)?;
            seen_acknowledgment(seen, &request);
            request.encode(out);
            Ok(())
        }
        Command::ServerToClientNotification | Command::Unknown(_) => Err(WireError::Invalid("Command")),
    }
}

fn response(
    seen: &mut Seen,
    command: Command,
    message: &[u8],
    context: &Context,
    out: &mut Vec<u8>,
) -> Result<(), WireError> {
    match command {
        Command::Negotiate => negotiate_response(seen, message, out),
        Command::SessionSetup => {
            let response = smb::session_setup::Response::decode(message)?;
            seen.add("smb2.session_flags", response.session_flags.bits().to_le_bytes());
            seen.bytes("smb2.security_blob", response.security_buffer);
            response.encode(out)
        }
        Command::Logoff => smb::logoff::Response::decode(message).map(|response| response.encode(out)),
        Command::TreeConnect => {
            let response = smb::tree_connect::Response::decode(message)?;
            seen.add("smb2.share_type", [response.share_type.into()]);
            seen.add("smb2.share_flags", response.share_flags.bits().to_le_bytes());
            seen.add("smb2.share_caps", response.capabilities.bits().to_le_bytes());
            seen.add("smb.access_mask", response.maximal_access.bits().to_le_bytes());
            response.encode(out);
            Ok(())
        }
        Command::TreeDisconnect => smb::tree_disconnect::Response::decode(message).map(|r| r.encode(out)),
        Command::Create => create_response(seen, message, out),
        Command::Close => close_response(seen, message, out),
        Command::Flush => smb::flush::Response::decode(message).map(|response| response.encode(out)),
        Command::Read => {
            let response = smb::read::Response::decode(message)?;
            seen.add("smb2.read_remaining", response.data_remaining.to_le_bytes());
            response.encode(out)
        }
        Command::Write => {
            let response = smb::write::Response::decode(message)?;
            seen.add("smb2.write.count", response.count.to_le_bytes());
            response.encode(out);
            Ok(())
        }
        Command::Lock => smb::lock::Response::decode(message).map(|response| response.encode(out)),
        Command::Ioctl => {
            let response = smb::ioctl::Response::decode(message)?;
            seen.add("smb2.ioctl.function", u32::from(response.ctl_code).to_le_bytes());
            seen.file_id(response.file_id);
            buffers::ioctl_output(seen, context, &response)?;
            response.encode(out)
        }
        Command::Echo => smb::echo::Response::decode(message).map(|response| response.encode(out)),
        Command::QueryDirectory => {
            let response = smb::query_directory::Response::decode(message)?;
            buffers::directory(seen, context, response.output_buffer)?;
            response.encode(out)
        }
        Command::ChangeNotify => {
            let response = smb::change_notify::Response::decode(message)?;
            buffers::changes(seen, response.output_buffer)?;
            response.encode(out)
        }
        Command::QueryInfo => {
            let response = smb::query_info::Response::decode(message)?;
            let whole = Header::decode(message)?.status() == smb::NtStatus::SUCCESS;
            if whole {
                buffers::query_info(seen, context, response.output_buffer)?;
            }
            response.encode(out)
        }
        Command::SetInfo => smb::set_info::Response::decode(message).map(|response| response.encode(out)),
        Command::OplockBreak => oplock_break(seen, message, out),
        Command::Cancel | Command::ServerToClientNotification | Command::Unknown(_) => {
            Err(WireError::Invalid("Command"))
        }
    }
}

fn negotiate_request(seen: &mut Seen, message: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    let request = smb::negotiate::Request::decode(message)?;
    // tshark shows the first of the two bytes.
    seen.add("smb2.sec_mode", &request.security_mode.bits().to_le_bytes()[..1]);
    seen.add("smb2.capabilities", request.capabilities.bits().to_le_bytes());
    seen.add("smb2.client_guid", request.client_guid.0);
    for dialect in &request.dialects {
        seen.add("smb2.dialect", u16::from(*dialect).to_le_bytes());
    }
    seen_negotiate_contexts(seen, &request.contexts);
    request.encode(out)
}

fn negotiate_response(seen: &mut Seen, message: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    let response = smb::negotiate::Response::decode(message)?;
    seen.add("smb2.sec_mode", &response.security_mode.bits().to_le_bytes()[..1]);
    seen.add("smb2.dialect", u16::from(response.dialect).to_le_bytes());
    seen.add("smb2.server_guid", response.server_guid.0);
    seen.add("smb2.capabilities", response.capabilities.bits().to_le_bytes());
    seen.add("smb2.max_trans_size", response.max_transact_size.to_le_bytes());
    seen.add("smb2.max_read_size", response.max_read_size.to_le_bytes());
    seen.add("smb2.max_write_size", response.max_write_size.to_le_bytes());
    seen.time("smb2.current_time", response.system_time);
    seen.time("smb2.boot_time", response.server_start_time);
    seen.bytes("smb2.security_blob", response.security_buffer);
    seen_negotiate_contexts(seen, &response.contexts);
    response.encode(out)
}

fn seen_negotiate_contexts(seen: &mut Seen, contexts: &[NegotiateContext<'_>]) {
    for context in contexts {
        seen.add("smb2.negotiate_context.type", context.context_type().to_le_bytes());
        match context {
            NegotiateContext::PreauthIntegrity { hash_algorithms, salt } => {
                for hash in hash_algorithms {
                    seen.add("smb2.negotiate_context.hash_algorithm", u16::from(*hash).to_le_bytes());
                }
                seen.bytes("smb2.negotiate_context.salt", salt);
            }
            NegotiateContext::Encryption(ciphers) => {
                for cipher in ciphers {
                    seen.add("smb2.negotiate_context.cipher_id", u16::from(*cipher).to_le_bytes());
                }
            }
            NegotiateContext::Signing(algorithms) => {
                for algorithm in algorithms {
                    seen.add("smb2.negotiate_context.signing_id", u16::from(*algorithm).to_le_bytes());
                }
            }
            NegotiateContext::Netname(name) => seen.text("smb2.negotiate_context.netname", *name),
            _ => {}
        }
    }
}

fn session_setup_request(seen: &mut Seen, message: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    let request = smb::session_setup::Request::decode(message)?;
    seen.add("smb2.ses_req_flags", [request.flags.bits()]);
    seen.add("smb2.sec_mode", [request.security_mode.bits()]);
    seen.add("smb2.capabilities", request.capabilities.bits().to_le_bytes());
    seen.add("smb2.channel", [0; 4]);
    seen.add("smb2.previous_sesid", request.previous_session_id.to_le_bytes());
    seen.bytes("smb2.security_blob", request.security_buffer);
    request.encode(out)
}

fn create_request(seen: &mut Seen, message: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    let request = smb::create::Request::decode(message)?;
    seen.add("smb2.create.oplock", [request.requested_oplock_level.into()]);
    seen.add("smb2.impersonation.level", u32::from(request.impersonation_level).to_le_bytes());
    seen.add("smb.access_mask", request.desired_access.bits().to_le_bytes());
    seen.add("smb2.file_attribute", request.file_attributes.bits().to_le_bytes());
    seen.add("smb.share_access", request.share_access.bits().to_le_bytes());
    seen.add("smb2.create.disposition", u32::from(request.create_disposition).to_le_bytes());
    seen.add("smb.create_options", request.create_options.bits().to_le_bytes());
    seen.text("smb2.filename", request.name);
    for context in &request.contexts {
        seen.add("smb2.tag", context.name());
        seen_create_request_context(seen, context)?;
    }
    request.encode(out)
}

fn seen_create_request_context(seen: &mut Seen, context: &RequestContext<'_>) -> Result<(), WireError> {
    match context {
        RequestContext::EaBuffer(list) => buffers::extended_attributes(seen, list)?,
        RequestContext::SdBuffer(bytes) => buffers::security_descriptor(seen, bytes)?,
        RequestContext::AllocationSize(size) => seen.add("smb2.allocation_size", size.to_le_bytes()),
        RequestContext::TimewarpToken(time) => seen.time("smb2.twrp_timestamp", *time),
        RequestContext::RequestLease(lease) => seen_lease(seen, lease),
        // tshark takes the 16 reserved bytes for a FileId.
        RequestContext::DurableHandleRequest => seen.file_id(FileId::default()),
        RequestContext::DurableHandleReconnect { file_id } => seen.file_id(*file_id),
        RequestContext::DurableHandleRequestV2 { timeout_ms, flags, create_guid } => {
            seen.add("smb2.dh2x.timeout", timeout_ms.to_le_bytes());
            seen.add("smb2.dh2x.flags", flags.bits().to_le_bytes());
            seen.add("smb2.dh2x.create_guid", create_guid.0);
        }
        RequestContext::DurableHandleReconnectV2 { file_id, create_guid, flags } => {
            seen.file_id(*file_id);
            seen.add("smb2.dh2x.create_guid", create_guid.0);
            seen.add("smb2.dh2x.flags", flags.bits().to_le_bytes());
        }
        RequestContext::AppInstanceId(guid) => seen.add("smb2.app_instance.app_guid", guid.0),
        _ => {}
    }
    Ok(())
}

fn seen_lease(seen: &mut Seen, lease: &Lease) {
    seen.add("smb2.lease.lease_key", lease.key);
    seen.add("smb2.lease.lease_state", lease.state.bits().to_le_bytes());
    seen.add("smb2.lease.lease_flags", lease.flags.bits().to_le_bytes());
    if let Some(v2) = lease.v2 {
        seen.add("smb2.lease.parent_lease_key", v2.parent_key);
    }
}

fn create_response(seen: &mut Seen, message: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    let response = smb::create::Response::decode(message)?;
    seen.add("smb2.create.oplock", [response.oplock_level.into()]);
    seen.add("smb2.create.action", u32::from(response.create_action).to_le_bytes());
    seen.time("smb2.create.time", response.creation_time);
    seen.time("smb2.last_access.time", response.last_access_time);
    seen.time("smb2.last_write.time", response.last_write_time);
    seen.time("smb2.last_change.time", response.change_time);
    seen.add("smb2.allocation_size", response.allocation_size.to_le_bytes());
    seen.add("smb2.eof", response.end_of_file.to_le_bytes());
    seen.add("smb2.file_attribute", response.file_attributes.bits().to_le_bytes());
    seen.file_id(response.file_id);
    for context in &response.contexts {
        seen.add("smb2.tag", context.name());
        match context {
            ResponseContext::MaximalAccess { query_status, maximal_access } => {
                seen.add("smb2.mxac_status", query_status.0.to_le_bytes());
                seen.add("smb.access_mask", maximal_access.bits().to_le_bytes());
            }
            ResponseContext::Lease(lease) => seen_lease(seen, lease),
            ResponseContext::DurableHandleV2 { timeout_ms, flags } => {
                seen.add("smb2.dh2x.timeout", timeout_ms.to_le_bytes());
                seen.add("smb2.dh2x.flags", flags.bits().to_le_bytes());
            }
            _ => {}
        }
    }
    response.encode(out)
}

fn close_response(seen: &mut Seen, message: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    let response = smb::close::Response::decode(message)?;
    seen.add("smb2.close.flags", u16::from(response.attributes.is_some()).to_le_bytes());
    if let Some(attributes) = response.attributes {
        seen.time("smb2.create.time", attributes.creation_time);
        seen.time("smb2.last_access.time", attributes.last_access_time);
        seen.time("smb2.last_write.time", attributes.last_write_time);
        seen.time("smb2.last_change.time", attributes.change_time);
        seen.add("smb2.allocation_size", attributes.allocation_size.to_le_bytes());
        seen.add("smb2.eof", attributes.end_of_file.to_le_bytes());
        seen.add("smb2.file_attribute", attributes.file_attributes.bits().to_le_bytes());
    }
    response.encode(out);
    Ok(())
}

fn read_request(seen: &mut Seen, message: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    let request = smb::read::Request::decode(message)?;
    seen.add("smb2.read_padding", [request.padding]);
    seen.add("smb2.read_flags", [request.flags.bits()]);
    seen.add("smb2.read_length", request.length.to_le_bytes());
    seen.add("smb2.file_offset", request.offset.to_le_bytes());
    seen.file_id(request.file_id);
    seen.add("smb2.min_count", request.minimum_count.to_le_bytes());
    seen.add("smb2.channel", u32::from(request.channel).to_le_bytes());
    seen.add("smb2.remaining_bytes", request.remaining_bytes.to_le_bytes());
    request.encode(out)
}

fn write_request(seen: &mut Seen, message: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    let request = smb::write::Request::decode(message)?;
    assert_eq!(&message[request.payload_range()], request.data);
    seen.add("smb2.write_length", len32(request.data));
    seen.add("smb2.file_offset", request.offset.to_le_bytes());
    seen.file_id(request.file_id);
    seen.add("smb2.channel", u32::from(request.channel).to_le_bytes());
    seen.add("smb2.remaining_bytes", request.remaining_bytes.to_le_bytes());
    seen.add("smb2.write.flags", request.flags.bits().to_le_bytes());
    request.encode(out)
}

fn lock_request(seen: &mut Seen, message: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    let request = smb::lock::Request::decode(message)?;
    let count = u16::try_from(request.locks.len()).expect("a count");
    seen.add("smb2.lock_count", count.to_le_bytes());
    seen.file_id(request.file_id);
    for lock in &request.locks {
        seen.add("smb2.file_offset", lock.offset.to_le_bytes());
        seen.add("smb2.lock_length", lock.length.to_le_bytes());
        seen.add("smb2.lock_flags", lock.flags.bits().to_le_bytes());
    }
    request.encode(out)
}

fn query_directory_request(seen: &mut Seen, message: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    let request = smb::query_directory::Request::decode(message)?;
    seen.add("smb2.find.infolevel", [request.file_information_class.into()]);
    seen.add("smb2.find.flags", [request.flags.bits()]);
    seen.add("smb2.file_index", request.file_index.to_le_bytes());
    seen.file_id(request.file_id);
    seen.text("smb2.find.pattern", request.file_name);
    seen.add("smb2.output_buffer_len", request.output_buffer_length.to_le_bytes());
    request.encode(out)
}

fn seen_info_class(seen: &mut Seen, info_type: smb::query_info::InfoType, info_class: u8) {
    use smb::query_info::InfoType;
    seen.add("smb2.class", [info_type.into()]);
    let field = match info_type {
        InfoType::File => "smb2.file_info.infolevel",
        InfoType::FileSystem => "smb2.fs_info.infolevel",
        _ => "smb2.sec_info.infolevel",
    };
    seen.add(field, [info_class]);
}

fn query_info_request(seen: &mut Seen, message: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    let request = smb::query_info::Request::decode(message)?;
    seen_info_class(seen, request.info_type, request.info_class);
    seen.add("smb2.max_response_size", request.output_buffer_length.to_le_bytes());
    seen.add("smb2.getsetinfo_additional", request.additional_information.to_le_bytes());
    seen.add("smb2.getinfo_flags", request.flags.bits().to_le_bytes());
    seen.file_id(request.file_id);
    request.encode(out)
}

fn oplock_break(seen: &mut Seen, message: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
    use smb::oplock_break::{Notification, Response};
    if Header::decode(message)?.message_id != u64::MAX {
        let response = Response::decode(message)?;
        seen_acknowledgment(seen, &response);
        response.encode(out);
        return Ok(());
    }
    let notification = Notification::decode(message)?;
    match &notification {
        Notification::Oplock(oplock) => {
            seen.add("smb2.create.oplock", [oplock.oplock_level.into()]);
            seen.file_id(oplock.file_id);
        }
        Notification::Lease(lease) => {
            seen.add("smb2.lease.lease_flags", lease.flags.bits().to_le_bytes());
            seen.add("smb2.lease.lease_key", lease.lease_key);
            seen.add("smb2.lease.lease_state", lease.current_lease_state.bits().to_le_bytes());
            seen.add("smb2.lease.lease_state", lease.new_lease_state.bits().to_le_bytes());
        }
    }
    notification.encode(out);
    Ok(())
}

fn seen_acknowledgment(seen: &mut Seen, acknowledgment: &smb::oplock_break::Acknowledgment) {
    use smb::oplock_break::Acknowledgment;
    match acknowledgment {
        Acknowledgment::Oplock(oplock) => {
            seen.add("smb2.create.oplock", [oplock.oplock_level.into()]);
            seen.file_id(oplock.file_id);
        }
        Acknowledgment::Lease { lease_key, lease_state } => {
            seen.add("smb2.lease.lease_flags", [0; 4]);
            seen.add("smb2.lease.lease_key", lease_key);
            seen.add("smb2.lease.lease_state", lease_state.bits().to_le_bytes());
        }
    }
}
