//! A directory of exports(5) becomes a share.

use access::Network;
use gateway::settings::check_share_name;

use super::kind::Kind;
use super::{Client, Export};
use crate::clients::{Admitted, ClientRule, RULES_MAX};
use crate::draft::Share;
use crate::note::{Grade, Note, Notes};

/// The share in the making.
struct Making<'a> {
    share: Share,
    rules: Vec<ClientRule>,
    /// What those are limited to who may be clients that are left out; None: they are refused.
    limit: Option<Admitted>,
    notes: &'a mut Notes,
}

/// The share of a directory.
pub(super) fn share(export: Export, name: String, notes: &mut Notes) -> Share {
    let Export { path, mut clients } = export;
    let share = Share { name, directory: path, protocol: "nfs", ..Share::default() };
    let mut making = Making { share, rules: Vec::new(), limit: Some(Admitted::FREELY), notes };
    making.check();
    clients.sort_by_key(|client| Kind::of(&client.name).rank());
    clients.iter().for_each(|client| making.client(client));
    making.finish()
}

impl Making<'_> {
    fn note(&mut self, client: &Client, grade: Grade, option: &str, why: &str) {
        self.notes.add(Note {
            grade,
            place: client.place.clone(),
            section: self.share.directory.clone(),
            parameter: if client.name.is_empty() { "*".to_owned() } else { client.name.clone() },
            value: option.to_owned(),
            why: why.to_owned(),
        });
    }

    fn check(&mut self) {
        let Share { name, directory, .. } = &self.share;
        let remark = format!("Clients mount HOST:/{name} in place of HOST:{directory}.");
        let is_path = directory.starts_with('/') && !directory.chars().any(char::is_control);
        let named = check_share_name(name);
        self.share.remarks.push(remark);
        if !is_path {
            self.share.close("the path does not begin with /, or has control characters");
        }
        if let Err(why) = named {
            self.share.close(why);
        }
    }

    fn client(&mut self, client: &Client) {
        for (grade, option, why) in &client.options.left_out {
            self.note(client, *grade, option, why);
        }
        if let Some(why) = &client.options.closed {
            self.share.close(why.clone());
            self.note(client, Grade::ChangesAccess, "", why);
        }
        let kind = Kind::of(&client.name);
        let admitted = client.options.admitted();
        if let (Err(why), true) = (&admitted, kind != Kind::Kerberos) {
            self.note(client, Grade::ChangesAccess, "", &format!("{why}: the client is refused"));
        }
        match kind.network() {
            Ok(network) => self.admit(client, network, admitted.ok()),
            Err(why) => self.leave_out(client, &kind, admitted.ok(), why),
        }
    }

    fn leave_out(&mut self, client: &Client, kind: &Kind, admitted: Option<Admitted>, why: &str) {
        self.note(client, Grade::ChangesAccess, "", &format!("{why}; it is left out"));
        self.share.remarks.push(format!("Left out: {}: {why}.", client.name));
        // Clients with Kerberos are never taken for others.
        if *kind != Kind::Kerberos {
            self.limit = self.limit.zip(admitted).map(|(limit, admitted)| limit.and(admitted));
        }
    }

    fn admit(&mut self, client: &Client, network: Network, admitted: Option<Admitted>) {
        let limited = admitted.zip(self.limit).map(|(admitted, limit)| admitted.and(limit));
        if limited != admitted {
            let why = "it gets no more than the clients that are left out: they may be among these";
            self.note(client, Grade::ChangesAccess, "", why);
        }
        if limited.is_some_and(|limited| limited.squash == Some(access::Squash::None)) {
            let why = "root of the client neither creates device nodes nor sets set-id bits, unless the share has \
                       `devices = true` or `set-id = true`";
            self.note(client, Grade::NoCounterpart, "no_root_squash", why);
        }
        if network == Network::Any && limited.is_some_and(|limited| !limited.read_only) {
            let why = "every client may write, as exportfs reads this line too: is that meant?";
            self.note(client, Grade::NotNeeded, "rw", why);
        }
        if !self.rules.iter().any(|rule| rule.network == network) {
            self.rules.push(ClientRule { network, admitted: limited });
        }
    }

    fn finish(mut self) -> Share {
        if self.rules.iter().all(|rule| rule.admitted.is_none()) {
            self.share.close("none of its clients can be admitted");
        }
        if self.rules.len() > RULES_MAX {
            self.share.close(format!("its client list would have more than {RULES_MAX} entries"));
        }
        self.share.clients = Some(self.rules);
        self.share
    }
}
