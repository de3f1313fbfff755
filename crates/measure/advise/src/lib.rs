//! From facts to advice: the rules R1 to R21, one function each, without a clock, a file or a socket.
//!
//! [`advise`] is one function of [`Facts`], which a result of load may give ([`of_result`]). A rule says nothing when a fact
//! that it needs is not known. Where a change was measured on this very path, the measurement decides and the documents'
//! expectation stands beside it. [`ranked`] takes many results together: one list in which each setting is once. [`host`] holds a
//! machine against the documents: what it reads lies below one root directory.
//!
//! It will never know how to change anything: advice is words and commands, and who carries them out is somebody else.

mod advice;
mod channels;
mod documents;
mod facts;
mod from_result;
pub mod host;
mod limits;
mod nfs;
mod ranked;
mod security;

pub use advice::{Advice, Command, Side, Source, Statement, Verdict, counted};
pub use documents::{Document, Section, document_of, title};
pub use facts::{
    Change, Effect, Facts, Latencies, Limits, Mount, Path, Profile, Reached, Security, Slots, Work,
};
pub use from_result::{Judged, of_result};
pub use ranked::{Action, Recommendation, Setting, Tally, Tried, is_anabranch, ranked};

/// What a rule stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Basis {
    /// Settings and the kind of work: known without a measurement.
    Settings,
    /// Measured figures.
    Figures,
}

type Rule = fn(&Facts) -> Option<Advice>;

/// The rules, in the order in which they are told.
const RULES: [(Basis, Rule); 21] = [
    (Basis::Settings, limits::first_run_only),
    (Basis::Settings, channels::many_threads_many_files),
    (Basis::Settings, channels::many_threads_one_file),
    (Basis::Settings, channels::one_thread),
    (Basis::Settings, channels::more_than_four),
    (Basis::Settings, channels::no_receive_side_scaling),
    (Basis::Settings, channels::fewer_than_could_be),
    (Basis::Settings, nfs::connections_suit),
    (Basis::Settings, nfs::more_than_four),
    (Basis::Settings, nfs::too_deep),
    (Basis::Settings, nfs::first_mount_wins),
    (Basis::Settings, nfs::kernel),
    (Basis::Figures, nfs::slots_are_used_up),
    (Basis::Settings, limits::metadata_heavy),
    (Basis::Figures, limits::client_is_the_limit),
    (Basis::Figures, limits::throttled),
    (Basis::Figures, limits::one_file_is_the_limit),
    (Basis::Figures, security::slow_signature),
    (Basis::Figures, limits::not_the_server),
    (Basis::Settings, security::encryption_costs),
    (Basis::Settings, channels::one_endpoint),
];

/// Everything that the rules have to say of these facts. After a single measurement nothing is concluded from its figures,
/// the effects of changes among them (R20).
#[must_use]
pub fn advise(facts: &Facts) -> Vec<Advice> {
    if limits::first_run_only(facts).is_none() {
        return RULES.iter().filter_map(|(_, rule)| rule(facts)).collect();
    }
    let without_effects = Facts { effects: Vec::new(), ..facts.clone() };
    RULES
        .iter()
        .filter(|(basis, _)| *basis == Basis::Settings)
        .filter_map(|(_, rule)| rule(&without_effects))
        .collect()
}

#[cfg(test)]
mod tests;
