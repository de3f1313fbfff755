//! SMB as shares see it.

use share::{DirectoryReport, Front, Operation, Patience};
use smb_wire::Command;

/// SMB 2 and 3. A request waits as long as the holder of a lease may take ([MS-SMB2] 3.3.5.9). The client can cancel
/// it.
pub static FRONT: Front =
    Front { name: "smb", patience: Patience::AsLongAsHolders, directories: DirectoryReport::Nothing };

/// A command as an operation on a share, with its name in metrics.
pub(crate) const fn operation(command: Command, name: &'static str) -> Operation {
    Operation::new(&FRONT, command.number() as usize, name)
}
