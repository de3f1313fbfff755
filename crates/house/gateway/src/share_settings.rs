//! The settings of shares, as commands give them: of a gateway's own shares, and of those of vservers.

use std::path::Path;
use std::time::SystemTime;

use control::shares::{NewShare, Rules, Share, ShareChange};
use control::{Refusal, RefusalKind};
use limits::{Plan, Provisioned};
use share::Terms;
use state::{ShareRecord, rules};

use crate::kerberos::{KerberosSettings, check_names};
use crate::names::NameLookup;
use crate::problem::Problem;
use crate::settings::written_directory;

type Result<T> = std::result::Result<T, Refusal>;

fn invalid(what: impl Into<String>, advice: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::Invalid, what, advice)
}

/// On what terms clients are to use a new share.
pub(crate) fn asked_terms(new: &NewShare) -> Result<Terms> {
    let name = &new.name;
    let terms = terms_of(new) | flavors(name, &new.nfs_security)? | groups(name, &new.nfs_groups)?;
    let terms = terms | snapshot_folders(name, &new.nfs_snapshots)?;
    check_encryption(name, terms)?;
    Ok(terms)
}

fn terms_of(new: &NewShare) -> Terms {
    let mut terms = Terms::empty();
    terms.set(Terms::READ_ONLY, new.read_only);
    terms.set(Terms::GUESTS, new.guest);
    terms.set(Terms::ACCESS_BASED_ENUMERATION, new.access_based_enumeration);
    terms.set(Terms::CONTINUOUSLY_AVAILABLE, new.continuous_availability);
    // What TLS does for NFS, encryption does for SMB.
    terms.set(Terms::ENCRYPTED, new.encrypted || new.tls_required);
    terms.set(Terms::TLS, new.tls_required);
    terms.set(Terms::DEVICES, new.devices);
    terms.set(Terms::SET_ID, new.set_id);
    terms.set(Terms::SECURE_PORT, new.secure_port);
    terms.set(Terms::HIDDEN, new.hidden);
    terms.set(Terms::UNLOGGED, new.access_log == Some(false));
    terms
}

/// The terms of a share after a change.
pub(crate) fn changed_terms(name: &str, mut terms: Terms, change: &ShareChange) -> Result<Terms> {
    let encrypted = change.encrypted.or_else(|| change.tls_required.filter(|required| *required));
    let changes = [
        (Terms::READ_ONLY, change.read_only),
        (Terms::GUESTS, change.guest),
        (Terms::ACCESS_BASED_ENUMERATION, change.access_based_enumeration),
        (Terms::CONTINUOUSLY_AVAILABLE, change.continuous_availability),
        (Terms::ENCRYPTED, encrypted),
        (Terms::TLS, change.tls_required),
        (Terms::DEVICES, change.devices),
        (Terms::SET_ID, change.set_id),
        (Terms::SECURE_PORT, change.secure_port),
        (Terms::HIDDEN, change.hidden),
        (Terms::UNLOGGED, change.access_log.map(|logged| !logged)),
    ];
    for (term, wanted) in changes {
        terms.set(term, wanted.unwrap_or_else(|| terms.contains(term)));
    }
    if let Some(named) = &change.nfs_security {
        terms = (terms - Terms::RPC_FLAVORS) | flavors(name, named)?;
    }
    if let Some(word) = &change.nfs_groups {
        terms = (terms - Terms::GROUPS_OF_CLIENT - Terms::GROUPS_OF_SERVER) | groups(name, word)?;
    }
    if let Some(word) = &change.nfs_snapshots {
        terms = (terms - Terms::SNAPSHOT_FOLDERS) | snapshot_folders(name, word)?;
    }
    check_encryption(name, terms)?;
    Ok(terms)
}

/// Whether NFS clients find earlier versions.
fn snapshot_folders(name: &str, word: &str) -> Result<Terms> {
    let refused = |e| invalid(format!("the share {name}: {e}"), "docs/snapshots.md says what each does.");
    rules::parse_nfs_snapshots(word).map_err(refused)
}

/// Who says in which groups users of NFS are.
fn groups(name: &str, word: &str) -> Result<Terms> {
    let refused = |e| invalid(format!("the share {name}: {e}"), "docs/shares.md says what each does.");
    rules::parse_nfs_groups(word).map_err(refused)
}

/// The flavors with which NFS clients may use a share.
fn flavors(name: &str, named: &[String]) -> Result<Terms> {
    let refused = |e| invalid(format!("the share {name}: {e}"), "docs/kerberos.md says what each does.");
    rules::parse_nfs_security(named).map_err(refused)
}

