//! Who may use a share and its objects.

mod descriptor;
pub(crate) mod permission;
mod read_only;
mod rules;
mod terms;

pub use self::descriptor::SecurityChange;
pub(crate) use self::descriptor::{Birth, keep_in_step};
pub use self::permission::{Object, may_delete, permitted};
pub(crate) use self::read_only::CHANGES;
pub use self::read_only::ReadOnly;
pub(crate) use self::rules::CurrentRules;
pub use self::rules::served_by;
pub(crate) use self::terms::Present;
pub use self::terms::Terms;
