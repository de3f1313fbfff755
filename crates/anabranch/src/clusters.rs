//! `anabranch cluster` and `anabranch vserver`: gateways of a cluster, and the servers that they pass on to each other.

mod vserver_shares;

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use control::Administration as _;
use control::cluster::{
    CALL_MAX, Cluster, ClusterGateway, ClusterGateways, Drained, KeytabBytes, NewKeytab, NewVserver, Vserver,
    VserverMove, VserverShare, Vservers,
};
use control_client::path_part;
use gateway::{Administration, kerberos};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::administrator::{Administrator, Intent};
use crate::asking::Asking;
use crate::ceph_pools;
use crate::cli::{ClusterCommand, VserverCommand, VserverCreate};
use crate::domain::left_out;
use crate::print::{counted, harmless, json, print};
use crate::problem::{Cause, Problem, Result};
use crate::table;

const CLUSTER: &str = "/v1/cluster";
const GATEWAYS: &str = "/v1/cluster/gateways";
const VSERVERS: &str = "/v1/vservers";

/// How long to wait for the answer to a call that changes something.
pub(crate) const PATIENCE: Duration = CALL_MAX.saturating_add(Duration::from_secs(10));

/// A call that only a running server carries out. One that changes something waits until what it asks for is so.
fn ask<T: DeserializeOwned>(
    asking: &Asking,
    call: (&str, &str),
    body: Option<&impl Serialize>,
    here: impl FnOnce(&dyn ClusterGateways) -> std::result::Result<T, control::Refusal>,
) -> Result<T> {
    let administrator = Administrator::find(asking, Intent::Look)?;
    let here = |administration: &Administration| here(&*administration.cluster_gateways()?);
    if call.0 == "GET" {
        return administrator.call(call, body, here);
    }
    administrator.call_within(PATIENCE, call, body, here)
}

/// The same without a body.
fn ask_plain<T: DeserializeOwned>(
    asking: &Asking,
    call: (&str, &str),
    here: impl FnOnce(&dyn ClusterGateways) -> std::result::Result<T, control::Refusal>,
) -> Result<T> {
    ask(asking, call, None::<&()>, here)
}

/// The gateway that was named, or the one that is asked.
fn named(gateway: Option<&String>, asking: &Asking) -> Result<String> {
    match gateway {
        Some(gateway) => Ok(gateway.clone()),
        None => Ok(status(asking)?.gateway),
    }
}

fn status(asking: &Asking) -> Result<Cluster> {
    ask_plain(asking, ("GET", CLUSTER), |gateways| gateways.cluster())
}

fn show<T: Serialize>(asking: &Asking, value: &T, text: String) -> Result<()> {
    print(&if asking.json { json(value)? } else { text })
}

/// Carries out a command about the cluster.
///
/// # Errors
/// It is refused, or the server cannot be asked.
pub(crate) fn run(command: &ClusterCommand) -> Result<()> {
    match command {
        ClusterCommand::Status(asking) => {
            let cluster = status(asking)?;
            show(asking, &cluster, render(&cluster))
        }
        ClusterCommand::Pools(wanted) => ceph_pools::run(wanted),
        ClusterCommand::Init(asking) => {
            let cluster: Cluster = ask_plain(asking, ("POST", CLUSTER), |gateways| gateways.init())?;
            let made = format!("Made a cluster in the pool {}.\n{}", cluster.pool, render(&cluster));
            show(asking, &cluster, made)
        }
        ClusterCommand::Join(asking) => {
            let cluster: Cluster = ask_plain(asking, ("POST", GATEWAYS), |gateways| gateways.join())?;
            let joined = format!("The gateway {} has its place.\n{}", cluster.gateway, render(&cluster));
            show(asking, &cluster, joined)
        }
        ClusterCommand::Leave { gateway, asking } => {
            let gateway = named(gateway.as_ref(), asking)?;
            let path = format!("{GATEWAYS}/{}", path_part(&gateway));
            let cluster: Cluster = ask_plain(asking, ("DELETE", &path), |gateways| gateways.leave(&gateway))?;
            let left = format!("The gateway {gateway} has left.\n{}", render(&cluster));
            show(asking, &cluster, left)
        }
    }
}

