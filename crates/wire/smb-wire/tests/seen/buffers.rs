//! The contents of the buffers of QUERY_INFO, SET_INFO, QUERY_DIRECTORY, CHANGE_NOTIFY and IOCTL. Each is encoded again
//! and must be unchanged.

use anabranch_smb_wire as smb;
use smb::dcerpc::{Body, Pdu};
use smb::fscc::fsctl::{self, Fsctl};
use smb::fscc::{FileInfoClass, FsInfoClass, directory_info, ea, file_info, fs_info, notify};
use smb::query_info::InfoType;
use smb::security_descriptor::SecurityDescriptor;
use smb::{WireError, srvsvc, wkssvc};

use super::{Context, Seen};

/// Encodes into a fresh buffer.
fn bytes(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    out
}

/// Decodes, encodes and compares a structure for whose fields tshark has no names.
macro_rules! round_trip {
    ($seen:expr, $type:ty, $buffer:expr) => {{
        let value = <$type>::decode($buffer)?;
        $seen.same(&bytes(|out| value.encode_into(out)), $buffer);
        value
    }};
}
macro_rules! variable_round_trip {
    ($seen:expr, $type:ty, $buffer:expr) => {{
        let value = <$type>::decode($buffer)?;
        $seen.same(&bytes(|out| value.encode_into(out).expect("it came from the wire")), $buffer);
        value
    }};
}

pub(super) fn query_info(seen: &mut Seen, context: &Context, buffer: &[u8]) -> Result<(), WireError> {
    match InfoType::from(context.class.expect("the class of the request")) {
        InfoType::File => file(seen, context.file_class.expect("the class of the request").into(), buffer),
        InfoType::FileSystem => {
            file_system(seen, context.fs_class.expect("the class of the request").into(), buffer)
        }
        InfoType::Security => security_descriptor(seen, buffer),
        _ => Err(WireError::Invalid("InfoType")),
    }
}

