//! The Local Security Authority: who a SID is, and which SID a user or group has. [MS-LSAT] 3.1.4, [MS-LSAD] 3.1.4.

use acl::Sid;
use smb_wire::NtStatus;
use smb_wire::dcerpc::fault;
use smb_wire::lsarpc::{
    Domain, PolicyHandle, PolicyInformation, Request, Response, SidKind, TranslatedName, TranslatedSid,
};

use super::{Fault, Host, WORKGROUP, well_known};
use crate::directory::Known;

/// The handle of the policy object. There is one object, which nobody can change, so one handle is enough for all.
const POLICY: PolicyHandle = PolicyHandle(*b"\0\0\0\0anabranch policy");

/// Answers a call.
pub(super) async fn call(host: &Host<'_>, opnum: u16, stub: &[u8]) -> Result<Vec<u8>, Fault> {
    let request = Request::decode(opnum, stub).map_err(|_| fault::BAD_STUB_DATA)?;
    let request = request.ok_or(fault::OP_RANGE_ERROR)?;
    let (response, status) = answer(host, request).await?;
    let mut results = Vec::new();
    response.encode_into(status.0, &mut results).map_err(|_| fault::PROTOCOL_ERROR)?;
    Ok(results)
}

async fn answer(host: &Host<'_>, request: Request) -> Result<(Response, NtStatus), Fault> {
    // Names of users are no secret among users, and nobody else's business.
    let Some(user) = host.user else { return Err(fault::ACCESS_DENIED) };
    Ok(match request {
        Request::OpenPolicy => (Response::Policy(POLICY), NtStatus::SUCCESS),
        Request::Close(policy) => {
            check(policy)?;
            (Response::Policy(PolicyHandle::default()), NtStatus::SUCCESS)
        }
        Request::QueryInformationPolicy { policy, class } => {
            check(policy)?;
            match information(host, class) {
                None => (Response::Information(None), NtStatus::INVALID_INFO_CLASS),
                information => (Response::Information(information), NtStatus::SUCCESS),
            }
        }
        Request::LookupSids { policy, extended, sids } => {
            check(policy)?;
            let known = of_sids(host, &sids).await;
            let status = status(&known);
            let mut domains = Domains::default();
            let names = sids.iter().zip(known).map(|(sid, known)| domains.name(sid, known)).collect();
            (Response::Names { extended, domains: domains.0, names }, status)
        }
        Request::LookupNames { policy, form, names } => {
            check(policy)?;
            let known = of_names(host, &names).await;
            let status = status(&known);
            let mut domains = Domains::default();
            let sids = known.into_iter().map(|known| domains.sid(known)).collect();
            (Response::Sids { form, domains: domains.0, sids }, status)
        }
        Request::GetUserName { domain } => {
            let (name, domain) = (user.to_owned(), domain.then(|| host.name.to_owned()));
            (Response::UserName { name, domain }, NtStatus::SUCCESS)
        }
    })
}

fn check(policy: PolicyHandle) -> Result<(), Fault> {
    if policy == POLICY { Ok(()) } else { Err(fault::CONTEXT_MISMATCH) }
}

fn information(host: &Host<'_>, class: u16) -> Option<PolicyInformation> {
    let workgroup = || Domain { name: WORKGROUP.to_owned(), sid: None };
    match class {
        3 => Some(PolicyInformation::PrimaryDomain(workgroup())),
        5 => {
            let (name, sid) = (host.name.to_owned(), host.directory.machine());
            Some(PolicyInformation::AccountDomain(Domain { name, sid }))
        }
        12 => Some(PolicyInformation::DnsDomain(workgroup())),
        _ => None,
    }
}

async fn of_sids(host: &Host<'_>, sids: &[Sid]) -> Vec<Option<Known>> {
    let mut known: Vec<_> = sids.iter().map(well_known::of_sid).collect();
    let open: Vec<Sid> =
        sids.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(sid, _)| *sid).collect();
    fill(&mut known, host.directory.of_sids(open).await);
    known
}

async fn of_names(host: &Host<'_>, names: &[String]) -> Vec<Option<Known>> {
    let mut known: Vec<_> = names.iter().map(|name| well_known::of_name(name)).collect();
    let open: Vec<String> =
        names.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(name, _)| name.clone()).collect();
    fill(&mut known, host.directory.of_names(open).await);
    known
}

