//! SECINFO, RFC 8881 18.29: the flavors that a share admits.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::secinfo::{Args, ResOk};
use nfs_wire::v4::status::Status;
use share::Terms;

use super::{directory, lookup};
use crate::gss::security::Admitted;
use crate::operation::Operation;
use crate::v4::compound::Compound;
use crate::v4::place::Place;
use crate::v4::pseudo_fs;

pub(super) const OPERATION: Operation<Number> = Operation::v4(Number::SecInfo, "SecInfo");

pub(super) async fn handle(c: &mut Compound<'_>, args: Args<'_>) -> Result<ResOk<'static>, Status> {
    let name = directory::existing(args.name)?;
    let found = match c.place()? {
        Place::Root => pseudo_fs::find(c, name).await?,
        Place::Object(dir) => Place::Object(lookup::find(dir, name).await?),
        Place::Absent(_) => return Err(Status::Moved),
    };
    let flavors = flavors(c, &found);
    c.consume_place();
    Ok(flavors)
}

/// The security flavors of a place over this connection, the same for all objects of a share. There are none for a share that
/// is served over TLS only, if this is not TLS: RFC 9289 has no flavor for it.
pub(super) fn flavors(c: &Compound<'_>, place: &Place) -> ResOk<'static> {
    let channel = c.request.connection.channel();
    match place {
        Place::Root | Place::Absent(_) => Admitted::by(Terms::empty(), channel, &c.server().gss).described(),
        Place::Object(object) => c.server().admitted_by(&object.share, channel).described(),
    }
}
