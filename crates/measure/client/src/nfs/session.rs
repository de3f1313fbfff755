//! All connections of an NFS client.

use std::net::{IpAddr, SocketAddr};

use nfs_wire::v4::compound::{ArgOp, Res, ResOp, encode_args};
use nfs_wire::v4::create_session::{self, ChannelAttributes, Flags};
use nfs_wire::v4::exchange_id::{self, ClientOwner, StateProtectArgs};
use nfs_wire::v4::types::{ClientId, OwnerId, SecurityParameters, Verifier};
use nfs_wire::v4::{reclaim_complete, sequence};
use nfs_wire::xdr::Decode;

use super::gss::Context;
use super::mount::{Caller, limits, root};
use super::rpc::{Identity, Procedure, garbled};
use super::tls::protect;
use super::v3::Connection as V3;
use super::v41::{COMPOUND, Connection as V41, Part, limits_of, refused, walk};
use crate::{Client, Fault, FaultKind, Framing, Handle, Negotiated, NfsTarget, Outcome, Result, Wire, World};

/// Slots that an NFSv4.1 session asks for; Linux asks for 64 (`max_session_slots`), servers give up to 1024.
const SLOTS_WANTED: u32 = 1024;
/// Numbers of calls begin here once the session is made.
const FIRST_XID: u32 = 0x1000_0000;

/// All connections of a client.
pub struct Session<W> {
    /// The connections, and the client of each.
    pub links: Vec<(W, Box<dyn Client>)>,
    /// The root of the export.
    pub root: Handle,
    /// What was agreed on.
    pub negotiated: Negotiated,
}

/// What is as for all connections.
struct Plan<'a, N> {
    world: &'a N,
    target: &'a NfsTarget,
    addresses: Vec<SocketAddr>,
    tags: usize,
}

/// A connection on which the user is known.
struct Known<W> {
    wire: W,
    identity: Identity,
    /// The cipher suite of TLS.
    cipher: Option<String>,
}

/// What EXCHANGE_ID has brought.
struct Exchanged {
    client_id: ClientId,
    sequence_id: u32,
    /// What the server says it is.
    server: Option<String>,
}

impl<W: Wire> Session<W> {
    /// Mounts the export over so many connections, to `addresses` in turn if there are any, for operations with tags
    /// below `tags`.
    ///
    /// # Errors
    /// What the server refused, or what is wrong with a connection.
    pub fn open(
        world: &impl World<Wire = W>,
        target: &NfsTarget,
        connections: u32,
        addresses: &[IpAddr],
        tags: usize,
    ) -> Result<Self> {
        let first = world.resolve(&target.host, target.port)?;
        let mut all: Vec<_> = addresses.iter().map(|ip| SocketAddr::new(*ip, target.port)).collect();
        if all.is_empty() {
            all.push(first);
        }
        let plan = Plan { world, target, addresses: all, tags };
        let mut session = if target.v41 { plan.v41(connections)? } else { plan.v3(connections)? };
        session.negotiated.connections = connections;
        for (_, client) in &mut session.links {
            client.adopt(std::slice::from_ref(&session.root), &[]);
        }
        Ok(session)
    }
}

