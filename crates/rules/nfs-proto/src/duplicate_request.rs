//! The duplicate request cache of NFSv3.
//!
//! A client that gets no answer sends its call again, with the same xid. Repeating a REMOVE that has already been done
//! would return NFS3ERR_NOENT. So the replies of procedures that must not run twice are kept for a while, and are sent
//! again (RFC 1813 4.5, "Duplicate request cache").

use std::collections::{BTreeMap, HashMap};
use std::hash::Hasher;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nfs_wire::rpc::{Call, flavor};
use planted::Fault;
use siphasher::sip::SipHasher13;

/// How many bytes of a call's arguments the checksum covers.
pub const CHECKSUM_BYTES: usize = 256;

/// Identifies a call.
///
/// The client's port is not part of the key: a client that reconnects, or has several connections, repeats its call
/// from another port. The checksum distinguishes clients that share an address, their users, and a client that has
/// restarted and reuses old xids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    client: IpAddr,
    xid: u32,
    program: u32,
    version: u32,
    procedure: u32,
    checksum: u64,
}

impl Key {
    /// The key of a call whose arguments are these bytes. `principal` is the user with a ticket: the credential of such a
    /// call has other bytes in a repetition (RFC 2203 5.3.3.1: a new sequence number).
    #[must_use]
    pub fn new(client: IpAddr, call: &Call<'_>, principal: Option<&str>, arguments: &[u8]) -> Self {
        let mut hasher = SipHasher13::new();
        hasher.write(arguments.get(..CHECKSUM_BYTES).unwrap_or(arguments));
        hasher.write_usize(arguments.len());
        hasher.write_u32(call.credential.flavor);
        match (call.credential.flavor, principal) {
            (flavor::AUTH_SYS, _) => hasher.write(call.credential.body),
            (_, Some(principal)) => hasher.write(principal.as_bytes()),
            (_, None) => {}
        }
        Self {
            client,
            xid: call.xid,
            program: call.program,
            version: call.version,
            procedure: call.procedure,
            checksum: hasher.finish(),
        }
    }
}

/// What the cache may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallCacheLimits {
    /// The most calls.
    pub entries_max: usize,
    /// The most bytes of replies.
    pub bytes_max: usize,
    /// How long a call is remembered after it arrived.
    pub age_max: Duration,
}

impl Default for CallCacheLimits {
    fn default() -> Self {
        Self { entries_max: 64 * 1024, bytes_max: 32 << 20, age_max: Duration::from_secs(120) }
    }
}

/// What is known of a call that arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// Nothing: run the call, then call [`DuplicateRequests::finish`] or [`DuplicateRequests::forget`].
    New,
    /// The call is running: the reply is not known yet.
    InProgress,
    /// The call has run: send this reply again.
    Done(Arc<[u8]>),
}

#[derive(Debug)]
struct RememberedCall {
    /// The entry's place in the order of arrival.
    number: u64,
    arrived: Instant,
    /// `None` while the call runs.
    reply: Option<Arc<[u8]>>,
}

/// Calls that are running or ran recently, with the replies of the latter.
#[derive(Debug)]
pub struct DuplicateRequests {
    limits: CallCacheLimits,
    entries: HashMap<Key, RememberedCall>,
    /// The keys of `entries` by [`RememberedCall::number`].
    arrivals: BTreeMap<u64, Key>,
    next_number: u64,
    /// Bytes of the replies in `entries`.
    bytes: usize,
}

impl DuplicateRequests {
    /// An empty cache.
    #[must_use]
    pub fn new(limits: CallCacheLimits) -> Self {
        Self { limits, entries: HashMap::new(), arrivals: BTreeMap::new(), next_number: 0, bytes: 0 }
    }

    /// A call has arrived at `now`.
    pub fn begin(&mut self, key: Key, now: Instant) -> Seen {
        self.expire(now);
        if self.entries.contains_key(&key) && planted::strikes(Fault::DuplicateCarriedOut) {
            self.forget(&key);
        }
        if let Some(entry) = self.entries.get(&key) {
            return entry.reply.clone().map_or(Seen::InProgress, Seen::Done);
        }
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        self.entries.insert(key, RememberedCall { number, arrived: now, reply: None });
        self.arrivals.insert(number, key);
        debug_assert_eq!(self.entries.len(), self.arrivals.len(), "each call has one place in the order");
        self.shrink();
        Seen::New
    }

