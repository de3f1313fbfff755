//! Simulations from fixed seeds, each in a separate process.

use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many simulations run side by side.
const SIDE_BY_SIDE: usize = 2;
/// How many seeds are simulated. An optimized build does many more (`cargo xtask simulation`).
const SEEDS: u64 = 3;

/// Runs a simulation. Returns whether it went well, and its output.
fn simulate(seed: u64, operations: u64, more: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_anabranch-simulation"))
        .args(["--seed", &seed.to_string(), "--operations", &operations.to_string()])
        .args(more)
        .output()
        .expect("the simulation starts");
    (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn operations_of_some_seeds_are_answered_as_they_must_be() {
    let next = AtomicU64::new(1);
    let work = || {
        let mut failed = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > SEEDS {
                return failed;
            }
            let (is_well, said) = simulate(seed, 5_000, &[]);
            if !is_well {
                failed.push(said);
            }
        }
    };
    let failed: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..SIDE_BY_SIDE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn one_seed_has_one_history() {
    for seed in 1..=2 {
        let first = simulate(seed, 2_000, &[]);
        assert!(first.0 && first.1.contains("events "), "{}", first.1);
        assert_eq!(first, simulate(seed, 2_000, &[]));
    }
}
