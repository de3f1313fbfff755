//! Who may open how much, and who makes room.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use anabranch_share::{Courtesy, Opener};
use parking_lot::Mutex;

use super::*;

fn small() -> Arc<Share> {
    let settings = Settings { opens_max: 8, ..Settings::new("small") };
    Share::new(ShareId(1), settings, Arc::new(MemoryStore::new()))
}

fn open_for(share: &Arc<Share>, found: &Found, opener: Opener) -> Result<Admission<Arc<Open>>, Error> {
    let openers = [Some(opener), None];
    let request = OpenRequest { openers, ..OpenRequest::new(Access::READ_DATA, Sharing::all()) };
    share.open_granted(found, &request)
}

fn opened(share: &Arc<Share>, found: &Found, opener: Opener) -> Option<Arc<Open>> {
    match open_for(share, found, opener) {
        Ok(Admission::Done(open)) => Some(open),
        Ok(Admission::Wait(_)) => panic!("it waits"),
        Err(refused) => {
            assert_eq!(refused, Error::LimitReached("opens"));
            None
        }
    }
}

#[tokio::test]
async fn the_last_quarter_is_for_others() {
    let share = small();
    let found = make(&share, &root(), "file", FileKind::Regular, 0o666).await;
    let (one, other) = (Opener::named(1), Opener::named(2));
    let mut held: Vec<_> = (0..6).map(|_| opened(&share, &found, one).unwrap()).collect();
    assert!(opened(&share, &found, one).is_none());
    assert!(share.room_for_open([Some(one), None]).is_err());
    held.push(opened(&share, &found, other).unwrap());
    assert!(opened(&share, &found, one).is_none());
    held.push(opened(&share, &found, other).unwrap());
    assert!(opened(&share, &found, Opener::named(3)).is_none(), "all are taken");
    for open in held.drain(..) {
        share.close(&root(), &open).await.unwrap();
    }
    assert_eq!(
        (0..8).filter_map(|_| opened(&share, &found, one)).count(),
        6,
        "what is closed is not counted"
    );
}

/// Has clients that are late, once.
struct Late {
    share: Arc<Share>,
    opens: Mutex<Vec<Arc<Open>>>,
    asked: AtomicUsize,
}

impl Courtesy for Late {
    fn end_late(self: Arc<Self>, share: ShareId) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        assert_eq!(share, self.share.id());
        self.asked.fetch_add(1, Ordering::Relaxed);
        let late = std::mem::take(&mut *self.opens.lock());
        if late.is_empty() {
            return None;
        }
        Some(Box::pin(async move {
            tokio::task::yield_now().await;
            for open in late {
                self.share.close_unasked(&open).await.unwrap();
            }
        }))
    }
}

#[tokio::test]
async fn clients_that_are_late_give_way_before_anybody_is_refused() {
    let share = small();
    let found = make(&share, &root(), "file", FileKind::Regular, 0o666).await;
    let (late, one, other) = (Opener::named("late"), Opener::named(1), Opener::named(2));
    let opens = (0..6).map(|_| opened(&share, &found, late).unwrap()).collect();
    let host =
        Arc::new(Late { share: Arc::clone(&share), opens: Mutex::new(opens), asked: AtomicUsize::new(0) });
    share.open_by_courtesy_of(&host);
    let _held = [opened(&share, &found, one).unwrap(), opened(&share, &found, one).unwrap()];
    let Ok(Admission::Wait(answering)) = open_for(&share, &found, other) else { panic!("it is refused") };
    let Ok(Admission::Wait(too)) = open_for(&share, &found, one) else { panic!("they are being ended") };
    answering.over().await;
    too.over().await;
    assert!(opened(&share, &found, other).is_some());
    assert_eq!(host.asked.load(Ordering::Relaxed), 1);
    let again: Vec<_> = (0..9).filter_map(|_| opened(&share, &found, other)).collect();
    assert_eq!(again.len(), 3, "with the three that one and other have: three quarters");
    assert!(host.asked.load(Ordering::Relaxed) <= 7, "and nobody is late any more");
}
