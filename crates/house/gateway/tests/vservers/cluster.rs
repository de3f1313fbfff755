//! Gateways that do what the register of a cluster says.

use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anabranch_gateway::Gateway;
use anabranch_gateway::settings::ClusterSettings;
use control::cluster::{ClusterGateways, NewVserver, Vserver, VserverMove, VserverShare};
use control::{Administration as _, Refusal};
use share::Terms;
use state::cluster::{
    Begun, ClusterStore, GatewayRecord, Member, Register, Seen, VserverRecord, VserverShareRecord,
    last_owner, living,
};
use state::store::{Form, Table};

use crate::faulty::{AnswersAtTheEnd, Faulty};
use crate::world::{HOME, PATIENCE, World, free_port};

/// How often to look whether something is so.
const LOOK: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(3600);
/// The group and the table of the register that has the vservers.
const REGISTER: &str = "cluster";
const VSERVERS: Table = Table { name: "vservers", form: Form::TextToBytes };

/// Waits until this is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(LOOK);
    }
}

/// A cluster with these gateways, of which none is there.
pub(crate) fn cluster(world: &World, gateways: &[&str]) -> Register {
    let register = Register::make(&world.store.gateway("test")).unwrap().unwrap();
    for name in gateways {
        let record = GatewayRecord { name: (*name).to_owned(), ..GatewayRecord::default() };
        assert!(register.add_gateway(&record).unwrap());
    }
    register
}

/// A vserver of NFS with one share, which is to be served by this gateway.
pub(crate) fn vserver(name: &str, gateway: &str, directory: &Path) -> VserverRecord {
    let share = VserverShareRecord::plain("data", &directory.display().to_string(), Terms::empty(), "");
    VserverRecord {
        name: name.to_owned(),
        gateway: gateway.to_owned(),
        addresses: vec![HOME.to_string()],
        smb: None,
        nfs: Some(free_port()),
        shares: vec![share],
        ..VserverRecord::default()
    }
}

/// Makes a gateway one of the cluster.
pub(crate) fn begin(
    gateway: &mut Gateway,
    name: &str,
    connect: impl Fn() -> Arc<dyn ClusterStore> + Send + Sync + 'static,
) -> Arc<dyn ClusterGateways> {
    let settings = ClusterSettings { gateway: name.to_owned(), pool: "a test".to_owned() };
    gateway.be_of_cluster(settings, Box::new(move || Ok(connect()))).unwrap();
    gateway.administration().cluster_gateways().unwrap()
}

pub(crate) fn served(gateway: &Gateway) -> Vec<String> {
    gateway.vservers().into_iter().map(|(name, _)| name).collect()
}

/// Stops a gateway that nothing else refers to.
pub(crate) fn stop(gateway: Gateway) {
    assert!(gateway.stop().unwrap().within(PATIENCE));
}

