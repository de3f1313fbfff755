use std::collections::BTreeSet;

use serde_json::Value;

use axum::extract::Request;

use super::*;
use crate::activity::{
    Activity, ApiActivity, CacheActivity, ClientActivity, ClientShareActivity, LatencyCount, LimitWaits,
    ShareActivity, SizeCount,
};
use crate::clients::Clients;
use crate::cluster::{
    Cluster, ClusterGateway, Drained, NewKeytab, NewVserver, ShareMove, Vserver, VserverKey, VserverMove,
    VserverShare, VserverShares, Vservers,
};
use crate::configuration::{ConfigurationMistake, Section, Setting, Source};
use crate::deleted_shares::{DeletedShare, DeletedShares, Undelete};
use crate::domain::{Domain, DomainRange, Lookups};
use crate::explain::Finding;
use crate::files::{Files, Lock, Locks, OpenFile, OpenedBy};
use crate::findings::{ClientFindings, Findings};
use crate::identities::{Knowledge, TestFinding, TestedGroup, TestedShare, TestedUser};
use crate::policies::{NewPolicy, Policies, Policy, PolicyChange};
use crate::pools::{Pool, Pools, RemovedDirectory};
use crate::program::{AdvicePiece, Advices, AdvisedChange, Log, LogLine, WorkAdvice};
use crate::quotas::{Holder, NewQuota, Quota, Quotas};
use crate::ransomware::{RansomwareAlarm, RansomwareAlarms};
use crate::redundancy::{Redundancy, Tier};
use crate::replications::{
    Destination, Destinations, NewReplication, NewTransfer, Replication, ReplicationAction,
    ReplicationChange, SourceShare, Transfer,
};
use crate::restores::{LeftAlone, NewRestore, Restore};
use crate::shares::{NewShare, Rules, RulesChange, Share, ShareChange, Shares};
use crate::sign_in::{NewSignIn, SignIn};
use crate::simulation::{NewSimulation, Percentiles, SimulatedCredits, SimulatedLimit, SimulatedPlan};
use crate::snapshots::{NewSnapshot, Snapshot, SnapshotChange, SnapshotRevert, SnapshotSummary, Snapshots};
use crate::status::{ShareStatus, Status};
use crate::tokens::{MadeToken, NewToken, Scope, TokenInfo, Tokens};
use crate::users::{NewUser, Password, User, UserChange, Users};

fn described() -> Value {
    crate::openapi::document().unwrap()
}

#[test]
fn every_route_is_described_and_nothing_else() {
    let described = described();
    let methods = |(path, item): (&String, &Value)| {
        let methods = item.as_object().unwrap().keys().filter(|key| *key != "parameters");
        methods.map(|method| (path.clone(), method.clone())).collect::<Vec<_>>()
    };
    let told: BTreeSet<_> = described["paths"].as_object().unwrap().iter().flat_map(methods).collect();
    let there = ROUTES.iter().flat_map(|route| {
        route.methods.iter().map(|method| (route.path.to_owned(), (*method).to_owned())).collect::<Vec<_>>()
    });
    assert_eq!(told, there.collect());
    for route in ROUTES.iter().filter(|route| route.path.contains("{name}")) {
        let parameter = &described["paths"][route.path]["parameters"][0];
        assert_eq!(parameter["$ref"], "#/components/parameters/Name", "{}", route.path);
    }
}

/// The handlers of a route have the methods that the table states.
#[tokio::test]
async fn routes_have_the_methods_that_they_say() {
    use axum::http::Method;
    use hyper_util::service::TowerToHyperService;
    let about = crate::tests::about();
    for route in ROUTES {
        for method in [Method::GET, Method::POST, Method::PATCH, Method::DELETE, Method::PUT] {
            let router = Router::new().route(route.path, (route.handlers)()).with_state(Arc::clone(&about));
            let path = route.path.replace("{name}", "x");
            let request = Request::builder().method(method.clone()).uri(path).body(axum::body::Body::empty());
            let service = TowerToHyperService::new(router);
            let answer = hyper::service::Service::call(&service, request.unwrap()).await.unwrap();
            let has = route.methods.contains(&method.as_str().to_lowercase().as_str());
            assert_eq!(answer.status() != StatusCode::METHOD_NOT_ALLOWED, has, "{method} {}", route.path);
        }
    }
}

