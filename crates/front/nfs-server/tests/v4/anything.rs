//! Whatever operations come, in whatever order and with whatever values, from several clients at once: each reply can be
//! read, what is sent again is answered with the same bytes, nothing panics, and memory stays bounded.
//!
//! The operations are well-formed XDR made from recipes; what is in them is what earlier replies told, what is special, or
//! anything. `SEED=N` runs it again as it was; a run that fails prints its seed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nfs_wire::v4::compound::{self, ArgOp, ResOp};
use nfs_wire::v4::open::Delegation;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{ClientId, SessionId, Stateid, StateidOther};
use nfs_wire::v4::{self, reclaim_complete};
use nfs_wire::xdr::{Decode, Encode, Writer};
use storage::memory::MemoryStore;

use crate::client::{CALLBACK_PROGRAM, V4Client};
use crate::server::{Raw, TestServer, by_smb, export};

/// How long it goes on.
const TIME: Duration = Duration::from_secs(10);
/// For how long something is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Simulated clients, each with a connection of its own.
const CLIENTS: usize = 4;
/// By how much the process, clients included, may grow.
const GROWTH_BYTES_MAX: usize = 256 << 20;
/// Of what replies told so much is remembered of each kind.
const KNOWN_MAX: usize = 64;

/// Operations by their numbers, and what each is made of:
/// `a` attributes, `b` a flag, `B` a bitmap, `c` a count, `C` an open's claim, `d` data, `D` a claim to a delegation, `h` a
/// filehandle, `H` an open's how,
/// `i` a small number, `I` a client ID, `K` a locker, `l` a lock's type, `m` a size of messages, `n` a name, `o` an offset or
/// length, `O` an owner, `p` the number of the callback program, `s` a stateid, `S` a session ID, `t` a time, `T` the type of an
/// object to make, `u` any number, `v` a verifier, `w` an owner's name, `W` a wanted delegation,
/// `x` an empty list.
const OPERATIONS: &[(u32, &str)] = &[
    (3, "u"),
    (4, "us"),
    (5, "oc"),
    (6, "Tna"),
    (7, "I"),
    (8, "s"),
    (9, "B"),
    (10, ""),
    (11, "n"),
    (12, "lbooK"),
    (13, "looO"),
    (14, "lusoo"),
    (15, "n"),
    (16, ""),
    (17, "a"),
    (18, "uiiOHC"),
    (19, "b"),
    (21, "suii"),
    (22, "h"),
    (22, "h"),
    (22, "h"),
    (23, ""),
    (24, ""),
    (25, "soc"),
    (26, "ovccB"),
    (27, ""),
    (28, "n"),
    (29, "nn"),
    (31, ""),
    (32, ""),
    (33, "n"),
    (34, "sa"),
    (37, "a"),
    (38, "soid"),
    (40, "px"),
    (41, "Sib"),
    (42, "vwixx"),
    (43, "Iiummmmiixmmmmiixpx"),
    (44, "S"),
    (45, "s"),
    (46, "bBttBB"),
    (48, "u"),
    (50, "booosu"),
    (52, "i"),
    (53, "Suuub"),
    (54, "dd"),
    (56, "WD"),
    (57, "I"),
    (58, "b"),
    (59, "soo"),
    (60, "ssooobbx"),
    (61, "sin"),
    (62, "soo"),
    (63, "sooB"),
    (66, "s"),
    (67, "s"),
    (68, "soc"),
    (69, "soi"),
    (71, "ssooo"),
    (72, "n"),
    (73, "ind"),
    (74, "oc"),
    (75, "n"),
    (10_044, ""),
];

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % count as u64).unwrap()
    }

    /// Once in so many times.
    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn of<T: Clone>(&mut self, among: &[T]) -> T {
        among[self.below(among.len())].clone()
    }

    fn u32(&mut self) -> u32 {
        u32::try_from(self.next() >> 32).unwrap()
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let count = self.below(most + 1);
        (0..count).map(|_| self.next().to_le_bytes()[0]).collect()
    }
}

