//! The properties of a command, known before any request is examined: one row for each command, beside its handler.
//! [`OPERATIONS`](crate::handler::OPERATIONS) lists them all.

use smb_wire::Command;

/// The properties of a command.
#[derive(Debug)]
pub(crate) struct Operation {
    /// The command.
    pub(crate) command: Command,
    /// The command as an operation on a share. None: the command does not concern a share, and is not counted.
    pub(crate) on_share: Option<share::Operation>,
    /// What the command requires.
    pub(crate) needs: Needs,
    /// 3.3.5.2.9: whether an expired session still serves the command.
    pub(crate) serves_expired: bool,
    /// The kind of effect that the command has.
    pub(crate) effect: Effect,
    /// Whether the command may wait for long. If so, its message is copied, so that it does not keep everything in
    /// memory that was received together with it.
    pub(crate) lingers: bool,
    /// The most bytes of its reply after the header, apart from data whose amount depends on the request or the file.
    pub(crate) answer_bytes: usize,
}

/// What a request requires. Each level includes the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Needs {
    /// Only the connection.
    Nothing,
    /// A session in which a user has logged on.
    Session,
    /// A tree connect.
    Tree,
    /// An open, which the request names and its handler finds.
    Open,
}

/// The kind of effect that matters when a request is lost or repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// None: the request ends with its connection.
    None,
    /// The request runs to its end even if its connection has ended. A request that changes something must have a known
    /// outcome, since the client may send it again on another channel. A request that removes opens or sessions from
    /// their tables must close all of them, since no other code would find them there.
    Finished,
    /// Likewise, and the request fails if a newer one may have overtaken it (3.3.5.2.10).
    Guarded,
}

impl Operation {
    /// A command that requires nothing, changes nothing and is not counted; exceptions are set beside it.
    pub(crate) const fn of(command: Command) -> Self {
        Self {
            command,
            on_share: None,
            needs: Needs::Nothing,
            serves_expired: false,
            effect: Effect::None,
            lingers: false,
            answer_bytes: 0,
        }
    }

    /// Whether a request runs to its end even if its connection has ended.
    pub(crate) fn must_be_finished(&self) -> bool {
        self.effect != Effect::None
    }

    /// 3.3.5.2.10: whether a request fails if a newer one may have overtaken it.
    pub(crate) fn is_guarded(&self) -> bool {
        self.effect == Effect::Guarded
    }
}
