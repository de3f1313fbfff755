//! The calls of a short interval by their clients.

use std::time::Duration;

use control::activity::{ApiActivity, ClientActivity};
use control::clients::{Clients as Connected, SmbSession};
use control_client::path_part;
use serde::Serialize;

use super::costs::rate;
use super::per_second;
use crate::control_access::Access;
use crate::print::{harmless, latency};
use crate::problem::Result;
use crate::shares::show::mean;
use crate::table::{Column, within};

/// Clients that are asked about.
const CLIENTS_MAX: usize = 100;

/// The clients that are connected, with what they have called.
pub(super) type Clients = Vec<Client>;

/// A client and its calls since the server started.
#[derive(Debug, Clone)]
pub(super) struct Client {
    /// As in the metrics.
    id: String,
    address: String,
    user: String,
    activity: ClientActivity,
}

/// What a client has called between two looks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ClientCost {
    client: String,
    address: String,
    user: String,
    shares: Vec<String>,
    calls_per_second: f64,
    bytes_per_second: f64,
    mean_seconds: f64,
    /// Of that, waiting for the limits of the shares.
    mean_limit_seconds: f64,
    files_in_use: u64,
    #[serde(skip)]
    seconds: f64,
}

/// Asks for the clients and for what each has called.
///
/// # Errors
/// The server cannot be asked.
pub(super) fn look(access: &Access) -> Result<Clients> {
    let connected: Connected = control_client::get(access, "/v1/clients")?;
    // The activity is that of the server's own shares.
    let connected = connected.without_vservers();
    let mut clients: Clients = Vec::new();
    for session in &connected.smb_sessions {
        if !clients.iter().any(|client| client.id == session.client_guid) {
            clients.push(of_session(session));
        }
    }
    clients.extend(connected.nfs_clients.iter().map(|client| Client {
        id: client.address.to_string(),
        address: client.address.to_string(),
        user: "-".to_owned(),
        activity: ClientActivity::default(),
    }));
    clients.truncate(CLIENTS_MAX);
    for client in &mut clients {
        // One that has called nothing of a share is not known there.
        let path = format!("/v1/clients/{}/activity", path_part(&client.id));
        client.activity = match control_client::get(access, &path) {
            Err(control_client::Error::Refused(_)) => ClientActivity::default(),
            activity => activity?,
        };
    }
    Ok(clients)
}

fn of_session(session: &SmbSession) -> Client {
    Client {
        id: session.client_guid.clone(),
        address: session.client().map_or_else(|| "-".to_owned(), |address| address.to_string()),
        user: session.user.clone(),
        activity: ClientActivity::default(),
    }
}

/// What the clients have called between two looks, the busiest first.
pub(super) fn between(before: &Clients, after: &Clients, elapsed: Duration) -> Vec<ClientCost> {
    let elapsed = elapsed.as_secs_f64().max(1e-3);
    let cost = |client: &Client| {
        let earlier = before.iter().find(|earlier| earlier.id == client.id);
        let since = |count: fn(&ApiActivity) -> u64| {
            let of = |activity: &ClientActivity| calls(activity).map(count).sum::<u64>();
            of(&client.activity).saturating_sub(earlier.map_or(0, |earlier| of(&earlier.activity)))
        };
        let spent = |time: fn(&ApiActivity) -> f64| {
            let of = |activity: &ClientActivity| calls(activity).map(time).sum::<f64>();
            (of(&client.activity) - earlier.map_or(0.0, |earlier| of(&earlier.activity))).max(0.0)
        };
        let (calls, seconds) = (since(|api| api.calls), spent(|api| api.seconds));
        ClientCost {
            client: client.id.clone(),
            address: client.address.clone(),
            user: client.user.clone(),
            shares: client.activity.shares.iter().map(|share| share.name.clone()).collect(),
            calls_per_second: rate(calls, elapsed),
            bytes_per_second: rate(since(|api| api.bytes), elapsed),
            mean_seconds: mean(seconds, calls),
            mean_limit_seconds: mean(spent(|api| api.limit_seconds), calls),
            files_in_use: client.activity.shares.iter().map(|share| share.files_in_use).sum(),
            seconds,
        }
    };
    let mut costs: Vec<ClientCost> = after.iter().map(cost).collect();
    costs.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    costs
}

fn calls(activity: &ClientActivity) -> impl Iterator<Item = &ApiActivity> {
    activity.shares.iter().flat_map(|share| &share.apis)
}

/// The busiest clients as a table that is no wider than `width`.
pub(super) fn render(costs: &[ClientCost], elapsed: Duration, (rows_max, width): (usize, usize)) -> String {
    if costs.is_empty() {
        return "No client is connected.\n".to_owned();
    }
    let rows: Vec<Vec<String>> = costs.iter().take(rows_max).map(row).collect();
    let columns = [
        Column::always("CLIENT"),
        Column::always("USER"),
        Column::if_room("SHARES", 1),
        Column::always("CALLS/S"),
        Column::always("BYTES"),
        Column::always("MEAN LATENCY"),
        Column::if_room("LIMIT", 2),
        Column::if_room("FILES", 3),
    ];
    let more = costs.len().saturating_sub(rows_max);
    let more = if more > 0 { format!("and {more} more\n") } else { String::new() };
    let table = within(width, &columns, &rows);
    format!("In the last {:.1} s, sorted by total time:\n{table}{more}", elapsed.as_secs_f64())
}

fn row(cost: &ClientCost) -> Vec<String> {
    vec![
        cost.address.clone(),
        harmless(&cost.user),
        if cost.shares.is_empty() { "-".to_owned() } else { cost.shares.join(",") },
        format!("{:.1}", cost.calls_per_second),
        per_second(cost.bytes_per_second),
        latency(cost.mean_seconds),
        latency(cost.mean_limit_seconds),
        cost.files_in_use.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use control::activity::ClientShareActivity;

    use super::*;

    fn client(id: &str, calls: u64, seconds: f64) -> Client {
        let api = ApiActivity {
            protocol: "smb".to_owned(),
            api: "Read".to_owned(),
            calls,
            errors: 0,
            bytes: calls * 1024,
            small: 0,
            throttled: 0,
            seconds,
            limit_seconds: seconds / 2.0,
            queue_seconds: 0.0,
            storage_seconds: 0.0,
            network_seconds: 0.0,
        };
        let share = ClientShareActivity {
            name: "data".to_owned(),
            files_in_use: 2,
            apis: vec![api],
            ..ClientShareActivity::default()
        };
        let activity = ClientActivity { client: id.to_owned(), shares: vec![share] };
        Client { id: id.to_owned(), address: "10.0.0.1".to_owned(), user: "anna".to_owned(), activity }
    }

    #[test]
    fn the_busiest_client_since_the_last_look_comes_first() {
        let before = vec![client("one", 100, 9.0)];
        let after = vec![client("one", 100, 9.0), client("two", 20, 1.0)];
        let costs = between(&before, &after, Duration::from_secs(2));
        let seen: Vec<_> = costs.iter().map(|cost| (cost.client.as_str(), cost.calls_per_second)).collect();
        assert_eq!(seen, [("two", 10.0), ("one", 0.0)]);
        assert!((costs[0].mean_seconds - 0.05).abs() < 1e-9 && costs[0].files_in_use == 2);
        let text = render(&costs, Duration::from_secs(2), (1, 80));
        assert!(text.contains("10.0.0.1") && text.ends_with("and 1 more\n"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert_eq!(render(&[], Duration::from_secs(1), (9, 80)), "No client is connected.\n");
    }
}
