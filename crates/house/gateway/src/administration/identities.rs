//! What a user becomes on this server, and by which rule.

use std::sync::Arc;
use std::time::SystemTime;

use acl::Sid;
use auth::{Account, Accounts, DomainUser, Reason};
use control::identities::{Knowledge, TestFinding, TestedGroup, TestedShare, TestedUser};
use control::{Refusal, RefusalKind};
use share::{Identity, Proof, SeenIds};

use super::{Administration, Serving, invalid, refused};
use crate::acquaintances::Acquaintance;
use crate::kerberos::{IdMapping, Tickets};

/// The most bytes of a name: that of a principal of Kerberos here.
const NAME_BYTES_MAX: usize = 1024;
/// The groups that a call of AUTH_SYS can name. RFC 5531 appendix A.
const GROUPS_OF_SYS: usize = 16;
/// The groups with which Windows lets somebody log on: 1,024 SIDs in a token, of which it adds nine itself.
const GROUPS_OF_WINDOWS: usize = 1015;
/// Domain Users, to which every user of a domain belongs. [MS-DTYP] 2.4.2.4.
const DOMAIN_USERS: u32 = 513;

/// The forms of names.
const FORMS: &str =
    "Write alice for an account, alice@EXAMPLE.ORG or EXAMPLE\\alice for a user of a domain, or a SID.";

/// Whom a text names.
#[derive(Debug, PartialEq, Eq)]
enum Asked<'a> {
    Sid(Sid),
    /// `alice`
    Plain(&'a str),
    /// `alice@EXAMPLE.ORG`
    WithRealm(&'a str),
    /// `EXAMPLE\alice`
    WithDomain(&'a str, &'a str),
}

impl<'a> Asked<'a> {
    /// # Errors
    /// Why the text can be no user's name.
    fn parse(text: &'a str) -> Result<Self, Refusal> {
        let refused = |why: &str| Err(invalid(format!("{text:?} can be no user's name: {why}"), FORMS));
        if text.is_empty() {
            return refused("it is empty");
        }
        if text.len() > NAME_BYTES_MAX {
            return Err(invalid(format!("a name has at most {NAME_BYTES_MAX} bytes"), FORMS));
        }
        if text.chars().any(char::is_control) {
            return refused("it has NUL or another control character");
        }
        if text.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("S-"))
            && let Ok(sid) = text.parse()
        {
            return Ok(Self::Sid(sid));
        }
        match (text.split_once('\\'), text.split_once('@')) {
            (Some(_), Some(_)) => refused(r"it has both \ and @"),
            (Some((domain, name)), None) if name.contains('\\') || domain.is_empty() || name.is_empty() => {
                refused(r"there must be one \ between two names")
            }
            (Some((domain, name)), None) => Ok(Self::WithDomain(domain, name)),
            (None, Some((name, realm))) if realm.contains('@') || realm.is_empty() || name.is_empty() => {
                refused("there must be one @ between two names")
            }
            (None, Some(_)) => Ok(Self::WithRealm(text)),
            (None, None) => Ok(Self::Plain(text)),
        }
    }
}

impl Administration {
    pub(super) fn test(&self, name: &str) -> Result<TestedUser, Refusal> {
        let asked = Asked::parse(name)?;
        let serving = of_server(self.serving.as_ref())?;
        let tickets = serving.accounts.tickets();
        let server_name = smb_server::Config::default().server_name;
        let test = Test { serving, server_name, tickets: &tickets, now: SystemTime::now() };
        let mut tested = test.of(&asked);
        name.clone_into(&mut tested.asked);
        test.tell_of_server(&mut tested);
        test.tell_of_refused(&mut tested);
        Ok(tested)
    }
}

/// What a test works with.
struct Test<'a> {
    serving: &'a Serving,
    /// The name before `\\` of the accounts.
    server_name: String,
    tickets: &'a Tickets,
    now: SystemTime,
}

