//! Syslog and systemd's journal: datagrams to a local socket.

use std::io::{self, ErrorKind};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use accounting::Outcome;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::event::{name, shown};
use crate::queue::{Output, Put, READER_PATIENCE};
use crate::{Event, FileSettings};

/// The facility `authpriv`: the lines name users and files (RFC 3164 4.1.1, "security/authorization messages (private)").
const FACILITY: u8 = 10;
/// The name of the program in syslog and in the journal.
const IDENTIFIER: &str = "anabranch";

/// A socket that takes a line in each datagram.
#[derive(Debug)]
pub(crate) struct SocketOutput {
    path: PathBuf,
    /// None: not connected.
    socket: Option<UnixDatagram>,
}

impl SocketOutput {
    /// # Errors
    /// No such socket can be connected to. One that nobody answers at present can.
    pub(crate) fn open(path: PathBuf) -> io::Result<Self> {
        match connect(&path) {
            Ok(socket) => Ok(Self { path, socket: Some(socket) }),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(Self { path, socket: None }),
            Err(error) => Err(error),
        }
    }

    fn send(&mut self, line: &[u8]) -> io::Result<()> {
        let socket = match &mut self.socket {
            Some(socket) => socket,
            closed => closed.insert(connect(&self.path)?),
        };
        socket.send(line).map(drop)
    }
}

fn connect(path: &Path) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.connect(path)?;
    Ok(socket)
}

impl Output for SocketOutput {
    fn put(&mut self, line: &[u8]) -> Put {
        match self.send(line) {
            Ok(()) => Put::Written,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let patience = Timespec::try_from(READER_PATIENCE).ok();
                if let Some(socket) = &self.socket {
                    // The next attempt says what became of it.
                    let _ = poll(&mut [PollFd::new(socket, PollFlags::OUT)], patience.as_ref());
                }
                Put::Full
            }
            Err(error) if error.raw_os_error() == Some(Errno::MSGSIZE.raw_os_error()) => {
                Put::Impossible(error)
            }
            Err(error) => {
                // A daemon that was started again has another socket at the path.
                self.socket = None;
                Put::Failed(error)
            }
        }
    }

    fn reopen(&mut self, _: Option<FileSettings>) {
        self.socket = None;
    }
}

/// RFC 3164 4.1.1: Notice for what was refused, Error for what has failed, Informational for the rest.
fn severity(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Done => 6,
        Outcome::Refused => 5,
        Outcome::Failed => 3,
    }
}

/// A line for the socket of a syslog daemon, in the form of syslog(3) without the time, which all daemons then note by
/// themselves: `<PRI>TAG[PID]: TEXT`. They do not understand the form of RFC 5424 there.
pub(crate) fn syslog(event: &Event<'_>, line: &[u8]) -> Vec<u8> {
    let priority = FACILITY * 8 + severity(event.outcome);
    let mut message = format!("<{priority}>{IDENTIFIER}[{}]: ", std::process::id()).into_bytes();
    message.extend_from_slice(line);
    message
}

/// An entry for the journal, in systemd's native protocol: the line, and its fields to search for.
pub(crate) fn journal(event: &Event<'_>, line: &[u8]) -> Vec<u8> {
    let mut entry = Vec::with_capacity(2 * line.len());
    field(&mut entry, "MESSAGE", line);
    let numbers = [("PRIORITY", severity(event.outcome)), ("SYSLOG_FACILITY", FACILITY)];
    for (name, number) in numbers {
        field(&mut entry, name, number.to_string().as_bytes());
    }
    let uid = event.who.uid.map(|uid| uid.to_string());
    let from = event.from.map(|from| from.ip().to_canonical().to_string());
    let (path, new_path) = (event.path.map(shown), event.new_path.map(shown));
    let texts = [
        ("SYSLOG_IDENTIFIER", Some(IDENTIFIER)),
        ("ANABRANCH_KIND", Some(event.kind.name())),
        ("ANABRANCH_OPERATION", Some(event.operation)),
        ("ANABRANCH_PROTOCOL", Some(event.protocol)),
        ("ANABRANCH_OUTCOME", Some(name(event.outcome))),
        ("ANABRANCH_STATUS", Some(event.status)),
        ("ANABRANCH_SHARE", event.share),
        ("ANABRANCH_USER", event.who.user),
        ("ANABRANCH_UID", uid.as_deref()),
        ("ANABRANCH_CLIENT", from.as_deref()),
        ("ANABRANCH_PATH", path.as_deref()),
        ("ANABRANCH_NEW_PATH", new_path.as_deref()),
    ];
    for (name, text) in texts.into_iter().filter_map(|(name, text)| Some((name, text?))) {
        field(&mut entry, name, text.as_bytes());
    }
    entry
}

/// A field of an entry. The form with a length is for all values: a name of a file may have a line end in it.
fn field(entry: &mut Vec<u8>, name: &str, value: &[u8]) {
    entry.extend_from_slice(name.as_bytes());
    entry.push(b'\n');
    entry.extend_from_slice(&u64::try_from(value.len()).unwrap_or(u64::MAX).to_le_bytes());
    entry.extend_from_slice(value);
    entry.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::of_tests::removal;

    #[test]
    fn a_daemon_that_was_started_again_gets_the_line() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log");
        assert!(SocketOutput::open(path.clone()).is_err(), "there is nothing");
        let daemon = UnixDatagram::bind(&path).unwrap();
        let mut output = SocketOutput::open(path.clone()).unwrap();
        assert!(matches!(output.put(b"first"), Put::Written));
        drop(daemon);
        assert!(matches!(output.put(b"second"), Put::Failed(_)));
        std::fs::remove_file(&path).unwrap();
        let daemon = UnixDatagram::bind(&path).unwrap();
        assert!(matches!(output.put(b"second"), Put::Written));
        let mut read = [0; 100];
        let count = daemon.recv(&mut read).unwrap();
        assert_eq!(&read[..count], b"second");
        assert!(matches!(output.put(&vec![b'x'; 1 << 24]), Put::Impossible(_)));
        assert!((0..100_000).any(|_| matches!(output.put(b"x"), Put::Full)), "nobody reads");
    }

    #[test]
    fn a_line_for_syslog_has_facility_and_severity() {
        let text = String::from_utf8(syslog(&removal(b"a"), b"{}")).unwrap();
        assert_eq!(text, format!("<85>anabranch[{}]: {{}}", std::process::id()));
    }

    #[test]
    fn no_name_of_a_file_makes_a_field_of_the_journal() {
        let entry = journal(&removal(b"x\nUNIT=sshd\n"), b"{}");
        let (mut rest, mut fields) = (&entry[..], Vec::new());
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let name = std::str::from_utf8(&rest[..end]).unwrap();
            let (length, after) = rest[end + 1..].split_at(8);
            let length = usize::try_from(u64::from_le_bytes(length.try_into().unwrap())).unwrap();
            fields.push((name, std::str::from_utf8(&after[..length]).unwrap()));
            rest = &after[length + 1..];
        }
        assert_eq!(fields[..2], [("MESSAGE", "{}"), ("PRIORITY", "5")]);
        assert!(
            fields.contains(&("ANABRANCH_PATH", "/x\nUNIT=sshd\n"))
                && fields.contains(&("ANABRANCH_CLIENT", "10.0.0.7"))
        );
        assert!(fields.iter().all(|(name, _)| *name != "UNIT"));
    }
}
