//! The budget of a share: its plan, and what is left of what the plan provides.
//!
//! This part knows no other part of a share. It counts what the share holds by walking from the share's root. Who changes
//! files tells it before and after ([`Capacity::grow`]).

mod capacity;
mod slowed;
mod throttle;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use accounting::{AlreadyRecording, Recorded, Recorder, TracedData};
use limits::{ChangeError, Handles, Limit, Limits, Operation, Plan, Provisioned, Waits};
use parking_lot::Mutex;
use storage::{NodeRef, ObjectId};

use self::capacity::Capacity;
use self::slowed::Slowed;
use self::throttle::Throttle;
use crate::Call;
use crate::agreement::Opener;
use crate::operation::Turn;

/// The plan of a share, and what is left of its budget.
///
/// Locks: that of the plan comes first, then that of the throttle, then that of the capacity. None is held across a call to the
/// store or an await.
#[derive(Debug)]
pub(crate) struct Provision {
    root: ObjectId,
    /// Guards the present plan.
    provisioned: Mutex<Provisioned>,
    /// [`PACED`], [`RECORDED`] and [`SLOWED`]. A share that is none of them checks only this.
    asked: AtomicU8,
    recorder: Recorder,
    throttle: Arc<Throttle>,
    slowed: Slowed,
    capacity: Capacity,
    opens: OpensMax,
}

/// Limits on opens; `u64::MAX` where the plan says nothing.
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
/// Some clients are slowed.
const SLOWED: u8 = 4;

/// The present state of a share's plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitsStatus {
    /// The plan.
    pub plan: Plan,
    /// The limits that follow from the plan.
    pub limits: Limits,
    /// The sum of the files' sizes in bytes, once counted: only for a plan with a size.
    pub used: Option<u64>,
    /// The number of files and directories when last counted (Azure Monitor: FileCount).
    pub files: Option<u64>,
    /// Burst credits left; `None` without bursts.
    pub credits: Option<u64>,
    /// The limits that operations are waiting for at this moment.
    pub throttled: Vec<Limit>,
    /// Operations that are waiting.
    pub waiting: usize,
    /// How much operations have waited for each limit; only limits that caused waits.
    pub waits: Vec<(Limit, Waits)>,
}

