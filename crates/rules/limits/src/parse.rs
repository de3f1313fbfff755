//! Parsing of plans.

use std::str::FromStr;

use crate::azure::Range;
use crate::units::{parse_size, size, split};
use crate::{Burst, GIB, KIB, Level, Limits, MIB, Media, Plan, Pool, Qos, anf, azure};

/// Why a plan is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// There is no plan of this name.
    #[error("there is no plan `{0}`; the plans are: {list} (with limits of your own: custom iops=30)", list = Plan::NAMES.join(", "))]
    Name(String),
    /// The plan has no such limit.
    #[error("the plan {plan} has no limit `{limit}`; it has: {known}")]
    Unknown {
        /// The plan.
        plan: &'static str,
        /// What was given.
        limit: String,
        /// The limits that the plan has.
        known: String,
    },
    /// A limit has no value, or is given twice.
    #[error("{0}")]
    Form(String),
    /// A limit that the plan requires is missing.
    #[error("the plan {plan} needs {limit}={example}")]
    Missing {
        /// The plan.
        plan: &'static str,
        /// The limit.
        limit: &'static str,
        /// An example of a value.
        example: &'static str,
    },
    /// The value is not a number in the limit's unit.
    #[error("{limit}={value}: it is given {unit}")]
    Unit {
        /// The limit.
        limit: String,
        /// What was given.
        value: String,
        /// The form of a valid value.
        unit: &'static str,
    },
    /// The value is outside the plan's range.
    #[error("{limit}={value} is out of range: {plan} has {least} to {most} {unit}")]
    Range {
        /// The plan.
        plan: &'static str,
        /// The limit.
        limit: &'static str,
        /// What was given.
        value: String,
        /// The smallest valid value.
        least: u64,
        /// The largest valid value.
        most: u64,
        /// The unit of both.
        unit: &'static str,
    },
}

const SIZE: &str = "in whole GiB or TiB (2^30, 2^40 bytes), as 100GiB or 2TiB";
const RATE: &str = "in whole MiB/s or GiB/s (2^20, 2^30 bytes), as 200MiB/s; not in Mbit/s or MB/s";
const BYTES: &str = "in KiB, MiB, GiB or TiB, as 64KiB";
const BYTE_RATE: &str = "in KiB/s, MiB/s or GiB/s, as 200MiB/s; not in Mbit/s or MB/s";
const COUNT: &str = "as a whole number of at least 1, as 3000";
const POOL: &str = "as NAME:SIZE in whole TiB, as hana:10TiB";

type Result<T> = std::result::Result<T, PlanError>;

/// The values of a plan. Each is taken once.
struct Values<'a> {
    plan: &'static str,
    given: Vec<(&'a str, &'a str)>,
    known: Vec<&'static str>,
}

impl FromStr for Plan {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self> {
        let mut words = text.split([' ', '\t', ',']).filter(|word| !word.is_empty());
        let name = words.next().unwrap_or_default();
        if name.contains('=') {
            return Err(PlanError::Form(format!(
                "`{name}` is not the name of a plan; limits of your own: custom {text}"
            )));
        }
        let mut given = Vec::new();
        for word in words {
            let (limit, value) = word
                .split_once('=')
                .ok_or_else(|| PlanError::Form(format!("`{word}` has no value: LIMIT=VALUE")))?;
            given.push((limit, value));
        }
        Self::from_values(name, given)
    }
}

impl Plan {
    /// The plan with this name and these values, as given in a configuration.
    ///
    /// # Errors
    /// [`PlanError`], which names the limit and the unit of its values.
    pub fn from_values<'a>(name: &str, values: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self> {
        let plan = *Self::NAMES
            .iter()
            .find(|known| **known == name)
            .ok_or_else(|| PlanError::Name(name.to_owned()))?;
        let mut values = Values { plan, given: values.into_iter().collect(), known: Vec::new() };
        values.check_unique()?;
        let read = match plan {
            "azure-files-v1" => Self::AzureFilesV1 { gib: values.needed_gib(&azure::V1_GIB)? },
            "azure-files-v2-ssd" => read_v2(Media::Ssd, &mut values)?,
            "azure-files-v2-hdd" => read_v2(Media::Hdd, &mut values)?,
            "azure-files-payg" => Self::AzureFilesPayg { gib: values.gib(&azure::PAYG_GIB)? },
            "anf-standard" => read_anf(Level::Standard, &mut values)?,
            "anf-premium" => read_anf(Level::Premium, &mut values)?,
            "anf-ultra" => read_anf(Level::Ultra, &mut values)?,
            "custom" => Self::Custom(Box::new(read_limits(&mut values)?)),
            _ => Self::Unlimited,
        };
        values.finish()?;
        Ok(read)
    }
}

