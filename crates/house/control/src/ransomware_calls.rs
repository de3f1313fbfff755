//! The calls on the ransomware alarms of a share.

use std::sync::Arc;

use axum::extract::{Path, State};

use crate::api::{JsonReply, administer};
use crate::ransomware::{RansomwareAlarm, RansomwareAlarms};
use crate::{About, Refusal, RefusalKind};

pub(crate) async fn list(
    State(about): State<Arc<About>>,
    Path(share): Path<String>,
) -> JsonReply<RansomwareAlarms> {
    administer(about, move |administration| administration.ransomware_alarms(&share)).await
}

pub(crate) async fn end(
    State(about): State<Arc<About>>,
    Path((share, number)): Path<(String, String)>,
) -> JsonReply<RansomwareAlarm> {
    let number = number.parse().map_err(|_| {
        let what = format!("{number} is not the number of an alarm");
        Refusal::new(
            RefusalKind::Invalid,
            what,
            format!("`anabranch share alarms {share}` lists the alarms."),
        )
    })?;
    administer(about, move |administration| administration.end_ransomware_alarm(&share, number)).await
}
