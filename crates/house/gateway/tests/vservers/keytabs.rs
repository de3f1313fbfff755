//! The keytab of a vserver is in the cluster.

use std::sync::Arc;

use anabranch_gateway::Gateway;
use control::RefusalKind;
use control::cluster::{ClusterGateways, KeytabBytes, NewKeytab, Vserver, VserverMove};
use smb_proto::dialect::Dialect;
use smb_wire::NtStatus;
use state::cluster::{Register, VserverRecord};

use crate::client::Client;
use crate::cluster::{begin, cluster, record_of, served, stop, until, vserver};
use crate::ticket::{ask, write_keytab};
use crate::world::{HOME, SERVICE, World, free_port, member_of_domain};
use crate::{gss, server};

/// Who is in the keytab of the vserver. That of each gateway has [`SERVICE`].
const OWN: [&str; 2] = ["cifs", "vserver.lab.test"];
const OWN_OF_NFS: [&str; 2] = ["nfs", "vserver.lab.test"];

/// A vserver of both protocols, which the gateway a is to serve.
fn of_both(world: &World, name: &str) -> VserverRecord {
    VserverRecord { smb: Some(free_port()), ..vserver(name, "a", &world.data(name)) }
}

/// Whether a ticket for this service logs on.
fn is_admitted(at: &VserverRecord, service: &[&str]) -> bool {
    if service == OWN_OF_NFS {
        let mut client = server::Client::connect((HOME, at.nfs.unwrap()).into());
        return gss::begin(&mut client, &gss::token(&member_of_domain(service)))
            .is_ok_and(|begun| begun.major == 0);
    }
    let mut client = Client::connect((HOME, at.smb.unwrap()).into());
    client.negotiate(&[Dialect::Smb311]);
    ask(&mut client, &member_of_domain(service)).0.status() == NtStatus::SUCCESS
}

/// A keytab for these services.
fn keytab(world: &World, services: &[&[&str]]) -> NewKeytab {
    let file = world.directory.path().join("a keytab");
    write_keytab(&file, services);
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    new(bytes)
}

fn new(bytes: Vec<u8>) -> NewKeytab {
    let mut keytab = KeytabBytes::default();
    *keytab.0 = bytes;
    NewKeytab { keytab }
}

fn told(gateways: &Arc<dyn ClusterGateways>) -> Vserver {
    gateways.vservers().unwrap().vservers.remove(0)
}

/// Two gateways of a cluster that has this vserver, and the commands of each.
fn two(world: &World, record: &VserverRecord) -> (Register, [Gateway; 2], [Arc<dyn ClusterGateways>; 2]) {
    let register = cluster(world, &["a", "b"]);
    assert!(register.add_vserver(record).unwrap());
    let mut nodes = ["a", "b"].map(|name| world.gateway(name));
    let mut names = ["a", "b"].into_iter();
    let commands = nodes.each_mut().map(|node| {
        let name = names.next().unwrap();
        let store = world.store.gateway(name);
        begin(node, name, move || Arc::clone(&store))
    });
    until("it is served", || served(&nodes[0]) == ["files"]);
    (register, nodes, commands)
}

#[test]
fn a_vserver_accepts_tickets_with_its_own_keytab_wherever_it_is() {
    let Some(world) = World::new("keytabs of vservers") else { return };
    let at = of_both(&world, "files");
    let (register, nodes, [a, b]) = two(&world, &at);
    assert!(is_admitted(&at, &SERVICE), "without a keytab, with that of the gateway");
    assert!(!is_admitted(&at, &OWN) && !is_admitted(&at, &OWN_OF_NFS));
    assert_eq!((told(&a).has_keytab, told(&a).keys), (false, Vec::new()));

    // The command is given to the other gateway.
    let stored = b.set_keytab("files", &keytab(&world, &[&OWN, &OWN_OF_NFS])).unwrap();
    assert!(stored.has_keytab && stored.problem.is_none());
    let principals: Vec<_> = stored.keys.iter().map(|key| (&*key.principal, key.kvno)).collect();
    assert_eq!(principals, [("cifs/vserver.lab.test@LAB.TEST", 3), ("nfs/vserver.lab.test@LAB.TEST", 3)]);
    until("it accepts tickets for it", || is_admitted(&at, &OWN));
    assert!(is_admitted(&at, &OWN_OF_NFS));
    assert!(!is_admitted(&at, &SERVICE), "and no others");

    a.move_vserver("files", &VserverMove { gateway: "b".to_owned() }).unwrap();
    assert!(
        is_admitted(&at, &OWN) && is_admitted(&at, &OWN_OF_NFS),
        "the other one, from its first client on"
    );
    assert!(!is_admitted(&at, &SERVICE));

    let removed = a.remove_keytab("files").unwrap();
    assert!(!removed.has_keytab && removed.keys.is_empty());
    until("it accepts tickets with the keytab of the gateway", || is_admitted(&at, &SERVICE));
    assert!(!is_admitted(&at, &OWN));
    b.set_keytab("files", &keytab(&world, &[&OWN])).unwrap();
    b.remove_vserver("files").unwrap();
    assert!(register.keytab("files").unwrap().is_none(), "it ends with the vserver");
    drop((a, b));
    nodes.into_iter().for_each(stop);
}

