//! What the links of a model let through.

use serde::Serialize;

use crate::construction::bucket;
use crate::description::Model;
use crate::quantity::Rate;

/// So many clients, the first of the model, with so many connections each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Shape {
    /// Clients.
    pub clients: u32,
    /// Connections of each.
    pub connections: u32,
}

/// Which way data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From the clients to the server: writes.
    ToServer,
    /// From the server to the clients: reads.
    ToClients,
}

/// What passes at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ceiling {
    /// Bytes a second, with Ethernet headers.
    pub rate: u64,
    /// Bytes that may pass besides after a rest.
    pub bucket: u64,
}

impl Direction {
    /// In words.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::ToServer => "to the server",
            Self::ToClients => "to the clients",
        }
    }
}

impl Ceiling {
    fn of(rate: u64) -> Self {
        Self { rate, bucket: bucket(rate) }
    }

    fn times(self, n: u64) -> Self {
        Self { rate: self.rate * n, bucket: self.bucket * n }
    }

    fn plus(self, other: Self) -> Self {
        Self { rate: self.rate + other.rate, bucket: self.bucket + other.bucket }
    }
}

/// The lower of two limits where both are set.
fn lower(one: Option<Ceiling>, other: Option<Ceiling>) -> Option<Ceiling> {
    one.into_iter().chain(other).min_by_key(|ceiling| ceiling.rate)
}

impl Model {
    /// What all links together let through in one direction; none where at least one way has no limit.
    #[must_use]
    pub fn ceiling(&self, shape: Shape, direction: Direction) -> Option<Ceiling> {
        let scale = *self.scale.as_ref();
        let built = |rate: &Option<Rate>| rate.as_ref().map(|rate| Ceiling::of(rate.at_scale(scale)));
        let machines = self.machines().take(shape.clients.try_into().unwrap_or(usize::MAX));
        let of_clients = machines.map(|(_, client)| {
            let flows = built(&client.flow).map(|flow| flow.times(shape.connections.into()));
            let link = match direction {
                Direction::ToServer => built(&client.out),
                Direction::ToClients => built(&client.into),
            };
            lower(flows, link)
        });
        let of_clients = of_clients.reduce(|sum, next| Some(sum?.plus(next?))).flatten();
        let of_server = match direction {
            Direction::ToServer => built(&self.server.into),
            Direction::ToClients => built(&self.server.out),
        };
        lower(of_clients, of_server)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;

    fn rate(
        client: &str,
        server: &str,
        (clients, connections): (u32, u32),
        direction: Direction,
    ) -> Option<u64> {
        let text = format!(
            "name = \"x\"\nabout = \"y\"\nscale = 10\n[[client]]\nname = \"vm\"\ncount = 4\n{client}\n[server]\n{server}\n"
        );
        read(&text).unwrap().ceiling(Shape { clients, connections }, direction).map(|ceiling| ceiling.rate)
    }

    #[test]
    fn the_lowest_limit_on_the_way_counts() {
        use Direction::{ToClients, ToServer};
        let client = "out = \"80 MB/s\"\nflow = \"50 MB/s\"";
        assert_eq!(rate(client, "", (1, 1), ToServer), Some(5_000_000));
        assert_eq!(rate(client, "", (1, 4), ToServer), Some(8_000_000));
        assert_eq!(rate(client, "", (1, 4), ToClients), Some(20_000_000));
        assert_eq!(rate(client, "", (4, 4), ToServer), Some(32_000_000));
        assert_eq!(rate(client, "in = \"100 MB/s\"", (4, 4), ToServer), Some(10_000_000));
        assert_eq!(rate(client, "in = \"100 MB/s\"", (4, 4), ToClients), Some(80_000_000));
    }

    #[test]
    fn a_way_without_a_limit_has_no_ceiling() {
        assert_eq!(rate("out = \"80 MB/s\"", "", (2, 2), Direction::ToClients), None);
        assert_eq!(rate("", "out = \"90 MB/s\"", (2, 2), Direction::ToClients), Some(9_000_000));
    }
}