impl<N: World> Plan<'_, N> {
    /// A connection on which the user is known: with TLS and a security context where the target asks for them.
    fn connect(&self, number: u32) -> Result<Known<N::Wire>> {
        let at = number as usize % self.addresses.len();
        let version = if self.target.v41 { nfs_wire::v4::VERSION } else { nfs_wire::v3::VERSION };
        let null = Procedure { program: nfs_wire::v4::PROGRAM, version, number: 0 };
        let mut wire = self.world.connect(self.addresses[at], Framing::Rpc)?;
        let cipher = protect(&mut wire, self.target, null)?;
        let identity = match Context::begin(self.world, &mut wire, self.target, null)? {
            Some(context) => Identity::Proved(Box::new(context)),
            None => Identity::stated(self.target),
        };
        Ok(Known { wire, identity, cipher })
    }

    /// The first connection, and what protects it and all others.
    fn first(&self) -> Result<(Caller<N::Wire>, Negotiated)> {
        let Known { wire, identity, cipher } = self.connect(0)?;
        let (signing, sealing) = identity.protection();
        let negotiated = Negotiated { signing, cipher: sealing.or(cipher), ..Negotiated::default() };
        Ok((Caller::new(wire, identity), negotiated))
    }

    /// The first connection and all others.
    fn all(&self, first: Caller<N::Wire>, connections: u32) -> Result<Vec<(N::Wire, Identity)>> {
        let mut all = vec![first.into_parts()];
        for number in 1..connections {
            let Known { wire, identity, .. } = self.connect(number)?;
            all.push((wire, identity));
        }
        Ok(all)
    }

    fn v3(&self, connections: u32) -> Result<Session<N::Wire>> {
        let root = root(self.world, self.target)?;
        let (mut first, negotiated) = self.first()?;
        let (read_bytes_max, write_bytes_max) = limits(&mut first, root)?;
        let wires = self.all(first, connections)?;
        let link = |(wire, identity)| -> (N::Wire, Box<dyn Client>) {
            (wire, Box::new(V3::new(identity, FIRST_XID, self.tags)))
        };
        let negotiated =
            Negotiated { dialect: "NFSv3".to_owned(), read_bytes_max, write_bytes_max, ..negotiated };
        Ok(Session { links: wires.into_iter().map(link).collect(), root: Handle::Nfs3(root), negotiated })
    }

    fn v41(&self, connections: u32) -> Result<Session<N::Wire>> {
        let (mut first, negotiated) = self.first()?;
        let Exchanged { client_id, sequence_id, server } = self.exchange_id(&mut first)?;
        let made = create_session(&mut first, client_id, sequence_id)?;
        let slots = made.fore_channel.requests_max.max(1);
        if slots < connections {
            let text = format!("the session has {slots} slots, fewer than {connections} connections");
            return Err(Fault::new(FaultKind::Refused, text));
        }
        let head = |sequence_id| {
            ArgOp::Sequence(sequence::Args {
                session_id: made.session_id,
                sequence_id,
                slot_id: 0,
                highest_slot_id: 0,
                cache_this: false,
            })
        };
        let reclaimed = [head(1), ArgOp::ReclaimComplete(reclaim_complete::Args { one_fs: false })];
        compound(&mut first, &reclaimed, |_| {})?;
        let (root, (read_bytes_max, write_bytes_max)) = find_root(&mut first, head(2), &self.target.path)?;
        let wires = self.all(first, connections)?;
        let share = slots / connections;
        let link = |(number, (wire, identity)): (usize, (N::Wire, Identity))| -> (N::Wire, Box<dyn Client>) {
            let number = u32::try_from(number).unwrap_or(0);
            let part = Part {
                client_id,
                session_id: made.session_id,
                highest_slot: slots - 1,
                slots: number * share..(number + 1) * share,
                number,
            };
            let mut client = V41::new(&part, identity, FIRST_XID, self.tags);
            client.used(0, 2);
            (wire, Box::new(client))
        };
        // A read comes with some words around it; what does not fit into a reply is no good as a block.
        let data_max =
            made.fore_channel.response_bytes_max.min(made.fore_channel.request_bytes_max).saturating_sub(512);
        let negotiated = Negotiated {
            dialect: "NFSv4.1".to_owned(),
            server,
            read_bytes_max: read_bytes_max.min(data_max),
            write_bytes_max: write_bytes_max.min(data_max),
            requests_max: Some(slots),
            ..negotiated
        };
        let links = wires.into_iter().enumerate().map(link).collect();
        Ok(Session { links, root: Handle::Nfs4(root, None), negotiated })
    }

    fn exchange_id(&self, caller: &mut Caller<N::Wire>) -> Result<Exchanged> {
        let mut verifier = [0; 8];
        self.world.random(&mut verifier)?;
        let owner = format!("anabranch-load {:016x}", u64::from_be_bytes(verifier));
        let arguments = exchange_id::Args {
            client_owner: ClientOwner { verifier: Verifier(verifier), owner_id: OwnerId(owner.as_bytes()) },
            flags: exchange_id::Flags::USE_NON_PNFS,
            state_protect: StateProtectArgs::None,
            implementation: None,
        };
        let mut exchanged = None;
        compound(caller, &[ArgOp::ExchangeId(arguments)], |result| {
            if let ResOp::ExchangeId(Ok(made)) = result {
                exchanged = Some(Exchanged {
                    client_id: made.client_id,
                    sequence_id: made.sequence_id,
                    server: made.implementation.map(|i| String::from_utf8_lossy(i.name.0).into_owned()),
                });
            }
        })?;
        exchanged.ok_or_else(|| Fault::protocol("EXCHANGE_ID has given no client ID"))
    }
}

