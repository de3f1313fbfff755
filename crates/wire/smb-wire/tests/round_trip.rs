//! Every message and every structure, with any values, decodes to what was encoded.

use anabranch_smb_wire as smb;
use proptest::collection::vec;
use proptest::prelude::*;
use smb::create::{AccessMask, CreateOptions, ShareAccess};
use smb::create_context::{
    DurableFlags, Lease, LeaseFlags, LeaseState, LeaseV2, RawContext, RequestContext, ResponseContext,
};
use smb::dcerpc::{self, Body, Pdu, PduFlags, PresentationContext, PresentationResult, SyntaxId};
use smb::fscc::{
    FileAttributes, FileInfoClass, directory_info, ea, file_info, fs_info, fsctl, notify, reparse,
};
use smb::negotiate::{Capabilities, SecurityMode};
use smb::negotiate_context::NegotiateContext;
use smb::{FileId, FileTime, Guid, Header, HeaderFlags, NtStatus, Target, Utf16, WireError};

/// A message with an empty header.
fn message(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = vec![0; 64];
    encode(&mut out);
    out
}

fn message_with(encode: impl FnOnce(&mut Vec<u8>) -> Result<(), WireError>) -> Vec<u8> {
    message(|out| encode(out).expect("nothing is too long"))
}

fn file_id() -> impl Strategy<Value = FileId> {
    any::<(u64, u64)>().prop_map(|(persistent, volatile)| FileId { persistent, volatile })
}

fn data() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..200)
}

fn text() -> impl Strategy<Value = String> {
    "\\PC{0,40}"
}

fn time() -> impl Strategy<Value = FileTime> {
    any::<u64>().prop_map(FileTime)
}

