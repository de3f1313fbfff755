use super::*;

const TIMEOUTS: Timeouts = Timeouts {
    durable: Duration::from_secs(120),
    durable_v2: Duration::from_secs(60),
    durable_v2_max: Duration::from_secs(300),
    resilient: Duration::from_secs(90),
    resilient_max: Duration::from_secs(300),
};

const DURABLE: Durability = Durability { kind: Kind::Durable, timeout: Duration::from_secs(120) };
const PERSISTENT: Durability = Durability { kind: Kind::Persistent, timeout: Duration::from_secs(60) };
const RESILIENT: Durability = Durability { kind: Kind::Resilient, timeout: Duration::from_secs(60) };
const KEY: [u8; 16] = [7; 16];
const LEASE: Option<LeaseName> = Some(LeaseName { key: KEY, version: 2 });

const ANNA: User<'_> = User { name: "anna", sid: None };
const OTTO: User<'_> = User { name: "otto", sid: None };

fn guid(byte: u8) -> Guid {
    Guid([byte; 16])
}

fn known() -> KnownOpen<'static> {
    KnownOpen {
        durability: Some(DURABLE),
        create_guid: guid(1),
        client_guid: guid(2),
        owner: ANNA,
        lease: LEASE,
        keeps_handle: true,
        delete_on_close: false,
    }
}

fn asked() -> Reconnect<'static> {
    Reconnect {
        v2: Some(ReconnectV2 { create_guid: guid(1), persistent: false }),
        client_guid: guid(2),
        user: ANNA,
        lease: LEASE,
        names_file: true,
    }
}

#[test]
fn contexts_of_both_versions_do_not_come_together() {
    for bits in 0..16_u8 {
        let bit = |n: u8| bits & (1 << n) != 0;
        let contexts =
            Contexts { request: bit(0), reconnect: bit(1), request_v2: bit(2), reconnect_v2: bit(3) };
        let sense = bits & 0b1100 == 0 || bits == 0b0100 || bits == 0b1000;
        assert_eq!(contexts.check().is_ok(), sense, "{contexts:?}");
    }
}

#[test]
fn only_who_may_keep_the_handle_gets_a_durable_one() {
    let v2 = Request::V2 { timeout_ms: 0, persistent: false };
    for request in [Request::V1, v2] {
        assert_eq!(grant(request, false, false, true, &TIMEOUTS), None);
        assert_eq!(grant(request, true, true, true, &TIMEOUTS), None, "a directory");
        assert_eq!(grant(request, true, false, true, &TIMEOUTS).map(|d| d.kind), Some(Kind::Durable));
    }
}

#[test]
fn a_persistent_handle_needs_nothing_but_the_share() {
    let request = Request::V2 { timeout_ms: 0, persistent: true };
    assert_eq!(grant(request, false, false, true, &TIMEOUTS), Some(PERSISTENT));
    assert_eq!(grant(request, false, false, false, &TIMEOUTS), None);
    assert_eq!(grant(request, true, false, false, &TIMEOUTS).map(|d| d.kind), Some(Kind::Durable));
    assert_eq!(grant(request, true, true, true, &TIMEOUTS), None, "a directory");
}

#[test]
fn the_second_version_says_for_how_long_up_to_a_maximum() {
    let seconds = |timeout_ms| {
        let request = Request::V2 { timeout_ms, persistent: false };
        grant(request, true, false, false, &TIMEOUTS).unwrap().timeout.as_secs()
    };
    assert_eq!([0, 5000, 300_000, 300_001, u32::MAX].map(seconds), [60, 5, 300, 300, 300]);
    assert_eq!(grant(Request::V1, true, false, false, &TIMEOUTS), Some(DURABLE));
}

