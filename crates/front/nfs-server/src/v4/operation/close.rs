//! CLOSE, RFC 8881 18.2.

use nfs_proto::v4::holdings::Ended;
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::close::{Args, ResOk};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::Stateid;
use share::Turn;

use crate::operation::{Callers, Operation};
use crate::v4::compound::Compound;
use crate::v4::files::{file_of, refused};

pub(super) const OPERATION: Operation<Number> = Operation {
    callers: Callers::Anybody,
    result_bytes: 48,
    ..Operation::v4(Number::Close, "Close").with(Turn::Charged)
};

pub(super) async fn handle(c: &mut Compound<'_>, args: Args) -> Result<ResOk, Status> {
    let object = c.object()?;
    let sent = c.stateid(args.open_stateid)?;
    let ended = c.client()?.files.with(|holdings| holdings.close(sent, file_of(object)));
    let Ended { opens, lock_owners } = ended.map_err(refused)?;
    // RFC 8881 18.2.3: "The server MAY free all outstanding locks on CLOSE".
    for owner in lock_owners {
        object.share.release_locks(object.node.id(), owner);
    }
    for held in &opens {
        held.close(&object.call).await;
    }
    c.set_stateid(Some(Stateid::INVALID));
    Ok(ResOk { open_stateid: Stateid::INVALID })
}