proptest! {
    #[test]
    fn header(
        (credit_charge, status, command, credits, flags) in any::<(u16, u32, u16, u16, u32)>(),
        (next_command, message_id, target, session_id, signature) in any::<(u32, u64, u64, u64, [u8; 16])>(),
    ) {
        let flags = HeaderFlags::from_bits_retain(flags);
        let target = if flags.contains(HeaderFlags::ASYNC_COMMAND) {
            Target::Async { async_id: target }
        } else {
            Target::Sync { tree_id: u32::try_from(target >> 32).expect("32 bits") }
        };
        let header = Header {
            credit_charge, status_or_channel_sequence: status, command: command.into(), credits, flags,
            next_command, message_id, target, session_id, signature,
        };
        prop_assert_eq!(Header::decode(&header.to_bytes()), Ok(header));
        let mut response = header.response(NtStatus::ACCESS_DENIED).to_bytes();
        smb::header::set_signature(&mut response, &signature);
        smb::header::set_next_command(&mut response, next_command);
        let response = Header::decode(&response).expect("header");
        prop_assert_eq!(response.status(), NtStatus::ACCESS_DENIED);
        prop_assert_eq!((response.signature, response.next_command), (signature, next_command));
        prop_assert!(response.flags.contains(HeaderFlags::SERVER_TO_REDIR));
    }

    #[test]
    fn frame_prefix(length in 0..=smb::frame::FRAME_BYTES_MAX) {
        prop_assert_eq!(smb::frame::decode_prefix(smb::frame::encode_prefix(length).expect("24 bits")), Ok(length));
    }

    #[test]
    fn chain(bodies in vec(data(), 1..6)) {
        let mut frame = Vec::new();
        let mut starts: Vec<usize> = Vec::new();
        for body in &bodies {
            if let Some(previous) = starts.last() {
                smb::chain::link(&mut frame, *previous).expect("short messages");
            }
            starts.push(frame.len());
            frame.extend_from_slice(&smb::header::PROTOCOL_ID);
            frame.resize(frame.len() + 60, 0);
            frame.extend_from_slice(body);
        }
        let ranges: Vec<_> = smb::chain::Chain::new(&frame).collect::<Result<_, _>>().expect("a chain");
        prop_assert_eq!(ranges.len(), bodies.len());
        for (index, (range, body)) in ranges.iter().zip(&bodies).enumerate() {
            prop_assert_eq!(range.start, starts[index]);
            prop_assert_eq!(&frame[range.start + 64..][..body.len()], &body[..]);
        }
    }

    #[test]
    fn error_response(context_count in any::<u8>(), data in data()) {
        let response = smb::error_response::Response { context_count, data: &data };
        let bytes = message_with(|out| response.encode(out));
        prop_assert_eq!(smb::error_response::Response::decode(&bytes), Ok(response));
    }

    #[test]
    fn error_contexts(id in any::<u32>(), data in data(), unparsed_path_bytes in any::<u16>(), names in (text(), text()), flags in any::<u32>()) {
        let context = smb::error_response::Response::context(id, &data).expect("short");
        let response = smb::error_response::Response { context_count: 1, data: &context };
        prop_assert_eq!(response.contexts(), Ok(vec![smb::error_response::ErrorContext { id, data: &data }]));
        let link = smb::error_response::SymbolicLink {
            unparsed_path_bytes,
            substitute_name: Utf16::from(names.0.as_str()),
            print_name: Utf16::from(names.1.as_str()),
            flags: smb::error_response::SymlinkFlags::from_bits_retain(flags),
        };
        let encoded = link.encode().expect("short");
        prop_assert_eq!(smb::error_response::SymbolicLink::decode(&encoded), Ok(link));
    }

    #[test]
    fn share_redirect(addresses in vec(any::<std::net::IpAddr>(), 0..5), name in text()) {
        let redirect = smb::share_redirect::ShareRedirect { addresses, resource_name: Utf16::from(name.as_str()) };
        let encoded = redirect.encode().expect("short");
        prop_assert_eq!(smb::share_redirect::ShareRedirect::decode(&encoded), Ok(redirect));
    }

    #[test]
    fn negotiate_request(
        (security_mode, capabilities, guid) in any::<(u16, u32, [u8; 16])>(),
        dialects in vec(any::<u16>(), 0..6), smb311 in any::<bool>(),
        ids in vec(any::<u16>(), 0..5), salt in data(), name in text(), flags in any::<u32>(), other in 0x100..0x200_u16,
    ) {
        let mut dialects: Vec<_> = dialects.into_iter().filter(|dialect| *dialect != 0x0311).map(Into::into).collect();
        if smb311 {
            dialects.push(smb::negotiate::Dialect::Smb311);
        }
        let contexts = if smb311 { negotiate_contexts(&ids, &salt, &name, flags, other) } else { Vec::new() };
        let request = smb::negotiate::Request {
            security_mode: SecurityMode::from_bits_retain(security_mode),
            capabilities: Capabilities::from_bits_retain(capabilities),
            client_guid: Guid(guid),
            dialects,
            contexts,
        };
        let bytes = message_with(|out| request.encode(out));
        prop_assert_eq!(smb::negotiate::Request::decode(&bytes), Ok(request));
    }

    #[test]
    fn negotiate_response(
        (security_mode, capabilities, guid) in any::<(u16, u32, [u8; 16])>(),
        (transact, read, write) in any::<(u32, u32, u32)>(), times in (time(), time()), token in data(), smb311 in any::<bool>(),
        ids in vec(any::<u16>(), 0..5), salt in data(), name in text(), flags in any::<u32>(), other in 0x100..0x200_u16,
    ) {
        let contexts = if smb311 { negotiate_contexts(&ids, &salt, &name, flags, other) } else { Vec::new() };
        let response = smb::negotiate::Response {
            security_mode: SecurityMode::from_bits_retain(security_mode),
            dialect: if smb311 { smb::negotiate::Dialect::Smb311 } else { smb::negotiate::Dialect::Smb302 },
            server_guid: Guid(guid),
            capabilities: Capabilities::from_bits_retain(capabilities),
            max_transact_size: transact, max_read_size: read, max_write_size: write,
            system_time: times.0, server_start_time: times.1,
            security_buffer: &token,
            contexts,
        };
        let bytes = message_with(|out| response.encode(out));
        prop_assert_eq!(smb::negotiate::Response::decode(&bytes), Ok(response));
    }

    #[test]
    fn session_setup((flags, mode, capabilities, previous) in any::<(u8, u8, u32, u64)>(), token in data(), session_flags in any::<u16>()) {
        let request = smb::session_setup::Request {
            flags: smb::session_setup::RequestFlags::from_bits_retain(flags),
            security_mode: smb::session_setup::SecurityMode::from_bits_retain(mode),
            capabilities: Capabilities::from_bits_retain(capabilities),
            previous_session_id: previous,
            security_buffer: &token,
        };
        let bytes = message_with(|out| request.encode(out));
        prop_assert_eq!(smb::session_setup::Request::decode(&bytes), Ok(request));
        let response = smb::session_setup::Response {
            session_flags: smb::session_setup::SessionFlags::from_bits_retain(session_flags),
            security_buffer: &token,
        };
        let bytes = message_with(|out| response.encode(out));
        prop_assert_eq!(smb::session_setup::Response::decode(&bytes), Ok(response));
    }

    #[test]
    fn tree_connect(flags in 0..4_u16, path in text(), share_type in any::<u8>(), (share_flags, capabilities, access) in any::<(u32, u32, u32)>()) {
        let request = smb::tree_connect::Request {
            flags: smb::tree_connect::RequestFlags::from_bits_retain(flags),
            path: Utf16::from(path.as_str()),
        };
        let bytes = message_with(|out| request.encode(out));
        prop_assert_eq!(smb::tree_connect::Request::decode(&bytes), Ok(request));
        let response = smb::tree_connect::Response {
            share_type: share_type.into(),
            share_flags: smb::tree_connect::ShareFlags::from_bits_retain(share_flags),
            capabilities: smb::tree_connect::ShareCapabilities::from_bits_retain(capabilities),
            maximal_access: AccessMask::from_bits_retain(access),
        };
        prop_assert_eq!(smb::tree_connect::Response::decode(&message(|out| response.encode(out))), Ok(response));
    }

    #[test]
    fn create_request(
        (oplock, impersonation, access, attributes) in any::<(u8, u32, u32, u32)>(),
        (share, disposition, options) in any::<(u32, u32, u32)>(), name in text(), contexts in vec(request_context(), 0..5), blob in data(),
    ) {
        let mut contexts = contexts;
        contexts.push(RequestContext::EaBuffer(&blob));
        contexts.push(RequestContext::Other(RawContext { name: b"AAPL", data: &blob }));
        let request = smb::create::Request {
            requested_oplock_level: oplock.into(),
            impersonation_level: impersonation.into(),
            desired_access: AccessMask::from_bits_retain(access),
            file_attributes: FileAttributes::from_bits_retain(attributes),
            share_access: ShareAccess::from_bits_retain(share),
            create_disposition: disposition.into(),
            create_options: CreateOptions::from_bits_retain(options),
            name: Utf16::from(name.as_str()),
            contexts,
        };
        let bytes = message_with(|out| request.encode(out));
        prop_assert_eq!(smb::create::Request::decode(&bytes), Ok(request));
    }

    #[test]
    fn create_response(
        (oplock, flags, action, size, end, attributes) in any::<(u8, u8, u32, u64, u64, u32)>(),
        times in (time(), time(), time(), time()), file_id in file_id(), contexts in vec(response_context(), 0..4),
    ) {
        let response = smb::create::Response {
            oplock_level: oplock.into(),
            flags: smb::create::ResponseFlags::from_bits_retain(flags),
            create_action: action.into(),
            creation_time: times.0, last_access_time: times.1, last_write_time: times.2, change_time: times.3,
            allocation_size: size, end_of_file: end,
            file_attributes: FileAttributes::from_bits_retain(attributes),
            file_id,
            contexts,
        };
        let bytes = message_with(|out| response.encode(out));
        prop_assert_eq!(smb::create::Response::decode(&bytes), Ok(response));
    }

    #[test]
    fn close(flags in any::<u16>(), file_id in file_id(), times in (time(), time(), time(), time()), (size, end, attributes, present) in any::<(u64, u64, u32, bool)>()) {
        let request = smb::close::Request { flags: smb::close::CloseFlags::from_bits_retain(flags), file_id };
        prop_assert_eq!(smb::close::Request::decode(&message(|out| request.encode(out))), Ok(request));
        let attributes = smb::close::Attributes {
            creation_time: times.0, last_access_time: times.1, last_write_time: times.2, change_time: times.3,
            allocation_size: size, end_of_file: end, file_attributes: FileAttributes::from_bits_retain(attributes),
        };
        let response = smb::close::Response { attributes: present.then_some(attributes) };
        prop_assert_eq!(smb::close::Response::decode(&message(|out| response.encode(out))), Ok(response));
    }

    #[test]
    fn flush_and_the_empty_ones(file_id in file_id()) {
        let request = smb::flush::Request { file_id };
        prop_assert_eq!(smb::flush::Request::decode(&message(|out| request.encode(out))), Ok(request));
        prop_assert!(smb::flush::Response::decode(&message(|out| smb::flush::Response.encode(out))).is_ok());
        prop_assert!(smb::logoff::Request::decode(&message(|out| smb::logoff::Request.encode(out))).is_ok());
        prop_assert!(smb::logoff::Response::decode(&message(|out| smb::logoff::Response.encode(out))).is_ok());
        prop_assert!(smb::echo::Request::decode(&message(|out| smb::echo::Request.encode(out))).is_ok());
        prop_assert!(smb::cancel::Request::decode(&message(|out| smb::cancel::Request.encode(out))).is_ok());
        prop_assert!(smb::set_info::Response::decode(&message(|out| smb::set_info::Response.encode(out))).is_ok());
    }

    #[test]
    fn read(
        (padding, flags, length, offset) in any::<(u8, u8, u32, u64)>(), file_id in file_id(),
        (minimum, channel, remaining) in any::<(u32, u32, u32)>(), info in data(), payload in data(),
    ) {
        let request = smb::read::Request {
            padding, flags: smb::read::RequestFlags::from_bits_retain(flags), length, offset, file_id,
            minimum_count: minimum, channel: channel.into(), remaining_bytes: remaining,
            channel_info: if channel == 0 { &[] } else { &info },
        };
        let bytes = message_with(|out| request.encode(out));
        prop_assert_eq!(smb::read::Request::decode(&bytes), Ok(request));
        let response = smb::read::Response {
            data_remaining: remaining, flags: smb::read::ResponseFlags::from_bits_retain(channel), data: &payload,
        };
        let bytes = message_with(|out| response.encode(out));
        prop_assert_eq!(smb::read::Response::decode(&bytes), Ok(response));
        // A payload that a server has read into its place gives the same message.
        let mut in_place = vec![0; smb::read::PAYLOAD_OFFSET];
        let length = u32::try_from(payload.len()).expect("short");
        let head = smb::read::ResponseHead { data_remaining: remaining, flags: response.flags, ..smb::read::ResponseHead::new(length) };
        in_place[64..].copy_from_slice(&head.encode());
        in_place.extend_from_slice(&payload);
        prop_assert_eq!(&bytes[..in_place.len()], &in_place[..]);
    }

    #[test]
    fn write((offset, remaining, flags, channel, count) in any::<(u64, u32, u32, u32, u32)>(), file_id in file_id(), info in data(), payload in data()) {
        let flags = smb::write::WriteFlags::from_bits_retain(flags);
        let mut request = smb::write::Request::new(file_id, offset, &payload, flags);
        request.channel = channel.into();
        request.remaining_bytes = remaining;
        let bytes = message_with(|out| request.encode(out));
        prop_assert_eq!(smb::write::Request::decode(&bytes), Ok(request));
        request.channel_info = &info;
        request.channel = smb::read::Channel::RdmaV1;
        let bytes = message_with(|out| request.encode(out));
        let decoded = smb::write::Request::decode(&bytes).expect("a request");
        prop_assert_eq!((decoded.data, decoded.channel_info), (&payload[..], &info[..]));
        prop_assert_eq!(&bytes[decoded.payload_range()], &payload[..]);
        let response = smb::write::Response { count };
        prop_assert_eq!(smb::write::Response::decode(&message(|out| response.encode(out))), Ok(response));
    }

    #[test]
    fn lock(number in 0..16_u8, index in 0..1_u32 << 28, file_id in file_id(), locks in vec(any::<(u64, u64, u32)>(), 1..6)) {
        let locks = locks.into_iter().map(|(offset, length, flags)| smb::lock::LockElement {
            offset, length, flags: smb::lock::LockFlags::from_bits_retain(flags),
        }).collect();
        let request = smb::lock::Request { lock_sequence_number: number, lock_sequence_index: index, file_id, locks };
        let bytes = message_with(|out| request.encode(out));
        prop_assert_eq!(smb::lock::Request::decode(&bytes), Ok(request));
    }

    #[test]
    fn ioctl((code, max_in, max_out, flags) in any::<(u32, u32, u32, u32)>(), file_id in file_id(), input in data(), output in data()) {
        let request = smb::ioctl::Request {
            ctl_code: code.into(), file_id, input: &input, max_input_response: max_in, output_count: flags, max_output_response: max_out,
            flags: smb::ioctl::IoctlFlags::from_bits_retain(flags),
        };
        let bytes = message_with(|out| request.encode(out));
        prop_assert_eq!(smb::ioctl::Request::decode(&bytes), Ok(request));
        let response = smb::ioctl::Response { ctl_code: code.into(), file_id, input: &input, output: &output };
        let bytes = message_with(|out| response.encode(out));
        prop_assert_eq!(smb::ioctl::Response::decode(&bytes), Ok(response));
    }

    #[test]
    fn query_directory((class, flags, index, length) in any::<(u8, u8, u32, u32)>(), file_id in file_id(), name in text(), output in data()) {
        let request = smb::query_directory::Request {
            file_information_class: class.into(),
            flags: smb::query_directory::QueryDirectoryFlags::from_bits_retain(flags),
            file_index: index, file_id, file_name: Utf16::from(name.as_str()), output_buffer_length: length,
        };
        let bytes = message_with(|out| request.encode(out));
        prop_assert_eq!(smb::query_directory::Request::decode(&bytes), Ok(request));
        let response = smb::query_directory::Response { output_buffer: &output };
        let bytes = message_with(|out| response.encode(out));
        prop_assert_eq!(smb::query_directory::Response::decode(&bytes), Ok(response));
    }

    #[test]
    fn change_notify((flags, length, filter) in any::<(u16, u32, u32)>(), file_id in file_id(), output in data()) {
        let request = smb::change_notify::Request {
            flags: smb::change_notify::ChangeNotifyFlags::from_bits_retain(flags),
            output_buffer_length: length, file_id,
            completion_filter: smb::change_notify::CompletionFilter::from_bits_retain(filter),
        };
        prop_assert_eq!(smb::change_notify::Request::decode(&message(|out| request.encode(out))), Ok(request));
        let response = smb::change_notify::Response { output_buffer: &output };
        let bytes = message_with(|out| response.encode(out));
        prop_assert_eq!(smb::change_notify::Response::decode(&bytes), Ok(response));
    }

    #[test]
    fn query_info_and_set_info((info_type, class, length, additional, flags) in any::<(u8, u8, u32, u32, u32)>(), file_id in file_id(), buffer in data()) {
        let request = smb::query_info::Request {
            info_type: info_type.into(), info_class: class, output_buffer_length: length, additional_information: additional,
            flags: smb::query_info::QueryInfoFlags::from_bits_retain(flags), file_id, input_buffer: &buffer,
        };
        let bytes = message_with(|out| request.encode(out));
        prop_assert_eq!(smb::query_info::Request::decode(&bytes), Ok(request));
        let response = smb::query_info::Response { output_buffer: &buffer };
        let bytes = message_with(|out| response.encode(out));
        prop_assert_eq!(smb::query_info::Response::decode(&bytes), Ok(response));
        let request = smb::set_info::Request {
            info_type: info_type.into(), info_class: class, additional_information: additional, file_id, buffer: &buffer,
        };
        let bytes = message_with(|out| request.encode(out));
        prop_assert_eq!(smb::set_info::Request::decode(&bytes), Ok(request));
    }

    #[test]
    fn oplock_break((level, epoch, flags, key, old, new) in any::<(u8, u16, u32, [u8; 16], u32, u32)>(), file_id in file_id()) {
        use smb::oplock_break::{Acknowledgment, LeaseBreak, LeaseBreakFlags, Notification, OplockBreak};
        let oplock = OplockBreak { oplock_level: level.into(), file_id };
        let (old, new) = (LeaseState::from_bits_retain(old), LeaseState::from_bits_retain(new));
        let lease = LeaseBreak {
            new_epoch: epoch, flags: LeaseBreakFlags::from_bits_retain(flags), lease_key: key,
            current_lease_state: old, new_lease_state: new,
        };
        for notification in [Notification::Oplock(oplock), Notification::Lease(lease)] {
            prop_assert_eq!(Notification::decode(&message(|out| notification.encode(out))), Ok(notification));
        }
        for acknowledgment in [Acknowledgment::Oplock(oplock), Acknowledgment::Lease { lease_key: key, lease_state: new }] {
            prop_assert_eq!(Acknowledgment::decode(&message(|out| acknowledgment.encode(out))), Ok(acknowledgment));
        }
    }

    #[test]
    fn transform_header((signature, nonce, session_id) in any::<([u8; 16], [u8; 16], u64)>(), sealed in data()) {
        let header = smb::transform::TransformHeader {
            signature, nonce, original_message_size: u32::try_from(sealed.len()).expect("short"), flags: smb::transform::FLAG_ENCRYPTED, session_id,
        };
        let mut frame = header.to_bytes().to_vec();
        frame.extend_from_slice(&sealed);
        prop_assert_eq!(smb::transform::TransformHeader::decode(&frame), Ok(header));
        prop_assert_eq!(&frame[smb::transform::SIGNATURE], &signature);
        frame.push(0);
        prop_assert!(smb::transform::TransformHeader::decode(&frame).is_err());
    }

    #[test]
    fn text_round_trips(text in any::<String>()) {
        let wire = Utf16::from(text.as_str()).to_wire();
        let decoded = Utf16::from_wire(&wire).expect("an even length");
        prop_assert_eq!(decoded.decode(), Ok(text.clone()));
        prop_assert_eq!(decoded, Utf16::from(text.as_str()));
        prop_assert_eq!(decoded.byte_len(), Utf16::from(text.as_str()).byte_len());
    }

    #[test]
    fn file_times(units in 0..i64::MAX as u64) {
        let (seconds, nanos) = FileTime(units).to_unix();
        prop_assert_eq!(FileTime::from_unix(seconds, nanos), FileTime(units));
    }

    #[test]
    fn directory_entries(entries in vec(entry(), 1..6), limit in 0..2000_usize) {
        for class in [
            FileInfoClass::Directory, FileInfoClass::FullDirectory, FileInfoClass::BothDirectory, FileInfoClass::Names,
            FileInfoClass::IdBothDirectory, FileInfoClass::IdFullDirectory, FileInfoClass::IdExtdDirectory, FileInfoClass::IdExtdBothDirectory,
            FileInfoClass::Id64ExtdDirectory, FileInfoClass::Id64ExtdBothDirectory, FileInfoClass::IdAllExtdDirectory, FileInfoClass::IdAllExtdBothDirectory,
        ] {
            let entries: Vec<_> = entries.iter().map(|entry| entry.as_entry()).collect();
            let mut out = vec![0xEE; 7];
            let mut list = directory_info::DirectoryWriter::new(class, &mut out, limit).expect("a directory class");
            let fit = entries.iter().take_while(|entry| list.push(entry).is_ok()).count();
            prop_assert!(out.len() - 7 <= limit);
            let names: Vec<_> = directory_info::entries(class, &out[7..])
                .expect("a directory class")
                .map(|entry| entry.map(|entry| entry.name.decode()))
                .collect::<Result<_, _>>()
                .expect("entries");
            let expected: Vec<_> = entries.iter().take(fit).map(|entry| entry.name.decode()).collect();
            prop_assert_eq!(names, expected);
            // With the entry that did not fit, the list would exceed the limit.
            if let Some(next) = entries.get(fit) {
                let length = directory_info::Entry::byte_len(class, next.name.byte_len()).expect("a directory class");
                prop_assert!((out.len() - 7).next_multiple_of(8) + length > limit);
            }
        }
    }

    #[test]
    fn whole_directory_entries(entry in entry()) {
        let entry = entry.as_entry();
        let mut out = Vec::new();
        let class = FileInfoClass::IdExtdBothDirectory;
        directory_info::DirectoryWriter::new(class, &mut out, 1000).expect("a directory class").push(&entry).expect("it fits");
        let decoded: Vec<_> = directory_info::entries(class, &out).expect("a directory class").collect();
        prop_assert_eq!(decoded, vec![Ok(entry)]);
        let class = FileInfoClass::IdBothDirectory;
        let mut out = Vec::new();
        directory_info::DirectoryWriter::new(class, &mut out, 1000).expect("a directory class").push(&entry).expect("it fits");
        let decoded = directory_info::entries(class, &out).expect("a directory class").next().expect("an entry").expect("an entry");
        prop_assert_eq!(decoded.file_id, entry.file_id & u128::from(u64::MAX));
        prop_assert_eq!(decoded.short_name, entry.short_name);
        prop_assert_eq!((decoded.end_of_file, decoded.ea_size), (entry.end_of_file, entry.ea_size));
    }

    #[test]
    fn lists(names in vec((text(), any::<u32>()), 1..5), value in data()) {
        let changes: Vec<_> = names.iter().map(|(name, action)| notify::Change { action: (*action).into(), name: Utf16::from(name.as_str()) }).collect();
        let mut out = Vec::new();
        let mut list = notify::writer(&mut out, 5000);
        changes.iter().for_each(|change| change.push(&mut list).expect("it fits"));
        prop_assert_eq!(notify::Change::list(&out).collect::<Result<Vec<_>, _>>(), Ok(changes));

        let streams: Vec<_> = names.iter().map(|(name, size)| file_info::Stream {
            stream_size: (*size).into(), stream_allocation_size: 4096, name: Utf16::from(name.as_str()),
        }).collect();
        let mut out = Vec::new();
        let mut list = file_info::stream_writer(&mut out, 5000);
        streams.iter().for_each(|stream| stream.push(&mut list).expect("it fits"));
        prop_assert_eq!(file_info::Stream::list(&out).collect::<Result<Vec<_>, _>>(), Ok(streams));

        let attributes: Vec<_> = names.iter().map(|(name, flags)| ea::FullEa {
            flags: ea::EaFlags::from_bits_retain(flags.to_le_bytes()[0]), name: name.as_bytes(), value: &value,
        }).collect();
        let mut out = Vec::new();
        let mut list = ea::writer(&mut out, 5000);
        attributes.iter().for_each(|attribute| attribute.push(&mut list).expect("it fits"));
        prop_assert_eq!(ea::FullEa::list(&out).collect::<Result<Vec<_>, _>>(), Ok(attributes));
        let mut out = Vec::new();
        let mut list = ea::writer(&mut out, 5000);
        names.iter().for_each(|(name, _)| ea::push_name(&mut list, name.as_bytes()).expect("it fits"));
        let expected: Vec<_> = names.iter().map(|(name, _)| name.as_bytes()).collect();
        prop_assert_eq!(ea::names(&out).collect::<Result<Vec<_>, _>>(), Ok(expected));
    }

    #[test]
    fn reparse_points(names in (text(), text()), flags in any::<u32>(), tag in any::<u32>(), data in vec(any::<u8>(), 16..60)) {
        let (substitute_name, print_name) = (Utf16::from(names.0.as_str()), Utf16::from(names.1.as_str()));
        let mut points = vec![
            reparse::ReparsePoint::Symlink { substitute_name, print_name, flags },
            reparse::ReparsePoint::MountPoint { substitute_name, print_name },
            reparse::ReparsePoint::NfsSymlink { target: substitute_name },
            reparse::ReparsePoint::LxSymlink { target: &data },
        ];
        use reparse::tag::{LX_SYMLINK, MOUNT_POINT, NFS, SYMLINK};
        if ![LX_SYMLINK, MOUNT_POINT, NFS, SYMLINK].contains(&tag) {
            points.push(reparse::ReparsePoint::Other { tag, data: &data });
        }
        for point in points {
            let mut out = Vec::new();
            point.encode_into(&mut out).expect("short");
            prop_assert_eq!(reparse::ReparsePoint::decode(&out), Ok(point));
        }
    }

    #[test]
    fn named_structures(name in text(), (a, b, c, d, flag) in any::<(u32, u32, u64, u64, bool)>(), time in time()) {
        let name = Utf16::from(name.as_str());
        let volume = fs_info::Volume { volume_creation_time: time, volume_serial_number: a, supports_objects: flag, volume_label: name };
        let mut out = Vec::new();
        volume.encode_into(&mut out).expect("short");
        prop_assert_eq!(fs_info::Volume::decode(&out), Ok(volume));
        let attribute = fs_info::Attribute {
            file_system_attributes: fs_info::FileSystemAttributes::from_bits_retain(a), maximum_component_name_length: b, file_system_name: name,
        };
        let mut out = Vec::new();
        attribute.encode_into(&mut out).expect("short");
        prop_assert_eq!(fs_info::Attribute::decode(&out), Ok(attribute));
        let rename = file_info::Rename { flags: file_info::RenameFlags::from_bits_retain(a), root_directory: c, name };
        let mut out = Vec::new();
        rename.encode_ex_into(&mut out).expect("short");
        prop_assert_eq!(file_info::Rename::decode_ex(&out), Ok(rename));
        let rename = file_info::Rename { flags: rename.flags & file_info::RenameFlags::REPLACE_IF_EXISTS, ..rename };
        let mut out = Vec::new();
        rename.encode_into(&mut out).expect("short");
        prop_assert_eq!(file_info::Rename::decode(&out), Ok(rename));
        let wait = fsctl::PipeWait { timeout: flag.then_some(d), name };
        let mut out = Vec::new();
        wait.encode_into(&mut out).expect("short");
        prop_assert_eq!(fsctl::PipeWait::decode(&out), Ok(wait));
    }

    #[test]
    fn fsctl_lists(ranges in vec(any::<(u64, u64, u32)>(), 0..5), key in any::<[u8; 24]>(), total in any::<u32>(), v4 in any::<[u8; 4]>(), v6 in any::<[u8; 16]>()) {
        let copy = fsctl::Copychunk {
            source_key: key,
            chunks: ranges.iter().map(|(a, b, c)| fsctl::Chunk { source_offset: *a, target_offset: *b, length: *c }).collect(),
        };
        let mut out = Vec::new();
        copy.encode_into(&mut out).expect("short");
        prop_assert_eq!(fsctl::Copychunk::decode(&out), Ok(copy));
        let trim = fsctl::FileLevelTrim {
            key: total, ranges: ranges.iter().map(|(a, b, _)| fsctl::TrimRange { offset: *a, length: *b }).collect(),
        };
        let mut out = Vec::new();
        trim.encode_into(&mut out).expect("short");
        prop_assert_eq!(fsctl::FileLevelTrim::decode(&out), Ok(trim));
        let regions = fsctl::FileRegionOutput {
            total_region_entry_count: total,
            regions: ranges.iter().map(|(a, b, c)| fsctl::FileRegion { file_offset: *a, length: *b, usage: *c }).collect(),
        };
        let mut out = Vec::new();
        regions.encode_into(&mut out).expect("short");
        prop_assert_eq!(fsctl::FileRegionOutput::decode(&out), Ok(regions));
        let interfaces: Vec<_> = ranges.iter().enumerate().map(|(index, (speed, _, if_index))| fsctl::NetworkInterface {
            if_index: *if_index, capabilities: fsctl::InterfaceCapabilities::RSS_CAPABLE, link_speed: *speed,
            address: if index % 2 == 0 { (v4, 445).into() } else { (v6, 0).into() },
        }).collect();
        let mut out = Vec::new();
        fsctl::NetworkInterface::encode_list(&interfaces, &mut out);
        prop_assert_eq!(out.len(), interfaces.len() * 152);
        prop_assert_eq!(fsctl::NetworkInterface::decode_list(&out), Ok(interfaces));
    }

    #[test]
    fn pdus((call_id, hint, context_id, opnum, status) in any::<(u32, u32, u16, u16, u32)>(), stub in data(), uuid in any::<[u8; 16]>(), address in "[a-zA-Z\\\\]{0,12}") {
        let syntax = SyntaxId { uuid: Guid(uuid), version: status };
        let bind = dcerpc::Bind {
            max_xmit_frag: opnum, max_recv_frag: context_id, assoc_group_id: hint,
            contexts: vec![PresentationContext { context_id, abstract_syntax: syntax, transfer_syntaxes: vec![SyntaxId::NDR, SyntaxId::NDR64] }],
        };
        let ack = dcerpc::BindAck {
            max_xmit_frag: opnum, max_recv_frag: context_id, assoc_group_id: hint, secondary_address: address.into_bytes(),
            results: vec![PresentationResult::Acceptance(syntax), PresentationResult::ProviderRejection(opnum), PresentationResult::NegotiateAck(3)],
        };
        for body in [
            Body::Bind(bind.clone()), Body::AlterContext(bind), Body::BindAck(ack.clone()), Body::AlterContextResponse(ack), Body::BindNak(opnum),
            Body::Request { alloc_hint: hint, context_id, opnum, stub: &stub },
            Body::Response { alloc_hint: hint, context_id, stub: &stub },
            Body::Fault { context_id, status },
        ] {
            let pdu = Pdu::new(call_id, body);
            let mut out = Vec::new();
            pdu.encode_into(&mut out).expect("short");
            let length = out.len();
            out.push(0xFF);
            prop_assert_eq!(Pdu::decode(&out), Ok((pdu, length)));
        }
    }

    #[test]
    fn fragments_join_to_the_stub(stub in data(), limit in 25..80_u16) {
        let parts: Vec<_> = dcerpc::fragments(&stub, limit).collect();
        prop_assert_eq!(parts.iter().flat_map(|(_, part)| part.iter().copied()).collect::<Vec<_>>(), &stub[..]);
        for (index, (flags, part)) in parts.iter().enumerate() {
            prop_assert_eq!(flags.contains(PduFlags::FIRST_FRAG), index == 0);
            prop_assert_eq!(flags.contains(PduFlags::LAST_FRAG), index + 1 == parts.len());
            prop_assert!(part.len() + dcerpc::RESPONSE_HEAD_LEN <= usize::from(limit).max(32));
        }
    }

    #[test]
    fn srvsvc(server in proptest::option::of(text()), name in text(), level in any::<u32>(), resume in any::<Option<u32>>(), shares in vec((text(), text(), any::<u32>()), 0..4), error in any::<u32>()) {
        use smb::srvsvc::{Request, Response, Server, Share};
        for request in [
            Request::ShareEnum { sticky: false, server_name: server.clone(), level, preferred_maximum_length: u32::MAX, resume_handle: resume },
            Request::ShareEnum { sticky: true, server_name: server.clone(), level, preferred_maximum_length: u32::MAX, resume_handle: resume },
            Request::ShareGetInfo { server_name: server.clone(), net_name: name.clone(), level },
            Request::ServerGetInfo { server_name: server, level },
        ] {
            let mut stub = Vec::new();
            request.encode_into(&mut stub).expect("short");
            prop_assert_eq!(Request::decode(request.opnum(), &stub), Ok(Some(request)));
        }
        let share = |(name, remark, share_type): &(String, String, u32), level: u32| Share {
            name: name.clone(),
            share_type: if level > 0 { *share_type } else { 0 },
            remark: if level > 0 { remark.clone() } else { String::new() },
            path: if level > 1 { name.clone() } else { String::new() },
            max_uses: if level > 1 { u32::MAX } else { 0 },
            ..Share::default()
        };
        for level in [0, 1, 2, 502] {
            let shares: Vec<_> = shares.iter().map(|parts| share(parts, level)).collect();
            let one = shares.first().cloned();
            for (opnum, response) in [
                (15, Response::ShareEnum { level, total_entries: 9, shares, resume_handle: resume }),
                (16, Response::ShareGetInfo { level, share: one }),
            ] {
                let mut stub = Vec::new();
                response.encode_into(error, &mut stub).expect("short");
                prop_assert_eq!(Response::decode(opnum, &stub), Ok((response, error)));
            }
        }
        for level in [100, 101] {
            let server = Server { platform_id: 500, name: name.clone(), comment: if level == 101 { name.clone() } else { String::new() }, ..Server::default() };
            let response = Response::ServerGetInfo { level, server: Some(server) };
            let mut stub = Vec::new();
            response.encode_into(error, &mut stub).expect("short");
            prop_assert_eq!(Response::decode(21, &stub), Ok((response, error)));
        }
    }

    #[test]
    fn wkssvc(server_name in proptest::option::of(text()), names in (text(), text()), error in any::<u32>()) {
        use smb::wkssvc::{WkstaGetInfoRequest, WkstaGetInfoResponse, Wksta};
        let request = WkstaGetInfoRequest { server_name, level: 100 };
        let mut stub = Vec::new();
        request.encode_into(&mut stub).expect("short");
        prop_assert_eq!(WkstaGetInfoRequest::decode(&stub), Ok(request));
        let wksta = Wksta { platform_id: 500, computer_name: names.0, domain: names.1, version_major: 10, version_minor: 0 };
        let response = WkstaGetInfoResponse { level: 100, wksta: Some(wksta) };
        let mut stub = Vec::new();
        response.encode_into(error, &mut stub).expect("short");
        prop_assert_eq!(WkstaGetInfoResponse::decode(&stub), Ok((response, error)));
    }
}

