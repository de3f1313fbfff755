//! Why vservers are not served, as their gateways write it down in the register for each other.

use state::cluster::Register;

use crate::problem::Problem;

/// Between the name of the gateway, which has no such character, and what it says.
const SAYS: &str = ": ";

/// Writes down why a gateway does not serve a vserver, or that it does.
pub(super) fn write(register: &Register, vserver: &str, why: Option<(&str, &Problem)>) {
    let is_there = || register.trouble(vserver).is_ok_and(|trouble| trouble.is_some());
    if why.is_none() && !is_there() {
        return;
    }
    let why = why.map(|(gateway, problem)| told(gateway, problem));
    if let Err(error) = register.set_trouble(vserver, why.as_deref()) {
        tracing::warn!(vserver, "the trouble of the vserver is not written down: {error}");
    }
}

fn told(gateway: &str, problem: &Problem) -> String {
    let why = [&problem.what, &problem.advice].map(String::as_str).join(". ");
    let why = why.trim_end_matches([' ', '.']);
    format!("{gateway}{SAYS}{why}")
}
