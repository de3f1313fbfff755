//! Shares from what is written down of them: at the start, and when one is made.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use limits::Provisioned;
use share::{Share, ShareId, ShareTable, folded_name};
use storage::Storage;
use storage::fault::{Call, Fault, FaultyStore, Rule};

use crate::administration::{Declared, DeclaredShare, Idle};
use crate::problem::{Cause, Problem, Result};
use crate::records::ShareRecord;
use crate::state::State;
use crate::{burst_credits, directories, servers};

/// The shares that the configuration declares and those made by command. One of the latter that cannot be served holds up
/// nobody: the reason is kept.
///
/// # Errors
/// What the configuration declares cannot be served.
pub(crate) fn open_all(
    declared: &Declared,
    state: &State,
    opens_max: usize,
) -> Result<(Arc<ShareTable>, Idle)> {
    let mut shares = Vec::new();
    for DeclaredShare { given, directory } in &declared.shares {
        let settings = share::Settings {
            terms: given.terms,
            provisioned: Provisioned::new(given.plan.clone()),
            metadata_cache: given.metadata_cache,
            accounting: !declared.is_uncounted,
            ..share::Settings::new(&given.name)
        };
        let store = servers::open_store(&given.name, directory, state)?;
        let store = match declared.metadata_latency {
            Some(by) => slowed(store, by),
            None => store,
        };
        shares.push(open(settings, store, state, opens_max)?);
    }
    let table = ShareTable::new(shares).map_err(|e| Problem::new(Cause::Settings, e.to_string(), ""))?;
    let mut idle = HashMap::new();
    for record in state.made_shares()? {
        if let Err(problem) = enter_made(&record, declared, state, &table, opens_max) {
            tracing::warn!("the share {} is not served: {}", record.name, problem.what);
            idle.insert(folded_name(&record.name), problem.what);
        }
    }
    Ok((table, idle))
}

/// Why a share made by command is not served while the configuration declares one of its name.
pub(crate) fn shadowed(name: &str, place: &str) -> String {
    format!("{place} declares a share {name}, which goes before")
}

fn enter_made(
    record: &ShareRecord,
    declared: &Declared,
    state: &State,
    table: &ShareTable,
    opens_max: usize,
) -> Result<()> {
    let refuse = |what: String| Err(Problem::new(Cause::Directory, what, ""));
    if table.present().by_name(&record.name).is_some() {
        return refuse(shadowed(&record.name, &declared.shares_in));
    }
    let of_record = (record.name.clone(), record.directory.clone());
    for DeclaredShare { given, directory } in &declared.shares {
        let both = [of_record.clone(), (given.name.clone(), directory.clone())];
        if !directories::overlapping(&both).is_empty() {
            let (name, place) = (&given.name, &declared.shares_in);
            return refuse(format!(
                "its directory {} and that of the share {name}, which {place} declares, lie in each other",
                record.directory.display()
            ));
        }
    }
    let share = open_made(record, state, opens_max)?;
    table.enter(&share).map_err(|e| Problem::new(Cause::State, e.to_string(), ""))
}

/// A share made by command.
///
/// # Errors
/// Its directory cannot be served, or its plan is one that this program does not know.
pub(crate) fn open_made(record: &ShareRecord, state: &State, opens_max: usize) -> Result<Arc<Share>> {
    let directory = directories::check(&record.name, &record.directory, record.terms())?;
    let settings = share::Settings {
        terms: record.terms(),
        provisioned: record.provisioned()?,
        metadata_cache: !record.uncached,
        ..share::Settings::new(&record.name)
    };
    let store = servers::open_store(&record.name, &directory, state)?;
    open(settings, store, state, opens_max)
}

/// A store whose metadata is far away.
fn slowed(store: Arc<dyn Storage>, by: Duration) -> Arc<dyn Storage> {
    let store = FaultyStore::new(store);
    for call in Call::METADATA {
        store.inject(Rule::always(call, Fault::Slow(Arc::new(move || std::thread::sleep(by)))));
    }
    Arc::new(store)
}

fn open(
    settings: share::Settings,
    store: Arc<dyn Storage>,
    state: &State,
    opens_max: usize,
) -> Result<Arc<Share>> {
    let id = ShareId(state.share_id(&settings.name)?);
    let opens_max = settings.opens_max.min(opens_max);
    let share = Share::new(id, share::Settings { opens_max, ..settings }, store);
    burst_credits::restore(&share, state)?;
    Ok(share)
}