fn negotiate_contexts<'a>(
    ids: &[u16],
    salt: &'a [u8],
    name: &'a str,
    flags: u32,
    other: u16,
) -> Vec<NegotiateContext<'a>> {
    use smb::negotiate_context::{CompressionFlags, TransportFlags};
    vec![
        NegotiateContext::PreauthIntegrity {
            hash_algorithms: ids.iter().map(|id| (*id).into()).collect(),
            salt,
        },
        NegotiateContext::Encryption(ids.iter().map(|id| (*id).into()).collect()),
        NegotiateContext::Compression {
            flags: CompressionFlags::from_bits_retain(flags),
            algorithms: ids.iter().map(|id| (*id).into()).collect(),
        },
        NegotiateContext::Netname(Utf16::from(name)),
        NegotiateContext::Transport(TransportFlags::from_bits_retain(flags)),
        NegotiateContext::RdmaTransform(ids.iter().map(|id| (*id).into()).collect()),
        NegotiateContext::Signing(ids.iter().map(|id| (*id).into()).collect()),
        NegotiateContext::Other { context_type: other, data: salt },
    ]
}

fn lease() -> impl Strategy<Value = Lease> {
    (any::<([u8; 16], u32, u32)>(), any::<Option<([u8; 16], u16)>>()).prop_map(|((key, state, flags), v2)| {
        Lease {
            key,
            state: LeaseState::from_bits_retain(state),
            flags: LeaseFlags::from_bits_retain(flags),
            v2: v2.map(|(parent_key, epoch)| LeaseV2 { parent_key, epoch }),
        }
    })
}

