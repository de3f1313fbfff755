//! What clients see of quotas.

use std::time::{Duration, Instant};

use anabranch_smb_server::Config;
use smb_wire::NtStatus;
use smb_wire::create::CreateDisposition;
use smb_wire::fscc::FsInfoClass;
use smb_wire::fscc::fs_info::{Attribute, Control, FileSystemAttributes, FullSize};
use smb_wire::query_info::InfoType;

use crate::client::{Client, TestServer};
use crate::information::Query;

fn of_volume(client: &mut Client, file: smb_wire::FileId, class: FsInfoClass) -> Vec<u8> {
    let info_type = InfoType::FileSystem;
    let query = Query { info_type, class: class.into(), additional: 0, limit: 4096 };
    query.get(client, file).unwrap()
}

#[test]
fn a_full_quota_is_told_and_held() {
    let server = TestServer::start(Config::default());
    let mut client = server.client();
    let file = client.create("f", CreateDisposition::Create).unwrap();
    let has_quotas = |client: &mut Client| {
        let told = of_volume(client, file, FsInfoClass::Attribute);
        let told = Attribute::decode(&told).unwrap().file_system_attributes;
        told.contains(FileSystemAttributes::VOLUME_QUOTAS)
    };
    let control =
        |client: &mut Client| Control::decode(&of_volume(client, file, FsInfoClass::Control)).unwrap();
    assert!(!has_quotas(&mut client) && control(&mut client).file_system_control_flags == 0);
    server.share.set_quota_rules(vec!["/ hard=16KiB".parse().unwrap(), "* soft=1MiB".parse().unwrap()]);
    let deadline = Instant::now() + Duration::from_secs(60);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    while runtime.block_on(server.share.quota_status()).unwrap().unwrap().counted.is_none() {
        assert!(Instant::now() < deadline, "it was not counted");
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(has_quotas(&mut client));
    let told = control(&mut client);
    assert_eq!((told.default_quota_threshold, told.default_quota_limit), (1 << 20, u64::MAX));
    assert_eq!(told.file_system_control_flags, 2, "FILE_VC_QUOTA_ENFORCE, and all files were counted");
    client.write(file, 0, &[1; 3 * 4096]).unwrap();
    let size = FullSize::decode(&of_volume(&mut client, file, FsInfoClass::FullSize)).unwrap();
    let unit = u64::from(size.sectors_per_allocation_unit * size.bytes_per_sector);
    assert_eq!(size.total_allocation_units * unit, 4 * 4096);
    assert_eq!(size.caller_available_allocation_units * unit, 4096);
    assert_eq!(client.write(file, 3 * 4096, &[2; 4097]), Err(NtStatus::DISK_FULL));
    client.write(file, 3 * 4096, &[2; 4096]).unwrap();
    assert_eq!(client.write(file, 4 * 4096, &[3]), Err(NtStatus::DISK_FULL));
    client.write(file, 0, &[4; 4 * 4096]).unwrap();
}
