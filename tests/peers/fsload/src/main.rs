//! fsload: many outstanding file operations against an SMB 3.1.1, NFSv3 or NFSv4.1 server
//! over one or several TCP connections, with the server's CPU time next to the result.
mod nfs;
mod smb;

use std::collections::VecDeque;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Barrier, OnceLock};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Work {
    Read,
    Write,
    Meta,
    Open,
    Echo,
}

#[derive(Clone)]
pub struct Opt {
    pub proto: String,
    pub server: String,
    pub port: u16,
    pub mount_port: u16,
    pub share: String,
    pub user: String,
    pub pass: String,
    pub work: Work,
    pub random: bool,
    pub bs: usize,
    pub qd: usize,
    pub conns: usize,
    pub threads: usize,
    pub size: u64,
    pub secs: f64,
    pub ramp: f64,
    pub think: f64,
    pub sign: bool,
    pub signing: u16, // 1 CMAC, 2 GMAC, 0 whichever the server picks
    pub encrypt: bool,
    pub cipher: u16, // 2 AES-128-GCM, 4 AES-256-GCM
    pub multichannel: bool,
    pub whole: bool,
    pub stable: u32,
    pub file: String,
    /// Where the names of op=open are; empty: at the top.
    pub within: String,
    pub pid: Option<i32>,
    pub label: String,
    pub tsv: bool,
}

const HELP: &str = "fsload PROTO [key=value ...]      PROTO: smb nfs3 nfs41, or crypto (what signing and sealing cost, no server)
  server=127.0.0.1 port=445|2049 mount_port=port+1 share=bench (SMB share, or exported path)
  user=bench pass=bench-pass  sign=0 signing=auto|cmac|gmac encrypt=0 cipher=128|256
  multichannel=0 (1: the connections are channels of one session; 0: a session each)
  op=randread|randwrite|read|write|meta|open|echo  bs=4k qd=64 (in all) conns=1 threads=1
  size=256M file=fsload.dat secs=10 ramp=1 stable=0 (NFS: 0 UNSTABLE 2 FILE_SYNC)
  think=0 (ms of rest after each operation)
  op=open: one of names=N files \"File 0000000.txt\" in the directory within=NAME; over SMB open, in capitals, and close, over NFSv3 lookup
  whole=0 (1: the data read is received and its signature checked; 0: the kernel drops it where it can)
  pid=SERVER (its CPU time, children included)  label=TEXT tsv=0";

fn number(s: &str) -> u64 {
    let (digits, unit) = s.split_at(s.trim_end_matches(|c: char| c.is_alphabetic()).len());
    let n: u64 = digits.parse().unwrap_or_else(|_| fail(&format!("not a number: {s}")));
    n << match unit.to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => fail(&format!("not a size: {s}")),
    }
}

pub fn fail(why: &str) -> ! {
    eprintln!("fsload: {why}");
    std::process::exit(1)
}

