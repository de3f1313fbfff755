//! `anabranch advise host`: this machine, held against what the documents ask for.

use advise::host::{Machine, examine};

use super::show;
use crate::print::{self, print};
use crate::problem::Result;

pub(super) fn run(json: bool) -> Result<()> {
    let findings = examine(&Machine::this());
    print(&if json { print::json(&findings)? } else { show::findings(&findings) })
}
