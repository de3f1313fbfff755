//! The meaning of the names in the rules of shares. A separate thread looks names up when the rules change and from
//! time to time, so that no connection ever waits for the name service. While the name service does not answer, the
//! last meaning of a name holds.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use acl::Sid;
use directory::Directory;
use share::{
    DomainName, Group, InDomain, Names, QuotaFor, QuotaRule, QuotaSubject, Right, Rules, Share, ShareId,
    ShareTable, Who,
};

use crate::accounts::AccountBook;
use crate::admins::Admins;
use crate::name_service::{self, NameAnswer, NameService};

/// How often names are looked up again.
const INTERVAL: Duration = Duration::from_secs(60);
/// How long the last meaning of a name holds without another answer.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a change of rules waits until the new names are known, and until clients that are no longer admitted have
/// lost their opens. A name that is not known admits no client.
const NAMES_PATIENCE: Duration = Duration::from_secs(5);

/// Dropped when the lookup is done, to tell the caller that waits.
type Asked = Sender<()>;

/// Called for a share whose rules, or the names in them, have a new meaning. It may keep the senders until it has dealt
/// with the change, so that the callers wait that long.
pub(crate) type Changed = Box<dyn Fn(&Arc<Share>, Vec<Asked>) + Send>;

/// Looks names up until it is dropped.
#[derive(Debug, Clone)]
pub(crate) struct NameLookup(Sender<Asked>);

impl NameLookup {
    /// Begins to look names up for all present and future shares, and for the administrators. It keeps no share from ending.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn start(
        shares: Arc<ShareTable>,
        accounts: Arc<AccountBook>,
        admins: Option<Arc<Admins>>,
        service: impl NameService + 'static,
        changed: Changed,
    ) -> std::io::Result<Self> {
        let (ask, asked) = mpsc::channel();
        let run = move || Lookup::new(shares, accounts, admins, Box::new(service), changed).run(&asked);
        std::thread::Builder::new().name("names".to_owned()).spawn(run)?;
        Ok(Self(ask))
    }

    /// Waits a moment until all names are looked up again and the consequences are complete. To be called when the
    /// rules or the meaning of names have changed.
    pub(crate) fn look_again(&self) {
        let (done, is_done) = mpsc::channel();
        if self.0.send(done).is_ok() {
            let _ = is_done.recv_timeout(NAMES_PATIENCE);
        }
    }

    /// The same without waiting.
    pub(crate) fn look_soon(&self) {
        // Whoever looked has ended with what there was to look for.
        let _ = self.0.send(mpsc::channel().0);
    }
}

struct Lookup {
    shares: Arc<ShareTable>,
    accounts: Arc<AccountBook>,
    admins: Option<Arc<Admins>>,
    service: Box<dyn NameService>,
    changed: Changed,
    hosts: Remembered<Vec<IpAddr>>,
    groups: Remembered<Group>,
    of_domains: Remembered<InDomain>,
    /// The uids of users of the system, whom only quotas name.
    users: Remembered<u32>,
    /// The generation of each share's rules at the last lookup.
    generations: HashMap<ShareId, u64>,
}

impl Lookup {
    fn new(
        shares: Arc<ShareTable>,
        accounts: Arc<AccountBook>,
        admins: Option<Arc<Admins>>,
        service: Box<dyn NameService>,
        changed: Changed,
    ) -> Self {
        let (hosts, groups) = (Remembered::new("machine"), Remembered::new("group"));
        let of_domains = Remembered::new("user or group of a domain");
        let (users, generations) = (Remembered::new("user"), HashMap::new());
        Self { shares, accounts, admins, service, changed, hosts, groups, of_domains, users, generations }
    }

