use proptest::prelude::*;

use super::*;

/// What a cluster of Ceph 16.2 has printed: three hosts in three zones, of which the last has an `ssd`.
const PRINTED: Printed<'static> = Printed {
    file_systems: include_bytes!("../../testdata/file_systems.json"),
    pools: include_bytes!("../../testdata/pools.json"),
    rules: include_bytes!("../../testdata/rules.json"),
    tree: include_bytes!("../../testdata/tree.json"),
};

fn placement() -> Placement {
    Placement::read(PRINTED, None).unwrap()
}

/// The same with other texts in what was printed of the pools, the rules and the tree.
fn with(change: impl Fn(&str) -> String) -> Placement {
    let changed = |bytes: &[u8]| change(std::str::from_utf8(bytes).unwrap()).into_bytes();
    let (pools, rules, tree) = (changed(PRINTED.pools), changed(PRINTED.rules), changed(PRINTED.tree));
    Placement::read(Printed { pools: &pools, rules: &rules, tree: &tree, ..PRINTED }, None).unwrap()
}

/// All devices are disks.
fn of_disks() -> Placement {
    with(|text| text.replace("\"device_class\":\"ssd\"", "\"device_class\":\"hdd\""))
}

fn shown(placement: &Placement) -> Vec<String> {
    placement.pools.iter().map(|pool| format!("{} {pool}", pool.name)).collect()
}

#[test]
fn a_pool_gives_what_its_rule_and_its_devices_give() {
    let expected = [
        "cephfs.data.zrs zrs on hdd, ssd (3 copies across zones, 2 to write)",
        "cephfs.data.lrs lrs on hdd, ssd (3 copies across hosts, 2 to write)",
        "zhdd no class on hdd (2 copies across zones, 2 to write)",
        "anyp no class on hdd, ssd (3 copies across osds, 2 to write)",
        "ec no class on hdd, ssd (3 parts across hosts, 2 to write)",
    ];
    assert_eq!(shown(&placement()), expected, "two zones alone have disks for the rule of zhdd");
    let disks = of_disks();
    let [zrs, lrs, zhdd] = [0, 1, 2].map(|at: usize| &disks.pools[at]);
    assert_eq!((zrs.class(), zrs.media(), zrs.places), (Some(Class::Zrs), Some(Media::Hdd), Some(3)));
    assert_eq!((lrs.class(), lrs.media()), (Some(Class::Lrs), Some(Media::Hdd)));
    assert_eq!(zhdd.class(), Some(Class::Zrs));
}

#[test]
fn fewer_copies_or_fewer_to_write_are_no_class() {
    let first = |from: &str, to: &str| with(|text| text.replace(from, to)).pools[0].clone();
    assert_eq!(first("\"size\":3,", "\"size\":2,").class(), None);
    assert_eq!(first("\"min_size\":2,", "\"min_size\":1,").class(), None);
    let two = first("\"num\":0,\"type\":\"zone\"", "\"num\":2,\"type\":\"zone\"");
    assert_eq!((two.copies, two.class()), (2, None));
    assert_eq!(first("\"num\":0,\"type\":\"zone\"", "\"num\":-1,\"type\":\"zone\"").copies, 2);
    assert_eq!(first("\"min_size\":2,", "\"min_size\":3,").class(), None, "the loss of one copy ends writes");
    let unused = first("\"crush_weight\":1,", "\"crush_weight\":0,");
    assert_eq!((unused.copies, unused.class()), (0, None), "devices without weight get nothing");
}

#[test]
fn datacenters_are_zones_where_there_are_no_others() {
    let datacenters = |text: &str| text.replace("\"zone\"", "\"datacenter\"");
    assert_eq!(with(datacenters).pools[0].class(), Some(Class::Zrs));
    let below_zones = with(|text| datacenters(text).replacen("\"type\":\"host\"", "\"type\":\"zone\"", 1));
    let pool = &below_zones.pools[0];
    assert_eq!((pool.across.as_deref(), pool.class()), (Some("datacenter"), Some(Class::Lrs)), "{pool}");
}

