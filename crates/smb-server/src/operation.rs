//! What is known of a command before any request of it is looked at: a row each, which stands beside its handler. All of
//! them are [`OPERATIONS`](crate::handler::OPERATIONS).

use share::Api;
use smb_wire::Command;

/// What is known of a command.
#[derive(Debug)]
pub(crate) struct Operation {
    /// The command.
    pub(crate) command: Command,
    /// Its name in metrics, which also says how it counts against the budget of a share ([`share::turn`]). None: it is
    /// about no share, and is not counted.
    pub(crate) api: Option<Api>,
    /// What must be there for it.
    pub(crate) needs: Needs,
    /// 3.3.5.2.9: a session that has expired serves it still.
    pub(crate) serves_expired: bool,
    /// What it does that must be known.
    pub(crate) effect: Effect,
    /// It may wait for long, and does not hold on meanwhile to all that was received together with it.
    pub(crate) lingers: bool,
    /// The most bytes of its answer behind the header, but for data of which request or file decide how much there is.
    pub(crate) answer_bytes: usize,
}

/// What must be there for a request. Each needs what the one before it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Needs {
    /// No more than the connection.
    Nothing,
    /// A session, in which somebody has logged on.
    Session,
    /// A tree connect.
    Tree,
    /// An open, which the request names: its handler finds it.
    Open,
}

/// What a request does that must be known to its client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing: it ends with its connection.
    None,
    /// It goes on to its end, also when its connection has ended. What changes something must be known, as the client may
    /// send it again on another channel. What takes opens or sessions out of their tables must close them all: nobody else
    /// would find them there.
    Finished,
    /// Likewise; and it fails when a newer request may have overtaken it (3.3.5.2.10).
    Guarded,
}

impl Operation {
    /// A command that needs nothing, changes nothing and is not counted: what is otherwise is set beside it.
    pub(crate) const fn of(command: Command) -> Self {
        Self {
            command,
            api: None,
            needs: Needs::Nothing,
            serves_expired: false,
            effect: Effect::None,
            lingers: false,
            answer_bytes: 0,
        }
    }

    /// Whether a request goes on to its end, also when its connection has ended.
    pub(crate) fn must_be_finished(&self) -> bool {
        self.effect != Effect::None
    }

    /// 3.3.5.2.10: whether a request fails when a newer one may have overtaken it.
    pub(crate) fn is_guarded(&self) -> bool {
        self.effect == Effect::Guarded
    }
}
