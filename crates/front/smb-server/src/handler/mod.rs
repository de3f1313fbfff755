//! One handler for each command, with the name of its codec in `smb_wire`, and beside it the properties of the command:
//! its [`Operation`].

pub(crate) mod cancel;
pub(crate) mod change_notify;
pub(crate) mod close;
pub(crate) mod create;
pub(crate) mod echo;
pub(crate) mod flush;
pub(crate) mod ioctl;
pub(crate) mod lock;
pub(crate) mod logoff;
pub(crate) mod negotiate;
pub(crate) mod oplock_break;
pub(crate) mod pipe;
pub(crate) mod query_directory;
pub(crate) mod query_info;
pub(crate) mod read;
pub(crate) mod session_setup;
pub(crate) mod set_info;
pub(crate) mod tree_connect;
pub(crate) mod tree_disconnect;
pub(crate) mod write;

use smb_wire::Command;

use crate::operation::{Needs, Operation};

/// The commands, in the order of their numbers. [MS-SMB2] 2.2.1.
pub(crate) static OPERATIONS: [Operation; 19] = [
    negotiate::OPERATION,
    session_setup::OPERATION,
    logoff::OPERATION,
    tree_connect::OPERATION,
    tree_disconnect::OPERATION,
    create::OPERATION,
    close::OPERATION,
    flush::OPERATION,
    read::OPERATION,
    write::OPERATION,
    lock::OPERATION,
    ioctl::OPERATION,
    cancel::OPERATION,
    echo::OPERATION,
    query_directory::OPERATION,
    change_notify::OPERATION,
    query_info::OPERATION,
    set_info::OPERATION,
    oplock_break::OPERATION,
];

/// An unknown command. In a compound it is treated as a request about a share, and fails.
static UNKNOWN: Operation =
    Operation { needs: Needs::Tree, ..Operation::of(Command::ServerToClientNotification) };

/// The properties of a command.
pub(crate) fn operation(command: Command) -> &'static Operation {
    OPERATIONS.get(usize::from(u16::from(command))).unwrap_or(&UNKNOWN)
}

/// The commands that concern shares, as operations on them.
pub fn operations() -> impl Iterator<Item = &'static share::Operation> {
    OPERATIONS.iter().filter_map(|operation| operation.on_share.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_has_its_row() {
        for number in 0..19 {
            let command = Command::from(number);
            assert_eq!(operation(command).command, command);
        }
        for unknown in [Command::ServerToClientNotification, Command::Unknown(20), Command::Unknown(u16::MAX)]
        {
            assert_eq!(operation(unknown).command, Command::ServerToClientNotification);
        }
    }

    #[test]
    fn the_rows_say_what_the_specification_lists() {
        use Command::{
            Cancel, Close, Create, Echo, Ioctl, Lock, Logoff, Negotiate, SessionSetup, SetInfo, TreeConnect,
            TreeDisconnect, Write,
        };
        let are = |is: fn(&Operation) -> bool| -> Vec<Command> {
            OPERATIONS.iter().filter(|operation| is(operation)).map(|operation| operation.command).collect()
        };
        // 3.3.5.2.9
        assert_eq!(
            are(|operation| operation.needs == Needs::Nothing),
            [Negotiate, SessionSetup, Cancel, Echo]
        );
        assert_eq!(are(|operation| operation.serves_expired), [Logoff, Close, Lock]);
        // 3.3.5.2.11
        assert_eq!(are(|operation| operation.needs == Needs::Session), [Logoff, TreeConnect]);
        // 3.3.5.2.10
        assert_eq!(are(Operation::is_guarded), [Write, Ioctl, SetInfo]);
        let finished = [SessionSetup, Logoff, TreeDisconnect, Create, Close, Write, Ioctl, SetInfo];
        assert_eq!(are(Operation::must_be_finished), finished);
    }
}
