//! A session: its first channel, further ones, the share.

use std::net::{IpAddr, SocketAddr};

use auth::{Credentials, nt_hash};
use smb_wire::fscc::fsctl::{Fsctl, InterfaceCapabilities, NetworkInterface};
use smb_wire::ioctl::{self, IoctlFlags};
use smb_wire::negotiate::Capabilities;
use smb_wire::session_setup::SessionFlags;
use smb_wire::tree_connect::{self, ShareFlags};
use smb_wire::{Command, FileId, Guid, Header, NtStatus, header};

use super::channel::Channel;
use super::logon::{Binding, Negotiated, Proof};
use super::protection::{Keys, Protection};
use super::status::fault;
use crate::{
    Client, Fault, FaultKind, Framing, Result, Security, ServerInterface, SmbLogon, SmbTarget, Wire, World,
    ticket,
};

/// The first component of an SMB server's name.
const SERVICE_NAME: &str = "cifs";

/// A session with its channels, connected to a share.
pub struct Session<W> {
    /// One a channel: its connection and its client.
    pub links: Vec<(W, Box<dyn Client>)>,
    /// What was agreed on.
    pub negotiated: crate::Negotiated,
}

/// What all channels of a session have in common.
struct Agreed {
    keys: Keys,
    session_id: u64,
    tree_id: u32,
    sign: bool,
    encrypt: bool,
}

impl<W: Wire> Session<W> {
    /// Logs on and connects to the share, over up to `channels` channels: as many as the server admits. `addresses` are
    /// those of further channels; without them the server is asked for its interfaces. Tags of operations are below `tags`.
    ///
    /// # Errors
    /// What the server refused, or what is wrong with a connection.
    pub fn open(
        world: &impl World<Wire = W>,
        target: &SmbTarget,
        security: &Security,
        channels: u32,
        addresses: &[IpAddr],
        tags: usize,
    ) -> Result<Self> {
        let proof = proof(world, target)?;
        let mut client_guid = Guid::ZERO;
        world.random(&mut client_guid.0)?;
        let address = world.resolve(&target.host, target.port)?;
        let connect = |address| -> Result<Negotiated<W>> {
            let wire = world.connect(address, Framing::Smb)?;
            let mut salt = [0; 32];
            world.random(&mut salt)?;
            Negotiated::over(wire, security, client_guid, salt)
        };
        let mut first = connect(address)?;
        let on = first.log_on(world, &proof, security, None, 0)?;
        let encrypt = security.encrypt || on.flags.contains(SessionFlags::ENCRYPT_DATA);
        if encrypt && on.protection.sealer.is_none() {
            return Err(Fault::new(
                FaultKind::Refused,
                "the server accepts none of the ciphers that were offered",
            ));
        }
        let sign = security.require_signing || first.server_requires_signing;
        let mut agreed = Agreed { keys: on.keys, session_id: on.session_id, tree_id: 0, sign, encrypt };
        let mut negotiated = described(&first);
        let multichannel = first.capabilities.contains(Capabilities::MULTI_CHANNEL);
        let mut raw = agreed.link(first, on.protection, tags);
        agreed.connect_share(&mut raw, target)?;
        describe_protection(&mut negotiated, &agreed, &raw.channel);
        let more = if channels > 1 && multichannel {
            agreed.addresses(world, &mut raw, addresses, address, &mut negotiated)?
        } else {
            Vec::new()
        };
        let mut links = vec![raw.into_link()];
        if !more.is_empty() {
            for number in 1..channels {
                let address = more[usize::try_from(number).unwrap_or(0) % more.len()];
                let mut connection = connect(address)?;
                let binding = Binding { session_id: agreed.session_id, keys: &agreed.keys };
                match connection.log_on(world, &proof, security, Some(binding), number) {
                    Ok(on) => {
                        links.push(agreed.link(connection, on.protection, tags).into_link());
                    }
                    // More than the server admits: it is measured with what there is.
                    Err(refused) if refused.kind == FaultKind::Refused => break,
                    Err(fault) => return Err(fault),
                }
            }
        }
        negotiated.connections = u32::try_from(links.len()).unwrap_or(0);
        negotiated.connections_asked = (negotiated.connections < channels).then_some(channels);
        Ok(Self { links, negotiated })
    }
}

/// How the user of a target proves who it is.
fn proof(world: &impl World, target: &SmbTarget) -> Result<Proof> {
    let SmbLogon::Password { user, password } = &target.logon else {
        return Ok(Proof::Ticket(ticket::of_user(world, SERVICE_NAME, &target.host)?));
    };
    let (domain, user) = user.split_once(';').unwrap_or(("", user));
    let nt_hash = nt_hash(password);
    Ok(Proof::Password(Credentials { user: user.to_owned(), domain: domain.to_owned(), nt_hash }))
}

/// A channel that is not yet behind the agreed interface.
struct Raw<W> {
    wire: W,
    channel: Channel,
}

impl Agreed {
    fn link<W>(&self, connection: Negotiated<W>, protection: Protection, tags: usize) -> Raw<W> {
        let (credits, next) = (connection.credits, connection.next_message_id);
        let mut channel = Channel::new(protection, self.session_id, credits, next, tags);
        (channel.sign, channel.encrypt, channel.tree_id) = (self.sign, self.encrypt, self.tree_id);
        Raw { wire: connection.wire, channel }
    }