fn read_v2(media: Media, values: &mut Values<'_>) -> Result<Plan> {
    Ok(Plan::AzureFilesV2 {
        media,
        gib: values.needed_gib(&azure::V2_GIB)?,
        iops: values.count_within("iops", &media.iops(), "IO/s")?,
        mib: values.mib_within(&media.throughput())?,
    })
}

fn read_anf(level: Level, values: &mut Values<'_>) -> Result<Plan> {
    let gib = values.needed_gib(&anf::VOLUME_GIB)?;
    let qos = values.mib_within(&anf::VOLUME_MIB)?.map_or(Qos::Auto, Qos::Manual);
    Ok(Plan::Anf { level, gib, qos, pool: values.pool()? })
}

fn read_limits(values: &mut Values<'_>) -> Result<Limits> {
    let mut limits = Limits { iops: values.count("iops")?, ..Limits::NONE };
    let (burst, credits) = (values.count("burst-iops")?, values.count("burst-credits")?);
    limits.burst = read_burst(limits.iops, burst, credits)?;
    limits.throughput = values.byte_rate("throughput")?;
    limits.read = values.byte_rate("read")?;
    limits.write = values.byte_rate("write")?;
    limits.metadata_iops = values.count("metadata-iops")?;
    limits.file_iops = values.count("file-iops")?;
    limits.file_throughput = values.byte_rate("file-throughput")?;
    limits.file_size = values.bytes("file-size")?;
    limits.client_iops = values.count("client-iops")?;
    limits.client_metadata_iops = values.count("client-metadata-iops")?;
    limits.client_throughput = values.byte_rate("client-throughput")?;
    limits.capacity = values.bytes("capacity")?;
    limits.handles.root = values.count("root-handles")?;
    limits.handles.file = values.count("file-handles")?;
    limits.handles.share = values.count("handles")?;
    if let Some(unit) = values.bytes("io-unit")? {
        limits.io_unit = unit;
    }
    Ok(limits)
}

/// Bursts exceed a baseline. If no number of credits is given, the credits last for one hour, as with Azure Files.
fn read_burst(baseline: Option<u64>, burst: Option<u64>, credits: Option<u64>) -> Result<Option<Burst>> {
    match (baseline, burst) {
        (Some(baseline), Some(iops)) if iops > baseline => {
            let hour = (iops - baseline).saturating_mul(3600);
            Ok(Some(Burst { iops, credits: credits.unwrap_or(hour) }))
        }
        (_, Some(iops)) => Err(PlanError::Form(format!(
            "burst-iops={iops}: bursts go beyond a baseline: give iops=, and less than burst-iops="
        ))),
        (_, None) if credits.is_some() => {
            Err(PlanError::Form("burst-credits: there are no bursts without burst-iops=".to_owned()))
        }
        (_, None) => Ok(None),
    }
}

