//! What is provisioned for a share: its budget, and how much of it is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use limits::{ChangeError, Handles, Limit, Limits, Operation, Plan, Provisioned, Waits};
use parking_lot::Mutex;
use storage::NodeRef;

use crate::capacity::Capacity;
use crate::throttle::Throttle;
use crate::trace::{AlreadyRecording, Recorded, Recorder, TracedData};
use crate::{Api, Caller, Share, timings};

/// The plan of a share.
#[derive(Debug)]
pub(crate) struct Provision {
    /// The plan that holds now.
    provisioned: Mutex<Provisioned>,
    /// [`PACED`] and [`RECORDED`]: all that a share asks that is neither.
    asked: AtomicU8,
    recorder: Recorder,
    throttle: Arc<Throttle>,
    capacity: Capacity,
    opens: OpensMax,
}

/// Opens at a time; `u64::MAX` where nothing is said of that.
#[derive(Debug)]
struct OpensMax {
    root: AtomicU64,
    file: AtomicU64,
    share: AtomicU64,
}

impl OpensMax {
    fn new(limits: &Limits) -> Self {
        let opens = Self {
            root: AtomicU64::new(u64::MAX),
            file: AtomicU64::new(u64::MAX),
            share: AtomicU64::new(u64::MAX),
        };
        opens.change(limits);
        opens
    }

    fn change(&self, limits: &Limits) {
        let Handles { root, file, share } = limits.handles;
        for (most, limit) in [(&self.root, root), (&self.file, file), (&self.share, share)] {
            most.store(limit.unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }
}

/// An operation may have to wait.
const PACED: u8 = 1;
/// Operations are recorded.
const RECORDED: u8 = 2;

/// How a share stands against its plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitsStatus {
    /// The plan.
    pub plan: Plan,
    /// What it comes to.
    pub limits: Limits,
    /// Bytes that the files have, once they were counted: only for a plan with a size.
    pub used: Option<u64>,
    /// Files and directories, as they were counted last (Azure Monitor: FileCount).
    pub files: Option<u64>,
    /// Burst credits that are left; `None` without bursts.
    pub credits: Option<u64>,
    /// What operations are waiting for at this moment.
    pub throttled: Vec<Limit>,
    /// Operations that are waiting.
    pub waiting: usize,
    /// How much has waited for each limit, for which anything has.
    pub waits: Vec<(Limit, Waits)>,
}

impl Provision {
    pub(crate) fn new(provisioned: Provisioned) -> Self {
        let limits = provisioned.plan.limits();
        Self {
            asked: AtomicU8::new(if limits.has_rates() { PACED } else { 0 }),
            recorder: Recorder::default(),
            capacity: Capacity::new(&limits),
            opens: OpensMax::new(&limits),
            throttle: Arc::new(Throttle::new(limits)),
            provisioned: Mutex::new(provisioned),
        }
    }

    fn asks(&self, what: u8) -> bool {
        self.asked.load(Ordering::Relaxed) & what != 0
    }

    fn ask(&self, what: u8, is_so: bool) {
        if is_so {
            self.asked.fetch_or(what, Ordering::Relaxed);
        } else {
            self.asked.fetch_and(!what, Ordering::Relaxed);
        }
    }
}

/// How an operation counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Where the data is moved ([`Share::read`], [`Share::write`]), by its size.
    ByData,
    /// It waits for its turn.
    Waits,
    /// It counts, but is not held back: others wait for what it gives up, or it waits for something else.
    Charged,
}

/// How the operation of this name counts against the budget.
#[must_use]
pub fn turn(api: Api) -> Turn {
    match api {
        Api::Read | Api::ReadPlus | Api::Write => Turn::ByData,
        Api::Close
        | Api::OplockBreak
        | Api::TreeConnect
        | Api::TreeDisconnect
        | Api::Mount
        | Api::ChangeNotify
        | Api::Lock
        | Api::Unlock
        | Api::DelegReturn
        | Api::OffloadCancel
        | Api::OpenDowngrade => Turn::Charged,
        _ => Turn::Waits,
    }
}

impl Share {
    /// Takes an operation's part of the budget, and waits for it if there is none left: before anything else is done for
    /// the operation. Reads and writes take theirs when their permission is checked, by their size.
    pub async fn take_turn(&self, caller: &Caller, api: Api) {
        if !self.asks_for_turns() || turn(api) == Turn::ByData {
            return;
        }
        self.note(caller, api, None, None);
        if !self.is_paced() {
            return;
        }
        match turn(api) {
            Turn::ByData => {}
            Turn::Charged => self.provision.throttle.charge(caller.machine.number(), Operation::Metadata),
            Turn::Waits => self.pass(caller, Operation::Metadata).await,
        }
    }