fn options() -> Opt {
    let mut args = std::env::args().skip(1);
    let proto = args.next().unwrap_or_default();
    if !["smb", "nfs3", "nfs41", "crypto"].contains(&proto.as_str()) {
        eprintln!("{HELP}");
        std::process::exit(2);
    }
    let smb = proto == "smb";
    let mut o = Opt {
        proto,
        server: "127.0.0.1".into(),
        port: if smb { 445 } else { 2049 },
        mount_port: 0,
        share: "bench".into(),
        user: "bench".into(),
        pass: "bench-pass".into(),
        work: Work::Read,
        random: true,
        bs: 4096,
        qd: 64,
        conns: 1,
        threads: 1,
        size: 256 << 20,
        secs: 10.0,
        ramp: 1.0,
        think: 0.0,
        sign: false,
        signing: 0,
        encrypt: false,
        cipher: 2,
        multichannel: false,
        whole: false,
        stable: 0,
        file: "fsload.dat".into(),
        within: String::new(),
        pid: None,
        label: String::new(),
        tsv: false,
    };
    let mut names = 1;
    for a in args {
        let (k, v) = a.split_once('=').unwrap_or((&a, "1"));
        match k {
            "server" => o.server = v.into(),
            "port" => o.port = number(v) as u16,
            "mount_port" => o.mount_port = number(v) as u16,
            "share" => o.share = v.into(),
            "user" => o.user = v.into(),
            "pass" => o.pass = v.into(),
            "file" => o.file = v.into(),
            "within" => o.within = v.into(),
            "names" => names = number(v),
            "label" => o.label = v.into(),
            "op" => {
                (o.work, o.random) = match v {
                    "randread" => (Work::Read, true),
                    "randwrite" => (Work::Write, true),
                    "read" => (Work::Read, false),
                    "write" => (Work::Write, false),
                    "meta" => (Work::Meta, false),
                    "open" => (Work::Open, true),
                    "echo" => (Work::Echo, false),
                    _ => fail(&format!("op={v}?")),
                }
            }
            "bs" => o.bs = number(v) as usize,
            "qd" => o.qd = number(v) as usize,
            "conns" => o.conns = number(v) as usize,
            "threads" => o.threads = number(v) as usize,
            "size" => o.size = number(v),
            "secs" => o.secs = v.parse().unwrap_or(10.0),
            "ramp" => o.ramp = v.parse().unwrap_or(1.0),
            "think" => o.think = v.parse().unwrap_or(0.0) / 1000.0,
            "sign" => o.sign = v == "1",
            "signing" => o.signing = ["auto", "cmac", "gmac"].iter().position(|x| *x == v).unwrap_or(0) as u16,
            "encrypt" => o.encrypt = v == "1",
            "cipher" => o.cipher = if v == "256" { 4 } else { 2 },
            "multichannel" => o.multichannel = v == "1",
            "whole" => o.whole = v == "1",
            "stable" => o.stable = number(v) as u32,
            "pid" => o.pid = v.parse().ok(),
            "tsv" => o.tsv = v == "1",
            _ => fail(&format!("{k}?\n{HELP}")),
        }
    }
    if o.mount_port == 0 {
        o.mount_port = o.port + 1;
    }
    if o.work == Work::Open {
        (o.size, o.bs) = (names, 1);
    }
    o.threads = o.threads.clamp(1, o.conns);
    o
}

/// The data every write sends.
pub fn payload() -> &'static [u8] {
    static P: OnceLock<Vec<u8>> = OnceLock::new();
    P.get_or_init(|| {
        let mut x = 0x9E3779B97F4A7C15u64;
        (0..9 << 17).flat_map(|_| rng(&mut x).to_le_bytes()).collect()
    })
}

pub fn rng(x: &mut u64) -> u64 {
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    *x
}

/// Where the next block of a connection lies.
pub struct Cursor {
    random: bool,
    bs: u64,
    base: u64,
    blocks: u64,
    at: u64,
    seed: u64,
}

impl Cursor {
    pub fn new(o: &Opt, conn: usize) -> Cursor {
        let all = (o.size / o.bs as u64).max(o.conns as u64);
        let mine = all / o.conns as u64;
        let (base, blocks) = if o.random { (0, all) } else { (mine * conn as u64, mine) };
        Cursor { random: o.random, bs: o.bs as u64, base, blocks, at: 0, seed: 0x2545F4914F6CDD1D ^ ((conn as u64 + 1) << 20) }
    }
    pub fn next(&mut self) -> u64 {
        let block = if self.random { rng(&mut self.seed) % self.blocks } else { self.at % self.blocks };
        self.at += 1;
        (self.base + block) * self.bs
    }
}

enum Seg {
    Own(Vec<u8>, usize),
    Pay(usize, usize),
    Frame(Vec<u8>, usize),
}

/// Bytes waiting to be sent; payload() is referred to, not copied.
#[derive(Default)]
pub struct Out {
    segs: VecDeque<Seg>,
    sent: Vec<Vec<u8>>, // frames that may be used again
}

