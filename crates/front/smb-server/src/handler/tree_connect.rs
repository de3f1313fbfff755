//! TREE_CONNECT. [MS-SMB2] 3.3.5.7.

use std::sync::Arc;

use net::{Buffer, turn_clock};
use share::{Call, Case, Kind, Role, Share, Terms, Turn, Walk};
use smb_proto::dialect::Dialect;
use smb_proto::session::Principal;
use smb_wire::share_redirect::ShareRedirect;
use smb_wire::tree_connect::{Request, RequestFlags, Response, ShareCapabilities, ShareFlags, ShareType};
use smb_wire::{AccessMask, Command, HeaderFlags, NtStatus};
use storage::{FileKind, Want};

use crate::admission::{self, Admission, TreeAdmission};
use crate::config::Config;
use crate::context::InSession;
use crate::front;
use crate::login::Login;
use crate::name;
use crate::operation::{Needs, Operation};
use crate::status::Failure;
use crate::tree::{IPC, Tree, TreeTarget};

/// FILE_ALL_ACCESS
const ALL: AccessMask = AccessMask::from_bits_retain(0x001F_01FF);
/// FILE_GENERIC_READ and FILE_GENERIC_EXECUTE
const READ_ONLY: AccessMask = AccessMask::from_bits_retain(0x0012_00A9);
/// FILE_ALL_ACCESS without WRITE_DAC and WRITE_OWNER
const CONTRIBUTE: AccessMask = AccessMask::from_bits_retain(0x0013_01FF);

/// The properties of TREE_CONNECT.
pub(crate) const OPERATION: Operation = Operation {
    on_share: Some(
        front::operation(Command::TreeConnect, "TreeConnect").with(Turn::Charged).of_kind(Kind::Mount),
    ),
    needs: Needs::Session,
    answer_bytes: 16,
    ..Operation::of(Command::TreeConnect)
};

