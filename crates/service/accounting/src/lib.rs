//! What the calls of clients cost, by client and API name: how many, how long, how much data, and what they waited for.
//!
//! This crate knows neither shares nor protocols. Who makes a call describes it ([`Api`]) and, when it has ended, says what it
//! has cost ([`Cost`], [`Ending`]).

mod account;
mod api;
mod client;
mod cost;
mod counts;
mod in_use;
mod trace;

pub use account::{Account, Accounting, Accounts, CLIENTS_AWAY_MAX, CLIENTS_MAX};
pub use api::{APIS_MAX, Api, Direction};
pub use client::Client;
pub use cost::{Cost, Ending, Outcome, Waits};
pub use counts::{
    Counts, HISTOGRAM_BUCKETS, Record, SIZE_BUCKETS, Waited, bucket_limit, bucket_of, response_type,
    size_limit,
};
pub use in_use::{InUse, Used};
pub use trace::{AlreadyRecording, Recorded, Recorder, Traced, TracedData};
