//! The plan of a share and its budget ([`crate::budget`]).

use std::time::{Duration, SystemTime};

use accounting::{AlreadyRecording, Recorded};
use limits::{ChangeError, Plan, Provisioned};

use crate::{Call, LimitsStatus, Share};

impl Share {
    /// Charges an operation to the budget, and waits if there is none left, before anything else is done for the operation.
    /// Reads and writes are charged by their size, after their permission was checked.
    pub async fn take_turn(&self, call: &Call) {
        self.budget.take_turn(call).await;
    }

    /// Whether operations may have to wait for the budget of the share, or are recorded.
    #[must_use]
    pub fn asks_for_turns(&self) -> bool {
        self.budget.asks_for_turns()
    }

    /// Records the operations of clients on the share for this time.
    ///
    /// # Errors
    /// [`AlreadyRecording`].
    pub fn record(&self, time: Duration) -> Result<(), AlreadyRecording> {
        self.budget.record(time)
    }

    /// What was recorded since the last fetch; None if nothing is being recorded or everything was fetched.
    #[must_use]
    pub fn take_recorded(&self) -> Option<Recorded> {
        self.budget.take_recorded()
    }

    /// The plan of the share.
    #[must_use]
    pub fn plan(&self) -> Plan {
        self.budget.plan()
    }

    /// The plan of the share, and when it was last increased: to be kept over a restart of the server
    /// ([`Settings::provisioned`](crate::Settings::provisioned)).
    #[must_use]
    pub fn provisioned(&self) -> Provisioned {
        self.budget.provisioned()
    }

    /// Changes the plan while clients work. Waiting operations continue under the new plan.
    ///
    /// # Errors
    /// [`ChangeError`] for a limit that may not be decreased yet.
    pub fn set_plan(&self, plan: Plan, now: SystemTime) -> Result<(), ChangeError> {
        self.budget.set_plan(plan, now)
    }

    /// Restores the burst credits left before a restart ([`LimitsStatus::credits`]). None accrue while the share is not
    /// served.
    pub fn set_credits(&self, left: u64) {
        self.budget.set_credits(left);
    }

    /// The present state of the plan and its budget.
    #[must_use]
    pub fn limits_status(&self) -> LimitsStatus {
        self.budget.limits_status()
    }

    /// The most bytes of one file by the plan; `u64::MAX` where the plan says nothing.
    #[must_use]
    pub fn file_bytes_max(&self) -> u64 {
        self.budget.capacity().file_bytes_max()
    }
}
