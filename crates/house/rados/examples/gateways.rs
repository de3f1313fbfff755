//! What the tests of tests/interop/cluster.sh do with a Ceph cluster.
//!
//! gateways CONFIGURATION USER POOL conformance|own|take-over|measure
#![expect(clippy::unwrap_used, reason = "an example fails by panicking")]

use std::io::BufRead;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anabranch_rados::{Gateway, Place};
use state::cluster::{ClusterStore, Fenced, NotOwner, Owner, Taken, conformance};
use state::store::{Form, StoreError, Table};

/// How long a gateway is believed to be alive.
const LEASE: Duration = Duration::from_secs(3);
/// How long a cluster may not answer.
const PATIENCE: Duration = Duration::from_secs(60);
const TABLE: Table = Table { name: "table", form: Form::TextToBytes };
const COUNT: &[u8] = b"count";

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [configuration, user, pool, what] = &arguments[..] else {
        eprintln!("gateways CONFIGURATION USER POOL conformance|own|take-over|measure");
        return ExitCode::from(2);
    };
    let place = |namespace: &str| Place {
        configuration: Path::new(configuration).into(),
        user: user.clone(),
        pool: pool.clone(),
        namespace: namespace.into(),
    };
    let (namespace, name) = match &what[..] {
        "own" => ("moved", "a"),
        "take-over" => ("moved", "b"),
        _ => (&what[..], "first"),
    };
    let gateway = match Gateway::connect(&place(namespace), name) {
        Ok(gateway) => gateway,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::FAILURE;
        }
    };
    match &what[..] {
        "conformance" => {
            conformance::check(&|name| Arc::new(Gateway::connect(&place(what), name).unwrap()));
            println!("conformance: ok");
        }
        "own" => own(&gateway),
        "take-over" => take_over(&gateway),
        "measure" => measure(&gateway),
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

/// The result of a call, once the cluster answers: while an OSD is replaced on a busy machine, it may not for longer than a call waits.
fn answered<T>(mut call: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let begun = Instant::now();
    loop {
        match call() {
            Err(error) if !error.is::<NotOwner>() && !error.is::<Fenced>() && begun.elapsed() < PATIENCE => {
                println!("again: {error}");
            }
            result => return result,
        }
    }
}

/// Makes a gateway the owner of the group. An attempt without an answer may have succeeded.
fn owned(gateway: &Gateway, name: &str) -> Owner {
    loop {
        let seen = answered(|| gateway.owner("group")).unwrap();
        match seen {
            Some(owner) if owner.gateway == name => return owner,
            _ => drop(answered(|| gateway.take("group", seen.as_ref())).unwrap()),
        }
    }
}

/// Writes numbers for as long as that is allowed.
fn own(gateway: &Gateway) {
    let hold = || match gateway.renew_lease("a", LEASE)? {
        Some(until) => Ok(Taken::Until(until)),
        None => gateway.take_lease("a", LEASE),
    };
    answered(hold).unwrap();
    let owner = owned(gateway, "a");
    let records = gateway.records("group", &owner).unwrap();
    let mut renewed = Instant::now();
    for number in 0_u64.. {
        let batch = vec![TABLE.put(COUNT, &number.to_le_bytes())].into();
        if let Err(refused) = answered(|| records.write(&batch)) {
            println!("refused at {number}: {refused}");
            return;
        }
        println!("wrote {number}");
        if renewed.elapsed() > LEASE / 6 {
            renewed = Instant::now();
            if let Err(refused) = answered(hold) {
                println!("refused at {}: {refused}", number + 1);
                return;
            }
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Waits until the owner is dead, takes its group, and says for each line of the input how far the numbers are.
fn take_over(gateway: &Gateway) {
    let mut alive = None;
    loop {
        match (answered(|| gateway.lease_holder("a")).unwrap(), &alive) {
            (None, Some(_)) => break,
            (None, None) => {}
            (holder, None) => {
                println!("a is alive");
                alive = holder;
            }
            (holder, _) => alive = holder,
        }
        thread::sleep(Duration::from_millis(20));
    }
    let begun = Instant::now();
    answered(|| gateway.fence(alive.as_ref().unwrap())).unwrap();
    let owner = owned(gateway, "b");
    let records = gateway.records("group", &owner).unwrap();
    let count =
        || u64::from_le_bytes(answered(|| records.read(TABLE, COUNT)).unwrap().unwrap().try_into().unwrap());
    println!("owner in epoch {} after {} ms: {}", owner.epoch, begun.elapsed().as_millis(), count());
    for _ in std::io::stdin().lock().lines() {
        println!("{}", count());
    }
}

/// Prints how long the operations take.
fn measure(gateway: &Gateway) {
    let owner = gateway.take("group", None).unwrap().unwrap();
    let records = gateway.records("group", &owner).unwrap();
    let value = [7; 300];
    let batch = |records: usize| {
        (0..records).map(|n| TABLE.put(n.to_string().as_bytes(), &value)).collect::<Vec<_>>().into()
    };
    let (one, fifty) = (batch(1), batch(50));
    print_median("a record of 300 bytes", || assert!(records.write(&one).unwrap()));
    print_median("50 records in one batch", || assert!(records.write(&fifty).unwrap()));
    print_median("a record is read", || assert!(records.read(TABLE, b"0").unwrap().is_some()));
    assert!(matches!(gateway.take_lease("lease", LEASE).unwrap(), Taken::Until(_)));
    print_median("a lease is renewed", || assert!(gateway.renew_lease("lease", LEASE).unwrap().is_some()));
    let (sender, heard) = mpsc::channel();
    let _listening = gateway.listen("topic", Box::new(move |_| sender.send(()).unwrap())).unwrap();
    print_median("a listener is told", || {
        gateway.tell("topic", b"news").unwrap();
        heard.recv_timeout(LEASE).unwrap();
    });
}

fn print_median(what: &str, mut act: impl FnMut()) {
    let mut times: Vec<_> = (0..200)
        .map(|_| {
            let begun = Instant::now();
            act();
            begun.elapsed().as_micros()
        })
        .collect();
    times.sort_unstable();
    println!("{what}: {} us (a tenth under {}, a tenth over {})", times[100], times[20], times[180]);
}
