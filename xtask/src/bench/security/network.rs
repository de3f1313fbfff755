//! Two network namespaces with a link of limited speed between them. Dropping this value removes them.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{self, Command, Stdio};

use crate::bench::afterwards::Afterwards;
use crate::command::{ran, ran_words};

const SERVER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

pub(super) struct Network {
    server: String,
    client: String,
    _removed: Afterwards,
}

/// The server's address, with any port.
pub(super) fn address() -> SocketAddr {
    (SERVER, 0).into()
}

impl Network {
    pub(super) fn make(gbit: u32) -> Result<Self, String> {
        let server = format!("anabranch-{}", process::id());
        let client = format!("{server}-client");
        let remove = format!("(ip netns del {server}; ip netns del {client}) 2>/dev/null; true");
        let removed = Afterwards::run(&remove).map_err(|e| e.to_string())?;
        let network = Self { server, client, _removed: removed };
        let Self { server, client, .. } = &network;
        ran_words(&format!("ip netns add {server}"))?;
        ran_words(&format!("ip netns add {client}"))?;
        ran_words(&format!("ip link add bench0 netns {server} type veth peer name bench1 netns {client}"))?;
        link_end(server, "bench0", SERVER, gbit)?;
        link_end(client, "bench1", CLIENT, gbit)?;
        Ok(network)
    }

    /// A command in the namespace of the server.
    pub(super) fn in_server(&self, command: &str) -> String {
        format!("ip netns exec {} {command}", self.server)
    }

    /// A command at the other end of the link.
    pub(super) fn in_client(&self, command: &str) -> String {
        format!("ip netns exec {} {command}", self.client)
    }
}

/// Sets up one end of the link: its address, its rate, and a congestion control that does not pace by timers.
fn link_end(namespace: &str, device: &str, address: Ipv4Addr, gbit: u32) -> Result<(), String> {
    ran_words(&format!("ip -n {namespace} addr add {address}/24 dev {device}"))?;
    ran_words(&format!("ip -n {namespace} link set lo up"))?;
    ran_words(&format!("ip -n {namespace} link set {device} up"))?;
    ran_words(&format!(
        "tc -n {namespace} qdisc add dev {device} root tbf rate {gbit}gbit burst 2mb latency 5ms"
    ))?;
    let control = |name| {
        let setting = format!("net.ipv4.tcp_congestion_control={name}");
        let mut command = Command::new("ip");
        ran(command.args(["netns", "exec", namespace, "sysctl", "-qw", &setting]).stderr(Stdio::null()))
    };
    control("cubic").or_else(|_| control("reno"))
}
