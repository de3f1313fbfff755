//! What is provisioned for a share, and how much of it is left.

use std::time::SystemTime;

use limits::{ChangeError, Limit, Limits, Plan, Provisioned};
use parking_lot::Mutex;

use crate::Share;

/// The plan of a share.
#[derive(Debug)]
pub(crate) struct Provision {
    /// The plan that holds now.
    provisioned: Mutex<Provisioned>,
}

/// How a share stands against its plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitsStatus {
    /// The plan.
    pub plan: Plan,
    /// What it comes to.
    pub limits: Limits,
    /// Burst credits that are left; `None` without bursts.
    pub credits: Option<u64>,
    /// What operations are waiting for at this moment.
    pub throttled: Vec<Limit>,
    /// Operations that are waiting.
    pub waiting: usize,
}

impl Provision {
    pub(crate) fn new(provisioned: Provisioned) -> Self {
        Self { provisioned: Mutex::new(provisioned) }
    }
}

impl Share {
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
        Ok(())
    }

    /// How it stands against its plan.
    #[must_use]
    pub fn limits_status(&self) -> LimitsStatus {
        let plan = self.plan();
        let limits = plan.limits();
        LimitsStatus { limits, plan, credits: None, throttled: Vec::new(), waiting: 0 }
    }
}