#[test]
fn resilience_is_asked_for_within_limits() {
    let seconds = |timeout_ms| resilient(None, timeout_ms, &TIMEOUTS).map(|d| (d.kind, d.timeout.as_secs()));
    assert_eq!(seconds(0), Ok((Kind::Resilient, 90)));
    // The comparison is in seconds.
    assert_eq!(seconds(300_999), Ok((Kind::Resilient, 300)));
    assert_eq!(seconds(301_000), Err(NtStatus::INVALID_PARAMETER));
    assert_eq!(resilient(Some(DURABLE), 60_000, &TIMEOUTS), Ok(RESILIENT));
    assert_eq!(resilient(Some(PERSISTENT), 1, &TIMEOUTS), Ok(PERSISTENT));
}

#[test]
fn what_survives_a_disconnection() {
    assert!(DURABLE.survives(true) && !DURABLE.survives(false));
    assert!(RESILIENT.survives(false) && PERSISTENT.survives(false));
}

#[test]
fn the_same_client_gets_its_open_back() {
    assert_eq!(check_reconnect(&known(), &asked()), Ok(()));
    // Version 1 does not identify the CREATE.
    assert_eq!(check_reconnect(&known(), &Reconnect { v2: None, ..asked() }), Ok(()));
    // Without a lease neither the client nor the name matters.
    let known = KnownOpen { lease: None, ..known() };
    let asked = Reconnect { lease: None, client_guid: guid(9), names_file: false, ..asked() };
    assert_eq!(check_reconnect(&known, &asked), Ok(()));
}

#[test]
fn what_is_not_the_open_that_is_meant_is_not_found() {
    let (known, asked) = (known(), asked());
    let other = |create_guid| Some(ReconnectV2 { create_guid, persistent: false });
    let persistent = KnownOpen { durability: Some(PERSISTENT), ..known };
    let cases = [
        (KnownOpen { durability: None, ..known }, asked),
        (KnownOpen { keeps_handle: false, ..known }, asked),
        (known, Reconnect { client_guid: guid(9), ..asked }),
        (known, Reconnect { v2: other(guid(9)), ..asked }),
        (known, Reconnect { lease: None, names_file: false, ..asked }),
        (KnownOpen { lease: None, ..known }, asked),
        (known, Reconnect { lease: Some(LeaseName { key: [8; 16], version: 2 }), ..asked }),
        (known, Reconnect { lease: Some(LeaseName { key: KEY, version: 1 }), ..asked }),
        (persistent, asked),
    ];
    for (number, (known, asked)) in cases.iter().enumerate() {
        assert_eq!(check_reconnect(known, asked), Err(NtStatus::OBJECT_NAME_NOT_FOUND), "case {number}");
    }
}

#[test]
fn another_name_or_more_persistence_is_an_invalid_parameter() {
    let wrong = Err(NtStatus::INVALID_PARAMETER);
    let elsewhere = Reconnect { names_file: false, ..asked() };
    assert_eq!(check_reconnect(&known(), &elsewhere), wrong);
    assert_eq!(check_reconnect(&KnownOpen { delete_on_close: true, ..known() }, &elsewhere), Ok(()));
    let persistent = Some(ReconnectV2 { create_guid: guid(1), persistent: true });
    assert_eq!(check_reconnect(&known(), &Reconnect { v2: persistent, ..asked() }), wrong);
}

#[test]
fn another_user_is_denied() {
    let other = Reconnect { user: OTTO, ..asked() };
    assert_eq!(check_reconnect(&known(), &other), Err(NtStatus::ACCESS_DENIED));
}

/// A user is a SID: who has got the name of another one is not that user, and who has been renamed still is.
#[test]
fn users_are_the_same_by_their_sids() {
    let user = |name, rid| User { name, sid: Some(format!("S-1-5-21-1-2-3-{rid}").parse().unwrap()) };
    let (anna, renamed, namesake) = (user("anna", 1104), user("berta", 1104), user("anna", 1105));
    for (owner, user, is_same) in [
        (anna, anna, true),
        (anna, renamed, true),
        (anna, namesake, false),
        // Where only one of both has a SID, the names decide.
        (anna, ANNA, true),
        (ANNA, anna, true),
        (renamed, ANNA, false),
    ] {
        let expected = if is_same { Ok(()) } else { Err(NtStatus::ACCESS_DENIED) };
        let known = KnownOpen { owner, ..known() };
        assert_eq!(check_reconnect(&known, &Reconnect { user, ..asked() }), expected, "{owner:?} {user:?}");
        assert_eq!(check_replay(&known, &Replay { user, ..replay() }), expected, "{owner:?} {user:?}");
    }
}

