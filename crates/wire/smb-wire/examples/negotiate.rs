//! A client in a few lines: asks a server which dialect it speaks and how much it moves at a time.
//!
//!     cargo run --example negotiate -- 127.0.0.1:445

use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;

use anabranch_smb_wire::dtyp::Guid;
use anabranch_smb_wire::frame::{PREFIX_LEN, decode_prefix, encode_prefix};
use anabranch_smb_wire::header::{Command, Header, HeaderFlags, Target};
use anabranch_smb_wire::negotiate::{Capabilities, Dialect, Request, Response, SecurityMode};
use anabranch_smb_wire::negotiate_context::{HashAlgorithm, NegotiateContext};

fn main() -> Result<(), Box<dyn Error>> {
    let server = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:445".to_owned());
    let mut connection = TcpStream::connect(server)?;

    let mut message = header().to_bytes().to_vec();
    request().encode(&mut message)?;
    connection.write_all(&encode_prefix(message.len())?)?;
    connection.write_all(&message)?;

    let mut prefix = [0; PREFIX_LEN];
    connection.read_exact(&mut prefix)?;
    let mut answer = vec![0; decode_prefix(prefix)?];
    connection.read_exact(&mut answer)?;

    println!("status    {:?}", Header::decode(&answer)?.status());
    let response = Response::decode(&answer)?;
    println!("dialect   {:?}", response.dialect);
    println!("signing   {:?}", response.security_mode);
    println!("at a time {} bytes read, {} written", response.max_read_size, response.max_write_size);
    response.contexts.iter().for_each(|context| println!("          {context:?}"));
    Ok(())
}

fn header() -> Header {
    Header {
        credit_charge: 0,
        status_or_channel_sequence: 0,
        command: Command::Negotiate,
        credits: 1,
        flags: HeaderFlags::empty(),
        next_command: 0,
        message_id: 0,
        target: Target::Sync { tree_id: 0 },
        session_id: 0,
        signature: [0; 16],
    }
}

fn request() -> Request<'static> {
    Request {
        security_mode: SecurityMode::SIGNING_ENABLED,
        capabilities: Capabilities::LARGE_MTU | Capabilities::MULTI_CHANNEL,
        client_guid: Guid(*b"an example's id."),
        dialects: vec![Dialect::Smb210, Dialect::Smb302, Dialect::Smb311],
        contexts: vec![NegotiateContext::PreauthIntegrity {
            hash_algorithms: vec![HashAlgorithm::Sha512],
            salt: b"random, if a session is to follow",
        }],
    }
}
