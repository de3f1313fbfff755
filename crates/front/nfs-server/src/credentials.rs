//! Maps the credential of a call to the user for whom the call is carried out.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::Arc;

use acl::Sid;
use net::Origin;
use nfs_wire::auth_sys::AuthSys;
use nfs_wire::rpc::{AuthStatus, OpaqueAuth, flavor};
use nfs_wire::xdr::Decode;
use share::{
    Caller, Client, Entrance, Identity, Opener, Peer, Proof, Protocols, Role, Share, ShareId, Squash,
};
use storage::QuickMap;

use crate::config::{Anonymous, GroupsBy, Squashing};
use crate::groups::UserGroups;
use crate::gss::security::Security;
use crate::gss::{Context, User};
use crate::standing::{Standing, Terms};

/// Users of one client that a connection remembers; with more it starts over.
const CALLERS_MAX: usize = 256;

/// Who sends a call, by its credential.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sender<'a> {
    /// AUTH_NONE: nobody.
    Anonymous,
    /// AUTH_SYS: the user that the client's machine states.
    Stated(AuthSys<'a>),
    /// RPCSEC_GSS: the user who has begun this context with a ticket.
    Proved(&'a Arc<Context>),
}

impl Sender<'_> {
    /// The numbers of the user; None: nobody's. `groups` are those by the word of this machine, if they count.
    fn numbers<'n>(&'n self, nobody: Anonymous, groups: Option<&'n UserGroups>) -> Option<Numbers<'n>> {
        match self {
            Self::Anonymous => None,
            Self::Stated(stated) => Some(numbers_of(stated, nobody, groups)),
            Self::Proved(context) => match &context.user {
                User::Person(identity, _) => Some(identity.into()),
                User::Machine => None,
            },
        }
    }

    fn proof(&self) -> Proof {
        match self {
            Self::Anonymous | Self::Stated(_) => Proof::Stated,
            Self::Proved(context) => match &context.user {
                User::Person(_, proof) => proof.clone(),
                User::Machine => Proof::Ticket(Arc::clone(&context.name)),
            },
        }
    }

    /// The uid, for the log.
    pub(crate) fn uid(&self) -> Option<u32> {
        match self {
            Self::Anonymous => None,
            Self::Stated(stated) => Some(stated.uid),
            Self::Proved(context) => match &context.user {
                User::Person(identity, _) => Some(identity.uid()),
                User::Machine => None,
            },
        }
    }
}

/// The numbers of a user whom a client states. The groups of this machine, if they count, replace those that the client states.
fn numbers_of<'n>(stated: &'n AuthSys<'_>, nobody: Anonymous, known: Option<&'n UserGroups>) -> Numbers<'n> {
    let AuthSys { uid, gid, groups, .. } = stated;
    let (gid, groups) = match known {
        Some(known) => (known.primary_of(*gid, nobody.gid), &*known.all),
        None => (*gid, groups.as_slice()),
    };
    Numbers { uid: *uid, gid, groups, sid: None, sids: &[] }
}

/// The contents of a credential without proof: nothing (AUTH_NONE), or a user (AUTH_SYS).
///
/// # Errors
/// [`AuthStatus::BadCredential`] for an AUTH_SYS body that does not decode; [`AuthStatus::RejectedCredential`] for
/// another flavor.
pub(crate) fn stated<'a>(credential: &OpaqueAuth<'a>) -> Result<Sender<'a>, AuthStatus> {
    match credential.flavor {
        flavor::AUTH_NONE => Ok(Sender::Anonymous),
        flavor::AUTH_SYS => {
            let stated = AuthSys::from_bytes(credential.body).map_err(|_| AuthStatus::BadCredential)?;
            Ok(Sender::Stated(stated))
        }
        _ => Err(AuthStatus::RejectedCredential),
    }
}

/// The callers behind the credentials that this connection has seen: the users of a client send the same credentials
/// again and again.
#[derive(Debug)]
pub(crate) struct CallerCache {
    client: SocketAddr,
    /// The names in the certificate of the client.
    certificate_names: RefCell<Arc<[String]>>,
    /// By the body of a stated credential, or the number of a context. Those are told apart by their lengths: a credential
    /// of AUTH_SYS has 20 bytes at least.
    known: RefCell<QuickMap<Box<[u8]>, Vec<KnownCaller>>>,
}