/// What replies told, of all clients: each tries what is another's, too.
#[derive(Default)]
struct Known {
    handles: Vec<Vec<u8>>,
    stateids: Vec<Stateid>,
    sessions: Vec<SessionId>,
    clients: Vec<ClientId>,
}

fn remember<T: PartialEq>(known: &mut Vec<T>, value: T, random: &mut Random) {
    if known.contains(&value) {
        return;
    }
    if known.len() < KNOWN_MAX { known.push(value) } else { known[random.below(KNOWN_MAX)] = value }
}

impl Known {
    fn learn(&mut self, result: &ResOp<'_>, random: &mut Random) {
        let mut stateid = |stateid| remember(&mut self.stateids, stateid, random);
        match result {
            ResOp::Open(Ok(ok)) => {
                stateid(ok.stateid);
                delegated(&ok.delegation).into_iter().for_each(stateid);
            }
            ResOp::WantDelegation(Ok(delegation)) => delegated(delegation).into_iter().for_each(stateid),
            ResOp::Lock(Ok(ok)) => stateid(ok.lock_stateid),
            ResOp::LockU(Ok(ok)) => stateid(ok.lock_stateid),
            ResOp::Copy(Ok(ok)) => ok.response.callback_id.into_iter().for_each(stateid),
            ResOp::GetFh(Ok(ok)) => remember(&mut self.handles, ok.object.0.to_vec(), random),
            ResOp::CreateSession(Ok(ok)) => remember(&mut self.sessions, ok.session_id, random),
            ResOp::ExchangeId(Ok(ok)) => remember(&mut self.clients, ok.client_id, random),
            _ => {}
        }
    }
}

fn delegated(delegation: &Delegation<'_>) -> Option<Stateid> {
    match delegation {
        Delegation::Read(read) => Some(read.stateid),
        Delegation::Write(write) => Some(write.stateid),
        Delegation::None | Delegation::NoneExt(_) => None,
    }
}

/// Makes operations.
struct Maker {
    random: Random,
    known: Known,
    /// Operations that went well.
    succeeded: BTreeSet<u32>,
}

impl Maker {
    /// A COMPOUND's operations behind its SEQUENCE: how many, and their bytes.
    fn operations(&mut self) -> (usize, Vec<u8>) {
        let count = 2 + self.random.below(8);
        let mut bytes = Vec::new();
        // Most operations need a filehandle.
        Writer::new(&mut bytes).u32(22);
        self.part('h', &mut bytes);
        for _ in 1..count {
            let (number, recipe) = self.random.of(OPERATIONS);
            Writer::new(&mut bytes).u32(number);
            recipe.chars().for_each(|part| self.part(part, &mut bytes));
        }
        (count, bytes)
    }