impl Test<'_> {
    fn of(&self, asked: &Asked<'_>) -> TestedUser {
        let accounts = &self.serving.accounts;
        let met = &accounts.acquaintances;
        match asked {
            Asked::Sid(sid) => self.of_sid(sid),
            Asked::WithRealm(name) => match met.named(name) {
                Some(known) => self.acquaintance(&known),
                None => self.with_realm(name),
            },
            Asked::WithDomain(domain, name) if auth::same_name(domain, &self.server_name) => {
                accounts.find(name).map_or_else(|| self.no_account(name), |account| self.account(&account))
            }
            Asked::WithDomain(domain, name) => {
                self.one_of(&met.in_domain(Some(domain), name)).unwrap_or_else(|| self.stranger(None))
            }
            Asked::Plain(name) => {
                let namesakes = met.in_domain(None, name);
                let Some(account) = accounts.find(name) else {
                    return self.one_of(&namesakes).unwrap_or_else(|| self.no_account(name));
                };
                let mut tested = self.account(&account);
                tested.findings.extend(namesakes.iter().map(|known| TestFinding {
                    what: format!("{} is another user than the account {}", known.name, account.name),
                    advice: format!("To test that user, write {}.", known.name),
                }));
                tested
            }
        }
    }

    /// The user, if the name is that of one alone; the first of several otherwise.
    fn one_of(&self, found: &[Arc<Acquaintance>]) -> Option<TestedUser> {
        let (first, others) = found.split_first()?;
        let mut tested = self.acquaintance(first);
        tested.findings.extend(others.iter().map(|known| TestFinding {
            what: format!("{} has the same name in another domain", known.name),
            advice: format!("To test that user, write {}.", known.name),
        }));
        Some(tested)
    }

    fn of_sid(&self, sid: &Sid) -> TestedUser {
        let accounts = &self.serving.accounts;
        if let Some(known) = accounts.acquaintances.with_sid(sid) {
            return self.acquaintance(&known);
        }
        let names = accounts.names();
        let name = names.by_sid.get(sid).or_else(|| names.by_uid.get(&sid.uid()?));
        if let Some(account) = name.and_then(|name| accounts.find(name)) {
            return self.account(&account);
        }
        if let Some(uid) = sid.uid() {
            let identity = Identity::unix(uid, uid, Vec::new());
            let rule = "the SID of a number (S-1-22-1) is the user with this number".to_owned();
            let tested = TestedUser { gid: None, rule, ..self.tested(Knowledge::Sid, &identity) };
            return TestedUser { shares: self.shares(&identity, &Proof::Stated), ..tested };
        }
        self.of_domain(sid)
    }

    /// A user of a domain who is known by the SID alone.
    fn of_domain(&self, sid: &Sid) -> TestedUser {
        let Some((domain, _)) = sid.in_domain() else {
            let mut tested = self.stranger(Some(sid));
            "well-known SIDs and those of other authorities are nobody".clone_into(&mut tested.rule);
            return tested;
        };
        if !self.tickets.has_domain(&domain) {
            let mut tested = self.stranger(Some(sid));
            tested.findings = vec![TestFinding {
                what: format!(
                    "the domain {domain} is not in domain-sid: its users have no number, and are refused"
                ),
                advice: format!("If they shall come, add it: domain-sid = [..., \"{domain}\"]"),
            }];
            return tested;
        }
        if self.tickets.are_asked_for() {
            let mut tested = self.stranger(Some(sid));
            tested.findings = vec![not_seen("nobody is asked for the numbers of a user without one")];
            self.ask_directory(&mut tested, sid);
            return tested;
        }
        let Some(uid) = self.tickets.id_of(sid) else {
            let mut tested = self.stranger(Some(sid));
            tested.findings = vec![of_reason(Reason::ReservedId)];
            return tested;
        };
        let group = domain.member(DOMAIN_USERS);
        let gid = group.as_ref().and_then(|group| self.tickets.id_of(group));
        let identity = Identity::unix(uid, gid.unwrap_or(uid), Vec::new()).with_sids(Some(*sid), group);
        let mut tested = TestedUser { gid, ..self.tested(Knowledge::Sid, &identity) };
        tested.shares = self.shares(&identity, &Proof::Stated);
        tested.findings.push(TestFinding {
            what: "only the SID is known: no ticket of the user has come since the server started, so the groups beside Domain Users and the name are not known"
                .to_owned(),
            advice: "Ask again when the user has connected.".to_owned(),
        });
        tested
    }

    fn account(&self, account: &Account) -> TestedUser {
        let identity =
            Identity::unix(account.uid, account.gid, account.groups.clone()).with_sids(account.sid, []);
        let mut tested = self.tested(Knowledge::Account, &identity);
        tested.name = Some(account.name.clone());
        "an account of this server has the numbers that it was given (`anabranch user list`)"
            .clone_into(&mut tested.rule);
        tested.shares = self.shares(&identity, &Proof::Password(account.name.as_str().into()));
        if account.disabled {
            let advice = format!("To let the user log on: anabranch user set {} --enable", account.name);
            tested.findings.push(TestFinding { what: "the account is disabled".to_owned(), advice });
        }
        tested
    }

    fn acquaintance(&self, known: &Acquaintance) -> TestedUser {
        let mut tested = match &known.outcome {
            Ok(user) => self.domain_user(user),
            Err(reason) => {
                let mut tested = self.stranger(known.sid.as_ref());
                tested.findings = vec![of_reason(*reason)];
                tested
            }
        };
        if let Some(sid) = &known.sid {
            self.ask_directory(&mut tested, sid);
        }
        tested.known = Knowledge::Ticket;
        tested.name = Some(known.name.clone());
        tested.ticket_seconds_ago = Some(self.now.duration_since(known.at).map_or(0, |ago| ago.as_secs()));
        tested
    }

    fn domain_user(&self, user: &DomainUser) -> TestedUser {
        let identity = Identity::unix(user.uid, user.gid, user.groups.clone())
            .with_sids(Some(user.sid), user.group_sids.iter().copied());
        let mut tested = self.tested(Knowledge::Ticket, &identity);
        tested.shares = self.shares(&identity, &Proof::Ticket(user.name.as_str().into()));
        if user.foreign_sids > 0 {
            tested.findings.push(TestFinding {
                what: format!("{} SIDs of other domains in the ticket do not count", user.foreign_sids),
                advice: "If they shall, name their domains: trusted-domains = [\"S-1-5-21-...\"]".to_owned(),
            });
        }
        tested.findings.extend(of_group_count(user.group_sids.len().max(user.groups.len())));
        tested
    }

    /// Says what the directory of the domain says of a user now, if that has the numbers. May wait for it.
    fn ask_directory(&self, tested: &mut TestedUser, sid: &Sid) {
        let Some(directory) = self.tickets.directory() else { return };
        if self.tickets.settings.id_mapping != IdMapping::Rfc2307 {
            return;
        }
        let server = directory.server();
        match directory.entries(&[*sid]).as_deref() {
            Ok([entry, ..]) => {
                let shown = |number: Option<u32>| number.map_or_else(|| "none".to_owned(), |n| n.to_string());
                let (uid, gid) = (shown(entry.uid), shown(entry.gid));
                let found = format!(" There: uidNumber {uid}, gidNumber {gid} of {}.", entry.dn);
                tested.rule.push_str(&found);
            }
            Ok([]) => tested.findings.push(TestFinding {
                what: format!("the directory at {server} has no entry with the SID {sid}"),
                advice: "See whether domain-ldap-base is above the user, and whether domain-ldap-account may read the entry."
                    .to_owned(),
            }),
            Err(error) => tested.findings.push(TestFinding {
                what: format!("{error}; what it said before counts for 7 days"),
                advice: format!("{}.", error.advice),
            }),
        }
    }

    /// A user of a realm of whom nothing has come.
    fn with_realm(&self, name: &str) -> TestedUser {
        let (account, realm) = name.split_once('@').unwrap_or((name, ""));
        let realms = &self.tickets.settings.account_realms;
        if !realms.iter().any(|known| known == realm) {
            let mut tested = self.stranger(None);
            let in_case = realms.iter().find(|known| known.eq_ignore_ascii_case(realm));
            tested.findings.extend(in_case.map(|known| TestFinding {
                what: format!("account-realm has {known}: realms are told apart by case"),
                advice: format!("Write {account}@{known}."),
            }));
            return tested;
        }
        match self.serving.accounts.find(account) {
            Some(found) => {
                let rule = format!(
                    "the realm {realm} is in account-realm: its principals are the accounts of their names"
                );
                TestedUser { rule, ..self.account(&found) }
            }
            None => {
                let mut tested = self.no_account(account);
                tested.findings = vec![of_reason(Reason::UnknownPrincipal)];
                tested
            }
        }
    }

    fn no_account(&self, name: &str) -> TestedUser {
        let mut tested = self.stranger(None);
        tested.findings.insert(
            0,
            TestFinding {
                what: format!("there is no account {name}"),
                advice: format!(
                    "To add it: anabranch user add {name}. A user of a domain has a realm: {name}@EXAMPLE.ORG"
                ),
            },
        );
        tested
    }

    /// A user of whom nothing is known but the SID, at most.
    fn stranger(&self, sid: Option<&Sid>) -> TestedUser {
        let (rule, not_seen) = if self.tickets.are_asked_for() {
            (rule(self.tickets), not_seen("nobody is asked for the numbers of a user without one"))
        } else {
            let rule = format!("{} The name alone gives no number.", rule(self.tickets));
            let TestFinding { what, advice } = not_seen("without one only a SID leads to a number");
            let by_sid = "Give the SID (wbinfo --name-to-sid, Get-ADUser).";
            (rule, TestFinding { what, advice: format!("{by_sid} Or: {advice}") })
        };
        TestedUser {
            asked: String::new(),
            known: Knowledge::Unknown,
            name: None,
            sid: sid.map(Sid::to_string),
            uid: None,
            gid: None,
            groups: Vec::new(),
            ticket_seconds_ago: None,
            rule,
            shares: Vec::new(),
            findings: if sid.is_none() { vec![not_seen] } else { Vec::new() },
        }
    }

    /// What is common to all who are somebody.
    fn tested(&self, known: Knowledge, identity: &Identity) -> TestedUser {
        TestedUser {
            known,
            sid: identity.sid().map(|sid| sid.to_string()),
            uid: Some(identity.uid()),
            gid: Some(identity.gid()),
            groups: self.groups(identity),
            rule: rule(self.tickets),
            findings: Vec::new(),
            ..self.stranger(None)
        }
    }

    /// The number of a group of a domain: it follows from the SID, or was seen.
    fn gid_of(&self, sid: &Sid) -> Option<u32> {
        self.tickets.id_of(sid).or_else(|| self.serving.accounts.acquaintances.gid_of(sid))
    }

    /// The groups with SIDs first; a number that is that of a SID is not named again.
    fn groups(&self, identity: &Identity) -> Vec<TestedGroup> {
        let own = identity.sid();
        let sids = identity.sids().iter().filter(|sid| Some(**sid) != own);
        let mut groups: Vec<_> =
            sids.map(|sid| TestedGroup { sid: Some(sid.to_string()), gid: self.gid_of(sid) }).collect();
        for gid in identity.groups().iter().copied().chain([identity.gid()]) {
            if !groups.iter().any(|group| group.gid == Some(gid)) {
                groups.push(TestedGroup { sid: None, gid: Some(gid) });
            }
        }
        groups
    }

    fn shares(&self, identity: &Identity, proof: &Proof) -> Vec<TestedShare> {
        let shares = self.serving.shares.present();
        let role = |share: &Arc<share::Share>| {
            let (role, by) = share.grant(identity, proof).unzip();
            let role = role.map(|role| role.name().to_owned());
            TestedShare { share: share.name().to_owned(), role, by }
        };
        shares.in_order().iter().map(role).collect()
    }

    /// The user's tickets that were refused lately. What was made of the others is told already.
    fn tell_of_refused(&self, tested: &mut TestedUser) {
        let names = [Some(&*tested.asked), tested.name.as_deref()];
        let findings = refused::tickets(self.serving, self.now, |ticket| {
            let is_one = |client: &str| names.iter().flatten().any(|name| auth::same_name(name, client));
            let is_of_user = ticket.client.as_deref().is_some_and(is_one);
            is_of_user && refused::is_of_ticket(ticket.reason)
        });
        tested.findings.extend(findings);
    }

    /// What concerns all users with tickets.
    fn tell_of_server(&self, tested: &mut TestedUser) {
        if tested.known == Knowledge::Account {
            return;
        }
        if !self.tickets.are_accepted {
            tested.findings.insert(
                0,
                TestFinding {
                    what: "the server has no keytab: it accepts no tickets".to_owned(),
                    advice: "Import one: anabranch domain import --keytab FILE".to_owned(),
                },
            );
        }
        if tested.uid.is_some() && !tested.shares.iter().any(|share| share.role.is_some()) {
            tested.findings.push(TestFinding {
                what: "the user may use no share".to_owned(),
                advice: "Name the user, or a group of the user, in `read` or `write` of a share.".to_owned(),
            });
        }
    }
}

