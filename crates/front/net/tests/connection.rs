//! The connection loop, through sockets. The protocol of these tests: a frame is a command byte and data.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::Cell;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use anabranch_net::{
    Answer, Buffer, ConnectionLimits, Limits, Listeners, Mailbox, Outbox, Peer, PostError, Prefix,
    PrefixError, Protocol, Service, Shards, Term,
};
use bytes::BytesMut;

const FRAME_MAX: usize = 1 << 20;
const PENDING_MAX: usize = 4;
const PENDING_BYTES_MAX: usize = 1 << 20;
/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Counters {
    closed: AtomicUsize,
    /// Replies that were completed.
    finished: AtomicUsize,
    /// The mailboxes of all connections, oldest first.
    mailboxes: Mutex<Vec<Mailbox>>,
    /// Whom the next command `h` tells which thread it holds up, and what ends that.
    hold_up: Mutex<Option<HoldUp>>,
}

type HoldUp = (mpsc::Sender<i32>, mpsc::Receiver<()>);

struct Echo {
    counters: Arc<Counters>,
    outbox: Outbox,
    welcome: Cell<bool>,
}

fn framed(data: &[u8]) -> Buffer {
    let mut reply = Buffer::from(data);
    reply.prepend(&u32::try_from(data.len()).unwrap().to_be_bytes());
    reply
}

impl Protocol for Echo {
    fn prefix(&self, prefix: [u8; 4]) -> Result<Prefix, PrefixError> {
        let word = u32::from_be_bytes(prefix);
        let length = (word & 0x7fff_ffff) as usize;
        if length > FRAME_MAX {
            return Err(PrefixError(format!("{length} bytes")));
        }
        Ok(Prefix { length, last: word >> 31 == 0 })
    }

    fn is_welcome(&self) -> bool {
        self.welcome.get()
    }

    fn answer(self: Rc<Self>, frame: BytesMut) -> Answer {
        self.welcome.set(frame.first() != Some(&b's'));
        match frame.first() {
            Some(b's') => Answer::Now(framed(&frame)),
            Some(b'e') => Answer::Now(framed(&frame)),
            Some(b'l') => Answer::Later(Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(100)).await;
                Some(framed(&frame))
            })),
            Some(b'c') => Answer::Certainly(Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(100)).await;
                self.counters.finished.fetch_add(1, Ordering::SeqCst);
                Some(framed(&frame))
            })),
            Some(b'r') => Answer::Later(Box::pin(async move { Some(framed(&frame)) })),
            Some(b'f') => Answer::Later(Box::pin(std::future::pending())),
            Some(b'n') => Answer::Nothing,
            Some(b'h') => {
                let (tell, over) = self.counters.hold_up.lock().unwrap().take().unwrap();
                tell.send(own_thread()).unwrap();
                let _ = over.recv();
                Answer::Nothing
            }
            Some(b'2') => {
                self.outbox.send(framed(b"first"));
                Answer::Now(framed(b"second"))
            }
            Some(b'y') => Answer::Later(Box::pin(async {
                tokio::time::sleep(Duration::from_millis(10)).await;
                panic!("a fault of the program while it waits, as this test wants it")
            })),
            Some(b'x') => panic!("a fault of the program, as this test wants it"),
            Some(b'q') => {
                self.outbox.close();
                Answer::Now(framed(b"bye"))
            }
            _ => Answer::Close("what is this?".to_owned()),
        }
    }

    fn closed(self: Rc<Self>) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(async move {
            self.counters.closed.fetch_add(1, Ordering::SeqCst);
        })
    }
}

struct EchoService(Arc<Counters>, usize, Duration);

impl Service for EchoService {
    type Connection = Echo;

    fn connected(&self, _: Peer, outbox: Outbox) -> Rc<Echo> {
        self.0.mailboxes.lock().unwrap().push(outbox.mailbox());
        Rc::new(Echo { counters: Arc::clone(&self.0), outbox, welcome: Cell::new(false) })
    }

    fn limits(&self) -> Limits {
        Limits {
            frame_bytes: FRAME_MAX,
            pending_frames: PENDING_MAX,
            pending_frame_bytes: PENDING_BYTES_MAX,
            greeting: self.2,
            ..Limits::default()
        }
    }

    fn connections(&self) -> ConnectionLimits {
        ConnectionLimits { max: self.1, of_one_address: None }
    }

