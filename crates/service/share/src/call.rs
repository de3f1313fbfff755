//! One operation of a client.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use access_log::Kind;
use accounting::{Cost, Used, Waits};
use file_state::Holder;
use limits::Limit;
use storage::{Moment, View};

use crate::Caller;
use crate::deed::Deed;
use crate::operation::{DirectoryReport, Operation, Patience};

/// One operation of a client: its front makes it and hands it down, and nothing about the operation is anywhere else.
///
/// What the operation waits for is noted here, in cells: one task works on an operation at a time.
#[derive(Debug)]
pub struct Call {
    /// Who asks.
    pub caller: Caller,
    operation: &'static Operation,
    begun: Instant,
    /// The moment as of which the metadata cache answers, if the call's front keeps one.
    moment: Option<Rc<Moment>>,
    has_had_turn: Cell<bool>,
    /// The caching grant on a directory under which the operation changes the directory's entries.
    under: Cell<Option<Holder>>,
    waits: Cell<Waits>,
    used: Cell<Option<Used>>,
    /// Whether what quotas tell it is up to date with what was written before it.
    has_settled_quotas: Cell<bool>,
    /// What the operation does, if the access log wants to know.
    deed: RefCell<Option<Box<Deed>>>,
}

/// Who changes names in directories.
#[derive(Debug, Clone)]
pub(crate) struct Author {
    pub(crate) caller: Caller,
    /// The caching grant on a directory that the changes do not break.
    pub(crate) under: Option<Holder>,
    /// What the client is told about the directories.
    pub(crate) report: DirectoryReport,
}

impl Call {
    /// An operation that arrived at this time. It must have its turn ([`Share::take_turn`](crate::Share::take_turn)), unless it
    /// is charged by the data that it moves.
    #[must_use]
    #[inline]
    pub fn new(operation: &'static Operation, caller: Caller, begun: Instant) -> Self {
        Self {
            caller,
            operation,
            begun,
            moment: None,
            has_had_turn: Cell::new(false),
            under: Cell::default(),
            waits: Cell::default(),
            used: Cell::default(),
            has_settled_quotas: Cell::new(false),
            deed: RefCell::default(),
        }
    }

    /// The operation reads directories as of this moment, in which it is carried out ([`as_of_one_moment`]). Without a moment,
    /// each piece of work that it has done in the store has its own.
    #[must_use]
    #[inline]
    pub fn within(mut self, moment: &Rc<Moment>) -> Self {
        self.moment = Some(Rc::clone(moment));
        self
    }

    /// As of when the metadata cache may answer the operation.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        self.moment.as_deref().map_or(View::FRESH, View::of)
    }

    /// Becomes another operation of the same caller, when this one has ended.
    pub fn renew(&mut self, operation: &'static Operation, begun: Instant) {
        self.check_turn();
        (self.operation, self.begun) = (operation, begun);
        self.has_had_turn.set(false);
        self.under.set(None);
        self.waits.set(Waits::default());
        self.used.set(None);
        self.has_settled_quotas.set(false);
        *self.deed.get_mut() = None;
    }

    fn check_turn(&self) {
        // One that is charged by its data may fail, or be given up, before it gets there.
        debug_assert!(
            self.has_had_turn() || self.operation.api.moves_data() || std::thread::panicking(),
            "{} of {} has ended without its turn in the budget",
            self.operation.api.name,
            self.operation.front.name
        );
    }

    /// The operation's row.
    #[must_use]
    pub fn operation(&self) -> &'static Operation {
        self.operation
    }

    /// When the operation arrived.
    #[must_use]
    pub fn begun(&self) -> Instant {
        self.begun
    }

    /// Whether quotas are to be brought up to date for the operation: once, however many files it asks about.
    pub(crate) fn settles_quotas(&self) -> bool {
        !self.has_settled_quotas.replace(true)
    }

    /// The operation concerns no share: there is no budget to wait for.
    pub fn needs_no_turn(&self) {
        self.has_had_turn.set(true);
    }

    /// Notes that the operation is charged to the budget.
    pub(crate) fn takes_turn(&self) {
        self.has_had_turn.set(true);
    }

    /// Whether the operation has been charged to a budget, or concerns none.
    pub(crate) fn has_had_turn(&self) -> bool {
        self.has_had_turn.get()
    }

    pub(crate) fn patience(&self) -> Patience {
        self.operation.front.patience
    }

    /// The operation works under this grant on a directory: changes to the directory's entries do not break the grant.
    pub fn works_under(&self, directory: Option<Holder>) {
        self.under.set(directory);
    }

    /// Who changes names by this operation.
    pub(crate) fn author(&self) -> Author {
        Author {
            caller: self.caller.clone(),
            under: self.under.get(),
            report: self.operation.front.directories,
        }
    }

    /// Notes that the operation has waited for the budget.
    pub(crate) fn waited_for_budget(&self, limit: Limit, time: Duration) {
        let waits = self.waits.get();
        self.waits.set(Waits { limit: waits.limit + time, throttled: Some(limit), ..waits });
    }

    /// Notes that the operation has waited because its client is slowed: for no limit of the plan.
    pub(crate) fn waited_as_slowed(&self, time: Duration) {
        let waits = self.waits.get();
        self.waits.set(Waits { limit: waits.limit + time, ..waits });
    }

    /// Notes that the operation has waited for a thread of the store.
    pub(crate) fn waited_for_thread(&self, time: Duration) {
        let waits = self.waits.get();
        self.waits.set(Waits { queue: waits.queue + time, ..waits });
    }

    /// Notes what the operation reads or writes.
    pub(crate) fn uses(&self, used: Used) {
        self.used.set(Some(used));
    }

    /// Notes what the operation does.
    pub(crate) fn does(&self, deed: Deed) {
        *self.deed.borrow_mut() = Some(Box::new(deed));
    }

    /// Whether it is known what the operation does.
    pub(crate) fn has_done(&self) -> bool {
        self.deed.borrow().as_ref().is_some_and(|deed| deed.kind.is_some())
    }

    /// What kind of operation this is for the access log.
    pub(crate) fn kind(&self) -> Option<Kind> {
        self.deed.borrow().as_ref().and_then(|deed| deed.kind).or(self.operation.kind)
    }

    /// What the operation has done, as far as that was noted. It is not known afterwards.
    pub(crate) fn deed(&self) -> Deed {
        self.deed.take().map(|deed| *deed).unwrap_or_default()
    }

    /// How long the operation has waited so far.
    #[must_use]
    pub fn waits(&self) -> Waits {
        self.waits.get()
    }

    /// What the operation has cost so far.
    #[must_use]
    pub fn cost(&self) -> Cost {
        Cost {
            api: &self.operation.api,
            client: self.caller.machine,
            begun: self.begun,
            waits: self.waits.get(),
            used: self.used.get(),
        }
    }
}