impl Out {
    pub fn put(&mut self, bytes: &[u8]) {
        if let Some(Seg::Own(v, _)) = self.segs.back_mut() {
            if v.len() < 32 << 10 {
                v.extend_from_slice(bytes);
                return;
            }
        }
        let mut v = Vec::with_capacity(bytes.len().max(16 << 10));
        v.extend_from_slice(bytes);
        self.segs.push_back(Seg::Own(v, 0));
    }
    pub fn put_payload(&mut self, len: usize) {
        self.segs.push_back(Seg::Pay(0, len));
    }
    /// Memory for a frame with data in it that has to be signed or sealed in place: `room` bytes, then data. What was
    /// sent before is used again as it is, so that no time goes into copying and new memory.
    pub fn frame(&mut self, room: usize, data: usize) -> Vec<u8> {
        self.sent.pop().filter(|f| f.len() == room + data).unwrap_or_else(|| {
            let mut frame = vec![0; room];
            frame.extend_from_slice(&payload()[..data]);
            frame
        })
    }
    /// Sends a frame from its byte `at` on.
    pub fn put_frame(&mut self, frame: Vec<u8>, at: usize) {
        self.segs.push_back(Seg::Frame(frame, at));
    }
    fn flush(&mut self, fd: RawFd) {
        while !self.segs.is_empty() {
            let iov: Vec<libc::iovec> = self
                .segs
                .iter()
                .take(64)
                .map(|s| match s {
                    Seg::Own(v, at) | Seg::Frame(v, at) => libc::iovec { iov_base: v[*at..].as_ptr() as *mut _, iov_len: v.len() - at },
                    Seg::Pay(at, end) => libc::iovec { iov_base: payload()[*at..].as_ptr() as *mut _, iov_len: end - at },
                })
                .collect();
            // SAFETY: every iovec points into memory that outlives the call.
            let n = unsafe {
                let mut m: libc::msghdr = std::mem::zeroed();
                m.msg_iov = iov.as_ptr() as *mut _;
                m.msg_iovlen = iov.len();
                libc::sendmsg(fd, &m, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
            };
            if n < 0 {
                if std::io::Error::last_os_error().kind() == std::io::ErrorKind::WouldBlock {
                    return;
                }
                fail(&format!("send: {}", std::io::Error::last_os_error()));
            }
            let mut n = n as usize;
            while n > 0 {
                let (at, end) = match self.segs.front_mut().unwrap() {
                    Seg::Own(v, at) | Seg::Frame(v, at) => (at, v.len()),
                    Seg::Pay(at, end) => (at, *end),
                };
                let step = n.min(end - *at);
                *at += step;
                n -= step;
                if *at == end {
                    if let Some(Seg::Frame(v, _)) = self.segs.pop_front() {
                        self.sent.push(v);
                    }
                }
            }
        }
    }
}

pub enum Done {
    Op(usize),   // the slot's operation is complete
    Step(usize), // one request of it is; submit the next
    Nothing,
}

pub trait Proto: Send {
    /// Send the slot's next request; false: not now (no credits).
    fn submit(&mut self, slot: usize, out: &mut Out) -> bool;
    fn complete(&mut self, frame: &mut [u8]) -> Done;
    /// complete() needs no more than the first HEAD bytes of a frame.
    fn head_only(&self) -> bool;
}
const HEAD: usize = 512;

pub struct Histogram(Vec<u64>);

impl Histogram {
    fn new() -> Self {
        Histogram(vec![0; 64 * 32])
    }
    fn add(&mut self, ns: u64) {
        let ns = ns.max(32);
        let e = 63 - ns.leading_zeros() as usize;
        self.0[e * 32 + ((ns >> (e - 5)) & 31) as usize] += 1;
    }
    fn at(&self, q: f64) -> f64 {
        let want = (self.0.iter().sum::<u64>() as f64 * q) as u64;
        let mut sum = 0;
        for (i, n) in self.0.iter().enumerate() {
            sum += n;
            if sum > want {
                return ((32 + i % 32) as f64) * 2f64.powi(i as i32 / 32 - 5) / 1000.0;
            }
        }
        0.0
    }
}

struct Conn {
    sock: TcpStream,
    proto: Box<dyn Proto>,
    out: Out,
    buf: Vec<u8>,
    fill: usize,
    discard: usize,
    more_fragments: bool,
    ready: Vec<usize>,
    think: Duration,
    resting: VecDeque<(Instant, usize)>, // until when, in order
    rpc_framing: bool,
    start: Vec<Option<Instant>>,
}

#[derive(Default)]
struct Tally {
    ops: u64,
    requests: u64,
    hist: Option<Histogram>,
}

impl Conn {
    fn pump(&mut self) {
        while let Some((_, slot)) = self.resting.pop_front_if(|(until, _)| *until <= Instant::now()) {
            self.ready.push(slot);
        }
        while let Some(&slot) = self.ready.last() {
            if !self.proto.submit(slot, &mut self.out) {
                break;
            }
            self.ready.pop();
            self.start[slot].get_or_insert_with(Instant::now);
        }
        self.out.flush(self.sock.as_raw_fd());
    }

