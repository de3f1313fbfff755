//! Quantities of a description: rates, sizes of blocks, plans.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use limits::{Counted, KIB, Limit, Limits, Plan};
use serde::Deserialize;

/// Bytes a second.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Rate {
    /// As it was written: `16000 Mbit/s`.
    text: String,
    bytes: u64,
}

/// Units of a rate: their names, and how many bits each is.
const UNITS: [(&str, u64); 9] = [
    ("kbit/s", 1000),
    ("Mbit/s", 1_000_000),
    ("Gbit/s", 1_000_000_000),
    ("kB/s", 8000),
    ("MB/s", 8_000_000),
    ("GB/s", 8_000_000_000),
    ("KiB/s", 8 << 10),
    ("MiB/s", 8 << 20),
    ("GiB/s", 8 << 30),
];

impl Rate {
    /// Bytes a second at a scale: the rate divided by it.
    #[must_use]
    pub fn at_scale(&self, scale: u32) -> u64 {
        self.bytes / u64::from(scale.max(1))
    }
}

impl TryFrom<String> for Rate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (number, unit) = number_and_unit(&text);
        let names = || UNITS.map(|(name, _)| name).join(", ");
        let wrong = || {
            format!(
                "{text:?} is no rate: give a whole number and a unit, such as \"875 MiB/s\" ({})",
                names()
            )
        };
        let (_, bits) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let bits = number.checked_mul(bits).filter(|bits| *bits >= 8);
        let bytes = bits.ok_or_else(|| format!("{text:?} is out of range"))? / 8;
        Ok(Self { text, bytes })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The digits in front, and what follows them and blanks.
fn number_and_unit(text: &str) -> (&str, &str) {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    (number, unit.trim_start())
}

/// How long a link holds each frame, in one direction: `2 ms`, `500 us`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Delay {
    /// As it was written.
    text: String,
    micros: u64,
}

impl Delay {
    /// The longest.
    const MOST: Duration = Duration::from_secs(1);

    /// The time.
    #[must_use]
    pub fn duration(&self) -> Duration {
        Duration::from_micros(self.micros)
    }
}

impl FromStr for Delay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::try_from(text.to_owned())
    }
}

impl TryFrom<String> for Delay {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no delay: give \"0 ms\" to \"1000 ms\", in whole ms or us");
        let (number, unit) = number_and_unit(&text);
        let unit = match unit {
            "ms" => 1000,
            "us" => 1,
            _ => return Err(wrong()),
        };
        let micros = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
        let micros =
            micros.filter(|micros| Duration::from_micros(*micros) <= Self::MOST).ok_or_else(wrong)?;
        Ok(Self { text, micros })
    }
}

impl fmt::Display for Delay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The share of frames that a link loses, in each direction: from 0 to less than 1.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Loss(f64);

impl Loss {
    /// The share.
    #[must_use]
    pub fn share(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Loss {
    type Error = String;

    fn try_from(share: f64) -> Result<Self, String> {
        if (0.0..1.0).contains(&share) {
            return Ok(Self(share));
        }
        Err(format!("the loss is {share}: give a share of the frames, from 0 to less than 1"))
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Bytes of a read or write: `4k`, `64k`, `1M`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct BlockSize(pub u64);

impl TryFrom<String> for BlockSize {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no block size: give one from \"1k\" to \"16M\"");
        let (number, shift) = match text.strip_suffix('k') {
            Some(number) => (number, 10),
            None => (text.strip_suffix('M').ok_or_else(wrong)?, 20),
        };
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let bytes = number.checked_mul(1 << shift).filter(|bytes| (1 << 10..=16 << 20).contains(bytes));
        bytes.map(Self).ok_or_else(wrong)
    }
}

/// What is provisioned for the share, as `plan =` of a share has it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Provision(Plan);

impl TryFrom<String> for Provision {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Self).map_err(|e| format!("{text:?} is no plan: {e}"))
    }
}

