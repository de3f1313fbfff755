//! A client in a few lines: mounts an export and asks for the attributes of its root, over NFSv3.
//!
//!     cargo run --example attributes -- 127.0.0.1:2049 /data
//!
//! MOUNT must answer on the same port, as with Anabranch. Other servers use a separate port, which the port mapper
//! reports.

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;

use anabranch_nfs_wire::mount::{self, DirPath, MntRes};
use anabranch_nfs_wire::record_mark::{MARK_BYTES, Mark};
use anabranch_nfs_wire::rpc::{AcceptStatus, Call, OpaqueAuth, Reply, ReplyBody};
use anabranch_nfs_wire::v3::{self, getattr};
use anabranch_nfs_wire::xdr::{Decode, Encode, Reader, Writer};

fn main() -> Result<(), Box<dyn Error>> {
    let mut given = std::env::args().skip(1);
    let server = given.next().unwrap_or_else(|| "127.0.0.1:2049".to_owned());
    let export = given.next().unwrap_or_else(|| "/data".to_owned());
    let mut connection = TcpStream::connect(server)?;

    let mount = (mount::PROGRAM, mount::VERSION, mount::Procedure::Mnt as u32);
    let reply = call(&mut connection, mount, &DirPath(export.as_bytes()))?;
    let root = MntRes::from_bytes(results(&reply)?)?.map_err(|refused| format!("{:?}", refused.status))?;

    let get_attributes = (v3::PROGRAM, v3::VERSION, v3::Procedure::GetAttr as u32);
    let reply = call(&mut connection, get_attributes, &getattr::Args { object: root.file_handle })?;
    let found =
        getattr::Res::from_bytes(results(&reply)?)?.map_err(|refused| format!("{:?}", refused.status))?;
    println!("{:#?}", found.object_attributes);
    Ok(())
}

/// Sends a call of one procedure (program, version, number), and waits for the record that answers it.
fn call(
    connection: &mut TcpStream,
    (program, version, procedure): (u32, u32, u32),
    arguments: &impl Encode,
) -> Result<Vec<u8>, Box<dyn Error>> {
    let none = OpaqueAuth::NONE;
    let call = Call { xid: procedure, program, version, procedure, credential: none, verifier: none };
    let mut message = Vec::new();
    let mut writer = Writer::new(&mut message);
    call.encode(&mut writer);
    arguments.encode(&mut writer);
    connection.write_all(&Mark::whole_record(message.len()).to_bytes())?;
    connection.write_all(&message)?;

    let mut mark = [0; MARK_BYTES];
    connection.read_exact(&mut mark)?;
    let mut record = vec![0; usize::try_from(Mark::from_bytes(mark).length)?];
    connection.read_exact(&mut record)?;
    Ok(record)
}

/// The results after the header of a reply, if the procedure ran.
fn results(record: &[u8]) -> Result<&[u8], Box<dyn Error>> {
    let mut reader = Reader::new(record);
    match Reply::decode(&mut reader)?.body {
        ReplyBody::Accepted { status: AcceptStatus::Success, .. } => Ok(reader.rest()),
        refused => Err(format!("{refused:?}").into()),
    }
}
