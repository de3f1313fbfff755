//! The pools: directories in which the server makes those of shares.

use super::{Text, escape};
use crate::pools::Pool;

pub(super) fn write(text: &mut Text, pools: &[Pool]) {
    let pool = |of: &Pool| format!("pool=\"{}\"", escape(&of.name));
    let help = "Whether the file system of a pool answers and is the one that the pool had.";
    text.family("anabranch_pool_available", "gauge", help);
    for of in pools {
        // It was not asked yet otherwise.
        if of.capacity.is_some() || of.problem.is_some() {
            text.line("", &pool(of), u8::from(of.capacity.is_some()));
        }
    }
    text.family("anabranch_pool_capacity_bytes", "gauge", "Bytes that the file system of a pool can hold.");
    for of in pools {
        if let Some(capacity) = of.capacity {
            text.line("", &pool(of), capacity);
        }
    }
    text.family(
        "anabranch_pool_used_bytes",
        "gauge",
        "Bytes of the file system of a pool that are not free.",
    );
    for of in pools {
        if let (Some(capacity), Some(free)) = (of.capacity, of.free) {
            text.line("", &pool(of), capacity.saturating_sub(free));
        }
    }
    text.family("anabranch_pool_promised_bytes", "gauge", "The sizes of the shares of a pool, in bytes.");
    for of in pools {
        text.line("", &pool(of), of.promised);
    }
    text.family("anabranch_pool_shares", "gauge", "Shares of a pool.");
    for of in pools {
        for (state, count) in [("present", of.shares), ("deleted", of.deleted_shares)] {
            text.line("", &format!("{},state=\"{state}\"", pool(of)), count);
        }
    }
    let help = "Directories of purged shares of a pool that are to be removed.";
    text.family("anabranch_pool_removals", "gauge", help);
    for of in pools {
        for (state, is_held_up) in [("waiting", false), ("failing", true)] {
            let count = of.removing.iter().filter(|one| one.problem.is_some() == is_held_up).count();
            text.line("", &format!("{},state=\"{state}\"", pool(of)), count);
        }
    }
}
