//! A server that lies: a proxy in front of a server, which sends replies late, wrong, or never.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Replies of so many bytes have data in them.
const DATA: usize = 4096;

/// What the server does with its replies.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lie {
    /// Each comes so much later.
    Late(Duration),
    /// Of those with data, each of this number has one wrong byte near its end.
    WrongByte(u64),
    /// Of those with data, the one of this number never comes.
    Lost(u64),
    /// The connection ends instead of the reply with data of this number.
    Close(u64),
}

/// A proxy that runs until the test ends.
pub(crate) struct Liar {
    pub(crate) address: SocketAddr,
    lies: Arc<AtomicU64>,
}

impl Liar {
    /// In front of the server at this address.
    pub(crate) fn before(server: &str, lie: Lie) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, lies) = (listener.local_addr().unwrap(), Arc::new(AtomicU64::new(0)));
        let (server, told) = (server.to_owned(), Arc::clone(&lies));
        let replies = Arc::new(AtomicU64::new(0));
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(&server).unwrap());
                connection(client, server, lie, Arc::clone(&told), Arc::clone(&replies));
            }
        });
        Self { address, lies }
    }

    /// Replies that were not the server's.
    pub(crate) fn lies(&self) -> u64 {
        self.lies.load(Ordering::SeqCst)
    }
}

fn connection(client: TcpStream, server: TcpStream, lie: Lie, told: Arc<AtomicU64>, replies: Arc<AtomicU64>) {
    for stream in [&client, &server] {
        stream.set_nodelay(true).unwrap();
    }
    let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut server = server;
        while let Some(record) = record(&mut server) {
            if sender.send((Instant::now(), record)).is_err() {
                break;
            }
        }
    });
    thread::spawn(move || send(client, &receiver, lie, &told, &replies));
}

/// One record or frame with its prefix: both have their length in the lower bits of the first four bytes.
fn record(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut record = vec![0; 4];
    stream.read_exact(&mut record).ok()?;
    let length = u32::from_be_bytes([record[0] & 0x7F, record[1], record[2], record[3]]);
    record.resize(4 + length as usize, 0);
    stream.read_exact(&mut record[4..]).ok()?;
    Some(record)
}

fn send(
    mut client: TcpStream,
    replies: &Receiver<(Instant, Vec<u8>)>,
    lie: Lie,
    told: &AtomicU64,
    with_data: &AtomicU64,
) {
    for (arrived, mut record) in replies {
        let number = if record.len() > DATA { with_data.fetch_add(1, Ordering::SeqCst) + 1 } else { 0 };
        match lie {
            Lie::Late(by) => thread::sleep((arrived + by).saturating_duration_since(Instant::now())),
            Lie::WrongByte(every) if number > 0 && number % every == 0 => {
                let at = record.len() - 9;
                record[at] ^= 0x10;
                told.fetch_add(1, Ordering::SeqCst);
            }
            Lie::Lost(which) if number == which => {
                told.fetch_add(1, Ordering::SeqCst);
                continue;
            }
            Lie::Close(which) if number == which => {
                told.fetch_add(1, Ordering::SeqCst);
                let _ = client.shutdown(std::net::Shutdown::Both);
                return;
            }
            _ => {}
        }
        if client.write_all(&record).is_err() {
            return;
        }
    }
    let _ = client.shutdown(std::net::Shutdown::Both);
}