    /// TREE_CONNECT. It is always signed or encrypted ([MS-SMB2] 3.2.4.1.1: SMB 3.1.1).
    fn connect_share(&mut self, link: &mut Raw<impl Wire>, target: &SmbTarget) -> Result<()> {
        let path = format!("\\\\{}\\{}", target.host, target.share);
        let request =
            tree_connect::Request { flags: tree_connect::RequestFlags::empty(), path: path.as_str().into() };
        let mut body = Vec::new();
        request.encode(&mut body).map_err(|e| Fault::protocol(e.to_string()))?;
        let was = std::mem::replace(&mut link.channel.sign, true);
        let (head, reply) = link.call(Command::TreeConnect, &body)?;
        if head.status() != NtStatus::SUCCESS {
            return Err(match fault(&format!("TREE_CONNECT to {}", target.share), head.status()) {
                Fault { kind: FaultKind::ReadOnly, text } => Fault::new(FaultKind::NoSuchShare, text),
                fault => fault,
            });
        }
        let response = tree_connect::Response::decode(&reply).map_err(|e| Fault::protocol(e.to_string()))?;
        self.tree_id = head.tree_id().unwrap_or(0);
        self.encrypt |= response.share_flags.contains(ShareFlags::ENCRYPT_DATA);
        (link.channel.tree_id, link.channel.sign, link.channel.encrypt) = (self.tree_id, was, self.encrypt);
        Ok(())
    }

    /// Where further channels go: to the addresses given, or to those of the server's interfaces that can be reached, or to
    /// the first channel's.
    fn addresses<N: World>(
        &self,
        world: &N,
        link: &mut Raw<N::Wire>,
        given: &[IpAddr],
        first: SocketAddr,
        negotiated: &mut crate::Negotiated,
    ) -> Result<Vec<SocketAddr>> {
        negotiated.server_interfaces = interfaces(link)?.iter().map(described_interface).collect();
        if !given.is_empty() {
            return Ok(given.iter().map(|ip| SocketAddr::new(*ip, first.port())).collect());
        }
        if first.ip().is_loopback() {
            return Ok(vec![first]);
        }
        let told = negotiated.server_interfaces.iter().map(|i| i.address);
        let same_kind = told.filter(|ip| ip.is_ipv4() == first.is_ipv4() && !ip.is_loopback());
        let mut found: Vec<_> = same_kind
            .map(|ip| SocketAddr::new(ip, first.port()))
            .filter(|a| world.is_reachable(*a))
            .collect();
        found.sort_unstable();
        found.dedup();
        // The first channel has the first address; the next one goes elsewhere if there is an elsewhere.
        if let Some(at) = found.iter().position(|a| *a == first) {
            found.rotate_left(at);
        }
        Ok(if found.is_empty() { vec![first] } else { found })
    }
}

/// The server's interfaces: FSCTL_QUERY_NETWORK_INTERFACE_INFO ([MS-SMB2] 3.2.4.20.10). A server that has none to tell of
/// has none.
fn interfaces(link: &mut Raw<impl Wire>) -> Result<Vec<NetworkInterface>> {
    let request = ioctl::Request {
        ctl_code: Fsctl::QueryNetworkInterfaceInfo,
        file_id: FileId::ANY,
        input: &[],
        max_input_response: 0,
        output_count: 0,
        max_output_response: 65536,
        flags: IoctlFlags::IS_FSCTL,
    };
    let mut body = vec![0; header::LEN];
    request.encode(&mut body).map_err(|e| Fault::protocol(e.to_string()))?;
    let (head, reply) = link.call(Command::Ioctl, body.get(header::LEN..).unwrap_or_default())?;
    if head.status() != NtStatus::SUCCESS {
        return Ok(Vec::new());
    }
    let response = ioctl::Response::decode(&reply).map_err(|e| Fault::protocol(e.to_string()))?;
    NetworkInterface::decode_list(response.output).map_err(|e| Fault::protocol(e.to_string()))
}

fn described<W>(connection: &Negotiated<W>) -> crate::Negotiated {
    crate::Negotiated {
        dialect: "SMB 3.1.1".to_owned(),
        read_bytes_max: connection.read_bytes_max,
        write_bytes_max: connection.write_bytes_max,
        ..crate::Negotiated::default()
    }
}

fn describe_protection(negotiated: &mut crate::Negotiated, agreed: &Agreed, channel: &Channel) {
    if agreed.encrypt {
        negotiated.cipher = agreed.keys.cipher().map(|c| c.name().to_owned());
    } else if agreed.sign {
        negotiated.signing = Some(channel.protection.signing.algorithm().name().to_owned());
    }
    negotiated.requests_max = Some(channel.credits.into());
}

fn described_interface(interface: &NetworkInterface) -> ServerInterface {
    ServerInterface {
        address: interface.address.ip(),
        bits_per_second: interface.link_speed,
        rss: interface.capabilities.contains(InterfaceCapabilities::RSS_CAPABLE),
    }
}

impl<W: Wire> Raw<W> {
    fn into_link(self) -> (W, Box<dyn Client>) {
        (self.wire, Box::new(self.channel))
    }

    /// One request that is not a [`crate::Request`].
    fn call(&mut self, command: Command, body: &[u8]) -> Result<(Header, Vec<u8>)> {
        let message = self.channel.request(command, body)?;
        self.wire.send(&message)?;
        loop {
            let mut frame = self.wire.receive()?;
            if let Some((head, reply)) = self.channel.reply(&mut frame)? {
                return Ok((head, reply.to_vec()));
            }
        }
    }
}
