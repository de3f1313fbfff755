//! What is provisioned for a share: its budget, and how much of it is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use limits::{ChangeError, Limit, Limits, Operation, Plan, Provisioned, Waits};
use parking_lot::Mutex;
use storage::NodeRef;

use crate::capacity::Capacity;
use crate::throttle::Throttle;
use crate::{Api, Caller, Share, timings};

/// The plan of a share.
#[derive(Debug)]
pub(crate) struct Provision {
    /// The plan that holds now.
    provisioned: Mutex<Provisioned>,
    /// Whether an operation may have to wait: all that an unlimited share asks.
    is_paced: AtomicBool,
    throttle: Arc<Throttle>,
    capacity: Capacity,
}

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
            is_paced: AtomicBool::new(limits.has_rates()),
            capacity: Capacity::new(limits.capacity),
            throttle: Arc::new(Throttle::new(limits)),
            provisioned: Mutex::new(provisioned),
        }
    }
}

/// How an operation counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    /// Where the data is moved ([`Share::read`], [`Share::write`]), by its size.
    ByData,
    /// It waits for its turn.
    Waits,
    /// It counts, but is not held back: others wait for what it gives up, or it waits for something else.
    Charged,
}

/// How the operation of this name counts against the budget.
fn count(api: Api) -> Count {
    match api {
        Api::Read | Api::ReadPlus | Api::Write => Count::ByData,
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
        | Api::OpenDowngrade => Count::Charged,
        _ => Count::Waits,
    }
}

impl Share {
    /// Takes an operation's part of the budget, and waits for it if there is none left: before anything else is done for
    /// the operation. Reads and writes take theirs when their permission is checked, by their size.
    pub async fn take_turn(&self, caller: &Caller, api: Api) {
        if !self.is_paced() {
            return;
        }
        match count(api) {
            Count::ByData => {}
            Count::Charged => self.provision.throttle.charge(caller.machine.number(), Operation::Metadata),
            Count::Waits => self.pass(caller, Operation::Metadata).await,
        }
    }

    pub(crate) fn capacity(&self) -> &Capacity {
        &self.provision.capacity
    }

    /// Whether operations may have to wait for its budget.
    #[must_use]
    pub fn is_paced(&self) -> bool {
        self.provision.is_paced.load(Ordering::Relaxed)
    }

    /// Waits until an operation may go on.
    pub(crate) async fn pass(&self, caller: &Caller, operation: Operation) {
        if let Some(released) = self.provision.throttle.pass(caller.machine.number(), operation).await {
            timings::waited(released.limit, released.waited);
        }
    }

    /// A read that was let through has found so many bytes fewer than it asked for.
    pub(crate) fn put_back(&self, caller: &Caller, operation: Operation, unused: usize) {
        if unused > 0 {
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
        self.provision.is_paced.store(limits.has_rates(), Ordering::Relaxed);
        self.provision.capacity.change(limits.capacity);
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
