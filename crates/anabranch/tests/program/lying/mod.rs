//! A server that lies: a proxy in front of a server, which sends replies late, wrong, or never.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Replies of so many bytes have data in them.
const DATA: usize = 4096;
const FOREVER: Duration = Duration::from_secs(3600);

/// What the server does with its replies; with several lies, all of it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lie {
    /// Each with data comes so much later.
    Late(Duration),
    /// Of those with data, each of this number comes so much later.
    SomeLate(u64, Duration),
    /// Those with data come one at a time, at this distance at least.
    Paced(Duration),
    /// Of those with data, each of this number has one wrong byte near its end.
    WrongByte(u64),
    /// Of those with data, the one of this number never comes.
    Lost(u64),
    /// The connection ends instead of the reply with data of this number.
    Close(u64),
    /// Of SMB: from the write of this number on there is no room.
    Full(u64),
}

/// A proxy that runs until the test ends.
pub(crate) struct Liar {
    pub(crate) address: SocketAddr,
    lies: Arc<AtomicU64>,
}

impl Liar {
    /// In front of the server at this address.
    pub(crate) fn before(server: &str, lies: &[Lie]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, told) = (listener.local_addr().unwrap(), Arc::new(AtomicU64::new(0)));
        let seen = Seen { lies: lies.to_vec(), told: Arc::clone(&told), ..Seen::default() };
        let server = server.to_owned();
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(&server).unwrap());
                connection(client, server, seen.clone());
            }
        });
        Self { address, lies: told }
    }

    /// Replies that were not the server's.
    pub(crate) fn lies(&self) -> u64 {
        self.lies.load(Ordering::SeqCst)
    }
}

/// What all connections have in common.
#[derive(Debug, Clone, Default)]
struct Seen {
    lies: Vec<Lie>,
    /// Replies that were not the server's.
    told: Arc<AtomicU64>,
    /// Replies with data, and replies to writes.
    with_data: Arc<AtomicU64>,
    writes: Arc<AtomicU64>,
}

fn connection(client: TcpStream, server: TcpStream, seen: Seen) {
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
    thread::spawn(move || send(client, &receiver, &seen));
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

/// What is done with a reply.
enum Fate {
    Send(Vec<u8>, Duration),
    Drop,
    Close,
}

/// Sends what is due, whatever came first.
fn send(mut client: TcpStream, replies: &Receiver<(Instant, Vec<u8>)>, seen: &Seen) {
    let mut waiting = BinaryHeap::new();
    let (mut number, mut last, mut open) = (0, None, true);
    while open || !waiting.is_empty() {
        let due = waiting.peek().map(|Reverse((due, _, _))| *due);
        let timeout = due.map_or(FOREVER, |due: Instant| due.saturating_duration_since(Instant::now()));
        match replies.recv_timeout(timeout) {
            Ok((arrived, record)) => match seen.fate(record) {
                Fate::Send(record, by) => {
                    let due = seen.paced(&record, arrived + by, &mut last);
                    waiting.push(Reverse((due, number, record)));
                    number += 1;
                }
                Fate::Drop => {}
                Fate::Close => break,
            },
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                open = false;
                thread::sleep(
                    due.map_or(Duration::ZERO, |due| due.saturating_duration_since(Instant::now())),
                );
            }
        }
        while waiting.peek().is_some_and(|Reverse((due, _, _))| *due <= Instant::now()) {
            let Some(Reverse((_, _, record))) = waiting.pop() else { break };
            if client.write_all(&record).is_err() {
                return;
            }
        }
    }
    let _ = client.shutdown(std::net::Shutdown::Both);
}

impl Seen {
    fn fate(&self, mut record: Vec<u8>) -> Fate {
        let number = if record.len() > DATA { self.with_data.fetch_add(1, Ordering::SeqCst) + 1 } else { 0 };
        let write = if is_smb_write(&record) { self.writes.fetch_add(1, Ordering::SeqCst) + 1 } else { 0 };
        let mut late = Duration::ZERO;
        for lie in &self.lies {
            match lie {
                Lie::Late(by) if number > 0 => late += *by,
                Lie::SomeLate(every, by) if number > 0 && number % every == 0 => late += *by,
                Lie::WrongByte(every) if number > 0 && number % every == 0 => {
                    let at = record.len() - 9;
                    record[at] ^= 0x10;
                    self.told.fetch_add(1, Ordering::SeqCst);
                }
                Lie::Lost(which) if number == *which => {
                    self.told.fetch_add(1, Ordering::SeqCst);
                    return Fate::Drop;
                }
                Lie::Close(which) if number == *which => {
                    self.told.fetch_add(1, Ordering::SeqCst);
                    return Fate::Close;
                }
                Lie::Full(from) if write >= *from => {
                    self.told.fetch_add(1, Ordering::SeqCst);
                    record = disk_full(&record);
                }
                _ => {}
            }
        }
        Fate::Send(record, late)
    }

    /// When a reply is sent that could be sent at `due`, where they are sent at a pace. A pause of this machine's is made up for.
    fn paced(&self, record: &[u8], due: Instant, last: &mut Option<Instant>) -> Instant {
        let pace =
            self.lies.iter().find_map(|lie| if let Lie::Paced(pace) = lie { Some(*pace) } else { None });
        let Some(pace) = pace.filter(|_| record.len() > DATA) else { return due };
        let due = last.map_or(due, |last| due.max(last + pace));
        *last = Some(due);
        due
    }
}

/// [MS-SMB2] 2.2.1: the command WRITE (9) in the header of a frame with its prefix.
fn is_smb_write(record: &[u8]) -> bool {
    record.get(4..8) == Some(b"\xFESMB") && record.get(16..18) == Some(&[9, 0])
}

/// [MS-SMB2] 2.2.2: the same header with STATUS_DISK_FULL, and an ERROR response behind it.
fn disk_full(record: &[u8]) -> Vec<u8> {
    let mut error = [&record[..4 + 64], &[9, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    error[..4].copy_from_slice(&(64 + 9u32).to_be_bytes());
    error[12..16].copy_from_slice(&0xC000_007F_u32.to_le_bytes());
    error
}
