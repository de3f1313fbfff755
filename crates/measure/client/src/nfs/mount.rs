//! One call at a time on a connection: MOUNT, FSINFO, and what makes an NFSv4.1 session.

use nfs_wire::mount::{self, DirPath};
use nfs_wire::v3::types::FileHandle;
use nfs_wire::v3::{self, fsinfo};
use nfs_wire::xdr::{Decode, Encode, Writer};

use super::rpc::{Calls, Identity, Procedure, garbled};
use super::tls::protect;
use crate::{Fault, FaultKind, Framing, NfsTarget, Result, Wire, World};

/// A connection on which one call is made at a time.
pub(super) struct Caller<W> {
    pub(super) wire: W,
    calls: Calls<()>,
}

impl<W: Wire> Caller<W> {
    pub(super) fn new(wire: W, identity: Identity) -> Self {
        Self { wire, calls: Calls::new(identity, 1) }
    }

    /// The connection, and who makes the calls on it.
    pub(super) fn into_parts(self) -> (W, Identity) {
        (self.wire, self.calls.into_identity())
    }

    /// Makes a call; `read` makes something of its results.
    pub(super) fn call<T>(
        &mut self,
        procedure: Procedure,
        arguments: impl FnOnce(&mut Writer<'_>),
        read: impl FnOnce(&mut nfs_wire::xdr::Reader<'_>) -> Result<T>,
    ) -> Result<T> {
        let mut out = Vec::new();
        self.calls.call(procedure, (), &mut out, arguments, None)?;
        self.wire.send(&out)?;
        let mut message = self.wire.receive()?;
        let ((), mut results) = self.calls.reply(&mut message)?;
        read(&mut results)
    }
}

/// The root of an export by MOUNT: on the port that the target says, or on that of NFS, or where the port mapper says.
pub(super) fn root(world: &impl World, target: &NfsTarget) -> Result<FileHandle> {
    let first = target.mount_port.unwrap_or(target.port);
    match mount_on(world, target, first) {
        Err(fault) if target.mount_port.is_none() && fault.kind != FaultKind::NoSuchShare => {
            match mapped_port(world, target) {
                Ok(port) if port != 0 => mount_on(world, target, port),
                _ => Err(Fault::new(
                    fault.kind,
                    format!("{}; MOUNT may be on another port: say ?mountport=N", fault.text),
                )),
            }
        }
        outcome => outcome,
    }
}

fn mount_on(world: &impl World, target: &NfsTarget, port: u16) -> Result<FileHandle> {
    let null = Procedure { program: mount::PROGRAM, version: mount::VERSION, number: 0 };
    let mut wire = world.connect(world.resolve(&target.host, port)?, Framing::Rpc)?;
    protect(&mut wire, target, null)?;
    let procedure =
        Procedure { program: mount::PROGRAM, version: mount::VERSION, number: mount::Procedure::Mnt as u32 };
    let path = DirPath(target.path.as_bytes());
    // RFC 2623 2.7: MOUNT is asked without Kerberos, also for a share that needs it
    Caller::new(wire, Identity::stated(target)).call(
        procedure,
        |w| path.encode(w),
        |results| match mount::MntRes::decode(results).map_err(garbled)? {
            Ok(mounted) => Ok(mounted.file_handle),
            Err(failure) => {
                let text = format!("{} cannot be mounted: {:?}", target.path, failure.status);
                Err(Fault::new(FaultKind::NoSuchShare, text))
            }
        },
    )
}

/// The port of MOUNT over TCP, asked of the port mapper (RFC 1833 section 3, PMAPPROC_GETPORT).
fn mapped_port(world: &impl World, target: &NfsTarget) -> Result<u16> {
    const PORT_MAPPER: u16 = 111;
    const GETPORT: Procedure = Procedure { program: 100_000, version: 2, number: 3 };
    const TCP: u32 = 6;
    let wire = world.connect(world.resolve(&target.host, PORT_MAPPER)?, Framing::Rpc)?;
    let arguments = |w: &mut Writer<'_>| {
        [mount::PROGRAM, mount::VERSION, TCP, 0].into_iter().for_each(|word| w.u32(word))
    };
    Caller::new(wire, Identity::stated(target))
        .call(GETPORT, arguments, |r| Ok(u16::try_from(r.u32().map_err(garbled)?).unwrap_or(0)))
}

/// The largest read and write of an export.
pub(super) fn limits(caller: &mut Caller<impl Wire>, root: FileHandle) -> Result<(u32, u32)> {
    let procedure =
        Procedure { program: v3::PROGRAM, version: v3::VERSION, number: v3::Procedure::FsInfo as u32 };
    caller.call(
        procedure,
        |w| fsinfo::Args { root }.encode(w),
        |results| match fsinfo::Res::decode(results).map_err(garbled)? {
            Ok(info) => Ok((info.read_bytes_max, info.write_bytes_max)),
            Err(failure) => Err(Fault::new(FaultKind::Refused, format!("FSINFO: {:?}", failure.status))),
        },
    )
}
