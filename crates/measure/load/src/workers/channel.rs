//! Messages over bytes: a length of four bytes, then JSON, encrypted where the connection has a seal.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::seal::{RANDOM_BYTES, Seal, Token, seals};
use crate::fault::{Fault, Result};
use crate::result::ProblemKind;

/// Bytes of a message: results with all their bins are some hundred KiB.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// What both sides send first, so that nobody takes one protocol for another; the digit is the version of what follows it.
const GREETING: &[u8; 24] = b"anabranch bench worker 1";
/// How long the greeting may take.
const GREETING_TIMEOUT: Duration = Duration::from_secs(10);

/// The side that sends.
pub(super) struct Sender {
    output: Box<dyn Write + Send>,
    seal: Option<Seal>,
}

/// The side that receives.
pub(super) struct Receiver {
    input: Box<dyn Read + Send>,
    seal: Option<Seal>,
}

/// Which side of a connection this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Coordinator,
    Worker,
}

/// What a broken connection to a worker or coordinator means.
fn broken(error: &std::io::Error) -> Fault {
    Fault::new(ProblemKind::Worker, format!("the connection broke: {error}"))
}

/// The two sides of a pair of streams that others protect.
pub(super) fn plain(
    input: impl Read + Send + 'static,
    output: impl Write + Send + 'static,
) -> (Sender, Receiver) {
    (Sender { output: Box::new(output), seal: None }, Receiver { input: Box::new(input), seal: None })
}

/// The two sides of a connection between those who have a token in common.
pub(super) fn sealed(mut stream: TcpStream, token: &Token, side: Side) -> Result<(Sender, Receiver)> {
    let mut mine = [0; RANDOM_BYTES];
    getrandom::fill(&mut mine)
        .map_err(|e| Fault::new(ProblemKind::ThisMachine, format!("no random numbers: {e}")))?;
    let greet = |stream: &mut TcpStream| -> std::io::Result<([u8; GREETING.len()], [u8; RANDOM_BYTES])> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(GREETING_TIMEOUT))?;
        stream.write_all(&[GREETING.as_slice(), &mine].concat())?;
        let (mut greeting, mut theirs) = ([0; GREETING.len()], [0; RANDOM_BYTES]);
        stream.read_exact(&mut greeting)?;
        stream.read_exact(&mut theirs)?;
        stream.set_read_timeout(None)?;
        Ok((greeting, theirs))
    };
    let (greeting, theirs) = greet(&mut stream).map_err(|e| broken(&e))?;
    if greeting != *GREETING {
        let text = "the program that answers there is not a worker, or has another version";
        return Err(Fault::new(ProblemKind::Worker, text));
    }
    let input = stream.try_clone().map_err(|e| broken(&e))?;
    let (to_worker, to_coordinator) = match side {
        Side::Coordinator => seals(token, &mine, &theirs)?,
        Side::Worker => seals(token, &theirs, &mine)?,
    };
    let (send, receive) = match side {
        Side::Coordinator => (to_worker, to_coordinator),
        Side::Worker => (to_coordinator, to_worker),
    };
    let sender = Sender { output: Box::new(stream), seal: Some(send) };
    Ok((sender, Receiver { input: Box::new(input), seal: Some(receive) }))
}

impl Sender {
    pub(super) fn send(&mut self, message: &impl Serialize) -> Result<()> {
        let mut bytes = serde_json::to_vec(message)
            .map_err(|e| Fault::new(ProblemKind::ThisMachine, format!("a message cannot be written: {e}")))?;
        if let Some(seal) = &mut self.seal {
            seal.seal(&mut bytes)?;
        }
        let length = u32::try_from(bytes.len())
            .map_err(|_| Fault::new(ProblemKind::ThisMachine, "a message is too long"))?;
        let all = [length.to_be_bytes().as_slice(), &bytes].concat();
        self.output.write_all(&all).and_then(|()| self.output.flush()).map_err(|e| broken(&e))
    }
}

impl Receiver {
    /// The next message; `None` when the other side has ended the connection between two of them.
    pub(super) fn receive<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        let mut length = [0; 4];
        match self.input.read_exact(&mut length) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            Err(e) => return Err(broken(&e)),
        }
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        let no_message =
            |why: &str| Fault::new(ProblemKind::Worker, format!("the received data is not a message: {why}"));
        if length > MESSAGE_BYTES_MAX {
            return Err(no_message("it is too long"));
        }
        let mut bytes = Vec::new();
        let limited = &mut Read::take(&mut self.input, length as u64);
        let read = limited.read_to_end(&mut bytes).map_err(|e| broken(&e))?;
        if read < length {
            return Err(no_message("it is cut off"));
        }
        let text = match &mut self.seal {
            Some(seal) => seal.open(&mut bytes).ok_or_else(|| no_message("the tokens are not the same"))?,
            None => &bytes,
        };
        serde_json::from_slice(text).map(Some).map_err(|e| no_message(&e.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::path::Path;

    use super::*;

    fn token(directory: &Path, text: &str) -> Token {
        use std::os::unix::fs::PermissionsExt;
        let path = directory.join(text);
        std::fs::write(&path, text.repeat(8)).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        Token::load(&path).unwrap()
    }

    /// What the coordinator receives when the worker says something, each with a token.
    fn said(here: &Token, there: &Token) -> Result<Option<String>> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (stream, _) = listener.accept().unwrap();
                let (mut sender, _) = sealed(stream, there, Side::Worker).unwrap();
                sender.send(&"something").unwrap();
            });
            let (_, mut receiver) = sealed(TcpStream::connect(address).unwrap(), here, Side::Coordinator)?;
            receiver.receive()
        })
    }

    #[test]
    fn who_has_another_token_is_not_understood() {
        let directory = tempfile::tempdir().unwrap();
        let (one, other) = (token(directory.path(), "one"), token(directory.path(), "other"));
        assert_eq!(said(&one, &one).unwrap().as_deref(), Some("something"));
        let fault = said(&one, &other).unwrap_err();
        assert_eq!(fault.kind, ProblemKind::Worker);
        assert!(fault.text.contains("the tokens are not the same"), "{fault}");
    }

    #[test]
    fn what_is_no_message_is_told() {
        let receive = |bytes: &'static [u8]| plain(bytes, std::io::sink()).1.receive::<u32>();
        assert_eq!(receive(b""), Ok(None));
        assert_eq!(receive(b"\0\0\0\x0242"), Ok(Some(42)));
        for (bytes, words) in
            [(&b"\0\0\0\x0542"[..], "cut off"), (b"\xff\xff\xff\xff", "too long"), (b"\0\0\0\x01x", "line 1")]
        {
            let fault = receive(bytes).unwrap_err();
            assert!(fault.text.contains(words), "{fault}");
        }
    }
}