#[test]
fn what_cannot_be_looked_after_keeps_no_other_vserver_from_being_served() {
    let Some(world) = World::new("records that cannot be read") else { return };
    let register = cluster(&world, &["a", "bad"]);
    for name in ["bad", "damaged", "good"] {
        assert!(register.add_vserver(&vserver(name, "a", &world.data(name))).unwrap());
    }
    let of_test = world.store.gateway("test");
    let records = of_test.records(REGISTER, &of_test.owner(REGISTER).unwrap().unwrap()).unwrap();
    assert!(records.write(&vec![VSERVERS.put(b"damaged", b"{")].into()).unwrap());

    let mut gateway = world.gateway("a");
    let store = Faulty::new(world.store.gateway("a"));
    let gateways = begin(&mut gateway, "a", move || store.clone());
    // It is in the list before it is known to answer.
    until("the one without faults is served", || {
        let told = gateways.vservers().unwrap().vservers;
        told.iter().any(|told| told.name == "good" && told.served_by.as_deref() == Some("a"))
    });
    assert_eq!(served(&gateway), ["good"]);
    let problem = gateways.cluster().unwrap().problem.unwrap();
    assert!(problem.contains("the record of the vserver damaged is not readable"), "{problem}");
    assert!(problem.contains("not known whether the gateway bad is there"), "{problem}");
    let told = gateways.vservers().unwrap().vservers;
    let of = |name: &str| told.iter().find(|told| told.name == name).unwrap();
    let why = |name: &str| of(name).problem.clone().unwrap_or_default();
    assert!(why("bad").contains("a fault of the test"), "{}", why("bad"));
    assert!(
        why("damaged").contains("the record of the vserver damaged is not readable"),
        "{}",
        why("damaged")
    );
    assert_eq!((of("good").served_by.as_deref(), &of("good").problem), (Some("a"), &None));

    // A vserver whose record is damaged while it is served stays where it is.
    assert!(records.write(&vec![VSERVERS.put(b"good", b"{")].into()).unwrap());
    until("the damage is known", || {
        gateways.vservers().unwrap().vservers.iter().all(|told| told.problem.is_some())
    });
    assert!(register.add_vserver(&vserver("last", "a", &world.data("last"))).unwrap());
    until("another one is served", || served(&gateway).contains(&"last".to_owned()));
    assert_eq!(served(&gateway), ["good", "last"]);
    drop(gateways);
    stop(gateway);
}

#[test]
fn a_vserver_that_waits_for_something_keeps_no_other_one_waiting() {
    let Some(world) = World::new("a vserver that begins slowly") else { return };
    let register = cluster(&world, &["a"]);
    for name in ["silent", "with-others"] {
        assert!(register.add_vserver(&vserver(name, "a", &world.data(name))).unwrap());
    }
    let mut gateway = world.gateway("a");
    let store = Faulty::new(world.store.gateway("a"));
    let _answers = AnswersAtTheEnd(Arc::clone(&store));
    let connected = Arc::clone(&store);
    begin(&mut gateway, "a", move || connected.clone());
    until("the other one is served", || served(&gateway) == ["with-others"]);
    store.answer();
    until("both are served", || served(&gateway) == ["silent", "with-others"]);
    stop(gateway);
}

#[test]
fn a_vserver_that_could_not_be_let_go_is_served_or_let_go_later() {
    let Some(world) = World::new("a vserver that is given up") else { return };
    let register = cluster(&world, &["a", "b"]);
    let _b = absent(&world, "b");
    for name in ["failing-moves", "failing-stays"] {
        assert!(register.add_vserver(&vserver(name, "a", &world.data(name))).unwrap());
    }
    let mut gateway = world.gateway("a");
    let store = Faulty::new(world.store.gateway("a"));
    let connected = Arc::clone(&store);
    begin(&mut gateway, "a", move || connected.clone());
    for name in ["failing-moves", "failing-stays"] {
        until("it cannot be served", || register.trouble(name).unwrap().is_some());
    }
    let seen = record_of(&register, "failing-moves").unwrap();
    let to_b = VserverRecord { gateway: "b".to_owned(), ..seen.record.clone() };
    assert!(register.change_vserver(&seen, Some(&to_b)).unwrap());
    // The records say so, also while the gateway stands still and others could take it.
    let somebody = world.store.gateway("somebody");
    let has_it =
        || last_owner(&*somebody, "failing-moves").unwrap().is_some_and(|last| last.holder.is_some());
    assert!(has_it(), "it is not let go");
    store.heal();
    until("it is let go", || !has_it());
    until("the other one is served", || served(&gateway) == ["failing-stays"]);
    stop(gateway);
}

#[test]
fn what_a_gateway_served_before_it_was_started_again_comes_to_another() {
    let Some(world) = World::new("a gateway that is killed and started again") else { return };
    let register = cluster(&world, &["a", "b"]);
    let killed = world.member("a").unwrap();
    let Begun::Owned(ownership) = killed.own("files").unwrap() else { panic!("others serve it") };
    ownership.answers().unwrap();
    killed.leave().unwrap();
    let _started_again = absent(&world, "a");
    assert!(register.add_vserver(&vserver("files", "b", &world.data("files"))).unwrap());
    let mut gateway = world.gateway("b");
    let store = world.store.gateway("b");
    let gateways = begin(&mut gateway, "b", move || Arc::clone(&store));
    until("it is served", || served(&gateway) == ["files"]);
    until("others are told so", || {
        gateways.vservers().unwrap().vservers[0].served_by.as_deref() == Some("b")
    });
    drop(gateways);
    stop(gateway);
}