fn file(seen: &mut Seen, class: FileInfoClass, buffer: &[u8]) -> Result<(), WireError> {
    match class {
        FileInfoClass::Basic => {
            let info = round_trip!(seen, file_info::Basic, buffer);
            basic(seen, &info);
        }
        FileInfoClass::Standard => {
            let info = round_trip!(seen, file_info::Standard, buffer);
            seen.add("smb.alloc_size64", info.allocation_size.to_le_bytes());
            seen.add("smb.end_of_file", info.end_of_file.to_le_bytes());
            seen.add("smb.link_count", info.number_of_links.to_le_bytes());
        }
        FileInfoClass::Internal => {
            let info = round_trip!(seen, file_info::Internal, buffer);
            seen.add("smb.index_number", info.index_number.to_le_bytes());
        }
        FileInfoClass::Ea => {
            round_trip!(seen, file_info::Ea, buffer);
        }
        FileInfoClass::Access => {
            let info = round_trip!(seen, file_info::Access, buffer);
            seen.add("smb.access_mask", info.access_flags.bits().to_le_bytes());
        }
        FileInfoClass::Position => {
            round_trip!(seen, file_info::Position, buffer);
        }
        FileInfoClass::Mode => {
            round_trip!(seen, file_info::Mode, buffer);
        }
        FileInfoClass::Alignment => {
            round_trip!(seen, file_info::Alignment, buffer);
        }
        FileInfoClass::All => all(seen, buffer)?,
        FileInfoClass::AlternateName | FileInfoClass::NormalizedName => {
            let info = variable_round_trip!(seen, file_info::Name<'_>, buffer);
            seen.text("smb2.filename", info.name);
        }
        FileInfoClass::Stream => streams(seen, buffer)?,
        FileInfoClass::Compression => {
            round_trip!(seen, file_info::Compression, buffer);
        }
        FileInfoClass::NetworkOpen => network_open(seen, buffer)?,
        FileInfoClass::AttributeTag => {
            let info = round_trip!(seen, file_info::AttributeTag, buffer);
            seen.add("smb2.file_attribute", info.file_attributes.bits().to_le_bytes());
            seen.add("smb.reparse_tag", info.reparse_tag.to_le_bytes());
        }
        FileInfoClass::FullEa => extended_attributes(seen, buffer)?,
        other => panic!("{other:?} is not decoded"),
    }
    Ok(())
}

fn basic(seen: &mut Seen, info: &file_info::Basic) {
    for (smb2, time) in [
        ("smb2.create.time", info.creation_time),
        ("smb2.last_access.time", info.last_access_time),
        ("smb2.last_write.time", info.last_write_time),
        ("smb2.last_change.time", info.change_time),
    ] {
        seen.time(smb2, time);
    }
    seen.add("smb2.file_attribute", info.file_attributes.bits().to_le_bytes());
}

fn all(seen: &mut Seen, buffer: &[u8]) -> Result<(), WireError> {
    let info = variable_round_trip!(seen, file_info::All<'_>, buffer);
    basic(seen, &info.basic);
    seen.add("smb2.allocation_size", info.standard.allocation_size.to_le_bytes());
    seen.add("smb2.eof", info.standard.end_of_file.to_le_bytes());
    seen.add("smb2.file_id", info.internal.index_number.to_le_bytes());
    seen.add("smb2.ea_size", info.ea.ea_size.to_le_bytes());
    seen.add("smb.access_mask", info.access.access_flags.bits().to_le_bytes());
    seen.text("smb2.filename", info.name.name);
    Ok(())
}

fn network_open(seen: &mut Seen, buffer: &[u8]) -> Result<(), WireError> {
    let info = round_trip!(seen, file_info::NetworkOpen, buffer);
    seen.time("smb.create.time", info.creation_time);
    seen.time("smb.access.time", info.last_access_time);
    seen.time("smb.last_write.time", info.last_write_time);
    seen.time("smb.change.time", info.change_time);
    seen.add("smb.alloc_size64", info.allocation_size.to_le_bytes());
    seen.add("smb.end_of_file", info.end_of_file.to_le_bytes());
    seen.add("smb2.file_attribute", info.file_attributes.bits().to_le_bytes());
    Ok(())
}

fn streams(seen: &mut Seen, buffer: &[u8]) -> Result<(), WireError> {
    let streams: Vec<_> = file_info::Stream::list(buffer).collect::<Result<_, _>>()?;
    let mut out = Vec::new();
    let mut list = file_info::stream_writer(&mut out, buffer.len());
    for stream in &streams {
        seen.add("smb.stream_size", stream.stream_size.to_le_bytes());
        seen.add("smb.alloc_size64", stream.stream_allocation_size.to_le_bytes());
        seen.text("smb.stream_name", stream.name);
        stream.push(&mut list).expect("it came from a buffer of this length");
    }
    seen.same(&out, buffer);
    Ok(())
}

pub(super) fn extended_attributes(seen: &mut Seen, buffer: &[u8]) -> Result<(), WireError> {
    let attributes: Vec<_> = ea::FullEa::list(buffer).collect::<Result<_, _>>()?;
    let mut out = Vec::new();
    let mut list = ea::writer(&mut out, buffer.len());
    for attribute in &attributes {
        seen.bytes("smb2.ea.name", attribute.name);
        seen.bytes("smb2.ea.data", attribute.value);
        attribute.push(&mut list).expect("it came from a buffer of this length");
    }
    // Samba also pads after the last attribute.
    assert!(buffer.len() - out.len() < 4);
    seen.same(&out, &buffer[..out.len()]);
    Ok(())
}

fn file_system(seen: &mut Seen, class: FsInfoClass, buffer: &[u8]) -> Result<(), WireError> {
    match class {
        FsInfoClass::Volume => {
            let info = variable_round_trip!(seen, fs_info::Volume<'_>, buffer);
            seen.time("smb.create.time", info.volume_creation_time);
            seen.add("smb.volume.serial", info.volume_serial_number.to_le_bytes());
            seen.text("smb.volume.label", info.volume_label);
        }
        FsInfoClass::Size => {
            let info = round_trip!(seen, fs_info::Size, buffer);
            seen.add("smb.alloc_size64", info.total_allocation_units.to_le_bytes());
            seen.add("smb.free_alloc_units", info.available_allocation_units.to_le_bytes());
        }
        FsInfoClass::FullSize => {
            round_trip!(seen, fs_info::FullSize, buffer);
        }
        FsInfoClass::Device => {
            round_trip!(seen, fs_info::Device, buffer);
        }
        FsInfoClass::Attribute => {
            let info = variable_round_trip!(seen, fs_info::Attribute<'_>, buffer);
            seen.add("smb.fs_attr", info.file_system_attributes.bits().to_le_bytes());
            seen.text("smb.fs_name", info.file_system_name);
        }
        FsInfoClass::ObjectId => {
            round_trip!(seen, fs_info::ObjectId, buffer);
        }
        FsInfoClass::SectorSize => {
            round_trip!(seen, fs_info::SectorSize, buffer);
        }
        other => panic!("{other:?} is not decoded"),
    }
    Ok(())
}

pub(super) fn security_descriptor(seen: &mut Seen, buffer: &[u8]) -> Result<(), WireError> {
    let descriptor = variable_round_trip!(seen, SecurityDescriptor, buffer);
    seen.add("nt.sec_desc.type", descriptor.control.bits().to_le_bytes());
    for acl in [&descriptor.sacl, &descriptor.dacl].into_iter().flatten() {
        let size = bytes(|out| acl.encode_into(out).expect("it came from the wire")).len();
        let size = u16::try_from(size).expect("the length of an ACL");
        seen.add("nt.acl.size", size.to_le_bytes());
        // tshark includes the reserved bytes that follow.
        let count = u32::try_from(acl.aces.len()).expect("a count");
        seen.add("nt.acl.num_aces", count.to_le_bytes());
        for ace in &acl.aces {
            let smb::security_descriptor::AceBody::Basic { mask, .. } = ace.body else { panic!("{ace:?}") };
            seen.add("smb.access_mask", mask.bits().to_le_bytes());
        }
    }
    Ok(())
}

pub(super) fn set_info(seen: &mut Seen, request: &smb::set_info::Request<'_>) -> Result<(), WireError> {
    if request.info_type == InfoType::Security {
        return security_descriptor(seen, request.buffer);
    }
    match FileInfoClass::from(request.info_class) {
        FileInfoClass::Basic => {
            let info = round_trip!(seen, file_info::Basic, request.buffer);
            basic(seen, &info);
        }
        FileInfoClass::Rename | FileInfoClass::Link => {
            // Clients send any value in the reserved bytes, and pad.
            let info = file_info::Rename::decode(request.buffer)?;
            let encoded = bytes(|out| info.encode_into(out).expect("it came from the wire"));
            seen.same(&encoded[8..], &request.buffer[8..encoded.len()]);
            seen.text("smb2.filename", info.name);
        }
        FileInfoClass::Disposition => {
            round_trip!(seen, file_info::Disposition, request.buffer);
        }
        FileInfoClass::EndOfFile => {
            let info = round_trip!(seen, file_info::EndOfFile, request.buffer);
            seen.add("smb2.eof", info.end_of_file.to_le_bytes());
        }
        FileInfoClass::Allocation => {
            let info = round_trip!(seen, file_info::Allocation, request.buffer);
            seen.add("smb2.allocation_size", info.allocation_size.to_le_bytes());
        }
        FileInfoClass::Position => {
            round_trip!(seen, file_info::Position, request.buffer);
        }
        FileInfoClass::FullEa => extended_attributes(seen, request.buffer)?,
        other => panic!("{other:?} is not decoded"),
    }
    Ok(())
}

pub(super) fn directory(seen: &mut Seen, context: &Context, buffer: &[u8]) -> Result<(), WireError> {
    let class = context.find_class.expect("the class of the request").into();
    let entries: Vec<_> = directory_info::entries(class, buffer)?.collect::<Result<_, _>>()?;
    let mut out = Vec::new();
    let mut list = directory_info::DirectoryWriter::new(class, &mut out, buffer.len())?;
    let with_ea_size = class != FileInfoClass::Directory;
    for entry in &entries {
        seen.add("smb2.file_index", entry.file_index.to_le_bytes());
        seen.time("smb2.create.time", entry.creation_time);
        seen.time("smb2.last_access.time", entry.last_access_time);
        seen.time("smb2.last_write.time", entry.last_write_time);
        seen.time("smb2.last_change.time", entry.change_time);
        seen.add("smb2.eof", entry.end_of_file.to_le_bytes());
        seen.add("smb2.allocation_size", entry.allocation_size.to_le_bytes());
        seen.add("smb2.file_attribute", entry.file_attributes.bits().to_le_bytes());
        if with_ea_size {
            seen.add("smb2.ea_size", entry.ea_size.to_le_bytes());
        }
        let [a, b, c, d, e, f, g, h, ..] = entry.file_id.to_le_bytes();
        seen.add("smb2.file_id", [a, b, c, d, e, f, g, h]);
        seen.text("smb2.filename", entry.name);
        list.push(entry).expect("it came from a buffer of this length");
    }
    seen.same(&out, buffer);
    Ok(())
}

pub(super) fn changes(seen: &mut Seen, buffer: &[u8]) -> Result<(), WireError> {
    let changes: Vec<_> = notify::Change::list(buffer).collect::<Result<_, _>>()?;
    let mut out = Vec::new();
    let mut list = notify::writer(&mut out, buffer.len());
    for change in &changes {
        seen.add("smb2.notify.action", u32::from(change.action).to_le_bytes());
        seen.text("smb2.filename", change.name);
        change.push(&mut list).expect("it came from a buffer of this length");
    }
    seen.same(&out, buffer);
    Ok(())
}

pub(super) fn ioctl_input(seen: &mut Seen, request: &smb::ioctl::Request<'_>) -> Result<(), WireError> {
    match request.ctl_code {
        Fsctl::ValidateNegotiateInfo => {
            let info = variable_round_trip!(seen, fsctl::ValidateNegotiateRequest, request.input);
            seen.add("smb2.capabilities", info.capabilities.bits().to_le_bytes());
            seen.add("smb2.client_guid", info.guid.0);
            seen.add("smb2.sec_mode", &info.security_mode.bits().to_le_bytes()[..1]);
            for dialect in info.dialects {
                seen.add("smb2.dialect", u16::from(dialect).to_le_bytes());
            }
        }
        Fsctl::SrvCopychunk | Fsctl::SrvCopychunkWrite => {
            let copy = fsctl::Copychunk::decode(request.input)?;
            let encoded = bytes(|out| copy.encode_into(out).expect("it came from the wire"));
            // The client sends any value in the reserved bytes of the last chunk.
            let reserved = encoded.len() - 4;
            seen.same(&encoded[..reserved], &request.input[..reserved]);
            seen.add("smb2.fsctl.cchunk.resume_key", copy.source_key);
            let count = u32::try_from(copy.chunks.len()).expect("a count");
            seen.add("smb2.fsctl.cchunk.count", count.to_le_bytes());
            for chunk in copy.chunks {
                seen.add("smb2.fsctl.cchunk.src_offset", chunk.source_offset.to_le_bytes());
                seen.add("smb2.fsctl.cchunk.dst_offset", chunk.target_offset.to_le_bytes());
                seen.add("smb2.fsctl.cchunk.xfer_len", chunk.length.to_le_bytes());
            }
        }
        Fsctl::SetZeroData => {
            let zero = round_trip!(seen, fsctl::ZeroData, request.input);
            seen.add("smb2.fsctl.range_offset", zero.file_offset.to_le_bytes());
            seen.add("smb2.fsctl.range_length", zero.beyond_final_zero.to_le_bytes());
        }
        Fsctl::QueryAllocatedRanges => {
            let range = round_trip!(seen, fsctl::AllocatedRange, request.input);
            seen.add("smb2.fsctl.range_offset", range.file_offset.to_le_bytes());
            seen.add("smb2.fsctl.range_length", range.length.to_le_bytes());
        }
        Fsctl::DfsGetReferrals => {
            let referral = round_trip!(seen, fsctl::DfsReferralRequest<'_>, request.input);
            assert!(referral.max_referral_level <= 4);
        }
        Fsctl::PipeTransceive => rpc_request(seen, request.input)?,
        _ => {}
    }
    Ok(())
}

pub(super) fn ioctl_output(
    seen: &mut Seen,
    context: &Context,
    response: &smb::ioctl::Response<'_>,
) -> Result<(), WireError> {
    let output = response.output;
    match response.ctl_code {
        Fsctl::ValidateNegotiateInfo => {
            let info = round_trip!(seen, fsctl::ValidateNegotiateResponse, output);
            seen.add("smb2.capabilities", info.capabilities.bits().to_le_bytes());
            seen.add("smb2.server_guid", info.guid.0);
            seen.add("smb2.sec_mode", &info.security_mode.bits().to_le_bytes()[..1]);
            seen.add("smb2.dialect", info.dialect.to_le_bytes());
        }
        Fsctl::SrvRequestResumeKey => {
            let key = round_trip!(seen, fsctl::ResumeKey, output);
            seen.add("smb2.fsctl.cchunk.resume_key", key.resume_key);
        }
        Fsctl::SrvCopychunk | Fsctl::SrvCopychunkWrite => {
            let copied = round_trip!(seen, fsctl::CopychunkResponse, output);
            seen.add("smb2.fsctl.cchunk.total_written", copied.total_bytes_written.to_le_bytes());
        }
        Fsctl::QueryAllocatedRanges => {
            let ranges = fsctl::AllocatedRange::decode_list(output)?;
            seen.same(&bytes(|out| ranges.iter().for_each(|range| range.encode_into(out))), output);
            for range in ranges {
                seen.add("smb2.fsctl.range_offset", range.file_offset.to_le_bytes());
                seen.add("smb2.fsctl.range_length", range.length.to_le_bytes());
            }
        }
        Fsctl::QueryNetworkInterfaceInfo => interfaces(seen, output)?,
        Fsctl::SrvEnumerateSnapshots => {
            variable_round_trip!(seen, fsctl::SnapshotArray, output);
        }
        Fsctl::PipeTransceive => rpc_response(seen, context, output)?,
        _ => {}
    }
    Ok(())
}

fn interfaces(seen: &mut Seen, output: &[u8]) -> Result<(), WireError> {
    let interfaces = fsctl::NetworkInterface::decode_list(output)?;
    seen.same(&bytes(|out| fsctl::NetworkInterface::encode_list(&interfaces, out)), output);
    for interface in interfaces {
        seen.add("smb2.ioctl.network_interfaces.index", interface.if_index.to_le_bytes());
        seen.add("smb2.ioctl.network_interfaces.capabilities", interface.capabilities.bits().to_le_bytes());
        seen.add("smb2.ioctl.network_interfaces.link_speed", interface.link_speed.to_le_bytes());
        if let std::net::IpAddr::V4(v4) = interface.address.ip() {
            seen.add("windows.sockaddr.in.addr", v4.octets());
        }
    }
    Ok(())
}

/// The interface of a golden stub cannot be read from the stub: here wkssvc has procedure 0, and srvsvc the others.
fn rpc_request(seen: &mut Seen, input: &[u8]) -> Result<(), WireError> {
    let (pdu, length) = Pdu::decode(input)?;
    assert_eq!(length, input.len());
    seen_pdu(seen, &pdu, input);
    if let Body::Request { opnum, stub, context_id, .. } = pdu.body {
        seen.add("dcerpc.cn_ctx_id", context_id.to_le_bytes());
        seen.add("dcerpc.opnum", opnum.to_le_bytes());
        if opnum == wkssvc::OPNUM_WKSTA_GET_INFO {
            let request = wkssvc::WkstaGetInfoRequest::decode(stub)?;
            assert!(request.level >= 100);
        } else {
            seen_srvsvc_request(seen, opnum, stub)?;
        }
    }
    Ok(())
}

fn seen_srvsvc_request(seen: &mut Seen, opnum: u16, stub: &[u8]) -> Result<(), WireError> {
    let request = srvsvc::Request::decode(opnum, stub)?.expect("a procedure that is known");
    assert_eq!(request.opnum(), opnum);
    match &request {
        srvsvc::Request::ShareEnum { level, .. } => {
            seen.add("srvsvc.srvsvc_NetShareEnumAll.level", level.to_le_bytes());
        }
        srvsvc::Request::ShareGetInfo { level, .. } => {
            seen.add("srvsvc.srvsvc_NetShareGetInfo.level", level.to_le_bytes());
        }
        srvsvc::Request::ServerGetInfo { level, .. } => {
            seen.add("srvsvc.srvsvc_NetSrvGetInfo.level", level.to_le_bytes());
        }
    }
    seen.same(&bytes(|out| request.encode_into(out).expect("it came from the wire")), stub);
    Ok(())
}

fn seen_pdu(seen: &mut Seen, pdu: &Pdu<'_>, original: &[u8]) {
    seen.add("dcerpc.pkt_type", [original[2]]);
    seen.add("dcerpc.cn_call_id", pdu.call_id.to_le_bytes());
    if let Body::Bind(bind) = &pdu.body {
        for context in &bind.contexts {
            seen.add("dcerpc.cn_ctx_id", context.context_id.to_le_bytes());
        }
    }
    if !pdu.authenticated {
        seen.same(&bytes(|out| pdu.encode_into(out).expect("it came from the wire")), original);
    }
}

fn rpc_response(seen: &mut Seen, context: &Context, output: &[u8]) -> Result<(), WireError> {
    let (pdu, length) = Pdu::decode(output)?;
    assert_eq!(length, output.len());
    match pdu.body {
        Body::Response { stub, context_id, .. } => {
            seen_pdu(seen, &pdu, output);
            seen.add("dcerpc.cn_ctx_id", context_id.to_le_bytes());
            seen_results(seen, context, stub)
        }
        Body::Fault { context_id, status } => {
            seen.add("dcerpc.pkt_type", [output[2]]);
            seen.add("dcerpc.cn_call_id", pdu.call_id.to_le_bytes());
            seen.add("dcerpc.cn_ctx_id", context_id.to_le_bytes());
            assert_eq!(status, smb::dcerpc::fault::OP_RANGE_ERROR);
            Ok(())
        }
        _ => {
            seen_pdu(seen, &pdu, output);
            Ok(())
        }
    }
}

fn seen_results(seen: &mut Seen, context: &Context, stub: &[u8]) -> Result<(), WireError> {
    let Some(opnum) = context.srvsvc_opnum else {
        return seen_workstation(seen, stub);
    };
    let (response, error) = match srvsvc::Response::decode(opnum.into(), stub) {
        // smbtorture also asks for level 102, which this crate does not support; tshark's error comes last.
        Err(WireError::Invalid("level of a server")) => {
            seen.add("srvsvc.werror", &stub[stub.len() - 4..]);
            return Ok(());
        }
        other => other?,
    };
    let encoded = bytes(|out| response.encode_into(error, out).expect("it came from the wire"));
    let level = match &response {
        srvsvc::Response::ShareEnum { level, total_entries, shares, .. } => {
            assert!(shares.iter().any(|share| share.name == "bench"), "{shares:?}");
            seen.add("srvsvc.srvsvc_NetShareEnumAll.level", level.to_le_bytes());
            seen.add("srvsvc.srvsvc_NetShareEnumAll.totalentries", total_entries.to_le_bytes());
            *level
        }
        srvsvc::Response::ShareGetInfo { level, .. } | srvsvc::Response::ServerGetInfo { level, .. } => {
            *level
        }
    };
    // Samba sends empty passwords, this crate sends none: levels 2 and 502.
    if ![2, 502].contains(&level) {
        seen.same(&without_referents(&encoded), &without_referents(stub));
    }
    seen.add("srvsvc.werror", error.to_le_bytes());
    Ok(())
}

fn seen_workstation(seen: &mut Seen, stub: &[u8]) -> Result<(), WireError> {
    let (response, error) = match wkssvc::WkstaGetInfoResponse::decode(stub) {
        Err(WireError::Invalid("level of a computer")) => {
            seen.add("wkssvc.werror", &stub[stub.len() - 4..]);
            return Ok(());
        }
        other => other?,
    };
    let encoded = bytes(|out| response.encode_into(error, out).expect("it came from the wire"));
    seen.same(&without_referents(&encoded), &without_referents(stub));
    seen.add("wkssvc.werror", error.to_le_bytes());
    Ok(())
}

/// A stub in which all pointers that are not null have the same referent: the sender chooses the numbers, and Samba
/// continues to count from one stub to the next.
fn without_referents(stub: &[u8]) -> Vec<u8> {
    let one = |word: &[u8]| {
        if word.len() == 4 && word[1..] == [0, 2, 0] { vec![0, 0, 2, 0] } else { word.to_vec() }
    };
    stub.chunks(4).flat_map(one).collect()
}
