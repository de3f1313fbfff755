//! What every [`ClusterStore`] must do. Its tests call [`check`].
#![expect(clippy::unwrap_used, reason = "a check that fails panics: that is how it tells")]

mod shares;

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::{
    Begun, Claim, ClusterStore, Fenced, GatewayRecord, KEYTAB_BYTES_MAX, LastOwner, Member, NotOwner, Owner,
    Ownership, Register, Seen, Taken, VserverRecord,
};
use crate::records::UserRecord;
use crate::store::{Batch, Change, Form, KeyValue, StoreError, Table};

/// Longer than any check takes, on whatever machine.
const LONG: Duration = Duration::from_secs(600);
/// For what must come, but may come late.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at what may change.
const SHORT: Duration = Duration::from_millis(20);

const TEXTS: Table = Table { name: "texts", form: Form::TextToBytes };
const TABLES: [Table; 5] = [
    TEXTS,
    Table { name: "text", form: Form::TextToU32 },
    Table { name: "counts", form: Form::TextToU64 },
    Table { name: "numbers", form: Form::NumberToBytes },
    Table { name: "bytes", form: Form::BytesToNothing },
];

/// Makes the store as another gateway sees it, from the gateway's name.
pub type NewGateway<'a> = &'a dyn Fn(&str) -> Arc<dyn ClusterStore>;

/// All checks, on a store in which nothing is yet.
pub fn check(gateway: NewGateway<'_>) {
    one_holds_a_lease(gateway);
    a_lease_runs_out(gateway);
    an_owner_is_followed_by_one(gateway);
    records_are_what_was_written(gateway, 1);
    a_batch_is_written_whole(gateway);
    who_is_not_the_owner_any_more_changes_nothing(gateway);
    who_is_fenced_is_refused(gateway);
    who_listens_is_told(gateway);
    a_vserver_is_handed_over(gateway);
    a_dead_gateway_is_followed(gateway);
    the_session_of_a_dead_gateway_is_refused(gateway);
    a_session_is_left_until_it_has_been_ended(gateway);
    a_vserver_is_taken_again_by_its_owner(gateway);
    gateways_agree_on_who_serves_what(gateway);
    who_cannot_be_read_is_told_apart(gateway);
    gateways_have_the_same_users(gateway);
    a_keytab_is_there_as_long_as_its_vserver(gateway);
    shares::a_share_moves_in_two_records_at_once(gateway);
}

fn until(taken: Taken) -> Instant {
    match taken {
        Taken::Until(until) => until,
        Taken::By(holder) => panic!("{holder:?} has it"),
    }
}

fn one_holds_a_lease(gateway: NewGateway<'_>) {
    let (a, b) = (gateway("a"), gateway("b"));
    assert_eq!(a.lease_holder("one").unwrap(), None);
    assert_eq!(a.renew_lease("one", LONG).unwrap(), None, "nobody has it");
    let before = Instant::now();
    let first = until(a.take_lease("one", LONG).unwrap());
    assert!(before + LONG <= first && first <= Instant::now() + LONG);

    let Taken::By(holder) = b.take_lease("one", LONG).unwrap() else { panic!("both have it") };
    assert_eq!(holder.gateway, "a");
    assert_eq!(b.lease_holder("one").unwrap(), Some(holder));
    assert_eq!(b.renew_lease("one", LONG).unwrap(), None, "it is another's");
    b.end_lease("one").unwrap();
    assert!(a.renew_lease("one", LONG).unwrap().unwrap() >= first, "another cannot end it");
    assert!(until(a.take_lease("one", LONG).unwrap()) >= first, "who has it may take it again");
    assert!(
        matches!(gateway("a").take_lease("one", LONG).unwrap(), Taken::By(_)),
        "the name alone is not enough"
    );

    until(b.take_lease("another", LONG).unwrap());
    a.end_lease("one").unwrap();
    assert_eq!(a.renew_lease("one", LONG).unwrap(), None, "it was ended");
    until(b.take_lease("one", LONG).unwrap());
}

fn a_lease_runs_out(gateway: NewGateway<'_>) {
    let (a, b) = (gateway("a"), gateway("b"));
    // From before the call: however late the answer comes, the lease does not begin earlier.
    let begun = Instant::now();
    until(a.take_lease("short", Duration::from_secs(1)).unwrap());
    while let Taken::By(holder) = b.take_lease("short", LONG).unwrap() {
        assert_eq!(holder.gateway, "a");
        assert!(begun.elapsed() < PATIENCE, "it never runs out");
        thread::sleep(Duration::from_millis(50));
    }
    assert!(begun.elapsed() >= Duration::from_millis(900), "it ran out early");
    assert_eq!(a.renew_lease("short", LONG).unwrap(), None, "what ran out is not renewed");
    assert_eq!(a.lease_holder("short").unwrap().unwrap().gateway, "b");
}