fn json(value: impl Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

fn a_user() -> User {
    User {
        name: String::new(),
        declared_in: None,
        disabled: false,
        uid: 0,
        gid: 0,
        groups: Vec::new(),
        sid: None,
        aes_keys: true,
    }
}

fn a_share() -> Share {
    Share {
        name: String::new(),
        directory: String::new(),
        declared_in: None,
        served: true,
        problem: None,
        alarms: vec![String::new()],
        read_only: false,
        guest: false,
        access_based_enumeration: false,
        continuous_availability: false,
        encrypted: false,
        tls_required: false,
        nfs_security: Vec::new(),
        nfs_groups: String::new(),
        nfs_snapshots: "off".to_owned(),
        devices: false,
        set_id: false,
        secure_port: false,
        hidden: false,
        comment: String::new(),
        metadata_cache: true,
        access_log: true,
        plan: String::new(),
        rules: Rules::default(),
        served_by: Vec::new(),
        snapshot_policy: String::new(),
        recycle_bin: "off".to_owned(),
        ransomware_alarm: "off".to_owned(),
        encryption_at_rest: None,
        restorable_until: None,
        pool: None,
        size: None,
        redundancy: None,
        tier: None,
        billing: None,
        snapshots: None,
    }
}

fn an_open_file() -> OpenFile {
    let client =
        OpenedBy { address: None, connected: false, user: None, uid: None, session: None, name: None };
    OpenFile {
        id: FileId { share: 1, open: 2 },
        share: String::new(),
        path: String::new(),
        protocol: String::new(),
        client,
        directory: false,
        delegation: false,
        access: Vec::new(),
        sharing: Vec::new(),
        caching: Vec::new(),
        delete_on_close: false,
        locks: 0,
    }
}

fn a_lock() -> Lock {
    let OpenFile { id, share, path, protocol, client, .. } = an_open_file();
    let (exclusive, mandatory, offset, length) = (true, true, 0, None);
    Lock { file: id, share, path, protocol, client, exclusive, mandatory, offset, length }
}

fn a_setting() -> Setting {
    Setting {
        key: String::new(),
        value: Value::Null,
        source: Source::Default,
        file: None,
        line: None,
        variable: None,
    }
}

fn an_api() -> ApiActivity {
    ApiActivity {
        protocol: String::new(),
        api: String::new(),
        calls: 0,
        errors: 0,
        bytes: 0,
        small: 0,
        throttled: 0,
        seconds: 0.0,
        limit_seconds: 0.0,
        queue_seconds: 0.0,
        storage_seconds: 0.0,
        network_seconds: 0.0,
    }
}

fn a_share_change() -> ShareChange {
    let yes = Some(true);
    ShareChange {
        size: Some(1 << 30),
        read_only: yes,
        guest: yes,
        access_based_enumeration: yes,
        continuous_availability: yes,
        encrypted: yes,
        tls_required: yes,
        nfs_security: Some(Vec::new()),
        nfs_groups: Some(String::new()),
        nfs_snapshots: Some("off".to_owned()),
        metadata_cache: yes,
        access_log: yes,
        plan: Some(String::new()),
        tier: Some(String::new()),
        snapshot_policy: Some(String::new()),
        recycle_bin: Some("on".to_owned()),
        ransomware_alarm: Some("off".to_owned()),
        devices: yes,
        set_id: yes,
        secure_port: yes,
        hidden: yes,
        comment: Some(String::new()),
        rules: all_rules(),
    }
}

fn all_rules() -> RulesChange {
    let none = Some(Vec::new());
    RulesChange {
        protocols: none.clone(),
        clients: none.clone(),
        read: none.clone(),
        write: none.clone(),
        elevated: none.clone(),
        admin: none,
        default_role: Some(String::new()),
    }
}

/// The types of the status, and of what clients hold.
fn of_holdings() -> [(&'static str, Value); 9] {
    [
        ("Files", json(Files::default())),
        ("OpenFile", json(an_open_file())),
        ("OpenedBy", json(an_open_file().client)),
        ("ClosedFile", json(Closed { id: an_open_file().id })),
        ("Locks", json(Locks::default())),
        ("Lock", json(a_lock())),
        ("Disconnected", json(Disconnected::default())),
        ("Status", json(Status::default())),
        ("ShareStatus", json(ShareStatus::default())),
    ]
}

fn a_new_sign_in() -> NewSignIn {
    let text = Some(String::new());
    NewSignIn { token: text.clone(), user: text.clone(), password: text }
}

/// The types of sign-ins, of the log, of advice and of findings.
fn of_program() -> [(&'static str, Value); 11] {
    [
        ("NewSignIn", json(a_new_sign_in())),
        (
            "SignIn",
            json(SignIn { token: None, user: None, scope: Scope::Read, csrf: None, seconds_left: None }),
        ),
        ("Log", json(Log::default())),
        ("LogLine", json(LogLine::default())),
        ("Advices", json(Advices::default())),
        ("WorkAdvice", json(WorkAdvice::default())),
        ("AdvicePiece", json(AdvicePiece::default())),
        ("AdvisedChange", json(AdvisedChange::default())),
        ("Findings", json(Findings::default())),
        ("ClientFindings", json(ClientFindings::default())),
        ("Finding", json(Finding::default())),
    ]
}

/// The types of a user who is tested, and of domains.
fn of_identities() -> [(&'static str, Value); 7] {
    let user = TestedUser {
        asked: String::new(),
        known: Knowledge::Unknown,
        name: None,
        sid: None,
        uid: None,
        gid: None,
        groups: Vec::new(),
        ticket_seconds_ago: None,
        rule: String::new(),
        shares: Vec::new(),
        findings: Vec::new(),
    };
    [
        ("TestedUser", json(user)),
        ("TestedGroup", json(TestedGroup { sid: None, gid: None })),
        ("TestedShare", json(TestedShare { share: String::new(), role: None, by: None })),
        ("TestFinding", json(TestFinding::default())),
        ("Domain", json(Domain::default())),
        ("DomainRange", json(DomainRange::default())),
        ("Lookups", json(Lookups::default())),
    ]
}

/// The types of shares.
fn of_shares() -> [(&'static str, Value); 9] {
    let yes = Some(true);
    [
        ("Share", json(a_share())),
        ("Shares", json(Shares::default())),
        (
            "NewShare",
            json(NewShare {
                metadata_cache: yes,
                access_log: yes,
                plan: Some(String::new()),
                redundancy: Some(String::new()),
                tier: Some(String::new()),
                snapshot_policy: "office".to_owned(),
                recycle_bin: "on".to_owned(),
                ransomware_alarm: "off".to_owned(),
                rules: all_rules(),
                from: Some(String::new()),
                directory: "/".to_owned(),
                pool: Some(String::new()),
                size: Some(1),
                uid: Some(0),
                gid: Some(0),
                ..NewShare::default()
            }),
        ),
        ("DeletedShares", json(DeletedShares::default())),
        ("DeletedShare", json(DeletedShare::default())),
        ("Undelete", json(Undelete { name: Some(String::new()), restored: true })),
        ("ShareChange", json(a_share_change())),
        ("Rules", json(Rules::default())),
        ("RulesChange", json(all_rules())),
    ]
}

/// The types of snapshots and of their policies, and of pools.
fn of_snapshots() -> [(&'static str, Value); 18] {
    let new =
        NewSnapshot { label: Some(String::new()), protect_for_seconds: Some(1), protected_until: Some(1) };
    let text = Some(String::new());
    let policy = NewPolicy {
        name: String::new(),
        hourly: text.clone(),
        daily: text.clone(),
        weekly: text.clone(),
        monthly: text.clone(),
    };
    let change =
        PolicyChange { hourly: text.clone(), daily: text.clone(), weekly: text.clone(), monthly: text };
    [
        ("Pools", json(Pools::default())),
        ("Pool", json(Pool::default())),
        ("RemovedDirectory", json(RemovedDirectory::default())),
        ("Policies", json(Policies::default())),
        ("Policy", json(Policy::default())),
        ("NewPolicy", json(policy)),
        ("PolicyChange", json(change)),
        ("Snapshots", json(Snapshots::default())),
        ("Snapshot", json(Snapshot::default())),
        ("NewSnapshot", json(new)),
        ("SnapshotChange", json(SnapshotChange::default())),
        ("SnapshotRevert", json(SnapshotRevert::default())),
        ("SnapshotSummary", json(SnapshotSummary::default())),
        ("Redundancy", json(Redundancy::default())),
        ("Tier", json(Tier::default())),
        ("NewRestore", json(NewRestore { to: Some(String::new()), ..NewRestore::default() })),
        ("Restore", json(Restore::default())),
        ("LeftAlone", json(LeftAlone::default())),
    ]
}

/// The types of replication.
fn of_replications() -> [(&'static str, Value); 8] {
    let new = NewReplication {
        certificate: "x".to_owned(),
        every_seconds: Some(1),
        bandwidth: Some(1),
        reverse: true,
        ..NewReplication::default()
    };
    let source = SourceShare { was_destination: Some(String::new()), ..SourceShare::default() };
    let transfer = NewTransfer {
        completed: Some(String::new()),
        pending: Some(String::new()),
        ..NewTransfer::default()
    };
    [
        ("Replication", json(Replication::default())),
        ("NewReplication", json(new)),
        ("ReplicationChange", json(ReplicationChange { action: ReplicationAction::Now })),
        ("Destinations", json(Destinations::default())),
        ("Destination", json(Destination::default())),
        ("SourceShare", json(source)),
        ("NewTransfer", json(transfer)),
        ("Transfer", json(Transfer::default())),
    ]
}

/// The types of clusters.
fn of_clusters() -> [(&'static str, Value); 12] {
    let new = NewVserver {
        gateway: Some(String::new()),
        smb_port: Some(445),
        nfs_port: Some(2049),
        ..NewVserver::default()
    };
    [
        ("Cluster", json(Cluster::default())),
        ("ClusterGateway", json(ClusterGateway::default())),
        ("Vservers", json(Vservers::default())),
        ("Vserver", json(Vserver::default())),
        ("VserverShare", json(VserverShare::default())),
        ("VserverKey", json(VserverKey::default())),
        ("NewKeytab", json(NewKeytab::default())),
        ("NewVserver", json(new)),
        ("VserverMove", json(VserverMove::default())),
        ("ShareMove", json(ShareMove::default())),
        ("VserverShares", json(VserverShares::default())),
        ("Drained", json(Drained::default())),
    ]
}

/// The types of quotas.
fn of_quotas() -> [(&'static str, Value); 4] {
    let some = Some(1);
    [
        ("Quotas", json(Quotas::default())),
        ("Quota", json(Quota::default())),
        ("QuotaHolder", json(Holder::default())),
        ("NewQuota", json(NewQuota { soft: some, hard: some, grace: some })),
    ]
}

/// The types of ransomware alarms.
fn of_ransomware() -> [(&'static str, Value); 2] {
    [
        ("RansomwareAlarms", json(RansomwareAlarms::default())),
        ("RansomwareAlarm", json(RansomwareAlarm::default())),
    ]
}

/// The types of simulations, and of distributions.
fn of_simulations() -> [(&'static str, Value); 7] {
    [
        ("NewSimulation", json(NewSimulation { credits: Some(1), ..NewSimulation::default() })),
        ("SimulatedPlan", json(SimulatedPlan::default())),
        ("Percentiles", json(Percentiles::default())),
        ("SimulatedLimit", json(SimulatedLimit::default())),
        ("SimulatedCredits", json(SimulatedCredits::default())),
        ("LatencyCount", json(LatencyCount { seconds_max: None, calls: 1 })),
        ("SizeCount", json(SizeCount { bytes_max: None, calls: 1 })),
    ]
}

/// The fields of the types match their descriptions. The values contain everything that may be left out.
#[test]
fn every_type_is_described_with_its_fields() {
    let described = described();
    let schemas = described["components"]["schemas"].as_object().unwrap();
    let user = a_user();
    let yes = Some(true);
    let (id, groups, password) = (Some(1), Some(Vec::new()), Some(Password::default()));
    let new_user = NewUser { uid: id, gid: id, groups: groups.clone(), ..NewUser::default() };
    let user_change = UserChange { password, uid: id, gid: id, groups, disabled: yes };
    let waits = LimitWaits { limit: String::new(), operations: 0, seconds: 0.0 };
    let values = [
        ("User", json(user)),
        ("Users", json(Users::default())),
        ("NewUser", json(new_user)),
        ("UserChange", json(user_change)),
        ("Tokens", json(Tokens::default())),
        ("Token", json(TokenInfo { name: String::new(), scope: Scope::Read, made: 0 })),
        ("NewToken", json(NewToken { name: String::new(), scope: Scope::Read })),
        (
            "MadeToken",
            json(MadeToken { name: String::new(), scope: Scope::Read, made: 0, token: String::new() }),
        ),
        ("NewTrace", json(NewTrace { seconds: 1 })),
        ("TracePart", json(TracePart::default())),
        (
            "Configuration",
            json(Configuration { reload: Some(Reload::default()), ..Configuration::default() }),
        ),
        ("ConfigurationSection", json(Section::default())),
        ("ConfigurationSetting", json(a_setting())),
        ("ConfigurationMistake", json(ConfigurationMistake::default())),
        ("Reload", json(Reload::default())),
        ("Activity", json(Activity::default())),
        ("ShareActivity", json(ShareActivity::default())),
        ("LimitWaits", json(waits)),
        ("CacheActivity", json(CacheActivity::default())),
        ("ApiActivity", json(an_api())),
        ("ClientActivity", json(ClientActivity::default())),
        ("ClientShareActivity", json(ClientShareActivity::default())),
        ("Clients", json(Clients::default())),
        ("ApiError", json(ApiError { error: String::new(), message: String::new(), advice: String::new() })),
    ];
    let others = of_holdings()
        .into_iter()
        .chain(of_program())
        .chain(of_simulations())
        .chain(of_identities())
        .chain(of_snapshots())
        .chain(of_clusters())
        .chain(of_quotas())
        .chain(of_ransomware())
        .chain(of_replications())
        .chain(of_shares());
    let values: Vec<_> = values.into_iter().chain(others).collect();
    let names: BTreeSet<_> = values.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, schemas.keys().map(String::as_str).collect());
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    for (name, value) in &values {
        assert_eq!(keys(value), keys(&schemas[*name]["properties"]), "{name}");
    }
    for (name, least) in [
        ("NewShare", keys(&serde_json::json!({ "name": "" }))),
        ("NewUser", keys(&serde_json::json!({ "name": "", "password": "" }))),
    ] {
        let required = schemas[name]["required"].as_array().unwrap().iter();
        assert_eq!(required.map(|key| key.as_str().unwrap().to_owned()).collect::<BTreeSet<_>>(), least);
    }
}
