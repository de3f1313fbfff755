//! What a model is.

use std::collections::BTreeMap;
use std::time::Duration;

use load::plan::{Extent, key};
use load::plan::{Plan, PlannedRow, Selection, family};
use load::result::{Key, Protocol};
use serde::Deserialize;
use toml::Spanned;

use crate::quantity::{BlockSize, Delay, Loss, Provision, Rate};
use crate::source::{Source, Statement};
use crate::wire::Conditions;

/// Clients, their links, and a server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Model {
    /// Its name.
    pub name: String,
    /// What it is a model of, in a sentence.
    pub about: String,
    /// By what the rates are divided when the model is built.
    pub scale: Spanned<u32>,
    /// What losses follow from: the same seed loses the same frames of a link, by their number.
    #[serde(default = "first")]
    pub seed: u64,
    /// The kinds of clients.
    #[serde(rename = "client", default)]
    pub clients: Vec<Client>,
    /// The server.
    #[serde(default)]
    pub server: Server,
    /// The families to measure.
    #[serde(default)]
    pub rows: Vec<Rows>,
    /// The loads to measure besides.
    #[serde(rename = "job", default)]
    pub jobs: Vec<Job>,
    /// The statements that the rows speak to.
    #[serde(rename = "statement", default)]
    pub statements: Vec<Statement>,
}

/// A kind of client: so many machines with a link each.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Client {
    /// What its machines are called: NAME-1, NAME-2.
    pub name: Spanned<String>,
    /// How many machines there are.
    #[serde(default = "one")]
    pub count: u32,
    /// What a machine may send.
    pub out: Option<Rate>,
    /// What a machine may receive.
    #[serde(rename = "in")]
    pub into: Option<Rate>,
    /// What each TCP connection of a machine may send, and what it may receive.
    pub flow: Option<Rate>,
    /// How long its link holds each frame, in each direction. It is not scaled.
    pub delay: Option<Delay>,
    /// Which share of the frames its link loses, in each direction.
    pub loss: Option<Loss>,
    /// Where each parameter is published, by its name.
    #[serde(default)]
    pub source: BTreeMap<String, Source>,
}

/// The server: its link, and its share.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Server {
    /// What it may send.
    pub out: Option<Rate>,
    /// What it may receive.
    #[serde(rename = "in")]
    pub into: Option<Rate>,
    /// What is provisioned for the share.
    pub plan: Option<Provision>,
    /// How long the storage takes for each read and each write. It is not scaled.
    pub data_delay: Option<Delay>,
    /// How long the storage takes for each look at a name or at attributes, and for each change of them. It is not scaled.
    pub metadata_delay: Option<Delay>,
    /// Whether Anabranch has a metadata cache for the share; as it is without a setting where this is not said.
    pub metadata_cache: Option<bool>,
    /// Where each parameter is published, by its name.
    #[serde(default)]
    pub source: BTreeMap<String, Source>,
}

/// A protocol to measure over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Over {
    /// SMB 3.1.1.
    #[serde(rename = "smb")]
    Smb,
    /// NFS version 3.
    #[serde(rename = "nfs3")]
    Nfs3,
    /// NFS version 4.1.
    #[serde(rename = "nfs4.1")]
    Nfs41,
}

/// Rows of a family.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rows {
    /// Its name.
    pub family: Spanned<String>,
    /// What it is measured over.
    pub over: Over,
    /// Only rows with these numbers of connections; all where there are none.
    #[serde(default)]
    pub connections: Vec<u32>,
    /// Only rows with these block sizes; all where there are none.
    #[serde(default)]
    pub block_sizes: Vec<BlockSize>,
}

/// Rows that no family has: one for each number of clients and of connections.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Job {
    /// What it is measured over.
    pub over: Over,
    /// Numbers of clients.
    pub clients: Spanned<Vec<u32>>,
    /// Numbers of connections of each client.
    pub connections: Vec<u32>,
    /// Bytes of each read or write.
    pub block_size: BlockSize,
    /// The percentage of reads.
    #[serde(default = "hundred")]
    pub reads: u8,
    /// Blocks are accessed in order.
    #[serde(default)]
    pub sequential: bool,
    /// Files of each client.
    #[serde(default = "one")]
    pub files: u32,
    /// Threads of each client.
    #[serde(default = "one")]
    pub threads: u32,
    /// Outstanding operations of each thread.
    #[serde(default = "one")]
    pub queue_depth: u32,
}