    fn run(&mut self, asked: &Receiver<Asked>) {
        loop {
            let waiting = match asked.recv_timeout(INTERVAL) {
                Ok(first) => std::iter::once(first).chain(asked.try_iter()).collect(),
                Err(RecvTimeoutError::Timeout) => Vec::new(),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            self.look(Instant::now(), &waiting);
        }
    }

    fn look(&mut self, now: Instant, waiting: &[Asked]) {
        self.hosts.begin();
        self.groups.begin();
        self.of_domains.begin();
        self.users.begin();
        let in_turn: Vec<_> = self.shares.present().iter().map(Arc::downgrade).collect();
        let with_rules = in_turn.into_iter().filter_map(|share| {
            let rules = share.upgrade()?.rules();
            Some((share, rules))
        });
        let mut in_turn: Vec<(Weak<Share>, Arc<Rules>)> = with_rules.collect();
        // A share with few names does not wait for those of other shares.
        in_turn.sort_by_key(|(_, rules)| rules.host_names().count() + rules.rights.len());
        for (share, rules) in in_turn {
            self.look_for(&share, &rules, (now, waiting));
        }
        if let Some(admins) = &self.admins {
            let of_admins = admins.groups();
            let asked = of_admins.iter().map(String::as_str);
            admins.set_groups(self.groups.look(asked, now, |name| self.service.group(name)));
        }
        let shares = self.shares.present();
        self.generations.retain(|id, _| shares.by_id(*id).is_some());
        self.hosts.end();
        self.groups.end();
        self.of_domains.end();
        self.users.end();
    }

    /// Looks up the names in the rules and quotas of a share. It may end meanwhile: the name service may take long.
    fn look_for(&mut self, share: &Weak<Share>, rules: &Arc<Rules>, (now, waiting): (Instant, &[Asked])) {
        let names = self.names(rules, now);
        let Some(quotas) = share.upgrade().map(|share| share.quota_rules()) else { return };
        let owners = (!quotas.is_empty()).then(|| self.owners(&quotas, now));
        let Some(share) = share.upgrade() else { return };
        share.set_names(names);
        if let Some(owners) = owners {
            share.set_quota_names(owners);
        }
        let generation = share.rules_generation();
        if !Arc::ptr_eq(rules, &share.rules()) {
            return; // the rules have changed meanwhile, and the caller that changed them has asked again
        }
        // A share that has just come has no clients yet.
        if self.generations.insert(share.id(), generation).is_some_and(|before| before != generation) {
            (self.changed)(&share, waiting.to_vec());
        }
    }

    /// The users and groups that the names in these quotas stand for.
    fn owners(&mut self, quotas: &[QuotaRule], now: Instant) -> HashMap<String, QuotaSubject> {
        let accounts = self.accounts.by_uid();
        let named = quotas.iter().filter_map(|quota| match &quota.subject {
            QuotaFor::Named(who) => Some((who.to_string(), self.owner(who, &accounts, now)?)),
            QuotaFor::Known(_) => None,
        });
        named.collect()
    }

    fn owner(
        &mut self,
        who: &Who,
        accounts: &HashMap<u32, Vec<String>>,
        now: Instant,
    ) -> Option<QuotaSubject> {
        let Self { groups, of_domains, users, service, .. } = self;
        match who {
            Who::User(name) => {
                let account = accounts.iter().find(|(_, names)| names.contains(name)).map(|(uid, _)| *uid);
                let of_system = |name: &str| name_service::user(name).map(|user| user.uid);
                account.or_else(|| users.one(name, now, of_system)).map(QuotaSubject::User)
            }
            Who::Group(name) => {
                let group = groups.one(name, now, |name| service.group(name))?;
                Some(QuotaSubject::Group(group.gid))
            }
            Who::Sid(sid) => self.with_sid(sid),
            Who::OfDomain(name) => {
                let directory = self.accounts.tickets().directory();
                let ask = |_: &str| in_domain(name, directory.as_deref(), &**service);
                match of_domains.one(&name.to_string(), now, ask)? {
                    InDomain::Sid(sid) => self.with_sid(&sid),
                    InDomain::Uid(uid) => Some(QuotaSubject::User(uid)),
                    InDomain::Gid(gid) => Some(QuotaSubject::Group(gid)),
                }
            }
        }
    }

    fn with_sid(&self, sid: &Sid) -> Option<QuotaSubject> {
        let people = self.accounts.people();
        let user = people.uid_of(sid).map(QuotaSubject::User);
        user.or_else(|| people.gid_of(sid).map(QuotaSubject::Group))
    }

    /// The meaning of the names in these rules.
    fn names(&mut self, rules: &Rules, now: Instant) -> Names {
        let Self { hosts, groups: of_system, of_domains, service, accounts, .. } = self;
        let mut names = Names {
            hosts: hosts.look(rules.host_names(), now, |name| service.host(name)),
            people: accounts.people(),
            ..Names::default()
        };
        if !rules.rights.is_empty() || rules.default_role.is_some() {
            names.accounts = accounts.by_uid();
            names.groups = of_system.look(groups(&rules.rights), now, |name| service.group(name));
            let directory = accounts.tickets().directory();
            names.of_domains = domain_names(&rules.rights)
                .filter_map(|name| {
                    let ask = |_: &str| in_domain(name, directory.as_deref(), &**service);
                    Some((name.clone(), of_domains.one(&name.to_string(), now, ask)?))
                })
                .collect();
        }
        names
    }
}

/// The groups that these rights name.
fn groups(rights: &[Right]) -> impl Iterator<Item = &str> {
    rights.iter().filter_map(|right| match &right.who {
        Who::Group(name) => Some(name.as_str()),
        Who::User(_) | Who::Sid(_) | Who::OfDomain(_) => None,
    })
}

/// The users and groups of domains that these rights name.
pub(crate) fn domain_names(rights: &[Right]) -> impl Iterator<Item = &DomainName> {
    rights.iter().filter_map(|right| match &right.who {
        Who::OfDomain(name) => Some(name),
        Who::User(_) | Who::Group(_) | Who::Sid(_) => None,
    })
}

/// The meaning of a name of a domain: by the domain's directory, or if none is known, by the name service of the machine.
fn in_domain(
    name: &DomainName,
    directory: Option<&Directory>,
    service: &dyn NameService,
) -> NameAnswer<InDomain> {
    match directory {
        Some(directory) => match directory.by_name(&name.domain, &name.name, name.is_group) {
            Ok(Some(entry)) => NameAnswer::Known(InDomain::Sid(entry.sid)),
            Ok(None) => NameAnswer::Unknown,
            Err(error) => NameAnswer::Unavailable(format!("{error}: {}", error.advice)),
        },
        None => service.in_domain(name),
    }
}

/// The last meanings of the names of one kind.
struct Remembered<T> {
    /// The kind of the names, for the log.
    kind: &'static str,
    by_name: HashMap<String, RememberedName<T>>,
    /// Counts the lookups of all names.
    round: u64,
}

struct RememberedName<T> {
    /// The round in which the name was looked up last.
    round: u64,
    /// The last meaning, and when the name service gave it.
    last: Option<(T, Instant)>,
    /// The fault that was logged. Each is logged once.
    said: Option<Said>,
}

/// The fault of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Unknown,
    Kept,
    Unavailable,
}