/// The sender of a credential by a version of NFS, in a share whose rules have this number.
#[derive(Debug)]
struct KnownCaller {
    share: ShareId,
    generation: u64,
    /// The groups of the user, if this machine has said them and they count in the share.
    groups: Option<Arc<UserGroups>>,
    caller: Caller,
    standing: Standing,
}

impl CallerCache {
    /// A cache without entries, for a connection from this address.
    pub(crate) fn new(client: SocketAddr) -> Self {
        Self { client, certificate_names: RefCell::default(), known: RefCell::default() }
    }

    /// The client has shown a certificate with these names. What was known of its users may be otherwise now.
    pub(crate) fn shown(&self, certificate_names: &[String]) {
        *self.certificate_names.borrow_mut() = certificate_names.into();
        self.known.borrow_mut().clear();
    }

    /// The names in the certificate of the client.
    pub(crate) fn certificate_names(&self) -> Arc<[String]> {
        Arc::clone(&self.certificate_names.borrow())
    }

    /// The client's end of the connection.
    pub(crate) fn address(&self) -> SocketAddr {
        self.client
    }

    /// The caller in a share, and the caller's standing there, under the current rules. `known` are the sender's groups by the word
    /// of this machine.
    pub(crate) fn caller(
        &self,
        share: &Share,
        squashing: &Squashing,
        credential: &OpaqueAuth<'_>,
        (sender, known_groups): (&Sender<'_>, Option<&Arc<UserGroups>>),
    ) -> (Caller, Standing) {
        let groups = counting(share, squashing, known_groups);
        let number;
        let key: &[u8] = match sender {
            Sender::Anonymous => &[],
            Sender::Stated(_) => credential.body,
            Sender::Proved(context) => {
                number = context.number.to_be_bytes();
                &number
            }
        };
        let generation = share.rules_generation();
        let mut known = self.known.borrow_mut();
        let is_here = |known: &KnownCaller| known.share == share.id();
        let found = known.get(key).and_then(|seen| seen.iter().find(|known| is_here(known)));
        let same_groups = |known: &KnownCaller| match (&known.groups, &groups) {
            (None, None) => true,
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (None, Some(_)) | (Some(_), None) => false,
        };
        if let Some(found) = found.filter(|known| known.generation == generation && same_groups(known)) {
            return (found.caller.clone(), found.standing);
        }
        let numbers = sender.numbers(squashing.anonymous, groups.as_deref());
        let certificate_names = &**self.certificate_names.borrow();
        let peer = Peer { address: self.client, certificate_names };
        let (identity, proof, standing) = admit(share, peer, squashing, numbers, sender.proof());
        let machine = Client::Address(self.client.ip().to_canonical());
        let caller = Caller::new(identity, proof).at(machine).in_role(standing.role());
        // The client alone states which user it is and which client, and chooses its address in an IPv6 network.
        let caller = caller.counted_for(Opener::named(("address", Origin::from(self.client.ip()))));
        if known.len() >= CALLERS_MAX {
            known.clear();
        }
        let seen = known.entry(key.into()).or_default();
        seen.retain(|known| !is_here(known));
        seen.push(KnownCaller { share: share.id(), generation, groups, caller: caller.clone(), standing });
        (caller, standing)
    }
}

/// The groups by the word of this machine, if they count in a share. Those of a user whom it was not asked for are none.
fn counting(
    share: &Share,
    squashing: &Squashing,
    known: Option<&Arc<UserGroups>>,
) -> Option<Arc<UserGroups>> {
    match squashing.groups_in(share) {
        GroupsBy::Client => None,
        GroupsBy::Server => Some(known.cloned().unwrap_or_default()),
    }
}

/// The identity of a caller on this client in a share, and the caller's standing there.
fn admit(
    share: &Share,
    client: Peer<'_>,
    squashing: &Squashing,
    numbers: Option<Numbers<'_>>,
    proof: Proof,
) -> (Identity, Proof, Standing) {
    let generation = share.rules_generation();
    let Some(entrance) = share.entrance(Protocols::NFS, client) else {
        return (identity(Squash::All, squashing.anonymous, numbers), Proof::Stated, Standing::Refused);
    };
    let Entrance { read_only, squash, is_listed } = entrance;
    let squash = squash.unwrap_or(squashing.squash);
    let identity = identity(squash, squashing.anonymous, numbers);
    // A ticket has the SIDs of its user; a number may stand for one.
    let identity = if identity.sids().is_empty() { share.people().known(identity) } else { identity };
    // Who is made nobody has none of the rights of the name.
    let proof = if squash == Squash::All { Proof::Stated } else { proof };
    let Some(role) = share.role(&identity, &proof) else { return (identity, proof, Standing::Visitor) };
    let role = if read_only { Role::Reader } else { believed(role, &proof, squash) };
    // Without a client list, the configuration of the server decides that superusers of clients are believed, in
    // everything.
    let allows = |term| !is_listed || share.terms().contains(term);
    let (devices, set_id) = (allows(share::Terms::DEVICES), allows(share::Terms::SET_ID));
    (identity, proof, Standing::Member(Terms { role, devices, set_id, generation }))
}

/// The role of a user who is proved like this, from a client with this squashing. Whoever may state any user on a client may
/// state an administrator, too: one without a ticket is believed only where the client's superuser is.
fn believed(role: Role, proof: &Proof, squash: Squash) -> Role {
    let is_stated = *proof == Proof::Stated && squash != Squash::None;
    if is_stated { role.min(Role::Elevated) } else { role }
}

/// A caller that wants to use a share, kept for changes of the share's rules: the address, the names in the client's certificate,
/// how the call was secured, and the stated or proved identity; None for nobody's.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Claimant {
    client: SocketAddr,
    certificate_names: Arc<[String]>,
    security: Security,
    identity: Option<Identity>,
    /// The same with the groups by the word of this machine.
    with_known_groups: Option<Identity>,
    proof: Proof,
}

