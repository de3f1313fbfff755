//! Shares of vservers in the register.

use share::Terms;

use super::NewGateway;
use crate::cluster::{Coming, Register, SharesServed, VserverRecord, VserverShareRecord};

/// A share that moves is in the records of both vservers, or nothing has changed.
pub(super) fn a_share_moves_in_two_records_at_once(gateway: NewGateway<'_>) {
    let [of_a, of_b] = ["node e", "node f"].map(|name| Register::open(&gateway(name)).unwrap().unwrap());
    let share = VserverShareRecord::plain("data", "cephfs:/data", Terms::empty(), "");
    for name in ["from", "to"] {
        let record = VserverRecord { name: name.to_owned(), ..VserverRecord::default() };
        assert!(of_a.add_vserver(&record).unwrap());
    }
    let seen = |name: &str| of_b.vserver(name).unwrap().unwrap();
    assert!(
        of_a.change_vserver(&seen("from"), Some(&seen("from").record.with_share(share.clone()))).unwrap()
    );
    assert!(of_b.vserver("other").unwrap().is_none());

    let (from, to) = (seen("from"), seen("to"));
    let mut without = from.record.without_share("data");
    without.went.insert("data".to_owned(), "to".to_owned());
    let coming = Coming::From { vserver: "from".to_owned(), change: without.share_changes };
    let with = to.record.with_share(VserverShareRecord { coming: Some(coming), ..share });
    // One of the two has changed meanwhile.
    let busy = VserverRecord { gateway: "node f".to_owned(), ..to.record.clone() };
    assert!(of_a.change_vserver(&to, Some(&busy)).unwrap());
    assert!(!of_a.change_two_vservers([(&from, &without), (&to, &with)]).unwrap());
    assert_eq!((seen("from").record, seen("to").record), (from.record.clone(), busy));
    assert!(of_a.change_two_vservers([(&from, &without), (&seen("to"), &with)]).unwrap());
    assert_eq!((seen("from").record, seen("to").record), (without, with));

    let served = SharesServed {
        epoch: 3,
        changes: 2,
        problems: [("data".to_owned(), "no".to_owned())].into(),
        ..SharesServed::default()
    };
    assert_eq!(of_a.shares_served("from").unwrap(), None);
    assert!(of_a.set_shares_served("from", &served).unwrap());
    // Who served it before, and comes late, says nothing.
    for (epoch, changes) in [(2, 9), (3, 1)] {
        let late = SharesServed { epoch, changes, ..SharesServed::default() };
        assert!(!of_b.set_shares_served("from", &late).unwrap());
    }
    assert_eq!(
        (of_b.shares_served("from").unwrap(), of_b.shares_served("to").unwrap()),
        (Some(served), None)
    );
    // What was told of a vserver ends with it.
    for name in ["from", "to"] {
        assert!(of_b.change_vserver(&seen(name), None).unwrap());
    }
    assert_eq!(of_b.shares_served("from").unwrap(), None);
}