impl Values<'_> {
    fn check_unique(&self) -> Result<()> {
        for (index, (limit, _)) in self.given.iter().enumerate() {
            if self.given.iter().skip(index + 1).any(|(other, _)| other == limit) {
                return Err(PlanError::Form(format!("{limit} is given twice")));
            }
        }
        Ok(())
    }

    /// Takes the value given for a limit, and notes that the plan has this limit.
    fn take(&mut self, limit: &'static str) -> Option<String> {
        self.known.push(limit);
        let index = self.given.iter().position(|(name, _)| *name == limit)?;
        Some(self.given.swap_remove(index).1.to_owned())
    }

    fn read<T>(
        &mut self,
        limit: &'static str,
        unit: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.take(limit) else { return Ok(None) };
        let wrong = || PlanError::Unit { limit: limit.to_owned(), value: value.clone(), unit };
        read(&value).map(Some).ok_or_else(wrong)
    }

    fn count(&mut self, limit: &'static str) -> Result<Option<u64>> {
        self.read(limit, COUNT, whole)
    }

    fn bytes(&mut self, limit: &'static str) -> Result<Option<u64>> {
        self.read(limit, BYTES, |value| parse_size(value).filter(|bytes| *bytes >= KIB))
    }

    fn byte_rate(&mut self, limit: &'static str) -> Result<Option<u64>> {
        let read =
            |value: &str| size(value.strip_suffix("/s")?, &["KiB", "MiB", "GiB"]).filter(|rate| *rate > 0);
        self.read(limit, BYTE_RATE, read)
    }

    fn count_within(
        &mut self,
        limit: &'static str,
        range: &Range,
        unit: &'static str,
    ) -> Result<Option<u64>> {
        let value = self.count(limit)?;
        value.map(|value| self.check_range(limit, value, range, unit)).transpose()
    }

    fn mib_within(&mut self, range: &Range) -> Result<Option<u64>> {
        let read = |value: &str| size(value.strip_suffix("/s")?, &["MiB", "GiB"]);
        let bytes = self.read("throughput", RATE, read)?;
        bytes.map(|bytes| self.check_range("throughput", bytes / MIB, range, "MiB/s")).transpose()
    }

    fn gib(&mut self, range: &Range) -> Result<Option<u64>> {
        let bytes = self.read("capacity", SIZE, |value| size(value, &["GiB", "TiB"]))?;
        bytes.map(|bytes| self.check_range("capacity", bytes / GIB, range, "GiB")).transpose()
    }

    fn needed_gib(&mut self, range: &Range) -> Result<u64> {
        let missing = PlanError::Missing { plan: self.plan, limit: "capacity", example: "1TiB" };
        self.gib(range)?.ok_or(missing)
    }

    fn check_range(&self, limit: &'static str, value: u64, range: &Range, unit: &'static str) -> Result<u64> {
        if range.contains(&value) {
            return Ok(value);
        }
        let (least, most) = (*range.start(), *range.end());
        Err(PlanError::Range { plan: self.plan, limit, value: format!("{value} {unit}"), least, most, unit })
    }

    fn pool(&mut self) -> Result<Option<Pool>> {
        let read = |value: &str| {
            let (name, size) = value.split_once(':')?;
            let (tib, unit) = split(size);
            let named = !name.is_empty() && unit == "TiB";
            named.then(|| tib.parse().ok().map(|tib| Pool { name: name.to_owned(), tib })).flatten()
        };
        let Some(pool) = self.read("pool", POOL, read)? else { return Ok(None) };
        self.check_range("pool", pool.tib, &anf::POOL_TIB, "TiB")?;
        Ok(Some(pool))
    }

    /// Checks that no value is left that the plan does not have.
    fn finish(self) -> Result<()> {
        let Some((limit, _)) = self.given.first() else { return Ok(()) };
        let known = if self.known.is_empty() { "none".to_owned() } else { self.known.join(", ") };
        Err(PlanError::Unknown { plan: self.plan, limit: (*limit).to_owned(), known })
    }
}

