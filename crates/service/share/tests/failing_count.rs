//! What is told when the files of a share cannot be counted for its quotas.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_share::{Settings, Share, ShareId};
use parking_lot::Mutex;
use storage::Error;
use storage::fault::{Call, Fault, FaultyStore, Rule};
use storage::memory::MemoryStore;
use tracing::field::Field;
use tracing::{Event, Level, Metadata, span};

/// The warnings of the log, each with its fields.
#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Log {
    fn lines(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

impl tracing::Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = String::new();
        event.record(&mut |field: &Field, value: &dyn Debug| line += &format!("{}={value:?};", field.name()));
        self.0.lock().push(line);
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "it is not so: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Alone in its program: the thread that counts writes into the log of the whole program.
#[test]
fn a_count_that_fails_is_told_with_its_share_and_the_reason() {
    let log = Arc::<Log>::default();
    tracing::subscriber::set_global_default(Arc::clone(&log)).unwrap();
    let store = Arc::new(FaultyStore::new(Arc::new(MemoryStore::new())));
    let share = Share::new(ShareId(1), Settings::new("films"), Arc::clone(&store) as _);
    store.inject(Rule::always(Call::ReadDir, Fault::Fail(Error::NotSupported)));
    share.set_quota_rules(vec!["7 hard=4KiB".parse().unwrap()]);
    let status = || share.quota_glance().unwrap();
    until("the count has failed", || !status().is_counting);
    assert_eq!(status().counted, None, "nothing was counted");
    let told = log.lines();
    let [line] = &told[..] else { panic!("one line: {told:?}") };
    let message = format!("cannot count what users hold: {}", Error::NotSupported);
    assert!(line.contains(&message) && line.contains("share=\"films\""), "{line}");
    // Once the storage answers again, the next count is as any other, and nothing more is told.
    store.clear();
    share.count_quotas_again();
    until("all is counted", || status().counted.is_some());
    assert_eq!(log.lines(), told);
}
