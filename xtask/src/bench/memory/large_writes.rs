//! 300 connections of NFSv3 that write 1 MiB each at the same time: first 9/10 of it, and the rest when all have come
//! that far.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::sleep;
use std::time::Duration;

const CONNECTIONS: u32 = 300;
const BLOCK: u32 = 1 << 20;
const FIRST_PART: usize = 943_718;
/// RPC programs, both in version 3.
const NFS: u32 = 100_003;
const MOUNT: u32 = 100_005;
/// Set in the mark of the last fragment of a record.
const LAST: u32 = 0x8000_0000;

pub(super) fn run(server: SocketAddr) -> io::Result<()> {
    let connected = (0..CONNECTIONS).map(|_| TcpStream::connect(server));
    let mut connections = connected.collect::<io::Result<Vec<_>>>()?;
    let first = &mut connections[0];
    let root = handle(&call(first, MOUNT, 1, &opaque(b"/data"))?)?;
    let file = handle(&call(first, NFS, 3, &[opaque(&root), opaque(b"large")].concat())?)?;
    let block = vec![0; 1 << 20];
    let mut rests = Vec::new();
    for (number, connection) in (0..).zip(&mut connections) {
        call(connection, NFS, 1, &opaque(&root))?;
        let place = u64::from(BLOCK) * number;
        // The length, and UNSTABLE.
        let how = [place.to_be_bytes().to_vec(), BLOCK.to_be_bytes().to_vec(), vec![0; 4]].concat();
        let mut write = record(NFS, 7, &[opaque(&file), how, opaque(&block)].concat());
        rests.push(write.split_off(FIRST_PART));
        connection.write_all(&write)?;
    }
    sleep(Duration::from_secs(1));
    for (connection, rest) in connections.iter_mut().zip(&rests) {
        connection.write_all(rest)?;
    }
    connections.iter_mut().try_for_each(|connection| reply(connection).map(drop))
}

/// Makes a call of RPC version 2, program version 3, AUTH_NONE (RFC 5531). Returns the results without their header.
fn call(connection: &mut TcpStream, program: u32, procedure: u32, arguments: &[u8]) -> io::Result<Vec<u8>> {
    connection.write_all(&record(program, procedure, arguments))?;
    reply(connection)
}

fn record(program: u32, procedure: u32, arguments: &[u8]) -> Vec<u8> {
    let header = [7, 0, 2, program, 3, procedure, 0, 0, 0, 0].map(u32::to_be_bytes).concat();
    let length = u32::try_from(header.len() + arguments.len()).unwrap_or(u32::MAX);
    [&(LAST | length).to_be_bytes(), header.as_slice(), arguments].concat()
}

fn reply(connection: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut mark = [0; 4];
    connection.read_exact(&mut mark)?;
    let length = u32::from_be_bytes(mark) & !LAST;
    let mut message = vec![0; usize::try_from(length).unwrap_or_default()];
    connection.read_exact(&mut message)?;
    message.get(24..).map(<[u8]>::to_vec).ok_or_else(|| io::Error::other("a short reply"))
}

fn opaque(data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let padding = data.len().next_multiple_of(4) - data.len();
    [&length.to_be_bytes(), data, &[0; 3][..padding]].concat()
}

/// The filehandle after a status.
fn handle(results: &[u8]) -> io::Result<Vec<u8>> {
    let read = || {
        let length = u32::from_be_bytes(results.get(4..8)?.try_into().ok()?);
        results.get(8..8 + usize::try_from(length).ok()?)
    };
    read().map(<[u8]>::to_vec).ok_or_else(|| io::Error::other("no filehandle in a reply"))
}
