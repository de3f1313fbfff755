//! Where the devices of a cluster are: its CRUSH tree, as monitors print it (`osd crush tree`).

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::Deserialize;

/// The type of a device.
const DEVICE: &str = "osd";
/// The type of what holds all devices.
const ROOT: &str = "root";

/// A CRUSH tree.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Topology {
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, Deserialize)]
struct Node {
    id: i64,
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    children: Vec<i64>,
    #[serde(default)]
    device_class: Option<String>,
    #[serde(default)]
    crush_weight: Option<f64>,
}

/// The devices that a rule can use.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    /// What holds at least one of them, of the type that was asked for.
    pub(crate) domains: BTreeSet<String>,
    /// Their classes. An empty one stands for devices without a class.
    pub(crate) classes: BTreeSet<String>,
}

impl Topology {
    /// Where new rules begin: the root that Ceph makes by itself, or else the only one.
    pub(crate) fn root(&self) -> Option<&str> {
        let mut roots = self.nodes.iter().filter(|node| node.kind == ROOT).map(|node| node.name.as_str());
        let first = roots.next()?;
        let others: Vec<_> = roots.collect();
        let default = std::iter::once(first).chain(others.iter().copied()).find(|name| *name == "default");
        default.or_else(|| others.is_empty().then_some(first))
    }

    /// Whether a part of the tree has something of a type in it.
    pub(crate) fn has(&self, kind: &str) -> bool {
        self.nodes.iter().any(|node| node.kind == kind)
    }

    /// The devices below something, of a class if one is given, and what of a type they are in.
    pub(crate) fn reach(&self, from: &str, class: Option<&str>, kind: &str) -> Reach {
        let nodes: BTreeMap<i64, &Node> = self.nodes.iter().map(|node| (node.id, node)).collect();
        let mut found = Reach::default();
        let Some(first) = self.nodes.iter().find(|node| node.name == from) else { return found };
        // A tree that is damaged may have circles.
        let mut seen = HashSet::new();
        let mut left = vec![(first, None)];
        while let Some((node, domain)) = left.pop() {
            if !seen.insert(node.id) {
                continue;
            }
            let domain = if node.kind == kind { Some(node.name.as_str()) } else { domain };
            if node.kind == DEVICE {
                let its = node.device_class.as_deref().unwrap_or_default();
                let is_used =
                    node.crush_weight.unwrap_or(1.0) > 0.0 && class.is_none_or(|class| class == its);
                if let Some(domain) = domain.filter(|_| is_used) {
                    found.domains.insert(domain.to_owned());
                    found.classes.insert(its.to_owned());
                }
            }
            let children = node.children.iter().filter_map(|child| nodes.get(child));
            left.extend(children.map(|child| (*child, domain)));
        }
        found
    }
}