#[test]
fn a_device_without_a_class_is_on_no_known_medium() {
    let some = with(|text| text.replacen("\"device_class\":\"hdd\"", "\"device_class\":\"\"", 1));
    let pool = &some.pools[0];
    assert_eq!((pool.media(), pool.class()), (None, Some(Class::Zrs)));
    assert!(pool.to_string().contains("devices without a class"), "{pool}");
}

#[test]
fn what_a_rule_of_several_steps_gives_is_not_guessed() {
    let step = "{\"op\":\"chooseleaf_firstn\",\"num\":0,\"type\":\"zone\"}";
    let several = with(|text| {
        let first = step.replace("chooseleaf", "choose");
        text.replace(step, &format!("{first},{}", step.replace("zone", "host")))
    });
    let pool = &several.pools[0];
    assert_eq!((pool.class(), &pool.across, pool.places), (None, &None, None));
    assert_eq!(pool.to_string(), "no class (3 copies, 2 to write)");
    let empty = with(|text| text.replace(step, &step.replace("chooseleaf", "choose")));
    assert_eq!(empty.pools[0].class(), None, "zones, and no device in them");
    let own = with(|text| text.replace("\"zone\"", "\"shelf\""));
    assert_eq!(own.pools[0].class(), None, "a type of the administrator's own");
}

#[test]
fn nvme_is_solid_state_and_another_class_is_nothing_known() {
    let of =
        |class: &str| with(|text| text.replace("\"hdd\"", class).replace("\"ssd\"", class)).pools[0].media();
    assert_eq!((of("\"nvme\""), of("\"archive\"")), (Some(Media::Ssd), None));
    assert_eq!(of("\"\""), None);
}

#[test]
fn a_pool_is_chosen_by_class_and_medium() {
    let disks = of_disks();
    let name = |class, media| disks.choose(class, media).map(|pool| pool.name.as_str());
    assert_eq!(name(Class::Zrs, None), Ok("cephfs.data.zrs"));
    assert_eq!(name(Class::Lrs, Some(Media::Hdd)), Ok("cephfs.data.lrs"));
    let refused = disks.choose(Class::Lrs, Some(Media::Ssd)).unwrap_err();
    assert!(refused.what.starts_with(
        "no data pool of the file system lab gives lrs on ssd: cephfs.data.zrs gives zrs on hdd ("
    ));
    assert!(refused.advice.ends_with("anabranch cluster pools --redundancy lrs --tier ssd"), "{refused}");
    let mixed = placement();
    assert_eq!(mixed.choose(Class::Zrs, None).unwrap().media(), None);
    assert!(mixed.choose(Class::Zrs, Some(Media::Hdd)).is_err());
}

#[test]
fn the_file_system_is_the_named_one_or_the_default_one() {
    assert_eq!(Placement::read(PRINTED, Some("lab")).unwrap().file_system, "lab");
    let refused = Placement::read(PRINTED, Some("other")).unwrap_err();
    assert_eq!(refused.what, "the Ceph cluster has no file system other");
    assert_eq!(placement().pool(None).unwrap().name, "cephfs.data.zrs");
    assert_eq!(placement().pool(Some("none")), None);
}

/// The commands that make a pool; None: it is there.
fn commands(placement: &Placement, class: Class, media: Option<Media>) -> Option<Vec<String>> {
    let new = placement.to_be_made(class, media).unwrap()?;
    Some(new.commands.iter().map(ToString::to_string).collect())
}

#[test]
fn a_pool_is_made_if_none_gives_the_class() {
    let disks = of_disks();
    assert_eq!(commands(&disks, Class::Zrs, Some(Media::Hdd)), None);
    let solid = with(|text| text.replace("\"hdd\"", "\"ssd\""));
    let made = commands(&solid, Class::Zrs, Some(Media::Ssd));
    assert_eq!(made, None, "all devices are of solid state");
    let bare = with(|text| text.replace("\"min_size\":2,", "\"min_size\":1,"));
    let expected = [
        "ceph osd crush rule create-replicated lab.lrs default host",
        "ceph osd pool create lab.lrs --rule=lab.lrs",
        "ceph osd pool set lab.lrs crush_rule lab.lrs",
        "ceph osd pool set lab.lrs size 3",
        "ceph osd pool set lab.lrs min_size 2",
        "ceph fs add_data_pool lab lab.lrs",
    ];
    assert_eq!(commands(&bare, Class::Lrs, None).unwrap(), expected);
    let begun = begun();
    assert_eq!(commands(&begun, Class::Lrs, None).unwrap(), expected[2..], "a run before got so far");
}