    fn receive(&mut self, tally: &mut Tally, measuring: bool) {
        let fd = self.sock.as_raw_fd();
        loop {
            // SAFETY: the buffer is ours; MSG_TRUNC on TCP drops the bytes without writing any.
            let (n, room) = unsafe {
                if self.discard > 0 {
                    (libc::recv(fd, std::ptr::null_mut(), self.discard, libc::MSG_DONTWAIT | libc::MSG_TRUNC), self.discard)
                } else {
                    let b = &mut self.buf[self.fill..];
                    (libc::recv(fd, b.as_mut_ptr() as *mut _, b.len(), libc::MSG_DONTWAIT), b.len())
                }
            };
            if n == 0 {
                fail("the server closed the connection");
            }
            if n < 0 {
                if std::io::Error::last_os_error().kind() == std::io::ErrorKind::WouldBlock {
                    return;
                }
                fail(&format!("recv: {}", std::io::Error::last_os_error()));
            }
            if self.discard > 0 {
                self.discard -= n as usize;
                continue;
            }
            self.fill += n as usize;
            let mut pos = 0;
            while self.fill - pos >= 4 {
                let mark = u32::from_be_bytes(self.buf[pos..pos + 4].try_into().unwrap());
                let len = (mark & 0x7fffffff) as usize;
                let have = self.fill - pos - 4;
                let whole = have >= len;
                if !whole && !((self.proto.head_only() && have >= HEAD) || self.more_fragments) {
                    if len + 4 > self.buf.len() {
                        self.buf.resize(len + 4 + (64 << 10), 0);
                    }
                    break;
                }
                let end = if whole { pos + 4 + len } else { self.fill };
                let continued = self.more_fragments;
                self.more_fragments = self.proto.head_only() && self.rpc() && mark >> 31 == 0;
                if !continued {
                    let done = self.proto.complete(&mut self.buf[pos + 4..end]);
                    if !matches!(done, Done::Nothing) && measuring {
                        tally.requests += 1;
                    }
                    match done {
                        Done::Op(slot) => {
                            let t = self.start[slot].take();
                            if measuring {
                                tally.ops += 1;
                                tally.hist.as_mut().unwrap().add(t.unwrap().elapsed().as_nanos() as u64);
                            }
                            if self.think.is_zero() {
                                self.ready.push(slot);
                            } else {
                                self.resting.push_back((Instant::now() + self.think, slot));
                            }
                        }
                        Done::Step(slot) => self.ready.push(slot),
                        Done::Nothing => {}
                    }
                }
                self.discard = len + 4 - (end - pos);
                pos = end;
            }
            if pos > 0 {
                self.buf.copy_within(pos..self.fill, 0);
                self.fill -= pos;
            }
            if (n as usize) < room {
                return;
            }
        }
    }

    fn rpc(&self) -> bool {
        // SMB frames have a zero byte first, so the bit says nothing there
        self.rpc_framing
    }
}

fn worker(mut conns: Vec<Conn>, o: &Opt, gate: &Barrier) -> Tally {
    let mut tally = Tally { hist: Some(Histogram::new()), ..Tally::default() };
    conns.iter_mut().for_each(Conn::pump);
    let begin = Instant::now() + Duration::from_secs_f64(o.ramp);
    let end = begin + Duration::from_secs_f64(o.secs);
    let mut measuring = false;
    loop {
        let now = Instant::now();
        if !measuring && now >= begin {
            gate.wait();
            measuring = true;
        }
        if now >= end {
            gate.wait();
            return tally;
        }
        let mut fds: Vec<libc::pollfd> = conns
            .iter()
            .map(|c| libc::pollfd {
                fd: c.sock.as_raw_fd(),
                events: libc::POLLIN | if c.out.segs.is_empty() { 0 } else { libc::POLLOUT },
                revents: 0,
            })
            .collect();
        // ends those who rest, to the microsecond, and not before
        let woken = conns.iter().filter_map(|c| c.resting.front()).map(|(until, _)| *until).min();
        let wait = woken.map_or(Duration::from_millis(100), |until| until.saturating_duration_since(Instant::now()));
        let wait = libc::timespec { tv_sec: 0, tv_nsec: wait.min(Duration::from_millis(100)).as_nanos() as i64 };
        // SAFETY: fds is a valid array of that length, and wait outlives the call.
        unsafe { libc::ppoll(fds.as_mut_ptr(), fds.len() as u64, &wait, std::ptr::null()) };
        for (c, f) in conns.iter_mut().zip(&fds) {
            if f.revents == 0 && c.resting.front().is_some_and(|(until, _)| *until <= Instant::now()) {
                c.pump();
            }
            if f.revents != 0 {
                c.receive(&mut tally, measuring);
                c.pump();
            }
        }
    }
}

/// CPU seconds of a process and its children, dead ones included.
fn server_cpu(top: i32) -> f64 {
    let mut stats: Vec<(i32, i32, u64)> = vec![];
    for e in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = e.file_name().to_str().and_then(|s| s.parse::<i32>().ok()) else { continue };
        let Ok(s) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let f: Vec<i64> = s[s.rfind(')').unwrap_or(0) + 1..].split_whitespace().skip(1).map(|x| x.parse().unwrap_or(0)).collect();
        stats.push((pid, f[0] as i32, f[10..14].iter().sum::<i64>() as u64));
    }
    let mut mine = vec![top];
    while let Some((pid, _, _)) = stats.iter().find(|s| mine.contains(&s.1) && !mine.contains(&s.0)) {
        mine.push(*pid);
    }
    // SAFETY: plain call.
    let hz = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    stats.iter().filter(|s| mine.contains(&s.0)).map(|s| s.2).sum::<u64>() as f64 / hz
}

