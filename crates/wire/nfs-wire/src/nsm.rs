//! The Network Status Monitor, version 1 (Open Group C702, chapter 11): hosts tell each other that they have restarted.

use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_enum, xdr_struct};

/// The program's number.
pub const PROGRAM: u32 = 100_024;
/// The program's version.
pub const VERSION: u32 = 1;
/// The longest name of a host in bytes.
#[doc(alias = "SM_MAXSTRLEN")]
pub const NAME_BYTES_MAX: usize = 1024;

xdr_enum! {
    /// The procedures.
    Procedure {
        /// Do nothing.
        Null = 0,
        /// Whether the monitor would monitor a host.
        Stat = 1,
        /// Monitor a host. For programs of the same machine.
        Mon = 2,
        /// Monitor a host no longer.
        UnMon = 3,
        /// Monitor no host any longer.
        UnMonAll = 4,
        /// Behave as after a restart.
        SimuCrash = 5,
        /// A host has restarted.
        Notify = 6,
    }
}

/// The name of a host as received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HostName<'a>(pub &'a [u8]);

impl Encode for HostName<'_> {
    fn encode(&self, writer: &mut Writer<'_>) {
        writer.opaque(self.0);
    }
}

impl<'a> Decode<'a> for HostName<'a> {
    fn decode(reader: &mut Reader<'a>) -> Result<Self, XdrError> {
        reader.opaque(NAME_BYTES_MAX).map(Self)
    }
}

/// The argument of NOTIFY: a host and its state, which is odd while the host is up and grows with each restart.
#[doc(alias = "stat_chge")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StateChange<'a> {
    /// The name of the host that has restarted.
    #[doc(alias = "mon_name")]
    pub host: HostName<'a>,
    /// The new state.
    pub state: u32,
}

xdr_struct!(StateChange<'a> { host, state });

/// The result of STAT: whether the monitor would monitor the host (0: yes, 1: no), and its own state.
#[doc(alias = "sm_stat_res")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StatRes {
    /// 0 (STAT_SUCC) or 1 (STAT_FAIL).
    pub result: u32,
    /// The state of the monitor.
    pub state: u32,
}

xdr_struct!(StatRes { result, state });
