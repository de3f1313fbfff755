//! Clients that have not identified themselves: how much they may hold, and which of them give way. The protocol of
//! these tests: a frame is a command byte and data.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anabranch_net::{
    Answer, Buffer, ConnectionLimits, Limits, Outbox, Peer, Prefix, PrefixError, Protocol, Service, Shards,
};
use bytes::BytesMut;
use socket2::{Domain, Socket, Type};

const FRAME_MAX: usize = 1 << 20;
const SILENCE: Duration = Duration::from_secs(2);
/// No wait in these tests takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Guest {
    known: Cell<bool>,
    may_be_silent: Cell<bool>,
    held: Cell<usize>,
}

fn framed(data: &[u8]) -> Buffer {
    let mut reply = Buffer::from(data);
    reply.prepend(&u32::try_from(data.len()).unwrap().to_be_bytes());
    reply
}

impl Protocol for Guest {
    fn prefix(&self, prefix: [u8; 4]) -> Result<Prefix, PrefixError> {
        let word = u32::from_be_bytes(prefix);
        Ok(Prefix { length: (word & 0x7fff_ffff) as usize, last: word >> 31 == 0 })
    }

    fn is_known(&self) -> bool {
        self.known.get()
    }

    fn is_welcome(&self) -> bool {
        true
    }

    fn held_bytes(&self) -> usize {
        self.held.get()
    }

    fn may_be_silent(&self) -> bool {
        self.may_be_silent.get()
    }

    fn answer(self: Rc<Self>, frame: BytesMut) -> Answer {
        match frame.first() {
            Some(b'k') => self.known.set(true),
            Some(b's') => self.known.set(false),
            Some(b'q') => self.may_be_silent.set(true),
            Some(b'h') => self.held.set(self.held.get() + FRAME_MAX),
            Some(b'w') => {
                return Answer::Later(Box::pin(async {
                    tokio::time::sleep(3 * SILENCE).await;
                    Some(framed(b"done"))
                }));
            }
            _ => {}
        }
        Answer::Now(framed(&frame[..frame.len().min(1)]))
    }

    fn closed(self: Rc<Self>) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(std::future::ready(()))
    }
}

struct Guests {
    connections: ConnectionLimits,
    silence: Duration,
}

impl Service for Guests {
    type Connection = Guest;

    fn connected(&self, _: Peer, _: Outbox) -> Rc<Guest> {
        Rc::default()
    }

    fn limits(&self) -> Limits {
        Limits { frame_bytes: FRAME_MAX, fragments: 8, silence: self.silence, ..Limits::default() }
    }

    fn connections(&self) -> ConnectionLimits {
        self.connections
    }

    fn name(&self) -> &'static str {
        "test"
    }
}

struct Server {
    shards: Shards,
    address: SocketAddr,
}

fn start(max: usize, silence: Duration) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let shards = Shards::start(2).unwrap();
    let connections = ConnectionLimits { max, of_one_address: None };
    shards.listen(listener, Arc::new(Guests { connections, silence })).unwrap();
    Server { shards, address }
}

impl Server {
    /// A connection from 127.0.0.`from`.
    fn connect(&self, from: u8) -> TcpStream {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, from], 0)).into()).unwrap();
        socket.connect(&self.address.into()).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }
}

fn ask(stream: &mut TcpStream, data: &[u8]) {
    stream.write_all(&framed(data)).unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!((&answer[..4], answer[4]), (&[0, 0, 0, 1][..], data[0]));
}

fn is_ended(stream: &mut TcpStream) -> bool {
    matches!(stream.read(&mut [0; 16]), Ok(0) | Err(_))
}

#[test]
fn the_oldest_stranger_gives_way_and_an_address_has_its_part() {
    let server = start(8, PATIENCE);
    let mut early: Vec<_> = (0..6).map(|_| server.connect(2)).collect();
    early.iter_mut().for_each(|client| ask(client, b"e"));
    ask(&mut early[0], b"k");
    assert!(is_ended(&mut server.connect(2)), "three quarters are taken by this address");
    assert_eq!(server.shards.refused_connections().load(Ordering::Relaxed), 1);
    let mut others = [server.connect(3), server.connect(3)];
    others.iter_mut().for_each(|client| ask(client, b"e"));
    assert!(is_ended(&mut early[1]), "the oldest stranger");
    for client in early.iter_mut().skip(2).chain(&mut others) {
        ask(client, b"k");
    }
    ask(&mut early[0], b"e");
    // Seven clients are known. A stranger has the last place until the next one comes.
    let mut stranger = server.connect(4);
    ask(&mut stranger, b"e");
    let mut newcomer = server.connect(5);
    ask(&mut newcomer, b"k");
    assert!(is_ended(&mut stranger));
    assert!(is_ended(&mut server.connect(6)), "nobody gives way");
    ask(&mut newcomer, b"s");
    ask(&mut server.connect(6), b"k");
    assert!(is_ended(&mut newcomer), "it was a stranger again");
}