impl Claimant {
    pub(crate) fn new(
        callers: &CallerCache,
        security: Security,
        (sender, known_groups): (&Sender<'_>, Option<&Arc<UserGroups>>),
        nobody: Anonymous,
    ) -> Self {
        let strangers = UserGroups::default();
        let known_groups = known_groups.map_or(&strangers, |groups| &**groups);
        let identity = |numbers: Numbers<'_>| {
            numbers.with_sids(Identity::unix(numbers.uid, numbers.gid, numbers.groups.to_vec()))
        };
        Self {
            client: callers.client,
            certificate_names: callers.certificate_names(),
            security,
            identity: sender.numbers(nobody, None).map(identity),
            with_known_groups: sender.numbers(nobody, Some(known_groups)).map(identity),
            proof: sender.proof(),
        }
    }

    /// The name of the user, if a ticket has proved it.
    pub(crate) fn user(&self) -> Option<Arc<str>> {
        match &self.proof {
            Proof::Ticket(name) => Some(Arc::clone(name)),
            Proof::Password(_) | Proof::Stated | Proof::Guest => None,
        }
    }

    /// The claimant's address at that time.
    pub(crate) fn client(&self) -> SocketAddr {
        self.client
    }

    /// How the claimant's call was secured.
    pub(crate) fn security(&self) -> Security {
        self.security
    }

    /// The claimant's standing in a share from this address, under the current rules, if the call was secured well enough.
    pub(crate) fn standing(&self, share: &Share, client: SocketAddr, squashing: &Squashing) -> Standing {
        let peer = Peer { address: client, certificate_names: &self.certificate_names };
        let identity = match squashing.groups_in(share) {
            GroupsBy::Client => &self.identity,
            GroupsBy::Server => &self.with_known_groups,
        };
        admit(share, peer, squashing, identity.as_ref().map(Numbers::from), self.proof.clone()).2
    }
}

/// The numbers of the user that a caller claims or has proved to be.
#[derive(Debug, Clone, Copy)]
struct Numbers<'a> {
    uid: u32,
    gid: u32,
    groups: &'a [u32],
    /// The user's own SID, and all SIDs of the user, if they were proved.
    sid: Option<Sid>,
    sids: &'a [Sid],
}