fn whole(value: &str) -> Option<u64> {
    let (digits, rest) = split(value);
    if rest.is_empty() { digits.parse().ok().filter(|count| *count > 0) } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(text: &str) -> String {
        text.parse::<Plan>().unwrap_err().to_string()
    }

    #[test]
    fn errors_name_the_limit_and_its_unit() {
        for (text, words) in [
            ("azure-files-v1", "the plan azure-files-v1 needs capacity=1TiB"),
            ("azure-files-v1 capacity=1000", "capacity=1000: it is given in whole GiB or TiB"),
            ("azure-files-v1 capacity=1TB", "capacity=1TB: it is given in whole GiB or TiB"),
            (
                "azure-files-v1 capacity=99GiB",
                "capacity=99 GiB is out of range: azure-files-v1 has 100 to 102400 GiB",
            ),
            ("azure-files-v1 capacity=101TiB", "has 100 to 102400 GiB"),
            (
                "azure-files-v1 capacity=1TiB iops=5000",
                "azure-files-v1 has no limit `iops`; it has: capacity",
            ),
            ("azure-files-v2-ssd capacity=1TiB iops=2999", "iops=2999 IO/s is out of range"),
            ("azure-files-v2-hdd capacity=1TiB throughput=59MiB/s", "has 60 to 5120 MiB/s"),
            (
                "azure-files-v2-hdd capacity=1TiB throughput=60MB/s",
                "throughput=60MB/s: it is given in whole MiB/s",
            ),
            ("azure-files-v2-hdd capacity=1TiB throughput=600Mbit/s", "not in Mbit/s or MB/s"),
            ("azure-files-v2-ssd capacity=1TiB iops=5k", "iops=5k: it is given as a whole number"),
            ("anf-ultra capacity=4TiB pool=10TiB", "pool=10TiB: it is given as NAME:SIZE in whole TiB"),
            ("anf-ultra capacity=4TiB pool=a:3TiB", "has 4 to 500 TiB"),
            ("anf-ultra capacity=4TiB throughput=4501MiB/s", "has 1 to 4500 MiB/s"),
            ("azure", "there is no plan `azure`; the plans are: unlimited, azure-files-v1"),
            ("unlimited iops=1", "the plan unlimited has no limit `iops`; it has: none"),
            ("custom iops=0", "iops=0: it is given as a whole number of at least 1"),
            ("custom iops=1 iops=2", "iops is given twice"),
            ("custom iops", "`iops` has no value"),
            ("custom burst-iops=5", "burst-iops=5: bursts go beyond a baseline"),
            ("custom iops=5 burst-iops=5", "less than burst-iops="),
            ("custom burst-credits=5", "no bursts without burst-iops="),
            ("custom speed=1", "custom has no limit `speed`; it has: iops, burst-iops"),
            ("", "there is no plan ``"),
            ("fast", "(with limits of your own: custom iops=30)"),
            ("iops=30 metadata-iops=30", "limits of your own: custom iops=30 metadata-iops=30"),
        ] {
            assert!(refused(text).contains(words), "{text}: {}", refused(text));
        }
    }

    #[test]
    fn the_edges_of_the_ranges_are_inside() {
        for text in [
            "azure-files-v1 capacity=100GiB",
            "azure-files-v1 capacity=100TiB",
            "azure-files-v2-ssd capacity=32GiB iops=3000 throughput=100MiB/s",
            "azure-files-v2-ssd capacity=256TiB iops=102400 throughput=10340MiB/s",
            "azure-files-v2-hdd capacity=256TiB iops=500 throughput=5GiB/s",
            "anf-premium capacity=100GiB throughput=1MiB/s pool=p:4TiB",
            "anf-standard capacity=100TiB throughput=4500MiB/s pool=p:500TiB",
        ] {
            assert!(text.parse::<Plan>().is_ok(), "{text}");
        }
    }

    #[test]
    fn bursts_last_an_hour_unless_their_credits_are_given() {
        let burst = |text: &str| text.parse::<Plan>().unwrap().limits().burst;
        assert_eq!(
            burst("custom iops=500 burst-iops=2000"),
            Some(Burst { iops: 2000, credits: 1500 * 3600 })
        );
        let given = burst("custom, iops=500, burst-iops=2000, burst-credits=7");
        assert_eq!(given, Some(Burst { iops: 2000, credits: 7 }));
    }

    fn count() -> impl Strategy<Value = Option<u64>> {
        proptest::option::of(1_u64..1_000_000)
    }

    fn rate() -> impl Strategy<Value = Option<u64>> {
        proptest::option::of((1_u64..4096).prop_map(|rate| rate * KIB))
    }

    prop_compose! {
        fn custom()(iops in count(), throughput in rate(), read in rate(), write in rate(), metadata_iops in count(),
                    file_iops in count(), file_throughput in rate(), client_iops in count(), capacity in rate(),
                    client_metadata_iops in count(),
                    io_unit in 1_u64..64, more in 1_u64..1000, credits in 1_u64..1000) -> Plan {
            let burst = iops.map(|iops| Burst { iops: iops + more, credits });
            let io_unit = io_unit * KIB;
            Plan::Custom(Box::new(Limits { iops, burst, throughput, read, write, metadata_iops, file_iops,
                                           file_throughput, client_iops, capacity, io_unit, client_metadata_iops, ..Limits::NONE }))
        }
    }

    proptest! {
        #[test]
        fn plans_are_read_as_they_are_shown(plan in custom()) {
            prop_assert_eq!(plan.to_string().parse::<Plan>(), Ok(plan));
        }

        #[test]
        fn sized_plans_are_read_as_they_are_shown(gib in 100_u64..=102_400, mib in 100_u64..=4_500) {
            for plan in [
                Plan::AzureFilesV1 { gib },
                Plan::AzureFilesV2 { media: Media::Hdd, gib, iops: Some(500 + mib), mib: Some(mib) },
                Plan::AzureFilesPayg { gib: Some(gib) },
                Plan::AzureFilesPayg { gib: None },
                Plan::Anf { level: Level::Ultra, gib, qos: Qos::Manual(mib), pool: Some(Pool { name: "p".into(), tib: 4 }) },
            ] {
                prop_assert_eq!(plan.to_string().parse::<Plan>(), Ok(plan));
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,60}", rest in "(custom|anf-ultra)( [a-z-]{1,12}=[0-9a-zA-Z/:]{0,12}){0,3}") {
            let _ = text.parse::<Plan>();
            let _ = rest.parse::<Plan>();
        }
    }
}
