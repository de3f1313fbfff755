//! The loop of one thread: what is due goes out, what has arrived is counted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};

use super::lane::Lane;
use super::meter::Meter;
use super::place::{CYCLE, Doing, Place};
use super::replay::Next;
use super::{Block, Shared};
use crate::fault::{Fault, Result};
use crate::link::Link;
use crate::result::{Operation, ProblemKind};
use client::{Outcome, Request, Sent};

/// The first directory of the metadata workload in the list of directories; before it are the target's and the run's.
pub(crate) const FIRST_THREAD_DIRECTORY: usize = 2;
/// How long a place waits before it sends again what the server wants later.
const LATER: Duration = Duration::from_millis(100);
/// The loop looks at the clock and at who wants it to end at least so often.
const LOOK: Duration = Duration::from_millis(100);
/// Failed operations without a single one that succeeds: no use to go on.
const FAILURES_MAX: u64 = 100;
/// Blocks that are tried before a write gives up finding one that nobody else writes.
const TRIES: usize = 64;

/// One thread of the engine.
pub(super) struct Worker<'a> {
    lanes: Vec<Lane<'a>>,
    floor: Floor<'a>,
    next_lane: usize,
    fault: Option<Fault>,
}

/// The places of a thread, and what they have done.
struct Floor<'a> {
    shared: &'a Shared<'a>,
    places: Vec<Place>,
    /// Places that may send now.
    ready: Vec<usize>,
    /// Places that may send later.
    resting: BinaryHeap<Reverse<(Instant, usize)>>,
    meter: Meter,
    under_way: usize,
    /// When the next operation of a fixed rate is due, and how far apart they are.
    pace: Option<(Instant, Duration)>,
    /// When the next operation of a replay is due.
    next_replayed: Option<Instant>,
    fatal: Option<Fault>,
    /// Bytes that each lane carried.
    carried: Vec<u64>,
}

impl<'a> Worker<'a> {
    /// `places` are the numbers of this thread's places over all threads.
    pub(super) fn new(shared: &'a Shared<'a>, links: &'a mut [Link], places: &[usize]) -> Self {
        let now = Instant::now();
        let threads = shared.workload.key.threads.max(1) as usize;
        let all = shared.workload.places();
        let interval = |rate: f64| Duration::from_secs_f64(all as f64 / rate / places.len().max(1) as f64);
        let mut fault = None;
        let mut lanes = Vec::new();
        for link in links {
            match Lane::new(link) {
                Ok(lane) => lanes.push(lane),
                Err(e) => fault = Some(e),
            }
        }
        let floor = Floor {
            shared,
            places: places.iter().map(|number| Place::new(*number, number % threads, now)).collect(),
            ready: (0..places.len()).rev().collect(),
            resting: BinaryHeap::new(),
            meter: Meter::default(),
            under_way: 0,
            pace: shared.workload.rate.filter(|_| !shared.fill).map(|rate| (now, interval(rate))),
            next_replayed: None,
            fatal: None,
            carried: vec![0; lanes.len()],
        };
        Self { lanes, floor, next_lane: 0, fault }
    }

    /// Runs until its time is over, or something stops it.
    pub(super) fn run(mut self) -> Meter {
        let fault = match self.fault.take() {
            Some(fault) => Some(fault),
            None => self.load().err(),
        };
        for lane in &self.lanes {
            lane.end();
        }
        let mut meter = self.floor.meter;
        meter.connection_bytes = self.floor.carried;
        meter.fault = fault;
        meter
    }

