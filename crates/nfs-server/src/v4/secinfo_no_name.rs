//! SECINFO_NO_NAME, RFC 8881 18.45.

use nfs_wire::v4::secinfo_no_name::{Args, ResOk, Style};
use nfs_wire::v4::status::Status;

use super::compound::Compound;
use super::{lookupp, secinfo};

pub(super) async fn handle(c: &mut Compound<'_>, args: Args) -> Result<ResOk<'static>, Status> {
    match args.style {
        Style::CurrentFh => {
            c.place()?;
        }
        Style::Parent => {
            lookupp::parent(c).await?;
        }
    }
    c.consume_place();
    Ok(secinfo::flavors())
}
