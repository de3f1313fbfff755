//! One call of the API at the control address, over HTTP or HTTPS.

use std::fmt;
use std::io::{self, Cursor, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use gateway::control_access::Access;
use gateway::replication::Patience;
use rustls::StreamOwned;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};
use crate::known_server;
use crate::patient::Patient;

/// How long to wait for a connection, and for the server to send or accept data.
const SERVER_PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait for the answer to a call that waits for storages: as long as the server keeps a connection.
const STORAGE_PATIENCE: Duration = Duration::from_secs(30);
/// The most bytes of the head of such an answer.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// The most bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// Makes a GET call.
///
/// # Errors
/// No server answers, the server refuses the call, or its answer is not understood.
pub fn get<T: DeserializeOwned>(access: &Access, path: &str) -> Result<T> {
    call(access, "GET", path, None::<&()>)
}

/// Makes a call, with a body in JSON or without one.
///
/// # Errors
/// No server answers, the server refuses the call, or its answer is not understood; the body cannot be written as JSON.
pub fn call<T: DeserializeOwned>(
    access: &Access,
    method: &str,
    path: &str,
    body: Option<&impl Serialize>,
) -> Result<T> {
    call_within(SERVER_PATIENCE, access, method, path, body)
}

/// Makes a POST call without a body that may wait for storages that do not answer.
///
/// # Errors
/// Those of [`call`].
pub fn post_patiently<T: DeserializeOwned>(access: &Access, path: &str) -> Result<T> {
    call_within(STORAGE_PATIENCE, access, "POST", path, None::<&()>)
}

/// Makes a call for whose answer the caller waits that long, with a body in JSON or without one.
///
/// # Errors
/// Those of [`call`].
pub fn call_within<T: DeserializeOwned>(
    patience: Duration,
    access: &Access,
    method: &str,
    path: &str,
    body: Option<&impl Serialize>,
) -> Result<T> {
    let address = access.address;
    let body = body.map_or(Ok(Vec::new()), serde_json::to_vec).map_err(Error::Body)?;
    let answer = exchange(patience, access, method, path, &body).map_err(|e| unreachable(access, e))?;
    let (status, body) = parse(&answer).ok_or(Error::NotHttp { address })?;
    if !(200..300).contains(&status) {
        return Err(refused(access, status, body));
    }
    serde_json::from_slice(body).map_err(|error| Error::NotUnderstood { address, error })
}

/// Makes a call whose answer is read while it arrives. It may be silent for as long as the patience says: the server makes it meanwhile.
///
/// # Errors
/// Those of [`call`].
pub fn stream(
    access: &Access,
    (method, path): (&str, &str),
    body: &[u8],
    patience: &Patience,
) -> Result<Box<dyn Read + Send>> {
    let address = access.address;
    let begun = begin(access, (method, path), body, patience);
    let (answer, rest) = begun.map_err(|e| unreachable(access, e))?;
    let (status, start) = parse(&answer).ok_or(Error::NotHttp { address })?;
    let body = Cursor::new(start.to_vec()).chain(rest);
    if (200..300).contains(&status) {
        return Ok(Box::new(body));
    }
    let mut told = Vec::new();
    body.take(ANSWER_BYTES_MAX).read_to_end(&mut told).map_err(|e| unreachable(access, e))?;
    Err(refused(access, status, &told))
}

/// The head of an answer with whatever has come behind it, and the rest.
fn begin(
    access: &Access,
    (method, path): (&str, &str),
    body: &[u8],
    patience: &Patience,
) -> io::Result<(Vec<u8>, Box<dyn Read + Send>)> {
    let stream = Patient::connect(&access.address, SERVER_PATIENCE, patience.clone())?;
    match &access.certificate {
        None => head(stream, access, method, path, body),
        Some(certificate) => {
            let stream = StreamOwned::new(known_server::connect(certificate, access.address.ip())?, stream);
            head(stream, access, method, path, body)
        }
    }
}

fn head(
    mut stream: impl Read + Write + Send + 'static,
    access: &Access,
    method: &str,
    path: &str,
    body: &[u8],
) -> io::Result<(Vec<u8>, Box<dyn Read + Send>)> {
    ask(&mut stream, access, method, path, body)?;
    let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
    while parse(&answer).is_none() && answer.len() < HEAD_BYTES_MAX {
        let count = stream.read(&mut piece)?;
        if count == 0 {
            break;
        }
        answer.extend_from_slice(piece.get(..count).unwrap_or_default());
    }
    Ok((answer, Box::new(stream)))
}

/// Whether a server answers at all.
///
/// # Errors
/// The connection fails for another reason than that nobody listens.
pub fn answers(access: &Access) -> Result<bool> {
    match TcpStream::connect_timeout(&access.address, SERVER_PATIENCE) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == ErrorKind::ConnectionRefused => Ok(false),
        Err(e) => Err(unreachable(access, e)),
    }
}