    fn load(&mut self) -> Result<()> {
        let machine = |e: rustix::io::Errno| Fault::new(ProblemKind::ThisMachine, format!("epoll: {e}"));
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(machine)?;
        for (n, lane) in self.lanes.iter().enumerate() {
            let data = epoll::EventData::new_u64(n as u64);
            epoll::add(&poll, &lane.link.wire.stream, data, epoll::EventFlags::IN).map_err(machine)?;
        }
        let mut room = [MaybeUninit::<epoll::Event>::uninit(); 64];
        let mut looked = Instant::now();
        let outcome = loop {
            let now = Instant::now();
            if self.is_over(now) {
                break Ok(());
            }
            if now.duration_since(looked) > Duration::from_secs(1) {
                looked = now;
                if let Err(fault) = self.floor.check_replies(now) {
                    break Err(fault);
                }
            }
            if let Err(fault) = self.turn(now, &poll, &mut room) {
                break Err(fault);
            }
        };
        let now = Instant::now();
        self.floor.meter.measured =
            now.min(self.floor.shared.end).saturating_duration_since(self.floor.shared.begin);
        outcome?;
        self.drain(&poll, &mut room)
    }

    fn is_over(&self, now: Instant) -> bool {
        let shared = self.floor.shared;
        let filled = shared.fill
            && self.floor.under_way == 0
            && self.floor.ready.is_empty()
            && self.floor.resting.is_empty();
        let replayed = shared.replaying.as_ref().is_some_and(|replaying| replaying.is_over())
            && self.floor.under_way == 0
            && self.floor.resting.is_empty()
            && self.floor.ready.iter().all(|tag| self.floor.places[*tag].doing == Doing::Nothing);
        now >= shared.end || shared.stop.load(Ordering::Relaxed) || filled || replayed
    }

    /// Sends what is due, waits for what arrives, counts it.
    fn turn(
        &mut self,
        now: Instant,
        poll: &impl rustix::fd::AsFd,
        room: &mut [MaybeUninit<epoll::Event>],
    ) -> Result<()> {
        self.floor.wake(now);
        self.submit(now)?;
        self.flush(poll)?;
        let timeout = self.floor.until_next(now).min(LOOK);
        self.wait(poll, room, timeout)
    }

    fn wait(
        &mut self,
        poll: &impl rustix::fd::AsFd,
        room: &mut [MaybeUninit<epoll::Event>],
        timeout: Duration,
    ) -> Result<()> {
        let timeout = Timespec {
            tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(1),
            tv_nsec: timeout.subsec_nanos().into(),
        };
        let events = match epoll::wait(poll, room, Some(&timeout)) {
            Ok((events, _)) => &*events,
            Err(rustix::io::Errno::INTR) => &[],
            Err(e) => return Err(Fault::new(ProblemKind::ThisMachine, format!("epoll: {e}"))),
        };
        if events.is_empty() {
            return Ok(());
        }
        let now = Instant::now();
        for event in events {
            let number = usize::try_from({ event.data }.u64()).unwrap_or(usize::MAX);
            let Some(lane) = self.lanes.get_mut(number) else { continue };
            let floor = &mut self.floor;
            lane.receive(&mut |tag, outcome| floor.ended(tag, number, outcome, now))?;
            if lane.has_output() {
                lane.flush()?;
            }
        }
        self.floor.fatal.take().map_or(Ok(()), Err)
    }

    /// Takes the answers that are still due and ends the cycles that have begun, so that connections and names can be used
    /// again. Nothing of it is counted.
    fn drain(&mut self, poll: &impl rustix::fd::AsFd, room: &mut [MaybeUninit<epoll::Event>]) -> Result<()> {
        let deadline = Instant::now() + self.floor.shared.timeout;
        loop {
            let now = Instant::now();
            self.floor.wake(now);
            self.floor.keep_begun();
            if self.floor.under_way == 0 && self.floor.ready.is_empty() && self.floor.resting.is_empty() {
                return Ok(());
            }
            if now > deadline {
                return Err(self.floor.last_are_missing());
            }
            self.submit(now)?;
            self.flush(poll)?;
            let timeout = self.floor.until_next(now).min(LOOK);
            self.wait(poll, room, timeout)?;
        }
    }

