//! What administrators see of vservers at the control address of the gateway that serves them, and at that of another one.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_gateway::control_access::{self, Access};
use nfs_wire::v4::open::ShareDeny;
use serde_json::{Value, json};
use smb_wire::Guid;

use crate::cluster::until;
use crate::persistent::open;
use crate::world::{World, nfs, smb};

/// The body of the answer of a gateway to this call.
fn ask(world: &World, gateway: &str, call: &str) -> String {
    let state = world.directory.path().join(format!("state of {gateway}"));
    let Access { address, token, .. } = control_access::find(&state, None).unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "{call} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{answer}");
    body.to_owned()
}

fn called(world: &World, gateway: &str, call: &str) -> Value {
    serde_json::from_str(&ask(world, gateway, call)).unwrap()
}

/// The vservers and names of these.
fn named(list: &Value, name: &str) -> Vec<(Value, Value)> {
    list.as_array().unwrap().iter().map(|one| (one["vserver"].clone(), one[name].clone())).collect()
}

#[test]
fn shares_and_clients_of_vservers_are_seen_at_the_gateway_that_serves_them() {
    let Some(world) = World::new("what is seen of vservers") else { return };
    let (a, b) = (world.node("a"), world.node("b"));
    let at = a.serve("files", &world.data("files"), None).unwrap();
    let beside = a.serve("more", &world.data("more"), None).unwrap();
    let (mut one, _) = smb(at, Guid([1; 16]), 0);
    open(&mut one, Vec::new()).unwrap();
    let mut two = nfs(beside, "two");
    let top = two.top("data").unwrap();
    two.open(&top, "f", ShareDeny::NONE).unwrap();

    let lines = [
        "anabranch_opens{share=\"own\"} 0",
        "anabranch_opens{share=\"data\",vserver=\"files\"} 1",
        "anabranch_opens{share=\"data\",vserver=\"more\"} 1",
        "anabranch_requests_total{share=\"data\",vserver=\"files\",protocol=\"smb\",api=\"Create\"} 1",
        "anabranch_requests_total{share=\"data\",vserver=\"more\",protocol=\"nfs4\",api=\"Open\"} 1",
        "anabranch_client_requests_total{share=\"data\",vserver=\"more\",protocol=\"nfs4\",client=\"127.0.0.1\"}",
        "anabranch_smb_sessions 1",
        "anabranch_nfs_clients 1",
    ];
    for line in lines {
        until(line, || ask(&world, "a", "GET /metrics").contains(&format!("\n{line}")));
    }
    let of_a = called(&world, "a", "GET /v1/status");
    let none = || (Value::Null, json!("own"));
    let of = |vserver| (json!(vserver), json!("data"));
    assert_eq!(named(&of_a["shares"], "name"), [none(), of("files"), of("more")]);
    assert_eq!((&of_a["smb_sessions"], &of_a["nfs_clients"]), (&json!(1), &json!(1)));
    assert_eq!(of_a["shares"][1]["activity"]["plan"], "unlimited");
    let of_a = called(&world, "a", "GET /v1/clients");
    let session = format!("0x{:x}", one.session_id);
    assert_eq!(named(&of_a["smb_sessions"], "id"), [(json!("files"), json!(session))]);
    assert_eq!(named(&of_a["nfs_clients"], "address"), [(json!("more"), json!("127.0.0.1"))]);
    assert_eq!(of_a["nfs_clients"][0]["shares"], json!(["data"]));
    let found = called(&world, "a", "GET /v1/findings");
    assert_eq!(named(&found["clients"], "client").len(), 2);

    // The other gateway knows nothing of it.
    assert!(!ask(&world, "b", "GET /metrics").contains("vserver="));
    let of_b = called(&world, "b", "GET /v1/status");
    assert_eq!((named(&of_b["shares"], "name"), &of_b["smb_sessions"]), (vec![none()], &json!(0)));
    let of_b = called(&world, "b", "GET /v1/clients");
    assert_eq!((&of_b["smb_sessions"], &of_b["nfs_clients"]), (&json!([]), &json!([])));

    let (again, _) = smb(at, Guid([2; 16]), 0);
    let by_number = format!("DELETE /v1/clients/0x{:x}", again.session_id);
    let one_session = json!({ "smb_sessions": 1, "nfs_clients": 0, "nfs_connections": 0 });
    assert_eq!(called(&world, "a", &by_number), one_session);
    let ended = called(&world, "a", "DELETE /v1/clients/127.0.0.1");
    assert_eq!(ended, json!({ "smb_sessions": 1, "nfs_clients": 1, "nfs_connections": 1 }));
    until("nobody is connected", || {
        let of_a = called(&world, "a", "GET /v1/clients");
        (&of_a["smb_sessions"], &of_a["nfs_clients"]) == (&json!([]), &json!([]))
    });
    assert!(a.gateway.end_vserver("files").unwrap());
    let left = ask(&world, "a", "GET /metrics");
    assert!(!left.contains("vserver=\"files\"") && left.contains("vserver=\"more\""));
    a.stop();
    b.stop();
}

/// Says that something is over when this is dropped, also by a panic.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn who_looks_all_the_time_holds_up_no_vserver_that_moves() {
    let Some(world) = World::new("vservers that are looked at while they move") else { return };
    let (a, b) = (world.node("a"), world.node("b"));
    let directory = world.data("files");
    let at = a.serve("files", &directory, None).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watch = |gateway: &'static str| {
            while !is_over.load(Ordering::Relaxed) {
                for path in ["/metrics", "/healthz", "/v1/status", "/v1/clients"] {
                    ask(&world, gateway, &format!("GET {path}"));
                }
            }
        };
        let watching = ["a", "b"].map(|gateway| scope.spawn(move || watch(gateway)));
        let over = Over(&is_over);
        for (from, to) in [(&a, &b), (&b, &a)].iter().cycle().take(6) {
            let _client = smb(at, Guid([1; 16]), 0);
            assert!(from.gateway.end_vserver("files").unwrap());
            to.serve("files", &directory, Some(at)).unwrap();
        }
        drop(over);
        watching.into_iter().for_each(|watched| watched.join().unwrap());
    });
    a.stop();
    b.stop();
}