impl Numbers<'_> {
    /// The user, with the proved SIDs.
    fn with_sids(&self, identity: Identity) -> Identity {
        identity.with_sids(self.sid, self.sids.iter().copied())
    }
}

impl<'a> From<&'a Identity> for Numbers<'a> {
    fn from(stated: &'a Identity) -> Self {
        let groups = stated.groups();
        Self { uid: stated.uid(), gid: stated.gid(), groups, sid: stated.sid(), sids: stated.sids() }
    }
}

/// The identity of a caller with these numbers; `None` stands for nobody.
fn identity(squash: Squash, Anonymous { uid, gid }: Anonymous, stated: Option<Numbers<'_>>) -> Identity {
    let anonymous = Identity::unix(uid, gid, Vec::new());
    let Some(stated) = stated else { return anonymous };
    let taken = |stated: u32, instead: u32| if stated == 0 { instead } else { stated };
    let groups = stated.groups.iter();
    match squash {
        Squash::None => stated.with_sids(Identity::unix(stated.uid, stated.gid, groups.copied().collect())),
        Squash::Root => {
            let groups = groups.map(|group| taken(*group, gid)).collect();
            let user = Identity::unix(taken(stated.uid, uid), taken(stated.gid, gid), groups);
            if stated.uid == 0 { user } else { stated.with_sids(user) }
        }
        Squash::All => anonymous,
    }
}

#[cfg(test)]
mod tests {
    use nfs_wire::auth_sys::{Groups, MachineName};
    use share::Settings;
    use storage::memory::MemoryStore;

    use super::*;
    use crate::gss::Flavor;
    use crate::gss::security::Channel;

    const ANONYMOUS: Anonymous = Anonymous { uid: 500, gid: 501 };