    fn flush(&mut self, poll: &impl rustix::fd::AsFd) -> Result<()> {
        for (n, lane) in
            self.lanes.iter_mut().enumerate().filter(|(_, lane)| lane.has_output() || lane.waits_to_send)
        {
            lane.flush()?;
            if lane.has_output() != lane.waits_to_send {
                lane.waits_to_send = lane.has_output();
                let mut flags = epoll::EventFlags::IN;
                flags.set(epoll::EventFlags::OUT, lane.waits_to_send);
                let data = epoll::EventData::new_u64(n as u64);
                epoll::modify(poll, &lane.link.wire.stream, data, flags)
                    .map_err(|e| Fault::new(ProblemKind::ThisMachine, format!("epoll: {e}")))?;
            }
        }
        Ok(())
    }

    /// Sends for all places that are ready, as far as the server lets requests in and the pace lets them out.
    fn submit(&mut self, now: Instant) -> Result<()> {
        let mut kept = Vec::new();
        while let Some(tag) = self.floor.ready.pop() {
            if self.floor.places[tag].doing == Doing::Nothing && !self.floor.begin(tag, now) {
                if self.floor.shared.fill {
                    continue;
                }
                kept.push(tag);
                break;
            }
            if !self.send(tag, now)? {
                kept.push(tag);
                break;
            }
        }
        self.floor.ready.append(&mut kept);
        Ok(())
    }