/// Carries out a command about vservers.
///
/// # Errors
/// It is refused, or the server cannot be asked.
pub(crate) fn run_vserver(command: &VserverCommand) -> Result<()> {
    match command {
        VserverCommand::Create(create) => {
            let new = new(create)?;
            let asking = &create.asking;
            let made: Vserver =
                ask(asking, ("POST", VSERVERS), Some(&new), |here| here.create_vserver(&new))?;
            let text = format!("The gateway {} serves the vserver {}.\n", made.gateway, made.name);
            show(asking, &made, text)
        }
        VserverCommand::List(asking) => {
            let all: Vservers = ask_plain(asking, ("GET", VSERVERS), |gateways| gateways.vservers())?;
            show(asking, &all, render_vservers(&all))
        }
        VserverCommand::Move { name, gateway, asking } => {
            let to = VserverMove { gateway: gateway.clone() };
            let path = format!("{VSERVERS}/{}/move", path_part(name));
            let moved: Vserver =
                ask(asking, ("POST", &path), Some(&to), |here| here.move_vserver(name, &to))?;
            let text = format!("The gateway {} serves the vserver {}.\n", moved.gateway, moved.name);
            show(asking, &moved, text)
        }
        VserverCommand::Drain { gateway, asking } => {
            let gateway = named(gateway.as_ref(), asking)?;
            let path = format!("{GATEWAYS}/{}/drain", path_part(&gateway));
            let drained: Drained = ask_plain(asking, ("POST", &path), |gateways| gateways.drain(&gateway))?;
            show(asking, &drained, render_drained(&drained))
        }
        VserverCommand::Keytab { name, file: Some(file), asking, .. } => set_keytab(name, file, asking),
        VserverCommand::Keytab { name, file: None, asking, .. } => remove_keytab(name, asking),
        VserverCommand::Share(command) => vserver_shares::run(command),
        VserverCommand::Remove { name, asking } => {
            let path = format!("{VSERVERS}/{}", path_part(name));
            let removed: Vserver = ask_plain(asking, ("DELETE", &path), |here| here.remove_vserver(name))?;
            show(asking, &removed, format!("The vserver {} has ended. Its directories stay.\n", removed.name))
        }
    }
}

fn set_keytab(name: &str, file: &Path, asking: &Asking) -> Result<()> {
    let (keytab, bytes) = kerberos::read_whole(file)?;
    let new = NewKeytab { keytab: KeytabBytes(bytes) };
    let path = format!("{VSERVERS}/{}/keytab", path_part(name));
    let set: Vserver = ask(asking, ("PUT", &path), Some(&new), |here| here.set_keytab(name, &new))?;
    let mut text = format!(
        "{} of {} were stored in the cluster for the vserver {}.\n",
        counted(keytab.entries().len(), "key"),
        file.display(),
        set.name
    );
    text += &left_out(&keytab);
    text += "Within seconds, it accepts tickets with them, at each gateway that serves it.\n";
    show(asking, &set, text)
}

fn remove_keytab(name: &str, asking: &Asking) -> Result<()> {
    let path = format!("{VSERVERS}/{}/keytab", path_part(name));
    let removed: Vserver = ask_plain(asking, ("DELETE", &path), |here| here.remove_keytab(name))?;
    let text = format!(
        "The keytab of the vserver {} was removed from the cluster.\n\
         Within seconds, it accepts tickets with the keytab of the gateway that serves it.\n",
        removed.name
    );
    show(asking, &removed, text)
}

fn new(create: &VserverCreate) -> Result<NewVserver> {
    let share = |text: &String| {
        let (name, directory) = text.split_once('=').ok_or_else(|| {
            let what = format!("--share {text:?}: expected NAME=DIR, such as data=cephfs:/data");
            Problem::new(Cause::Settings, what, "")
        })?;
        Ok(VserverShare {
            name: name.to_owned(),
            directory: directory.to_owned(),
            is_read_only: create.read_only,
            is_continuously_available: !create.no_continuous_availability,
            plan: create.plan.clone(),
        })
    };
    Ok(NewVserver {
        name: create.name.clone(),
        gateway: create.gateway.clone(),
        addresses: create.address.clone(),
        smb_port: create.smb.0,
        nfs_port: create.nfs.0,
        shares: create.share.iter().map(share).collect::<Result<_>>()?,
    })
}

