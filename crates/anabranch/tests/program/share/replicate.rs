//! What the API answers if a share is to be a replica of something that is no source.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use super::Machine;
use crate::server::path;

impl Machine {
    /// The status and the body of the answer to a call that makes the share `data` a replica.
    fn begin_replica(&self, from: &str, token: &str) -> (u16, Value) {
        let own = std::fs::read_to_string(path(&self.directory, "state/control-token")).unwrap();
        let body = json!({ "from": from, "token": token }).to_string();
        let mut stream = TcpStream::connect(self.server().address("control")).unwrap();
        write!(
            stream,
            "POST /v1/shares/data/replication HTTP/1.0\r\nAuthorization: Bearer {}\r\nContent-Length: {}\r\n\r\n{body}",
            own.trim(),
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), serde_json::from_str(body).unwrap())
    }
}

#[test]
fn what_is_no_source_is_refused_with_the_status_of_its_cause() {
    let (source, replica) = (Machine::serving(), Machine::serving());
    let token = |name: &str, scope: &str| {
        let made = source.json(&["token", "create", name, "--scope", scope]);
        made["token"].as_str().unwrap().to_owned()
    };
    let (replicates, reads) = (token("replicas", "replicate"), token("reads", "read"));
    let at = |share: &str| format!("http://{}/{share}", source.server().address("control"));
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/data", listener.local_addr().unwrap())
    };
    for (from, token, status, error, words) in [
        ("data".to_owned(), &*replicates, 422, "invalid", "expected https://HOST:PORT/SHARE"),
        (at("data"), " ", 422, "invalid", "the token is none"),
        (at("nothing"), &*replicates, 422, "invalid", "no share nothing is served"),
        (at("data"), "wrong", 422, "invalid", "does not accept the token"),
        (at("data"), &*reads, 422, "invalid", "the token is for read"),
        // Neither of the shares is one that can be replicated.
        (at("data"), &*replicates, 409, "no-snapshots", "data"),
        (closed, &*replicates, 500, "failed", "the source http://"),
    ] {
        let (told, said) = replica.begin_replica(&from, token);
        assert_eq!((told, &said["error"]), (status, &json!(error)), "{from}: {said}");
        assert!(said["message"].as_str().unwrap().contains(words), "{from}: {said}");
    }
}
