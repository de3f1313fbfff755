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

/// Whether this gateway has written down a trouble.
pub(super) fn is_of(trouble: &str, gateway: &str) -> bool {
    trouble.strip_prefix(gateway).is_some_and(|rest| rest.starts_with(SAYS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Cause;

    #[test]
    fn a_trouble_is_of_the_gateway_that_tells_it() {
        let problem = Problem::new(Cause::Silent, "no interface eth9", "Look");
        let trouble = told("a", &problem);
        assert_eq!(trouble, "a: no interface eth9. Look");
        assert_eq!(told("a", &Problem { advice: String::new(), ..problem }), "a: no interface eth9");
        assert!(is_of(&trouble, "a"));
        assert!(!is_of(&trouble, "b") && !is_of(&trouble, "") && !is_of("ab: no", "a"));
    }
}
