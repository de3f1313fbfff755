//! What a statement of the documents is, as far as a measurement can test it.

use super::range::Range;
use advise::Profile;
use load::result::Key;

/// A statement of the documents.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim {
    /// Its number, such as `1.20`: the first part is the document's.
    pub id: &'static str,
    /// The line of the document that it stands in.
    pub line: u32,
    /// What it says.
    pub statement: &'static str,
    /// Its figure, in the document's words.
    pub figure: &'static str,
    /// What must be so for a measurement to speak to it.
    pub needs: &'static [Need],
    /// How it is tested.
    pub test: Test,
    /// A slip of the document, or where else it says so.
    pub note: &'static str,
}

/// What must be so for a measurement to speak to a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// Links between client and server that can be a limit: loopback has none.
    Network,
    /// The service that the figures were taken on.
    SoldAs(Profile),
}

/// What of a row is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Operations a second.
    Rate,
    /// Bytes a second.
    Throughput,
    /// The median latency in microseconds.
    Latency,
}

/// How a statement is tested.
#[derive(Debug, Clone, Copy)]
pub(super) enum Test {
    /// Rows, each by the one of the same run that `base` makes of its key.
    Ratio {
        families: &'static [&'static str],
        of: Figure,
        row: fn(&Key) -> bool,
        base: fn(&Key) -> Key,
        expected: Range,
    },
    /// Rows in an order: what becomes of a figure on the way.
    Trend {
        families: &'static [&'static str],
        of: Figure,
        place: fn(&Key) -> Option<TrendPosition>,
        way: Way,
    },
    /// Figures as they are, which hold for one service on one kind of machine.
    Absolute { families: &'static [&'static str], of: Figure, row: fn(&Key) -> bool, expected: Range },
    /// The rows of two results of one family, told apart by a note that they carry.
    Between {
        families: &'static [&'static str],
        of: Figure,
        note: &'static str,
        base: &'static str,
        other: &'static str,
        expected: Range,
    },
    /// Nothing that this program measures tests it; why.
    Untestable(&'static str),
}

/// A row's place in a trend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TrendPosition {
    /// What rows of one trend have in common: the key without what varies.
    pub with: Key,
    /// What varies, growing along the way.
    pub at: u64,
}

/// What becomes of a figure along the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// It is higher at the end, and no step goes down.
    Rises,
    /// It is lower at the end, and no step goes up.
    Falls,
    /// It is higher after each step.
    RisesEachTime,
}

/// Statements that are in the text of two documents, or belong to it in another way.
pub(super) const NONE: &[Need] = &[];
pub(super) const NETWORK: &[Need] = &[Need::Network];
pub(super) const AZURE_FILES: &[Need] = &[Need::Network, Need::SoldAs(Profile::AzureFiles)];
pub(super) const AZURE_NETAPP_FILES: &[Need] = &[Need::Network, Need::SoldAs(Profile::AzureNetappFiles)];

impl Test {
    /// The families whose results are looked at, the first of which is made for it.
    pub(super) fn families(&self) -> &'static [&'static str] {
        match *self {
            Self::Ratio { families, .. }
            | Self::Trend { families, .. }
            | Self::Absolute { families, .. }
            | Self::Between { families, .. } => families,
            Self::Untestable(_) => &[],
        }
    }
}