/// # Errors
/// No server is running.
pub(super) fn of_server(serving: Option<&Serving>) -> Result<&Serving, Refusal> {
    serving.ok_or_else(|| {
        let what = "no server is running, and only one that does knows what becomes of its users: its configuration says which numbers they have, \
                    their tickets say in which groups they are, and its shares say what they may do";
        let advice = "Start it, and ask again. Without one, `anabranch domain status` shows the keytab, the names of this machine without a key and \
                      how much the clocks differ; `anabranch check FILE` the configuration; `anabranch user list` the accounts.";
        Refusal::new(RefusalKind::NotFound, what, advice)
    })
}

/// The rule that gives numbers to users and groups of domains.
pub(super) fn rule(tickets: &Tickets) -> String {
    let base = tickets.settings.id_base;
    match tickets.settings.id_mapping {
        IdMapping::Rid => format!("domain-id-mapping = \"rid\": {base} plus the last part of the SID."),
        IdMapping::Autorid => format!(
            "domain-id-mapping = \"autorid\": the domain's 100000 numbers from {base} on, plus the last part of the SID."
        ),
        IdMapping::Sss => {
            "domain-id-mapping = \"sss\": as SSSD, from the domain's SID, plus the last part of the SID."
                .to_owned()
        }
        IdMapping::Rfc2307 => format!(
            "domain-id-mapping = \"rfc2307\": uidNumber and gidNumber of the directory at {}.",
            tickets.settings.directory.server.as_deref().unwrap_or_default()
        ),
        IdMapping::Nss => format!(
            "domain-id-mapping = \"nss\": those of the name service of this machine, which is asked for {}.",
            tickets.settings.nss_names.form()
        ),
    }
}

