//! Azure NetApp Files: service levels, automatic and manual QoS inside a capacity pool.

use std::collections::BTreeMap;

use crate::azure::Range;
use crate::{GIB, Handles, Limits, MIB, Plan, TIB};

/// How much throughput a TiB brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Level {
    /// 16 MiB/s.
    Standard,
    /// 64 MiB/s.
    Premium,
    /// 128 MiB/s.
    Ultra,
}

/// How the throughput of a volume is determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Qos {
    /// By the size of the volume.
    Auto,
    /// This many MiB/s of the pool's throughput.
    Manual(u64),
}

/// The capacity pool of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// The name of the pool. Volumes that name the same pool share it.
    pub name: String,
    /// The size of the pool in TiB.
    pub tib: u64,
}

/// GiB of a volume: 100 GiB to 100 TiB.
pub(crate) const VOLUME_GIB: Range = 100..=102_400;
/// TiB of a pool.
pub(crate) const POOL_TIB: Range = 4..=500;
/// MiB/s of a volume with manual QoS, and the most that any volume gets.
pub(crate) const VOLUME_MIB: Range = 1..=4_500;

impl Level {
    /// All levels.
    pub const ALL: [Self; 3] = [Self::Standard, Self::Premium, Self::Ultra];

    /// MiB/s for each TiB.
    #[must_use]
    pub fn mib_per_tib(self) -> u64 {
        match self {
            Self::Standard => 16,
            Self::Premium => 64,
            Self::Ultra => 128,
        }
    }
}

/// The limits of a volume. The service level limits only the throughput, of reads and writes together.
pub(crate) fn limits(level: Level, gib: u64, qos: Qos) -> Limits {
    let throughput = match qos {
        // A TiB has 1,024 GiB. The result is exact: 100 GiB of Premium are 6.25 MiB/s.
        Qos::Auto => level.mib_per_tib() * gib * (MIB / 1024),
        Qos::Manual(mib) => mib * MIB,
    };
    Limits {
        throughput: Some(throughput.min(*VOLUME_MIB.end() * MIB)),
        capacity: Some(gib * GIB),
        file_size: Some(16 * TIB),
        handles: Handles::default(),
        ..Limits::NONE
    }
}

/// The volumes do not fit into their pool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// Two volumes give different sizes for the same pool.
    #[error("the pool {pool} has {first} TiB in one share and {second} TiB in another")]
    Size {
        /// The pool.
        pool: String,
        /// One size.
        first: u64,
        /// The other size.
        second: u64,
    },
    /// Two volumes of a pool have different service levels.
    #[error("the shares of the pool {pool} are of different service levels")]
    Level {
        /// The pool.
        pool: String,
    },
    /// The volumes together are larger than the pool.
    #[error("capacity: the shares of the pool {pool} have {used} GiB together, the pool has {size} GiB")]
    Capacity {
        /// The pool.
        pool: String,
        /// GiB of its volumes.
        used: u64,
        /// GiB of the pool.
        size: u64,
    },
    /// The volumes with manual QoS ask for more throughput than the pool has.
    #[error(
        "throughput: the shares of the pool {pool} have {used} MiB/s together, the pool has {size} MiB/s"
    )]
    Throughput {
        /// The pool.
        pool: String,
        /// MiB/s of its volumes.
        used: u64,
        /// MiB/s of the pool.
        size: u64,
    },
}

struct Sum {
    tib: u64,
    level: Level,
    gib: u64,
    mib: u64,
}

/// Checks that all volumes fit into their pools.
///
/// # Errors
/// [`PoolError`].
pub fn check_pools<'a>(plans: impl IntoIterator<Item = &'a Plan>) -> Result<(), PoolError> {
    let mut pools: BTreeMap<&str, Sum> = BTreeMap::new();
    for plan in plans {
        let Plan::Anf { level, gib, qos, pool: Some(pool) } = plan else { continue };
        let sum = pools.entry(&pool.name).or_insert(Sum { tib: pool.tib, level: *level, gib: 0, mib: 0 });
        let name = || pool.name.clone();
        if sum.tib != pool.tib {
            return Err(PoolError::Size { pool: name(), first: sum.tib, second: pool.tib });
        }
        if sum.level != *level {
            return Err(PoolError::Level { pool: name() });
        }
        sum.gib += gib;
        if let Qos::Manual(mib) = qos {
            sum.mib += mib;
        }
        let (gib_max, mib_max) = (sum.tib * 1024, sum.tib * level.mib_per_tib());
        if sum.gib > gib_max {
            return Err(PoolError::Capacity { pool: name(), used: sum.gib, size: gib_max });
        }
        if sum.mib > mib_max {
            return Err(PoolError::Throughput { pool: name(), used: sum.mib, size: mib_max });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(gib: u64, mib: u64) -> Plan {
        let pool = Some(Pool { name: "hana".to_owned(), tib: 10 });
        Plan::Anf { level: Level::Ultra, gib, qos: Qos::Manual(mib), pool }
    }

    #[test]
    fn automatic_qos_follows_the_size() {
        let mib = |level, gib| limits(level, gib, Qos::Auto).throughput.unwrap();
        assert_eq!(mib(Level::Premium, 2 * 1024), 128 * MIB);
        assert_eq!(mib(Level::Premium, 100), 6 * MIB + MIB / 4);
        assert_eq!(mib(Level::Standard, 1024), 16 * MIB);
        // "ceiling 4,500 = 70.31 TiB Premium"
        assert_eq!(mib(Level::Premium, 72_000), 4_500 * MIB);
        assert_eq!(mib(Level::Premium, 72_001), 4_500 * MIB);
    }

    #[test]
    fn the_example_of_the_documentation_fits_into_its_pool() {
        // Ultra 10 TiB = 1,280 MiB/s: data 4 TiB/704, log 0.5/256, shared 1/64, backup 4.5/256.
        let mut plans = vec![volume(4096, 704), volume(512, 256), volume(1024, 64), volume(4608, 256)];
        assert_eq!(check_pools(&plans), Ok(()));
        plans[2] = volume(1024, 65);
        let refused = check_pools(&plans).unwrap_err();
        assert_eq!(refused, PoolError::Throughput { pool: "hana".to_owned(), used: 1281, size: 1280 });
        plans[2] = volume(1025, 64);
        assert!(matches!(check_pools(&plans), Err(PoolError::Capacity { used: 10_241, size: 10_240, .. })));
    }

    #[test]
    fn a_pool_is_one_thing() {
        let mut other = volume(100, 1);
        let Plan::Anf { pool, .. } = &mut other else { unreachable!() };
        pool.as_mut().unwrap().tib = 11;
        assert!(matches!(check_pools(&[volume(100, 1), other]), Err(PoolError::Size { .. })));
        let mut other = volume(100, 1);
        let Plan::Anf { level, .. } = &mut other else { unreachable!() };
        *level = Level::Premium;
        assert!(matches!(check_pools(&[volume(100, 1), other]), Err(PoolError::Level { .. })));
    }
}
