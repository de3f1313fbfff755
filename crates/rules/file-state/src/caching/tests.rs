use super::*;
use crate::{ByteRange, FileLimits, FileState, LockKind, LockOwner};
use proptest::prelude::*;

const LEASE: Holder = Holder::Lease { client: [1; 16], key: [1; 16] };
const LEASE_2: Holder = Holder::Lease { client: [1; 16], key: [2; 16] };
const OPLOCK: Holder = Holder::Oplock(OpenKey(3));
const DELEGATION: Holder = Holder::Delegation(4);

const ALL: Sharing = Sharing::all();
const OPEN_TO_READ: Operation = Operation::Open { access: Access::READ_DATA, sharing: ALL };
const OPEN_TO_WRITE: Operation = Operation::Open { access: Access::WRITE_DATA, sharing: ALL };

const ATTRIBUTES: Access = ATTRIBUTES_ONLY.difference(Access::READ_CONTROL);

fn new_state() -> FileState {
    FileState::new(FileLimits::default())
}

/// Makes a grant to a holder under which these opens work.
fn grant(state: &mut FileState, holder: Holder, own: &[OpenKey], wanted: Caching) -> Caching {
    own.iter().for_each(|open| state.work_under(*open, holder));
    state.grant(holder, wanted)
}

fn name(caching: Caching) -> &'static str {
    match caching {
        NONE => "none",
        R => "R",
        RH => "RH",
        RW => "RW",
        RWH => "RWH",
        _ => panic!("no such grant: {caching:?}"),
    }
}

/// What the code does, in the form of `transitions.txt`.
fn transitions() -> String {
    let operations = [
        ("open for attributes", Operation::Open { access: ATTRIBUTES, sharing: Sharing::empty() }),
        ("open for security", Operation::Open { access: Access::READ_CONTROL, sharing: Sharing::empty() }),
        ("open to read", OPEN_TO_READ),
        ("open to write", OPEN_TO_WRITE),
        ("open to read alone", Operation::Open { access: Access::READ_DATA, sharing: Sharing::empty() }),
        ("overwrite", Operation::Overwrite),
        ("sharing violation", Operation::SharingViolation),
        ("read", Operation::Read),
        ("write", Operation::Write),
        ("lock", Operation::Lock),
        ("set attributes", Operation::SetAttributes),
        ("rename", Operation::Rename),
        ("delete", Operation::Delete),
        ("change of entries", Operation::ChangeEntries),
    ];
    let holders = [(LEASE, &[R, RH, RW, RWH][..]), (OPLOCK, &[R, RW, RWH]), (DELEGATION, &[RH, RWH])];
    let mut table = String::new();
    for (operation_name, operation) in operations {
        let mut line = format!("{operation_name:<24}");
        for (holder, states) in holders {
            for &granted in states {
                let mut state = new_state();
                assert_eq!(grant(&mut state, holder, &[], granted), granted);
                let breaks = state.breaks(None, operation);
                let cell = match breaks.tell.as_slice() {
                    [] => "-".to_owned(),
                    [told] => {
                        assert_eq!((told.holder, told.from), (holder, granted));
                        let mark = match (told.ack_required, breaks.wait) {
                            (false, false) => "",
                            (true, false) => "!",
                            (true, true) => "~",
                            (false, true) => panic!("waits for no answer"),
                        };
                        format!("{}{mark}", name(told.to))
                    }
                    more => panic!("{more:?}"),
                };
                line += &format!("{cell:<8}");
            }
        }
        table += line.trim_end();
        table.push('\n');
    }
    table
}

#[test]
fn transitions_are_those_of_the_documents() {
    let documented = include_str!("transitions.txt");
    let rows = documented.find("open for attributes").expect("the first row");
    assert_eq!(transitions(), documented[rows..], "\n{}", transitions());
}

#[test]
fn the_holder_itself_is_not_disturbed() {
    for operation in [OPEN_TO_WRITE, Operation::Write, Operation::Lock, Operation::Delete] {
        for (holder, granted) in [(LEASE, RWH), (OPLOCK, RWH), (DELEGATION, RWH), (LEASE, R)] {
            let mut state = new_state();
            grant(&mut state, holder, &[], granted);
            assert_eq!(state.breaks(Some(holder), operation), Breaks::default(), "{holder:?} {operation:?}");
        }
    }
    // The exception is a level II oplock, which any write or lock ends.
    let mut state = new_state();
    grant(&mut state, OPLOCK, &[], R);
    assert_eq!(state.breaks(Some(OPLOCK), Operation::Read), Breaks::default());
    let told = Break { holder: OPLOCK, from: R, to: NONE, ack_required: false, continues: false };
    assert_eq!(state.breaks(Some(OPLOCK), Operation::Write), Breaks { tell: vec![told], wait: false });
    assert!(state.is_idle(), "a grant that is gone is forgotten");
}

