//! What was provisioned.

use std::fmt;

use crate::units::show_size;
use crate::{GIB, Level, Limits, Media, Pool, Qos, anf, azure};

/// What was provisioned for a share. A plan is written as its name and values, and parsed from the same form:
///
/// ```
/// # use anabranch_limits::Plan;
/// let plan: Plan = "azure-files-v2-ssd capacity=1TiB iops=5000 throughput=200MiB/s".parse()?;
/// assert_eq!(plan.limits().iops, Some(5000));
/// assert_eq!(plan.to_string().parse(), Ok(plan));
/// # Ok::<(), anabranch_limits::PlanError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Plan {
    /// No limits.
    #[default]
    Unlimited,
    /// Azure Files, provisioned v1.
    AzureFilesV1 {
        /// Size in GiB.
        gib: u64,
    },
    /// Azure Files, provisioned v2.
    AzureFilesV2 {
        /// The storage media.
        media: Media,
        /// Size in GiB.
        gib: u64,
        /// IOPS; None for what the portal proposes.
        iops: Option<u64>,
        /// MiB/s; None for what the portal proposes.
        mib: Option<u64>,
    },
    /// Azure Files, pay-as-you-go.
    AzureFilesPayg {
        /// The largest size in GiB; None: nothing is said.
        gib: Option<u64>,
    },
    /// Azure NetApp Files.
    Anf {
        /// The service level.
        level: Level,
        /// Size in GiB.
        gib: u64,
        /// How the throughput is determined.
        qos: Qos,
        /// The capacity pool, if the volume shares one.
        pool: Option<Pool>,
    },
    /// Limits chosen freely.
    Custom(Box<Limits>),
}

impl Plan {
    /// The names of all plans.
    pub const NAMES: [&'static str; 9] = [
        "unlimited",
        "azure-files-v1",
        "azure-files-v2-ssd",
        "azure-files-v2-hdd",
        "azure-files-payg",
        "anf-standard",
        "anf-premium",
        "anf-ultra",
        "custom",
    ];

    /// The name of the plan, without its values.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Unlimited => "unlimited",
            Self::AzureFilesV1 { .. } => "azure-files-v1",
            Self::AzureFilesV2 { media: Media::Ssd, .. } => "azure-files-v2-ssd",
            Self::AzureFilesV2 { media: Media::Hdd, .. } => "azure-files-v2-hdd",
            Self::AzureFilesPayg { .. } => "azure-files-payg",
            Self::Anf { level: Level::Standard, .. } => "anf-standard",
            Self::Anf { level: Level::Premium, .. } => "anf-premium",
            Self::Anf { level: Level::Ultra, .. } => "anf-ultra",
            Self::Custom(_) => "custom",
        }
    }

    /// The storage media for which the plan is offered: provisioned v1 is for solid state alone ("Understanding Azure Files
    /// billing"), pay-as-you-go for hard disks alone, and Azure NetApp Files has no other media. None: it says nothing about media.
    #[must_use]
    pub fn media(&self) -> Option<Media> {
        match self {
            Self::AzureFilesV1 { .. } | Self::Anf { .. } => Some(Media::Ssd),
            Self::AzureFilesV2 { media, .. } => Some(*media),
            Self::AzureFilesPayg { .. } => Some(Media::Hdd),
            Self::Unlimited | Self::Custom(_) => None,
        }
    }

    /// How the service whose plan it is would bill the share. None: it is of no service.
    #[must_use]
    pub fn billing(&self) -> Option<&'static str> {
        match self {
            Self::AzureFilesV1 { .. } => Some("Azure Files, provisioned v1"),
            Self::AzureFilesV2 { .. } => Some("Azure Files, provisioned v2"),
            Self::AzureFilesPayg { .. } => Some("Azure Files, pay-as-you-go"),
            Self::Anf { .. } => Some("Azure NetApp Files, by capacity"),
            Self::Unlimited | Self::Custom(_) => None,
        }
    }

    /// The names of the plans that may be had on a storage medium.
    pub fn names_for(media: Media) -> impl Iterator<Item = &'static str> {
        let other = match media {
            Media::Ssd => ["azure-files-v2-hdd", "azure-files-payg"].as_slice(),
            Media::Hdd => {
                ["azure-files-v1", "azure-files-v2-ssd", "anf-standard", "anf-premium", "anf-ultra"]
                    .as_slice()
            }
        };
        Self::NAMES.into_iter().filter(move |name| !other.contains(name))
    }

    /// The limits that follow from the plan.
    #[must_use]
    pub fn limits(&self) -> Limits {
        match self {
            Self::Unlimited => Limits::NONE,
            Self::AzureFilesV1 { gib } => azure::v1(*gib),
            Self::AzureFilesV2 { media, gib, iops, mib } => {
                let iops = iops.unwrap_or_else(|| media.recommended_iops(*gib));
                let mib = mib.unwrap_or_else(|| media.recommended_throughput(*gib));
                azure::v2(*media, *gib, iops, mib)
            }
            Self::AzureFilesPayg { gib } => azure::pay_as_you_go(*gib),
            Self::Anf { level, gib, qos, .. } => anf::limits(*level, *gib, *qos),
            Self::Custom(limits) => (**limits).clone(),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Unlimited => Ok(()),
            Self::AzureFilesV1 { gib } => write!(f, " capacity={}", show_size(gib * GIB)),
            Self::AzureFilesV2 { gib, iops, mib, .. } => {
                write!(f, " capacity={}", show_size(gib * GIB))?;
                show(f, "iops", *iops)?;
                mib.map_or(Ok(()), |mib| write!(f, " throughput={mib}MiB/s"))
            }
            Self::AzureFilesPayg { gib } => {
                gib.map_or(Ok(()), |gib| write!(f, " capacity={}", show_size(gib * GIB)))
            }
            Self::Anf { gib, qos, pool, .. } => {
                write!(f, " capacity={}", show_size(gib * GIB))?;
                if let Qos::Manual(mib) = qos {
                    write!(f, " throughput={mib}MiB/s")?;
                }
                pool.as_ref().map_or(Ok(()), |pool| write!(f, " pool={}:{}TiB", pool.name, pool.tib))
            }
            Self::Custom(limits) => show_limits(f, limits),
        }
    }
}