    fn part(&mut self, part: char, bytes: &mut Vec<u8>) {
        let random = &mut self.random;
        let mut writer = Writer::new(bytes);
        match part {
            'b' => writer.u32(u32::from(random.once_in(2))),
            'i' => writer.u32(u32::try_from(random.below(5)).unwrap()),
            'u' => writer.u32(if random.once_in(2) { random.u32() % 5 } else { random.u32() }),
            'p' => writer.u32(CALLBACK_PROGRAM),
            'm' => writer.u32(random.of(&[0, 200, 4096, 1 << 20, u32::MAX])),
            'w' => writer.opaque(&owner(random)),
            'c' => writer.u32(random.of(&[0, 1, 100, 4096, 70_000, u32::MAX])),
            'o' => {
                let any = random.next();
                let small = any % 100_000;
                writer.u64(random.of(&[
                    0,
                    1,
                    small,
                    small,
                    1 << 20,
                    i64::MAX as u64,
                    u64::MAX - 1,
                    u64::MAX,
                    any,
                ]));
            }
            'd' => writer.opaque(&random.bytes(3000)),
            'v' => writer.u64(random.next() % 3),
            'W' => writer.u32(random.of(&[0, 0x100, 0x200, 0x300, 0x400, 0x500, 0x600, 0x3_0100])),
            'x' => writer.u32(0),
            't' => [0, 0, 0].into_iter().for_each(|word| writer.u32(word)),
            'l' => writer.u32(1 + random.u32() % 4),
            'n' => writer.opaque(&name(random)),
            'B' => bitmap(random, &mut writer),
            'h' => {
                let mut handle = random.of(&self.known.handles);
                if random.once_in(10) {
                    handle = random.bytes(128);
                } else if random.once_in(10) {
                    let at = random.below(handle.len());
                    handle[at] ^= 1 << random.below(8);
                }
                writer.opaque(&handle);
            }
            's' => stateid(random, &self.known.stateids).encode(&mut writer),
            'S' => {
                let random_id = SessionId([random.next().to_le_bytes()[0]; 16]);
                let known = if random.once_in(4) { random_id } else { random.of(&self.known.sessions) };
                known.encode(&mut writer);
            }
            'I' => {
                let any = ClientId(random.next());
                let known = if random.once_in(4) { any } else { random.of(&self.known.clients) };
                known.encode(&mut writer);
            }
            'a' => attributes(random, &mut writer),
            other => self.union(other, bytes),
        }
    }

    /// What is one thing or another.
    fn union(&mut self, part: char, bytes: &mut Vec<u8>) {
        let (arm, recipe) = match part {
            'O' => (None, "Iw"),
            'K' => self.arm(&[(1, "usuIw"), (0, "su")]),
            'T' => self.arm(&[
                (1, ""),
                (2, ""),
                (3, "uu"),
                (4, "uu"),
                (5, "n"),
                (6, ""),
                (7, ""),
                (8, ""),
                (u32::MAX, ""),
            ]),
            'H' => match self.random.below(5) {
                0 | 1 => (None, "x"),
                _ => self.arm_of(1, &[(0, "a"), (1, "a"), (2, "v"), (3, "va")], bytes),
            },
            'C' => self.arm(&[(0, "n"), (0, "n"), (1, "i"), (2, "sn"), (3, "n"), (4, ""), (5, "s"), (6, "")]),
            'D' => self.arm(&[(1, "i"), (4, ""), (4, ""), (6, "")]),
            other => panic!("{other}"),
        };
        if let Some(arm) = arm {
            Writer::new(bytes).u32(arm);
        }
        recipe.chars().for_each(|part| self.part(part, bytes));
    }