/// A name as a part of a path. RFC 3986 2.3: "unreserved characters" stand for themselves.
#[must_use]
pub fn path_part(name: &str) -> String {
    let mut part = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            part.push(char::from(byte));
        } else {
            let _ = fmt::Write::write_fmt(&mut part, format_args!("%{byte:02X}"));
        }
    }
    part
}

fn exchange(
    patience: Duration,
    access: &Access,
    method: &str,
    path: &str,
    body: &[u8],
) -> io::Result<Vec<u8>> {
    let stream = connect(patience, access)?;
    match &access.certificate {
        None => converse(stream, access, method, path, body),
        Some(certificate) => {
            let stream = StreamOwned::new(known_server::connect(certificate, access.address.ip())?, stream);
            converse(stream, access, method, path, body)
        }
    }
}

fn connect(patience: Duration, access: &Access) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&access.address, SERVER_PATIENCE)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(SERVER_PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// HTTP/1.0: the answer comes in one piece, and its end is the end of the connection.
fn converse(
    mut stream: impl Read + Write,
    access: &Access,
    method: &str,
    path: &str,
    body: &[u8],
) -> io::Result<Vec<u8>> {
    ask(&mut stream, access, method, path, body)?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    Ok(answer)
}

fn ask(
    stream: &mut impl Write,
    Access { address, token, .. }: &Access,
    method: &str,
    path: &str,
    body: &[u8],
) -> io::Result<()> {
    let length = body.len();
    let mut request = format!(
        "{method} {path} HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    )
    .into_bytes();
    request.extend_from_slice(body);
    stream.write_all(&request)?;
    stream.flush()
}

/// The status and the body of an answer.
fn parse(answer: &[u8]) -> Option<(u16, &[u8])> {
    const END: &[u8] = b"\r\n\r\n";
    let end = answer.windows(END.len()).position(|window| window == END)?;
    let (head, body) = answer.split_at_checked(end)?;
    let mut words = head.split(|byte| *byte == b' ');
    let version = words.next()?;
    let status = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
    version.starts_with(b"HTTP/1.").then_some((status, body.get(END.len()..)?))
}

fn unreachable(access: &Access, error: io::Error) -> Error {
    let address = access.address;
    if error.kind() == ErrorKind::ConnectionRefused {
        return Error::NoServer { address };
    }
    Error::Unreachable { address, error }
}

fn refused(access: &Access, status: u16, body: &[u8]) -> Error {
    let address = access.address;
    if status == 401 {
        return Error::WrongToken { address };
    }
    serde_json::from_slice(body).map_or(Error::RefusedSilently { address, status }, Error::Refused)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// Asks a server that answers each call when it is told to.
    #[test]
    fn an_answer_is_waited_for_as_long_as_the_caller_says() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let access =
            Access { address: listener.local_addr().unwrap(), token: "t".to_owned(), certificate: None };
        let (answer, told) = std::sync::mpsc::channel::<()>();
        let server = std::thread::spawn(move || {
            let mut held = Vec::new();
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().unwrap();
                let (mut request, mut byte) = (Vec::new(), [0]);
                while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
                    request.extend(byte);
                }
                told.recv().unwrap();
                let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\n7");
                held.push(stream);
                held.truncate(1);
            }
        });
        let ask = |patience| call_within::<u8>(patience, &access, "POST", "/", None::<&()>);
        assert!(matches!(ask(Duration::from_millis(10)), Err(Error::Unreachable { .. })));
        answer.send(()).unwrap();
        answer.send(()).unwrap();
        assert_eq!(ask(Duration::from_secs(60)).unwrap(), 7);
        server.join().unwrap();
    }

    #[test]
    fn names_are_parts_of_paths() {
        assert_eq!(path_part("Data-1._~"), "Data-1._~");
        assert_eq!(path_part("a b/c%\u{e4}?#"), "a%20b%2Fc%25%C3%A4%3F%23");
    }

    #[test]
    fn answers_are_taken_apart() {
        assert_eq!(parse(b"HTTP/1.0 200 OK\r\na: b\r\n\r\nbody"), Some((200, &b"body"[..])));
        assert_eq!(parse(b"HTTP/1.1 401 Unauthorized\r\n\r\n"), Some((401, &b""[..])));
        for nonsense in
            [&b""[..], b"HTTP/1.0 200 OK\r\n", b"SSH-2.0 200\r\n\r\n", b"HTTP/1.0\r\n\r\n", b"\r\n\r\n"]
        {
            assert_eq!(parse(nonsense), None);
        }
    }
}