fn show(f: &mut fmt::Formatter<'_>, name: &str, value: Option<u64>) -> fmt::Result {
    value.map_or(Ok(()), |value| write!(f, " {name}={value}"))
}

fn show_limits(f: &mut fmt::Formatter<'_>, limits: &Limits) -> fmt::Result {
    let size = |f: &mut fmt::Formatter<'_>, name: &str, value: Option<u64>, per: &str| {
        value.map_or(Ok(()), |bytes| write!(f, " {name}={}{per}", show_size(bytes)))
    };
    show(f, "iops", limits.iops)?;
    show(f, "burst-iops", limits.burst.map(|burst| burst.iops))?;
    show(f, "burst-credits", limits.burst.map(|burst| burst.credits))?;
    size(f, "throughput", limits.throughput, "/s")?;
    size(f, "read", limits.read, "/s")?;
    size(f, "write", limits.write, "/s")?;
    show(f, "metadata-iops", limits.metadata_iops)?;
    show(f, "file-iops", limits.file_iops)?;
    size(f, "file-throughput", limits.file_throughput, "/s")?;
    size(f, "file-size", limits.file_size, "")?;
    show(f, "client-iops", limits.client_iops)?;
    show(f, "client-metadata-iops", limits.client_metadata_iops)?;
    size(f, "client-throughput", limits.client_throughput, "/s")?;
    size(f, "capacity", limits.capacity, "")?;
    show(f, "root-handles", limits.handles.root)?;
    show(f, "file-handles", limits.handles.file)?;
    show(f, "handles", limits.handles.share)?;
    let unit = Some(limits.io_unit).filter(|unit| *unit != Limits::IO_UNIT);
    size(f, "io-unit", unit, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MIB;

    #[test]
    fn every_name_is_that_of_a_plan() {
        for name in Plan::NAMES {
            let text = match name {
                "unlimited" => name.to_owned(),
                "custom" => format!("{name} iops=1"),
                _ => format!("{name} capacity=1TiB"),
            };
            assert_eq!(text.parse::<Plan>().unwrap().name(), name);
        }
    }

    #[test]
    fn a_medium_has_the_plans_that_are_offered_for_it() {
        for (media, name) in Media::NAMES {
            assert_eq!((name.parse(), media.to_string()), (Ok(media), name.to_owned()));
            for plan in Plan::NAMES {
                let text = match plan {
                    "unlimited" => plan.to_owned(),
                    "custom" => format!("{plan} iops=1"),
                    _ => format!("{plan} capacity=1TiB"),
                };
                let parsed: Plan = text.parse().unwrap();
                let is_offered = parsed.media().is_none_or(|its| its == media);
                assert_eq!(
                    Plan::names_for(media).any(|offered| offered == plan),
                    is_offered,
                    "{plan} on {name}"
                );
                assert_eq!(parsed.media().is_some(), parsed.billing().is_some(), "{plan}");
            }
        }
        assert!("nvme".parse::<Media>().unwrap_err().contains("`nvme`"));
    }

    #[test]
    fn provisioned_v2_takes_what_is_not_given_from_the_portal() {
        let plan: Plan = "azure-files-v2-hdd capacity=1TiB".parse().unwrap();
        assert_eq!(plan.limits().iops, Some(1_205));
        assert_eq!(plan.limits().throughput, Some(81 * MIB));
    }
}
