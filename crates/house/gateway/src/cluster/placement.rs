//! Where vservers are to be: which gateway looks after which, and which one a vserver comes to.

use state::cluster::{GatewayRecord, VserverRecord};

use super::definition;

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

/// The interface by which the clients of a vserver would not reach a gateway. None: they would.
pub(super) fn cut_off<'a>(gateway: &'a GatewayRecord, vserver: &VserverRecord) -> Option<&'a str> {
    let interfaces = definition::interfaces(vserver);
    gateway.cut_off.iter().find(|interface| interfaces.contains(*interface)).map(String::as_str)
}

/// The gateways that the clients of a vserver would reach.
pub(super) fn reaching(gateways: &[GatewayRecord], vserver: &VserverRecord) -> Vec<GatewayRecord> {
    gateways.iter().filter(|gateway| cut_off(gateway, vserver).is_none()).cloned().collect()
}

/// The gateways to which a vserver may come, the best first: those that its clients reach, among them those with the fewest vservers, and
/// among these the one that asks.
pub(super) fn best_first<'a>(
    gateways: &'a [GatewayRecord],
    vserver: &VserverRecord,
    vservers: &[VserverRecord],
    asking: &str,
) -> Vec<&'a str> {
    let load = |name: &str| vservers.iter().filter(|vserver| vserver.gateway == name).count();
    let mut open: Vec<_> = gateways.iter().filter(|gateway| !gateway.is_drained).collect();
    open.sort_by_key(|gateway| {
        let name = &*gateway.name;
        (cut_off(gateway, vserver).is_some(), load(name), name != asking, name)
    });
    open.into_iter().map(|gateway| &*gateway.name).collect()
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
    fn a_vserver_does_not_come_where_its_clients_do_not_get() {
        let mut all = gateways(&["a", "b", "c"]);
        all[0].cut_off = vec!["eth0".to_owned()];
        all[1].cut_off = vec!["eth1".to_owned()];
        let at = |addresses: &[&str]| {
            let addresses = addresses.iter().map(|address| (*address).to_owned()).collect();
            let vserver = VserverRecord { addresses, ..VserverRecord::default() };
            reaching(&all, &vserver).into_iter().map(|gateway| gateway.name).collect::<String>()
        };
        assert_eq!(at(&["192.0.2.10%eth0/24"]), "bc");
        assert_eq!(at(&["2001:db8::10%eth1", "192.0.2.10%eth0/24"]), "c");
        assert_eq!(at(&["192.0.2.10%eth2", "192.0.2.10"]), "abc");
    }

    #[test]
    fn a_vserver_comes_to_who_has_few_and_is_not_drained() {
        let mut all = gateways(&["a", "b", "c"]);
        let of = |gateway: &str| VserverRecord { gateway: gateway.to_owned(), ..VserverRecord::default() };
        let vservers = [of("a"), of("a"), of("b")];
        let addresses = vec!["192.0.2.10%eth0".to_owned()];
        let vserver = VserverRecord { addresses, ..VserverRecord::default() };
        assert_eq!(best_first(&all, &vserver, &vservers, "a"), ["c", "b", "a"]);
        assert_eq!(best_first(&all, &vserver, &[], "b"), ["b", "a", "c"]);
        all[2].is_drained = true;
        assert_eq!(best_first(&all, &vserver, &vservers, "a"), ["b", "a"]);
        all[1].cut_off = vec!["eth0".to_owned()];
        assert_eq!(
            best_first(&all, &vserver, &vservers, "a"),
            ["a", "b"],
            "the other one is the last resort"
        );
    }
}