#[test]
fn what_the_protocol_keeps_counts_and_nothing_is_answered_without_room_for_it() {
    let server = start(100, PATIENCE);
    // The address may hold 4 MiB.
    let holders: Vec<_> = (0..4).map(|_| server.connect(2)).collect();
    let (sender, ended) = std::sync::mpsc::channel();
    for mut holder in holders {
        ask(&mut holder, b"h");
        ask(&mut holder, b"e");
        let sender = sender.clone();
        std::thread::spawn(move || {
            let _ = sender.send(is_ended(&mut holder));
        });
    }
    let mut late = server.connect(2);
    ask(&mut late, b"h");
    late.write_all(&framed(b"e")).unwrap();
    ask(&mut server.connect(3), b"e");
    assert!(ended.recv_timeout(PATIENCE).unwrap(), "one of them has to go");
    late.read_exact(&mut [0; 5]).unwrap();
}

#[test]
fn who_is_silent_has_to_go_unless_there_is_a_reason() {
    let server = start(100, SILENCE);
    let mut waiting = server.connect(1);
    waiting.write_all(&framed(b"w")).unwrap();
    let mut stateful = server.connect(1);
    ask(&mut stateful, b"q");
    let mut silent = [server.connect(1), server.connect(1)];
    ask(&mut silent[0], b"k");
    silent[1].write_all(&[0, 0, 1]).unwrap();
    assert!(silent.iter_mut().all(is_ended));
    let mut answer = [0; 8];
    waiting.read_exact(&mut answer).unwrap();
    assert_eq!(&answer[4..], b"done", "a request under way is no silence");
    ask(&mut stateful, b"e");
}

#[test]
fn fragments_are_bounded_also_empty_ones() {
    let server = start(100, PATIENCE);
    const EMPTY: [u8; 4] = [0x80, 0, 0, 0];
    let mut client = server.connect(1);
    client.write_all(&EMPTY.repeat(7)).unwrap();
    ask(&mut client, b"e");
    client.write_all(&EMPTY.repeat(7)).unwrap();
    ask(&mut client, b"e");
    client.write_all(&EMPTY.repeat(9)).unwrap();
    assert!(is_ended(&mut client));
}

/// Sends the beginning of a frame of this length, and this much of it.
fn begin(stream: &mut TcpStream, length: usize, part: usize) {
    stream.write_all(&u32::try_from(length).unwrap().to_be_bytes()).unwrap();
    stream.write_all(&vec![b'k'; part]).unwrap();
}

#[test]
fn halves_of_frames_use_up_what_their_address_may_hold_and_no_more() {
    let server = start(100, PATIENCE);
    let mut known = server.connect(2);
    ask(&mut known, b"k");
    begin(&mut known, FRAME_MAX, 100_000);
    let mut hostile: Vec<_> = (0..6).map(|_| server.connect(2)).collect();
    for client in &mut hostile {
        begin(client, FRAME_MAX, 100_000);
    }
    let mut other = server.connect(3);
    ask(&mut other, &[b'k'; FRAME_MAX]);
    let mut small = server.connect(2);
    ask(&mut small, b"e");
    let (sender, ended) = std::sync::mpsc::channel();
    for mut client in hostile {
        let sender = sender.clone();
        std::thread::spawn(move || {
            let _ = sender.send(is_ended(&mut client));
        });
    }
    assert!(ended.recv_timeout(PATIENCE).unwrap(), "the largest holder has to go");
    known.write_all(&vec![b'k'; FRAME_MAX - 100_000]).unwrap();
    known.read_exact(&mut [0; 5]).unwrap();
    ask(&mut other, b"e");
}

/// Like a client with many connections that begins with large writes on all of them.
#[test]
fn many_whole_frames_at_the_same_time_are_all_received() {
    let server = start(100, PATIENCE);
    let clients: Vec<_> = (0..16).map(|_| server.connect(2)).collect();
    let asking: Vec<_> = clients
        .into_iter()
        .map(|mut client| std::thread::spawn(move || ask(&mut client, &[b'k'; FRAME_MAX])))
        .collect();
    asking.into_iter().for_each(|asking| asking.join().unwrap());
}

/// Like a client of NFS whose server has started again: on each of its connections, large writes wait to be sent, and all of them are
/// refused until it has a session again. Its kernel sends them in pieces, a piece of each connection in turn.
#[test]
fn who_sends_large_frames_without_end_on_several_connections_is_answered_on_each() {
    const PIECE: usize = 64 << 10;
    const FRAMES: usize = 6;
    let server = start(100, PATIENCE);
    let frame = framed(&[b'e'; FRAME_MAX]).to_vec();
    let mut clients: Vec<_> = (0..6).map(|_| server.connect(2)).collect();
    let answered: Vec<_> = clients
        .iter()
        .map(|client| {
            let mut client = client.try_clone().unwrap();
            std::thread::spawn(move || client.read_exact(&mut [0; 5 * FRAMES]))
        })
        .collect();
    let begun: Vec<_> = clients
        .drain(..)
        .map(|mut client| {
            let frame = frame.clone();
            std::thread::spawn(move || {
                for _ in 0..FRAMES {
                    for piece in frame.chunks(PIECE) {
                        client.write_all(piece)?;
                        // Slowly, as over a link that the connections share.
                        std::thread::sleep(Duration::from_millis(20));
                    }
                }
                std::io::Result::Ok(())
            })
        })
        .collect();
    begun.into_iter().for_each(|begun| begun.join().unwrap().unwrap());
    answered.into_iter().for_each(|answered| answered.join().unwrap().unwrap());
}