impl<T: Clone> Remembered<T> {
    fn new(kind: &'static str) -> Self {
        Self { kind, by_name: HashMap::new(), round: 0 }
    }

    /// Begins a lookup of all names.
    fn begin(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    /// Forgets the names that were not looked up in this round.
    fn end(&mut self) {
        self.by_name.retain(|_, entry| entry.round == self.round);
    }

    /// The meanings of these names, as far as they are known. Each name is looked up once in a round.
    fn look<'a>(
        &mut self,
        names: impl Iterator<Item = &'a str>,
        now: Instant,
        ask: impl Fn(&str) -> NameAnswer<T>,
    ) -> HashMap<String, T> {
        let mut known = HashMap::new();
        for name in names {
            if let Some(meaning) = self.one(name, now, &ask) {
                known.insert(name.to_owned(), meaning);
            }
        }
        known
    }

    /// The meaning of this name, if it is known.
    fn one(&mut self, name: &str, now: Instant, ask: impl FnOnce(&str) -> NameAnswer<T>) -> Option<T> {
        let entry = self.by_name.entry(name.to_owned()).or_default();
        if std::mem::replace(&mut entry.round, self.round) != self.round
            && let Some((said, why)) = entry.settle(ask(name), now)
            && entry.said.replace(said) != Some(said)
        {
            said.tell(self.kind, name, &why);
        }
        entry.last.as_ref().map(|(last, _)| last.clone())
    }
}

impl<T> Default for RememberedName<T> {
    fn default() -> Self {
        Self { round: 0, last: None, said: None }
    }
}

impl<T> RememberedName<T> {
    /// Processes an answer. Returns the fault of the name and its reason, if any.
    fn settle(&mut self, answer: NameAnswer<T>, now: Instant) -> Option<(Said, String)> {
        match answer {
            NameAnswer::Known(known) => {
                (self.last, self.said) = (Some((known, now)), None);
                None
            }
            NameAnswer::Unknown => {
                self.last = None;
                Some((Said::Unknown, String::new()))
            }
            NameAnswer::Unavailable(why) => {
                self.last.take_if(|(_, at)| now.saturating_duration_since(*at) >= KEPT);
                let said = if self.last.is_some() { Said::Kept } else { Said::Unavailable };
                Some((said, why))
            }
        }
    }
}