#[test]
fn grants_fit_the_kind_of_holder() {
    let wanted = [NONE, R, W, H, RH, RW, W.union(H), RWH];
    let cases = [
        (LEASE, [NONE, R, NONE, NONE, RH, RW, NONE, RWH]),
        (OPLOCK, [NONE, R, NONE, NONE, R, RW, NONE, RWH]),
        (DELEGATION, [NONE, NONE, NONE, NONE, RH, NONE, NONE, RWH]),
    ];
    for (holder, granted) in cases {
        for (wanted, granted) in wanted.into_iter().zip(granted) {
            assert_eq!(grant(&mut new_state(), holder, &[], wanted), granted, "{holder:?} {wanted:?}");
        }
    }
}

#[test]
fn grants_leave_room_for_others() {
    let own = OpenKey(1);
    let other = OpenKey(2);
    // (the other's open, its sharing, what a lease, an oplock and a delegation get that ask for everything)
    let cases = [
        (Access::READ_ATTRIBUTES, Sharing::empty(), [RWH, RWH, RWH]),
        (Access::READ_DATA, ALL, [RH, R, RH]),
        (Access::WRITE_DATA, ALL, [RH, R, NONE]),
        (Access::READ_DATA, Sharing::WRITE, [RH, R, NONE]),
        (Access::DELETE, ALL, [RH, R, RH]),
    ];
    for (access, sharing, expected) in cases {
        for (holder, granted) in [LEASE, OPLOCK, DELEGATION].into_iter().zip(expected) {
            let mut state = new_state();
            state.reserve(own, Access::READ_ATTRIBUTES, ALL).unwrap();
            state.reserve(other, access, sharing).unwrap();
            assert_eq!(grant(&mut state, holder, &[own], RWH), granted, "{holder:?} {access:?}");
            state.release(other);
            assert_eq!(grant(&mut state, holder, &[own], RWH), RWH, "alone now: {holder:?} {access:?}");
        }
    }
}

#[test]
fn one_writes_alone_and_many_read() {
    // Grants also limit each other, whatever the opens are.
    let cases = [(R, RWH, RH), (RH, RWH, RH), (RH, RW, R), (RW, R, NONE), (RWH, RWH, NONE), (RH, RH, RH)];
    for (held, wanted, granted) in cases {
        let mut state = new_state();
        grant(&mut state, LEASE, &[], held);
        assert_eq!(grant(&mut state, LEASE_2, &[], wanted), granted, "{held:?} {wanted:?}");
        assert_eq!(state.granted(LEASE), held);
    }
    // A lease with handle caching and a level II oplock exclude each other.
    for (first, held, second, wanted, granted) in
        [(LEASE, RH, OPLOCK, R, NONE), (LEASE, R, OPLOCK, RWH, R), (OPLOCK, R, LEASE, RWH, R)]
    {
        let mut state = new_state();
        grant(&mut state, first, &[], held);
        assert_eq!(
            grant(&mut state, second, &[], wanted),
            granted,
            "{first:?} {held:?} {second:?} {wanted:?}"
        );
    }
    // What is being broken still counts as held.
    let mut state = new_state();
    grant(&mut state, LEASE, &[], RWH);
    state.breaks(None, Operation::Read);
    assert_eq!(grant(&mut state, LEASE_2, &[], R), NONE);
    state.acknowledge(LEASE, RH).unwrap();
    assert_eq!(grant(&mut state, LEASE_2, &[], R), R);
}

