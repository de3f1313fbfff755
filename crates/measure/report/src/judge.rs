//! The documents' statements against results: one line each, and one finding for each result that speaks to it.

use serde::Serialize;

use super::beside::compare_rows;
use super::claim::{Claim, Need, Test};
use super::claims::{DOCUMENTS, Document};
use super::evidence::{Case, Judgement, Verdict, cases, figure, judgement_of};
use super::words;
use advise::Profile;
use advise::title;
use load::result::{Protocol, ResultFile};

/// A document's statements.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// The document.
    pub document: String,
    /// Its address.
    pub link: &'static str,
    /// Where else its statements stand, in words; empty where nowhere.
    pub also: &'static str,
    /// The statements.
    pub statements: Vec<Statement>,
}

/// A statement, and what results say of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Statement {
    /// Its number, such as `1.20`.
    pub id: &'static str,
    /// The line of the document that it stands in.
    pub line: u32,
    /// The heading of the section that it is in.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub section: &'static str,
    /// The address of that section.
    pub link: String,
    /// What it says.
    pub statement: &'static str,
    /// Its figure, in the document's words.
    pub figure: &'static str,
    /// A slip of the document, or what the measurement does otherwise.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub note: &'static str,
    /// What results say of it: at least one.
    pub findings: Vec<Finding>,
}

/// Why a statement cannot be tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Obstacle {
    /// No result has the rows; a family makes them.
    NotMeasured,
    /// The statement is about something that was not there: a network, a service.
    Conditions,
    /// The measurement is not exact enough, or not sound.
    Noise,
    /// No measurement of this program speaks to it, or the document has no figure.
    Untestable,
}

/// What one result says of a statement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The result: its place in the report's runs. None where no result speaks to the statement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<usize>,
    /// What became of the statement, in three words.
    pub verdict: Verdict,
    /// What became of it.
    pub judgement: Judgement,
    /// What keeps it from being tested, where something does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<Obstacle>,
    /// Why.
    pub reason: String,
    /// The rows that say so.
    pub cases: Vec<Case>,
}

/// All statements against all results.
pub(super) fn judge(results: &[&ResultFile], profile: Profile) -> Vec<Table> {
    let table = |document: &Document| Table {
        document: document.claims.first().map_or_else(String::new, |claim| title(claim.id).to_owned()),
        link: document.claims.first().and_then(|claim| advise::document_of(claim.id)).map_or("", |d| d.url),
        also: document.also,
        statements: document
            .claims
            .iter()
            .map(|claim| statement(document, claim, results, profile))
            .collect(),
    };
    DOCUMENTS.iter().map(table).collect()
}

fn statement(document: &Document, claim: &Claim, results: &[&ResultFile], profile: Profile) -> Statement {
    let speak = results.iter().enumerate().filter(|(_, result)| {
        claim.test.families().contains(&result.family.as_str())
            && document.protocols.contains(&result.environment.protocol)
    });
    let speak: Vec<(usize, &ResultFile)> = speak.map(|(n, result)| (n, *result)).collect();
    let mut findings = match claim.test {
        Test::Between { .. } => between(claim, &speak),
        _ => speak.iter().filter_map(|(n, result)| finding(claim, *n, result, profile)).collect(),
    };
    if findings.is_empty() {
        findings.push(nothing(document, claim));
    }
    let Claim { id, line, statement, figure, note, .. } = *claim;
    let place = advise::Statement { id, line };
    let section = place.section().map_or("", |section| section.heading);
    Statement { id, line, section, link: place.link(), statement, figure, note, findings }
}

/// What a result says of a statement, if it has rows for it.
fn finding(claim: &Claim, run: usize, result: &ResultFile, profile: Profile) -> Option<Finding> {
    let cases = cases(&claim.test, result);
    if cases.is_empty() {
        return None;
    }
    let unmet = claim.needs.iter().find_map(|need| unmet(*need, result, profile));
    Some(match unmet {
        Some(reason) => Finding {
            run: Some(run),
            verdict: Verdict::CannotBeTested,
            judgement: Judgement::CannotBeTested,
            obstacle: Some(Obstacle::Conditions),
            reason,
            cases,
        },
        None => together(run, cases),
    })
}

/// Why a result cannot speak to what needs this.
fn unmet(need: Need, result: &ResultFile, profile: Profile) -> Option<String> {
    let reason = match need {
        Need::Network if result.environment.loopback => {
            "loopback: there is no link, NIC or RSS that more connections could make better use of"
        }
        Need::SoldAs(Profile::AzureFiles) if profile != Profile::AzureFiles => {
            "a figure of Azure Files on one kind of virtual machine (--profile azure-files says that this is it)"
        }
        Need::SoldAs(Profile::AzureNetappFiles) if profile != Profile::AzureNetappFiles => {
            "a figure of Azure NetApp Files on one kind of virtual machine (--profile azure-netapp-files says that this is it)"
        }
        Need::Network | Need::SoldAs(_) => return None,
    };
    Some(reason.to_owned())
}

