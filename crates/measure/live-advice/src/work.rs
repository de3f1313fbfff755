//! From two looks at the server to the facts of a client's work.

use std::collections::BTreeMap;

use advise::Facts;
use control::activity::{ApiActivity, ClientShareActivity, ShareActivity};
use control::clients::{Clients, SmbSession};
use control::explain;
use load::result::Protocol;

use crate::look::Look;

/// The work of one client in one share over one protocol, between two looks.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// The client, as the server's account names it.
    pub client: String,
    /// The name of the share.
    pub share: String,
    /// The protocol.
    pub protocol: Protocol,
    /// Seconds between the looks.
    pub elapsed: f64,
    all: Sums,
    /// Reads and writes.
    data: Sums,
    writes: f64,
    small: f64,
    /// GETATTRs of NFSv4.
    attributes: f64,
    /// Files that were in use lately.
    pub files: u64,
    /// Opens through which they were. NFSv3 has none.
    pub opens: u64,
    /// Opens made between the looks.
    opened: f64,
}

/// For so long the server takes an open for one in use.
const IN_USE_SECONDS: f64 = 10.0;

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Sums {
    calls: f64,
    bytes: f64,
    throttled: f64,
    seconds: f64,
    network_seconds: f64,
}

impl Sums {
    fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.bytes += other.bytes;
        self.throttled += other.throttled;
        self.seconds += other.seconds;
        self.network_seconds += other.network_seconds;
    }

    /// Microseconds in the server, and from end to end, of the mean call.
    fn latencies(&self) -> Option<(f64, f64)> {
        let each = |seconds: f64| seconds / self.calls * 1e6;
        (self.calls > 0.0).then(|| (each(self.seconds), each(self.seconds + self.network_seconds)))
    }
}

#[expect(clippy::cast_precision_loss, reason = "counters, for rates")]
fn count(n: u64) -> f64 {
    n as f64
}

/// All work between two looks, sorted by the number of calls, largest first.
#[must_use]
pub fn works(before: &Look, after: &Look) -> Vec<Work> {
    let elapsed = after.at.duration_since(before.at).as_secs_f64().max(1e-3);
    let mut works = Vec::new();
    for client in &after.activity {
        let earlier = before.activity.iter().find(|earlier| earlier.client == client.client);
        for share in &client.shares {
            let earlier =
                earlier.and_then(|client| client.shares.iter().find(|known| known.name == share.name));
            works.extend(of_share(&client.client, share, earlier, elapsed));
        }
    }
    works.sort_by(|one: &Work, other| other.all.calls.total_cmp(&one.all.calls));
    works
}

fn of_share(
    client: &str,
    share: &ClientShareActivity,
    earlier: Option<&ClientShareActivity>,
    elapsed: f64,
) -> Vec<Work> {
    let mut works: BTreeMap<&str, Work> = BTreeMap::new();
    for api in &share.apis {
        let Some(protocol) = protocol(&api.protocol) else { continue };
        let same = |known: &&ApiActivity| known.api == api.api && known.protocol == api.protocol;
        let earlier = earlier.and_then(|share| share.apis.iter().find(same));
        let since =
            |number: fn(&ApiActivity) -> u64| count(number(api).saturating_sub(earlier.map_or(0, number)));
        let spent = |time: fn(&ApiActivity) -> f64| (time(api) - earlier.map_or(0.0, time)).max(0.0);
        let sums = Sums {
            calls: since(|api| api.calls),
            bytes: since(|api| api.bytes),
            throttled: since(|api| api.throttled),
            seconds: spent(|api| api.seconds),
            network_seconds: spent(|api| api.network_seconds),
        };
        let work = works.entry(&api.protocol).or_insert_with(|| Work {
            client: client.to_owned(),
            share: share.name.clone(),
            protocol,
            elapsed,
            all: Sums::default(),
            data: Sums::default(),
            writes: 0.0,
            small: 0.0,
            attributes: 0.0,
            files: share.files_in_use,
            opens: share.opens_in_use,
            opened: 0.0,
        });
        work.all.add(sums);
        match api.api.as_str() {
            "Read" | "ReadPlus" | "Write" => {
                work.data.add(sums);
                work.small += since(|api| api.small);
                work.writes += if api.api == "Write" { sums.calls } else { 0.0 };
            }
            "Create" | "Open" => work.opened += sums.calls,
            "GetAttr" if api.protocol == "nfs4" => work.attributes += sums.calls,
            _ => {}
        }
    }
    works.into_values().filter(|work| work.all.calls > 0.0).collect()
}