/// Answers the request with the new tree connect.
pub(crate) async fn handle(
    ctx: &InSession<'_>,
    request: Request<'_>,
) -> Result<(Buffer, Arc<Tree>), Failure> {
    let login = ctx.login;
    let is_protected = ctx.encrypted || ctx.header.flags.contains(HeaderFlags::SIGNED);
    if ctx.connection.dialect() == Some(Dialect::Smb311)
        && login.principal == Principal::User
        && !is_protected
    {
        // 3.3.5.7: in SMB 3.1.1 "the server MUST disconnect the connection".
        ctx.connection.disconnect("an unprotected TREE_CONNECT in SMB 3.1.1");
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    let path = request.path.decode().map_err(|_| NtStatus::INVALID_PARAMETER)?;
    let name = share_name(&path)?;
    let target = if name.eq_ignore_ascii_case(IPC) {
        TreeTarget::Pipe
    } else {
        TreeTarget::Disk(ctx.server.share_for(name, login).ok_or_else(|| not_here(ctx, request.flags, name))?)
    };
    let admitted = admitted(ctx, &target)?;
    let encrypt_data = admit(&ctx.server.config, login, &target)?;
    let home = home(ctx, &target).await?;
    let maximal_access = maximal_access(&target, admitted.admission);
    let session = ctx.session;
    let tree = session.add_tree(|id| Tree::new(id, target, maximal_access, encrypt_data, admitted, home))?;
    if tree.is_of_withdrawn_share() {
        // The share was withdrawn just now. The code that ends its tree connects may not have seen this one.
        session.disconnect_tree(&tree).await;
        return Err(NtStatus::BAD_NETWORK_NAME.into());
    }
    ctx.compound.borrow_mut().chain.generated_tree(tree.id);
    let mut reply = ctx.reply();
    let continuous = is_continuous(ctx, &tree);
    let must_encrypt = tree.encrypt_data && !ctx.connection.is_secured();
    reply.append_with(|bytes, _| response(&tree, continuous, must_encrypt).encode(bytes));
    Ok((reply, tree))
}

/// The share of `\\server\share`; the server's name may be any of its aliases.
fn share_name(path: &str) -> Result<&str, Failure> {
    let share = path.strip_prefix(r"\\").and_then(|rest| rest.split_once('\\')).map(|(_, share)| share);
    match share {
        Some(share) if !share.is_empty() && !share.contains('\\') => Ok(share),
        _ => Err(NtStatus::INVALID_PARAMETER.into()),
    }
}

/// Why there is no share of this name here. A user whose client understands that is told which server has it
/// (2.2.2.2.2): the flag says so, and exists in SMB 3.1.1 only (2.2.9).
fn not_here(ctx: &InSession<'_>, flags: RequestFlags, name: &str) -> Failure {
    let understands = ctx.connection.dialect() == Some(Dialect::Smb311)
        && flags.contains(RequestFlags::REDIRECT_TO_OWNER)
        && ctx.login.principal == Principal::User;
    let present = ctx.server.shares.present();
    let Some(gone) = present.gone_by_name(name).filter(|_| understands) else {
        return NtStatus::BAD_NETWORK_NAME.into();
    };
    let client = ctx.connection.peer.address.ip();
    let addresses = gone.addresses_for(client).map(|address| address.ip()).collect();
    let redirect = ShareRedirect { addresses, resource_name: gone.name.as_str().into() };
    redirect.encode().map_or_else(Failure::from, Failure::redirect)
}

/// Whether this user may connect. Returns Share.EncryptData. Refuses guests unless the share admits them, and a session
/// that cannot encrypt if the share demands encryption.
fn admit(config: &Config, login: &Login, target: &TreeTarget) -> Result<bool, Failure> {
    let TreeTarget::Disk(share) = target else { return Ok(false) };
    if login.principal != Principal::User && !config.lets_guests_in(share.terms()) {
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    let must_encrypt = share.terms().contains(Terms::ENCRYPTED);
    let can_encrypt = login.crypto.as_ref().is_some_and(|crypto| crypto.sealer.is_some());
    if must_encrypt && !can_encrypt { Err(NtStatus::ACCESS_DENIED.into()) } else { Ok(must_encrypt) }
}

/// The name of the user's directory in the share's directory, if clients see that directory alone. A guest has none.
async fn home(ctx: &InSession<'_>, target: &TreeTarget) -> Result<Option<Vec<u8>>, Failure> {
    let (TreeTarget::Disk(share), Some(operation)) = (target, &ctx.operation.on_share) else {
        return Ok(None);
    };
    if !share.terms().contains(Terms::HOMES) {
        return Ok(None);
    }
    if ctx.login.principal != Principal::User {
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    let call = Call::new(operation, ctx.caller().clone(), turn_clock::now()).within(&ctx.connection.moment);
    call.needs_no_turn(); // like every TREE_CONNECT
    let user = name::component(&ctx.login.user).map_err(|_| NtStatus::BAD_NETWORK_NAME)?;
    match home_of(share, &call, &user).await {
        Ok(home) => Ok(Some(home)),
        Err(share::Error::Storage(storage::Error::NotFound | storage::Error::NotDirectory)) => {
            let kind = "this user has no home directory";
            if let Some(left_out) = ctx.server.repeats.admit_from(ctx.connection.peer.address, kind) {
                tracing::warn!(share = share.name(), user = ctx.login.user, left_out, "{kind}");
            }
            Err(NtStatus::BAD_NETWORK_NAME.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// The name, as the share's directory has it, that leads to the directory of a user; it may be that of a symbolic link.
async fn home_of(share: &Arc<Share>, call: &Call, user: &[u8]) -> share::Result<Vec<u8>> {
    let home = share.lookup(call, share.root(), user, Case::Insensitive, Want::empty()).await?;
    match share.walk(call, vec![home.name.clone()], Case::Sensitive, Want::empty()).await? {
        Walk::Found(found) if found.attributes.kind == FileKind::Directory => Ok(home.name),
        _ => Err(storage::Error::NotDirectory.into()),
    }
}

/// How the share's rules admit this user on this client.
fn admitted(ctx: &InSession<'_>, target: &TreeTarget) -> Result<TreeAdmission, Failure> {
    let TreeTarget::Disk(share) = target else { return Ok(TreeAdmission::of_nobody()) };
    let client = ctx.connection.peer.address;
    let generation = share.rules_generation();
    let admission = admission::admit(share, client, ctx.login).ok_or(NtStatus::ACCESS_DENIED)?;
    Ok(TreeAdmission::new(admission, client, generation))
}

/// The most that the user may do in the share, MaximalAccess of the reply (2.2.10). The permissions of each file are checked
/// separately.
fn maximal_access(target: &TreeTarget, admission: Admission) -> AccessMask {
    let TreeTarget::Disk(share) = target else { return ALL };
    match admission.role {
        _ if share.is_read_only() => READ_ONLY,
        Role::Reader => READ_ONLY,
        Role::Contributor => CONTRIBUTE,
        Role::Elevated | Role::Admin => ALL,
    }
}

/// TreeConnect.Share.IsCA, which only SMB 3 has.
fn is_continuous(ctx: &InSession<'_>, tree: &Tree) -> bool {
    let is_smb3 = ctx.connection.dialect().is_some_and(|dialect| dialect.is_smb3());
    let TreeTarget::Disk(share) = &tree.target else { return false };
    is_smb3 && ctx.server.offers_persistence() && share.terms().contains(Terms::CONTINUOUSLY_AVAILABLE)
}

fn response(tree: &Tree, continuous: bool, must_encrypt: bool) -> Response {
    let (share_type, mut share_flags) = match tree.target {
        TreeTarget::Disk(_) => (ShareType::Disk, ShareFlags::empty()),
        TreeTarget::Pipe => (ShareType::Pipe, ShareFlags::NO_CACHING),
    };
    share_flags.set(ShareFlags::ENCRYPT_DATA, must_encrypt);
    let mut capabilities = ShareCapabilities::empty();
    capabilities.set(ShareCapabilities::CONTINUOUS_AVAILABILITY, continuous);
    let hides = matches!(
        &tree.target,
        TreeTarget::Disk(share) if share.terms().contains(Terms::ACCESS_BASED_ENUMERATION)
    );
    share_flags.set(ShareFlags::ACCESS_BASED_DIRECTORY_ENUM, hides);
    Response { share_type, share_flags, capabilities, maximal_access: tree.maximal_access }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_the_second_component() {
        assert_eq!(share_name(r"\\server\Data"), Ok("Data"));
        assert_eq!(share_name(r"\\10.0.0.1\ipc$"), Ok("ipc$"));
        for bad in ["", r"\", r"\\", r"\\server", r"\\server\", r"\server\data", r"\\server\a\b", "data"] {
            assert_eq!(share_name(bad), Err(NtStatus::INVALID_PARAMETER.into()), "{bad}");
        }
    }
}