/// What rows say together. One row that says otherwise refutes a statement, rows that say different things leave it mixed, and one
/// that cannot tell leaves it open.
fn together(run: usize, cases: Vec<Case>) -> Finding {
    let judgement = judgement_together(&cases);
    let is_told = |case: &&Case| match judgement {
        Judgement::Mixed => !matches!(case.judgement, Judgement::TooNoisy | Judgement::CannotBeTested),
        _ => case.judgement == judgement,
    };
    let mut reasons: Vec<(&str, u32)> = Vec::new();
    for case in cases.iter().filter(is_told) {
        match reasons.iter_mut().find(|(reason, _)| *reason == case.reason) {
            Some((_, count)) => *count += 1,
            None => reasons.push((&case.reason, 1)),
        }
    }
    let all = u32::try_from(cases.len()).unwrap_or(u32::MAX);
    let told = reasons.iter().map(|(reason, count)| match all {
        1 => (*reason).to_owned(),
        _ if *count == all => format!("{reason} ({})", words::counted(all, "row")),
        _ => format!("{reason} ({count} of {})", words::counted(all, "row")),
    });
    let reason = told.collect::<Vec<_>>().join("; ");
    let verdict = judgement.verdict();
    let obstacle = (verdict == Verdict::CannotBeTested).then_some(Obstacle::Noise);
    Finding { run: Some(run), verdict, judgement, obstacle, reason, cases }
}

fn judgement_together(cases: &[Case]) -> Judgement {
    let is_there = |judgement| cases.iter().any(|case| case.judgement == judgement);
    let otherwise = [Judgement::Better, Judgement::Worse].map(is_there);
    match otherwise {
        _ if is_there(Judgement::Mixed) => Judgement::Mixed,
        [true, true] => Judgement::Mixed,
        [true, _] | [_, true] if is_there(Judgement::Reproduced) => Judgement::Mixed,
        [true, false] => Judgement::Better,
        [false, true] => Judgement::Worse,
        [false, false] if is_there(Judgement::CannotBeTested) => Judgement::CannotBeTested,
        [false, false] if is_there(Judgement::TooNoisy) => Judgement::TooNoisy,
        [false, false] => Judgement::Reproduced,
    }
}

/// Results of one server that differ in a note, pair by pair.
fn between(claim: &Claim, results: &[(usize, &ResultFile)]) -> Vec<Finding> {
    let Test::Between { note, base, other, .. } = claim.test else { return Vec::new() };
    let with = |value: &'static str| {
        results.iter().filter(move |(_, r)| r.environment.settings.get(note).is_some_and(|v| v == value))
    };
    let findings = with(other).filter_map(|(n, judged)| {
        let server = |r: &ResultFile| (r.environment.protocol, r.environment.server.clone());
        let (_, against) = with(base).find(|(_, r)| server(r) == server(judged))?;
        let cases: Vec<Case> =
            judged.rows.iter().filter_map(|row| case_between(claim, against, judged, row)).collect();
        (!cases.is_empty()).then(|| together(*n, cases))
    });
    findings.collect()
}

fn case_between(
    claim: &Claim,
    base: &ResultFile,
    judged: &ResultFile,
    row: &load::result::Row,
) -> Option<Case> {
    let Test::Between { of, note, base: without, expected, .. } = claim.test else { return None };
    let against = base.row(&row.key)?;
    let (ratio, _) = compare_rows(of, (base, against), (judged, row));
    let ratio = ratio?;
    let (judgement, reason) =
        judgement_of(of, expected.position_of_ratio(&ratio.ratio), ratio.ratio.interval.is_some());
    Some(Case {
        row: words::row(judged.environment.protocol, &row.key),
        against: Some(format!("{note} {without}")),
        figure: of,
        measured: figure(of, row)?,
        base: figure(of, against),
        ratio: Some(ratio),
        verdict: judgement.verdict(),
        judgement,
        reason,
    })
}

/// No result speaks to the statement: why, or how to get one.
fn nothing(document: &Document, claim: &Claim) -> Finding {
    let target = if document.protocols.contains(&Protocol::Smb) { "smb://..." } else { "nfs://..." };
    let family = claim.test.families().first().copied().unwrap_or_default();
    let obstacle = match claim.test {
        Test::Untestable(_) => Obstacle::Untestable,
        _ => Obstacle::NotMeasured,
    };
    let reason = match claim.test {
        Test::Untestable(why) => why.to_owned(),
        Test::Between { note, base, other, .. } => format!(
            "needs two results: `anabranch bench run {family} --target {target} --note {note}={base} --out FILE`, and the same with {note}={other}"
        ),
        _ => format!(
            "not measured: `anabranch bench run {family} --target {target} --out FILE`, without --quick, has the rows"
        ),
    };
    Finding {
        run: None,
        verdict: Verdict::CannotBeTested,
        judgement: Judgement::CannotBeTested,
        obstacle: Some(obstacle),
        reason,
        cases: Vec::new(),
    }
}