fn protocol(name: &str) -> Option<Protocol> {
    Some(match name {
        "smb" => Protocol::Smb,
        "nfs3" => Protocol::Nfs3,
        "nfs4" => Protocol::Nfs41,
        _ => return None,
    })
}

impl Work {
    /// Reads and writes under way at a time, the way to the client and back included (Little's law).
    fn queue_depth(&self) -> Option<f64> {
        (self.data.calls > 0.0).then(|| (self.data.seconds + self.data.network_seconds) / self.elapsed)
    }

    /// Opens that are worked on side by side: those that were in use already before the first look, or as many as have something under
    /// way. So a thread that goes from file to file is one, however many files it sees. NFSv3 has no opens.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number of threads")]
    fn threads(&self) -> Option<u32> {
        let whole = |n: f64| n.ceil().clamp(0.0, 1e6) as u32;
        let opens = u32::try_from(self.opens).ok().filter(|opens| *opens > 0)?;
        let under_way = opens.min(whole(self.queue_depth()?));
        let held = opens.saturating_sub(whole(self.opened / self.elapsed * IN_USE_SECONDS));
        Some(under_way.max(held).max(1))
    }

    /// The part of its calls that is about names and attributes. Linux sends a GETATTR along with each WRITE of NFSv4: that is no call of its own.
    #[must_use]
    pub fn metadata_share(&self) -> f64 {
        let along = self.attributes.min(self.writes);
        let calls = self.all.calls - along;
        (calls - self.data.calls) / calls
    }

    /// The part of its reads and writes that is of 16 KiB at most; none: it neither reads nor writes.
    #[must_use]
    pub fn small_share(&self) -> Option<f64> {
        self.of_data(self.small)
    }

    fn of_data(&self, sum: f64) -> Option<f64> {
        (self.data.calls > 0.0).then(|| sum / self.data.calls)
    }

    fn rate(&self, sum: f64) -> Option<f64> {
        (self.data.calls > 0.0).then(|| sum / self.elapsed)
    }

    /// Calls per second, of any kind.
    #[must_use]
    pub fn calls_per_second(&self) -> f64 {
        self.all.calls / self.elapsed
    }
}

/// The facts of a client's work.
#[must_use]
pub fn of_work(work: &Work, before: &Look, after: &Look) -> Facts {
    let share = |look: &Look| look.shares.shares.iter().find(|share| share.name == work.share).cloned();
    let (earlier, now) = (share(before), share(after).unwrap_or_default());
    let one_file = |figure: Option<f64>| figure.filter(|_| work.files == 1);
    let (iops, throughput) = (work.rate(work.data.calls), work.rate(work.data.bytes));
    let latencies = work.data.latencies().or_else(|| work.all.latencies());
    let (path, security, slots) = connections(work, &after.clients);
    Facts {
        protocol: Some(work.protocol),
        work: advise::Work {
            threads: work.threads(),
            files: u32::try_from(work.files).ok().filter(|files| *files > 0),
            queue_depth: work.queue_depth(),
            io_bytes: work.of_data(work.data.bytes),
            write_share: work.of_data(work.writes),
            sequential: None,
            metadata_share: Some(work.metadata_share()),
        },
        path,
        slots,
        reached: advise::Reached {
            iops,
            bytes: throughput,
            file_iops: one_file(iops),
            file_bytes: one_file(throughput),
            throttled_share: Some(work.all.throttled / work.all.calls),
        },
        limits: limits(earlier.as_ref(), &now, work.elapsed),
        latency: advise::Latencies {
            server_us: latencies.map(|(server, _)| server),
            end_to_end_us: latencies.map(|(_, whole)| whole),
        },
        security,
        ..Facts::default()
    }
}