#[test]
fn a_vserver_that_begins_ends_with_the_place_of_its_gateway_and_with_no_later_one() {
    let Some(world) = World::new("a place that is lost while a vserver begins") else { return };
    let register = cluster(&world, &["a"]);
    let late = vserver("late", "a", &world.data("late"));
    assert!(register.add_vserver(&late).unwrap());
    let mut gateway = world.gateway("a");
    let (store, slow) = (world.store.clone(), Faulty::new(world.store.gateway("a")));
    let _answers = AnswersAtTheEnd(Arc::clone(&slow));
    let (first, is_first) = (Arc::clone(&slow), AtomicBool::new(true));
    begin(&mut gateway, "a", move || {
        if is_first.swap(false, Ordering::SeqCst) { first.clone() } else { store.gateway("a") }
    });
    let at = (HOME, late.nfs.unwrap());
    until("it listens, and writes down that it answers", || slow.is_late() && TcpStream::connect(at).is_ok());
    let somebody = world.store.gateway("somebody");
    somebody.fence(&living(&*somebody, "a").unwrap().unwrap()).unwrap();
    until("it listens no more, although its records do not answer", || TcpStream::connect(at).is_err());

    // The gateway has another place meanwhile.
    assert!(register.add_vserver(&vserver("files", "a", &world.data("files"))).unwrap());
    until("another one is served", || served(&gateway) == ["files"]);
    slow.answer();
    until("it is served again", || served(&gateway) == ["files", "late"]);
    let epoch = |name: &str| gateway.vservers().into_iter().find(|(of, _)| of == name).unwrap().1.epoch;
    assert!(epoch("late") > 1, "it was taken again under the second place");
    stop(gateway);
}

/// A gateway of which there is nothing but its place in the cluster, for longer than a test takes on whatever machine.
pub(crate) fn absent(world: &World, name: &str) -> Member {
    let store = world.store.gateway(name);
    let member = Member::join(Arc::clone(&store), name, "").unwrap().unwrap();
    store.renew_lease(&format!("gateway {name}"), LONG).unwrap().unwrap();
    member
}

/// The vserver that a command of the test makes.
fn asked(name: &str, gateway: &str) -> NewVserver {
    let share = VserverShare {
        name: "data".to_owned(),
        directory: "cephfs:/data".to_owned(),
        ..VserverShare::default()
    };
    NewVserver {
        name: name.to_owned(),
        gateway: Some(gateway.to_owned()),
        addresses: vec![HOME.to_string()],
        nfs_port: Some(2049),
        shares: vec![share],
        ..NewVserver::default()
    }
}

pub(crate) fn record_of(register: &Register, name: &str) -> Option<Seen<VserverRecord>> {
    register.vservers().unwrap().seen.into_iter().find(|seen| seen.record.name == name)
}

#[test]
fn who_waits_for_a_gateway_listens_to_no_other() {
    let Some(world) = World::new("troubles of other gateways") else { return };
    let register = cluster(&world, &["a", "b"]);
    let b = absent(&world, "b");
    let mut gateway = world.gateway("a");
    let store = world.store.gateway("a");
    let gateways = begin(&mut gateway, "a", move || Arc::clone(&store));
    let creating = std::thread::spawn(move || gateways.create_vserver(&asked("files", "b")));
    until("the vserver is entered", || record_of(&register, "files").is_some());
    register.set_trouble("files", Some("a: what it had before is not ended")).unwrap();
    // For as long as the one who waits looks several times.
    std::thread::sleep(20 * LOOK);
    let Begun::Owned(ownership) = b.own("files").unwrap() else { panic!("others serve it") };
    ownership.answers().unwrap();
    let made = creating.join().unwrap().unwrap();
    assert_eq!(made.served_by.as_deref(), Some("b"));
    stop(gateway);
}