impl Said {
    fn tell(self, kind: &str, name: &str, why: impl fmt::Display) {
        match self {
            Self::Unknown => {
                tracing::warn!(
                    "the rules or quotas of a share, or `admins`, name the {kind} {name}, which does not exist: the entry admits nobody, and as a quota limits nobody"
                );
            }
            Self::Kept => tracing::warn!(
                "the name service does not say what the {kind} {name} in the rules or quotas of a share or in `admins` stands for ({why}): what it said \
                 last holds for {} hours",
                KEPT.as_secs() / 3600
            ),
            Self::Unavailable => tracing::warn!(
                "the name service does not say what the {kind} {name} in the rules or quotas of a share or in `admins` stands for ({why}): nobody is let \
                 in by it until it does"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use share::{ClientRule, Protocols, Settings};
    use storage::memory::MemoryStore;

    use super::*;
    use crate::name_service::System;

    fn share_for(client: &str) -> (Arc<Share>, Arc<ShareTable>) {
        let share = Share::new(ShareId(1), Settings::new("data"), Arc::new(MemoryStore::new()));
        share.set_rules(rules(client));
        let table = ShareTable::new([Arc::clone(&share)]).unwrap();
        (share, table)
    }

    fn rules(client: &str) -> Rules {
        let client: ClientRule = client.parse().unwrap();
        Rules { clients: vec![client], ..Rules::default() }
    }

    fn lets_in(share: &Share, address: [u8; 4]) -> bool {
        share.entrance(Protocols::NFS, std::net::SocketAddr::from((address, 700)).into()).is_some()
    }

    #[test]
    fn a_name_is_looked_up_when_the_rules_change_and_one_that_is_unknown_is_nobodys() {
        let (share, table) = share_for("localhost");
        let names = NameLookup::start(table, Arc::default(), None, System, Box::new(|_, _| {})).unwrap();
        for (client, is_here) in [("localhost", true), ("nobody.invalid", false), ("LOCALHOST", true)] {
            share.set_rules(rules(client));
            names.look_again();
            assert_eq!(lets_in(&share, [127, 0, 0, 1]), is_here, "{client}");
        }
    }

    /// Gives the configured answer for any name.
    #[derive(Clone)]
    struct ScriptedNames(Arc<Mutex<NameAnswer<u8>>>);

    impl ScriptedNames {
        fn answer<T>(&self, known: impl Fn(u8) -> T) -> NameAnswer<T> {
            match &*self.0.lock() {
                NameAnswer::Known(number) => NameAnswer::Known(known(*number)),
                NameAnswer::Unknown => NameAnswer::Unknown,
                NameAnswer::Unavailable(why) => NameAnswer::Unavailable(why.clone()),
            }
        }
    }

    impl NameService for ScriptedNames {
        fn host(&self, _: &str) -> NameAnswer<Vec<IpAddr>> {
            self.answer(|number| vec![[192, 0, 2, number].into()])
        }

        fn group(&self, _: &str) -> NameAnswer<Group> {
            self.answer(|number| Group { gid: number.into(), members: Vec::new() })
        }

        fn in_domain(&self, _: &DomainName) -> NameAnswer<InDomain> {
            self.answer(|number| InDomain::Gid(number.into()))
        }
    }

    /// A share, the lookup of the names in its rules, and the number of changes that it has reported.
    fn told(first: NameAnswer<u8>) -> (Arc<Share>, Lookup, ScriptedNames, Arc<Mutex<usize>>) {
        let (share, table) = share_for("client.example");
        let service = ScriptedNames(Arc::new(Mutex::new(first)));
        let changes = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&changes);
        let changed: Changed = Box::new(move |_, _| *counted.lock() += 1);
        let lookup = Lookup::new(table, Arc::default(), None, Box::new(service.clone()), changed);
        (share, lookup, service, changes)
    }

    fn out() -> NameAnswer<u8> {
        NameAnswer::Unavailable("out".to_owned())
    }

    #[test]
    fn what_a_name_stood_for_holds_for_a_day_without_an_answer() {
        let (share, mut lookup, service, changes) = told(NameAnswer::Known(7));
        let begin = Instant::now();
        lookup.look(begin, &[]);
        assert!(lets_in(&share, [192, 0, 2, 7]) && !lets_in(&share, [192, 0, 2, 8]));
        *service.0.lock() = out();
        for after in [Duration::from_secs(60), KEPT - Duration::from_secs(1)] {
            lookup.look(begin + after, &[]);
            assert!(lets_in(&share, [192, 0, 2, 7]), "{after:?}");
        }
        assert_eq!(*changes.lock(), 0, "nothing has changed");
        lookup.look(begin + KEPT, &[]);
        assert!(!lets_in(&share, [192, 0, 2, 7]));
        assert_eq!(*changes.lock(), 1, "a client that it admitted is no longer admitted");
        *service.0.lock() = NameAnswer::Known(8);
        lookup.look(begin + KEPT, &[]);
        assert!(lets_in(&share, [192, 0, 2, 8]));
        *service.0.lock() = out();
        lookup.look(begin + KEPT + KEPT / 2, &[]);
        assert!(lets_in(&share, [192, 0, 2, 8]), "a day from the last answer on");
    }

    #[test]
    fn no_such_name_ends_it_at_once_and_what_was_never_known_is_nobodys() {
        let (share, mut lookup, service, changes) = told(out());
        let now = Instant::now();
        lookup.look(now, &[]);
        assert!(!lets_in(&share, [192, 0, 2, 7]));
        *service.0.lock() = NameAnswer::Known(7);
        lookup.look(now, &[]);
        assert!(lets_in(&share, [192, 0, 2, 7]));
        *service.0.lock() = NameAnswer::Unknown;
        lookup.look(now, &[]);
        assert!(!lets_in(&share, [192, 0, 2, 7]));
        *service.0.lock() = out();
        lookup.look(now, &[]);
        assert!(!lets_in(&share, [192, 0, 2, 7]), "what it was before is over");
        assert_eq!(*changes.lock(), 2);
    }

    #[test]
    fn each_thing_is_said_once_until_the_name_is_known_again() {
        let mut entry = RememberedName::<u8>::default();
        let now = Instant::now();
        let mut said = |answer: NameAnswer<u8>| {
            let (said, _) = entry.settle(answer, now)?;
            (entry.said.replace(said) != Some(said)).then_some(said)
        };
        let unavailable = || NameAnswer::Unavailable(String::new());
        assert_eq!([said(unavailable()), said(unavailable())], [Some(Said::Unavailable), None]);
        assert_eq!(
            [said(NameAnswer::Known(1)), said(unavailable()), said(unavailable())],
            [None, Some(Said::Kept), None]
        );
        assert_eq!([said(NameAnswer::Unknown), said(NameAnswer::Unknown)], [Some(Said::Unknown), None]);
        assert_eq!([said(NameAnswer::Known(1)), said(NameAnswer::Unknown)], [None, Some(Said::Unknown)]);
    }

    #[test]
    fn names_in_quotas_stand_for_users_and_groups() {
        let (share, mut lookup, service, _) = told(NameAnswer::Known(50));
        let quota = |text: &str| -> QuotaRule { format!("{text} hard=1GiB").parse().unwrap() };
        let names =
            ["root", "@staff", "@AD\\staff", "S-1-22-1-7", "S-1-22-2-8", "no-such-user", "/d", "1000"];
        share.set_quota_rules(names.map(quota).to_vec());
        let meanings = || {
            let rules = share.quota_glance().unwrap().rules;
            rules.into_iter().map(|(_, meaning)| meaning).collect::<Vec<_>>()
        };
        let (user, group) = (|uid| Some(QuotaSubject::User(uid)), |gid| Some(QuotaSubject::Group(gid)));
        let known = [None, None, Some(QuotaSubject::Directory(b"d".to_vec())), user(1000)];
        assert_eq!(meanings()[..2], [None, None]);
        lookup.look(Instant::now(), &[]);
        assert_eq!(meanings()[..5], [user(0), group(50), group(50), user(7), group(8)]);
        assert_eq!(meanings()[5..], known[1..]);
        *service.0.lock() = NameAnswer::Unknown;
        lookup.look(Instant::now(), &[]);
        assert_eq!(meanings()[1..3], [None, None]);
    }

    #[test]
    fn groups_are_remembered_as_machines_are() {
        for group in ["@staff", "AD\\staff", "@AD\\staff"] {
            let (share, mut lookup, service, _) = told(NameAnswer::Known(50));
            let staff = Right { who: group.parse().unwrap(), role: share::Role::Reader };
            share.set_rules(Rules { rights: vec![staff], ..Rules::default() });
            let identity = share::Identity::unix(7, 50, Vec::new());
            let anna = share::Proof::Password("anna".into());
            let may = || share.role(&identity, &anna).is_some();
            for (answer, is_member) in
                [(NameAnswer::Known(50), true), (out(), true), (NameAnswer::Unknown, false), (out(), false)]
            {
                *service.0.lock() = answer;
                lookup.look(Instant::now(), &[]);
                assert_eq!(may(), is_member, "{group}");
            }
        }
    }
}