#[test]
fn persistent_and_resilient_opens_need_no_cached_handle() {
    let v2 = Some(ReconnectV2 { create_guid: guid(1), persistent: true });
    let persistent = KnownOpen { durability: Some(PERSISTENT), keeps_handle: false, ..known() };
    assert_eq!(check_reconnect(&persistent, &Reconnect { v2, ..asked() }), Ok(()));
    let resilient = KnownOpen { durability: Some(RESILIENT), keeps_handle: false, ..known() };
    assert_eq!(check_reconnect(&resilient, &asked()), Ok(()));
}

fn replay() -> Replay<'static> {
    Replay { flagged: true, user: ANNA, lease: LEASE, persistent: false, other_session: false }
}

#[test]
fn a_replay_gets_the_open_that_was_made() {
    assert_eq!(check_replay(&known(), &replay()), Ok(()));
    assert_eq!(check_replay(&known(), &Replay { lease: None, ..replay() }), Ok(()));
    let persistent = KnownOpen { durability: Some(PERSISTENT), ..known() };
    assert_eq!(check_replay(&persistent, &Replay { persistent: true, ..replay() }), Ok(()));
    // A replay may ask for a property that the open does not have.
    assert_eq!(check_replay(&known(), &Replay { persistent: true, ..replay() }), Ok(()));
}

#[test]
fn what_is_no_replay_is_refused() {
    let duplicate = Err(NtStatus::DUPLICATE_OBJECTID);
    let denied = Err(NtStatus::ACCESS_DENIED);
    assert_eq!(check_replay(&known(), &Replay { flagged: false, ..replay() }), duplicate);
    assert_eq!(check_replay(&known(), &Replay { other_session: true, ..replay() }), duplicate);
    assert_eq!(check_replay(&known(), &Replay { user: OTTO, ..replay() }), denied);
    let other = Some(LeaseName { key: [8; 16], version: 2 });
    assert_eq!(check_replay(&known(), &Replay { lease: other, ..replay() }), denied);
    assert_eq!(check_replay(&KnownOpen { lease: None, ..known() }, &replay()), denied);
    let persistent = KnownOpen { durability: Some(PERSISTENT), ..known() };
    assert_eq!(check_replay(&persistent, &replay()), Err(NtStatus::INVALID_PARAMETER));
}

#[test]
fn opens_that_touch_data_can_be_replayed() {
    let attributes = AccessMask::READ_ATTRIBUTES;
    assert!(is_replay_eligible(None, false, AccessMask::READ_DATA));
    assert!(is_replay_eligible(Some(Kind::Durable), false, AccessMask::DELETE));
    assert!(!is_replay_eligible(Some(Kind::Durable), false, attributes));
    assert!(!is_replay_eligible(None, true, AccessMask::READ_DATA));
    assert!(is_replay_eligible(Some(Kind::Persistent), true, attributes));
}

#[test]
fn an_application_yields_to_a_later_version_of_itself_only() {
    let closed = Err(NtStatus::FILE_FORCED_CLOSED);
    assert_eq!(check_app_instance(None, None), Ok(()));
    assert_eq!(check_app_instance(None, Some((0, 0))), Ok(()));
    assert_eq!(check_app_instance(Some((1, 5)), Some((1, 6))), Ok(()));
    assert_eq!(check_app_instance(Some((1, 5)), Some((2, 0))), Ok(()));
    assert_eq!(check_app_instance(Some((1, 5)), Some((1, 5))), closed);
    assert_eq!(check_app_instance(Some((2, 0)), Some((1, 9))), closed);
    assert_eq!(check_app_instance(Some((0, 1)), None), closed);
}
