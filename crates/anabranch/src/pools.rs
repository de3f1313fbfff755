//! `anabranch pool`: directories in which the server makes those of shares.

use std::fmt::Write;

use control::Administration as _;
use control::pools::{Pool, Pools, RemovedDirectory};

use crate::administrator::{Administrator, Intent};
use crate::cli::PoolCommand;
use crate::print::{bytes, harmless, json, print};
use crate::problem::Result;
use crate::settings::write_overcommit;
use crate::table;

/// Carries out the command.
///
/// # Errors
/// It is refused, or the server cannot be asked.
pub(crate) fn run(command: &PoolCommand) -> Result<()> {
    let PoolCommand::List(asking) = command;
    let administrator = Administrator::find(asking, Intent::Look)?;
    let pools = administrator.call(("GET", "/v1/pools"), None::<&()>, |here| here.pools())?;
    print(&if asking.json { json(&pools)? } else { render(&pools) })
}

fn render(Pools { pools }: &Pools) -> String {
    let size = |size: Option<u64>| size.map_or_else(|| "-".to_owned(), bytes);
    let row = |pool: &Pool| {
        [
            pool.name.clone(),
            pool.shares.to_string(),
            pool.deleted_shares.to_string(),
            bytes(pool.promised),
            size(pool.capacity),
            size(pool.free),
            write_overcommit(pool.overcommit).to_owned(),
            harmless(&pool.directory),
        ]
    };
    let rows: Vec<_> = pools.iter().map(row).collect();
    let heads = ["POOL", "SHARES", "DELETED", "PROMISED", "CAPACITY", "FREE", "OVERCOMMIT", "DIRECTORY"];
    let mut text = table::render(heads, &rows);
    for pool in pools {
        if let Some(problem) = &pool.problem {
            let _ = writeln!(text, "{}: {}", pool.name, harmless(problem));
        }
        for RemovedDirectory { directory, problem, .. } in &pool.removing {
            let how = problem.as_ref().map_or_else(String::new, |why| format!(", but {}", harmless(why)));
            let _ = writeln!(text, "{}: {} is being removed{how}", pool.name, harmless(directory));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_shown_with_what_it_promises_and_has() {
        let removing =
            RemovedDirectory { directory: "/srv/fast/old".to_owned(), ..RemovedDirectory::default() };
        let stuck = RemovedDirectory {
            problem: Some("it is not what the server made".to_owned()),
            ..removing.clone()
        };
        let fast = Pool {
            name: "fast".to_owned(),
            directory: "/srv/fast".to_owned(),
            shares: 2,
            deleted_shares: 1,
            promised: 3 << 30,
            capacity: Some(10 << 30),
            free: Some(9 << 30),
            removing: vec![removing, stuck],
            ..Pool::default()
        };
        let gone = Pool {
            name: "gone".to_owned(),
            directory: "/srv/gone".to_owned(),
            problem: Some("there is no such directory".to_owned()),
            overcommit: true,
            ..Pool::default()
        };
        let expected = "\
POOL  SHARES  DELETED  PROMISED  CAPACITY  FREE   OVERCOMMIT  DIRECTORY
fast  2       1        3 GiB     10 GiB    9 GiB  no          /srv/fast
gone  0       0        0 B       -         -      yes         /srv/gone
fast: /srv/fast/old is being removed
fast: /srv/fast/old is being removed, but it is not what the server made
gone: there is no such directory
";
        assert_eq!(render(&Pools { pools: vec![fast, gone] }), expected);
    }
}
