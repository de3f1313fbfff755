//! `anabranch policy`: which snapshots are taken of shares, and how many are kept.

use std::fmt::Write;

use control::Administration as _;
use control::policies::{NewPolicy, Policies, Policy, PolicyChange};
use control_client::path_part;
use schedule::Period;

use crate::administrator::{Administrator, Intent};
use crate::asking::Asking;
use crate::cli::{PolicyCommand, PolicyRules};
use crate::print::{json, print};
use crate::problem::Result;
use crate::table;

const CALL: &str = "/v1/policies";

/// Carries out the command.
///
/// # Errors
/// It is refused, or the server cannot be asked.
pub(crate) fn run(command: &PolicyCommand) -> Result<()> {
    match command {
        PolicyCommand::Create(create) => {
            let administrator = Administrator::find(&create.asking, Intent::Change)?;
            let new = new_policy(create);
            let call = ("POST", CALL);
            let policy = administrator.call(call, Some(&new), |here| here.create_policy(new.clone()))?;
            tell(&create.asking, &policy, "was created")
        }
        PolicyCommand::List(asking) => {
            let administrator = Administrator::find(asking, Intent::Look)?;
            let policies = administrator.call(("GET", CALL), None::<&()>, |here| here.policies())?;
            print(&if asking.json { json(&policies)? } else { render(&policies) })
        }
        PolicyCommand::Show { name, asking } => {
            let administrator = Administrator::find(asking, Intent::Look)?;
            let policy = administrator.call(("GET", &path(name)), None::<&()>, |here| here.policy(name))?;
            print(&if asking.json { json(&policy)? } else { show(&policy) })
        }
        PolicyCommand::Set(set) => {
            let administrator = Administrator::find(&set.asking, Intent::Change)?;
            let (change, call) = (change(set), ("PATCH", &*path(&set.name)));
            let policy = administrator
                .call(call, Some(&change), |here| here.change_policy(&set.name, change.clone()))?;
            tell(&set.asking, &policy, "was changed")
        }
        PolicyCommand::Remove { name, asking } => {
            let administrator = Administrator::find(asking, Intent::Change)?;
            let call = ("DELETE", &*path(name));
            let policy = administrator.call(call, None::<&()>, |here| here.remove_policy(name))?;
            tell(asking, &policy, "was removed; its snapshots stay")
        }
    }
}

fn path(name: &str) -> String {
    format!("{CALL}/{}", path_part(name))
}

fn new_policy(create: &PolicyRules) -> NewPolicy {
    NewPolicy {
        name: create.name.clone(),
        hourly: create.hourly.clone(),
        daily: create.daily.clone(),
        weekly: create.weekly.clone(),
        monthly: create.monthly.clone(),
    }
}

fn change(rules: &PolicyRules) -> PolicyChange {
    PolicyChange {
        hourly: rules.hourly.clone(),
        daily: rules.daily.clone(),
        weekly: rules.weekly.clone(),
        monthly: rules.monthly.clone(),
    }
}

fn tell(asking: &Asking, policy: &Policy, what: &str) -> Result<()> {
    print(&if asking.json { json(policy)? } else { format!("The policy {} {what}.\n", policy.name) })
}

/// The rules of a policy, as they are written, by period.
fn rules(policy: &Policy) -> [(Period, Option<&str>); 4] {
    [
        (Period::Hourly, policy.hourly.as_deref()),
        (Period::Daily, policy.daily.as_deref()),
        (Period::Weekly, policy.weekly.as_deref()),
        (Period::Monthly, policy.monthly.as_deref()),
    ]
}

fn render(policies: &Policies) -> String {
    let row = |policy: &Policy| {
        let [hourly, daily, weekly, monthly] = rules(policy).map(|(_, rule)| rule.unwrap_or("-").to_owned());
        [policy.name.clone(), hourly, daily, weekly, monthly, policy.shares.join(",")]
    };
    let rows: Vec<_> = policies.policies.iter().map(row).collect();
    table::render(["POLICY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "SHARES"], &rows)
}

fn show(policy: &Policy) -> String {
    let mut text = format!("policy     {}\n", policy.name);
    for (period, rule) in rules(policy) {
        if let Some(rule) = rule {
            let _ = writeln!(text, "{:<11}{rule}", period.name());
        }
    }
    let shares = if policy.shares.is_empty() { "none".to_owned() } else { policy.shares.join(", ") };
    let _ = writeln!(text, "shares     {shares}");
    if let Some(place) = &policy.declared_in {
        let _ = writeln!(text, "declared   in {place}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_shown_with_their_rules_and_shares() {
        let office = Policy {
            name: "office".to_owned(),
            hourly: Some(":05/24".to_owned()),
            weekly: Some("sun@00:00/8".to_owned()),
            shares: vec!["data".to_owned(), "more".to_owned()],
            ..Policy::default()
        };
        let shown = "policy     office\nhourly     :05/24\nweekly     sun@00:00/8\nshares     data, more\n";
        assert_eq!(show(&office), shown);
        let expected = "POLICY  HOURLY  DAILY  WEEKLY       MONTHLY  SHARES\n\
                        office  :05/24  -      sun@00:00/8  -        data,more\n";
        assert_eq!(render(&Policies { policies: vec![office] }), expected);
    }
}