#[test]
fn a_keytab_that_cannot_be_used_is_refused_and_keeps_no_vserver_from_being_served() {
    let Some(world) = World::new("keytabs of vservers that cannot be used") else { return };
    let at = of_both(&world, "files");
    let (register, nodes, [a, b]) = two(&world, &at);
    let refused = |bytes: &[u8], why: &str| {
        let refusal = a.set_keytab("files", &new(bytes.to_vec())).unwrap_err();
        assert!(refusal.kind == RefusalKind::Invalid && refusal.what.contains(why), "{refusal:?}");
    };
    refused(b"hello", "not a keytab");
    refused(&[5, 2], "no AES key");
    refused(&vec![5; (1 << 20) + 1], "larger than 1 MiB");
    let sound = keytab(&world, &[&OWN]);
    for refusal in [
        a.set_keytab("none", &sound).unwrap_err(),
        a.remove_keytab("none").unwrap_err(),
        a.remove_keytab("files").unwrap_err(),
    ] {
        assert_eq!(refusal.kind, RefusalKind::NotFound, "{refusal:?}");
    }
    assert!(is_admitted(&at, &SERVICE), "nothing has changed");

    // As a later version may write it.
    assert!(register.set_keytab(&record_of(&register, "files").unwrap(), Some(b"later")).unwrap());
    until("it accepts no ticket", || !is_admitted(&at, &SERVICE));
    let problem = told(&b).problem.unwrap();
    assert!(problem.contains("cannot be used") && problem.contains("not a keytab"), "{problem}");
    b.move_vserver("files", &VserverMove { gateway: "b".to_owned() }).unwrap();
    assert_eq!(served(&nodes[1]), ["files"]);
    assert!(!is_admitted(&at, &SERVICE) && !is_admitted(&at, &OWN));
    b.set_keytab("files", &sound).unwrap();
    until("it accepts tickets for another one", || is_admitted(&at, &OWN));
    assert_eq!(told(&a).problem, None);
    drop((a, b));
    nodes.into_iter().for_each(stop);
}

#[test]
fn a_keytab_that_a_gateway_reads_again_is_for_vservers_without_one_of_their_own() {
    const LATER: [&str; 2] = ["cifs", "later.lab.test"];
    let Some(world) = World::new("a keytab that is read again") else { return };
    let at = of_both(&world, "files");
    let (register, nodes, [a, b]) = two(&world, &at);
    let reload = |services: &[&[&str]]| {
        std::fs::remove_file(world.keytab("a")).unwrap();
        write_keytab(&world.keytab("a"), services);
        nodes[0].administration().use_settings(&world.settings("a")).unwrap();
    };
    assert!(is_admitted(&at, &SERVICE));
    reload(&[&LATER]);
    until("it accepts tickets with the other keytab", || is_admitted(&at, &LATER));
    assert!(!is_admitted(&at, &SERVICE));

    a.set_keytab("files", &keytab(&world, &[&OWN])).unwrap();
    until("it accepts tickets with its own", || is_admitted(&at, &OWN));
    reload(&[&SERVICE, &LATER]);
    // By now the gateway has given the vserver what it has to give.
    let beside = of_both(&world, "beside");
    assert!(register.add_vserver(&beside).unwrap());
    until("another one is served", || served(&nodes[0]) == ["beside", "files"]);
    until("with the keytab of the gateway", || is_admitted(&beside, &SERVICE));
    assert!(is_admitted(&at, &OWN) && !is_admitted(&at, &SERVICE) && !is_admitted(&at, &LATER));
    drop((a, b));
    nodes.into_iter().for_each(stop);
}
