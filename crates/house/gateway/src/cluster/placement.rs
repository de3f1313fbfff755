//! Where vservers are to be: which gateway looks after which, and which one a vserver comes to.

use state::cluster::{GatewayRecord, VserverRecord};

/// The other gateways, in the order in which one of them looks after the others: it looks at those after it, up to the first that is
/// there. So each gateway that is not there is noticed by one, and a gateway asks about few, however many there are.
pub(super) fn after<'a>(name: &str, gateways: &'a [GatewayRecord]) -> Vec<&'a str> {
    let mut names: Vec<_> =
        gateways.iter().map(|gateway| &*gateway.name).filter(|other| *other != name).collect();
    names.sort_unstable();
    let first = names.partition_point(|other| *other < name);
    names.rotate_left(first);
    names
}

/// The gateways to which a vserver may come, the best first: those with the fewest vservers, and among them the one that asks.
pub(super) fn best_first<'a>(
    gateways: &'a [GatewayRecord],
    vservers: &[VserverRecord],
    asking: &str,
) -> Vec<&'a str> {
    let load = |name: &str| vservers.iter().filter(|vserver| vserver.gateway == name).count();
    let open = gateways.iter().filter(|gateway| !gateway.is_drained).map(|gateway| &*gateway.name);
    let mut open: Vec<_> = open.collect();
    open.sort_by_key(|name| (load(name), *name != asking, *name));
    open
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gateways(names: &[&str]) -> Vec<GatewayRecord> {
        let of = |name: &&str| GatewayRecord { name: (*name).to_owned(), ..GatewayRecord::default() };
        names.iter().map(of).collect()
    }

    #[test]
    fn each_gateway_is_after_another() {
        let all = gateways(&["c", "a", "b"]);
        assert_eq!(after("a", &all), ["b", "c"]);
        assert_eq!(after("b", &all), ["c", "a"]);
        assert_eq!(after("c", &all), ["a", "b"]);
        assert!(after("a", &gateways(&["a"])).is_empty());
    }

    #[test]
    fn a_vserver_comes_to_who_has_few_and_is_not_drained() {
        let mut all = gateways(&["a", "b", "c"]);
        let of = |gateway: &str| VserverRecord { gateway: gateway.to_owned(), ..VserverRecord::default() };
        let vservers = [of("a"), of("a"), of("b")];
        assert_eq!(best_first(&all, &vservers, "a"), ["c", "b", "a"]);
        assert_eq!(best_first(&all, &[], "b"), ["b", "a", "c"]);
        all[2].is_drained = true;
        assert_eq!(best_first(&all, &vservers, "a"), ["b", "a"]);
    }
}