    /// Whether the plan allows one more open of an object that has so many, in a share that has so many. Those that are more
    /// than a new plan allows stay.
    pub(crate) fn check_opens(&self, node: &NodeRef, of_object: usize, of_share: usize) -> crate::Result<()> {
        let opens = &self.provision.opens;
        let of_object_max = if node.id() == self.root().id() { &opens.root } else { &opens.file };
        let is_full = |opens: usize, most: &AtomicU64| opens as u64 >= most.load(Ordering::Relaxed);
        if is_full(of_object, of_object_max) || is_full(of_share, &opens.share) {
            return Err(crate::Error::TooManyOpens);
        }
        Ok(())
    }

    pub(crate) fn capacity(&self) -> &Capacity {
        &self.provision.capacity
    }

    /// Whether operations may have to wait for its budget.
    pub(crate) fn is_paced(&self) -> bool {
        self.provision.asks(PACED)
    }

    /// Whether operations may have to wait for its budget, or are recorded.
    #[must_use]
    pub fn asks_for_turns(&self) -> bool {
        self.provision.asks(PACED | RECORDED)
    }

    /// Records what clients ask it for, for so long.
    ///
    /// # Errors
    /// [`AlreadyRecording`].
    pub fn record(&self, time: Duration) -> Result<(), AlreadyRecording> {
        self.provision.recorder.begin(Instant::now(), time)?;
        self.provision.ask(RECORDED, true);
        Ok(())
    }

    /// What was recorded since it was last asked for; none: nothing is recorded, or all of it was told.
    #[must_use]
    pub fn take_recorded(&self) -> Option<Recorded> {
        let taken = self.provision.recorder.take(Instant::now());
        if taken.as_ref().is_none_or(|taken| taken.is_over) {
            self.provision.ask(RECORDED, false);
        }
        taken
    }

    /// Records an operation that came at this time, or has just come, if they are recorded.
    pub(crate) fn note(&self, caller: &Caller, api: Api, arrived: Option<Instant>, data: Option<TracedData>) {
        if self.provision.asks(RECORDED) {
            let arrived = arrived.unwrap_or_else(Instant::now);
            if !self.provision.recorder.note(arrived, api, (caller.protocol, caller.machine), data) {
                self.provision.ask(RECORDED, false);
            }
        }
    }

    /// Waits until an operation may go on.
    pub(crate) async fn pass(&self, caller: &Caller, operation: Operation) {
        if !self.is_paced() {
            return;
        }
        if let Some(released) = self.provision.throttle.pass(caller.machine.number(), operation).await {
            timings::waited(released.limit, released.waited);
        }
    }

    /// A read that was let through has found so many bytes fewer than it asked for.
    pub(crate) fn put_back(&self, caller: &Caller, operation: Operation, unused: usize) {
        if unused > 0 && self.is_paced() {
            self.provision.throttle.put_back(caller.machine.number(), operation, unused as u64);
        }
    }

    /// What is provisioned for it.
    #[must_use]
    pub fn plan(&self) -> Plan {
        self.provision.provisioned.lock().plan.clone()
    }

    /// What is provisioned for it, and when that was last increased: to be kept over a restart of the server
    /// ([`Settings::provisioned`](crate::Settings::provisioned)).
    #[must_use]
    pub fn provisioned(&self) -> Provisioned {
        self.provision.provisioned.lock().clone()
    }

    /// Changes what is provisioned, while clients work. Those who wait go on waiting by the new plan.
    ///
    /// # Errors
    /// [`ChangeError`] for what may not be decreased yet.
    pub fn set_plan(&self, plan: Plan, now: SystemTime) -> Result<(), ChangeError> {
        let mut provisioned = self.provision.provisioned.lock();
        *provisioned = provisioned.change(plan, now)?;
        let limits = provisioned.plan.limits();
        // Both with the plan's lock held, so that of two changes the later one holds in all of them.
        self.provision.ask(PACED, limits.has_rates());
        self.provision.capacity.change(&limits);
        self.provision.opens.change(&limits);
        self.provision.throttle.change(limits);
        Ok(())
    }

    /// So many burst credits were left before a restart ([`LimitsStatus::credits`]). None accrue while nothing is served.
    pub fn set_credits(&self, left: u64) {
        self.provision.throttle.look(|budget, _| budget.set_credits(left));
    }

    /// How it stands against its plan.
    #[must_use]
    pub fn limits_status(&self) -> LimitsStatus {
        let plan = self.plan();
        self.provision.throttle.look(|budget, now| LimitsStatus {
            plan,
            limits: budget.limits().clone(),
            used: self.provision.capacity.used(),
            files: self.provision.capacity.files(),
            credits: budget.credits(now),
            throttled: budget.throttled(),
            waiting: budget.waiting(),
            waits: Limit::ALL
                .iter()
                .map(|limit| (*limit, budget.waits(*limit)))
                .filter(|(_, waits)| waits.operations > 0)
                .collect(),
        })
    }
}

/// A read of so many bytes of an object.
pub(crate) fn read(node: &NodeRef, bytes: u64) -> Operation {
    Operation::Read { file: node.id().0, bytes }
}

/// A write of so many bytes to an object.
pub(crate) fn write(node: &NodeRef, bytes: u64) -> Operation {
    Operation::Write { file: node.id().0, bytes }
}
