//! `anabranch cluster pools`: data pools of Ceph that give redundancy classes.

use gateway::ceph_pools::{DataPoolMade, DataPoolsWanted, make};
use gateway::settings::CephPlace;

use crate::cli::ClusterPools;
use crate::print::{json, print};
use crate::problem::{Cause, Problem, Result};

/// Carries out the command.
///
/// # Errors
/// A class or a medium is none, the cluster cannot give what is wanted, or the user of Ceph may not make it.
pub(crate) fn run(wanted: &ClusterPools) -> Result<()> {
    let wrong = |what: String| Problem::new(Cause::Settings, what, "");
    let place = CephPlace {
        configuration: wanted.ceph_config.clone(),
        user: wanted.ceph_user.clone(),
        file_system: wanted.ceph_file_system.clone(),
    };
    let classes =
        wanted.redundancy.iter().map(|class| class.parse().map_err(wrong)).collect::<Result<_>>()?;
    let media = wanted.tier.iter().map(|tier| tier.parse().map_err(wrong)).collect::<Result<_>>()?;
    let refused = |state::Error { what, advice }| Problem::new(Cause::Refused, what, advice);
    let made = make(&DataPoolsWanted { place, classes, media, is_tried: wanted.dry_run }).map_err(refused)?;
    print(&if wanted.json { json(&made)? } else { made.iter().map(render).collect() })
}

fn render(made: &DataPoolMade) -> String {
    let DataPoolMade { class, tier, pool, gives, commands, is_made } = made;
    let what = tier.as_ref().map_or_else(|| class.clone(), |tier| format!("{class} on {tier}"));
    let gives = gives.as_ref().map_or_else(String::new, |gives| format!(": {gives}"));
    match (is_made, commands.is_empty()) {
        (true, _) => format!("{what}: the data pool {pool} was made{gives}\n"),
        (false, true) => format!("{what}: the data pool {pool} is there{gives}\n"),
        (false, false) => {
            let commands: Vec<_> = commands.iter().map(|command| format!("    {command}\n")).collect();
            format!("{what}: the data pool {pool} would be made:\n{}", commands.concat())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_became_of_a_pool_is_told() {
        let made = DataPoolMade {
            class: "zrs".to_owned(),
            tier: Some("ssd".to_owned()),
            pool: "lab.zrs.ssd".to_owned(),
            gives: Some("zrs on ssd".to_owned()),
            commands: Vec::new(),
            is_made: false,
        };
        assert_eq!(render(&made), "zrs on ssd: the data pool lab.zrs.ssd is there: zrs on ssd\n");
        let made = DataPoolMade { commands: vec!["ceph -s".to_owned()], gives: None, tier: None, ..made };
        assert_eq!(render(&made), "zrs: the data pool lab.zrs.ssd would be made:\n    ceph -s\n");
        assert_eq!(
            render(&DataPoolMade { is_made: true, ..made }),
            "zrs: the data pool lab.zrs.ssd was made\n"
        );
    }
}
