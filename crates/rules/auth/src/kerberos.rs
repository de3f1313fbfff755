//! What a server needs to accept tickets, and whom it makes of the users who show them.

use std::fmt;
use std::sync::Arc;

use acl::Sid;
use identity::Domains;
use krb5::{Accepted, LogonInfo, Principal};

use crate::accounts::{Accounts, Identity};
use crate::failure::Reason;
use crate::numbers::{Identified, Ids, Numbering, Unnumbered};

/// How a server accepts Kerberos tickets.
pub struct Kerberos {
    /// The server's keys, and its rules for tickets
    pub acceptor: krb5::Acceptor,
    /// The tickets that were used; it has a lock of its own
    pub replays: Arc<dyn krb5::Replays + Send + Sync>,
    /// Who the users are
    pub mapping: Mapping,
}

impl fmt::Debug for Kerberos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kerberos").field("mapping", &self.mapping).finish_non_exhaustive()
    }
}

/// Whom a server makes of users with tickets.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// Which numbers the users and groups of domains have.
    pub numbering: Numbering,
    /// Realms without SIDs whose principals are the accounts of the same name.
    pub account_realms: Vec<String>,
    /// Domains other than the user's whose SIDs in a ticket count: those of groups there, and of the user before a move.
    pub trusted: Vec<Sid>,
}

/// A client with a ticket, and what became of it.
#[derive(Clone, Copy, Debug)]
pub struct Met<'a> {
    /// The client, by the word of the KDC
    pub client: &'a Principal,
    /// What the domain says of the client; None: nothing, as with MIT's KDC
    pub logon: Option<&'a LogonInfo>,
    /// Who the client is, or why nobody
    pub outcome: Result<&'a Identity, Reason>,
}

impl Mapping {
    /// The user to whom a ticket was given.
    ///
    /// # Errors
    /// The reason why nobody is made of this user.
    pub fn identify(&self, accepted: &Accepted, accounts: &dyn Accounts) -> Result<Identified, Reason> {
        let Accepted { client, service, pac, .. } = accepted;
        let logon = pac.as_ref().and_then(|pac| pac.logon.as_ref());
        let identified = match logon {
            Some(logon) => self.domain_user(client, service, logon),
            None => {
                self.account(client, accounts).map(|account| Identified::Known(Identity::Account(account)))
            }
        };
        let outcome = match &identified {
            Ok(Identified::Known(identity)) => Ok(identity),
            // what becomes of it is told when that is known
            Ok(Identified::Unnumbered(_)) => return identified,
            Err(reason) => Err(*reason),
        };
        accounts.met(&Met { client, logon, outcome });
        identified
    }

    /// Two domains may use the same RID, so only users of the domain to which this server belongs are mapped, and groups of
    /// other domains have no number. Their SIDs count only if somebody has said that the domain may vouch for them: whoever
    /// administers another domain could otherwise put any SID into its tickets ([MS-PAC] 4.1.2.2, "SID Filtering and Claims
    /// Transformation").
    fn domain_user(
        &self,
        client: &Principal,
        service: &Principal,
        logon: &LogonInfo,
    ) -> Result<Identified, Reason> {
        if !client.realm().eq_ignore_ascii_case(service.realm()) {
            return Err(Reason::OtherDomain);
        }
        let (domain, _) = logon.sid.in_domain().ok_or(Reason::NoSid)?;
        if !self.numbering.has(&domain) {
            return Err(Reason::OtherDomain);
        }
        let (group_sids, foreign_sids) = self.counted_sids(&domain, logon.groups());
        let user = Unnumbered {
            client: client.clone(),
            service: service.clone(),
            logon: logon.clone(),
            group_sids,
            foreign_sids,
        };
        match &self.numbering {
            Numbering::Formula(domains) => {
                let ids = ids(domains, &logon.sid, &logon.primary_group, logon.groups())?;
                Ok(Identified::Known(Identity::Domain(user.with(ids))))
            }
            Numbering::Asked { source, .. } => {
                Ok(Identified::Unnumbered(Box::new((user, Arc::clone(source)))))
            }
        }
    }

    /// Of a ticket's SIDs, those that count for a user of this domain, and how many of other domains do not.
    fn counted_sids(&self, domain: &Sid, sids: &[Sid]) -> (Arc<[Sid]>, usize) {
        let of_domains = || sids.iter().filter_map(|sid| Some((sid, sid.in_domain()?.0)));
        let counted = of_domains().filter(|(_, of)| of == domain || self.trusted.contains(of));
        let counted: Arc<[Sid]> = counted.map(|(sid, _)| *sid).collect();
        let foreign = of_domains().count().saturating_sub(counted.len());
        (counted, foreign)
    }

    /// The account of the same name, if the realm is one for which that is wanted.
    fn account(&self, client: &Principal, accounts: &dyn Accounts) -> Result<crate::Account, Reason> {
        if !self.account_realms.iter().any(|realm| realm == client.realm()) {
            return Err(Reason::NoSid);
        }
        let account = accounts.find(client.name()).ok_or(Reason::UnknownPrincipal)?;
        if account.disabled { Err(Reason::Disabled) } else { Ok(account) }
    }
}

/// The numbers of a user with these SIDs. Groups of other domains and well-known groups have none.
fn ids(domains: &Domains, user: &Sid, primary_group: &Sid, groups: &[Sid]) -> Result<Ids, Reason> {
    let (domain, _) = user.in_domain().ok_or(Reason::NoSid)?;
    let of = |sid: &Sid| {
        let (of, _) = sid.in_domain()?;
        domains.id_of(sid).filter(|_| of == domain)
    };
    let uid = of(user).ok_or(Reason::ReservedId)?;
    let gid = of(primary_group).ok_or(Reason::ReservedId)?;
    Ok(Ids { uid, gid, groups: groups.iter().filter_map(of).collect() }.in_order())
}