    fn arm(&mut self, arms: &[(u32, &'static str)]) -> (Option<u32>, &'static str) {
        let (arm, recipe) = self.random.of(arms);
        (Some(arm), recipe)
    }

    /// An arm within an arm.
    fn arm_of(
        &mut self,
        outer: u32,
        arms: &[(u32, &'static str)],
        bytes: &mut Vec<u8>,
    ) -> (Option<u32>, &'static str) {
        Writer::new(bytes).u32(outer);
        self.arm(arms)
    }
}

fn name(random: &mut Random) -> Vec<u8> {
    match random.below(12) {
        0 => random.bytes(300),
        1 => random.of(&[&b""[..], b".", b"..", b"a/b", b"nul\0", b"\xff\xfe"]).to_vec(),
        _ => format!("name{}", random.below(8)).into_bytes(),
    }
}

fn owner(random: &mut Random) -> Vec<u8> {
    if random.once_in(8) {
        random.bytes(1100)
    } else {
        random.of(&[b"one".to_vec(), b"two".to_vec(), Vec::new()])
    }
}

fn stateid(random: &mut Random, known: &[Stateid]) -> Stateid {
    match random.below(8) {
        0 => Stateid::ANONYMOUS,
        1 => Stateid::READ_BYPASS,
        2 => Stateid::CURRENT,
        3 => Stateid { seqid: random.u32() % 3, other: StateidOther([random.next().to_le_bytes()[0]; 12]) },
        _ if known.is_empty() => Stateid::INVALID,
        4 => Stateid { seqid: random.of(&[0, 1, 2, u32::MAX]), ..random.of(known) },
        _ => random.of(known),
    }
}

fn bitmap(random: &mut Random, writer: &mut Writer<'_>) {
    let words = random.below(4);
    writer.length(words);
    (0..words).for_each(|_| writer.u32(random.u32() & random.u32()));
}

/// `fattr4`, with the attribute's number and its bytes: a size, a mode, times, owners, a list; or anything.
fn attributes(random: &mut Random, writer: &mut Writer<'_>) {
    let number = random.of(&[4_u32, 4, 33, 33, 36, 37, 48, 54, 12, 81]);
    let mut value = Vec::new();
    let mut of_value = Writer::new(&mut value);
    match number {
        4 => of_value.u64(random.of(&[0, 1, 5000, 9 << 20, i64::MAX as u64, u64::MAX])),
        33 => of_value.u32(random.u32() & 0o7777),
        36 | 37 => of_value.opaque(random.of(&[&b"0"[..], b"1000", b"nobody@", b"", b"99999999999"])),
        48 | 54 => [1, 0, random.u32(), random.u32()].into_iter().for_each(|word| of_value.u32(word)),
        12 => {
            [1, random.u32() % 5, random.u32(), random.u32()].into_iter().for_each(|word| of_value.u32(word))
        }
        _ => of_value.u64(random.next()),
    }
    if number == 12 {
        of_value.opaque(b"EVERYONE@");
    }
    if random.once_in(6) {
        bitmap(random, writer);
        return writer.opaque(&random.bytes(64));
    }
    let words = number / 32 + 1;
    writer.u32(words);
    (0..words).for_each(|word| writer.u32(if word == number / 32 { 1 << (number % 32) } else { 0 }));
    writer.opaque(&value);
}

/// A COMPOUND that was sent.
struct Sent {
    slot: u32,
    body: Vec<u8>,
    /// The reply, if it was to be kept.
    kept: Option<Vec<u8>>,
}

/// A client, and what it sent last on each slot.
struct Peer {
    client: V4Client,
    sent: Vec<Sent>,
}

const IDS: (u32, u32, u32) = (v4::PROGRAM, v4::VERSION, v4::Procedure::Compound as u32);

impl Peer {
    fn start(server: &TestServer, number: usize, maker: &mut Maker) -> Self {
        let mut client = V4Client::connect(server.address);
        client.minor_version = 2;
        client.establish(&format!("client {number} {}", maker.random.next()), 1);
        client.compound(&[ArgOp::ReclaimComplete(reclaim_complete::Args { one_fs: false })]);
        if number % 2 == 1 {
            client.become_user(1000, 100, &[]);
        }
        remember(&mut maker.known.sessions, client.session.id, &mut maker.random);
        remember(&mut maker.known.clients, client.client_id, &mut maker.random);
        Self { client, sent: Vec::new() }
    }

    fn exchange(&mut self, body: &[u8]) -> Vec<u8> {
        let xid = self.client.connection.xid;
        self.client.connection.send(IDS, &Raw(body));
        self.client.receive(xid).body
    }

    /// Sends something new, or something again. False when its session is no more.
    fn step(&mut self, maker: &mut Maker) -> bool {
        if let Some(sent) = self.sent.last().filter(|_| maker.random.once_in(6)) {
            let (body, kept) = (sent.body.clone(), sent.kept.clone());
            let reply = self.exchange(&body);
            let is_there = !is_gone(&reply);
            assert!(!is_there || kept.is_none_or(|kept| kept == reply), "another answer to {body:02x?}");
            return is_there;
        }
        let slot = u32::try_from(maker.random.below(4)).unwrap();
        let mut sequence = self.client.next_sequence(slot);
        sequence.cache_this = maker.random.once_in(2);
        let (count, operations) = maker.operations();
        let mut body = Vec::new();
        let mut writer = Writer::new(&mut body);
        writer.opaque(b"any");
        writer.u32(self.client.minor_version);
        writer.length(count + 1);
        ArgOp::Sequence(sequence).encode(&mut writer);
        body.extend(operations);
        let reply = self.exchange(&body);
        let results = read(&reply, count + 1);
        for result in &results {
            maker.known.learn(result, &mut maker.random);
            if result.status().is_ok() {
                maker.succeeded.insert(result.operation() as u32);
            }
        }
        let Some(ResOp::Sequence(Ok(_))) = results.first() else {
            self.client.session.slots[slot as usize] -= 1; // the slot is as before
            return !is_gone(&reply);
        };
        let kept = sequence.cache_this.then(|| reply.clone());
        self.sent.retain(|sent| sent.slot != slot);
        self.sent.push(Sent { slot, body, kept });
        true
    }
}

fn is_gone(reply: &[u8]) -> bool {
    let first = read(reply, usize::MAX).first().map(ResOp::status);
    !matches!(first, Some(status) if status != Err(Status::BadSession))
}

/// Reads a reply: only the last result may have failed, and its status is that of all.
fn read(reply: &[u8], most: usize) -> Vec<ResOp<'_>> {
    let reply = compound::Res::from_bytes(reply).unwrap();
    let results: Vec<_> = reply.results.map(Result::unwrap).collect();
    assert!(results.len() <= most);
    if let Some((last, before)) = results.split_last() {
        assert!(before.iter().all(|result| result.status().is_ok()), "{results:?}");
        assert_eq!(last.status(), reply.status, "{last:?}");
    }
    results
}

/// Bytes of memory that this process has.
fn memory() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn server() -> TestServer {
    let quick = |settings: &mut share::Settings| {
        settings.retry_after = Duration::from_millis(5);
        settings.break_timeout = Duration::from_millis(100);
        settings.provisioned.plan = "custom capacity=32MiB".parse().unwrap();
    };
    let everybody = export(share::Squash::None);
    let server = TestServer::with(Arc::new(MemoryStore::new()), everybody, 1, quick, |_| {});
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let begun = Instant::now();
    while server.data.limits_status().used.is_none() {
        runtime.block_on(server.data.space(&by_smb(0, 0), server.data.root())).unwrap();
        assert!(begun.elapsed() < PATIENCE, "what the share holds is not counted");
        std::thread::sleep(Duration::from_millis(5));
    }
    server
}

#[test]
fn whatever_comes_is_answered() {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let seed = std::env::var("SEED").ok().map(|seed| seed.parse().unwrap());
    let seed = seed.unwrap_or_else(|| u64::try_from(since & u128::from(u64::MAX)).unwrap());
    println!("SEED={seed}");
    let server = server();
    let mut maker = Maker { random: Random(seed), known: Known::default(), succeeded: BTreeSet::new() };
    maker.known.handles.push(server.mounted().1.as_bytes().to_vec());
    let mut peers: Vec<_> = (0..CLIENTS).map(|number| Peer::start(&server, number, &mut maker)).collect();
    let (begun, before) = (Instant::now(), memory());
    let (mut steps, mut restarts) = (0_u64, 0);
    while begun.elapsed() < TIME {
        let number = maker.random.below(CLIENTS);
        if !peers[number].step(&mut maker) {
            peers[number] = Peer::start(&server, number, &mut maker);
            restarts += 1;
        }
        steps += 1;
    }
    let grown = memory().saturating_sub(before);
    println!("{steps} COMPOUNDs, {restarts} sessions lost, {} KiB more", grown / 1024);
    println!("went well: {:?}", maker.succeeded);
    assert!(grown < GROWTH_BYTES_MAX, "{grown} bytes more");
    assert!(restarts < steps / 10, "hardly anything was tried: {restarts} of {steps}");
    // Whoever comes then is served as ever.
    let mut client = V4Client::start_minor(server.address, "the last one", 2);
    let root = client.path("/data");
    let (stateid, file) = client.open(&root, "a new file");
    client.close(&file, stateid);
}
