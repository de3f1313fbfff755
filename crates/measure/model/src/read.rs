//! A description from its text: what is wrong is said with its line.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use load::plan::family;

use crate::description::{Client, Model};
use crate::quantity::Rate;
use crate::source::Source;
use crate::wire::HELD_MAX;

/// The most machines with clients: as many as a run has client processes.
pub(crate) const CLIENTS_MAX: u32 = 64;
/// The least rate that is built, in bytes a second: a packet in 150 ms.
const RATE_MIN: u64 = 10_000;
/// The longest name of a kind of client: that of a machine is the name of an interface of Linux, which has 15 characters.
const NAME_MAX: usize = 11;
/// Machines that every model has.
const RESERVED: [&str; 2] = ["server", "switch"];

/// Why a text is no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{what}", .line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct Error {
    /// The line, from 1.
    pub line: Option<usize>,
    /// What is wrong, and what to do.
    pub what: String,
}

/// Reads a description.
///
/// # Errors
/// It is no TOML, a key is unknown or missing, or a parameter cannot be.
pub fn read(text: &str) -> Result<Model, Error> {
    let at = |span: Option<Range<usize>>| {
        span.map(|span| 1 + text.bytes().take(span.start).filter(|b| *b == b'\n').count())
    };
    let model: Model =
        toml::from_str(text).map_err(|e| Error { line: at(e.span()), what: e.message().to_owned() })?;
    check(&model).map_err(|(span, what)| Error { line: at(span), what })?;
    Ok(model)
}

/// What is wrong, and where it starts.
type Wrong = (Option<Range<usize>>, String);

fn check(model: &Model) -> Result<(), Wrong> {
    let scale = *model.scale.as_ref();
    if !(1..=1_000_000).contains(&scale) {
        return Err((Some(model.scale.span()), format!("the scale is {scale}: give 1 to 1000000")));
    }
    if model.clients.is_empty() {
        return Err((None, "there is no client: add a [[client]] with a name".to_owned()));
    }
    let mut names = BTreeSet::new();
    for client in &model.clients {
        let wrong = |what| (Some(client.name.span()), what);
        check_client(client, scale).map_err(wrong)?;
        if !names.insert(client.name.as_ref()) {
            return Err(wrong(format!("there are two clients with the name {}", client.name.as_ref())));
        }
    }
    let machines: u32 = model.clients.iter().map(|client| client.count).sum();
    if machines > CLIENTS_MAX {
        return Err((None, format!("there are {machines} clients: {CLIENTS_MAX} can be built")));
    }
    let server = &model.server;
    check_rates("the server", [("out", &server.out), ("in", &server.into)], scale)
        .and_then(|()| check_sources("the server", &server.source, server.parameters().map(|p| p.0)))
        .map_err(|what| (None, what))?;
    check_rows(model, machines)
}

fn check_client(client: &Client, scale: u32) -> Result<(), String> {
    let name = client.name.as_ref().as_str();
    let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase());
    if !starts_well || name.len() > NAME_MAX || !name.chars().all(is_fit) || RESERVED.contains(&name) {
        return Err(format!(
            "{name:?} cannot be the name of a client: give at most {NAME_MAX} small letters, digits and hyphens that begin with a letter, and neither server nor switch"
        ));
    }
    if !(1..=CLIENTS_MAX).contains(&client.count) {
        return Err(format!("the client {name} has the count {}: give 1 to {CLIENTS_MAX}", client.count));
    }
    let which = format!("the client {name}");
    check_held(&which, client, scale)?;
    check_rates(&which, [("out", &client.out), ("in", &client.into), ("flow", &client.flow)], scale)?;
    check_sources(&which, &client.source, client.parameters().map(|p| p.0))
}

fn check_rates<'a>(
    which: &str,
    rates: impl IntoIterator<Item = (&'static str, &'a Option<Rate>)>,
    scale: u32,
) -> Result<(), String> {
    for (name, rate) in rates {
        let Some(rate) = rate else { continue };
        let built = rate.at_scale(scale);
        if built < RATE_MIN {
            return Err(format!(
                "{name} of {which} is {rate}, and {built} bytes/s at the scale 1:{scale}: at least {RATE_MIN} can be built"
            ));
        }
    }
    Ok(())
}