fn request_context() -> impl Strategy<Value = RequestContext<'static>> {
    prop_oneof![
        Just(RequestContext::DurableHandleRequest),
        Just(RequestContext::QueryOnDiskId),
        file_id().prop_map(|file_id| RequestContext::DurableHandleReconnect { file_id }),
        any::<u64>().prop_map(RequestContext::AllocationSize),
        proptest::option::of(time()).prop_map(|timestamp| RequestContext::QueryMaximalAccess { timestamp }),
        time().prop_map(RequestContext::TimewarpToken),
        lease().prop_map(RequestContext::RequestLease),
        any::<(u32, u32, [u8; 16])>().prop_map(|(timeout_ms, flags, guid)| {
            let flags = DurableFlags::from_bits_retain(flags);
            RequestContext::DurableHandleRequestV2 { timeout_ms, flags, create_guid: Guid(guid) }
        }),
        (file_id(), any::<([u8; 16], u32)>()).prop_map(|(file_id, (guid, flags))| {
            let flags = DurableFlags::from_bits_retain(flags);
            RequestContext::DurableHandleReconnectV2 { file_id, create_guid: Guid(guid), flags }
        }),
        any::<[u8; 16]>().prop_map(|guid| RequestContext::AppInstanceId(Guid(guid))),
        any::<(u64, u64)>().prop_map(|(high, low)| RequestContext::AppInstanceVersion { high, low }),
    ]
}