    /// Sends a place's operation over the next connection that takes it.
    fn send(&mut self, tag: usize, now: Instant) -> Result<bool> {
        let lanes = self.lanes.len();
        // The steps of a cycle stay on one connection: what is open belongs to its tag there.
        let (first, choices) = match self.floor.places[tag].doing {
            Doing::Step(0) => (self.next_lane, lanes),
            Doing::Step(_) => (self.floor.places[tag].lane, 1),
            _ => (self.next_lane, lanes),
        };
        for n in 0..choices {
            let number = (first + n) % lanes;
            let Some(lane) = self.lanes.get_mut(number) else { continue };
            match self.floor.submit(tag, lane)? {
                Sent::NotNow => {}
                Sent::Yes => {
                    self.next_lane = (number + 1) % lanes;
                    let place = &mut self.floor.places[tag];
                    (place.lane, place.sent) = (number, Some(now));
                    self.floor.under_way += 1;
                    return Ok(true);
                }
                Sent::NotNeeded => {
                    self.floor.places[tag].lane = number;
                    self.floor.skip(tag, now);
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

impl Floor<'_> {
    /// Places whose rest is over are ready.
    fn wake(&mut self, now: Instant) {
        while let Some(Reverse((due, tag))) = self.resting.peek().copied() {
            if due > now {
                break;
            }
            self.resting.pop();
            self.ready.push(tag);
        }
    }

    /// Only what has begun goes on: cycles to their end, what the server wanted later.
    fn keep_begun(&mut self) {
        let places = &self.places;
        self.ready.retain(|tag| places[*tag].doing != Doing::Nothing);
        self.resting.retain(|Reverse((_, tag))| places[*tag].doing != Doing::Nothing);
    }

    /// How long nothing is due.
    fn until_next(&self, now: Instant) -> Duration {
        let rest = self.resting.peek().map(|Reverse((due, _))| *due);
        let paced = self.pace.filter(|_| !self.ready.is_empty()).map(|(due, _)| due);
        let replayed = self.next_replayed.filter(|_| !self.ready.is_empty());
        let next = [rest, paced, replayed].into_iter().flatten().min();
        next.map_or(LOOK, |due| due.saturating_duration_since(now))
    }

    /// Gives a place its next operation; false when none is due, or there is none.
    fn begin(&mut self, tag: usize, now: Instant) -> bool {
        let shared = self.shared;
        if let Some(replaying) = &shared.replaying {
            return self.begin_replayed(tag, replaying.next(shared, now));
        }
        let mut due = now;
        if let Some((next, interval)) = &mut self.pace {
            if *next > now {
                return false;
            }
            due = *next;
            *next += *interval;
        }
        let Some(doing) = self.next(tag) else { return false };
        let place = &mut self.places[tag];
        (place.doing, place.due) = (doing, due);
        if doing == Doing::Step(0) {
            place.cycle_due = due;
            place.cycles += 1;
        }
        true
    }

    fn begin_replayed(&mut self, tag: usize, next: Next) -> bool {
        self.next_replayed = match next {
            Next::Do(doing, due) => {
                let place = &mut self.places[tag];
                (place.doing, place.due) = (doing, due);
                self.next_replayed = None;
                return true;
            }
            Next::At(due) => Some(due),
            Next::Over => None,
        };
        false
    }

    fn next(&mut self, tag: usize) -> Option<Doing> {
        let shared = self.shared;
        let Some(reads) = shared.workload.reads() else { return Some(Doing::Step(0)) };
        let place = &mut self.places[tag];
        let writes = shared.fill || place.next_random() % 100 >= u64::from(reads);
        let length = usize::try_from(shared.block_bytes()).unwrap_or(usize::MAX);
        for _ in 0..TRIES {
            let random = place.next_random();
            let block = shared.next_block(place.thread, random)?;
            if !writes {
                return Some(Doing::Read(block));
            }
            if shared.files.claim(block.file, block.offset, length) {
                return Some(Doing::Write(block));
            }
        }
        None
    }

    fn submit(&mut self, tag: usize, lane: &mut Lane<'_>) -> Result<Sent> {
        let shared = self.shared;
        let place = &mut self.places[tag];
        match place.doing {
            Doing::Nothing => Ok(Sent::NotNeeded),
            Doing::Read(Block { file, offset, length }) => {
                if shared.workload.check {
                    shared.files.before_read(file, offset, length as usize, &mut place.before);
                }
                lane.submit(tag, &Request::Read { file, offset, length })
            }
            Doing::Write(Block { file, offset, length }) => {
                let fill = |data: &mut [u8]| shared.files.fill(file, offset, data);
                lane.submit(tag, &Request::Write { file, offset, length, fill: &fill })
            }
            Doing::Step(step) => {
                let name = place.name(shared.round);
                let directory = FIRST_THREAD_DIRECTORY + place.thread;
                let request = match CYCLE.get(step) {
                    Some(Operation::Create) => Request::Open { directory, name: &name, make: true },
                    Some(Operation::Open) => Request::Open { directory, name: &name, make: false },
                    Some(Operation::Close) => Request::Close { file: None },
                    Some(Operation::Stat) => Request::Stat,
                    Some(Operation::List) => Request::List { directory },
                    _ => Request::Delete { directory, name: &name },
                };
                lane.submit(tag, &request)
            }
        }
    }

    /// An operation has ended.
    fn ended(&mut self, tag: usize, lane: usize, outcome: Outcome<'_>, now: Instant) {
        let Some(place) = self.places.get_mut(tag) else { return };
        if place.sent.take().is_none() {
            return;
        }
        self.under_way -= 1;
        match (outcome, place.doing) {
            (Outcome::Later, _) => return self.resting.push(Reverse((now + LATER, tag))),
            (Outcome::Refused(fault), _) => self.failed(tag, fault.into()),
            (Outcome::Data(data), Doing::Read(block)) => self.read(tag, lane, block, data, now),
            (Outcome::Written(count), Doing::Write(block)) => self.wrote(tag, lane, block, count, now),
            (Outcome::Done | Outcome::Handle(_), Doing::Step(step)) => return self.stepped(tag, step, now),
            _ => self.failed(tag, Fault::protocol("a reply of another kind than what was asked for")),
        }
        self.rest(tag, now);
    }

    fn is_measured(&self, now: Instant) -> bool {
        now >= self.shared.begin && now < self.shared.end
    }

    fn read(&mut self, tag: usize, lane: usize, block: Block, data: &[u8], now: Instant) {
        let wanted = u64::from(block.length);
        if data.len() as u64 != wanted {
            let text = format!(
                "a read of {wanted} bytes at {} of file {} brought {}",
                block.offset,
                block.file,
                data.len()
            );
            return self.failed(tag, Fault::new(ProblemKind::ShortTransfer, text));
        }
        if self.shared.workload.check
            && let Some(wrong) =
                self.shared.files.check(block.file, block.offset, data, &self.places[tag].before)
        {
            self.meter.wrong_blocks += 1;
            let text = format!(
                "a read of file {} brought {} wrong bytes, the first at {}",
                block.file, wrong.bytes, wrong.at
            );
            return self.meter.problem(Fault::new(ProblemKind::WrongData, text));
        }
        self.count(tag, lane, Operation::Read, wanted, now);
    }

    fn wrote(&mut self, tag: usize, lane: usize, block: Block, count: u32, now: Instant) {
        let wanted = u64::from(block.length);
        if u64::from(count) != wanted {
            let text =
                format!("a write of {wanted} bytes at {} of file {} took {count}", block.offset, block.file);
            return self.failed(tag, Fault::new(ProblemKind::ShortTransfer, text));
        }
        self.shared.files.written(block.file, block.offset, usize::try_from(wanted).unwrap_or(usize::MAX));
        self.count(tag, lane, Operation::Write, wanted, now);
    }

    fn count(&mut self, tag: usize, lane: usize, operation: Operation, bytes: u64, now: Instant) {
        if self.is_measured(now) {
            let latency = now.saturating_duration_since(self.places[tag].due);
            self.meter.count(operation, bytes, latency);
            if let Some(carried) = self.carried.get_mut(lane) {
                *carried += bytes;
            }
        }
    }

    /// A step of a cycle has ended; the next one follows.
    fn stepped(&mut self, tag: usize, step: usize, now: Instant) {
        if let Some(operation) = CYCLE.get(step) {
            self.count(tag, usize::MAX, *operation, 0, now);
        }
        self.step_on(tag, step, now);
    }

    /// The protocol has no such step.
    fn skip(&mut self, tag: usize, now: Instant) {
        match self.places[tag].doing {
            Doing::Step(step) => self.step_on(tag, step, now),
            _ => self.rest(tag, now),
        }
    }

    fn step_on(&mut self, tag: usize, step: usize, now: Instant) {
        if step + 1 < CYCLE.len() {
            let place = &mut self.places[tag];
            (place.doing, place.due) = (Doing::Step(step + 1), now);
            return self.ready.push(tag);
        }
        self.places[tag].due = self.places[tag].cycle_due;
        self.count(tag, usize::MAX, Operation::Cycle, 0, now);
        self.rest(tag, now);
    }

    fn failed(&mut self, tag: usize, fault: Fault) {
        use ProblemKind::{Closed, NoSpace, ReadOnly};
        self.meter.errors += 1;
        let hopeless = self.meter.is_empty() && self.meter.errors >= FAILURES_MAX;
        if hopeless || self.shared.fill || matches!(fault.kind, Closed | NoSpace | ReadOnly) {
            self.fatal.get_or_insert(fault);
        } else {
            self.meter.problem(fault);
        }
        self.places[tag].doing = Doing::Nothing;
    }

    /// The place may begin its next operation, at once or after it has thought.
    fn rest(&mut self, tag: usize, now: Instant) {
        self.places[tag].doing = Doing::Nothing;
        match self.shared.workload.think {
            Duration::ZERO => self.ready.push(tag),
            think => self.resting.push(Reverse((now + think, tag))),
        }
    }

    /// The requests that are under way now are the last ones, and have waited long enough.
    fn last_are_missing(&self) -> Fault {
        let (n, timeout) = (self.under_way, self.shared.timeout);
        Fault::new(ProblemKind::NoReply, format!("{n} of the last requests had no answer within {timeout:?}"))
    }

    /// Whether a reply is missing for longer than a server may take.
    fn check_replies(&self, now: Instant) -> Result<()> {
        let late =
            |place: &&Place| place.sent.is_some_and(|sent| now.duration_since(sent) > self.shared.timeout);
        match self.places.iter().filter(late).count() {
            0 => Ok(()),
            n => {
                let timeout = self.shared.timeout;
                let text =
                    format!("{n} of {} requests under way had no answer within {timeout:?}", self.under_way);
                Err(Fault::new(ProblemKind::NoReply, text))
            }
        }
    }
}
