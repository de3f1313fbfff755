//! NLM, NSM, the port mapper and rpcbind: nothing panics on the bytes of a hostile peer, and any value is the same after it
//! is encoded and decoded.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use anabranch_nfs_wire::mount::List;
use anabranch_nfs_wire::nlm::{self, CallerName, Found, NetObject, Procedure, Status};
use anabranch_nfs_wire::nsm::{self, HostName};
use anabranch_nfs_wire::portmap::{self, Mapping};
use anabranch_nfs_wire::rpcbind::{self, Binding, Text};
use anabranch_nfs_wire::rquota;
use anabranch_nfs_wire::v3::types::FileHandle;
use anabranch_nfs_wire::xdr::{Decode, Encode, XdrError};
use proptest::collection::vec;
use proptest::prelude::*;

/// Decodes and, if that succeeds, encodes and decodes again.
macro_rules! again {
    ($type:ty, $bytes:expr) => {
        if let Ok(value) = <$type>::from_bytes($bytes) {
            let encoded = value.encode_to_vec();
            assert_eq!(encoded.len(), $bytes.len());
            assert_eq!(<$type>::from_bytes(&encoded), Ok(value));
        }
    };
}

#[test]
fn anything() {
    bolero::check!().for_each(|bytes: &[u8]| {
        let Some((kind, bytes)) = bytes.split_first() else { return };
        match kind % 15 {
            0 => again!(nlm::LockArgs<'_>, bytes),
            1 => again!(nlm::CancelArgs<'_>, bytes),
            2 => again!(nlm::TestArgs<'_>, bytes),
            3 => again!(nlm::UnlockArgs<'_>, bytes),
            4 => again!(nlm::TestRes<'_>, bytes),
            5 => again!(nlm::Res<'_>, bytes),
            6 => again!(nlm::ShareArgs<'_>, bytes),
            7 => again!(nlm::ShareRes<'_>, bytes),
            8 => again!(nlm::FreeAllArgs<'_>, bytes),
            9 => again!(nsm::StateChange<'_>, bytes),
            10 => again!(List<Mapping>, bytes),
            11 => again!(rquota::UserArgs<'_>, bytes),
            12 => again!(rquota::Args<'_>, bytes),
            13 => again!(rquota::Res, bytes),
            _ => again!(List<Binding<'_>>, bytes),
        }
        if let Some(address) = rpcbind::from_universal(bytes) {
            assert_eq!(rpcbind::from_universal(rpcbind::universal(address).as_bytes()), Some(address));
        }
    });
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..40)
}

/// Checks that the value is the same after it is encoded and decoded.
macro_rules! same {
    ($type:ty, $value:expr) => {
        let value: $type = $value;
        let encoded = value.encode_to_vec();
        prop_assert_eq!(<$type>::from_bytes(&encoded), Ok(value));
    };
}

proptest! {
    #[test]
    fn lock_manager(
        [caller, file, owner, cookie] in [bytes(), bytes(), bytes(), bytes()],
        [block, exclusive, reclaim] in any::<[bool; 3]>(),
        (svid, state, offset, length) in any::<(u32, u32, u64, u64)>(),
        status in 0..10_u32,
        (mode, access) in (0..4_u32, 0..4_u32),
    ) {
        let (caller, cookie, owner) = (CallerName(&caller), NetObject(&cookie), NetObject(&owner));
        let file = FileHandle::new(&file).unwrap();
        let status = Status::try_from(status).unwrap();
        let lock = nlm::Lock { caller, file, owner, svid, offset, length };
        same!(nlm::LockArgs<'_>, nlm::LockArgs { cookie, block, exclusive, lock, reclaim, state });
        same!(nlm::CancelArgs<'_>, nlm::CancelArgs { cookie, block, exclusive, lock });
        same!(nlm::TestArgs<'_>, nlm::TestArgs { cookie, exclusive, lock });
        same!(nlm::UnlockArgs<'_>, nlm::UnlockArgs { cookie, lock });
        same!(nlm::Res<'_>, nlm::Res { cookie, status });
        let holder = nlm::Holder { exclusive, svid, owner, offset, length };
        same!(nlm::TestRes<'_>, nlm::TestRes { cookie, found: Found::Conflict(holder) });
        if status != Status::Denied {
            same!(nlm::TestRes<'_>, nlm::TestRes { cookie, found: Found::Other(status) });
        }
        let mode = nlm::Mode::try_from(mode).unwrap();
        let access = nlm::Access::try_from(access).unwrap();
        let share = nlm::Share { caller, file, owner, mode, access };
        same!(nlm::ShareArgs<'_>, nlm::ShareArgs { cookie, share, reclaim });
        same!(nlm::ShareRes<'_>, nlm::ShareRes { cookie, status, sequence: state });
        same!(nlm::FreeAllArgs<'_>, nlm::FreeAllArgs { caller, state });
        let host = HostName(caller.0);
        same!(nsm::StateChange<'_>, nsm::StateChange { host, state });
        same!(nsm::StatRes, nsm::StatRes { result: u32::from(block), state });
        let path = rquota::Path(caller.0);
        same!(rquota::UserArgs<'_>, rquota::UserArgs { path, uid: state });
        let kind = if block { rquota::Kind::Group } else { rquota::Kind::User };
        same!(rquota::Args<'_>, rquota::Args { path, kind, id: state });
        same!(rquota::Res, if block { rquota::Res::None } else { rquota::Res::NotPermitted });
    }

    #[test]
    fn bindings(numbers in vec(any::<[u32; 4]>(), 0..5), texts in vec([bytes(), bytes(), bytes()], 0..5)) {
        let mappings = numbers
            .iter()
            .map(|[program, version, protocol, port]| Mapping {
                program: *program,
                version: *version,
                protocol: *protocol,
                port: *port,
            })
            .collect();
        same!(List<Mapping>, List(mappings));
        let bindings = texts
            .iter()
            .map(|[netid, address, owner]| Binding {
                program: portmap::PROGRAM,
                version: rpcbind::VERSION_4,
                netid: Text(netid),
                address: Text(address),
                owner: Text(owner),
            })
            .collect();
        same!(List<Binding<'_>>, List(bindings));
    }
}

#[test]
fn names_have_limits() {
    let longest = [b'n'; 1024];
    assert!(CallerName::from_bytes(&CallerName(&longest).encode_to_vec()).is_ok());
    assert!(NetObject::from_bytes(&NetObject(&longest).encode_to_vec()).is_ok());
    assert!(HostName::from_bytes(&HostName(&longest).encode_to_vec()).is_ok());
    let refused = XdrError::TooLong { length: 1025, limit: 1024 };
    let longer = [b'n'; 1025];
    assert_eq!(CallerName::from_bytes(&CallerName(&longer).encode_to_vec()), Err(refused));
    assert_eq!(NetObject::from_bytes(&NetObject(&longer).encode_to_vec()), Err(refused));
    assert_eq!(HostName::from_bytes(&HostName(&longer).encode_to_vec()), Err(refused));
    assert!(Text::from_bytes(&Text(&longest[..256]).encode_to_vec()).is_err());
}

/// The numbers of RFC 1813 6.2 and 6.3: after GRANTED_RES comes SHARE, with 20.
#[test]
fn procedures_are_numbered_as_specified() {
    assert_eq!((Procedure::GrantedRes as u32, Procedure::Share as u32), (15, 20));
    assert!((16..20).chain(24..30).all(|number| Procedure::try_from(number).is_err()));
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().map(|digit| digit.to_digit(16).unwrap()).collect();
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).unwrap()).collect()
}

/// The filehandle in the captured messages.
const FILE: &str = "0100000000014e6ee0b40000000000248ba39f9f4f6005010000006ee0b400ef96d8bf971cd8a4ebf32850";

/// Arguments as Linux 6.1.176 (lockd) and sm-notify of nfs-utils 2.6.2 sent them, captured on 2026-11-25: these values are
/// read, and encoding them again gives the same bytes.
#[test]
fn what_linux_sends_is_read() {
    let file = FileHandle::new(&from_hex(FILE)).unwrap();
    let lock = |caller, owner, svid| nlm::Lock {
        caller: CallerName(caller),
        file,
        owner: NetObject(owner),
        svid,
        offset: 0,
        length: 100,
    };
    let bytes = from_hex(&format!(
        "0000000435120000000000000000000100000006286e6f6e652900000000002b{FILE}00\
         000000083040286e6f6e652900000000000000000000000000000000000000640000000000000003"
    ));
    let sent = nlm::LockArgs {
        cookie: NetObject(b"\x35\x12\0\0"),
        block: false,
        exclusive: true,
        lock: lock(b"(none)", b"0@(none)", 0),
        reclaim: false,
        state: 3,
    };
    assert_eq!((nlm::LockArgs::from_bytes(&bytes), sent.encode_to_vec()), (Ok(sent), bytes.clone()));
    let bytes = from_hex(&format!(
        "000000043b12000000000001000000067365636f6e6400000000002b{FILE}00\
         0000000832407365636f6e640000000200000000000000000000000000000064"
    ));
    let lock_of_second = lock(b"second", b"2@second", 2);
    let sent = nlm::TestArgs { cookie: NetObject(b"\x3b\x12\0\0"), exclusive: true, lock: lock_of_second };
    assert_eq!((nlm::TestArgs::from_bytes(&bytes), sent.encode_to_vec()), (Ok(sent), bytes.clone()));
    let bytes = from_hex(&format!(
        "000000043a120000000000067365636f6e6400000000002b{FILE}00\
         0000000831407365636f6e640000000100000000000000000000000000000000"
    ));
    let lock = nlm::Lock { length: 0, ..lock(b"second", b"1@second", 1) };
    let sent = nlm::UnlockArgs { cookie: NetObject(b"\x3a\x12\0\0"), lock };
    assert_eq!((nlm::UnlockArgs::from_bytes(&bytes), sent.encode_to_vec()), (Ok(sent), bytes.clone()));
    let bytes = from_hex("000000067365636f6e64000000000005");
    let sent = nsm::StateChange { host: HostName(b"second"), state: 5 };
    assert_eq!((nsm::StateChange::from_bytes(&bytes), sent.encode_to_vec()), (Ok(sent), bytes.clone()));
}
