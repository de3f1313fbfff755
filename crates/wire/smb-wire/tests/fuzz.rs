//! Arbitrary bytes: decoding succeeds or fails, never panics and always ends; and what it returns stays inside the
//! bytes.

use std::fs;
use std::hint::black_box;
use std::path::PathBuf;

use anabranch_smb_wire as smb;
use smb::fscc::{FileInfoClass, directory_info, ea, file_info, fs_info, fsctl, notify, quota, reparse};
use smb::{create_context, dcerpc, dssetup, lsarpc, samr, srvsvc, wkssvc};

/// Decodes and, if that succeeds, formats the whole value.
fn look(value: impl std::fmt::Debug) {
    black_box(format!("{value:?}"));
}

type Decode = fn(&[u8]);

/// Every body of the protocol, with the StructureSize that its decoder expects.
const BODIES: &[(u16, Decode)] = &[
    (9, |m| look(smb::error_response::Response::decode(m).map(|r| (r.contexts(), r)))),
    (36, |m| look(smb::negotiate::Request::decode(m))),
    (65, |m| look(smb::negotiate::Response::decode(m))),
    (25, |m| look(smb::session_setup::Request::decode(m))),
    (9, |m| look(smb::session_setup::Response::decode(m))),
    (4, |m| look(smb::logoff::Request::decode(m))),
    (9, |m| look(smb::tree_connect::Request::decode(m).map(|r| r.path.decode()))),
    (16, |m| look(smb::tree_connect::Response::decode(m))),
    (57, |m| look(smb::create::Request::decode(m).map(|r| (r.name.decode(), r)))),
    (89, |m| look(smb::create::Response::decode(m))),
    (24, |m| look(smb::close::Request::decode(m))),
    (60, |m| look(smb::close::Response::decode(m))),
    (24, |m| look(smb::flush::Request::decode(m))),
    (49, |m| look(smb::read::Request::decode(m))),
    (17, |m| look(smb::read::Response::decode(m))),
    (49, |m| {
        if let Ok(request) = smb::write::Request::decode(m) {
            assert_eq!(&m[request.payload_range()], request.data);
        }
    }),
    (17, |m| look(smb::write::Response::decode(m))),
    (24, |m| look(smb::oplock_break::Notification::decode(m))),
    (44, |m| look(smb::oplock_break::Notification::decode(m))),
    (36, |m| look(smb::oplock_break::Acknowledgment::decode(m))),
    (48, |m| look(smb::lock::Request::decode(m))),
    (57, |m| look(smb::ioctl::Request::decode(m))),
    (49, |m| look(smb::ioctl::Response::decode(m))),
    (33, |m| look(smb::query_directory::Request::decode(m))),
    (9, |m| look(smb::query_directory::Response::decode(m))),
    (32, |m| look(smb::change_notify::Request::decode(m))),
    (41, |m| look(smb::query_info::Request::decode(m))),
    (33, |m| look(smb::set_info::Request::decode(m))),
    (2, |m| look(smb::set_info::Response::decode(m))),
];

/// Decodes as each kind of body, with the right StructureSize and with the one in the message.
fn decode_as_every_body(message: &[u8]) {
    look(smb::Header::decode(message));
    for (structure_size, decode) in BODIES {
        decode(message);
        let mut message = message.to_vec();
        if let Some(field) = message.get_mut(64..66) {
            field.copy_from_slice(&structure_size.to_le_bytes());
        }
        decode(&message);
    }
}

fn decode_as_every_buffer(bytes: &[u8]) {
    look(create_context::RequestContext::decode_list(bytes));
    look(create_context::ResponseContext::decode_list(bytes));
    look(smb::error_response::SymbolicLink::decode(bytes));
    look(smb::share_redirect::ShareRedirect::decode(bytes));
    look(reparse::ReparsePoint::decode(bytes));
    look(file_info::All::decode(bytes));
    look(file_info::Name::decode(bytes));
    look((file_info::Rename::decode(bytes), file_info::Rename::decode_ex(bytes)));
    look((fs_info::Volume::decode(bytes), fs_info::Attribute::decode(bytes)));
    look(file_info::Stream::list(bytes).collect::<Vec<_>>());
    look(notify::Change::list(bytes).collect::<Vec<_>>());
    look(ea::FullEa::list(bytes).collect::<Vec<_>>());
    look(ea::names(bytes).collect::<Vec<_>>());
    look(quota::Quota::list(bytes).collect::<Vec<_>>());
    look(quota::sids(bytes).collect::<Vec<_>>());
    look(smb::query_quota::QueryQuota::decode(bytes));
    for class in
        (0..=u8::MAX).map(FileInfoClass::from).filter(|class| directory_info::is_directory_class(*class))
    {
        look(directory_info::entries(class, bytes).map(Iterator::collect::<Vec<_>>));
    }
    decode_as_every_fsctl(bytes);
}

