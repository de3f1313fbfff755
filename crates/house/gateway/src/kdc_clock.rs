//! How much the clock of this machine differs from that of a KDC.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use krb5::clock::{ANSWER_BYTES_MAX, question, time};

/// The port of Kerberos. RFC 4120 7.2.
pub const PORT: u16 = 88;
/// How long a KDC may take for each step.
const PATIENCE: Duration = Duration::from_secs(5);

/// A difference from which on it should be looked into: well below the five minutes from which on tickets are refused.
pub const NOTABLE: Duration = Duration::from_secs(60);

/// Asks a KDC for its time, and returns by how many seconds our clock is ahead of it; negative if it is behind. `kdc` is a name or
/// an address, with or without a port. The KDC tells whole seconds.
///
/// # Errors
/// The KDC does not answer, or its answer is no refusal of Kerberos.
pub fn seconds_ahead(kdc: &str, realm: &str) -> io::Result<i64> {
    let mut nonce = [0; 4];
    getrandom::fill(&mut nonce).map_err(io::Error::other)?;
    // RFC 4120 7.2.2: the length goes before the message. The highest bit is reserved; MIT's KDC takes 31 bits for nonces.
    let question = question(realm, u32::from_be_bytes(nonce) >> 1);
    let length = u32::try_from(question.len()).map_err(io::Error::other)?.to_be_bytes();
    let mut stream = connect(kdc)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let before = now();
    stream.write_all(&[&length[..], &question].concat())?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > ANSWER_BYTES_MAX {
        return Err(no_kdc());
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer)?;
    let ours = i64::midpoint(before, now());
    let theirs = time(&answer).ok_or_else(no_kdc)?;
    Ok(ours.saturating_sub(theirs.as_unix()))
}

fn connect(kdc: &str) -> io::Result<TcpStream> {
    let has_port = kdc.parse::<std::net::SocketAddr>().is_ok()
        || (kdc.parse::<std::net::IpAddr>().is_err() && kdc.contains(':'));
    let addresses = if has_port {
        kdc.to_socket_addrs()?
    } else {
        (kdc, PORT).to_socket_addrs()?.collect::<Vec<_>>().into_iter()
    };
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in addresses {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn no_kdc() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the answer is not one of a KDC that refuses a client")
}

/// Seconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    i64::try_from(since).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Answers one question with these bytes; returns where.
    fn answering(answer: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut length = [0; 4];
            stream.read_exact(&mut length).unwrap();
            let mut question = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
            stream.read_exact(&mut question).unwrap();
            stream.write_all(answer).unwrap();
        });
        address
    }

    #[test]
    fn what_is_no_kdc_is_told_from_one() {
        for answer in
            [&b"HTTP/1.1 400 Bad Request\r\n"[..], &[0, 0, 0, 2, 0x7e, 0], &[0, 0, 0, 0], &[0, 1, 0, 1]]
        {
            let refused = seconds_ahead(&answering(answer), "AD.TEST").unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::InvalidData, "{answer:?}: {refused}");
        }
        assert_eq!(
            seconds_ahead(&answering(b""), "AD.TEST").unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
    }

    #[test]
    fn a_kdc_is_named_with_and_without_a_port() {
        assert!(connect("127.0.0.1:1").is_err() && connect("::1").is_err() && connect("[::1]:1").is_err());
        assert!(connect("nobody.invalid").is_err() && connect("nobody.invalid:88").is_err());
    }
}
