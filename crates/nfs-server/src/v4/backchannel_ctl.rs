//! BACKCHANNEL_CTL, RFC 8881 18.33: how the client is called from now on.

use nfs_wire::v4::backchannel_ctl::Args;
use nfs_wire::v4::status::Status;

use super::callback::Credential;
use super::compound::Compound;

pub(super) fn handle(c: &Compound<'_>, args: &Args<'_>) -> Result<(), Status> {
    c.session().back.change(args.callback_program, Credential::choose(&args.callback_security));
    Ok(())
}
