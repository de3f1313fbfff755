//! The persistent opens of a vserver outside a cluster, as other gateways can give them back to their owners. An account has another SID
//! there, and the same name.

use std::io;

use acl::Sid;
use smb_server::{Change, PersistentOpen, PersistentOpens};

/// Leaves out the SIDs of this machine's accounts: the name of the owner is written down, too, and decides where there is no SID.
#[derive(Debug)]
pub(crate) struct OpensByName<T> {
    pub(crate) table: T,
    /// In whose domain the accounts are.
    pub(crate) machine: Sid,
}

impl<T: PersistentOpens> PersistentOpens for OpensByName<T> {
    fn write(&self, changes: &[Change]) -> io::Result<()> {
        let change = |change: &Change| match change {
            Change::Keep(open) if self.is_of_account(open) => {
                Change::Keep(Box::new(PersistentOpen { owner_sid: None, ..(**open).clone() }))
            }
            other => other.clone(),
        };
        self.table.write(&changes.iter().map(change).collect::<Vec<_>>())
    }

    fn all(&self) -> io::Result<Vec<PersistentOpen>> {
        self.table.all()
    }
}

impl<T> OpensByName<T> {
    fn is_of_account(&self, open: &PersistentOpen) -> bool {
        let sid = open.owner_sid.as_deref().and_then(|sid| sid.parse::<Sid>().ok());
        sid.and_then(|sid| sid.in_domain()).is_some_and(|(domain, _)| domain == self.machine)
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    #[derive(Debug, Default)]
    struct Kept(Mutex<Vec<Change>>);

    impl PersistentOpens for Kept {
        fn write(&self, changes: &[Change]) -> io::Result<()> {
            self.0.lock().extend_from_slice(changes);
            Ok(())
        }

        fn all(&self) -> io::Result<Vec<PersistentOpen>> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn accounts_are_written_down_by_name_and_users_of_a_domain_by_sid() {
        let machine: Sid = "S-1-5-21-1-2-3".parse().unwrap();
        let opens = OpensByName { table: Kept::default(), machine };
        let of = |sid: Option<&str>| {
            let owner_sid = sid.map(str::to_owned);
            Change::Keep(Box::new(PersistentOpen {
                owner: "ann".to_owned(),
                owner_sid,
                ..PersistentOpen::default()
            }))
        };
        let of_domain = of(Some("S-1-5-21-1-2-4-1000"));
        opens
            .write(&[of(Some("S-1-5-21-1-2-3-1000")), of_domain.clone(), of(None), Change::Forget(1)])
            .unwrap();
        assert_eq!(*opens.table.0.lock(), [of(None), of_domain, of(None), Change::Forget(1)]);
    }
}