#[test]
fn grants_and_locks() {
    let range = ByteRange::new(0, 10).unwrap();
    let own = OpenKey(1);
    let cases = [
        // (locked by, wanted, what a lease gets, what a delegation gets)
        (LockOwner::Open(own), RWH, RWH, NONE),
        (LockOwner::Open(own), RH, NONE, NONE),
        (LockOwner::Open(OpenKey(2)), RWH, NONE, NONE),
        (LockOwner::Client(9), RWH, NONE, NONE),
        (LockOwner::Client(9), R, NONE, NONE),
    ];
    for (owner, wanted, lease, delegation) in cases {
        for (holder, granted) in [(LEASE, lease), (DELEGATION, delegation)] {
            let mut state = new_state();
            state.lock(owner, range, LockKind::Shared).unwrap();
            assert_eq!(grant(&mut state, holder, &[own], wanted), granted, "{owner:?} {wanted:?} {holder:?}");
        }
    }
}

#[test]
fn a_grant_that_others_share_grows_as_far_as_was_wanted_or_not_at_all() {
    // smbtorture's smb2.lease.upgrade3: the behaviour of Windows.
    let cases =
        [(R, RH, RH), (R, RW, R), (R, RWH, R), (RH, RWH, RH), (RH, R, RH), (RH, RW, RH), (R, NONE, R)];
    for (held, wanted, then) in cases {
        let mut state = new_state();
        grant(&mut state, LEASE, &[], held);
        grant(&mut state, LEASE_2, &[], RH);
        assert_eq!(grant(&mut state, LEASE, &[], wanted), then, "{held:?} {wanted:?}");
    }
}

#[test]
fn a_grant_grows_but_does_not_shrink() {
    // [MS-SMB2] 3.3.5.9.8: a lease is upgraded if the requested state is a superset of its state.
    let cases = [(R, RH, RH), (R, RWH, RWH), (RH, RWH, RWH), (RH, R, RH), (RH, RW, RH), (RWH, NONE, RWH)];
    for (first, second, then) in cases {
        let mut state = new_state();
        assert_eq!(grant(&mut state, LEASE, &[], first), first);
        assert_eq!(grant(&mut state, LEASE, &[], second), then, "{first:?} {second:?}");
        assert_eq!(state.grants().collect::<Vec<_>>(), [(LEASE, then)]);
    }
    let mut state = new_state();
    grant(&mut state, LEASE, &[], RWH);
    state.breaks(None, Operation::Read);
    assert_eq!(grant(&mut state, LEASE, &[], RWH), RWH, "what it may still be caching");
    state.acknowledge(LEASE, R).unwrap();
    assert_eq!(grant(&mut state, LEASE, &[], RH), RH);
    state.breaks(None, Operation::Rename);
    assert_eq!(grant(&mut state, LEASE, &[], RWH), RH, "not while it is being broken");
    state.acknowledge(LEASE, R).unwrap();
    assert_eq!(grant(&mut state, LEASE, &[], RWH), RWH);
}

#[test]
fn acknowledgments() {
    let mut state = new_state();
    assert_eq!(state.acknowledge(LEASE, NONE), Err(AcknowledgeError::NotBreaking));
    grant(&mut state, LEASE, &[], RWH);
    assert_eq!(state.acknowledge(LEASE, NONE), Err(AcknowledgeError::NotBreaking));
    assert!(state.breaks(None, Operation::Read).wait);
    assert_eq!(state.acknowledge(LEASE, RWH), Err(AcknowledgeError::TooMuch));
    assert_eq!(state.acknowledge(LEASE, RW), Err(AcknowledgeError::TooMuch));
    assert_eq!(state.granted(LEASE), RWH);
    // When asked again, the operation still waits, and no holder is told twice.
    assert_eq!(state.breaks(None, Operation::Read), Breaks { tell: vec![], wait: true });
    assert_eq!(state.acknowledge(LEASE, R), Ok(None));
    assert_eq!(state.granted(LEASE), R);
    assert_eq!(state.breaks(None, Operation::Read), Breaks::default());
    assert_eq!(state.acknowledge(LEASE, NONE), Err(AcknowledgeError::NotBreaking));
}

