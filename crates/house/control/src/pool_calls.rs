//! The call on pools.

use std::sync::Arc;

use axum::extract::State;

use crate::About;
use crate::api::{JsonReply, administer};
use crate::pools::Pools;

pub(crate) async fn list(State(about): State<Arc<About>>) -> JsonReply<Pools> {
    administer(about, |administration| administration.pools()).await
}