    fn stated(uid: u32, gid: u32, groups: &[u32]) -> AuthSys<'static> {
        let groups = Groups::new(groups).unwrap();
        AuthSys { stamp: 0, machine_name: MachineName(b"client"), uid, gid, groups }
    }

    fn who(squash: Squash, uid: u32, gid: u32, groups: &[u32]) -> Identity {
        let stated = stated(uid, gid, groups);
        identity(squash, ANONYMOUS, Some(numbers_of(&stated, ANONYMOUS, None)))
    }

    #[test]
    fn the_groups_of_this_machine_replace_those_that_are_stated() {
        let all: Vec<u32> = (100..140).collect();
        let of_machine = Arc::new(UserGroups { primary: Some(100), all: all.clone() });
        let nobody = Arc::new(UserGroups::default());
        let who = |groups: &Arc<UserGroups>, gid| {
            let stated = stated(7, gid, &[0, 9]);
            identity(Squash::Root, ANONYMOUS, Some(numbers_of(&stated, ANONYMOUS, Some(groups))))
        };
        assert_eq!(who(&of_machine, 100), is(7, 100, &all));
        assert_eq!(who(&of_machine, 139), is(7, 139, &all), "as after newgrp(1)");
        assert_eq!(who(&of_machine, 9), is(7, 100, &all));
        assert_eq!(who(&nobody, 9), is(7, 501, &[]));
    }

    #[test]
    fn a_caller_is_looked_at_again_when_the_groups_have_changed() {
        let share = Share::new(ShareId(1), Settings::new("data"), Arc::new(MemoryStore::new()));
        let callers = CallerCache::new(SocketAddr::new([192, 0, 2, 1].into(), 700));
        let caller = |groups: Option<&Arc<UserGroups>>| {
            let sender = Sender::Stated(stated(7, 100, &[9]));
            let credential = OpaqueAuth { flavor: flavor::AUTH_SYS, body: b"the same" };
            let caller = callers.caller(&share, &Squashing::default(), &credential, (&sender, groups));
            caller.0.identity.groups().to_vec()
        };
        let groups = |all: &[u32]| Some(Arc::new(UserGroups { primary: Some(100), all: all.to_vec() }));
        let (few, more) = (groups(&[100]), groups(&[100, 50]));
        assert_eq!(caller(few.as_ref()), [9], "the share believes the client");
        share.set_terms(share::Terms::GROUPS_OF_SERVER);
        assert_eq!((caller(few.as_ref()), caller(more.as_ref())), (vec![100], vec![100, 50]));
        assert!(caller(None).is_empty(), "nobody was asked");
        share.set_terms(share::Terms::GROUPS_OF_CLIENT);
        assert_eq!(caller(few.as_ref()), [9]);
    }

    #[test]
    fn what_a_certificate_admits_stays_admitted_when_the_rules_change() {
        let share = Share::new(ShareId(1), Settings::new("data"), Arc::new(MemoryStore::new()));
        let rule = "cert:*.lab.test".parse().unwrap();
        share.set_rules(share::Rules { clients: vec![rule], ..share::Rules::default() });
        let (at, again): (SocketAddr, SocketAddr) =
            (([192, 0, 2, 1], 700).into(), ([192, 0, 2, 9], 701).into());
        let callers = CallerCache::new(at);
        let sender = Sender::Stated(stated(7, 100, &[]));
        let security = Security { channel: Channel::Encrypted, flavor: Flavor::Sys };
        let standing = || {
            let claimant = Claimant::new(&callers, security, (&sender, None), ANONYMOUS);
            claimant.standing(&share, again, &Squashing::default())
        };
        assert!(standing().is_refused());
        callers.shown(&["a.lab.test".to_owned()]);
        assert!(standing().is_member());
    }

    /// What a connection remembers of a share does not count in one that has its number later.
    #[test]
    fn a_share_that_returns_has_its_own_rules() {
        let callers = CallerCache::new(([192, 0, 2, 1], 700).into());
        let standing = |share: &Share| {
            let nobody = (&Sender::Anonymous, None);
            callers.caller(share, &Squashing::default(), &OpaqueAuth::NONE, nobody).1
        };
        let share = || Share::new(ShareId(1), Settings::new("data"), Arc::new(MemoryStore::new()));
        assert!(standing(&share()).is_member());
        let returned = share();
        let clients = vec!["198.51.100.0/24".parse().unwrap()];
        returned.set_rules(share::Rules { clients, ..share::Rules::default() });
        let open = share();
        open.set_rules(share::Rules::default());
        assert!(standing(&open).is_member());
        assert!(!standing(&returned).is_member(), "it was changed as often as the open one");
    }

    fn is(uid: u32, gid: u32, groups: &[u32]) -> Identity {
        Identity::unix(uid, gid, groups.to_vec())
    }

    #[test]
    fn opens_are_counted_for_the_network_of_an_ipv6_address() {
        let share = Share::new(ShareId(1), Settings::new("data"), Arc::new(MemoryStore::new()));
        let openers = |address: &str| {
            let callers = CallerCache::new(SocketAddr::new(address.parse().unwrap(), 700));
            let nobody = (&Sender::Anonymous, None);
            callers.caller(&share, &Squashing::default(), &OpaqueAuth::NONE, nobody).0.openers
        };
        assert_eq!(
            openers("2001:db8::1"),
            openers("2001:db8::2:3"),
            "a client has all addresses of its network"
        );
        assert_ne!(openers("2001:db8::1"), openers("2001:db8:0:1::1"));
        assert_eq!(openers("::ffff:192.0.2.1"), openers("192.0.2.1"));
        assert_ne!(openers("192.0.2.1"), openers("192.0.2.2"));
    }

    #[test]
    fn no_squash_takes_every_word() {
        assert_eq!(who(Squash::None, 0, 0, &[0, 4]), is(0, 0, &[0, 4]));
    }

    #[test]
    fn root_squash_replaces_user_and_groups_zero_only() {
        assert_eq!(who(Squash::Root, 0, 0, &[0, 4]), is(500, 501, &[501, 4]));
        assert_eq!(who(Squash::Root, 7, 0, &[]), is(7, 501, &[]));
        assert_eq!(who(Squash::Root, 7, 8, &[9]), is(7, 8, &[9]));
    }

    #[test]
    fn all_squash_replaces_everybody() {
        assert_eq!(who(Squash::All, 7, 8, &[9]), is(500, 501, &[]));
    }

    #[test]
    fn a_caller_without_credentials_is_anonymous() {
        for squash in [Squash::None, Squash::Root, Squash::All] {
            assert_eq!(identity(squash, ANONYMOUS, None), is(500, 501, &[]));
        }
    }
}
