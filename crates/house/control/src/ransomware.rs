//! The ransomware alarms of shares in the form of the API: `/v1/shares/{name}/ransomware-alarms`.

use serde::{Deserialize, Serialize};
use share::Share;

use crate::served::called;

/// The alarms of a share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RansomwareAlarms {
    /// The name of the share.
    pub share: String,
    /// The alarms that last, oldest first.
    pub alarms: Vec<RansomwareAlarm>,
}

/// A client replaces the contents of files as ransomware does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RansomwareAlarm {
    /// Its number, unique in the share until the share or the server is started again.
    pub number: u64,
    /// The name with which the user has logged on; none if the client stated a uid, or if it is a guest.
    pub user: Option<String>,
    /// The user's uid.
    pub uid: Option<u32>,
    /// The client's address, or the GUID of an SMB client.
    pub client: Option<String>,
    /// Seconds since the alarm was raised.
    pub age_seconds: u64,
    /// Files in which data that looks random stands in the place of other data.
    pub overwritten: u32,
    /// Files that are gone, for each of which there is a new one that looks random.
    pub replaced: u32,
    /// Files of several kinds that were renamed to one and the same unusual suffix.
    pub renamed: u32,
    /// That suffix.
    pub suffix: Option<String>,
    /// Whether the client is slowed to one operation a second.
    pub slowed: bool,
    /// The snapshot that was taken at the alarm.
    pub snapshot: Option<String>,
    /// Why none was taken, although one was wanted.
    pub snapshot_problem: Option<String>,
}

impl From<share::RansomwareAlarm> for RansomwareAlarm {
    fn from(alarm: share::RansomwareAlarm) -> Self {
        let suspect = alarm.suspect.as_ref();
        let address = |suspect: &share::Suspect| match suspect.address {
            Some(address) => address.to_string(),
            None => suspect.machine.to_string(),
        };
        Self {
            number: alarm.number,
            user: suspect.and_then(|suspect| suspect.user.clone()),
            uid: suspect.map(|suspect| suspect.uid),
            client: suspect.map(address),
            age_seconds: alarm.age.as_secs(),
            overwritten: alarm.count.overwritten,
            replaced: alarm.count.replaced,
            renamed: alarm.count.renamed,
            suffix: alarm.suffix,
            slowed: alarm.is_slowed,
            snapshot: None,
            snapshot_problem: None,
        }
    }
}

/// What there is to say to administrators of the alarms of a share, which may be one of a vserver.
pub(crate) fn reasons(vserver: Option<&str>, share: &Share) -> impl Iterator<Item = String> + use<> {
    let name = called(vserver, share.name());
    share.ransomware_alarms().into_iter().map(move |alarm| {
        let who = alarm.suspect.as_ref().map_or_else(|| "a client".to_owned(), ToString::to_string);
        let files = alarm.count.all();
        format!("share {name}: {who} has replaced the contents of {files} files as ransomware does")
    })
}