    fn name(&self) -> &'static str {
        "test"
    }
}

struct Fixture {
    shards: Shards,
    address: SocketAddr,
    counters: Arc<Counters>,
}

fn start(connections_max: usize) -> Fixture {
    start_with(connections_max, PATIENCE)
}

fn start_with(connections_max: usize, greeting: Duration) -> Fixture {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let counters = Arc::new(Counters::default());
    let shards = Shards::start(2).unwrap();
    let service = EchoService(Arc::clone(&counters), connections_max, greeting);
    shards.listen(listener, Arc::new(service)).unwrap();
    Fixture { shards, address, counters }
}

impl Fixture {
    fn connect(&self) -> TcpStream {
        connect(self.address)
    }

    /// Two clients that are served, by one shard each.
    fn served(&self) -> [TcpStream; 2] {
        let mut clients = [self.connect(), self.connect()];
        for client in &mut clients {
            send(client, b"e");
            assert_eq!(receive(client), b"e");
        }
        clients
    }

    fn closed(&self) -> usize {
        self.counters.closed.load(Ordering::SeqCst)
    }

    fn wait_closed(&self, count: usize) {
        for _ in 0..500 {
            if self.closed() == count {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("{} connections were closed, not {count}", self.closed());
    }
}

fn send(stream: &mut TcpStream, data: &[u8]) {
    stream.write_all(&framed(data)).unwrap();
}

fn receive(stream: &mut TcpStream) -> Vec<u8> {
    let mut prefix = [0; 4];
    stream.read_exact(&mut prefix).unwrap();
    let mut data = vec![0; u32::from_be_bytes(prefix) as usize];
    stream.read_exact(&mut data).unwrap();
    data
}

fn is_ended(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 16]) {
        Ok(count) => count == 0,
        Err(e) => e.kind() != ErrorKind::WouldBlock, // the read timeout
    }
}

#[test]
fn answers_in_order_and_whole() {
    let server = start(10);
    let mut client = server.connect();
    let frames: Vec<Vec<u8>> = (0..300_u32).map(|n| [b"e", &n.to_be_bytes()[..]].concat()).collect();
    let bytes: Vec<u8> = frames.iter().flat_map(|f| framed(f).to_vec()).collect();
    client.write_all(&bytes).unwrap();
    for frame in &frames {
        assert_eq!(&receive(&mut client), frame);
    }
    let large = [b"e", &vec![7; FRAME_MAX - 1][..]].concat();
    send(&mut client, &large);
    assert_eq!(receive(&mut client), large);
    send(&mut client, b"2");
    assert_eq!(receive(&mut client), b"first");
    assert_eq!(receive(&mut client), b"second");
}

#[test]
fn bytes_may_come_one_by_one_and_in_fragments() {
    let server = start(10);
    let mut client = server.connect();
    client.set_nodelay(true).unwrap();
    for byte in framed(b"e1").iter() {
        client.write_all(&[*byte]).unwrap();
    }
    assert_eq!(receive(&mut client), b"e1");
    for (part, last) in [(&b"e"[..], false), (b"fragment", false), (b"", false), (b"ed", true)] {
        let more = if last { 0 } else { 1 << 31 };
        client.write_all(&(u32::try_from(part.len()).unwrap() | more).to_be_bytes()).unwrap();
        client.write_all(part).unwrap();
    }
    assert_eq!(receive(&mut client), b"efragmented");
}

#[test]
fn what_waits_does_not_hold_up_what_follows() {
    let server = start(10);
    let mut client = server.connect();
    for frame in [&b"l1"[..], b"e2", b"n3", b"r4"] {
        send(&mut client, frame);
    }
    assert_eq!(receive(&mut client), b"e2");
    assert_eq!(receive(&mut client), b"r4", "what is ready at its first poll is answered at once");
    assert_eq!(receive(&mut client), b"l1");
}

#[test]
fn what_must_be_finished_is_finished_without_its_connection() {
    let server = start(10);
    let mut client = server.connect();
    send(&mut client, b"c1");
    send(&mut client, b"e2");
    assert_eq!(receive(&mut client), b"e2");
    assert_eq!(receive(&mut client), b"c1");
    send(&mut client, b"c3");
    send(&mut client, b"e4");
    assert_eq!(receive(&mut client), b"e4");
    drop(client);
    server.wait_closed(1);
    assert_eq!(server.counters.finished.load(Ordering::SeqCst), 1, "the connection does not wait for it");
    let counters = Arc::clone(&server.counters);
    server.shards.shutdown();
    assert_eq!(counters.finished.load(Ordering::SeqCst), 2, "the shard does");
}

