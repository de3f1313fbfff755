//! Azure Files: the provisioned models v1 and v2. The formulas come from "Understanding Azure Files billing"; the
//! limits for single files, metadata and handles come from "Scalability and performance targets for Azure Files" (May
//! 2025).

use std::fmt;
use std::str::FromStr;

use crate::units::ceiling;
use crate::{Burst, GIB, Handles, Limits, MIB, TIB};

/// The storage media of a v2 share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Media {
    /// Solid state.
    Ssd,
    /// Hard disks.
    Hdd,
}

impl Media {
    /// Both, with their names.
    pub const NAMES: [(Self, &'static str); 2] = [(Self::Ssd, "ssd"), (Self::Hdd, "hdd")];
}

impl fmt::Display for Media {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ssd => "ssd",
            Self::Hdd => "hdd",
        })
    }
}

impl FromStr for Media {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::NAMES.iter().find(|(_, name)| *name == text);
        known
            .map(|(media, _)| *media)
            .ok_or_else(|| format!("there is no tier `{text}`; the tiers are: ssd, hdd"))
    }
}

/// Credits last for one hour at the burst limit.
const BURST_SECONDS: u64 = 3600;

/// The lowest and the highest value that can be provisioned.
pub(crate) type Range = std::ops::RangeInclusive<u64>;

/// GiB of a v1 share.
pub(crate) const V1_GIB: Range = 100..=102_400;
/// GiB of a v2 share: 32 GiB to 256 TiB.
pub(crate) const V2_GIB: Range = 32..=262_144;

/// GiB of a pay-as-you-go share, whose size is only a limit: up to 100 TiB.
pub(crate) const PAYG_GIB: Range = 1..=102_400;

const PAYG_IOPS: u64 = 20_000;
const V1_IOPS_MAX: u64 = 102_400;

impl Media {
    /// IOPS that can be provisioned.
    pub(crate) fn iops(self) -> Range {
        match self {
            Self::Ssd => 3_000..=102_400,
            Self::Hdd => 500..=50_000,
        }
    }

    /// MiB/s that can be provisioned.
    pub(crate) fn throughput(self) -> Range {
        match self {
            Self::Ssd => 100..=10_340,
            Self::Hdd => 60..=5_120,
        }
    }

    /// What the portal proposes for this many GiB, in operations per second.
    pub(crate) fn recommended_iops(self, gib: u64) -> u64 {
        let wished = match self {
            Self::Ssd => 3000 + gib,
            Self::Hdd => 1000 + ceiling(gib, 20, 100),
        };
        within(wished, &self.iops())
    }

    /// What the portal proposes for this many GiB, in MiB/s.
    pub(crate) fn recommended_throughput(self, gib: u64) -> u64 {
        let wished = match self {
            Self::Ssd => 100 + ceiling(gib, 10, 100),
            Self::Hdd => 60 + ceiling(gib, 2, 100),
        };
        within(wished, &self.throughput())
    }

    fn burst_iops(self, iops: u64) -> u64 {
        let at_least = match self {
            Self::Ssd => 10_000,
            Self::Hdd => 5_000,
        };
        (3 * iops).max(at_least).min(*self.iops().end())
    }

    fn of_metadata_and_files(self) -> Limits {
        let (metadata, file_iops, file_mib) = match self {
            Self::Ssd => (35_000, 8_000, 1_024),
            Self::Hdd => (12_000, 1_000, 60),
        };
        Limits {
            metadata_iops: Some(metadata),
            file_iops: Some(file_iops),
            file_throughput: Some(file_mib * MIB),
            file_size: Some(4 * TIB),
            handles: Handles { root: Some(10_000), file: Some(2_000), share: None },
            ..Limits::NONE
        }
    }
}

fn within(value: u64, range: &Range) -> u64 {
    value.clamp(*range.start(), *range.end())
}

fn burst(baseline: u64, burst: u64) -> Option<Burst> {
    (burst > baseline).then(|| Burst { iops: burst, credits: (burst - baseline) * BURST_SECONDS })
}