#[test]
fn an_operation_during_a_break_takes_more_afterwards() {
    let mut state = new_state();
    grant(&mut state, LEASE, &[], RWH);
    assert!(state.breaks(None, Operation::Read).wait);
    assert_eq!(state.breaks(None, Operation::Write), Breaks { tell: vec![], wait: true });
    // Step by step; an operation that waits for the first step waits for all of them.
    let next = Break { holder: LEASE, from: RH, to: R, ack_required: true, continues: true };
    assert_eq!(state.acknowledge(LEASE, RH), Ok(Some(next)));
    assert_eq!(state.breaks(None, Operation::Read), Breaks { tell: vec![], wait: true });
    assert_eq!(state.breaks(None, Operation::Write), Breaks { tell: vec![], wait: true });
    let last = Break { holder: LEASE, from: R, to: NONE, ack_required: false, continues: true };
    assert_eq!(state.acknowledge(LEASE, R), Ok(Some(last)));
    assert_eq!(state.breaks(None, Operation::Write), Breaks::default());
    assert!(state.is_idle());

    // The rest of a break may need no answer.
    grant(&mut state, LEASE, &[], RWH);
    state.breaks(None, Operation::Read);
    state.breaks(None, Operation::Write);
    let next = Break { holder: LEASE, from: R, to: NONE, ack_required: false, continues: true };
    assert_eq!(state.acknowledge(LEASE, R), Ok(Some(next)));
    assert!(state.is_idle());
}

#[test]
fn all_holders_are_told_and_the_limit_is_exact() {
    let limits = FileLimits { grants_max: 3, ..FileLimits::default() };
    let mut state = FileState::new(limits);
    for holder in [LEASE, LEASE_2, DELEGATION] {
        assert_eq!(grant(&mut state, holder, &[], RH), RH);
    }
    let another = Holder::Lease { client: [2; 16], key: [1; 16] };
    assert_eq!(grant(&mut state, another, &[], R), NONE);
    let told: Vec<_> = state.breaks(Some(LEASE_2), Operation::Delete).tell;
    let expected = [(LEASE, R), (DELEGATION, NONE)];
    assert_eq!(told.iter().map(|b| (b.holder, b.to)).collect::<Vec<_>>(), expected);
    assert_eq!(state.revoke(DELEGATION), RH);
    assert_eq!(state.revoke(DELEGATION), NONE);
    assert_eq!(grant(&mut state, another, &[], R), R);
}

#[test]
fn an_oplock_ends_with_its_open() {
    let mut state = new_state();
    let open = OpenKey(3);
    state.reserve(open, Access::READ_DATA, ALL).unwrap();
    assert_eq!(grant(&mut state, OPLOCK, &[open], RWH), RWH);
    assert!(state.release(open).freed);
    assert!(state.is_idle());
}

/// A client with a cache, which behaves as the protocols intend.
#[derive(Debug, Clone, Copy)]
struct Client {
    holder: Holder,
    key: OpenKey,
    open: bool,
    /// Whether its open is for attributes only.
    quiet: bool,
    /// What it believes that it may cache.
    may: Caching,
    /// Whether it owes an answer.
    owes: bool,
    /// Whether it caches data that it read.
    cached: bool,
    /// Whether it caches data that it wrote.
    dirty: bool,
}

#[derive(Debug, Clone, Copy)]
enum Action {
    Open { access: Access, wanted: Caching },
    Read,
    Write,
    Acknowledge { keeps: Caching },
    Close,
}

/// Clients, and a server that follows the rules under test.
struct World {
    state: FileState,
    clients: Vec<Client>,
}

impl World {
    fn new() -> Self {
        let holders = [LEASE, LEASE_2, OPLOCK, DELEGATION];
        let clients = (1..).zip(holders).map(|(n, holder)| Client {
            holder,
            key: OpenKey(n),
            open: false,
            quiet: false,
            may: NONE,
            owes: false,
            cached: false,
            dirty: false,
        });
        Self { state: new_state(), clients: clients.collect() }
    }

    fn deliver(&mut self, told: Break) {
        let client = self.clients.iter_mut().find(|c| c.holder == told.holder).unwrap();
        assert_eq!(client.may, told.from, "{told:?}");
        client.may = told.to;
        client.owes = told.ack_required;
        client.cached &= told.to.contains(R);
        assert!(told.ack_required || !client.dirty, "written data is lost: {told:?}");
    }

    fn acknowledge(&mut self, n: usize, keeps: Caching) {
        let client = &mut self.clients[n];
        client.owes = false;
        client.dirty = false; // written back
        client.may = client.holder.legal(client.may & keeps);
        client.cached &= client.may.contains(R);
        let (holder, may) = (client.holder, client.may);
        if let Some(next) = self.state.acknowledge(holder, may).unwrap() {
            self.deliver(next);
        }
    }

