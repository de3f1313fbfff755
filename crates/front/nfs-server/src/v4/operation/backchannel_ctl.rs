//! BACKCHANNEL_CTL, RFC 8881 18.33: how to call the client from now on.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::backchannel_ctl::Args;
use nfs_wire::v4::status::Status;

use crate::operation::Operation;
use crate::v4::callback::Credential;
use crate::v4::compound::Compound;

pub(super) const OPERATION: Operation<Number> = Operation::v4_of_no_share(Number::BackchannelCtl);

pub(super) fn handle(c: &Compound<'_>, args: &Args<'_>) -> Result<(), Status> {
    c.session()?.back.change(args.callback_program, Credential::choose(&args.callback_security));
    Ok(())
}
