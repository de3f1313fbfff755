//! Shares of vservers, which come, change, move and go while the vservers are served.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_gateway::Gateway;
use control::RefusalKind;
use control::cluster::{ClusterGateways, ShareMove};
use control::shares::{NewShare, RulesChange, Share, ShareChange};
use nfs_wire::v4::open::ShareDeny;
use nfs_wire::v4::status::Status;
use share::Terms;
use smb_wire::NtStatus;
use smb_wire::create::CreateDisposition;
use state::cluster::{Begun, Coming, Register, VserverRecord, VserverShareRecord};

use crate::client::Client;
use crate::cluster::{absent, begin, cluster, record_of, served, stop, until, vserver};
use crate::nfs4::Nfs4;
use crate::persistent::{EXCLUSIVE, lock, open};
use crate::users::{connected, new_user, refused, until_it_listens};
use crate::world::{HOME, World, free_port};

type Gateways = Arc<dyn ClusterGateways>;

/// A vserver of both protocols with the share `data`.
fn of_both(world: &World, name: &str, gateway: &str) -> VserverRecord {
    VserverRecord { smb: Some(free_port()), ..vserver(name, gateway, &world.data(name)) }
}

fn gateway(world: &World, name: &str) -> (Gateway, Gateways) {
    let mut gateway = world.gateway(name);
    let store = world.store.gateway(name);
    let gateways = begin(&mut gateway, name, move || Arc::clone(&store));
    (gateway, gateways)
}

/// Adds a share, as a command does; with a directory of this machine, which commands refuse.
fn add(register: &Register, vserver: &str, name: &str, directory: &Path) {
    let share = VserverShareRecord::plain(name, &directory.display().to_string(), Terms::empty(), "");
    let seen = record_of(register, vserver).unwrap();
    let to = seen.record.with_share(VserverShareRecord { coming: Some(Coming::New), ..share });
    assert!(register.change_vserver(&seen, Some(&to)).unwrap());
}

fn has_come(register: &Register, vserver: &str, name: &str) -> bool {
    let record = record_of(register, vserver).unwrap().record;
    record.share(name).is_some_and(|share| share.coming.is_none())
}

/// A client of SMB that has logged on, at a share if it may have that.
fn smb(record: &VserverRecord, user: &str, share: &str) -> Result<Client, NtStatus> {
    let mut client = connected(record.smb.unwrap());
    client.log_in(user, &format!("{user}'s"))?;
    client.tree_connect(share)?;
    Ok(client)
}

fn nfs(record: &VserverRecord, name: &str) -> Nfs4 {
    Nfs4::start(HOME, &format!("{HOME}:{}", record.nfs.unwrap()), name)
}

fn rules(change: RulesChange) -> ShareChange {
    ShareChange { rules: change, ..ShareChange::default() }
}