fn own_cpu() -> f64 {
    // SAFETY: getrusage fills the struct.
    let u = unsafe {
        let mut u: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut u);
        u
    };
    let s = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    s(u.ru_utime) + s(u.ru_stime)
}

fn main() {
    let o = options();
    if o.proto == "crypto" {
        let [gmac, seal, open] = smb::crypto_costs(o.bs);
        return println!("us a MiB: gmac={gmac:.1} seal={seal:.1} open={open:.1}");
    }
    let protos: Vec<(TcpStream, Box<dyn Proto>)> = if o.proto == "smb" { smb::connect(&o) } else { nfs::connect(&o) };
    let mut groups: Vec<Vec<Conn>> = (0..o.threads).map(|_| vec![]).collect();
    for (i, (sock, proto)) in protos.into_iter().enumerate() {
        let slots = (o.qd / o.conns).max(1);
        groups[i % o.threads].push(Conn {
            sock,
            proto,
            out: Out::default(),
            buf: vec![0; 256 << 10],
            fill: 0,
            discard: 0,
            more_fragments: false,
            ready: (0..slots).rev().collect(),
            think: Duration::from_secs_f64(o.think),
            resting: VecDeque::new(),
            start: vec![None; slots],
            rpc_framing: o.proto != "smb",
        });
    }
    let gate = Barrier::new(o.threads + 1);
    let (tallies, secs, client, server) = std::thread::scope(|s| {
        let handles: Vec<_> = groups.into_iter().map(|g| s.spawn(|| worker(g, &o, &gate))).collect();
        gate.wait();
        let (t, c, v) = (Instant::now(), own_cpu(), o.pid.map(server_cpu));
        gate.wait();
        let (t, c, v) = (t.elapsed().as_secs_f64(), own_cpu() - c, o.pid.map(|p| server_cpu(p) - v.unwrap()));
        (handles.into_iter().map(|h| h.join().unwrap()).collect::<Vec<_>>(), t, c, v)
    });
    let mut hist = Histogram::new();
    let (mut ops, mut requests) = (0, 0);
    for t in tallies {
        ops += t.ops;
        requests += t.requests;
        hist.0.iter_mut().zip(t.hist.unwrap().0).for_each(|(a, b)| *a += b);
    }
    let n = (ops as f64).max(1.0);
    let mib = if matches!(o.work, Work::Read | Work::Write) { ops as f64 * o.bs as f64 / secs / 1048576.0 } else { 0.0 };
    let (iops, p50, p99) = (ops as f64 / secs, hist.at(0.5), hist.at(0.99));
    let (cl, sv) = (client / n * 1e6, server.map_or(f64::NAN, |v| v / n * 1e6));
    let cores = server.map_or(f64::NAN, |v| v / secs);
    if o.tsv {
        println!("{}\t{iops:.0}\t{mib:.1}\t{p50:.0}\t{p99:.0}\t{sv:.2}\t{cores:.2}\t{cl:.2}\t{:.0}", o.label, requests as f64 / secs);
    } else {
        println!(
            "{} {iops:.0} ops/s ({:.0} requests/s) {mib:.1} MiB/s  p50 {p50:.0} us p99 {p99:.0} us  server {sv:.2} us/op {cores:.2} cores  client {cl:.2} us/op",
            o.label,
            requests as f64 / secs
        );
    }
}
