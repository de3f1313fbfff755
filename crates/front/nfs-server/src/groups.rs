//! The groups of users whom clients state: by the word of the client, or by that of this machine. A credential of AUTH_SYS has room for 16
//! groups (RFC 5531 appendix A), and nothing proves them.

use std::cell::OnceCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// The groups of a user, by the word of this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserGroups {
    /// The primary group; None: this machine does not know the user.
    pub primary: Option<u32>,
    /// All groups, the primary one among them.
    pub all: Vec<u32>,
}

impl UserGroups {
    /// The group of objects that the user creates. A client may choose it among the user's groups, as newgrp(1) does.
    pub(crate) fn primary_of(&self, stated: u32, nobody: u32) -> u32 {
        if self.all.contains(&stated) { stated } else { self.primary.unwrap_or(nobody) }
    }
}

/// Groups that are known, or that will be.
pub enum Groups {
    /// The groups.
    Here(Arc<UserGroups>),
    /// The groups, after a wait that ends.
    Later(Pin<Box<dyn Future<Output = Arc<UserGroups>> + Send>>),
}

impl fmt::Debug for Groups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(groups) => f.debug_tuple("Here").field(groups).finish(),
            Self::Later(_) => f.write_str("Later"),
        }
    }
}

/// Knows the groups of this machine's users.
pub trait UserDirectory: fmt::Debug + Send + Sync {
    /// The groups of the user with this uid. This is asked for calls of AUTH_SYS, on the thread of its connection, so it must not
    /// wait. The same value is given as long as nothing has changed.
    fn groups_of(&self, uid: u32) -> Groups;
}

/// The groups of the user of one call, by the word of this machine.
#[derive(Debug, Default)]
pub(crate) struct KnownGroups(OnceCell<Arc<UserGroups>>);

impl KnownGroups {
    /// Asks for the groups of the user with this uid, and waits for them, unless they are known.
    pub(crate) async fn ask(&self, directory: &dyn UserDirectory, uid: u32) {
        if self.0.get().is_some() {
            return;
        }
        let groups = match directory.groups_of(uid) {
            Groups::Here(groups) => groups,
            Groups::Later(groups) => groups.await,
        };
        let _ = self.0.set(groups); // what came meanwhile is as good
    }

    /// The groups, if they were asked for.
    pub(crate) fn get(&self) -> Option<&Arc<UserGroups>> {
        self.0.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_chooses_the_primary_group_among_those_of_the_user() {
        let groups = UserGroups { primary: Some(100), all: vec![100, 50, 51] };
        assert_eq!((groups.primary_of(50, 65_534), groups.primary_of(100, 65_534)), (50, 100));
        assert_eq!(groups.primary_of(0, 65_534), 100, "what the user is not in is not believed");
        assert_eq!(UserGroups::default().primary_of(100, 65_534), 65_534, "a stranger is in no group");
    }
}