#[test]
fn shares_come_change_and_go_while_clients_of_others_go_on() {
    let Some(world) = World::new("shares of a vserver that change") else { return };
    let register = cluster(&world, &["a", "b"]);
    let files = of_both(&world, "files", "a");
    assert!(register.add_vserver(&files).unwrap());
    let ((a, of_a), (b, of_b)) = (gateway(&world, "a"), gateway(&world, "b"));
    until_it_listens(files.smb.unwrap());
    for (uid, name) in [(1000, "anna"), (1001, "otto")] {
        of_b.add_user(&new_user(name, Some(uid))).unwrap();
    }
    until("anna may log on", || smb(&files, "anna", "data").is_ok());
    let mut staying = smb(&files, "anna", "data").unwrap();
    let (held, _) = open(&mut staying, Vec::new()).unwrap();
    assert_eq!(lock(&mut staying, held, EXCLUSIVE), NtStatus::SUCCESS);
    let mut nfs_staying = nfs(&files, "one");
    let top = nfs_staying.top("data").unwrap();
    let nfs_held = nfs_staying.open(&top, "g", ShareDeny::WRITE).unwrap();
    let mut go_on = || {
        staying.write(held, 0, b"goes on").unwrap();
        nfs_staying.write(&nfs_held).unwrap();
        let mut other = smb(&files, "anna", "data").unwrap();
        let (others, _) = open(&mut other, Vec::new()).unwrap();
        assert_eq!(lock(&mut other, others, EXCLUSIVE), NtStatus::LOCK_NOT_GRANTED);
    };

    assert_eq!(smb(&files, "anna", "more").err(), Some(NtStatus::BAD_NETWORK_NAME));
    add(&register, "files", "more", &world.data("more"));
    until("the share has come", || has_come(&register, "files", "more"));
    let mut client = smb(&files, "anna", "more").unwrap();
    let file = client.create("f", CreateDisposition::OverwriteIf).unwrap();
    client.write(file, 0, b"in more").unwrap();
    let mut nfs_client = nfs(&files, "two");
    let more_top = nfs_client.top("more").unwrap();
    nfs_client.open(&more_top, "g", ShareDeny::NONE).unwrap();
    go_on();

    // At another gateway than the one that serves it.
    let change = ShareChange {
        read_only: Some(true),
        comment: Some("For reading".to_owned()),
        plan: Some("azure-files-v2-ssd capacity=100GiB".to_owned()),
        ..ShareChange::default()
    };
    let told = of_b.change_vserver_share("files", "MORE", &change).unwrap();
    assert!(told.served && told.read_only && told.comment == "For reading", "{told:?}");
    assert!(told.plan.starts_with("azure-files-v2-ssd"), "{told:?}");
    assert_eq!(client.create("new", CreateDisposition::Create).err(), Some(NtStatus::MEDIA_WRITE_PROTECTED));
    assert_eq!(nfs_client.open(&more_top, "new", ShareDeny::NONE).err(), Some(Status::RoFs));
    go_on();

    let by_people = RulesChange { read: Some(vec!["otto".to_owned()]), ..RulesChange::default() };
    of_a.change_vserver_share("files", "more", &rules(by_people)).unwrap();
    assert!(client.create("f", CreateDisposition::Open).is_err(), "anna has lost the share");
    assert_eq!(smb(&files, "anna", "more").err(), Some(NtStatus::ACCESS_DENIED));
    smb(&files, "otto", "more").unwrap();
    let of_clients = RulesChange {
        read: Some(Vec::new()),
        clients: Some(vec!["10.255.0.0/16".to_owned()]),
        ..RulesChange::default()
    };
    of_b.change_vserver_share("files", "more", &rules(of_clients)).unwrap();
    assert_eq!(smb(&files, "otto", "more").err(), Some(NtStatus::ACCESS_DENIED));
    nfs_client.top("more").unwrap_err();
    go_on();

    let told = of_a.remove_vserver_share("files", "more").unwrap();
    assert!(!told.served && told.name == "more", "{told:?}");
    assert_eq!(smb(&files, "otto", "more").err(), Some(NtStatus::BAD_NETWORK_NAME));
    assert_eq!(nfs_client.top("more").unwrap_err(), Status::NoEnt);
    assert_eq!(nfs_client.open(&more_top, "g", ShareDeny::NONE).unwrap_err(), Status::Stale);
    go_on();
    assert_eq!(of_b.vserver_shares("files").unwrap().shares.len(), 1);
    drop((of_a, of_b));
    stop(a);
    stop(b);
}

#[test]
fn a_share_that_is_added_after_one_of_its_name_is_another() {
    let Some(world) = World::new("two shares of one name, one after the other") else { return };
    let register = cluster(&world, &["a"]);
    let files = of_both(&world, "files", "a");
    assert!(register.add_vserver(&files).unwrap());
    let (a, of_a) = gateway(&world, "a");
    until("it is served", || served(&a) == ["files"]);
    let mut client = nfs(&files, "one");
    let mut add_more = || {
        add(&register, "files", "more", &world.data("more"));
        until("the share has come", || has_come(&register, "files", "more"));
        client.top("more").unwrap()
    };
    let before = add_more();
    of_a.remove_vserver_share("files", "more").unwrap();
    assert_ne!(add_more(), before);
    assert_eq!(client.open(&before, "g", ShareDeny::NONE).unwrap_err(), Status::Stale);
    drop(of_a);
    stop(a);
}

