//! Times the calls that servers make most often: `cargo run --release --example cycle -- DIR`.

use std::hint::black_box;
use std::io::IoSlice;
use std::path::Path;
use std::time::Instant;

use anabranch_storage_local::{LocalOptions, LocalStore, raise_descriptor_limit};
use storage::conformance::MAY;
use storage::{Name, NewKind, NewNode, NodeRef, Result, Stability, Storage, View, Wait, Want};

const ROUNDS: u32 = 20_000;

/// Prints the best of several runs, in microseconds per round.
fn time(what: &str, mut round: impl FnMut(u32) -> Result<()>) -> Result<()> {
    let mut best = f64::INFINITY;
    for _ in 0..5 {
        let begun = Instant::now();
        for number in 0..ROUNDS {
            round(number)?;
        }
        best = best.min(begun.elapsed().as_secs_f64() * 1e6 / f64::from(ROUNDS));
    }
    println!("{what:40} {best:8.2} us");
    Ok(())
}

fn run(store: &LocalStore) -> Result<()> {
    let root = store.root();
    let new = NewNode { kind: NewKind::Regular, mode: 0o644, uid: 0, gid: 0 };
    let foreign = NewNode { uid: 1000, gid: 1000, ..new };
    let (name, kept) = (Name::new(b"cycle")?, Name::new(b"kept")?);
    let node: NodeRef = root.create(kept, &new, MAY)?;
    node.write(0, &[IoSlice::new(&[7; 8192])], Stability::Unstable, Wait::May(MAY))?;
    let handle = node.handle()?;
    let mut block = [0; 4096];
    time("create + remove", |_| {
        root.create(name, &new, MAY)?;
        root.remove_file(name, MAY)
    })?;
    time("create for another owner + remove", |_| {
        root.create(name, &foreign, MAY)?;
        root.remove_file(name, MAY)
    })?;
    time("create + handle + lookup + stat + remove", |_| {
        root.create(name, &new, MAY)?.handle()?;
        black_box(root.lookup(name, Wait::May(MAY))?.attributes(Want::FLAGS, Wait::May(MAY))?);
        root.remove_file(name, MAY)
    })?;
    time("lookup, cached", |_| root.lookup(kept, Wait::May(MAY)).map(drop))?;
    time("lookup, cached, Wait::Never(View::FRESH)", |_| {
        root.lookup(kept, Wait::Never(View::FRESH)).map(drop)
    })?;
    time("attributes", |_| node.attributes(Want::empty(), Wait::Never(View::FRESH)).map(drop))?;
    std::thread::sleep(std::time::Duration::from_millis(100));
    time("attributes with flags", |_| node.attributes(Want::FLAGS, Wait::May(MAY)).map(drop))?;
    time("by handle, cached", |_| store.by_handle(&handle, Wait::Never(View::FRESH)).map(drop))?;
    time("read 4 KiB", |_| node.read(0, &mut block, Wait::Never(View::FRESH)).map(drop))?;
    let data = [7; 4096];
    time("write 4 KiB", |_| {
        node.write(0, &[IoSlice::new(&data)], Stability::Unstable, Wait::May(MAY)).map(drop)
    })?;
    time("write 1 byte + attributes with flags", |_| {
        node.write(0, &[IoSlice::new(b"x")], Stability::Unstable, Wait::May(MAY))?;
        node.attributes(Want::FLAGS, Wait::Never(View::FRESH)).map(drop)
    })?;
    root.remove_file(kept, MAY)
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args().nth(1).ok_or("usage: cycle DIR")?;
    raise_descriptor_limit();
    Ok(run(&LocalStore::open(Path::new(&dir), LocalOptions::default())?)?)
}