impl Provision {
    /// The budget of the share with this name and root.
    pub(crate) fn new(provisioned: Provisioned, name: &str, root: &NodeRef) -> Self {
        let limits = provisioned.plan.limits();
        Self {
            root: root.id(),
            asked: AtomicU8::new(if limits.has_rates() { PACED } else { 0 }),
            recorder: Recorder::default(),
            capacity: Capacity::new(&limits, name, root),
            opens: OpensMax::new(&limits),
            throttle: Arc::new(Throttle::new(limits)),
            slowed: Slowed::default(),
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

    /// Charges an operation to the budget, and waits if there is none left, before anything else is done for the operation.
    /// Reads and writes are charged by their size, after their permission was checked.
    pub(crate) async fn take_turn(&self, call: &Call) {
        let turn = call.operation().turn;
        if matches!(turn, Turn::ByData(_)) {
            return;
        }
        call.takes_turn();
        if !self.asks_for_turns() {
            return;
        }
        self.note(call, None, None);
        match turn {
            Turn::Charged if self.is_paced() => {
                self.throttle.charge(call.caller.machine.number(), Operation::Metadata);
            }
            Turn::ByData(_) | Turn::Charged => {}
            Turn::Waits => Box::pin(self.pass(call, Operation::Metadata)).await,
        }
    }

    /// Whether the plan allows one more open, given the present number of opens of the object and of the share. Opens beyond
    /// the limits of a new plan stay.
    pub(crate) fn check_opens(&self, node: &NodeRef, of_object: usize, of_share: usize) -> crate::Result<()> {
        let opens = &self.opens;
        let of_object_max = if node.id() == self.root { &opens.root } else { &opens.file };
        let is_full = |opens: usize, most: &AtomicU64| opens as u64 >= most.load(Ordering::Relaxed);
        if is_full(of_object, of_object_max) || is_full(of_share, &opens.share) {
            return Err(crate::Error::TooManyOpens);
        }
        Ok(())
    }

    /// How much the share may hold, and how much of that is used.
    pub(crate) fn capacity(&self) -> &Capacity {
        &self.capacity
    }

    /// Whether operations may have to wait for the budget of the share.
    pub(crate) fn is_paced(&self) -> bool {
        self.asks(PACED)
    }

    /// Whether operations may have to wait for the budget of the share, or are recorded.
    pub(crate) fn asks_for_turns(&self) -> bool {
        self.asks(PACED | RECORDED | SLOWED)
    }

    /// Holds these clients to one operation a second, and no others. They are asked for while nobody else sets them.
    pub(crate) fn slow(&self, clients: impl FnOnce() -> Vec<Opener>) {
        self.slowed.set(clients, |are_any| self.ask(SLOWED, are_any));
    }

    /// Records the operations of clients on the share for this time.
    ///
    /// # Errors
    /// [`AlreadyRecording`].
    pub(crate) fn record(&self, time: Duration) -> Result<(), AlreadyRecording> {
        self.recorder.begin(Instant::now(), time)?;
        self.ask(RECORDED, true);
        Ok(())
    }

    /// What was recorded since the last fetch; None if nothing is being recorded or everything was fetched.
    pub(crate) fn take_recorded(&self) -> Option<Recorded> {
        let taken = self.recorder.take(Instant::now());
        if taken.as_ref().is_none_or(|taken| taken.is_over) {
            self.ask(RECORDED, false);
        }
        taken
    }

    /// If recording is on, records an operation that arrived at this time, or just now.
    pub(crate) fn note(&self, call: &Call, arrived: Option<Instant>, data: Option<TracedData>) {
        if self.asks(RECORDED) {
            let arrived = arrived.unwrap_or_else(Instant::now);
            if !self.recorder.note(arrived, (&call.operation().api, call.caller.machine), data) {
                self.ask(RECORDED, false);
            }
        }
    }

    /// Waits until the budget allows an operation.
    pub(crate) async fn pass(&self, call: &Call, operation: Operation) {
        if self.asks(SLOWED) {
            let [client, _] = call.caller.openers;
            if let Some(time) = Box::pin(self.slowed.wait(client)).await {
                call.waited_as_slowed(time);
            }
        }
        if !self.is_paced() {
            return;
        }
        if let Some(released) = self.throttle.pass(call.caller.machine.number(), operation).await {
            call.waited_for_budget(released.limit, released.waited);
        }
    }

    /// Returns budget of a read that found `unused` bytes fewer than it asked for.
    pub(crate) fn put_back(&self, call: &Call, operation: Operation, unused: usize) {
        if unused > 0 && self.is_paced() {
            self.throttle.put_back(call.caller.machine.number(), operation, unused as u64);
        }
    }

    /// The plan of the share.
    pub(crate) fn plan(&self) -> Plan {
        self.provisioned.lock().plan.clone()
    }

    /// The plan of the share, and when it was last increased: to be kept over a restart of the server
    /// ([`Settings::provisioned`](crate::Settings::provisioned)).
    pub(crate) fn provisioned(&self) -> Provisioned {
        self.provisioned.lock().clone()
    }

    /// Changes the plan while clients work. Waiting operations continue under the new plan.
    ///
    /// # Errors
    /// [`ChangeError`] for a limit that may not be decreased yet.
    pub(crate) fn set_plan(&self, plan: Plan, now: SystemTime) -> Result<(), ChangeError> {
        let mut provisioned = self.provisioned.lock();
        *provisioned = provisioned.change(plan, now)?;
        let limits = provisioned.plan.limits();
        // Both under the plan's lock, so that of two changes the later one wins in both.
        self.ask(PACED, limits.has_rates());
        self.capacity.change(&limits);
        self.opens.change(&limits);
        self.throttle.change(limits);
        Ok(())
    }

    /// Restores the burst credits left before a restart ([`LimitsStatus::credits`]). None accrue while the share is not
    /// served.
    pub(crate) fn set_credits(&self, left: u64) {
        self.throttle.look(|budget, _| budget.set_credits(left));
    }

    /// The present state of the plan and its budget.
    pub(crate) fn limits_status(&self) -> LimitsStatus {
        let plan = self.plan();
        self.throttle.look(|budget, now| LimitsStatus {
            plan,
            limits: budget.limits().clone(),
            used: self.capacity.used(),
            files: self.capacity.files(),
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
    Operation::Read { file: node.id().number, bytes }
}

/// A write of so many bytes to an object.
pub(crate) fn write(node: &NodeRef, bytes: u64) -> Operation {
    Operation::Write { file: node.id().number, bytes }
}

#[cfg(test)]
mod tests {
    use storage::Storage;
    use storage::memory::MemoryStore;

    use super::*;
    use crate::Error;
    use crate::call::of_tests::{LOOKUP, READ};
    use crate::{Caller, Identity, Proof};

    fn budget(plan: &str) -> (Provision, NodeRef) {
        let root = MemoryStore::new().root();
        let provisioned = Provisioned { plan: plan.parse().unwrap(), ..Provisioned::default() };
        (Provision::new(provisioned, "data", &root), root)
    }

    fn call(operation: &'static crate::Operation) -> Call {
        Call::new(operation, Caller::new(Identity::unix(0, 0, Vec::new()), Proof::Stated), Instant::now())
    }

    #[tokio::test]
    async fn every_operation_has_its_turn_but_those_that_move_data() {
        let (budget, _) = budget("unlimited");
        let (lookup, read) = (call(&LOOKUP), call(&READ));
        budget.take_turn(&lookup).await;
        budget.take_turn(&read).await;
        assert!(lookup.has_had_turn() && !read.has_had_turn());
        assert!(!budget.asks_for_turns() && !budget.is_paced());
    }

    #[test]
    fn opens_are_limited_for_each_object_and_for_all() {
        let (budget, root) = budget("unlimited");
        assert!(budget.check_opens(&root, 1 << 40, 1 << 40).is_ok());
        let limits = budget.limits_status().limits;
        budget
            .opens
            .change(&Limits { handles: Handles { root: Some(2), file: Some(1), share: Some(5) }, ..limits });
        assert!(budget.check_opens(&root, 1, 4).is_ok());
        assert_eq!(budget.check_opens(&root, 2, 4), Err(Error::TooManyOpens));
        assert_eq!(budget.check_opens(&root, 1, 5), Err(Error::TooManyOpens));
    }

    #[test]
    fn what_is_recorded_is_asked_for_until_it_was_fetched() {
        let (budget, _) = budget("unlimited");
        assert!(budget.take_recorded().is_none());
        budget.record(Duration::from_secs(3600)).unwrap();
        assert!(budget.record(Duration::from_secs(1)).is_err(), "once at a time");
        assert!(budget.asks_for_turns() && !budget.is_paced());
        let read = call(&READ);
        budget.note(&read, None, Some(TracedData { file: 1, offset: 0, bytes: 7 }));
        assert!(!budget.take_recorded().unwrap().is_over);
        assert!(budget.asks_for_turns());
    }

    #[test]
    fn a_plan_with_rates_paces_and_one_without_does_not() {
        let (budget, _) = budget("custom iops=100");
        assert!(budget.is_paced());
        budget.set_plan("unlimited".parse().unwrap(), SystemTime::now()).unwrap();
        assert!(!budget.is_paced() && budget.limits_status().throttled.is_empty());
    }
}