/// The provisioned v1 model: everything follows from the size.
pub(crate) fn v1(gib: u64) -> Limits {
    let iops = (3000 + gib).min(V1_IOPS_MAX);
    let mib = 100 + ceiling(gib, 4, 100) + ceiling(gib, 6, 100);
    Limits {
        iops: Some(iops),
        burst: burst(iops, (3 * gib).clamp(10_000, V1_IOPS_MAX)),
        throughput: Some(mib * MIB),
        capacity: Some(gib * GIB),
        ..Media::Ssd.of_metadata_and_files()
    }
}

/// The pay-as-you-go model: nothing is provisioned, and throughput is limited by the storage account alone.
pub(crate) fn pay_as_you_go(gib: Option<u64>) -> Limits {
    Limits { iops: Some(PAYG_IOPS), capacity: gib.map(|gib| gib * GIB), ..Media::Hdd.of_metadata_and_files() }
}

/// The provisioned v2 model: size, IOPS and throughput are provisioned separately.
pub(crate) fn v2(media: Media, gib: u64, iops: u64, mib: u64) -> Limits {
    Limits {
        iops: Some(iops),
        burst: burst(iops, media.burst_iops(iops)),
        throughput: Some(mib * MIB),
        capacity: Some(gib * GIB),
        ..media.of_metadata_and_files()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (GiB, baseline, burst, credits, MiB/s), as printed on the page, except for two rows: for 33,792 GiB the page
    /// prints 227,548,800 credits and for 51,200 GiB 164,880,000, which follow from an older ceiling of 100,000 IOPS.
    /// Here they follow the formula that is printed beside them.
    const TABLE: [(u64, u64, u64, u64, u64); 8] = [
        (100, 3_100, 10_000, 24_840_000, 110),
        (500, 3_500, 10_000, 23_400_000, 150),
        (1_024, 4_024, 10_000, 21_513_600, 203),
        (5_120, 8_120, 15_360, 26_064_000, 613),
        (10_240, 13_240, 30_720, 62_928_000, 1_125),
        (33_792, 36_792, 101_376, 232_502_400, 3_480),
        (51_200, 54_200, 102_400, 173_520_000, 5_220),
        (102_400, 102_400, 102_400, 0, 10_340),
    ];

    #[test]
    fn v1_follows_the_printed_table() {
        for (gib, iops, burst_iops, credits, mib) in TABLE {
            let limits = v1(gib);
            let burst = limits.burst.unwrap_or(Burst { iops, credits: 0 });
            assert_eq!((limits.iops, burst.iops, burst.credits), (Some(iops), burst_iops, credits), "{gib}");
            assert_eq!(limits.throughput, Some(mib * MIB), "{gib}");
            assert_eq!(limits.capacity, Some(gib * GIB));
        }
    }

    #[test]
    fn v2_proposes_what_the_portal_does() {
        // MIN(MAX(3000 + CEILING(1 * GiB), 3000), 102400), and so on.
        for (gib, iops, mib) in [(32, 3_032, 104), (1_024, 4_024, 203), (262_144, 102_400, 10_340)] {
            assert_eq!(Media::Ssd.recommended_iops(gib), iops, "{gib}");
            assert_eq!(Media::Ssd.recommended_throughput(gib), mib, "{gib}");
        }
        for (gib, iops, mib) in [(32, 1_007, 61), (1_024, 1_205, 81), (262_144, 50_000, 5_120)] {
            assert_eq!(Media::Hdd.recommended_iops(gib), iops, "{gib}");
            assert_eq!(Media::Hdd.recommended_throughput(gib), mib, "{gib}");
        }
    }

    #[test]
    fn v2_bursts_to_three_times_what_is_provisioned() {
        let of = |media, iops| v2(media, 1024, iops, 200).burst;
        assert_eq!(of(Media::Ssd, 3_000), Some(Burst { iops: 10_000, credits: 7_000 * 3600 }));
        assert_eq!(of(Media::Ssd, 4_000), Some(Burst { iops: 12_000, credits: 8_000 * 3600 }));
        assert_eq!(of(Media::Ssd, 60_000), Some(Burst { iops: 102_400, credits: 42_400 * 3600 }));
        assert_eq!(of(Media::Ssd, 102_400), None);
        assert_eq!(of(Media::Hdd, 500), Some(Burst { iops: 5_000, credits: 4_500 * 3600 }));
        assert_eq!(of(Media::Hdd, 50_000), None);
    }
}