    /// A call for which [`DuplicateRequests::begin`] returned `New` has run, with this reply.
    pub fn finish(&mut self, key: &Key, reply: Arc<[u8]>) {
        let Some(entry) = self.entries.get_mut(key) else { return }; // dropped meanwhile
        self.bytes = self.bytes.saturating_add(reply.len());
        if let Some(replaced) = entry.reply.replace(reply) {
            self.bytes = self.bytes.saturating_sub(replaced.len());
        }
        self.shrink();
    }

    /// A call for which [`DuplicateRequests::begin`] returned `New` has ended without a reply: a repetition runs again.
    pub fn forget(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.arrivals.remove(&entry.number);
            self.bytes = self.bytes.saturating_sub(entry.reply.map_or(0, |reply| reply.len()));
        }
    }

    /// How many calls are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no call is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of the replies that are remembered.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    fn expire(&mut self, now: Instant) {
        while let Some(key) = self.oldest() {
            let age = self.entries.get(&key).map(|entry| now.saturating_duration_since(entry.arrived));
            if age.is_some_and(|age| age <= self.limits.age_max) {
                break;
            }
            self.forget(&key);
        }
    }

    fn shrink(&mut self) {
        while self.entries.len() > self.limits.entries_max || self.bytes > self.limits.bytes_max {
            let Some(key) = self.oldest() else { break };
            self.forget(&key);
        }
    }

    fn oldest(&self) -> Option<Key> {
        self.arrivals.first_key_value().map(|(_, key)| *key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfs_wire::rpc::OpaqueAuth;
    use nfs_wire::v3;
    use proptest::prelude::*;

    fn key(client: u8, xid: u32, arguments: &[u8]) -> Key {
        let call = Call {
            xid,
            program: v3::PROGRAM,
            version: v3::VERSION,
            procedure: v3::Procedure::Remove as u32,
            credential: OpaqueAuth::NONE,
            verifier: OpaqueAuth::NONE,
        };
        Key::new(IpAddr::from([10, 0, 0, client]), &call, None, arguments)
    }

    fn reply(length: usize) -> Arc<[u8]> {
        vec![b'r'; length].into()
    }

    #[expect(clippy::disallowed_methods, reason = "a test needs some moment to count from")]
    fn start() -> Instant {
        Instant::now()
    }

    #[test]
    fn the_call_of_another_user_is_another_call() {
        let of_user = |body| {
            let credential = OpaqueAuth { flavor: flavor::AUTH_SYS, body };
            let (program, version, procedure) = (v3::PROGRAM, v3::VERSION, v3::Procedure::Write as u32);
            let call = Call { xid: 1, program, version, procedure, credential, verifier: OpaqueAuth::NONE };
            Key::new(IpAddr::from([10, 0, 0, 1]), &call, None, b"arguments")
        };
        assert_eq!(of_user(b"one"), of_user(b"one"));
        assert_ne!(of_user(b"one"), of_user(b"two"));
    }

    #[test]
    fn a_user_with_a_ticket_is_told_by_the_name_and_not_by_the_credential() {
        let of_user = |principal, body| {
            let credential = OpaqueAuth { flavor: flavor::RPCSEC_GSS, body };
            let (program, version, procedure) = (v3::PROGRAM, v3::VERSION, v3::Procedure::Write as u32);
            let call = Call { xid: 1, program, version, procedure, credential, verifier: OpaqueAuth::NONE };
            Key::new(IpAddr::from([10, 0, 0, 1]), &call, Some(principal), b"arguments")
        };
        let alice = of_user("alice@LAB.TEST", b"number 7");
        assert_eq!(alice, of_user("alice@LAB.TEST", b"number 8"), "a repetition has another number");
        assert_ne!(alice, of_user("bob@LAB.TEST", b"number 7"));
        let stated = OpaqueAuth { flavor: flavor::AUTH_SYS, body: b"alice@LAB.TEST" };
        let (program, version, procedure) = (v3::PROGRAM, v3::VERSION, v3::Procedure::Write as u32);
        let call =
            Call { xid: 1, program, version, procedure, credential: stated, verifier: OpaqueAuth::NONE };
        assert_ne!(alice, Key::new(IpAddr::from([10, 0, 0, 1]), &call, None, b"arguments"));
    }

    #[test]
    fn a_repetition_gets_the_first_reply() {
        let (mut cache, now) = (DuplicateRequests::new(CallCacheLimits::default()), start());
        let key = key(1, 7, b"arguments");
        assert_eq!(cache.begin(key, now), Seen::New);
        assert_eq!(cache.begin(key, now), Seen::InProgress);
        cache.finish(&key, reply(3));
        assert_eq!(cache.begin(key, now), Seen::Done(reply(3)));
    }

    #[test]
    fn a_call_that_ended_without_reply_runs_again() {
        let (mut cache, now) = (DuplicateRequests::new(CallCacheLimits::default()), start());
        let key = key(1, 7, b"");
        assert_eq!(cache.begin(key, now), Seen::New);
        cache.forget(&key);
        assert_eq!(cache.begin(key, now), Seen::New);
    }

    #[test]
    fn client_xid_and_arguments_tell_calls_apart() {
        let long = [b'a'; 300];
        let mut other_end = long;
        other_end[299] = b'b';
        assert_ne!(key(1, 7, b"a"), key(2, 7, b"a"));
        assert_ne!(key(1, 7, b"a"), key(1, 8, b"a"));
        assert_ne!(key(1, 7, b"a"), key(1, 7, b"b"));
        assert_ne!(key(1, 7, &long), key(1, 7, &long[..299]));
        assert_eq!(key(1, 7, &long), key(1, 7, &other_end), "only the first 256 bytes count");
    }

    #[test]
    fn calls_are_forgotten_after_a_while() {
        let limits = CallCacheLimits { age_max: Duration::from_secs(10), ..CallCacheLimits::default() };
        let (mut cache, now) = (DuplicateRequests::new(limits), start());
        let key = key(1, 7, b"");
        assert_eq!(cache.begin(key, now), Seen::New);
        cache.finish(&key, reply(3));
        assert_eq!(cache.begin(key, now + Duration::from_secs(10)), Seen::Done(reply(3)));
        assert_eq!(cache.begin(key, now + Duration::from_secs(11)), Seen::New);
        assert_eq!(cache.bytes(), 0);
    }

    /// One step of the model test.
    #[derive(Debug, Clone)]
    enum Step {
        Begin(u32),
        Finish(u32, usize),
        Forget(u32),
        Wait(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..12_u32).prop_map(Step::Begin),
            4 => (0..12_u32, 0..30_usize).prop_map(|(xid, length)| Step::Finish(xid, length)),
            1 => (0..12_u32).prop_map(Step::Forget),
            1 => (0..8_u64).prop_map(Step::Wait),
        ]
    }

    /// The cache as a list in order of arrival, searched from one end to the other.
    #[derive(Default)]
    struct Model(Vec<(u32, Duration, Option<usize>)>);

    impl Model {
        fn begin(&mut self, limits: CallCacheLimits, xid: u32, now: Duration) -> Seen {
            self.0.retain(|(_, arrived, _)| now - *arrived <= limits.age_max);
            if let Some((.., length)) = self.0.iter().find(|(known, ..)| *known == xid) {
                return length.map_or(Seen::InProgress, |length| Seen::Done(reply(length)));
            }
            self.0.push((xid, now, None));
            self.shrink(limits);
            Seen::New
        }

        fn shrink(&mut self, limits: CallCacheLimits) {
            while self.0.len() > limits.entries_max || self.bytes() > limits.bytes_max {
                self.0.remove(0);
            }
        }

        fn bytes(&self) -> usize {
            self.0.iter().filter_map(|(.., length)| *length).sum()
        }
    }

    proptest! {
        #[test]
        fn it_behaves_as_the_model_and_keeps_its_limits(steps in proptest::collection::vec(step(), 0..120)) {
            let limits = CallCacheLimits { entries_max: 6, bytes_max: 60, age_max: Duration::from_secs(9) };
            let (mut cache, mut model, start) = (DuplicateRequests::new(limits), Model::default(), start());
            let mut now = Duration::ZERO;
            for step in steps {
                match step {
                    Step::Begin(xid) => {
                        let expected = model.begin(limits, xid, now);
                        prop_assert_eq!(cache.begin(key(1, xid, b""), start + now), expected);
                    }
                    Step::Finish(xid, length) => {
                        cache.finish(&key(1, xid, b""), reply(length));
                        if let Some(entry) = model.0.iter_mut().find(|(known, ..)| *known == xid) {
                            entry.2 = Some(length);
                        }
                        model.shrink(limits);
                    }
                    Step::Forget(xid) => {
                        cache.forget(&key(1, xid, b""));
                        model.0.retain(|(known, ..)| *known != xid);
                    }
                    Step::Wait(seconds) => now += Duration::from_secs(seconds),
                }
                prop_assert!(cache.len() <= limits.entries_max && cache.bytes() <= limits.bytes_max);
                prop_assert_eq!((cache.len(), cache.bytes()), (model.0.len(), model.bytes()));
            }
        }
    }
}
