//! The parameters of a model, one after the other: as published, and as built.

use serde::Serialize;

use crate::description::{Client, Model, Server};
use crate::quantity::{Delay, Rate};

/// A parameter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Parameter {
    /// What it is of: a kind of client, or the server.
    pub of: String,
    /// Its name in the description.
    pub name: &'static str,
    /// Its value in the description.
    pub published: String,
    /// Its value at the model's scale.
    pub built: String,
    /// What is published, and where.
    pub source: Option<String>,
}

/// A parameter that is set: its name, and its values as described and at a scale.
pub(crate) type Set = (&'static str, String, String);

impl Client {
    pub(crate) fn parameters(&self) -> impl Iterator<Item = Set> {
        self.at_scale(1)
    }

    fn at_scale(&self, scale: u32) -> impl Iterator<Item = Set> {
        let rates = [("out", &self.out), ("in", &self.into), ("flow", &self.flow)];
        let rates = rates.map(|(name, rate)| set(name, rate.as_ref(), scale)).into_iter().flatten();
        let delay = as_it_is("delay", self.delay.as_ref());
        let loss = self.loss.map(|loss| ("loss", loss.to_string(), loss.to_string()));
        rates.chain(delay).chain(loss)
    }
}

impl Server {
    pub(crate) fn parameters(&self) -> impl Iterator<Item = Set> {
        self.at_scale(1)
    }

    fn at_scale(&self, scale: u32) -> impl Iterator<Item = Set> {
        let plan = self.plan.as_ref();
        let plan = plan.map(|plan| ("plan", plan.to_string(), plan.at_scale(scale).to_string()));
        let rates = [("out", &self.out), ("in", &self.into)];
        let delays = [
            as_it_is("data-delay", self.data_delay.as_ref()),
            as_it_is("metadata-delay", self.metadata_delay.as_ref()),
        ];
        let rates = rates.map(|(name, rate)| set(name, rate.as_ref(), scale)).into_iter().flatten();
        rates.chain(plan).chain(delays.into_iter().flatten())
    }
}

fn set(name: &'static str, rate: Option<&Rate>, scale: u32) -> Option<Set> {
    let rate = rate?;
    Some((name, rate.to_string(), megabytes(rate.at_scale(scale))))
}

/// What is not scaled.
fn as_it_is(name: &'static str, delay: Option<&Delay>) -> Option<Set> {
    delay.map(|delay| (name, delay.to_string(), delay.to_string()))
}

/// Bytes a second in words: `20.00 MB/s`.
fn megabytes(bytes: u64) -> String {
    let hundredths = bytes / 10_000;
    format!("{}.{:02} MB/s", hundredths / 100, hundredths % 100)
}

impl Model {
    /// All parameters that are set: those of the kinds of clients, then those of the server.
    #[must_use]
    pub fn parameters(&self) -> Vec<Parameter> {
        let scale = *self.scale.as_ref();
        let clients = self.clients.iter().flat_map(|client| {
            let name = client.name.as_ref();
            let of = if client.count == 1 { name.clone() } else { format!("{} x {name}", client.count) };
            client.at_scale(scale).map(move |set| parameter(of.clone(), set, &client.source))
        });
        let server = &self.server;
        let of_server = server.at_scale(scale).map(|set| parameter("server".to_owned(), set, &server.source));
        clients.chain(of_server).collect()
    }
}

fn parameter(
    of: String,
    (name, published, built): Set,
    sources: &std::collections::BTreeMap<String, crate::source::Source>,
) -> Parameter {
    Parameter { of, name, published, built, source: sources.get(name).map(crate::source::Source::text) }
}

#[cfg(test)]
mod tests {
    use crate::{BUILT_IN, read};

    #[test]
    fn parameters_stand_as_published_and_as_built() {
        let (_, text) = BUILT_IN.into_iter().find(|(name, _)| *name == "netapp-smb").unwrap();
        let parameters = read(text).unwrap().parameters();
        let shown: Vec<_> =
            parameters.iter().map(|p| (p.name, p.published.as_str(), p.built.as_str())).collect();
        assert_eq!(shown, [("out", "16000 Mbit/s", "20.00 MB/s"), ("flow", "875 MiB/s", "9.17 MB/s")]);
    }
}