    /// Carries out the operation on the server, for a client or for a caller without state. Holders that are told
    /// answer.
    fn operate(&mut self, who: Option<usize>, operation: Operation) {
        let own = who.map(|n| self.clients[n].holder);
        for round in 0.. {
            assert!(round < 5, "the operation never comes to go on");
            let breaks = self.state.breaks(own, operation);
            breaks.tell.into_iter().for_each(|told| self.deliver(told));
            if !breaks.wait {
                break;
            }
            assert!(self.clients.iter().any(|c| c.owes), "waits for nobody");
            for n in 0..self.clients.len() {
                if self.clients[n].owes {
                    self.acknowledge(n, RWH);
                }
            }
        }
        // An open for attributes only is not promised the newest data.
        let quiet = matches!(operation, Operation::Open { access, .. } if is_quiet(access));
        for (n, other) in self.clients.iter().enumerate().filter(|(n, _)| Some(*n) != who) {
            assert!(quiet || !other.dirty, "{n} has data that {who:?} does not see at {operation:?}");
            let stale = operation == Operation::Write && other.cached;
            assert!(!stale, "{n} goes on reading what {who:?} has written over");
        }
        assert_eq!(self.state.breaks(own, operation), Breaks::default(), "asked again");
    }

    fn act(&mut self, n: usize, action: Action) {
        let client = self.clients[n];
        match action {
            Action::Open { access, wanted } if !client.open => {
                self.operate(Some(n), Operation::Open { access, sharing: ALL });
                self.state.reserve(client.key, access, ALL).unwrap();
                let may = grant(&mut self.state, client.holder, &[client.key], wanted);
                self.clients[n].open = true;
                self.clients[n].quiet = is_quiet(access);
                self.clients[n].may = may;
            }
            Action::Read if client.open && !client.quiet && !client.cached && !client.dirty => {
                self.operate(Some(n), Operation::Read);
                self.clients[n].cached = self.clients[n].may.contains(R);
            }
            Action::Write if client.open && !client.quiet && client.may.contains(W) => {
                self.clients[n].dirty = true
            }
            Action::Write if client.open && !client.quiet => self.operate(Some(n), Operation::Write),
            Action::Acknowledge { keeps } if client.owes => self.acknowledge(n, keeps),
            Action::Close if client.open => {
                self.state.release(client.key);
                self.state.revoke(client.holder);
                let fresh =
                    Client { open: false, may: NONE, owes: false, cached: false, dirty: false, ..client };
                self.clients[n] = fresh;
            }
            _ => {}
        }
    }

    fn check(&self) {
        let grants: Vec<_> = self.state.grants().collect();
        let writes = grants.iter().any(|(_, state)| state.contains(W));
        assert!(!writes || grants.len() == 1, "one writes, others hold something: {grants:?}");
        for (holder, state) in grants {
            assert_eq!(holder.legal(state), state);
            let client = self.clients.iter().find(|c| c.holder == holder).unwrap();
            assert!(client.open, "a grant without an open");
            assert!(state.contains(client.may), "the client has more than it was granted");
        }
        for client in &self.clients {
            assert!(!client.may.intersects(RWH) || self.state.granted(client.holder).contains(client.may));
        }
    }
}

fn an_action() -> impl Strategy<Value = Action> {
    let access = prop::sample::select(vec![Access::READ_DATA, Access::WRITE_DATA, Access::READ_ATTRIBUTES]);
    let caching = prop::sample::select(vec![NONE, R, RH, RW, RWH, RWH]);
    prop_oneof![
        4 => (access, caching.clone()).prop_map(|(access, wanted)| Action::Open { access, wanted }),
        3 => Just(Action::Read),
        3 => Just(Action::Write),
        2 => caching.prop_map(|keeps| Action::Acknowledge { keeps }),
        2 => Just(Action::Close),
    ]
}

proptest! {
    /// No client reads old data or loses what it wrote, nobody holds a grant beside a writer, and nothing waits for
    /// ever.
    #[test]
    fn caches_stay_coherent(
        actions in prop::collection::vec((0usize..5, an_action()), 1..60),
    ) {
        let mut world = World::new();
        for (n, action) in actions {
            match action {
                _ if n < world.clients.len() => world.act(n, action),
                // A caller without any state: NFSv3.
                Action::Read => world.operate(None, Operation::Read),
                Action::Write => world.operate(None, Operation::Write),
                _ => {}
            }
            world.check();
        }
    }
}