#[test]
fn a_command_that_fails_takes_back_what_it_has_written_and_nothing_else() {
    let Some(world) = World::new("commands that fail") else { return };
    let register = cluster(&world, &["a", "b"]);
    let _b = absent(&world, "b");
    let mut gateway = world.gateway("a");
    let store = world.store.gateway("a");
    let gateways = begin(&mut gateway, "a", move || Arc::clone(&store));
    // Again and again: the gateway that has served it may take it away.
    let fail = |name: &str, calling: JoinHandle<_>| {
        while !calling.is_finished() {
            register.set_trouble(name, Some("b: there is no interface")).unwrap();
            std::thread::sleep(LOOK);
        }
        let called: Result<Vserver, Refusal> = calling.join().unwrap();
        called.unwrap_err()
    };
    let changed = |name: &str, change: &dyn Fn(&mut VserverRecord)| {
        let seen = record_of(&register, name).unwrap();
        let mut to = seen.record.clone();
        change(&mut to);
        assert!(register.change_vserver(&seen, Some(&to)).unwrap());
        to
    };
    for is_changed in [false, true] {
        let asked = asked("new", "b");
        let creating = std::thread::spawn({
            let gateways = Arc::clone(&gateways);
            move || gateways.create_vserver(&asked)
        });
        until("the new vserver is entered", || record_of(&register, "new").is_some());
        let other = is_changed.then(|| changed("new", &|record| record.nfs = Some(2050)));
        fail("new", creating);
        assert_eq!(record_of(&register, "new").map(|seen| seen.record), other);
    }
    let seen = record_of(&register, "new").unwrap();
    assert!(register.change_vserver(&seen, None).unwrap());

    let before = vserver("old", "a", &world.data("old"));
    assert!(register.add_vserver(&before).unwrap());
    for what in ["as it was written", "changed", "gone"] {
        until("it is served", || served(&gateway) == ["old"]);
        let moving = std::thread::spawn({
            let gateways = Arc::clone(&gateways);
            move || gateways.move_vserver("old", &VserverMove { gateway: "b".to_owned() })
        });
        until("it is to move", || record_of(&register, "old").unwrap().record.gateway == "b");
        let expected = match what {
            "changed" => {
                Some(changed("old", &|record| record.shares[0].share.comment = "another".to_owned()))
            }
            "gone" => {
                let seen = record_of(&register, "old").unwrap();
                assert!(register.change_vserver(&seen, None).unwrap());
                None
            }
            _ => Some(before.clone()),
        };
        let refusal = fail("old", moving);
        assert!(refusal.what.contains("there is no interface"), "{what}: {}", refusal.what);
        assert_eq!(record_of(&register, "old").map(|seen| seen.record), expected, "{what}");
        if what == "changed" {
            changed("old", &|record| *record = before.clone());
        }
    }
    drop(gateways);
    stop(gateway);
}

#[test]
fn who_is_fenced_before_it_has_read_the_register_connects_anew() {
    let Some(world) = World::new("a gateway that is fenced at its start") else { return };
    cluster(&world, &["a"]);
    let mut gateway = world.gateway("a");
    let (store, is_first) = (world.store.clone(), AtomicBool::new(true));
    let gateways = begin(&mut gateway, "a", move || {
        let connection = store.gateway("a");
        if is_first.swap(false, Ordering::SeqCst) {
            connection.take_lease("a test", PATIENCE).unwrap();
            let holder = connection.lease_holder("a test").unwrap().unwrap();
            store.gateway("somebody").fence(&holder).unwrap();
        }
        connection
    });
    until("it has its place", || gateways.cluster().is_ok_and(|cluster| cluster.has_place));
    drop(gateways);
    stop(gateway);
}