/// A session with as many slots as the server gives.
fn create_session(
    caller: &mut Caller<impl Wire>,
    client_id: ClientId,
    sequence_id: u32,
) -> Result<create_session::ResOk> {
    let channel = ChannelAttributes {
        header_pad_bytes: 0,
        request_bytes_max: (1 << 20) + 4096,
        response_bytes_max: (1 << 20) + 4096,
        response_cached_bytes_max: 4096,
        operations_max: 8,
        requests_max: SLOTS_WANTED,
        rdma_ird: None,
    };
    let back = ChannelAttributes {
        request_bytes_max: 4096,
        response_bytes_max: 4096,
        response_cached_bytes_max: 0,
        operations_max: 2,
        requests_max: 1,
        ..channel
    };
    let arguments = create_session::Args {
        client_id,
        sequence_id,
        flags: Flags::empty(),
        fore_channel: channel,
        back_channel: back,
        callback_program: 0x4000_0000,
        callback_security: vec![SecurityParameters::None],
    };
    let mut session = None;
    compound(caller, &[ArgOp::CreateSession(arguments)], |result| {
        if let ResOp::CreateSession(Ok(made)) = result {
            session = Some(*made);
        }
    })?;
    session.ok_or_else(|| Fault::protocol("CREATE_SESSION has given no session"))
}

fn find_root(caller: &mut Caller<impl Wire>, head: ArgOp<'_>, path: &str) -> Result<(Vec<u8>, (u32, u32))> {
    let operations = [vec![head], walk(path)].concat();
    let (mut root, mut limits) = (None, (65536, 65536));
    let found = compound(caller, &operations, |result| match result {
        ResOp::GetFh(Ok(found)) => root = Some(found.object.0.to_vec()),
        ResOp::GetAttr(Ok(found)) => limits = limits_of(&found.attributes),
        _ => {}
    });
    found.map_err(|fault| Fault::new(FaultKind::NoSuchShare, format!("{path} cannot be found: {fault}")))?;
    Ok((root.ok_or_else(|| Fault::protocol("there is no filehandle of the root"))?, limits))
}

/// Does operations one after the other; each result is shown to `see`.
fn compound(
    caller: &mut Caller<impl Wire>,
    operations: &[ArgOp<'_>],
    mut see: impl FnMut(&ResOp<'_>),
) -> Result<()> {
    caller.call(
        COMPOUND,
        |w| encode_args(w, "", 1, operations),
        |results| {
            let results = Res::decode(results).map_err(garbled)?;
            for result in results.results {
                let result = result.map_err(garbled)?;
                if let Err(status) = result.status() {
                    return Err(match refused(result.operation().name(), status) {
                        Outcome::Refused(fault) => fault,
                        _ => Fault::new(FaultKind::Refused, "the server says that it would answer later"),
                    });
                }
                see(&result);
            }
            results.status.map_err(|status| Fault::protocol(format!("COMPOUND: {status:?}")))
        },
    )
}
