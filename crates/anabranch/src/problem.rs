//! What a person is told when the program cannot go on: what was wrong, where, what to do.

use std::fmt;

use crate::print::harmless;

/// Why the program ends; its number is the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Something failed while serving.
    Serving = 1,
    /// The command line or the configuration file is wrong (clap ends with the same status).
    Settings = 2,
    /// The state directory cannot be used.
    State = 3,
    /// An address cannot be listened on.
    Address = 4,
    /// The directory of a share cannot be used.
    Directory = 5,
    /// The server that runs cannot be asked.
    Asking = 6,
    /// What was asked for is refused.
    Refused = 7,
    /// Something went wrong while it was measured.
    Measuring = 8,
}

/// A message for the person who started the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) cause: Cause,
    /// What was wrong, and where.
    pub(crate) what: String,
    /// What to do about it; empty when nothing sensible can be said.
    pub(crate) advice: String,
}

impl Problem {
    pub(crate) fn new(cause: Cause, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { cause, what: what.into(), advice: advice.into() }
    }

    /// The exit status of the program.
    pub(crate) fn status(&self) -> u8 {
        self.cause as u8
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.what)?;
        if self.advice.is_empty() { Ok(()) } else { write!(f, "\n  {}", self.advice) }
    }
}

impl From<state::Error> for Problem {
    fn from(state::Error { what, advice }: state::Error) -> Self {
        Self { cause: Cause::State, what, advice }
    }
}

impl From<service_address::Error> for Problem {
    fn from(service_address::Error { what, advice }: service_address::Error) -> Self {
        Self { cause: Cause::Address, what, advice }
    }
}

impl From<peers::Error> for Problem {
    fn from(peers::Error { cause, what, advice }: peers::Error) -> Self {
        match cause {
            peers::Cause::Missing => {
                let or = "(or leave it out: --peers samba, --peers ganesha, --peers none)";
                Self { cause: Cause::Settings, what, advice: format!("{advice}    {or}") }
            }
            peers::Cause::Directory => Self { cause: Cause::Directory, what, advice },
            peers::Cause::Address => Self { cause: Cause::Address, what, advice },
            peers::Cause::Serving => Self { cause: Cause::Serving, what, advice },
        }
    }
}

impl From<control_client::Error> for Problem {
    fn from(error: control_client::Error) -> Self {
        use control_client::Error as E;
        let (what, advice) = match &error {
            E::NoServer { address } => (
                format!("no server answers at {address}: it was killed, or it uses another address"),
                "Start the server, or pass its address: --control ADDR:PORT",
            ),
            E::NotUnderstood { address, error } => (
                format!("the answer of {address} is not understood: {}", harmless(&error.to_string())),
                "Use an anabranch program of the same version as the server.",
            ),
            E::WrongToken { address } => (
                format!("the server at {address} does not accept the token of this state directory"),
                "It is another server. Pass its state directory (--state DIR), or omit --control.",
            ),
            E::Refused(refusal) => {
                return Self::new(Cause::Refused, harmless(&refusal.message), harmless(&refusal.advice));
            }
            E::Unreachable { .. } | E::NotHttp { .. } | E::RefusedSilently { .. } | E::Body(_) => {
                (error.to_string(), "")
            }
        };
        Self::new(Cause::Asking, what, advice)
    }
}

impl From<live_advice::Error> for Problem {
    fn from(error: live_advice::Error) -> Self {
        use live_advice::Error as E;
        let what = error.to_string();
        let (cause, advice) = match error {
            E::Control(error) => return error.into(),
            E::NoSuchClient { .. } => (Cause::Refused, "`anabranch client list` says who is."),
            E::NoShare { .. } => (Cause::Settings, "--apply needs smb://...@HOST/SHARE or nfs://HOST/SHARE."),
            E::Declared { .. } => (Cause::Refused, "Change it there, and start the server again."),
            E::OtherServer { .. } => (Cause::Refused, "Pass the state directory of that server: --state DIR"),
            E::Stopped { .. } => (Cause::Measuring, ""),
        };
        Self::new(cause, what, advice)
    }
}

impl From<compare::Error> for Problem {
    fn from(error: compare::Error) -> Self {
        use compare::Error as E;
        let what = error.to_string();
        let (cause, advice) = match error {
            E::Server(error) => return error.into(),
            E::Control(problem) => return problem.into(),
            E::NotRoot => (Cause::Settings, "Use sudo, or measure Anabranch alone: --peers none".to_owned()),
            E::NoRandom(_) => (Cause::Serving, String::new()),
            E::NoRow { .. } => (Cause::Settings, "Leave out --connections or --block-size.".to_owned()),
            E::NoRoom { free_mib, .. } => {
                (Cause::Directory, format!("{free_mib} MiB are free there: use --file-size or --directory."))
            }
            E::TooLittleTime { minutes_min, .. } => (
                Cause::Settings,
                format!("Give at least --minutes {minutes_min}, or fewer --repetitions, --over or --peers."),
            ),
            E::NotSaved { .. } | E::NotWritten { .. } => (Cause::Measuring, String::new()),
        };
        Self { cause, what, advice }
    }
}

pub(crate) type Result<T> = std::result::Result<T, Problem>;

impl From<gateway::Problem> for Problem {
    fn from(gateway::Problem { cause, what, advice }: gateway::Problem) -> Self {
        let cause = match cause {
            gateway::Cause::Serving => Cause::Serving,
            gateway::Cause::Settings => Cause::Settings,
            gateway::Cause::State => Cause::State,
            gateway::Cause::Directory | gateway::Cause::Silent => Cause::Directory,
            gateway::Cause::Asking => Cause::Asking,
        };
        Self { cause, what, advice }
    }
}

/// Turns an error of the system into a [`Problem`].
pub(crate) fn serving<E: fmt::Display>(what: &str) -> impl Fn(E) -> Problem {
    move |error| Problem::new(Cause::Serving, format!("{what}: {error}"), "")
}