#[test]
fn nothing_is_read_while_too_much_waits() {
    let server = start(10);
    let mut client = server.connect();
    for _ in 0..PENDING_MAX {
        send(&mut client, b"l");
    }
    send(&mut client, b"e");
    assert_eq!(receive(&mut client), b"l", "only then is there room for the last frame");
    let mut others: Vec<_> = (0..PENDING_MAX).map(|_| receive(&mut client)).collect();
    others.sort_unstable();
    assert_eq!(others.iter().filter(|other| *other == b"l").count(), PENDING_MAX - 1);
    assert_eq!(others.first().unwrap(), b"e");
}

#[test]
fn nothing_is_read_while_too_many_bytes_wait() {
    let server = start(10);
    let mut client = server.connect();
    let large = [b"l", &vec![7; PENDING_BYTES_MAX - 1][..]].concat();
    send(&mut client, &large);
    send(&mut client, b"e");
    assert_eq!(receive(&mut client), large);
    assert_eq!(receive(&mut client), b"e", "read once there was room again");
}

#[test]
fn who_does_not_say_who_he_is_has_to_go() {
    let server = start_with(10, Duration::from_secs(5));
    let mut silent = server.connect();
    let mut stranger = server.connect();
    let mut friend = server.connect();
    send(&mut stranger, b"s");
    assert_eq!(receive(&mut stranger), b"s");
    send(&mut friend, b"e");
    assert_eq!(receive(&mut friend), b"e");
    assert!(is_ended(&mut silent) && is_ended(&mut stranger));
    server.wait_closed(2);
    send(&mut friend, b"e");
    assert_eq!(receive(&mut friend), b"e");
    send(&mut friend, b"s");
    assert_eq!(receive(&mut friend), b"s");
    assert!(is_ended(&mut friend), "it has logged off");
}

#[test]
fn lies_end_their_own_connection_only() {
    let server = start(10);
    let mut bystander = server.connect();
    let lies: [&[u8]; 4] =
        [&[0x7f, 0xff, 0xff, 0xff], &[0, 0x10, 0, 1], &[0, 0, 0, 1, b'?'], &[0x80, 0x10, 0, 0]];
    for (count, lie) in lies.iter().enumerate() {
        let mut client = server.connect();
        client.write_all(lie).unwrap();
        if count == 3 {
            // Fragments that together exceed the limit.
            client.write_all(&vec![0; 1 << 20]).unwrap();
            client.write_all(&[0, 0, 0, 1]).unwrap();
        }
        assert!(is_ended(&mut client), "lie {count}");
        server.wait_closed(count + 1);
    }
    send(&mut bystander, b"e");
    assert_eq!(receive(&mut bystander), b"e");
}

#[test]
fn a_fault_ends_its_own_connection_only() {
    let server = start(10);
    let mut bystanders: Vec<_> = (0..4).map(|_| server.connect()).collect();
    for (count, fault) in [b"x", b"y"].into_iter().enumerate() {
        let mut client = server.connect();
        send(&mut client, fault);
        assert!(is_ended(&mut client), "its answer will never come");
        server.wait_closed(count + 1);
    }
    for bystander in &mut bystanders {
        send(bystander, b"e");
        assert_eq!(receive(bystander), b"e");
    }
}

#[test]
fn the_protocol_may_close_after_its_answer() {
    let server = start(10);
    let mut client = server.connect();
    send(&mut client, b"q");
    assert_eq!(receive(&mut client), b"bye");
    assert!(is_ended(&mut client));
    server.wait_closed(1);
}

