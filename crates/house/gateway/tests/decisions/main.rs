//! One user, one file: the same decision over SMB with NTLM, SMB with a ticket, NFS with a ticket, and NFS with stated numbers, for random
//! access lists, groups and mappings. A model says what the decision must be.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

extern crate krb5 as anabranch_krb5;
extern crate nfs_server as anabranch_nfs_server;

mod client;
#[allow(dead_code, reason = "the tests of NFS use the rest")]
#[path = "../../../../front/nfs-server/tests/gss/client.rs"]
mod gss;
#[path = "../../../../rules/krb5/tests/mint/mod.rs"]
mod mint;
mod model;
#[path = "../no_program/mod.rs"]
mod no_program;
#[allow(dead_code, reason = "the tests of SMB use the rest")]
#[path = "../../../../front/smb-server/tests/socket/opening.rs"]
mod opening;
mod routes;
#[allow(dead_code, reason = "the tests of NFS use the rest")]
#[expect(clippy::result_large_err, reason = "results with attributes in both arms")]
#[path = "../../../../front/nfs-server/tests/server/client.rs"]
mod server;
#[path = "../ticket/mod.rs"]
mod ticket;
mod world;

use model::{Dice, Drawn, Rights};
use world::World;

/// Servers, each with another mapping and other groups, and lists on each.
const WORLDS: u64 = 20;
const LISTS: usize = 100;

#[test]
fn all_ways_to_a_file_lead_to_the_same_decision() {
    let mut seen = [0_u32; 2];
    for seed in 1..=WORLDS {
        let mut dice = Dice::new(seed);
        let world = World::start(&mut dice);
        let people = [world.account(), world.member()];
        let mut administrator = world.administrator();
        let mut routes = [world.routes_of_the_account(), world.routes_of_the_member()];
        for number in 0..LISTS {
            let drawn = Drawn::by(&mut dice, &people, &world.strangers());
            let name = format!("file{number}");
            administrator.put(&name, &drawn);
            for (person, routes) in people.iter().zip(&mut routes) {
                let expected = drawn.decision(person);
                seen[usize::from(expected != Rights::NONE)] += 1;
                for route in routes.iter_mut() {
                    let decided = route.decision(&name);
                    assert_eq!(
                        decided,
                        expected,
                        "seed {seed}, {name}, {} over {}: {drawn:?}, {person:?}, {:?}",
                        person.name,
                        route.name(),
                        world.settings
                    );
                }
            }
        }
        world.stop();
    }
    assert!(
        seen.iter().all(|count| *count > 500),
        "lists that admit nobody, or everybody, test nothing: {seen:?}"
    );
}