/// A run before has made the rule and the pool, and no more.
fn begun() -> Placement {
    with(begun_text)
}

fn begun_text(text: &str) -> String {
    let text =
        text.replace("\"min_size\":2,", "\"min_size\":1,").replace("\"crush_rule\":4", "\"crush_rule\":0");
    text.replace("\"rule_name\":\"replicated_rule\"", "\"rule_name\":\"lab.lrs\"")
        .replace("\"nopg\"", "\"lab.lrs\"")
}

#[test]
fn what_is_there_already_and_may_be_somebody_elses_is_not_touched() {
    let refused = |change: &dyn Fn(String) -> String| {
        let placement = with(|text| change(begun_text(text)));
        placement.to_be_made(Class::Lrs, None).unwrap_err().what
    };
    let pool = "the pool lab.lrs is there, and may be in use: it stays as it is";
    let used = |by: &'static str| {
        move |text: String| {
            text.replace("\"application_metadata\":{}", &format!("\"application_metadata\":{by}"))
        }
    };
    assert_eq!(refused(&used("{\"rbd\":{}}")), pool);
    assert_eq!(refused(&used("{\"cephfs\":{\"metadata\":\"other\"}}")), pool);
    assert_eq!(
        refused(&|text| text.replace("\"application_metadata\":{}", "\"unknown\":{}")),
        pool,
        "nobody says what uses it"
    );
    assert_eq!(
        refused(&|text| text.replace("\"crush_rule\":0", "\"crush_rule\":3")),
        pool,
        "made for another rule"
    );
    assert_eq!(
        refused(&|text| text.replacen("\"rule_name\":\"lab.lrs\"", "\"rule_name\":\"x\"", 1)),
        pool,
        "its rule is not there"
    );
    let rule = refused(&|text| {
        text.replace("\"rule_name\":\"lab.lrs\"", "\"rule_name\":\"x\"")
            .replace("\"rule_name\":\"any\"", "\"rule_name\":\"lab.lrs\"")
    });
    assert_eq!(rule, "the CRUSH rule lab.lrs is there, and does something else: it stays as it is");
}

#[test]
fn what_the_cluster_cannot_give_is_refused_with_what_there_is() {
    let refused = placement().to_be_made(Class::Zrs, Some(Media::Hdd)).unwrap_err();
    let expected = "zrs on hdd needs 3 zones with devices of the class hdd below default, and the Ceph cluster has 2: z0, z1";
    assert_eq!(refused.what, expected);
    let none = of_disks().to_be_made(Class::Lrs, Some(Media::Ssd)).unwrap_err();
    assert!(none.what.ends_with("has 0: none"), "{none}");
}

#[test]
fn a_command_for_monitors_is_json() {
    let command = crate::Command::new("osd pool ls").with("detail", "a \"b\"");
    let json: serde_json::Value = serde_json::from_str(&command.json()).unwrap();
    assert_eq!(json, serde_json::json!({ "prefix": "osd pool ls", "format": "json", "detail": "a \"b\"" }));
}

proptest! {
    #[test]
    fn damaged_prints_are_read_or_refused(
        which in 0_usize..4,
        at in any::<prop::sample::Index>(),
        by in prop_oneof![Just(""), Just("-"), Just("9"), Just("99999999999"), Just("\""), Just("}"), Just("null"), Just(",")],
        cut in 0_usize..6,
    ) {
        let mut texts = [PRINTED.file_systems, PRINTED.pools, PRINTED.rules, PRINTED.tree].map(<[u8]>::to_vec);
        let text = &mut texts[which];
        let from = at.index(text.len());
        let to = (from + cut).min(text.len());
        text.splice(from..to, by.bytes());
        let [file_systems, pools, rules, tree] = &texts;
        if let Ok(read) = Placement::read(Printed { file_systems, pools, rules, tree }, None) {
            for (class, _) in Class::NAMES {
                let _ = read.choose(class, Some(Media::Hdd));
                let _ = read.to_be_made(class, None);
            }
            let _ = shown(&read);
        }
    }
}