/// What a link passes during its delay is held.
fn check_held(which: &str, client: &Client, scale: u32) -> Result<(), String> {
    let Some(delay) = &client.delay else { return Ok(()) };
    let rates = [("out", &client.out), ("in", &client.into)];
    for (name, rate) in rates.into_iter().filter_map(|(name, rate)| Some((name, rate.as_ref()?))) {
        let held = u128::from(rate.at_scale(scale)) * delay.duration().as_micros() / 1_000_000;
        if held > HELD_MAX as u128 {
            return Err(format!(
                "{which} has the delay {delay} and {name} {rate}: its link would hold {held} bytes at the scale 1:{scale}, and it can hold {HELD_MAX}"
            ));
        }
    }
    Ok(())
}

/// A source is that of a parameter that is set.
fn check_sources(
    which: &str,
    sources: &BTreeMap<String, Source>,
    parameters: impl Iterator<Item = &'static str>,
) -> Result<(), String> {
    let parameters: BTreeSet<_> = parameters.collect();
    match sources.keys().find(|name| !parameters.contains(name.as_str())) {
        Some(name) => Err(format!("there is a source for {name} of {which}, which is not set")),
        None => Ok(()),
    }
}

fn check_rows(model: &Model, machines: u32) -> Result<(), Wrong> {
    for rows in &model.rows {
        let name = rows.family.as_ref();
        let span = Some(rows.family.span());
        let Some(found) = family(name) else {
            return Err((span, format!("there is no family {name}: `anabranch bench families` lists them")));
        };
        let protocol = rows.over.protocol();
        if !found.protocols.contains(&protocol) {
            return Err((span, format!("the family {name} is not measured over {}", protocol.name())));
        }
    }
    for job in &model.jobs {
        let span = Some(job.clients.span());
        let clients = job.clients.as_ref();
        if let Some(too_many) = clients.iter().find(|n| **n < 1 || **n > machines) {
            return Err((span, format!("a job has {too_many} clients, and the model has {machines}")));
        }
        let counts =
            [("connections", 1, 32), ("files", 1, 10_000), ("threads", 1, 1024), ("queue-depth", 1, 1024)];
        let given = [job.connections.clone(), vec![job.files], vec![job.threads], vec![job.queue_depth]];
        for ((name, least, most), given) in counts.into_iter().zip(given) {
            if let Some(wrong) = given.iter().find(|n| !(least..=most).contains(*n)) {
                return Err((span, format!("a job has {wrong} {name}: give {least} to {most}")));
            }
        }
        if clients.is_empty() || job.connections.is_empty() || job.reads > 100 {
            return Err((span, "a job has clients, connections, and at most 100 % of reads".to_owned()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use load::plan::Extent;

    use super::*;

    const SMALL: &str =
        "name = \"small\"\nabout = \"a link\"\nscale = 1\n[[client]]\nname = \"vm\"\nout = \"8 MB/s\"\n";

    fn wrong(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn a_description_is_read() {
        let text = format!(
            "{SMALL}count = 2\nsource.out = {{ statement = \"2.08\", line = 42, says = \"outbound\" }}\n[server]\nplan = \"anf-ultra capacity=1TiB\"\n[[job]]\nover = \"smb\"\nclients = [1, 2]\nconnections = [1, 4]\nblock-size = \"64k\"\nthreads = 2\n"
        );
        let model = read(&text).unwrap();
        let machines: Vec<String> = model.machines().map(|(name, _)| name).collect();
        assert_eq!(machines, ["vm-1", "vm-2"]);
        let plans = model.plans(&Extent::new(true));
        let keys: Vec<_> = plans[0]
            .1
            .rows
            .iter()
            .map(|row| (row.key.clients, row.key.connections, row.key.threads))
            .collect();
        assert_eq!(keys, [(1, 1, 2), (1, 4, 2), (2, 1, 4), (2, 4, 4)]);
        let source = model.clients[0].source["out"].text();
        assert!(
            source.starts_with("outbound: Azure NetApp Files: SMB") && source.ends_with("(2.08)"),
            "{source}"
        );
    }

    #[test]
    fn what_is_wrong_has_its_line() {
        for (given, found) in [
            ("out = \"8 MB/s\"", "line 6: \"8 apples\" is no rate"),
            ("scale = 1", "line 3: the scale is 0"),
            ("\"vm\"", "line 5: \"server\" cannot be the name"),
        ] {
            let other = match given {
                "scale = 1" => "scale = 0",
                "\"vm\"" => "\"server\"",
                _ => "out = \"8 apples\"",
            };
            let said = wrong(&SMALL.replace(given, other));
            assert!(said.starts_with(found), "{said}");
        }
    }

    #[test]
    fn what_cannot_be_built_is_refused() {
        let with = |more: &str| wrong(&format!("{SMALL}{more}\n"));
        for (more, found) in [
            ("jitter = \"1 ms\"", "line 7: unknown field `jitter`"),
            ("delay = \"2 s\"", "line 7: \"2 s\" is no delay"),
            ("delay = \"1001 ms\"", "line 7: \"1001 ms\" is no delay"),
            ("loss = 1.0", "line 7: the loss is 1: give a share"),
            ("loss = -0.1", "line 7: the loss is -0.1"),
            ("in = \"1 GB/s\"\ndelay = \"17 ms\"", "line 5: the client vm has the delay 17 ms and in 1 GB/s"),
            ("count = 65", "has the count 65"),
            ("in = \"1 kB/s\"", "at least 10000 can be built"),
            (
                "source.in = { page = \"https://example.org\", says = \"x\" }",
                "a source for in of the client vm, which is not set",
            ),
            ("source.out = { statement = \"9.01\", line = 1, says = \"x\" }", "a source has the statement"),
            ("source.out = { page = \"http://example.org\", says = \"x\" }", "a source has the statement"),
            ("[[client]]\nname = \"vm\"", "two clients with the name vm"),
            ("count = 64\n[[client]]\nname = \"other\"", "there are 65 clients"),
            ("[server]\nplan = \"gold\"", "line 8: \"gold\" is no plan"),
            ("[[rows]]\nfamily = \"none\"\nover = \"smb\"", "line 8: there is no family none"),
            ("[[rows]]\nfamily = \"nfs-nconnect\"\nover = \"smb\"", "not measured over smb"),
            (
                "[[job]]\nover = \"smb\"\nclients = [2]\nconnections = [1]\nblock-size = \"4k\"",
                "line 9: a job has 2 clients",
            ),
            (
                "[[job]]\nover = \"smb\"\nclients = [1]\nconnections = [33]\nblock-size = \"4k\"",
                "a job has 33 connections",
            ),
            (
                "[[job]]\nover = \"smb\"\nclients = [1]\nconnections = []\nblock-size = \"4k\"",
                "a job has clients",
            ),
        ] {
            let said = with(more);
            assert!(said.contains(found), "{more}: {said}");
        }
        assert!(wrong("name = \"x\"\nabout = \"y\"\nscale = 1\n").contains("there is no client"));
        assert!(wrong("name =").starts_with("line 1: "));
    }

    #[test]
    fn the_description_on_the_page_is_one() {
        let page = include_str!("../../../../docs/model.md");
        let example = page.split("```\n").nth(1).unwrap();
        let model = read(example).unwrap();
        assert_eq!((model.machines().count(), model.plans(&Extent::new(true))[0].1.rows.len()), (2, 4));
    }

    #[test]
    fn rows_with_more_clients_than_machines_are_left_out() {
        let model = read(&format!("{SMALL}[[rows]]\nfamily = \"scale-out\"\nover = \"nfs3\"\n")).unwrap();
        let plans = model.plans(&Extent::new(false));
        assert!(!plans[0].1.rows.is_empty() && plans[0].1.rows.iter().all(|row| row.key.clients == 1));
    }
}