fn response_context() -> impl Strategy<Value = ResponseContext<'static>> {
    prop_oneof![
        Just(ResponseContext::DurableHandle),
        any::<(u32, u32)>().prop_map(|(status, access)| ResponseContext::MaximalAccess {
            query_status: NtStatus(status),
            maximal_access: AccessMask::from_bits_retain(access),
        }),
        any::<(u64, u64)>()
            .prop_map(|(disk_file_id, volume_id)| ResponseContext::OnDiskId { disk_file_id, volume_id }),
        lease().prop_map(ResponseContext::Lease),
        any::<(u32, u32)>().prop_map(|(timeout_ms, flags)| ResponseContext::DurableHandleV2 {
            timeout_ms,
            flags: DurableFlags::from_bits_retain(flags),
        }),
        Just(ResponseContext::Other(RawContext { name: b"AAPL", data: &[1, 2, 3] })),
    ]
}

/// An entry that owns its names.
#[derive(Debug, Clone)]
struct OwnedEntry {
    numbers: (u32, u64, u64, u32, u32, u32, u128),
    times: (FileTime, FileTime, FileTime, FileTime),
    short_name: String,
    name: String,
}

impl OwnedEntry {
    fn as_entry(&self) -> directory_info::Entry<'_> {
        let (file_index, end_of_file, allocation_size, attributes, ea_size, reparse_tag, file_id) =
            self.numbers;
        directory_info::Entry {
            file_index,
            creation_time: self.times.0,
            last_access_time: self.times.1,
            last_write_time: self.times.2,
            change_time: self.times.3,
            end_of_file,
            allocation_size,
            file_attributes: FileAttributes::from_bits_retain(attributes),
            ea_size,
            reparse_tag,
            file_id,
            short_name: Utf16::from(self.short_name.as_str()),
            name: Utf16::from(self.name.as_str()),
        }
    }
}

fn entry() -> impl Strategy<Value = OwnedEntry> {
    (
        any::<(u32, u64, u64, u32, u32, u32, u128)>(),
        (time(), time(), time(), time()),
        "[A-Z0-9~.]{0,12}",
        text(),
    )
        .prop_map(|(numbers, times, short_name, name)| OwnedEntry { numbers, times, short_name, name })
}