#[test]
fn what_a_share_has_is_there_wherever_its_vserver_is() {
    let Some(world) = World::new("settings of shares that move with their vserver") else { return };
    let register = cluster(&world, &["a", "b"]);
    let files = of_both(&world, "files", "a");
    assert!(register.add_vserver(&files).unwrap());
    let ((a, of_a), (b, of_b)) = (gateway(&world, "a"), gateway(&world, "b"));
    until_it_listens(files.smb.unwrap());
    for (uid, name) in [(1000, "anna"), (1001, "otto")] {
        of_b.add_user(&new_user(name, Some(uid))).unwrap();
    }
    let admitted = RulesChange {
        write: Some(vec!["anna".to_owned()]),
        protocols: Some(vec!["smb".to_owned()]),
        ..RulesChange::default()
    };
    let told = of_a.change_vserver_share("files", "data", &rules(admitted)).unwrap();
    assert_eq!(told.served_by, ["smb"]);
    for at in ["a", "b", "a"] {
        let seen = record_of(&register, "files").unwrap();
        let to = VserverRecord { gateway: at.to_owned(), ..seen.record.clone() };
        assert!(to == seen.record || register.change_vserver(&seen, Some(&to)).unwrap());
        until("it is there", || {
            let gateway = if at == "a" { &a } else { &b };
            served(gateway) == ["files"]
        });
        until("anna may write", || {
            let client = smb(&files, "anna", "data");
            client.is_ok_and(|mut client| client.create("f", CreateDisposition::OpenIf).is_ok())
        });
        assert_eq!(smb(&files, "otto", "data").err(), Some(NtStatus::ACCESS_DENIED), "at {at}");
        nfs(&files, "one").top("data").unwrap_err();
    }
    drop((of_a, of_b));
    stop(a);
    stop(b);
}

#[test]
fn a_share_that_cannot_be_opened_keeps_its_vserver_from_nothing() {
    let Some(world) = World::new("a share of a vserver that cannot be opened") else { return };
    let register = cluster(&world, &["a", "b"]);
    let files = of_both(&world, "files", "a");
    assert!(register.add_vserver(&files).unwrap());
    let ((a, of_a), (b, of_b)) = (gateway(&world, "a"), gateway(&world, "b"));
    until("it is served", || served(&a) == ["files"]);
    let missing = world.directory.path().join("missing");
    add(&register, "files", "late", &missing);
    let problem = || of_b.vserver_shares("files").unwrap().shares.remove(1).problem.unwrap_or_default();
    until("its trouble is told", || problem().contains("does not exist"));
    let of_vserver = || of_a.vservers().unwrap().vservers.remove(0);
    assert!(of_vserver().problem.unwrap().starts_with("the share late: "), "{:?}", of_vserver().problem);
    nfs(&files, "one").top("data").unwrap();

    let seen = record_of(&register, "files").unwrap();
    let to_b = VserverRecord { gateway: "b".to_owned(), ..seen.record.clone() };
    assert!(register.change_vserver(&seen, Some(&to_b)).unwrap());
    until("it is served elsewhere without it", || of_vserver().served_by.as_deref() == Some("b"));
    until("its trouble is told again", || problem().contains("does not exist"));
    std::fs::create_dir(&missing).unwrap();
    until("the share has come", || has_come(&register, "files", "late"));
    until("its trouble is over", || of_vserver().problem.is_none());
    nfs(&files, "one").top("late").unwrap();
    drop((of_a, of_b));
    stop(a);
    stop(b);
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let Some(world) = World::new("commands on shares of vservers that are refused") else { return };
    let register = cluster(&world, &["a"]);
    let files = of_both(&world, "files", "a");
    assert!(register.add_vserver(&files).unwrap());
    let (a, of_a) = gateway(&world, "a");
    until("it is served", || served(&a) == ["files"]);
    let before = record_of(&register, "files").unwrap().record;
    let new = |name: &str, directory: &str| NewShare {
        name: name.to_owned(),
        directory: directory.to_owned(),
        ..NewShare::default()
    };
    let add = |new: NewShare| of_a.add_vserver_share("files", &new);
    let set = |change: ShareChange| of_a.change_vserver_share("files", "data", &change);
    refused(of_a.add_vserver_share("more", &new("x", "cephfs:/x")), RefusalKind::NotFound, "no vserver more");
    refused(add(new("a/b", "cephfs:/x")), RefusalKind::Invalid, "a/b");
    refused(add(new("x", "/srv/x")), RefusalKind::Invalid, "is not in CephFS");
    refused(add(new("x", "cephfs:/../x")), RefusalKind::Invalid, "has . or ..");
    refused(add(new("DATA", "cephfs:/x")), RefusalKind::NameTaken, "has a share data already");
    let plan = NewShare { plan: Some("gold".to_owned()), ..new("x", "cephfs:/x") };
    refused(add(plan), RefusalKind::Invalid, "the plan of the share x");
    let policy = NewShare { snapshot_policy: "daily".to_owned(), ..new("x", "cephfs:/x") };
    refused(add(policy), RefusalKind::Invalid, "have no snapshot policy");
    let tls = ShareChange { tls_required: Some(true), encrypted: Some(false), ..ShareChange::default() };
    refused(set(tls), RefusalKind::Invalid, "requires TLS");
    let clients = RulesChange { clients: Some(vec!["nonsense/99".to_owned()]), ..RulesChange::default() };
    refused(set(rules(clients)), RefusalKind::Invalid, "the share data");
    let class = NewShare { redundancy: Some("zrs".to_owned()), ..new("x", "cephfs:/x") };
    refused(add(class), RefusalKind::Invalid, "have no redundancy class");
    let tier = ShareChange { tier: Some("hdd".to_owned()), ..ShareChange::default() };
    refused(set(tier), RefusalKind::Invalid, "have no tier");
    let bin = ShareChange { recycle_bin: Some("on".to_owned()), ..ShareChange::default() };
    refused(set(bin), RefusalKind::Invalid, "have no recycle bin");
    refused(
        of_a.change_vserver_share("files", "no", &ShareChange::default()),
        RefusalKind::NotFound,
        "no share no",
    );
    refused(of_a.remove_vserver_share("files", "no"), RefusalKind::NotFound, "has no share no");
    refused(of_a.remove_vserver_share("files", "data"), RefusalKind::InUse, "is the last one");
    let to = |name: &str| ShareMove { vserver: name.to_owned() };
    refused(of_a.move_vserver_share("files", "data", &to("files")), RefusalKind::Invalid, "already");
    refused(of_a.move_vserver_share("files", "data", &to("more")), RefusalKind::NotFound, "no vserver more");
    assert_eq!(record_of(&register, "files").unwrap().record, before);
    drop(of_a);
    stop(a);
}

