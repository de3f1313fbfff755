//! `anabranch client explain`: why a client has fewer connections than it could.

use std::fmt::Write;

use control::clients::{Clients, NfsClient, SmbSession};
use control::explain::{Finding, channels_possible, nfs_client, smb_session};
use serde::Serialize;

use super::{counted, duration, list};

/// Lines are no longer than this.
const LINE_CHARS: usize = 100;

/// What was found about all clients.
#[derive(Debug, Serialize)]
pub(crate) struct Explained<'a> {
    smb_sessions: Vec<ExplainedSession<'a>>,
    nfs_clients: Vec<ExplainedClient<'a>>,
}

#[derive(Debug, Serialize)]
struct ExplainedSession<'a> {
    session: &'a SmbSession,
    channels_possible: u32,
    findings: Vec<Finding>,
}

#[derive(Debug, Serialize)]
struct ExplainedClient<'a> {
    client: &'a NfsClient,
    findings: Vec<Finding>,
}

/// What is found about these clients.
pub(crate) fn of(clients: &Clients) -> Explained<'_> {
    let session = |session| {
        let offer = clients.smb_offer_to(session);
        ExplainedSession {
            session,
            channels_possible: channels_possible(offer, session),
            findings: smb_session(offer, session),
        }
    };
    let client = |client| ExplainedClient { client, findings: nfs_client(client) };
    Explained {
        smb_sessions: clients.smb_sessions.iter().map(session).collect(),
        nfs_clients: clients.nfs_clients.iter().map(client).collect(),
    }
}

/// The findings, for people.
pub(crate) fn render(clients: &Clients) -> String {
    let explained = of(clients);
    let mut text = String::new();
    if explained.smb_sessions.is_empty() && explained.nfs_clients.is_empty() {
        return "no client is connected\n".to_owned();
    }
    for ExplainedSession { session, channels_possible, findings } in &explained.smb_sessions {
        let client = session.client().map_or_else(|| "?".to_owned(), |client| client.to_string());
        let _ = writeln!(
            text,
            "SMB session {} of {}{} from {client}: {}, {channels_possible} possible, {} allowed",
            session.id,
            list::user(session),
            at(session.vserver.as_ref()),
            counted(session.channels.len(), "channel"),
            session.max_channels,
        );
        let _ = writeln!(
            text,
            "  SMB {}; signing {}; encryption {}; idle for {}",
            session.dialect,
            list::signing(session),
            list::encryption(session),
            duration(session.idle_seconds),
        );
        tell(&mut text, findings, "this session");
    }
    for ExplainedClient { client, findings } in &explained.nfs_clients {
        let connections = counted(client.connections.len(), "connection");
        let at = at(client.vserver.as_ref());
        let _ = writeln!(text, "NFS client {}{at}: {connections}", client.address);
        tell(&mut text, findings, "this client");
    }
    text
}

/// Where a client is connected that is not connected to the server itself.
fn at(vserver: Option<&String>) -> String {
    vserver.map_or_else(String::new, |vserver| format!(" at the vserver {vserver}"))
}

fn tell(text: &mut String, findings: &[Finding], whom: &str) {
    for finding in findings {
        let mark = if finding.limits { '*' } else { '-' };
        let Finding { what, evidence, advice, .. } = finding;
        let _ = writeln!(text, "  {mark} {what}");
        paragraph(text, "seen:", evidence);
        paragraph(text, "to do:", advice);
    }
    if !findings.iter().any(|finding| finding.limits) {
        let _ = writeln!(text, "  nothing limits {whom}");
    }
    text.push('\n');
}

/// A text under a title, in lines of a readable length.
fn paragraph(text: &mut String, title: &str, words: &str) {
    let mut line = format!("      {title:6} ");
    for word in words.split_whitespace() {
        if line.chars().count().saturating_add(word.chars().count()) >= LINE_CHARS {
            let _ = writeln!(text, "{}", line.trim_end());
            line = " ".repeat(13);
        }
        line.push_str(word);
        line.push(' ');
    }
    let _ = writeln!(text, "{}", line.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_broken_into_lines() {
        let mut text = String::new();
        paragraph(&mut text, "seen:", &"word ".repeat(40));
        assert!(text.starts_with("      seen:  word") && text.ends_with("word\n"), "{text}");
        assert!(text.lines().count() == 3 && text.lines().all(|line| line.len() <= LINE_CHARS), "{text}");
        assert!(text.lines().skip(1).all(|line| line.starts_with("             word")), "{text}");
    }

    #[test]
    fn nobody_is_explained_too() {
        assert_eq!(render(&Clients::default()), "no client is connected\n");
    }
}
