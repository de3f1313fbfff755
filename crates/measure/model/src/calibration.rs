//! Whether this machine carries the rates of a model: decided before its rows are measured, from a load of TCP alone.

use load::plan::Plan;
use load::result::{Key, Mix, Protocol};
use serde::Serialize;

use crate::ceiling::{Ceiling, Direction, Shape};
use crate::description::Model;

/// What must pass at least, in thousandths of the ceiling.
const LEAST: u64 = 980;
/// What may pass at most besides the buckets: a receiver that had to wait counts what came before its window.
const MOST: u64 = 1020;

/// What plain connections carried, beside what the links let through.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Calibration {
    /// Who sent or received.
    #[serde(flatten)]
    pub shape: Shape,
    /// Which way.
    pub direction: Direction,
    /// Bytes a second that the links let through.
    pub limit: u64,
    /// Bytes a second on the wire, with all headers.
    pub wire: u64,
    /// What follows for rows of this shape.
    pub finding: Finding,
}

/// What a calibration says about the rows that depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// The machine carries what the links let through.
    Usable,
    /// It carries less: rows would measure the machine.
    TooSlow,
    /// More passes than the limit allows: rows would not measure the limit.
    TooMuch,
}

impl Finding {
    /// What so many bytes on the wire in so many microseconds mean.
    #[must_use]
    pub fn of(ceiling: Ceiling, bytes: u64, micros: u64) -> Self {
        let full = u128::from(ceiling.rate) * u128::from(micros);
        let passed = u128::from(bytes) * 1_000_000;
        let bucket = u128::from(ceiling.bucket) * 1_000_000;
        if passed * 1000 < full * u128::from(LEAST) {
            Self::TooSlow
        } else if (passed.saturating_sub(bucket)) * 1000 > full * u128::from(MOST) {
            Self::TooMuch
        } else {
            Self::Usable
        }
    }

    /// In a table.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Usable => "usable",
            Self::TooSlow => "unusable: this machine carries less",
            Self::TooMuch => "unusable: more passes than may",
        }
    }
}

impl Calibration {
    pub(crate) fn new(
        shape: Shape,
        direction: Direction,
        ceiling: Ceiling,
        (bytes, micros): (u64, u64),
    ) -> Self {
        let wire = u128::from(bytes) * 1_000_000 / u128::from(micros.max(1));
        Self {
            shape,
            direction,
            limit: ceiling.rate,
            wire: u64::try_from(wire).unwrap_or(u64::MAX),
            finding: Finding::of(ceiling, bytes, micros),
        }
    }

    /// What was carried, as a share of the limit.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.wire as f64 / self.limit as f64
    }

    /// Says that a row cannot be used: it has this shape, and data goes this way.
    #[must_use]
    pub fn excludes(&self, key: &Key) -> bool {
        self.finding != Finding::Usable
            && self.shape == shape(key)
            && directions(key).contains(&self.direction)
    }
}

fn shape(key: &Key) -> Shape {
    Shape { clients: key.clients, connections: key.connections }
}

fn directions(key: &Key) -> Vec<Direction> {
    match key.mix {
        Mix::ReadPercent(0) => vec![Direction::ToServer],
        Mix::ReadPercent(100) => vec![Direction::ToClients],
        Mix::ReadPercent(_) | Mix::Metadata => vec![Direction::ToServer, Direction::ToClients],
    }
}

impl Model {
    /// What must be calibrated for rows, each once: only ways that have a limit.
    #[must_use]
    pub fn calibrations(&self, plans: &[(Protocol, Plan)]) -> Vec<(Shape, Direction, Ceiling)> {
        let rows = plans.iter().flat_map(|(_, plan)| &plan.rows);
        let ways = rows.flat_map(|row| directions(&row.key).into_iter().map(|way| (shape(&row.key), way)));
        let mut found: Vec<_> = ways
            .filter_map(|(shape, way)| self.ceiling(shape, way).map(|ceiling| (shape, way, ceiling)))
            .collect();
        found.sort_by_key(|(shape, way, _)| (*way, *shape));
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use load::plan::{Extent, key};

    use super::*;
    use crate::{BUILT_IN, read};

    const CEILING: Ceiling = Ceiling { rate: 10_000_000, bucket: 10_000 };

    #[test]
    fn a_machine_that_carries_98_to_100_percent_is_usable() {
        for (bytes, finding) in [
            (0, Finding::TooSlow),
            (19_599_999, Finding::TooSlow),
            (19_600_000, Finding::Usable),
            (20_000_000, Finding::Usable),
            (20_410_000, Finding::Usable),
            (20_410_001, Finding::TooMuch),
            (u64::MAX, Finding::TooMuch),
        ] {
            assert_eq!(Finding::of(CEILING, bytes, 2_000_000), finding, "{bytes}");
        }
    }

    #[test]
    fn a_slow_machine_makes_rows_of_its_shape_and_direction_unusable() {
        let shape = Shape { clients: 1, connections: 4 };
        let of = |bytes| Calibration::new(shape, Direction::ToServer, CEILING, (bytes, 1_000_000));
        let (slow, quick) = (of(9_000_000), of(9_900_000));
        assert!((slow.share() - 0.9).abs() < 1e-9 && slow.wire == 9_000_000);
        for (connections, reads, is_excluded) in [(4, 0, true), (4, 50, true), (4, 100, false), (1, 0, false)]
        {
            let key = key(connections, 4096, reads);
            assert_eq!((slow.excludes(&key), quick.excludes(&key)), (is_excluded, false), "{key}");
        }
    }

    #[test]
    fn each_limited_way_of_the_rows_is_calibrated_once() {
        let (_, text) = BUILT_IN.into_iter().find(|(name, _)| *name == "netapp-smb").unwrap();
        let model = read(text).unwrap();
        let needed = model.calibrations(&model.plans(&Extent::new(true)));
        let shown: Vec<_> =
            needed.iter().map(|(shape, way, of)| (shape.connections, *way, of.rate)).collect();
        use Direction::{ToClients, ToServer};
        assert_eq!(
            shown,
            [
                (1, ToServer, 9_175_040),
                (4, ToServer, 20_000_000),
                (1, ToClients, 9_175_040),
                (4, ToClients, 36_700_160)
            ]
        );
    }
}
