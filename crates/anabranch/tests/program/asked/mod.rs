//! What a server says of itself over HTTP, and waiting until something is so.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::server::Server;

/// How an answer of `/healthz` ends when all is well.
pub(crate) const OK: &str = "\r\n\r\nok\n";

/// The answer to a GET, with its head.
pub(crate) fn ask(server: &Server, path: &str) -> String {
    let mut stream = TcpStream::connect(server.address("control")).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// That of `/healthz`.
pub(crate) fn health(server: &Server) -> String {
    ask(server, "/healthz")
}

/// Waits; a minute at most.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "it is not so within a minute: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until `/healthz` says so.
pub(crate) fn until_health(server: &Server, is_so: impl Fn(&str) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let said = health(server);
        if is_so(&said) {
            return;
        }
        assert!(Instant::now() < deadline, "{said}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