fn render(Cluster { gateway, pool, has_place, problem, gateways }: &Cluster) -> String {
    let row = |one: &ClusterGateway| {
        let state = match (one.is_alive, one.is_drained) {
            (false, _) => "not there",
            (true, true) => "drained",
            (true, false) => "there",
        };
        let vservers = if one.vservers.is_empty() { "-".to_owned() } else { one.vservers.join(",") };
        [harmless(&one.name), state.to_owned(), harmless(&one.version), harmless(&vservers)]
    };
    let rows: Vec<_> = gateways.iter().map(row).collect();
    let mut text = table::render(["GATEWAY", "STATE", "VERSION", "VSERVERS"], &rows);
    let place = if *has_place { "has its place" } else { "has no place" };
    let _ = writeln!(
        text,
        "\nThis gateway, {}, {place} in the cluster of the pool {}.",
        harmless(gateway),
        harmless(pool)
    );
    if let Some(problem) = problem {
        let _ = writeln!(text, "{}", harmless(problem));
    }
    text
}

fn render_vservers(Vservers { vservers }: &Vservers) -> String {
    let row = |one: &Vserver| {
        let served = match &one.served_by {
            Some(by) if *by == one.gateway => "served".to_owned(),
            Some(by) => format!("still at {by}"),
            None => "not served".to_owned(),
        };
        let shares: Vec<_> =
            one.shares.iter().map(|share| format!("{}={}", share.name, share.directory)).collect();
        [
            harmless(&one.name),
            harmless(&one.gateway),
            harmless(&served),
            one.epoch.map_or_else(|| "-".to_owned(), |epoch| epoch.to_string()),
            harmless(&one.addresses.join(",")),
            harmless(&shares.join(",")),
        ]
    };
    let rows: Vec<_> = vservers.iter().map(row).collect();
    let mut text = table::render(["VSERVER", "GATEWAY", "STATE", "EPOCH", "ADDRESSES", "SHARES"], &rows);
    for Vserver { name, problem, .. } in vservers {
        if let Some(problem) = problem {
            let _ = writeln!(text, "{}: {}", harmless(name), harmless(problem));
        }
    }
    text
}

fn render_drained(Drained { gateway, vservers }: &Drained) -> String {
    let mut text = String::new();
    for Vserver { name, gateway, .. } in vservers {
        let _ = writeln!(text, "The gateway {} serves the vserver {}.", harmless(gateway), harmless(name));
    }
    let _ = writeln!(
        text,
        "The gateway {} is drained: no vserver comes to it until it joins again.",
        harmless(gateway)
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_shown_with_who_is_there() {
        let gateway = |name: &str, is_alive, is_drained, vservers: &[&str]| ClusterGateway {
            name: name.to_owned(),
            version: "1.0".to_owned(),
            is_alive,
            is_drained,
            vservers: vservers.iter().map(|name| (*name).to_owned()).collect(),
            ..ClusterGateway::default()
        };
        let cluster = Cluster {
            gateway: "a".to_owned(),
            pool: "gw".to_owned(),
            has_place: true,
            problem: None,
            gateways: vec![
                gateway("a", true, false, &["files", "more"]),
                gateway("b", true, true, &[]),
                gateway("c", false, false, &[]),
            ],
        };
        let expected = "\
GATEWAY  STATE      VERSION  VSERVERS
a        there      1.0      files,more
b        drained    1.0      -
c        not there  1.0      -

This gateway, a, has its place in the cluster of the pool gw.
";
        assert_eq!(render(&cluster), expected);
    }

    #[test]
    fn a_vserver_is_shown_with_where_it_is() {
        let share = VserverShare {
            name: "data".to_owned(),
            directory: "cephfs:/d".to_owned(),
            ..VserverShare::default()
        };
        let files = Vserver {
            name: "files".to_owned(),
            gateway: "a".to_owned(),
            served_by: Some("a".to_owned()),
            epoch: Some(3),
            addresses: vec!["192.0.2.10%eth0/24".to_owned()],
            shares: vec![share],
            ..Vserver::default()
        };
        let stuck = Vserver {
            name: "stuck".to_owned(),
            gateway: "b".to_owned(),
            served_by: None,
            epoch: None,
            problem: Some("b: no interface eth0".to_owned()),
            ..files.clone()
        };
        let expected = "\
VSERVER  GATEWAY  STATE       EPOCH  ADDRESSES           SHARES
files    a        served      3      192.0.2.10%eth0/24  data=cephfs:/d
stuck    b        not served  -      192.0.2.10%eth0/24  data=cephfs:/d
stuck: b: no interface eth0
";
        assert_eq!(render_vservers(&Vservers { vservers: vec![files, stuck] }), expected);
    }
}