/// No ticket of a user has come, so `this` is the case.
fn not_seen(this: &str) -> TestFinding {
    TestFinding {
        what: format!("no ticket of the user has come since the server started, and {this}"),
        advice: "Let the user connect and ask again. If the user tried: the log says why a ticket is refused (wrong or stale keytab, clocks \
                 that differ). If it says nothing, the client got no ticket: its KDC does not answer, or has no such service name \
                 (`anabranch domain status`)."
            .to_owned(),
    }
}

/// What is the matter with a user in so many groups.
fn of_group_count(groups: usize) -> Vec<TestFinding> {
    let of_sys = TestFinding {
        what: format!(
            "over NFS with AUTH_SYS a client can name {GROUPS_OF_SYS} of the user's {groups} groups"
        ),
        advice: "Mount with sec=krb5, krb5i or krb5p: the groups of a ticket all count.".to_owned(),
    };
    let of_windows = TestFinding {
        what: format!("Windows lets nobody log on who is in more than {GROUPS_OF_WINDOWS} groups"),
        advice: format!(
            "Take the user out of groups. The groups are in the ticket, and tickets of more than {} KiB are refused here.",
            krb5::TOKEN_BYTES_MAX >> 10
        ),
    };
    let findings = [(groups > GROUPS_OF_SYS, of_sys), (groups > GROUPS_OF_WINDOWS, of_windows)];
    findings.into_iter().filter_map(|(is_so, finding)| is_so.then_some(finding)).collect()
}

