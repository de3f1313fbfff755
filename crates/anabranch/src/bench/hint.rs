//! What to do where nothing could be measured.

use load::result::ProblemKind;
use load::target::{SmbLogon, SmbTarget, Target};

/// What to do about it. None: the sentence about the problem says all that is known.
pub(super) fn hint(kind: ProblemKind, target: &Target) -> Option<String> {
    use ProblemKind::{Closed, NoReply, NoSuchShare, Protocol, ReadOnly, Unreachable, WrongPassword};
    let form = match target {
        Target::Smb(SmbTarget { logon: SmbLogon::Ticket, .. }) => "smb://HOST:PORT/SHARE?sec=krb5",
        Target::Smb(_) => "smb://USER:PASSWORD@HOST:PORT/SHARE",
        Target::Nfs(_) => "nfs://HOST:PORT/PATH",
        Target::Directory(_) => return None,
    };
    let (protocol, usual, port) = match target {
        Target::Smb(target) => ("SMB", 445, target.port),
        Target::Nfs(target) => ("NFS", 2049, target.port),
        Target::Directory(_) => return None,
    };
    let hint = match (kind, target) {
        (WrongPassword, Target::Smb(SmbTarget { logon: SmbLogon::Password { user, .. }, .. })) => format!(
            "The server does not accept the password of {user}. Characters such as @ and : are written %40 and %3A in {form}."
        ),
        (ReadOnly, Target::Smb(SmbTarget { logon, .. })) => {
            let user = match logon {
                SmbLogon::Password { user, .. } => user,
                SmbLogon::Ticket => "the user of the ticket",
            };
            format!(
                "The program creates and removes a folder there: {user} must be allowed to write in the share."
            )
        }
        (ReadOnly, Target::Nfs(target)) => format!(
            "The program creates and removes a folder there: the user {} must be allowed to write in the export. Most servers treat root as nobody; \
             name another user with ?uid=N&gid=N.",
            target.uid
        ),
        (NoSuchShare, _) => {
            format!(
                "Check the name at the end of {form}; `showmount -e HOST` and `smbclient -L HOST` list the names."
            )
        }
        (Unreachable | Closed | NoReply | Protocol, _) => format!(
            "Is {port} the port of {protocol}? {protocol} usually has port {usual}; the form for another port is {form}."
        ),
        _ => return None,
    };
    Some(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_get_wrong_is_named() {
        let smb: Target = "smb://anna:pw@host:2049/data".parse().unwrap();
        let ticket: Target = "smb://host/data?sec=krb5".parse().unwrap();
        let nfs: Target = "nfs://host:445/data?uid=1000".parse().unwrap();
        for (kind, target, word) in [
            (ProblemKind::WrongPassword, &smb, "password of anna"),
            (ProblemKind::ReadOnly, &smb, "anna must be allowed to write"),
            (ProblemKind::ReadOnly, &ticket, "user of the ticket must be"),
            (ProblemKind::ReadOnly, &nfs, "user 1000"),
            (ProblemKind::NoSuchShare, &nfs, "showmount -e"),
            (ProblemKind::NoReply, &smb, "Is 2049 the port of SMB?"),
            (ProblemKind::Closed, &nfs, "usually has port 2049"),
        ] {
            let hint = hint(kind, target).unwrap();
            assert!(hint.contains(word), "{hint}");
        }
        assert_eq!(hint(ProblemKind::WrongData, &smb), None);
        assert_eq!(hint(ProblemKind::WrongPassword, &ticket), None);
        assert_eq!(hint(ProblemKind::ReadOnly, &Target::Directory("/x".into())), None);
    }
}