const fn one() -> u32 {
    1
}

const fn first() -> u64 {
    1
}

const fn hundred() -> u8 {
    100
}

impl Server {
    /// How long its storage takes for data and for metadata, if it has a delay: also none of either, to learn what that costs.
    pub(crate) fn storage_delays(&self) -> Option<[Duration; 2]> {
        let delays = [&self.data_delay, &self.metadata_delay];
        let of = |delay: &Option<Delay>| delay.as_ref().map_or(Duration::ZERO, Delay::duration);
        delays.iter().any(|delay| delay.is_some()).then(|| delays.map(of))
    }
}

impl Over {
    /// The protocol.
    #[must_use]
    pub fn protocol(self) -> Protocol {
        match self {
            Self::Smb => Protocol::Smb,
            Self::Nfs3 => Protocol::Nfs3,
            Self::Nfs41 => Protocol::Nfs41,
        }
    }
}

impl Model {
    /// The names of the clients' machines, each with its kind.
    pub fn machines(&self) -> impl Iterator<Item = (String, &Client)> {
        self.clients.iter().flat_map(|client| {
            (1..=client.count).map(move |n| (format!("{}-{n}", client.name.as_ref()), client))
        })
    }

    /// What is measured, in order, and over which protocol. Rows with more clients than there are machines are left out.
    #[must_use]
    pub fn plans(&self, extent: &Extent) -> Vec<(Protocol, Plan)> {
        let machines = self.clients.iter().map(|client| client.count).sum::<u32>();
        let mut plans: Vec<_> = self.rows.iter().filter_map(|rows| rows.plan(extent)).collect();
        for (protocol, plan) in self.jobs.iter().map(Job::plan) {
            match plans.last_mut() {
                Some((same, last)) if *same == protocol && last.family == plan.family => {
                    last.rows.extend(plan.rows)
                }
                _ => plans.push((protocol, plan)),
            }
        }
        for (_, plan) in &mut plans {
            plan.retain(|key| key.clients <= machines);
        }
        plans.retain(|(_, plan)| !plan.rows.is_empty());
        plans
    }
}

impl Client {
    /// What its link does with frames, if it has a delay or losses: also none of either, to learn what that costs.
    pub(crate) fn conditions(&self) -> Option<Conditions> {
        let (delay, loss) = (self.delay.as_ref(), self.loss);
        (delay.is_some() || loss.is_some()).then(|| Conditions {
            delay: delay.map_or(Duration::ZERO, Delay::duration),
            loss: loss.map_or(0.0, Loss::share),
        })
    }
}

impl Rows {
    fn plan(&self, extent: &Extent) -> Option<(Protocol, Plan)> {
        let protocol = self.over.protocol();
        let mut plan = family(self.family.as_ref())?.plan(protocol, extent);
        let block_bytes = self.block_sizes.iter().map(|size| size.0).collect();
        plan.select(&Selection { connections: self.connections.clone(), block_bytes });
        Some((protocol, plan))
    }
}

impl Job {
    fn plan(&self) -> (Protocol, Plan) {
        let row = |clients: u32, connections: u32| {
            let key = Key {
                random: !self.sequential,
                files: self.files,
                threads: self.threads * clients,
                queue_depth: self.queue_depth,
                clients,
                ..key(connections, self.block_size.0, self.reads)
            };
            PlannedRow { key, documents: Vec::new(), security: None }
        };
        let each = self
            .clients
            .as_ref()
            .iter()
            .flat_map(|clients| self.connections.iter().map(move |n| (*clients, *n)));
        let rows = each.map(|(clients, connections)| row(clients, connections)).collect();
        let plan = Plan {
            family: "job".to_owned(),
            documents: Vec::new(),
            rows,
            comparisons: Vec::new(),
            not_honoured: Vec::new(),
        };
        (self.over.protocol(), plan)
    }
}