/// The same shares, one of them with another name.
fn renamed(mut shares: Vec<VserverShareRecord>, from: &str, to: &str) -> Vec<VserverShareRecord> {
    for share in shares.iter_mut().filter(|share| share.share.name == from) {
        share.share.name = to.to_owned();
    }
    shares
}

fn only(gateways: &Gateways, vserver: &str, name: &str) -> Option<Share> {
    gateways.vserver_share(vserver, name).ok()
}

/// The vserver `from` at the gateway a, and `to` at the gateway b.
fn from_and_to(world: &World) -> (Register, [VserverRecord; 2], [(Gateway, Gateways); 2]) {
    let register = cluster(world, &["a", "b"]);
    let records = [of_both(world, "from", "a"), of_both(world, "to", "b")];
    for record in &records {
        assert!(register.add_vserver(record).unwrap());
    }
    let gateways = ["a", "b"].map(|name| gateway(world, name));
    until("both are served", || served(&gateways[0].0) == ["from"] && served(&gateways[1].0) == ["to"]);
    (register, records, gateways)
}

/// The command has the name in another case.
#[test]
fn a_share_that_cannot_be_served_there_goes_back() {
    let Some(world) = World::new("a share that goes back") else { return };
    let (register, [from, _], [(a, of_a), (b, of_b)]) = from_and_to(&world);
    let directory = world.data("moving");
    add(&register, "from", "moving", &directory);
    until("the share has come", || has_come(&register, "from", "moving"));
    let away = Path::new(&directory).with_extension("away");
    std::fs::rename(&directory, &away).unwrap();
    let to_other = ShareMove { vserver: "to".to_owned() };
    let why = "cannot serve the share moving";
    refused(of_b.move_vserver_share("from", "MOVING", &to_other), RefusalKind::Directory, why);
    assert_eq!(only(&of_a, "to", "moving"), None);
    std::fs::rename(&away, &directory).unwrap();
    until("the share is where it was", || has_come(&register, "from", "moving"));
    nfs(&from, "one").top("moving").unwrap();
    drop((of_a, of_b));
    stop(a);
    stop(b);
}