fn limits(earlier: Option<&ShareActivity>, now: &ShareActivity, elapsed: f64) -> advise::Limits {
    let limit = |name: &str| now.limits.get(name).copied().map(count);
    let used = |now: u64| Some((count(earlier?.burst_credits?) - count(now)) / elapsed);
    advise::Limits {
        iops: limit("iops"),
        bytes: limit("throughput"),
        file_iops: limit("file-iops"),
        file_bytes: limit("file-throughput"),
        client_bytes: None,
        credits: now.burst_credits.map(count),
        credits_used: now.burst_credits.and_then(used).filter(|used| *used > 0.0),
    }
}

/// The client's connections, how they are protected, and its slots.
fn connections(work: &Work, clients: &Clients) -> (advise::Path, advise::Security, Option<advise::Slots>) {
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    if work.protocol == Protocol::Smb {
        let of_client = clients.smb_sessions.iter().filter(|session| session.client_guid == work.client);
        let Some(session) = of_client.max_by_key(|session| session.channels.len()) else {
            return Default::default();
        };
        let offer = &clients.smb_offer;
        let findings = explain::smb_session(offer, session);
        let path = advise::Path {
            connections: Some(number(session.channels.len())),
            connections_max: Some(explain::channels_possible(offer, session)),
            why_fewer: findings.into_iter().filter(|found| found.limits).map(|found| found.what).collect(),
            interfaces: Vec::new(),
            server_endpoints: Some(number(offer.interfaces.len())).filter(|n| *n > 0),
        };
        return (path, protection(session), None);
    }
    let Some(client) = clients.nfs_clients.iter().find(|client| client.address.to_string() == work.client)
    else {
        return Default::default();
    };
    let path =
        advise::Path { connections: Some(number(client.connections.len())), ..advise::Path::default() };
    let slots = client.sessions.iter().max_by_key(|session| session.slots_in_use_max).map(|session| {
        advise::Slots { granted: session.slots_granted, most_in_use: session.slots_in_use_max }
    });
    (path, advise::Security::default(), slots.filter(|_| work.protocol == Protocol::Nfs41))
}

/// What is encrypted needs no signature. A client that signs of its own accord is not seen from here.
fn protection(session: &SmbSession) -> advise::Security {
    let cipher =
        session.encryption.as_ref().filter(|_| session.encrypts()).map(|cipher| cipher.cipher.clone());
    let signs = cipher.is_none() && session.signing.required;
    advise::Security { signing: signs.then(|| session.signing.algorithm.clone()), cipher, busiest_cpu: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(opens: u64, opened: f64, seconds_of_reads: f64) -> Work {
        let data = Sums { calls: 1000.0, bytes: 4_096_000.0, seconds: seconds_of_reads, ..Sums::default() };
        Work {
            client: String::new(),
            share: String::new(),
            protocol: Protocol::Smb,
            elapsed: 5.0,
            all: Sums { calls: 1250.0, ..data },
            data,
            writes: 500.0,
            small: 1000.0,
            attributes: 0.0,
            files: opens,
            opens,
            opened,
        }
    }

    #[test]
    fn a_thread_that_goes_from_file_to_file_is_one() {
        assert_eq!(work(100, 50.0, 4.5).threads(), Some(1), "0.9 under way, all of the opens new");
        assert_eq!(work(8, 0.0, 4.5).threads(), Some(8), "held since before: idle threads are threads");
        assert_eq!(work(100, 50.0, 20.0).threads(), Some(4), "4 under way");
        assert_eq!(work(2, 0.0, 40.0).threads(), Some(2), "8 under way through two opens");
        assert_eq!(work(0, 0.0, 40.0).threads(), None, "NFSv3");
    }

    #[test]
    fn attributes_that_come_along_with_writes_are_no_calls_of_their_own() {
        let plain = work(1, 0.0, 1.0);
        assert!((plain.metadata_share() - 0.2).abs() < 1e-9);
        let linux = Work { attributes: 200.0, ..plain };
        assert!((linux.metadata_share() - 50.0 / 1050.0).abs() < 1e-9);
    }
}
