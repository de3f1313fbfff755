//! docs/clients.md: who is connected, and why not with more channels. The clients there are those of the Linux kernel; here it is
//! the load generator's, or one that says what the kernel's would. What is explained about cards without RSS takes such cards, and
//! is not held against anything here.

use std::io::{Read, Write};
use std::net::TcpStream;

use smb_proto::dialect::{Dialect, SigningAlgorithm};

use crate::CLIENTS;
use crate::machine::{Machine, until_printed};
use crate::page::{block, shapes};
use crate::raw::Client;
use crate::server::Server;

/// A machine and its server, which tells of an address as that of a card.
fn serving() -> (Machine, Server) {
    let machine = Machine::new();
    let server = machine.serve("smb-interface = [\"127.0.0.1;speed=10000000000\"]\nnfs-squash = \"none\"\n");
    machine.run("user add anna --uid 0", "PASSWORD\n");
    (machine, server)
}

/// What is printed about the protocol, as far as the page shows it.
fn check(machine: &Machine, after: &str, command: &str, begin: &str) {
    let expected = shapes(&block(CLIENTS, after));
    until_printed(command, &expected, || {
        let printed = machine.run(command, "");
        let about = printed.iter().skip_while(|line| !line.starts_with(begin));
        let about: Vec<String> = about.take(expected.len()).cloned().collect();
        shapes(&about)
    });
}

/// The client asks for no better signing than that of the kernel's does.
const LIKE_THE_KERNEL: &str = "--security aes128-cmac --target smb://anna:PASSWORD@127.0.0.1/data";

#[test]
fn clients_of_smb_are_listed_as_the_document_says() {
    let (machine, server) = serving();
    let load = machine.load(&server, &format!("--connections 3 {LIKE_THE_KERNEL}"));
    check(&machine, "`multichannel,max_channels=4`:", "client list", "SMB: ");
    drop(load);
}

#[test]
fn a_client_that_does_not_ask_for_channels_is_explained_as_the_document_says() {
    let (machine, server) = serving();
    let mut client = Client::connect(server.address("smb").parse().unwrap());
    client.signing_algorithms = vec![SigningAlgorithm::AesCmac];
    client.negotiate(&[Dialect::Smb311]);
    client.log_in("anna", "PASSWORD").unwrap();
    client.tree_connect("data").unwrap();
    let _nfs = [nfs_connection(&server), nfs_connection(&server)];
    check(&machine, "mounted without `multichannel`:", "client explain", "SMB session ");
}

/// A connection over which NULL of NFSv4 was called (RFC 5531 section 9).
fn nfs_connection(server: &Server) -> TcpStream {
    let words = [0x8000_0000 | 40, 7, 0, 2, 100_003, 4, 0, 0, 0, 0, 0_u32];
    let mut stream = TcpStream::connect(server.address("nfs")).unwrap();
    stream.write_all(&words.map(u32::to_be_bytes).concat()).unwrap();
    stream.read_exact(&mut [0; 28]).unwrap();
    stream
}

#[test]
fn clients_of_nfs_are_listed_and_hinted_at_as_the_document_says() {
    let (machine, server) = serving();
    let load = "--connections 4 --block-size 1M --reads 50 --target nfs://127.0.0.1/data?vers=4.1";
    let _load = machine.load(&server, load);
    let expected = shapes(&block(CLIENTS, "has written and read a file:"));
    until_printed("client list", &expected, || {
        let printed = machine.run("client list", "");
        let about: Vec<String> = printed.into_iter().skip_while(|line| !line.starts_with("NFS: ")).collect();
        // The name that a client gives itself is the client's own.
        let json = machine.run("client list --json", "").join("\n");
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let name = json["nfs_clients"][0]["sessions"][0]["client"].as_str().unwrap_or_default().to_owned();
        let about = about.iter().map(|line| {
            if name.is_empty() { line.clone() } else { line.replace(&name, "Linux NFSv4.1 (none)") }
        });
        shapes(&about.collect::<Vec<_>>())
    });
    check(&machine, "nconnect for later mounts:", "client hint", "NFS client ");
}