fn decode_as_every_fsctl(bytes: &[u8]) {
    look(fsctl::ValidateNegotiateRequest::decode(bytes));
    look(fsctl::ValidateNegotiateResponse::decode(bytes));
    look(fsctl::NetworkInterface::decode_list(bytes));
    look((fsctl::ResumeKey::decode(bytes), fsctl::Copychunk::decode(bytes)));
    look((fsctl::decode_set_sparse(bytes), fsctl::ZeroData::decode(bytes)));
    look((fsctl::AllocatedRange::decode(bytes), fsctl::AllocatedRange::decode_list(bytes)));
    look((fsctl::DfsReferralRequest::decode(bytes), fsctl::PipeWait::decode(bytes)));
    look((fsctl::FileLevelTrim::decode(bytes), fsctl::DuplicateExtents::decode(bytes)));
    look((fsctl::FileRegionInput::decode(bytes), fsctl::FileRegionOutput::decode(bytes)));
    look((fsctl::GetIntegrityInformation::decode(bytes), fsctl::SetIntegrityInformation::decode(bytes)));
    look(fsctl::SnapshotArray::decode(bytes));
}

fn decode_as_rpc(bytes: &[u8]) {
    look(dcerpc::Pdu::decode(bytes));
    for opnum in [15, 16, 21] {
        look(srvsvc::Request::decode(opnum, bytes));
        look(srvsvc::Response::decode(opnum, bytes));
    }
    for opnum in [0, 6, 7, 14, 15, 44, 45, 46, 57, 58, 68] {
        look(lsarpc::Request::decode(opnum, bytes));
    }
    for opnum in 0..=70 {
        look(samr::Request::decode(opnum, bytes));
    }
    look(dssetup::decode_level(bytes));
    look(wkssvc::WkstaGetInfoRequest::decode(bytes));
    look(wkssvc::WkstaGetInfoResponse::decode(bytes));
}

#[test]
fn frames() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let mut end = 0;
        for message in smb::chain::Chain::new(bytes).map_while(Result::ok) {
            assert_eq!(message.start, end, "messages lie one behind the other");
            assert!(message.len() >= 64 && message.end <= bytes.len());
            end = message.end;
        }
        look(smb::transform::TransformHeader::decode(bytes));
        look(smb::smb1::NegotiateRequest::decode(bytes));
    });
}

#[test]
fn messages() {
    bolero::check!().for_each(decode_as_every_body);
}

#[test]
fn buffers() {
    bolero::check!().for_each(decode_as_every_buffer);
}

#[test]
fn rpc() {
    bolero::check!().for_each(decode_as_rpc);
}

/// Messages of a real client and server, each truncated at every length, and each with every byte replaced: far from
/// random, and close to what a hostile client sends.
#[test]
fn golden_messages_with_a_wrong_byte_or_end() {
    let testdata = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("testdata");
    let mut count = 0;
    for entry in fs::read_dir(testdata).expect("testdata") {
        let path = entry.expect("entry").path();
        if path.extension().is_none_or(|extension| extension != "bin") {
            continue;
        }
        count += 1;
        let message = fs::read(path).expect("a golden message");
        let own = |message: &[u8]| BODIES.iter().for_each(|(_, decode)| decode(message));
        for end in 0..message.len().min(400) {
            own(&message[..end]);
        }
        for at in 64..message.len().min(400) {
            for wrong in [0x00, 0x01, 0x7F, 0x80, 0xFF] {
                let mut message = message.clone();
                message[at] = wrong;
                own(&message);
            }
        }
    }
    assert!(count > 200);
}