/// Fills the gaps, in their order.
fn fill(known: &mut [Option<Known>], found: Vec<Option<Known>>) {
    let gaps = known.iter_mut().filter(|known| known.is_none());
    gaps.zip(found).for_each(|(gap, found)| *gap = found);
}

/// [MS-LSAT] 3.1.4.5, 3.1.4.9: all, some or none are mapped.
fn status(known: &[Option<Known>]) -> NtStatus {
    match known.iter().flatten().count() {
        0 if !known.is_empty() => NtStatus::NONE_MAPPED,
        mapped if mapped < known.len() => NtStatus::SOME_NOT_MAPPED,
        _ => NtStatus::SUCCESS,
    }
}

/// The domains of an answer.
#[derive(Debug, Default)]
struct Domains(Vec<Domain>);

impl Domains {
    /// The index of the domain of somebody.
    fn index(&mut self, known: &Known) -> usize {
        let sid = domain_of(&known.sid);
        self.0.iter().position(|domain| domain.sid == sid).unwrap_or_else(|| {
            self.0.push(Domain { name: known.domain.clone(), sid });
            self.0.len().saturating_sub(1)
        })
    }

    fn name(&mut self, sid: &Sid, known: Option<Known>) -> TranslatedName {
        match known {
            Some(known) => {
                let domain = Some(self.index(&known));
                TranslatedName { kind: known.kind, name: known.name, domain }
            }
            None => TranslatedName { kind: SidKind::Unknown, name: sid.to_string(), domain: None },
        }
    }

    fn sid(&mut self, known: Option<Known>) -> TranslatedSid {
        match known {
            Some(known) => {
                let domain = Some(self.index(&known));
                TranslatedSid { kind: known.kind, sid: Some(known.sid), domain }
            }
            None => TranslatedSid { kind: SidKind::Unknown, sid: None, domain: None },
        }
    }
}

/// A SID without its last part.
fn domain_of(sid: &Sid) -> Option<Sid> {
    let (_, domain) = sid.sub_authorities().split_last()?;
    Sid::new(sid.authority(), domain).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(uid: u32) -> Known {
        let name = format!("user-{uid}");
        Known { sid: Sid::of_user(uid), kind: SidKind::User, domain: "Unix User".to_owned(), name }
    }

    #[test]
    fn each_domain_is_in_the_answer_once() {
        let mut domains = Domains::default();
        let indices = [Some(user(1)), well_known::of_name("SYSTEM"), None, Some(user(2))]
            .map(|known| domains.sid(known).domain);
        assert_eq!(indices, [Some(0), Some(1), None, Some(0)]);
        let said: Vec<_> = domains.0.iter().map(|domain| (&*domain.name, domain.sid)).collect();
        let sid = |text: &str| Some(text.parse().unwrap());
        assert_eq!(said, [("Unix User", sid("S-1-22-1")), ("NT AUTHORITY", sid("S-1-5"))]);
    }

    #[test]
    fn an_unknown_sid_is_its_own_name() {
        let sid: Sid = "S-1-5-21-1-2-3-1000".parse().unwrap();
        let name = Domains::default().name(&sid, None);
        assert_eq!(name, TranslatedName { kind: SidKind::Unknown, name: sid.to_string(), domain: None });
    }

    #[test]
    fn the_status_says_how_many_are_known() {
        assert_eq!(status(&[]), NtStatus::SUCCESS);
        assert_eq!(status(&[None, None]), NtStatus::NONE_MAPPED);
        assert_eq!(status(&[None, Some(user(1))]), NtStatus::SOME_NOT_MAPPED);
        assert_eq!(status(&[Some(user(1))]), NtStatus::SUCCESS);
    }

    #[test]
    fn what_is_found_fills_the_gaps_in_their_order() {
        let mut known = vec![None, Some(user(9)), None, None];
        fill(&mut known, vec![Some(user(1)), None, Some(user(3))]);
        assert_eq!(known, [Some(user(1)), Some(user(9)), None, Some(user(3))]);
    }
}