impl Provision {
    /// The plan with each rate of it divided by the scale. What is no rate (sizes, opens) stays.
    #[must_use]
    pub fn at_scale(&self, scale: u32) -> Plan {
        let scale = u64::from(scale.max(1));
        let mut limits: Limits = self.0.limits();
        for limit in Limit::ALL {
            let rate = limits.rate_mut(*limit);
            // Bytes in whole KiB: a plan is written in no smaller unit.
            let is_bytes =
                matches!(limit.counted(), Counted::Bytes | Counted::BytesRead | Counted::BytesWritten);
            let least = if is_bytes { KIB } else { 1 };
            *rate = rate.map(|rate| (rate / scale / least * least).max(least));
        }
        if let Some(burst) = &mut limits.burst {
            burst.iops = (burst.iops / scale).max(1);
            burst.credits /= scale;
        }
        Plan::Custom(Box::new(limits))
    }
}

impl fmt::Display for Provision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(text: &str) -> Result<Rate, String> {
        text.to_owned().try_into()
    }

    #[test]
    fn rates_have_units_of_bits_and_of_bytes() {
        let rates =
            ["16000 Mbit/s", "875 MiB/s", "8MB/s", "10 GiB/s", "8 kbit/s"].map(|text| rate(text).unwrap());
        assert_eq!(
            rates.each_ref().map(|rate| rate.at_scale(1)),
            [2_000_000_000, 917_504_000, 8_000_000, 10 << 30, 1000]
        );
        assert_eq!(rates[0].at_scale(100), 20_000_000);
        assert_eq!(rates[1].to_string(), "875 MiB/s");
    }

    #[test]
    fn what_is_no_rate_is_refused_with_the_units() {
        for wrong in ["", "8", "8 mb/s", "MB/s", "1.5 MB/s", "-1 MB/s", "8 MB", "8 MB/s "] {
            assert!(rate(wrong).unwrap_err().contains("Mbit/s"), "{wrong}");
        }
        for out in ["0 MB/s", "18446744073709551615 GiB/s"] {
            assert!(rate(out).unwrap_err().contains("out of range"), "{out}");
        }
    }

    #[test]
    fn delays_have_units_and_a_longest() {
        let micros = |text: &str| Delay::try_from(text.to_owned()).map(|delay| delay.duration().as_micros());
        for (text, expected) in [("0 ms", 0), ("2 ms", 2000), ("500us", 500), ("1000 ms", 1_000_000)] {
            assert_eq!(micros(text), Ok(expected), "{text}");
        }
        for wrong in
            ["", "2", "ms", "-1 ms", "1.5 ms", "1001 ms", "1000001 us", "1 s", "18446744073709551615 ms"]
        {
            assert!(micros(wrong).unwrap_err().contains("is no delay"), "{wrong}");
        }
    }

    #[test]
    fn a_loss_is_less_than_all() {
        for share in [0.0, 0.1, 0.999] {
            assert_eq!(Loss::try_from(share).map(Loss::share), Ok(share));
        }
        for wrong in [-0.1, 1.0, 10.0, f64::NAN, f64::INFINITY] {
            assert!(Loss::try_from(wrong).unwrap_err().starts_with("the loss is "), "{wrong}");
        }
    }

    #[test]
    fn block_sizes_are_powers_of_1024() {
        let sizes = ["4k", "64k", "1M"].map(|text| BlockSize::try_from(text.to_owned()).unwrap().0);
        assert_eq!(sizes, [4096, 65536, 1 << 20]);
        for wrong in ["", "k", "4", "0k", "17M", "4K", "99999999999999999999M"] {
            assert!(BlockSize::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_plan_is_scaled_in_its_rates_only() {
        let plan = Provision::try_from("azure-files-v1 capacity=30720GiB".to_owned()).unwrap();
        let (real, scaled) = (plan.at_scale(1).limits(), plan.at_scale(100).limits());
        assert_eq!((real.iops, scaled.iops), (Some(33_720), Some(337)));
        assert_eq!(scaled.throughput, real.throughput.map(|rate| rate / 100 / 1024 * 1024));
        assert_eq!((scaled.capacity, scaled.file_size), (real.capacity, real.file_size));
        assert_eq!(scaled.burst.map(|b| b.iops), real.burst.map(|b| b.iops / 100));
        // The server takes it in the form in which it is shown.
        let shown = plan.at_scale(100).to_string();
        assert_eq!(shown.parse::<Plan>().unwrap().limits(), scaled, "{shown}");
        assert!(Provision::try_from("azure-files-v9".to_owned()).unwrap_err().contains("is no plan"));
    }
}