#[test]
fn a_mailbox_reaches_its_connection_from_any_thread() {
    let server = start(10);
    let mut clients: Vec<_> = (0..4).map(|_| server.connect()).collect();
    for client in &mut clients {
        send(client, b"e");
        assert_eq!(receive(client), b"e");
    }
    let mailboxes = server.counters.mailboxes.lock().unwrap().clone();
    for (number, mailbox) in (0_u8..).zip(&mailboxes) {
        (0..3_u8).for_each(|turn| mailbox.post(framed(&[number, turn])).unwrap());
    }
    let mut reached: Vec<u8> = clients
        .iter_mut()
        .map(|client| {
            let first = receive(client);
            assert_eq!((receive(client), receive(client)), (vec![first[0], 1], vec![first[0], 2]));
            first[0]
        })
        .collect();
    reached.sort_unstable();
    assert_eq!(reached, [0, 1, 2, 3], "each its own, although they were idle");
    mailboxes[0].post(framed(b"bye")).unwrap();
    mailboxes[0].close();
    server.wait_closed(1);
    assert_eq!(mailboxes[0].post(framed(b"late")), Err(PostError::Gone));
    assert!(mailboxes[0].is_gone() && !mailboxes[1].is_gone());
    let last = clients.iter_mut().filter_map(|client| {
        client.set_nonblocking(true).unwrap();
        let mut bytes = [0; 16];
        client.read(&mut bytes).ok().filter(|count| *count > 0).map(|count| bytes[..count].to_vec())
    });
    assert_eq!(last.collect::<Vec<_>>(), [b"\0\0\0\x03bye"], "sent before the end");
}