fn an_owner_is_followed_by_one(gateway: NewGateway<'_>) {
    let (a, b) = (gateway("a"), gateway("b"));
    assert_eq!(a.owner("owned").unwrap(), None);
    let first = a.take("owned", None).unwrap().unwrap();
    assert_eq!(first, Owner { epoch: 1, gateway: "a".into() });
    assert_eq!(b.take("owned", None).unwrap(), None, "it has an owner");
    assert_eq!(b.owner("owned").unwrap(), Some(first.clone()));

    let takers: Vec<_> = (0..8)
        .map(|number| {
            let (gateway, seen) = (gateway(&format!("taker {number}")), first.clone());
            thread::spawn(move || gateway.take("owned", Some(&seen)).unwrap())
        })
        .collect();
    let winners: Vec<_> = takers.into_iter().filter_map(|taker| taker.join().unwrap()).collect();
    let [winner] = &winners[..] else { panic!("{winners:?}") };
    assert_eq!(winner.epoch, 2);
    assert_eq!(a.owner("owned").unwrap().as_ref(), Some(winner));
    assert_eq!(a.take("owned", Some(&first)).unwrap(), None, "it was the owner before");
}

/// A number below `end` that looks like chance.
fn dice(state: &mut u64, end: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*state >> 33).unwrap() % end
}

fn any_key(table: Table, state: &mut u64) -> Vec<u8> {
    match table.form {
        Form::NumberToBytes => [0, 1, 255, 256, 65_536, u64::MAX][dice(state, 6)].to_le_bytes().to_vec(),
        Form::BytesToNothing => {
            [&b""[..], b"\0", b"\0\0", b"\x01", b"\x01\x01", b"\x01\x02", b"\x02", b"\xff\xff", b"a"]
                [dice(state, 9)]
            .to_vec()
        }
        _ => ["", "\0", "\u{1}", "a", "a\0", "ab", "\u{e4}", "\u{10ffff}"][dice(state, 8)].into(),
    }
}

fn any_value(table: Table, state: &mut u64) -> Vec<u8> {
    let length = match table.form {
        Form::TextToU32 => 4,
        Form::TextToU64 => 8,
        Form::TextToHash => 16,
        Form::BytesToNothing => 0,
        Form::TextToBytes | Form::NumberToBytes => [0, 1, 3, 300][dice(state, 4)],
    };
    (0..length).map(|_| u8::try_from(dice(state, 256)).unwrap()).collect()
}

