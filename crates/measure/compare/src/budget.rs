//! How long each measurement may take, so that all of them are made in a given time.

use load::plan::{Extent, Plan};

use crate::contest::PROVISIONED_RAMP_SECONDS;
use crate::lineup::files;

/// Seconds for a measurement besides its load: connections are made and ended. Samba's take longest (0.03 to 0.05 on two idle
/// processors).
const AROUND: f64 = 0.06;
/// Seconds for a target besides its measurements.
const A_TARGET: f64 = 0.5;
/// Bytes of files that a server is given in a second, at least.
const FILL_RATE: f64 = 400e6;
/// Bytes a second where a plan holds them back.
const PROVISIONED_FILL_RATE: f64 = 40e6;
/// Parts of a measurement that are measured; what goes before warms up.
const MEASURED: f64 = 10.0 / 13.0;
/// Seconds of a measurement: fewer show nothing.
const LEAST: f64 = 0.13;

/// What a family asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Work {
    /// Loads, the pass that is thrown away included.
    pub(crate) loads: usize,
    /// Seconds for all that is no load: more on a slow machine, less on a quick one.
    besides: f64,
    /// Seconds that no machine makes fewer: a share with a plan is warmed up for so long, and takes its files no faster.
    fixed: f64,
}

impl Work {
    /// That of one family, by its plans: one a target.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(crate) fn of(plans: &[Plan], extent: &Extent, provisioned: bool) -> Self {
        let rows: usize = plans.iter().map(|plan| plan.rows.len()).sum();
        let loads = rows * (extent.repetitions as usize + 1);
        let bytes: u64 = plans.iter().map(|plan| u64::from(files(plan)) * extent.file_bytes).sum();
        let around = loads as f64 * AROUND + plans.len() as f64 * A_TARGET;
        if provisioned {
            let fixed = loads as f64 * PROVISIONED_RAMP_SECONDS + bytes as f64 / PROVISIONED_FILL_RATE;
            Self { loads, besides: around, fixed }
        } else {
            Self { loads, besides: around + bytes as f64 / FILL_RATE, fixed: 0.0 }
        }
    }

    /// Several families together.
    pub(crate) fn sum(all: &[Self]) -> Self {
        all.iter().fold(Self::default(), |sum, work| Self {
            loads: sum.loads + work.loads,
            besides: sum.besides + work.besides,
            fixed: sum.fixed + work.fixed,
        })
    }

    /// Seconds for each load if all is to take `seconds`; `slower` is how much longer all besides load took than was
    /// thought. `None` when that is too little.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(crate) fn seconds_each(&self, seconds: f64, slower: f64) -> Option<f64> {
        let each = (seconds - self.fixed - self.besides * slower) / self.loads.max(1) as f64;
        (each >= LEAST).then_some(each)
    }

    /// The least time for all, in seconds.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(crate) fn least(&self) -> f64 {
        self.loads as f64 * LEAST + self.besides + self.fixed
    }

    /// How much longer what is no load has taken than was thought.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub(crate) fn slower(&self, took: f64, each: f64) -> f64 {
        if self.besides > 0.0 {
            ((took - each * self.loads as f64 - self.fixed) / self.besides).clamp(0.25, 4.0)
        } else {
            1.0
        }
    }
}

/// The extent with so many seconds for each load, and no more than it has.
pub(crate) fn stretched(extent: &Extent, each: f64) -> Extent {
    let each = each.min(extent.ramp_seconds + extent.seconds);
    let seconds = each.max(LEAST) * MEASURED;
    Extent { seconds, ramp_seconds: seconds * (1.0 / MEASURED - 1.0), ..extent.clone() }
}

#[cfg(test)]
mod tests {
    use load::plan::family;
    use load::result::Protocol;

    use super::*;

    #[test]
    fn time_is_divided_and_too_little_is_refused() {
        let work = Work { loads: 100, besides: 10.0, fixed: 0.0 };
        assert_eq!(work.seconds_each(60.0, 1.0), Some(0.5));
        assert_eq!(work.seconds_each(60.0, 2.0), Some(0.4));
        assert_eq!(work.seconds_each(22.9, 1.0), None);
        assert!((work.least() - 23.0).abs() < 1e-9);
        assert!((work.slower(70.0, 0.5) - 2.0).abs() < 1e-9);
        let held_back = Work { fixed: 20.0, ..work };
        assert_eq!(held_back.seconds_each(60.0, 0.5), Some(0.35), "a quick machine does not warm up sooner");
        assert!((held_back.least() - 43.0).abs() < 1e-9 && (held_back.slower(80.0, 0.5) - 1.0).abs() < 1e-9);
        let twice = Work::sum(&[work, work]);
        assert_eq!((twice.loads, twice.seconds_each(120.0, 1.0)), (200, Some(0.5)));
    }

    #[test]
    fn a_load_is_never_longer_than_usual() {
        let usual = Extent::new(false);
        let long = stretched(&usual, 9.0);
        assert!((long.seconds - 1.0).abs() < 1e-9 && (long.ramp_seconds - 0.3).abs() < 1e-9, "{long:?}");
        let short = stretched(&usual, 0.26);
        assert!((short.seconds - 0.2).abs() < 1e-9 && (short.ramp_seconds - 0.06).abs() < 1e-9, "{short:?}");
        assert_eq!((short.repetitions, short.file_bytes), (usual.repetitions, usual.file_bytes));
    }

    #[test]
    fn rows_count_on_each_target_and_in_each_pass() {
        let extent = Extent::new(false);
        let plan = family("smb-mc-multifile").unwrap().plan(Protocol::Smb, &extent);
        let rows = plan.rows.len();
        assert_eq!(Work::of(&[plan.clone(), plan], &extent, false).loads, rows * 2 * 7);
    }
}