#[test]
fn connections_are_limited() {
    let server = start(2);
    let mut held: Vec<_> = (0..2).map(|_| server.connect()).collect();
    for client in &mut held {
        send(client, b"e");
        receive(client);
    }
    assert!(is_ended(&mut server.connect()));
    drop(held.pop());
    server.wait_closed(1);
    // The place becomes free a moment after the clean-up.
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let mut again = server.connect();
        if again.write_all(&framed(b"e")).is_ok() && again.read_exact(&mut [0; 5]).is_ok() {
            break;
        }
        assert!(Instant::now() < deadline, "its place is not free");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn shutdown_cleans_up_every_connection() {
    let server = start(10);
    let mut clients: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for client in &mut clients {
        send(client, b"f");
        send(client, b"e");
        assert_eq!(receive(client), b"e");
    }
    server.shards.shutdown();
    assert_eq!(server.counters.closed.load(Ordering::SeqCst), 3);
    assert!(clients.iter_mut().all(is_ended));
}

/// A service of its own on these shards, with an address of its own.
fn beside(shards: &Shards, connections_max: usize) -> (Listeners, SocketAddr, Arc<Counters>) {
    let listeners = shards.listeners();
    let (address, counters) = listen(&listeners, connections_max);
    (listeners, address, counters)
}

fn listen(listeners: &Listeners, connections_max: usize) -> (SocketAddr, Arc<Counters>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, counters) = (listener.local_addr().unwrap(), Arc::<Counters>::default());
    let service = EchoService(Arc::clone(&counters), connections_max, PATIENCE);
    listeners.listen_at_all([listener], Arc::new(service)).unwrap();
    (address, counters)
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[test]
fn listeners_end_with_their_connections_and_others_go_on() {
    let server = start(10);
    let (listeners, address, counters) = beside(&server.shards, 10);
    let mut others = server.served();
    let mut clients: Vec<_> = (0..3).map(|_| connect(address)).collect();
    for client in &mut clients {
        send(client, b"e");
        assert_eq!(receive(client), b"e");
    }
    assert!(listeners.end(PATIENCE));
    assert_eq!(counters.closed.load(Ordering::SeqCst), 3, "each has cleaned up");
    assert!(clients.iter_mut().all(is_ended));
    assert!(TcpStream::connect(address).is_err(), "nobody listens any more");
    for other in &mut others {
        send(other, b"e");
        assert_eq!(receive(other), b"e");
    }
    // The address is free for whoever comes next.
    drop(TcpListener::bind(address).unwrap());
    let (again, address, _) = beside(&server.shards, 10);
    let mut client = connect(address);
    send(&mut client, b"e");
    assert_eq!(receive(&mut client), b"e");
    drop(again);
    assert!(is_ended(&mut client));
}

#[test]
fn nothing_is_sent_when_the_term_is_over() {
    let server = start(10);
    let term = Term::until(Instant::now() + 60 * PATIENCE);
    let listeners = server.shards.new_listeners().make(term.clone());
    let (address, _) = listen(&listeners, 10);
    let mut before = connect(address);
    send(&mut before, b"e");
    assert_eq!(receive(&mut before), b"e");
    term.end();
    for mut client in [before, connect(address)] {
        send(&mut client, b"e");
        assert!(is_ended(&mut client), "it was answered");
    }
    assert!(listeners.end(PATIENCE));
    for mut other in server.served() {
        send(&mut other, b"e");
        assert_eq!(receive(&mut other), b"e");
    }
}

#[test]
fn the_end_of_listeners_waits_for_changes_under_way() {
    let server = start(10);
    let (listeners, address, counters) = beside(&server.shards, 10);
    let mut client = connect(address);
    send(&mut client, b"c");
    send(&mut client, b"e");
    assert_eq!(receive(&mut client), b"e", "the change has begun, and is not done");
    assert!(listeners.end(PATIENCE));
    assert_eq!(counters.finished.load(Ordering::SeqCst), 1);
}

#[test]
fn services_of_one_name_share_their_places() {
    let server = start(2);
    let (_listeners, address, _) = beside(&server.shards, 2);
    let _both = server.served();
    assert!(is_ended(&mut connect(address)));
    let [echo] = server.shards.occupancy().now()[..] else { panic!("one name is one row") };
    assert_eq!((echo.connections, echo.max), (2, 2));
}

/// The kernel's id of this thread.
fn own_thread() -> i32 {
    let link = std::fs::read_link("/proc/thread-self").unwrap();
    link.file_name().unwrap().to_str().unwrap().parse().unwrap()
}

#[test]
fn a_shard_that_is_held_up_is_given_up() {
    let fixture = start(20);
    let clients = fixture.served();
    let (release, over) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    let once = Mutex::new(Some((over, tell)));
    let hold_up = move || {
        let first = once.lock().unwrap().take();
        async move {
            if let Some((over, tell)) = first {
                tell.send(own_thread()).unwrap();
                let _ = over.recv();
            }
        }
    };
    fixture.shards.spawn(hold_up).unwrap();
    let held_up = told.recv().unwrap();

    let mut keeper = fixture.shards.keeper();
    let later = Instant::now() + Duration::from_secs(30);
    let sleeps = |thread: i32| (thread == held_up).then_some(7);
    assert!(keeper.look(Instant::now(), |_| None).is_empty());
    assert!(keeper.look(later, sleeps).is_empty(), "it may have been asleep for a moment only");
    assert!(keeper.look(later, |thread| sleeps(thread).map(|_| 8)).is_empty(), "it was awake in between");
    assert_eq!(keeper.look(later, |thread| sleeps(thread).map(|_| 8)), [0]);

    let [mut lost, mut kept] = clients;
    assert_eq!(lost.read(&mut [0]).unwrap(), 0, "its client is told to come again");
    send(&mut kept, b"e");
    assert_eq!(receive(&mut kept), b"e");
    for _ in 0..4 {
        let mut client = fixture.connect();
        send(&mut client, b"e");
        assert_eq!(receive(&mut client), b"e");
    }
    drop(release);
    fixture.wait_closed(5);
}

#[test]
fn connections_that_a_held_up_shard_has_not_taken_up_are_ended_with_it() {
    let fixture = start(20);
    let mut clients = fixture.served();
    let (release, over) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    *fixture.counters.hold_up.lock().unwrap() = Some((tell, over));
    // The second is on the second shard; the first one accepts.
    send(&mut clients[1], b"h");
    let held_up = told.recv().unwrap();
    let [mut served, mut dealt] = [fixture.connect(), fixture.connect()];
    for client in [&mut served, &mut dealt] {
        send(client, b"e");
    }
    assert_eq!(receive(&mut served), b"e");
    // Connections are accepted in order: once this one is served, the one before it was dealt.
    let mut next = fixture.connect();
    send(&mut next, b"e");
    assert_eq!(receive(&mut next), b"e");

    let mut keeper = fixture.shards.keeper();
    let later = Instant::now() + Duration::from_secs(30);
    let sleeps = |thread: i32| (thread == held_up).then_some(7);
    assert!(keeper.look(later, sleeps).is_empty());
    assert_eq!(keeper.look(later, sleeps), [1]);
    assert!(is_ended(&mut dealt), "its client is told to come again");
    assert!(is_ended(&mut clients[1]));
    let _again = fixture.served();
    drop(release);
    fixture.wait_closed(1);
}
