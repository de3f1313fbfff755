//! What a measurement knows.

use super::advice::Advice;
use super::advise;
use super::facts::{Change, Effect, Facts, Path, Profile, Reached, Security, Work};
use load::result::{
    Comparison, Environment, Interface, Key, Measure, Mix, Negotiated, Protocol, ResultFile, Row,
};
use load::security::securities;

impl Facts {
    /// The facts of one row of a result, with the effects of changes that were measured on the same work.
    #[must_use]
    pub fn of_row(result: &ResultFile, row: &Row) -> Self {
        let environment = &result.environment;
        Self {
            protocol: Some(environment.protocol),
            profile: Profile::Other,
            runs: u32::try_from(row.repetitions.len()).ok(),
            work: Work::of_key(&row.key),
            path: Path::of_environment(environment, row),
            reached: row
                .measure
                .as_ref()
                .map(|measure| Reached {
                    throttled_share: throttled_share(row).filter(|_| result.family != LIMITS),
                    ..Reached::of_measure(measure, &row.key)
                })
                .unwrap_or_default(),
            security: Security::of_row(environment, &row.key),
            effects: result
                .comparisons
                .iter()
                .filter_map(|comparison| effect(comparison, &row.key, environment.protocol))
                .collect(),
            ..Self::default()
        }
    }
}

impl Work {
    fn of_key(key: &Key) -> Self {
        let reads = match key.mix {
            Mix::ReadPercent(percent) => Some(f64::from(percent) / 100.0),
            Mix::Metadata => None,
        };
        Self {
            threads: Some(key.threads),
            files: Some(key.files),
            queue_depth: Some(f64::from(key.threads) * f64::from(key.queue_depth)),
            #[expect(clippy::cast_precision_loss, reason = "block sizes are far below 2^52")]
            io_bytes: reads.map(|_| key.block_bytes as f64),
            write_share: reads.map(|reads| 1.0 - reads),
            sequential: reads.map(|_| !key.random),
            metadata_share: Some(if reads.is_some() { 0.0 } else { 1.0 }),
        }
    }
}

impl Path {
    /// A loopback has no interface whose RSS says anything.
    fn of_environment(environment: &Environment, row: &Row) -> Self {
        let used = |i: &&Interface| i.used && !environment.loopback;
        let endpoints = u32::try_from(environment.negotiated.server_interfaces.len()).ok().filter(|&n| n > 0);
        Self {
            connections: row.repetitions.iter().map(|r| r.connections).max(),
            connections_max: environment
                .negotiated
                .connections_asked
                .filter(|_| row.repetitions.iter().any(|r| r.connections < row.key.connections)),
            why_fewer: Vec::new(),
            interfaces: environment.client.interfaces.iter().filter(used).cloned().collect(),
            server_endpoints: endpoints,
        }
    }
}

impl Reached {
    fn of_measure(measure: &Measure, key: &Key) -> Self {
        let bytes = measure.throughput.as_ref().map(|t| t.median);
        let iops = bytes.map(|_| measure.rate.median);
        let one_file = |figure: Option<f64>| figure.filter(|_| key.files == 1);
        Self { iops, bytes, file_iops: one_file(iops), file_bytes: one_file(bytes), throttled_share: None }
    }
}

/// The family that is there to reach the limits of a plan: that operations wait there says nothing about the plan.
const LIMITS: &str = "limits";

/// The part of the operations that waited for the share's plan, where the server told.
#[expect(clippy::cast_precision_loss, reason = "a part of a whole")]
fn throttled_share(row: &Row) -> Option<f64> {
    let counted = row.repetitions.iter().filter_map(|r| Some((r.server?.throttled, r.done())));
    let (waited, done) = counted.fold((0, 0), |(w, d), (waited, done)| (w + waited, d + done));
    (done > 0).then(|| (waited as f64 / done as f64).min(1.0))
}

impl Security {
    /// What a row says of its own protection goes before what was negotiated first.
    fn of_row(environment: &Environment, key: &Key) -> Self {
        let Some(name) = key.settings.get("security") else {
            let Negotiated { signing, cipher, .. } = environment.negotiated.clone();
            return Self { signing, cipher, busiest_cpu: None };
        };
        let own = securities().into_iter().find(|(known, _)| known == name).map(|(_, security)| security);
        let named = |holds: fn(&load::security::Security) -> bool| {
            own.as_ref().filter(|own| holds(own)).map(|_| name.clone())
        };
        Self {
            signing: named(|own| own.require_signing),
            cipher: named(|own| own.encrypt),
            busiest_cpu: None,
        }
    }
}

/// The effect of a comparison, when it was of this work and changed one thing that the rules know.
fn effect(comparison: &Comparison, key: &Key, protocol: Protocol) -> Option<Effect> {
    let (base, other) = (&comparison.base, &comparison.other);
    let same_work =
        |a: &Key| Key { connections: key.connections, settings: key.settings.clone(), ..a.clone() } == *key;
    if !same_work(base) || !same_work(other) || base.connections != 1 {
        return None;
    }
    let change = if base.settings == other.settings {
        if protocol == Protocol::Smb {
            Change::Channels(other.connections)
        } else {
            Change::Connections(other.connections)
        }
    } else if other == key && is_encryption(base, other) {
        Change::Encryption
    } else {
        return None;
    };
    let ratio = &comparison.rate.as_ref()?.ratio;
    let [low, high] = ratio.interval?;
    Some(Effect { change, ratio: ratio.median, low, high })
}

/// Whether the two differ in that one is encrypted, and the other not even signed.
fn is_encryption(base: &Key, other: &Key) -> bool {
    let name = |key: &Key| key.settings.get("security").cloned();
    let encrypts =
        |name: String| securities().iter().any(|(known, security)| *known == name && security.encrypt);
    name(base).as_deref() == Some("none")
        && name(other).is_some_and(encrypts)
        && Key { settings: other.settings.clone(), ..base.clone() } == *other
}

/// What the rules have to say of one kind of work of a result.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Judged {
    /// The row with the most connections of that work, as its key prints.
    pub row: String,
    /// The advice.
    pub advice: Vec<Advice>,
}

/// What the rules have to say of each kind of work of a result: rows that differ in their connections only are one kind.
#[must_use]
pub fn of_result(result: &ResultFile, profile: Profile) -> Vec<Judged> {
    let mut works: Vec<&Row> = Vec::new();
    for row in &result.rows {
        let work = Key { connections: 0, ..row.key.clone() };
        match works.iter_mut().find(|known| Key { connections: 0, ..known.key.clone() } == work) {
            Some(known) if known.key.connections < row.key.connections => *known = row,
            Some(_) => {}
            None => works.push(row),
        }
    }
    let judge = |row: &&Row| Judged {
        row: row.key.to_string(),
        advice: advise(&Facts { profile, ..Facts::of_row(result, row) }),
    };
    works.iter().map(judge).collect()
}