#[test]
fn a_share_moves_to_another_vserver_and_is_never_in_both() {
    let Some(world) = World::new("a share that moves between vservers") else { return };
    let (register, [from, to], [(a, of_a), (b, of_b)]) = from_and_to(&world);
    add(&register, "from", "moving", &world.data("moving"));
    until("the share has come", || has_come(&register, "from", "moving"));
    let mut nfs_client = nfs(&from, "one");
    let top = nfs_client.top("moving").unwrap();
    let held = nfs_client.open(&top, "f", ShareDeny::NONE).unwrap();
    nfs_client.write(&held).unwrap();

    let to_other = ShareMove { vserver: "to".to_owned() };
    refused(of_b.move_vserver_share("from", "data", &to_other), RefusalKind::NameTaken, "has a share data");
    let told = of_b.move_vserver_share("from", "moving", &to_other).unwrap();
    assert!(told.served, "{told:?}");
    assert_eq!(nfs_client.top("moving").unwrap_err(), Status::Moved);
    assert_eq!(nfs_client.open(&top, "f", ShareDeny::NONE).unwrap_err(), Status::Moved);
    let mut there = nfs(&to, "two");
    let there_top = there.top("moving").unwrap();
    until("the grace is over", || there.open(&there_top, "f", ShareDeny::NONE).is_ok());
    let left = of_a.vserver_shares("from").unwrap();
    assert_eq!(left.went.iter().collect::<Vec<_>>(), [(&"moving".to_owned(), &"to".to_owned())]);
    assert_eq!(only(&of_a, "from", "moving"), None);

    of_a.move_vserver_share("to", "moving", &ShareMove { vserver: "from".to_owned() }).unwrap();
    assert_eq!(nfs_client.top("moving").unwrap(), top, "it has the number that it had");
    assert!(of_a.vserver_shares("from").unwrap().went.is_empty(), "it is back");
    assert_eq!(there.top("moving").unwrap_err(), Status::Moved);

    // Whoever serves the vserver tells so, until the other one is removed.
    let seen = record_of(&register, "to").unwrap();
    let to_a = VserverRecord { gateway: "a".to_owned(), ..seen.record.clone() };
    assert!(register.change_vserver(&seen, Some(&to_a)).unwrap());
    until("it is served elsewhere", || served(&a) == ["from", "to"]);
    until("it listens", || std::net::TcpStream::connect((HOME, to.nfs.unwrap())).is_ok());
    let mut there = nfs(&to, "two");
    assert_eq!(there.top("moving").unwrap_err(), Status::Moved);
    of_a.remove_vserver("from").unwrap();
    until("it is forgotten", || there.top("moving").err() == Some(Status::NoEnt));
    drop((of_a, of_b));
    stop(a);
    stop(b);
}

#[test]
fn a_share_comes_when_the_vserver_that_it_leaves_is_served_by_nobody_who_may_have_it_open() {
    let Some(world) = World::new("a share that waits for another vserver") else { return };
    let register = cluster(&world, &["a", "c"]);
    let from = of_both(&world, "from", "a");
    let mut held = of_both(&world, "held", "c");
    held.shares = renamed(held.shares, "data", "moving");
    let kept = world.data("kept").display().to_string();
    held.shares.push(VserverShareRecord::plain("kept", &kept, Terms::empty(), ""));
    for record in [&from, &held] {
        assert!(register.add_vserver(record).unwrap());
    }
    // The gateway c is there, and does nothing.
    let c = absent(&world, "c");
    let Begun::Owned(ownership) = c.own("held").unwrap() else { panic!("others serve it") };
    ownership.answers().unwrap();
    let (a, of_a) = gateway(&world, "a");
    until("it is served", || served(&a) == ["from"]);
    let moving = std::thread::spawn({
        let of_a = Arc::clone(&of_a);
        move || of_a.move_vserver_share("held", "moving", &ShareMove { vserver: "from".to_owned() })
    });
    until("it is written down", || only(&of_a, "from", "moving").is_some());
    assert_eq!(only(&of_a, "held", "moving"), None);
    refused(of_a.remove_vserver("held"), RefusalKind::Busy, "is on its way from the vserver held");
    // For as long as the gateway looks several times.
    std::thread::sleep(Duration::from_secs(2));
    let coming = only(&of_a, "from", "moving").unwrap();
    assert_eq!(coming.problem.as_deref(), Some("it is on its way from the vserver held"));
    let mut nfs_client = nfs(&from, "one");
    assert_eq!(nfs_client.top("moving").unwrap_err(), Status::NoEnt);
    ownership.end().unwrap();
    assert!(moving.join().unwrap().unwrap().served);
    nfs_client.top("moving").unwrap();
    assert_eq!(of_a.vserver_shares("held").unwrap().went.len(), 1);
    of_a.remove_vserver("held").unwrap();

    // From a vserver that nobody serves, because one of its directories is not there.
    let mut idle = of_both(&world, "idle", "a");
    let missing = world.directory.path().join("missing").display().to_string();
    idle.shares = renamed(idle.shares, "data", "papers");
    idle.shares.push(VserverShareRecord::plain("missing", &missing, Terms::empty(), ""));
    assert!(register.add_vserver(&idle).unwrap());
    until("it cannot be served", || register.trouble("idle").unwrap().is_some());
    of_a.move_vserver_share("idle", "papers", &ShareMove { vserver: "from".to_owned() }).unwrap();
    nfs_client.top("papers").unwrap();
    assert!(of_a.vserver_shares("from").unwrap().went.is_empty());
    drop(of_a);
    stop(a);
}