/// The reason for which nobody is made of a user; after the colon it says what to do.
fn of_reason(reason: Reason) -> TestFinding {
    let text = reason.to_string();
    let (what, advice) = text.split_once(": ").unwrap_or((&text, ""));
    TestFinding { what: what.to_owned(), advice: advice.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_four_forms() {
        assert_eq!(Asked::parse("alice").unwrap(), Asked::Plain("alice"));
        assert_eq!(Asked::parse("Alice@AD.TEST").unwrap(), Asked::WithRealm("Alice@AD.TEST"));
        assert_eq!(Asked::parse(r"AD\alice").unwrap(), Asked::WithDomain("AD", "alice"));
        let sid = "S-1-5-21-1-2-3-1104";
        assert_eq!(Asked::parse("s-1-5-21-1-2-3-1104").unwrap(), Asked::Sid(sid.parse().unwrap()));
        assert_eq!(Asked::parse("S-1-x").unwrap(), Asked::Plain("S-1-x"));
        let longest = "a".repeat(1024);
        assert_eq!(Asked::parse(&longest).unwrap(), Asked::Plain(&longest));
    }

    #[test]
    fn what_can_be_no_name_is_refused_with_the_reason() {
        let long = "a".repeat(1025);
        for (text, why) in [
            ("", "empty"),
            ("a\0b", "NUL"),
            ("a\nb", "control"),
            (r"AD\alice@AD.TEST", "both"),
            (r"A\B\c", "one \\"),
            (r"\alice", "one \\"),
            (r"AD\", "one \\"),
            ("a@b@c", "one @"),
            ("@AD.TEST", "one @"),
            ("alice@", "one @"),
            (&*long, "1024 bytes"),
        ] {
            let refused = Asked::parse(text).unwrap_err();
            assert!(refused.what.contains(why) && refused.advice.contains("alice@"), "{text:?}: {refused:?}");
        }
    }

    #[test]
    fn a_user_in_very_many_groups_is_told_what_that_means() {
        let count = |groups| of_group_count(groups).len();
        assert_eq!([0, 16, 17, 1015, 1016, 10_000].map(count), [0, 0, 1, 1, 2, 2]);
        let [of_sys, of_windows] = &of_group_count(1200)[..] else { panic!() };
        assert!(of_sys.what.contains("16 of the user's 1200 groups"), "{of_sys:?}");
        assert!(of_windows.what.contains("1015") && of_windows.advice.contains("64 KiB"), "{of_windows:?}");
    }

    #[test]
    fn a_reason_says_what_to_do_after_the_colon() {
        let low = of_reason(Reason::ReservedId);
        assert!(low.what.contains("below 1000") && low.advice.contains("domain-id-base"), "{low:?}");
        assert_eq!(of_reason(Reason::UnknownUser).advice, "");
    }
}