/// Carries out a request so that everything that it reads in one poll is as of one moment. The caller pins the request, so that it
/// is not moved. Requests that are polled by one thread may share the moment: each poll begins it anew.
pub fn as_of_one_moment<F: Future>(
    moment: &Moment,
    mut request: Pin<&mut F>,
) -> impl Future<Output = F::Output> {
    std::future::poll_fn(move |cx| moment.during(|| request.as_mut().poll(cx)))
}

impl Drop for Call {
    fn drop(&mut self) {
        self.check_turn();
    }
}

#[cfg(test)]
pub(crate) mod of_tests {
    //! Calls for the tests of other files.

    use super::*;
    use accounting::Direction;

    use crate::operation::{Front, Turn};
    use crate::{Client, Identity, Proof};

    static FRONT: Front =
        Front { name: "test", patience: Patience::UntilRetry, directories: DirectoryReport::Change };
    pub(crate) static LOOKUP: Operation = Operation::new(&FRONT, 1, "Lookup");
    pub(crate) static READ: Operation = Operation::new(&FRONT, 3, "Read").with(Turn::ByData(Direction::Read));

    /// An operation of this client's superuser that need not wait for its turn.
    pub(crate) fn call(operation: &'static Operation, client: Client) -> Call {
        let caller = Caller::new(Identity::unix(0, 0, Vec::new()), Proof::Stated).at(client);
        let call = Call::new(operation, caller, Instant::now());
        call.needs_no_turn();
        call
    }
}

#[cfg(test)]
mod tests {
    use super::of_tests::{LOOKUP, READ, call};
    use super::*;
    use crate::Client;

    #[test]
    fn waits_add_up_and_the_last_limit_is_named() {
        let (call, second) = (call(&LOOKUP, Client::Unknown), Duration::from_secs(1));
        assert_eq!(call.waits(), Waits::default());
        call.waited_for_budget(Limit::Read, second);
        call.waited_for_budget(Limit::Iops, second);
        call.waited_for_thread(second);
        call.waited_as_slowed(second);
        let expected = Waits { queue: second, limit: second * 3, throttled: Some(Limit::Iops) };
        assert_eq!(call.waits(), expected);
    }

    #[test]
    #[cfg_attr(debug_assertions, should_panic(expected = "Lookup of test has ended without its turn"))]
    fn a_call_that_has_had_no_turn_is_a_fault() {
        let caller = call(&LOOKUP, Client::Unknown).caller.clone();
        drop(Call::new(&LOOKUP, caller, Instant::now()));
    }

    #[test]
    fn a_call_that_is_renewed_has_waited_for_nothing_and_needs_a_turn_again() {
        let mut call = call(&LOOKUP, Client::Unknown);
        call.waited_for_thread(Duration::from_secs(1));
        call.uses(Used { file: 1, open: None });
        call.renew(&READ, Instant::now());
        assert_eq!((call.waits(), call.cost().used, call.has_had_turn()), (Waits::default(), None, false));
        assert_eq!(call.operation().api.name, "Read");
    }

    #[test]
    fn a_read_may_fail_before_it_is_charged() {
        let caller = call(&READ, Client::Unknown).caller.clone();
        drop(Call::new(&READ, caller, Instant::now()));
    }
}
