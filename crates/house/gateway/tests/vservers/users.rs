//! The users of a cluster, who may log on to its vservers at each gateway.

use std::net::TcpStream;
use std::sync::Arc;

use control::RefusalKind;
use control::cluster::ClusterGateways;
use control::users::{NewUser, Password, User, UserChange};
use control::{Administration as _, Refusal};
use smb_proto::dialect::Dialect;
use smb_wire::NtStatus;
use state::cluster::VserverRecord;

use crate::client::Client;
use crate::cluster::{begin, cluster, record_of, served, stop, until, vserver};
use crate::world::{HOME, World, free_port};

pub(crate) fn new_user(name: &str, uid: Option<u32>) -> NewUser {
    NewUser { name: name.to_owned(), password: Password(format!("{name}'s")), uid, ..NewUser::default() }
}

fn only(gateways: &Arc<dyn ClusterGateways>) -> User {
    let mut users = gateways.users().unwrap().users;
    assert_eq!(users.len(), 1);
    users.remove(0)
}

pub(crate) fn refused<T>(called: Result<T, Refusal>, kind: RefusalKind, why: &str) {
    let Err(refusal) = called else { panic!("it was not refused") };
    assert!(refusal.kind == kind && refusal.what.contains(why), "{refusal:?}");
}

pub(crate) fn connected(port: u16) -> Client {
    let mut client = Client::connect((HOME, port).into());
    client.negotiate(&[Dialect::Smb311]);
    client
}

/// When a vserver is in the list of its gateway, it does not listen yet.
pub(crate) fn until_it_listens(port: u16) {
    until("it listens", || TcpStream::connect((HOME, port)).is_ok());
}

pub(crate) fn log_on(port: u16, name: &str) -> Result<Client, NtStatus> {
    let mut client = connected(port);
    client.log_in(name, &format!("{name}'s"))?;
    client.tree_connect("data")?;
    Ok(client)
}

#[test]
fn users_of_a_cluster_are_the_same_at_each_gateway() {
    let Some(world) = World::new("users of a cluster") else { return };
    let register = cluster(&world, &["a", "b"]);
    let port = free_port();
    let files = VserverRecord { smb: Some(port), ..vserver("files", "a", &world.data("files")) };
    assert!(register.add_vserver(&files).unwrap());
    let [mut a, mut b] = ["a", "b"].map(|name| world.gateway(name));
    let [of_a, of_b] = [(&mut a, "a"), (&mut b, "b")].map(|(gateway, name)| {
        let store = world.store.gateway(name);
        begin(gateway, name, move || Arc::clone(&store))
    });
    until_it_listens(port);

    let anna = of_a.add_user(&new_user("Anna", Some(1000))).unwrap();
    assert!(anna.sid.is_some() && anna.aes_keys && !anna.disabled);
    assert_eq!(only(&of_b), anna);
    refused(of_b.add_user(&new_user("ANNA", Some(1001))), RefusalKind::NameTaken, "there is a user ANNA");
    refused(of_b.add_user(&new_user("no such user", None)), RefusalKind::Invalid, "has no uid");
    refused(of_b.add_user(&new_user("", Some(1))), RefusalKind::Invalid, "the user");
    refused(of_b.remove_user("otto"), RefusalKind::NotFound, "there is no user otto");
    // One of the gateway itself, whose own shares do not know the user of the cluster.
    a.administration().add_user(new_user("otto", Some(1002))).unwrap();
    until("it may log on, too", || log_on(port, "otto").is_ok());
    assert_eq!(a.administration().users().unwrap().users.len(), 1);
    let mut session = log_on(port, "Anna").unwrap();
    assert_eq!(connected(port).log_in("anna", "another").err(), Some(NtStatus::LOGON_FAILURE));

    let disabled = UserChange { disabled: Some(true), ..UserChange::default() };
    assert_eq!(of_b.change_user("anna", &disabled).unwrap(), User { disabled: true, ..anna.clone() });
    until("the session has ended", || session.tree_connect("data").is_err());
    until("nobody logs on any more", || log_on(port, "Anna").err() == Some(NtStatus::ACCOUNT_DISABLED));
    let enabled = UserChange { disabled: Some(false), ..UserChange::default() };
    assert_eq!(of_b.change_user("ANNA", &enabled).unwrap(), anna);

    let seen = record_of(&register, "files").unwrap();
    let to_b = VserverRecord { gateway: "b".to_owned(), ..seen.record.clone() };
    assert!(register.change_vserver(&seen, Some(&to_b)).unwrap());
    until("the vserver is elsewhere", || served(&b) == ["files"]);
    until_it_listens(port);
    log_on(port, "Anna").unwrap();
    assert_eq!(log_on(port, "otto").err(), Some(NtStatus::LOGON_FAILURE), "it is not known there");
    assert_eq!(of_a.remove_user("anna").unwrap(), anna);
    until("nobody logs on any more", || log_on(port, "Anna").err() == Some(NtStatus::LOGON_FAILURE));
    let another = of_b.add_user(&new_user("anna", Some(1000))).unwrap();
    assert!(another.sid.is_some() && another.sid != anna.sid, "an access list does not mean this one");

    drop((of_a, of_b));
    stop(a);
    stop(b);
}