/// The records as they must be.
#[derive(Default)]
struct Model(BTreeMap<(&'static str, Vec<u8>), Vec<u8>>);

impl Model {
    fn value(&self, table: Table, key: &[u8]) -> Option<Vec<u8>> {
        self.0.get(&(table.name, key.to_vec())).cloned()
    }

    fn scan(&self, table: Table) -> Vec<KeyValue> {
        let of_table = self.0.iter().filter(|((name, _), _)| *name == table.name);
        let mut found: Vec<_> = of_table.map(|((_, key), value)| (key.clone(), value.clone())).collect();
        if table.form == Form::NumberToBytes {
            found.sort_by_key(|(key, _)| u64::from_le_bytes(key[..].try_into().unwrap()));
        }
        found
    }

    fn write(&mut self, batch: &Batch) -> bool {
        let is_so = batch.expected.iter().all(|e| self.value(e.table, &e.key) == e.value);
        for change in batch.changes.iter().filter(|_| is_so) {
            match change {
                Change::Put { table, key, value } => {
                    self.0.insert((table.name, key.clone()), value.clone());
                }
                Change::Remove { table, key } => {
                    self.0.remove(&(table.name, key.clone()));
                }
                Change::Drop { table } => self.0.retain(|(name, _), _| name != table),
            }
        }
        is_so
    }
}

fn any_batch(model: &Model, state: &mut u64) -> Batch {
    let mut batch = Batch::default();
    for _ in 0..dice(state, 3) {
        let table = TABLES[dice(state, TABLES.len())];
        let key = any_key(table, state);
        let value = if dice(state, 8) > 0 { model.value(table, &key) } else { Some(any_value(table, state)) };
        batch.expected.push(table.expect(&key, value.as_deref()));
    }
    for _ in 0..dice(state, 6) {
        let table = TABLES[dice(state, TABLES.len())];
        let key = any_key(table, state);
        batch.changes.push(match dice(state, 20) {
            0 => Change::Drop { table: ["text", "texts", "n", "none"][dice(state, 4)].into() },
            1..8 => table.remove(&key),
            _ => table.put(&key, &any_value(table, state)),
        });
    }
    batch
}

/// Random batches of owners that follow each other, compared with a model.
fn records_are_what_was_written(gateway: NewGateway<'_>, seed: u64) {
    let gateways = [gateway("a"), gateway("b"), gateway("c")];
    let (mut state, mut model) = (seed, Model::default());
    let mut owner = gateways[0].take("random", None).unwrap().unwrap();
    let mut records = gateways[0].records("random", &owner).unwrap();
    for round in 0..300 {
        if dice(&mut state, 20) == 0 {
            let next = &gateways[dice(&mut state, 3)];
            owner = next.take("random", Some(&owner)).unwrap().unwrap();
            let before = std::mem::replace(&mut records, next.records("random", &owner).unwrap());
            is_not_owner(&before.write(&any_batch(&model, &mut state)).unwrap_err(), owner.epoch);
        }
        let batch = any_batch(&model, &mut state);
        assert_eq!(
            records.write(&batch).unwrap(),
            model.write(&batch),
            "round {round} of seed {seed}: {batch:?}"
        );
        let table = TABLES[dice(&mut state, TABLES.len())];
        assert_eq!(
            records.scan(table).unwrap(),
            model.scan(table),
            "round {round} of seed {seed}: {}",
            table.name
        );
        let key = any_key(table, &mut state);
        assert_eq!(
            records.read(table, &key).unwrap(),
            model.value(table, &key),
            "round {round} of seed {seed}"
        );
    }
    assert!(model.0.len() > 10, "the batches leave nothing");
    let other = gateways[0].take("other", None).unwrap().unwrap();
    assert_eq!(gateways[0].records("other", &other).unwrap().scan(TEXTS).unwrap(), [], "it is another group");
}

fn is_not_owner(error: &StoreError, epoch: u64) {
    let not_owner = error.downcast_ref::<NotOwner>();
    let not_owner = not_owner.unwrap_or_else(|| panic!("{error}"));
    assert_eq!(not_owner.now.as_ref().map(|now| now.epoch), Some(epoch));
}

/// As many records as a batch of many clients has, and more than one answer of a store holds.
fn a_batch_is_written_whole(gateway: NewGateway<'_>) {
    let a = gateway("a");
    let owner = a.take("many", None).unwrap().unwrap();
    let records = a.records("many", &owner).unwrap();
    let key = |number: u32| format!("{number:05}").into_bytes();
    for batch in 0..10 {
        let changes: Vec<_> =
            (batch * 300..(batch + 1) * 300).map(|number| TEXTS.put(&key(number), &[7; 300])).collect();
        assert!(records.write(&changes.into()).unwrap());
    }
    let found = records.scan(TEXTS).unwrap();
    assert!(found.iter().map(|(key, _)| key.clone()).eq((0..3000).map(key)), "{} records", found.len());
    let expected = vec![TEXTS.expect(&key(2999), None)];
    let changes = (0..3000).map(|number| TEXTS.remove(&key(number))).collect();
    assert!(!records.write(&Batch { expected, changes }).unwrap());
    assert_eq!(records.scan(TEXTS).unwrap().len(), 3000);
}

fn who_is_not_the_owner_any_more_changes_nothing(gateway: NewGateway<'_>) {
    let (a, b) = (gateway("a"), gateway("b"));
    let first = a.take("moved", None).unwrap().unwrap();
    let before = a.records("moved", &first).unwrap();
    assert!(before.write(&vec![TEXTS.put(b"k", b"first")].into()).unwrap());
    let second = b.take("moved", Some(&first)).unwrap().unwrap();
    let now = b.records("moved", &second).unwrap();

    let expected = vec![TEXTS.expect(b"k", Some(b"first"))];
    let late = [
        vec![TEXTS.put(b"k", b"late")].into(),
        Batch { expected, changes: vec![TEXTS.remove(b"k")] },
        Batch::default(),
    ];
    for batch in late {
        is_not_owner(&before.write(&batch).unwrap_err(), 2);
    }
    is_not_owner(&before.read(TEXTS, b"k").unwrap_err(), 2);
    is_not_owner(&before.scan(TEXTS).unwrap_err(), 2);
    assert_eq!(now.read(TEXTS, b"k").unwrap().unwrap(), b"first");
    // The same gateway in another epoch is another owner.
    let third = a.take("moved", Some(&second)).unwrap().unwrap();
    is_not_owner(&before.read(TEXTS, b"k").unwrap_err(), 3);
    assert_eq!(a.records("moved", &third).unwrap().read(TEXTS, b"k").unwrap().unwrap(), b"first");
    let never = a.records("never", &first).unwrap().read(TEXTS, b"k").unwrap_err();
    assert_eq!(never.downcast_ref::<NotOwner>().unwrap().now, None);
}

fn who_is_fenced_is_refused(gateway: NewGateway<'_>) {
    let (a, b) = (gateway("a"), gateway("b"));
    until(a.take_lease("alive", LONG).unwrap());
    let owner = a.take("fenced", None).unwrap().unwrap();
    let records = a.records("fenced", &owner).unwrap();
    let holder = b.lease_holder("alive").unwrap().unwrap();
    b.fence(&holder).unwrap();
    b.take("fenced", Some(&owner)).unwrap().unwrap();

    let refused = |error: StoreError| assert!(error.is::<Fenced>() || error.is::<NotOwner>(), "{error}");
    refused(records.write(&vec![TEXTS.put(b"k", b"v")].into()).unwrap_err());
    refused(records.read(TEXTS, b"k").unwrap_err());
    for error in [a.take("fenced", None).unwrap_err(), a.owner("fenced").unwrap_err()] {
        assert!(error.is::<Fenced>(), "{error}");
    }
    // Elsewhere it is refused as soon as the machine that is asked knows it.
    let begun = Instant::now();
    let is_fenced = |error: Option<StoreError>| error.is_some_and(|error| error.is::<Fenced>());
    while !is_fenced(a.renew_lease("alive", LONG).err()) || !is_fenced(a.take("unowned", None).err()) {
        assert!(begun.elapsed() < PATIENCE, "it is not fenced everywhere");
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(gateway("a").owner("fenced").unwrap().unwrap().gateway, "b", "who connects anew is served");
}

fn who_listens_is_told(gateway: NewGateway<'_>) {
    let (a, b) = (gateway("a"), gateway("b"));
    a.tell("news", b"nobody hears this").unwrap();
    let (sender, heard) = mpsc::channel();
    let listening = [a.clone(), b.clone()].map(|listener| {
        let sender = sender.clone();
        listener.listen("news", Box::new(move |message| sender.send(message.to_vec()).unwrap())).unwrap()
    });
    for message in [&b"\0one\xff"[..], b""] {
        b.tell("news", message).unwrap();
        for _ in &listening {
            assert_eq!(heard.recv_timeout(PATIENCE).unwrap(), message);
        }
    }
    b.tell("other news", b"not for them").unwrap();
    drop(listening);
    b.tell("news", b"nobody listens any more").unwrap();
    assert_eq!(heard.try_iter().count(), 0);
}

fn session_of(name: &str) -> String {
    format!("session of {name}")
}

fn join(gateway: NewGateway<'_>, name: &str) -> Member {
    Member::join(gateway(name), name, &session_of(name)).unwrap().unwrap()
}

fn owned(begun: Begun) -> Ownership {
    match begun {
        Begun::Owned(ownership) => ownership,
        Begun::By(owner) => panic!("{owner:?} serves it"),
    }
}

fn served_by(begun: Begun) -> Owner {
    match begun {
        Begun::Owned(ownership) => panic!("{:?} owns it", ownership.owner()),
        Begun::By(owner) => owner,
    }
}

fn a_vserver_is_handed_over(gateway: NewGateway<'_>) {
    let (a, b) = (join(gateway, "node a"), join(gateway, "node b"));
    let same = Member::join(gateway("node a"), "node a", "").unwrap().unwrap_err();
    assert_eq!(same.gateway, "node a", "a name is of one gateway");
    let (before, now) = (a.until(), Instant::now());
    assert!(a.renew().unwrap() && a.until() >= before && a.until() > now);

    let first = owned(a.own("v").unwrap());
    assert_eq!(first.owner(), &Owner { epoch: 1, gateway: "node a".into() });
    assert_eq!(served_by(b.own("v").unwrap()), *first.owner());
    assert_eq!(served_by(a.own("v").unwrap()), *first.owner(), "it serves it already");
    let records = first.records().unwrap();
    let (guid, key) = (records.server_guid().unwrap(), records.nfs_handle_key().unwrap());
    assert_eq!((records.share_id("one").unwrap(), records.share_id("two").unwrap()), (1, 2));
    first.end().unwrap();

    let second = owned(b.own("v").unwrap());
    assert_eq!(second.owner(), &Owner { epoch: 2, gateway: "node b".into() });
    let moved = second.records().unwrap();
    assert_eq!((moved.server_guid().unwrap(), moved.nfs_handle_key().unwrap()), (guid, key));
    assert_eq!((moved.share_id("two").unwrap(), moved.share_id("three").unwrap()), (2, 3));
    is_not_owner(&records.store().write(&vec![TEXTS.put(b"k", b"late")].into()).unwrap_err(), 2);
    let other = owned(b.own("w").unwrap()).records().unwrap();
    assert_ne!(other.server_guid().unwrap(), guid, "another vserver is another server");
    assert_eq!(served_by(a.own("v").unwrap()), *second.owner());
    b.leave().unwrap();
    join(gateway, "node b").leave().unwrap();
}

fn a_dead_gateway_is_followed(gateway: NewGateway<'_>) {
    let (dead, other) = (join(gateway, "node c"), join(gateway, "node d"));
    let before = owned(dead.own("x").unwrap());
    assert_eq!(before.followed(), None);
    assert_eq!(served_by(other.own("x").unwrap()), *before.owner(), "it has its lease");
    // It ends without handing over what it serves.
    dead.leave().unwrap();
    let store = gateway("somebody");
    let last = super::last_owner(&*store, "x").unwrap().unwrap();
    assert_eq!(last.holder.as_ref(), Some(dead.holder()));
    let started_again = join(gateway, "node c");
    assert!(!last.is_there(&*store).unwrap(), "another process of the name is another gateway");
    let again = owned(started_again.own("x").unwrap());
    assert_eq!(again.owner(), &Owner { epoch: 2, gateway: "node c".into() });
    assert_eq!(again.followed().map(|followed| &*followed.gateway), Some("node c"));
    assert!(again.left_sessions().is_empty(), "it is its own");
    is_refused(&before.records().unwrap().store().write(&Batch::default()).unwrap_err());
    is_refused(&before.end().unwrap_err());

    assert_eq!(
        served_by(other.own("x").unwrap()),
        *again.owner(),
        "another process of the name has the lease"
    );
    let last = |answers| {
        Some(LastOwner {
            owner: again.owner().clone(),
            holder: Some(started_again.holder().clone()),
            answers,
        })
    };
    assert_eq!(super::last_owner(&*store, "x").unwrap(), last(false));
    again.answers().unwrap();
    assert_eq!(super::last_owner(&*store, "x").unwrap(), last(true));
    let holder = super::living(&*store, "node c").unwrap().unwrap();
    // Its lease runs out, and it does not know.
    store.fence(&holder).unwrap();
    let begun = Instant::now();
    let third = loop {
        match other.own("x").unwrap() {
            Begun::Owned(ownership) => break ownership,
            Begun::By(_) => assert!(begun.elapsed() < PATIENCE, "nobody could take it"),
        }
        thread::sleep(SHORT);
    };
    assert_eq!(third.owner(), &Owner { epoch: 3, gateway: "node d".into() });
    assert_eq!(third.followed().map(|followed| &*followed.gateway), Some("node c"));
    assert_eq!(third.left_sessions(), ["session of node c"]);
    is_refused(&again.records().unwrap().store().write(&Batch::default()).unwrap_err());
    third.end().unwrap();
    let last = super::last_owner(&*store, "x").unwrap().unwrap();
    assert!(last.holder.is_none() && !last.answers && !last.is_there(&*store).unwrap());
    assert_eq!(owned(other.own("x").unwrap()).followed(), None, "it was handed over");
}

/// Its session with the storage comes from elsewhere than its connection to the store.
fn the_session_of_a_dead_gateway_is_refused(gateway: NewGateway<'_>) {
    let (dead, other, session) = (join(gateway, "node s"), join(gateway, "node t"), gateway("a session"));
    until(session.take_lease("session", LONG).unwrap());
    let from = session.lease_holder("session").unwrap().unwrap().address;
    let before = owned(dead.own("refused session").unwrap());
    before.session_comes_from(&from).unwrap();
    before.end().unwrap();
    owned(other.own("refused session").unwrap()).end().unwrap();
    let again = owned(dead.own("refused session").unwrap());
    session.owner("refused session").expect("a session of one that hands over is left alone");
    again.session_comes_from(&from).unwrap();
    dead.leave().unwrap();
    let dead = join(gateway, "node s");
    let third = owned(dead.own("refused session").unwrap());
    session.owner("refused session").expect("who has lost its lease may go on in its session");
    third.session_comes_from(&from).unwrap();
    dead.leave().unwrap();
    owned(other.own("refused session").unwrap()).end().unwrap();
    let begun = Instant::now();
    while !session.owner("refused session").is_err_and(|error| error.is::<Fenced>()) {
        assert!(begun.elapsed() < PATIENCE, "it is not refused");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Whoever fails to end what an owner before has left leaves that to the next, and so on.
fn a_session_is_left_until_it_has_been_ended(gateway: NewGateway<'_>) {
    let first = join(gateway, "node g");
    owned(first.own("y").unwrap());
    first.leave().unwrap();
    let second = join(gateway, "node h");
    let failed = owned(second.own("y").unwrap());
    assert_eq!(failed.left_sessions(), ["session of node g"]);
    // It could not end that, and lets the vserver go; the next one dies before it has ended it.
    failed.end().unwrap();
    let third = join(gateway, "node i");
    let dies = owned(third.own("y").unwrap());
    assert_eq!((dies.followed(), dies.left_sessions()), (None, &["session of node g".to_owned()][..]));
    third.leave().unwrap();
    let again = owned(second.own("y").unwrap());
    assert_eq!(again.left_sessions(), ["session of node g", "session of node i"]);
    again.session_has_ended("session of node i").unwrap();
    again.end().unwrap();
    let first = join(gateway, "node g");
    let back = owned(first.own("y").unwrap());
    assert!(back.left_sessions().is_empty(), "who is back ends its session by beginning another");
    back.end().unwrap();
    let next = owned(second.own("y").unwrap());
    assert_eq!(next.left_sessions(), ["session of node g"], "it did not come to that");
    next.end().unwrap();
    let back = owned(first.own("y").unwrap());
    back.own_session_has_ended().unwrap();
    back.end().unwrap();
    assert!(owned(second.own("y").unwrap()).left_sessions().is_empty(), "it was handed over");
    second.leave().unwrap();
    // No share of that one is in the storage that knows it by a session.
    let third = join(gateway, "node l");
    let without = owned(third.claim(Claim { vserver: "y", has_session: false, is_given_up: false }).unwrap());
    assert_eq!(without.left_sessions(), ["session of node h"]);
    without.session_has_ended("session of node h").unwrap();
    third.leave().unwrap();
    assert!(owned(join(gateway, "node m").own("y").unwrap()).left_sessions().is_empty());
}

/// A gateway that has given up what it serves takes it anew, and nobody else may.
fn a_vserver_is_taken_again_by_its_owner(gateway: NewGateway<'_>) {
    // It keeps its lease, however slow this is.
    let of_one = gateway("node j");
    let one = Member::join(Arc::clone(&of_one), "node j", "").unwrap().unwrap();
    of_one.renew_lease("gateway node j", LONG).unwrap().unwrap();
    let other = join(gateway, "node k");
    let before = owned(one.own("z").unwrap());
    before.answers().unwrap();
    assert_eq!(served_by(one.own("z").unwrap()), *before.owner());
    assert_eq!(served_by(other.own_again("z").unwrap()), *before.owner(), "it is another's");
    let now = owned(one.own_again("z").unwrap());
    assert_eq!(now.owner(), &Owner { epoch: 2, gateway: "node j".into() });
    assert_eq!((now.followed(), now.left_sessions()), (None, &[][..]));
    is_not_owner(&before.records().unwrap().store().write(&Batch::default()).unwrap_err(), 2);
    let last = super::last_owner(&*gateway("somebody"), "z").unwrap().unwrap();
    assert!(last.holder.is_some() && !last.answers);
    assert_eq!(served_by(other.own("z").unwrap()), *now.owner());
    one.leave().unwrap();
}

fn is_refused(late: &StoreError) {
    assert!(late.is::<Fenced>() || late.is::<NotOwner>(), "{late}");
}

/// One record that cannot be read does not hide the others.
fn who_cannot_be_read_is_told_apart(gateway: NewGateway<'_>) {
    let store = gateway("node e");
    let register = Register::open(&store).unwrap().unwrap();
    let record = |name: &str| VserverRecord { name: name.to_owned(), ..VserverRecord::default() };
    for name in ["sound", "swapped"] {
        assert!(register.add_vserver(&record(name)).unwrap());
    }
    let owner = store.owner("cluster").unwrap().unwrap();
    let records = store.records("cluster", &owner).unwrap();
    let vservers = Table { name: "vservers", form: Form::TextToBytes };
    let of_another = records.read(vservers, b"sound").unwrap().unwrap();
    let damage = vec![
        vservers.put(b"damaged", b"{"),
        vservers.put(b"later", br#"{"name":"later","form":2}"#),
        vservers.put(b"swapped", &of_another),
        Table { name: "gateways", form: Form::TextToBytes }.put(b"node x", b"\xff"),
    ];
    assert!(records.write(&damage.into()).unwrap());
    let listed = register.vservers().unwrap();
    assert_eq!(listed.seen.iter().map(|seen| &*seen.record.name).collect::<Vec<_>>(), ["sound"]);
    let unreadable: Vec<_> = listed.unreadable.iter().map(|unreadable| &*unreadable.name).collect();
    assert_eq!(unreadable, ["damaged", "later", "swapped"]);
    assert!(listed.unreadable("later").unwrap().what.starts_with("the record of the vserver later is not"));
    let gateways = register.gateways().unwrap();
    assert!(gateways.unreadable("node x").is_some() && gateways.unreadable("node e").is_none());
    assert!(!register.add_vserver(&record("later")).unwrap(), "its name is taken");
}

fn a_keytab_is_there_as_long_as_its_vserver(gateway: NewGateway<'_>) {
    let [of_a, of_b] = ["node e", "node f"].map(|name| Register::open(&gateway(name)).unwrap().unwrap());
    let record = VserverRecord { name: "keyed".to_owned(), ..VserverRecord::default() };
    let seen = || {
        let found = of_b.vservers().unwrap().seen;
        found.into_iter().find(|seen| seen.record.name == "keyed").unwrap()
    };
    let kept = || of_b.keytab("keyed").unwrap().map(|keytab| keytab.to_vec());
    assert!(of_a.add_vserver(&record).unwrap());
    let first = seen();
    assert_eq!((kept(), first.record.keytab_changes), (None, 0));

    // Any bytes, the largest, and another in place of that.
    let largest: Vec<_> = (0..=u8::MAX).cycle().take(KEYTAB_BYTES_MAX).collect();
    for (keytab, changes) in [(&largest[..], 1), (&b""[..], 2), (&b"\0second"[..], 3)] {
        assert!(of_a.set_keytab(&seen(), Some(keytab)).unwrap());
        assert!(kept().as_deref() == Some(keytab), "{} bytes", keytab.len());
        assert_eq!(seen().record, VserverRecord { keytab_changes: changes, ..record.clone() });
    }
    assert_eq!(of_a.keytab("keye").unwrap(), None, "it is of one vserver");
    assert!(of_a.set_keytab(&seen(), Some(&[&largest[..], &[0]].concat())).is_err());
    assert!(!of_a.set_keytab(&first, None).unwrap(), "somebody has changed it");
    assert_eq!(kept().as_deref(), Some(&b"\0second"[..]));

    // It stays when the vserver moves.
    let moved = VserverRecord { gateway: "node f".to_owned(), ..seen().record };
    assert!(of_a.change_vserver(&seen(), Some(&moved)).unwrap());
    assert_eq!((kept().as_deref(), seen().record), (Some(&b"\0second"[..]), moved));
    assert!(of_a.set_keytab(&seen(), None).unwrap());
    assert_eq!((kept(), seen().record.keytab_changes), (None, 4));

    // It ends with the vserver, and only with what was seen of that.
    assert!(of_a.set_keytab(&seen(), Some(b"third")).unwrap());
    assert!(!of_b.change_vserver(&first, None).unwrap());
    assert_eq!(kept().as_deref(), Some(&b"third"[..]));
    let last = seen();
    assert!(of_b.change_vserver(&last, None).unwrap());
    assert_eq!(of_a.keytab("keyed").unwrap(), None);
    assert!(!of_a.set_keytab(&last, Some(b"late")).unwrap(), "the vserver is gone");
    assert!(of_a.add_vserver(&record).unwrap());
    assert_eq!((kept(), seen().record), (None, record.clone()), "another one of the name has none");
    assert!(of_a.change_vserver(&seen(), None).unwrap());
}

fn gateways_agree_on_who_serves_what(gateway: NewGateway<'_>) {
    let (a, b) = (gateway("node e"), gateway("node f"));
    assert!(Register::open(&a).unwrap().is_none(), "nobody has made one");
    let of_a = Register::make(&a).unwrap().unwrap();
    assert!(Register::make(&b).unwrap().is_none(), "there is one");
    let of_b = Register::open(&b).unwrap().unwrap();
    let record = |gateway: &str| VserverRecord {
        name: "v".to_owned(),
        gateway: gateway.to_owned(),
        ..VserverRecord::default()
    };
    assert!(of_a.add_vserver(&record("node e")).unwrap());
    assert!(!of_b.add_vserver(&record("node f")).unwrap(), "the name is taken");
    let seen = of_b.vservers().unwrap().seen.remove(0);
    assert_eq!(seen.record, record("node e"));
    assert!(of_a.change_vserver(&seen, Some(&record("node f"))).unwrap());
    assert!(!of_b.change_vserver(&seen, None).unwrap(), "it is not what was seen");
    assert_eq!(of_b.vservers().unwrap().seen.remove(0).record.gateway, "node f");
    of_b.set_trouble("v", Some("node f: no such interface")).unwrap();
    assert_eq!(of_a.trouble("v").unwrap().as_deref(), Some("node f: no such interface"));
    of_b.set_trouble("v", None).unwrap();
    assert_eq!(of_a.trouble("v").unwrap(), None);
    // Whoever wrote something undoes that, and nothing else.
    let written = Seen::written(record("node e")).unwrap();
    assert!(!of_a.change_vserver(&written, None).unwrap(), "somebody has changed it");
    let written = Seen::written(record("node f")).unwrap();
    assert!(of_b.change_vserver(&written, None).unwrap());
    assert!(of_a.vservers().unwrap().seen.is_empty());

    let one =
        GatewayRecord { name: "node e".to_owned(), version: "1".to_owned(), ..GatewayRecord::default() };
    assert!(of_a.add_gateway(&one).unwrap() && !of_b.add_gateway(&one).unwrap());
    let seen = of_b.gateways().unwrap().seen.remove(0);
    let drained = GatewayRecord { is_drained: true, ..one };
    assert!(of_b.change_gateway(&seen, Some(&drained)).unwrap());
    assert_eq!(of_a.gateways().unwrap().seen.remove(0).record, drained);
    let (told, heard) = mpsc::channel();
    let listening = of_b.listen(Box::new(move || told.send(()).unwrap_or_default())).unwrap();
    of_a.tell().unwrap();
    heard.recv_timeout(PATIENCE).unwrap();
    assert!(!listening.is_broken());
}

fn gateways_have_the_same_users(gateway: NewGateway<'_>) {
    let [of_a, of_b] = ["node e", "node f"].map(|name| Register::open(&gateway(name)).unwrap().unwrap());
    let anna = UserRecord { name: "Anna".to_owned(), uid: Some(1000), ..UserRecord::default() };
    let same_name = UserRecord { name: "ANNA".to_owned(), ..UserRecord::default() };
    assert_eq!(of_a.user_changes().unwrap(), 0);
    assert!(of_a.add_user(&anna).unwrap() && !of_b.add_user(&same_name).unwrap(), "the name is taken");
    assert_eq!(of_b.user_changes().unwrap(), 1);
    let seen = of_b.users().unwrap().seen.remove(0);
    assert_eq!(seen.record, anna);
    let (domain, of_other) = (of_a.account_domain(), of_b.account_domain());
    let sid = domain.sid().unwrap();
    assert_eq!(of_other.sid().unwrap(), sid);
    assert_eq!(domain.rids(&["anna", "otto"]).unwrap(), [1000, 1001]);
    assert_eq!(of_other.sid_of("ANNA").unwrap(), sid.member(1000));
    let disabled = UserRecord { disabled: true, ..anna };
    assert_eq!(of_b.user("aNNA").unwrap().unwrap().record, seen.record);
    assert!(of_a.change_user(&seen, &disabled).unwrap() && of_a.user("otto").unwrap().is_none());
    assert!(!of_b.change_user(&seen, &seen.record).unwrap(), "it is not what was seen");
    assert!(!of_b.remove_user(&seen).unwrap(), "nor is it removed");
    let seen = of_b.users().unwrap().seen.remove(0);
    assert!(seen.record.disabled && of_b.remove_user(&seen).unwrap());
    assert!(of_a.users().unwrap().seen.is_empty());
    assert_eq!(domain.rids(&["otto", "anna"]).unwrap(), [1001, 1002], "another of the same name");
    assert_eq!(of_a.user_changes().unwrap(), 3);

    let store = gateway("node e");
    let records = store.records("cluster", &store.owner("cluster").unwrap().unwrap()).unwrap();
    let users = Table { name: "added-users", form: Form::TextToBytes };
    assert!(of_a.add_user(&disabled).unwrap());
    assert!(records.write(&vec![users.put(b"OTTO", b"{")].into()).unwrap());
    let listed = of_b.users().unwrap();
    assert!(listed.seen.len() == 1 && listed.unreadable("OTTO").is_some());
    assert!(of_a.user("otto").unwrap_err().to_string().contains("the user OTTO is not readable"));
    assert_eq!(domain.rids(&["zoe"]).unwrap(), [1003]);
    let zoe = UserRecord { name: "Zoe".to_owned(), ..UserRecord::default() };
    assert!(of_b.add_user(&zoe).unwrap());
    assert_eq!(domain.rids(&["zoe"]).unwrap(), [1004], "not the account of a gateway that had the name");
}
