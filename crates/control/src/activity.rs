//! What is going on in the shares: `/v1/activity`. Counters since the server started; two looks make a rate.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};
use share::{Api, Protocol, Share};

/// All shares that are served, by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Activity {
    /// The shares.
    pub shares: Vec<ShareActivity>,
}

/// One share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ShareActivity {
    /// Its name.
    pub name: String,
    /// What is provisioned.
    pub plan: String,
    /// What that comes to: operations and bytes in a second, by the limit's name. What is not there is not limited.
    pub limits: BTreeMap<String, u64>,
    /// Bytes that the share holds at most; none without a limit.
    pub capacity_bytes: Option<u64>,
    /// Burst credits that are left; none without bursts.
    pub burst_credits: Option<u64>,
    /// The limits that operations are waiting for at this moment.
    pub throttled: Vec<String>,
    /// Operations that wait for a limit.
    pub waiting: u64,
    /// By protocol and API name: those that were called.
    pub apis: Vec<ApiActivity>,
}

/// The calls of one API name over one protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApiActivity {
    /// The protocol.
    pub protocol: String,
    /// The name.
    pub api: String,
    /// Calls that were answered.
    pub calls: u64,
    /// Those answered with an error.
    pub errors: u64,
    /// Bytes of payload, received and sent.
    pub bytes: u64,
    /// Time from arrival to answer, of all calls together.
    pub seconds: f64,
}

/// What is going on in these shares.
pub(crate) fn of(shares: &[Arc<Share>]) -> Activity {
    Activity { shares: shares.iter().map(|share| of_share(share)).collect() }
}

/// What is going on in a share.
pub(crate) fn of_share(share: &Share) -> ShareActivity {
    let status = share.limits_status();
    let rates = limits::Limit::ALL
        .iter()
        .filter_map(|limit| Some((limit.name().to_owned(), status.limits.rate(*limit)?)));
    ShareActivity {
        name: share.name().to_owned(),
        plan: status.plan.to_string(),
        limits: rates.collect(),
        capacity_bytes: status.limits.capacity,
        burst_credits: status.credits,
        throttled: status.throttled.iter().map(|limit| limit.name().to_owned()).collect(),
        waiting: status.waiting as u64,
        apis: apis(share),
    }
}

fn apis(share: &Share) -> Vec<ApiActivity> {
    let all = Protocol::ALL.iter().flat_map(|protocol| Api::ALL.iter().map(move |api| (*protocol, *api)));
    let of_cell = |(protocol, api): (Protocol, Api)| {
        let cell = share.accounting().cell(api, protocol);
        let calls = cell.calls.load(Ordering::Relaxed);
        (calls > 0).then(|| ApiActivity {
            protocol: protocol.name().to_owned(),
            api: api.name().to_owned(),
            calls,
            errors: cell.errors.load(Ordering::Relaxed),
            bytes: cell.bytes.load(Ordering::Relaxed),
            seconds: seconds(cell.nanos.load(Ordering::Relaxed)),
        })
    };
    all.filter_map(of_cell).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a microsecond in three centuries does not matter")]
fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