#[cfg(test)]
mod tests {
    use identity::Formula;

    use super::*;
    use crate::accounts::{Account, AccountList};

    fn domains(id_base: u32) -> Domains {
        Domains::of_any(Formula::Rid { base: id_base })
    }

    fn mapping(id_base: u32) -> Mapping {
        let numbering = Numbering::Formula(Arc::new(domains(id_base)));
        Mapping { numbering, account_realms: vec!["LAB.TEST".to_owned()], trusted: Vec::new() }
    }

    fn sid(text: &str) -> Sid {
        text.parse().unwrap()
    }

    #[test]
    fn numbers_are_the_base_and_the_rid() {
        let user = sid("S-1-5-21-1-2-3-1104");
        let groups = [
            sid("S-1-5-21-1-2-3-513"),
            sid("S-1-5-21-1-2-3-1200"),
            sid("S-1-5-21-1-2-3-1110"),
            sid("S-1-5-21-1-2-3-1200"),
            sid("S-1-5-21-1-2-4-1300"), // of another domain
            sid("S-1-5-32-545"),
            sid("S-1-18-1"),
            sid("S-1-1-0"),
        ];
        let ids = ids(&domains(1_000_000), &user, &groups[0], &groups).unwrap();
        let expected = Ids { uid: 1_001_104, gid: 1_000_513, groups: vec![1_001_110, 1_001_200] };
        assert_eq!(ids, expected);
    }

    /// [MS-PAC] 4.1.2.2: what the domain says of itself counts, and what it says of others only where that is wanted.
    #[test]
    fn sids_of_other_domains_count_if_the_domain_is_trusted() {
        let sids =
            ["S-1-5-21-1-2-3-513", "S-1-5-21-1-2-4-500", "S-1-5-21-9-9-9-1000", "S-1-5-32-544", "S-1-18-1"];
        let (sids, own) = (sids.map(sid), sid("S-1-5-21-1-2-3"));
        let counted = |trusted: &[&str]| {
            let trusted = trusted.iter().map(|text| sid(text)).collect();
            let (counted, foreign) = Mapping { trusted, ..mapping(0) }.counted_sids(&own, &sids);
            (counted.iter().map(Sid::to_string).collect::<Vec<_>>(), foreign)
        };
        assert_eq!(counted(&[]), (vec!["S-1-5-21-1-2-3-513".to_owned()], 2));
        let with_trust = vec!["S-1-5-21-1-2-3-513".to_owned(), "S-1-5-21-1-2-4-500".to_owned()];
        assert_eq!(counted(&["S-1-5-21-1-2-4"]), (with_trust, 1));
        // A group has a number only in the user's own domain: two domains may have the same RID.
        let ids = ids(&domains(1_000_000), &sid("S-1-5-21-1-2-3-1104"), &sids[0], &sids).unwrap();
        assert_eq!(ids.groups, [0; 0]);
    }

    #[test]
    fn no_number_below_1000_and_no_invalid_one_becomes_a_user() {
        let (user, group) = (sid("S-1-5-21-1-2-3-500"), sid("S-1-5-21-1-2-3-513"));
        let ids_of = |base| ids(&domains(base), &user, &group, &[]);
        assert_eq!(ids_of(0), Err(Reason::ReservedId));
        assert_eq!(ids_of(499), Err(Reason::ReservedId));
        assert_eq!(ids_of(500).map(|ids| ids.uid), Ok(1000));
        assert_eq!(ids_of(u32::MAX - 514).map(|ids| ids.gid), Ok(u32::MAX - 1));
        assert_eq!(ids_of(u32::MAX - 513), Err(Reason::ReservedId), "4294967295 is nobody's number");
        assert_eq!(ids_of(u32::MAX), Err(Reason::ReservedId));
        // a group below 1000 is left out, a user is not
        let low = [sid("S-1-5-21-1-2-3-10"), sid("S-1-5-21-1-2-3-2000")];
        let wide = ids(&domains(500), &user, &group, &low).unwrap();
        assert_eq!(wide.groups, [2500]);
        for well_known in ["S-1-5-18", "S-1-5-32-544", "S-1-22-1-0", "S-1-5-21-497"] {
            assert_eq!(ids(&domains(500), &sid(well_known), &group, &[]), Err(Reason::NoSid), "{well_known}");
        }
    }

    #[test]
    fn a_principal_is_the_account_of_its_name_only_where_that_is_wanted() {
        let account = |name: &str, disabled| Account {
            name: name.to_owned(),
            nt_hash: None,
            keys: None,
            uid: 1000,
            gid: 1000,
            groups: Vec::new(),
            sid: None,
            disabled,
        };
        let accounts = AccountList(vec![account("alice", false), account("gone", true)]);
        let of = |name: &[&str], realm: &str| {
            mapping(0).account(&Principal::new(name, realm).unwrap(), &accounts).map(|account| account.name)
        };
        assert_eq!(of(&["alice"], "LAB.TEST"), Ok("alice".to_owned()));
        assert_eq!(of(&["Alice"], "LAB.TEST"), Ok("alice".to_owned()));
        assert_eq!(of(&["alice"], "OTHER.TEST"), Err(Reason::NoSid));
        assert_eq!(of(&["alice"], "lab.test"), Err(Reason::NoSid), "realms have a case");
        assert_eq!(of(&["alice", "admin"], "LAB.TEST"), Err(Reason::UnknownPrincipal));
        assert_eq!(of(&["bob"], "LAB.TEST"), Err(Reason::UnknownPrincipal));
        assert_eq!(of(&["gone"], "LAB.TEST"), Err(Reason::Disabled));
    }
}
