//! SMB as shares see it.
//!
//! A share knows no protocol. Several of its rules are those of the file system behind SMB, [MS-FSA]:
//!
//! * opening: the other opens are checked first, then the caches of their clients; byte-range locks do not prevent a file
//!   from being emptied (2.1.5.1.2);
//! * rights: a user who may list a directory may read the attributes of its entries; deletion needs DELETE on the object, or
//!   FILE_DELETE_CHILD on its directory (2.1.5.1.2.1);
//! * closing: a delete-on-close open of a directory marks the directory only if it is empty (2.1.5.5, phase 1);
//! * caches: a lock breaks them first (2.1.5.8), and an allocation counts as a change of the size (2.1.4.12).
//!
//! [MS-SMB2] 3.3.2.1 leaves the time that a client may take to acknowledge a break (`share::Settings::break_timeout`) to
//! the server; Windows waits for 35 seconds.

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