/// Refuses terms about encryption that do not go together.
fn check_encryption(name: &str, terms: Terms) -> Result<()> {
    if terms.contains(Terms::TLS) && !terms.contains(Terms::ENCRYPTED) {
        let what = format!("the share {name} requires TLS, so it is encrypted");
        return Err(invalid(what, "Switch off tls-required, too."));
    }
    let refused = |e| invalid(format!("the share {name}: {e}"), "docs/kerberos.md has the rules.");
    rules::check_nfs_security(terms).map_err(refused)
}

/// The plan of a share, as it is written.
pub(crate) fn parse_plan(name: &str, plan: &str) -> Result<Plan> {
    plan.parse()
        .map_err(|e| invalid(format!("the plan of the share {name}: {e}"), "docs/plans.md has all plans."))
}

/// What is provisioned for a share when it gets another plan now.
pub(crate) fn changed_plan(record: &ShareRecord, plan: Plan) -> Result<Provisioned> {
    let before = record.provisioned().unwrap_or_default();
    before.change(plan, SystemTime::now()).map_err(|e| {
        let what = format!("the share {}: {e}", record.name);
        Refusal::new(
            RefusalKind::Plan,
            what,
            "This is a rule of the plan. An increase is possible at any time.",
        )
    })
}

/// Checks what a share is to have for rules. Whom names of a domain mean is said by these settings; None: no server runs.
pub(crate) fn check_rules(name: &str, rules: &Rules, kerberos: Option<&KerberosSettings>) -> Result<()> {
    let refused = |e| invalid(format!("the share {name}: {e}"), "docs/shares.md has the forms.");
    let rules = rules::parse(rules).map_err(refused)?;
    let Some(kerberos) = kerberos else { return Ok(()) };
    check_names(name, &rules.rights, kerberos).map_err(|Problem { what, advice, .. }| invalid(what, advice))
}

/// Has a share that is served use other terms and rules. Clients that the rules no longer admit, or admit differently, lose their opens.
pub(crate) fn use_rules(share: &share::Share, terms: Terms, rules: share::Rules, names: &NameLookup) {
    if (share.terms(), &*share.rules()) != (terms, &rules) {
        share.set_terms(terms);
        share.set_rules(rules);
        names.look_again();
    }
}

/// Has a share that is served use another plan. False: it has that already.
pub(crate) fn use_plan(share: &share::Share, plan: Plan) -> Result<bool> {
    if share.plan() == plan {
        return Ok(false);
    }
    let late = |e| Refusal::new(RefusalKind::Plan, format!("the share {}: {e}", share.name()), "");
    share.set_plan(plan, SystemTime::now()).map_err(late)?;
    Ok(true)
}

/// Checks the comment of a share.
pub(crate) fn check_comment(name: &str, comment: &str) -> Result<()> {
    rules::check_comment(comment)
        .map_err(|e| invalid(format!("the share {name}: {e}"), "Take a shorter one."))
}

/// What is told of a share with these terms, before what only its server knows.
pub(crate) fn tell(name: &str, directory: &Path, terms: Terms, plan: String) -> Share {
    let billing = plan.parse().ok().and_then(|plan: Plan| plan.billing()).map(str::to_owned);
    Share {
        name: name.to_owned(),
        directory: written_directory(directory, terms).to_string_lossy().into_owned(),
        declared_in: None,
        served: false,
        problem: None,
        alarms: Vec::new(),
        read_only: terms.contains(Terms::READ_ONLY),
        guest: terms.contains(Terms::GUESTS),
        access_based_enumeration: terms.contains(Terms::ACCESS_BASED_ENUMERATION),
        continuous_availability: terms.contains(Terms::CONTINUOUSLY_AVAILABLE),
        encrypted: terms.contains(Terms::ENCRYPTED),
        tls_required: terms.contains(Terms::TLS),
        nfs_security: rules::write_nfs_security(terms),
        nfs_groups: rules::write_nfs_groups(terms),
        nfs_snapshots: rules::write_nfs_snapshots(terms),
        devices: terms.contains(Terms::DEVICES),
        set_id: terms.contains(Terms::SET_ID),
        secure_port: terms.contains(Terms::SECURE_PORT),
        hidden: terms.contains(Terms::HIDDEN),
        comment: String::new(),
        metadata_cache: true,
        access_log: !terms.contains(Terms::UNLOGGED),
        rules: Rules::default(),
        served_by: Vec::new(),
        snapshot_policy: String::new(),
        recycle_bin: String::new(),
        ransomware_alarm: String::new(),
        snapshots: None,
        encryption_at_rest: None,
        restorable_until: None,
        pool: None,
        size: None,
        redundancy: None,
        tier: None,
        billing,
        plan,
    }
}
