//! What the service manager that started this program is told: systemd's notify protocol (sd_notify(3)).
//!
//! A message is one datagram of lines `NAME=VALUE` to the socket that the variable `NOTIFY_SOCKET` names. Without that
//! variable nobody is told anything, and every call here does nothing.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How long a message waits for room in the queue of the socket. A service manager that reads nothing holds up no
/// signal for longer.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a service manager puts into the environment of a program.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Environment {
    /// `NOTIFY_SOCKET`: a path, or a name of the abstract namespace with `@` in front.
    pub notify_socket: Option<OsString>,
    /// `WATCHDOG_USEC`: the program must say that it is alive at least once in this many microseconds.
    pub watchdog_usec: Option<OsString>,
    /// `WATCHDOG_PID`: the process that must say so.
    pub watchdog_pid: Option<OsString>,
}

impl Environment {
    /// The environment of this process.
    #[must_use]
    pub fn own() -> Self {
        let of = std::env::var_os::<&str>;
        Self {
            notify_socket: of("NOTIFY_SOCKET"),
            watchdog_usec: of("WATCHDOG_USEC"),
            watchdog_pid: of("WATCHDOG_PID"),
        }
    }

    /// How often the process with this id must say at least that it is alive.
    fn watchdog(&self, pid: u32) -> Option<Duration> {
        let number = |text: &Option<OsString>| text.as_ref()?.to_str()?.parse::<u64>().ok();
        let is_other = self.watchdog_pid.is_some() && number(&self.watchdog_pid) != Some(pid.into());
        let period = number(&self.watchdog_usec).filter(|usec| *usec > 0)?;
        (!is_other).then(|| Duration::from_micros(period))
    }
}

/// The service manager that started this program, if there is one.
#[derive(Debug, Clone, Default)]
pub struct Supervisor {
    to: Option<Arc<Socket>>,
    watchdog: Option<Duration>,
}

#[derive(Debug)]
struct Socket {
    own: UnixDatagram,
    address: SocketAddr,
}

impl Supervisor {
    /// The service manager that this environment names.
    ///
    /// # Errors
    /// `NOTIFY_SOCKET` is neither an absolute path nor a name of the abstract namespace, or the system has no more
    /// descriptors.
    pub fn of(environment: &Environment) -> io::Result<Self> {
        let Some(name) = environment.notify_socket.as_deref().filter(|name| !name.is_empty()) else {
            return Ok(Self::default());
        };
        let address = address(name)?;
        let own = UnixDatagram::unbound()?;
        own.set_write_timeout(Some(PATIENCE))?;
        let watchdog = environment.watchdog(std::process::id());
        Ok(Self { to: Some(Arc::new(Socket { own, address })), watchdog })
    }

    /// How often [`Supervisor::alive`] must be said at least; None: the service manager has no watchdog.
    #[must_use]
    pub fn watchdog(&self) -> Option<Duration> {
        self.watchdog
    }

    /// The program serves: at the start, and after a reload.
    pub fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\n{}", status_line(status)));
    }

    /// The program reads its configuration again; [`Supervisor::ready`] ends this.
    pub fn reloading(&self) {
        let now = clock_gettime(ClockId::Monotonic);
        let usec = i128::from(now.tv_sec) * 1_000_000 + i128::from(now.tv_nsec) / 1_000;
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={usec}\n"));
    }

    /// The program ends.
    pub fn stopping(&self, status: &str) {
        self.tell(&format!("STOPPING=1\n{}", status_line(status)));
    }

    /// What the program does, in words.
    pub fn status(&self, status: &str) {
        self.tell(&status_line(status));
    }

    /// The program works as it should. Without this message, the service manager starts the program again.
    pub fn alive(&self) {
        self.tell("WATCHDOG=1\n");
    }

    /// A message that is lost is not repeated: the program serves without a service manager, too.
    fn tell(&self, message: &str) {
        if let Some(Socket { own, address }) = self.to.as_deref() {
            let _ = own.send_to_addr(message.as_bytes(), address);
        }
    }
}

fn address(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        [b'/', ..] => SocketAddr::from_pathname(name),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "neither a path nor a name with @ in front")),
    }
}

/// A status is one line, whatever it tells of.
fn status_line(status: &str) -> String {
    let line: Vec<&str> = status.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    format!("STATUS={}\n", line.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(socket: &OsStr) -> Environment {
        Environment { notify_socket: Some(socket.to_owned()), ..Environment::default() }
    }

    fn heard(socket: &UnixDatagram) -> String {
        let mut message = [0; 512];
        let length = socket.recv(&mut message).unwrap();
        String::from_utf8(message[..length].to_vec()).unwrap()
    }

    #[test]
    fn each_message_is_one_datagram() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let supervisor = Supervisor::of(&environment(path.as_os_str())).unwrap();
        supervisor.ready("serving\n two\n\n");
        assert_eq!(heard(&socket), "READY=1\nSTATUS=serving; two\n");
        supervisor.reloading();
        let message = heard(&socket);
        let usec = message.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap().trim_end();
        assert!(usec.parse::<u64>().unwrap() > 0, "{message}");
        supervisor.alive();
        supervisor.stopping("SIGTERM");
        assert_eq!(
            (heard(&socket), heard(&socket)),
            ("WATCHDOG=1\n".into(), "STOPPING=1\nSTATUS=SIGTERM\n".into())
        );
        drop(socket);
        supervisor.alive();
    }

    #[test]
    fn a_name_of_the_abstract_namespace_begins_with_an_at_sign() {
        let name = format!("anabranch-supervisor-{}", std::process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        Supervisor::of(&environment(OsStr::new(&format!("@{name}")))).unwrap().status("here");
        assert_eq!(heard(&socket), "STATUS=here\n");
    }

    #[test]
    fn a_program_that_nobody_supervises_tells_nobody() {
        for none in [Environment::default(), environment(OsStr::new(""))] {
            let supervisor = Supervisor::of(&none).unwrap();
            supervisor.ready("serving");
            assert_eq!(supervisor.watchdog(), None);
        }
        assert!(Supervisor::of(&environment(OsStr::new("relative"))).is_err());
    }

    #[test]
    fn the_watchdog_is_for_the_process_that_is_named() {
        let of = |usec: &str, pid: Option<&str>| {
            let environment = Environment {
                watchdog_usec: Some(usec.into()),
                watchdog_pid: pid.map(Into::into),
                ..Environment::default()
            };
            environment.watchdog(7)
        };
        assert_eq!(of("1500000", None), Some(Duration::from_millis(1500)));
        assert_eq!(of("1500000", Some("7")), Some(Duration::from_millis(1500)));
        assert_eq!(of("1500000", Some("8")), None);
        assert_eq!((of("0", None), of("soon", None), of("1", Some("x"))), (None, None, None));
    }
}
