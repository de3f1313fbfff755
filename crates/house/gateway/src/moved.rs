//! Shares that other servers have: clients that come for them are told where they are.

use std::sync::Arc;

use share::{Gone, Protocols, Share, ShareId, ShareTable, Terms};
use state::ServerRecords;

use crate::problem::Result;
use crate::settings::{MovedShare, same_share_name};

/// Has the table of a server tell where these shares are. Those of them that are served here are withdrawn, in the same
/// step, and returned: both servers must end them. A share for which `stays` is true stays, with a warning.
///
/// # Errors
/// The numbers of shares cannot be read or written.
pub(crate) fn tell(
    table: &ShareTable,
    records: &ServerRecords,
    moved: &[MovedShare],
    stays: impl Fn(&str) -> bool,
) -> Result<Vec<Arc<Share>>> {
    // Filehandles that clients keep have the number that goes with the name. All are known before the first share is withdrawn.
    let numbers = moved.iter().map(|share| records.share_id(&share.name).map(ShareId));
    let numbers = numbers.collect::<std::result::Result<Vec<_>, _>>()?;
    let mut withdrawn = Vec::new();
    for (MovedShare { name, addresses }, id) in moved.iter().zip(numbers) {
        if stays(name) {
            tracing::warn!(
                "the share {name} is said to have moved, and is served: it was created by command (anabranch share remove {name})"
            );
            continue;
        }
        let is_hidden = is_hidden(table, name);
        let gone = Gone { id, name: name.clone(), addresses: addresses.clone(), is_hidden };
        match table.has_gone(gone) {
            Ok(share) => withdrawn.extend(share),
            Err(error) => tracing::error!("the share {name} is said to have moved: {error}"),
        }
    }
    for share in &withdrawn {
        tracing::info!("the share {} has moved to another server", share.name());
    }
    Ok(withdrawn)
}

/// Whether lists of shares leave out a share that has moved: not all clients were to see it when it was here. Of one that was not here since
/// the start, nobody knows.
fn is_hidden(table: &ShareTable, name: &str) -> bool {
    let present = table.present();
    if let Some(share) = present.by_name(name) {
        let rules = share.rules();
        let is_for_some = !rules.protocols.contains(Protocols::NFS) || !rules.clients.is_empty();
        return is_for_some || share.terms().contains(Terms::HIDDEN);
    }
    present.gone_by_name(name).is_some_and(|gone| gone.is_hidden)
}

/// Has the table tell of no other shares where they are. To be called when those that are served again have been entered, so that
/// clients find them all the time.
pub(crate) fn forget_others(table: &ShareTable, moved: &[MovedShare]) {
    for gone in table.present().gone() {
        if !moved.iter().any(|moved| same_share_name(&moved.name, &gone.name)) {
            table.is_gone_no_more(&gone.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use share::Settings;
    use state::State;
    use storage::memory::MemoryStore;

    use super::*;

    fn moved(name: &str, address: &str) -> MovedShare {
        MovedShare { name: name.to_owned(), addresses: vec![address.parse().unwrap()] }
    }

    #[test]
    fn lists_leave_out_what_they_have_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let state = State::open(&directory.path().join("state")).unwrap();
        let records = state.server();
        let number = ShareId(records.share_id("data").unwrap());
        let settings = Settings { terms: Terms::HIDDEN, ..Settings::new("data") };
        let table = ShareTable::new([Share::new(number, settings, Arc::new(MemoryStore::new()))]).unwrap();
        for address in ["192.0.2.1:2049", "192.0.2.2:2049"] {
            tell(&table, records, &[moved("data", address), moved("never", address)], |_| false).unwrap();
            let is_hidden = |name: &str| table.present().gone_by_name(name).unwrap().is_hidden;
            assert_eq!((is_hidden("data"), is_hidden("never")), (true, false), "{address}");
        }
    }

    #[test]
    fn a_table_tells_of_the_shares_that_have_moved_and_of_no_others() {
        let directory = tempfile::tempdir().unwrap();
        let state = State::open(&directory.path().join("state")).unwrap();
        let records = state.server();
        let number = |name: &str| ShareId(records.share_id(name).unwrap());
        let share = |name: &str| Share::new(number(name), Settings::new(name), Arc::new(MemoryStore::new()));
        let table = ShareTable::new([share("data"), share("made")]).unwrap();
        let all =
            [moved("data", "192.0.2.1:2049"), moved("made", "192.0.2.1:2049"), moved("never", "192.0.2.2:1")];
        let withdrawn = tell(&table, records, &all, |name| name == "made").unwrap();
        let names: Vec<_> = withdrawn.iter().map(|share| share.name()).collect();
        assert_eq!(names, ["data"]);
        let told = |name: &str| table.present().gone_by_id(number(name)).map(|gone| gone.addresses.clone());
        assert_eq!(told("data"), Some(all[0].addresses.clone()));
        assert_eq!(told("never"), Some(all[2].addresses.clone()));
        assert!(told("made").is_none() && table.present().by_name("made").is_some());
        // Told again: nothing else is withdrawn, and what is elsewhere now is told.
        let again = [moved("Data", "192.0.2.3:2049")];
        assert!(tell(&table, records, &again, |_| false).unwrap().is_empty());
        forget_others(&table, &again);
        assert_eq!((told("data"), told("never")), (Some(again[0].addresses.clone()), None));
        forget_others(&table, &[]);
        assert!(told("data").is_none());
    }
}
