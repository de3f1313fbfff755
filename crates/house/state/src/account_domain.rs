//! The domain in which accounts have their SIDs: its own SID, and the number of each account there. A machine has one; the gateways of a
//! cluster have one together.

use std::collections::HashMap;

use acl::Sid;

use crate::Result;
use crate::server_records::{ABOUT, ServerRecords};
use crate::store::{Batch, Form, Table};

/// RIDs by folded name of the account.
pub(crate) const RIDS: Table = Table { name: "account-rids", form: Form::TextToU32 };
/// The highest RID that an account was given.
const LAST_RID: &str = "last-rid";
/// The first RID of accounts: Windows has those below for accounts of its own.
const RID_MIN: u32 = 1000;
/// Up to so many accounts are looked up one by one.
const FEW: usize = 8;
/// S-1-5-21, with which SIDs of machines begin.
const NT_AUTHORITY: u64 = 5;
const NT_NON_UNIQUE: u32 = 21;

/// See the module.
#[derive(Debug, Clone)]
pub struct AccountDomain(ServerRecords);

impl AccountDomain {
    /// The domain that is written down in these records.
    pub(crate) fn new(records: ServerRecords) -> Self {
        Self(records)
    }

    /// The SID of the domain: made once.
    ///
    /// # Errors
    /// The records cannot be used, as for all calls here.
    pub fn sid(&self) -> Result<Sid> {
        let bytes = self.0.lasting("machine-sid", || {
            let mut bytes = [0; 12];
            getrandom::fill(&mut bytes).map_err(|e| self.0.trouble(format!("no random numbers: {e}")))?;
            Ok(bytes)
        })?;
        let (words, _) = bytes.as_chunks::<4>();
        let words = words.iter().map(|word| u32::from_le_bytes(*word));
        let parts: Vec<u32> = [NT_NON_UNIQUE].into_iter().chain(words).collect();
        Sid::new(NT_AUTHORITY, &parts).map_err(|e| self.0.trouble(e))
    }

    /// The RIDs of these accounts: a number that an account keeps, and that no other gets when the account is gone. Regardless
    /// of case.
    ///
    /// # Errors
    /// As above, or there are no more numbers.
    pub fn rids(&self, names: &[&str]) -> Result<Vec<u32>> {
        loop {
            // Each reading may be a question to another machine.
            let all_kept = (names.len() > FEW).then(|| self.all_rids()).transpose()?;
            let kept_rid = |name: &str| match &all_kept {
                Some(all) => Ok(all.get(name.as_bytes()).copied()),
                None => self.kept_rid(name),
            };
            let last = self.0.read(ABOUT, LAST_RID)?;
            let mut next = match last.clone() {
                Some(last) => u32::from_le_bytes(self.0.number(last)?),
                None => RID_MIN - 1,
            };
            let mut batch = Batch::default();
            let mut made = HashMap::new();
            let mut rids = Vec::with_capacity(names.len());
            for name in names {
                let name = auth::folded_name(name);
                let kept = match made.get(&name) {
                    Some(rid) => Some(*rid),
                    None => kept_rid(&name)?,
                };
                if let Some(rid) = kept {
                    rids.push(rid);
                    continue;
                }
                next = next.checked_add(1).ok_or_else(|| self.0.trouble("no more numbers for accounts"))?;
                batch.expected.push(RIDS.expect(name.as_bytes(), None));
                batch.changes.push(RIDS.put(name.as_bytes(), &next.to_le_bytes()));
                made.insert(name, next);
                rids.push(next);
            }
            if batch.changes.is_empty() {
                return Ok(rids);
            }
            batch.expected.push(ABOUT.expect(LAST_RID.as_bytes(), last.as_deref()));
            batch.changes.push(ABOUT.put(LAST_RID.as_bytes(), &next.to_le_bytes()));
            if self.0.write(&batch)? {
                return Ok(rids);
            }
        }
    }

    /// The SIDs of these accounts, as far as they were given any.
    ///
    /// # Errors
    /// As above.
    pub fn sids_of(&self, names: &[&str]) -> Result<Vec<Option<Sid>>> {
        let (domain, rids) = (self.sid()?, self.all_rids()?);
        let sid_of = |name: &&str| domain.member(*rids.get(auth::folded_name(name).as_bytes())?);
        Ok(names.iter().map(sid_of).collect())
    }

    /// The SID of an account; None: it was given none yet.
    ///
    /// # Errors
    /// As above.
    pub fn sid_of(&self, name: &str) -> Result<Option<Sid>> {
        let Some(rid) = self.kept_rid(&auth::folded_name(name))? else { return Ok(None) };
        Ok(self.sid()?.member(rid))
    }

    fn all_rids(&self) -> Result<HashMap<Vec<u8>, u32>> {
        let all = self.0.store().scan(RIDS).map_err(|e| self.0.trouble(e))?;
        all.into_iter().map(|(name, rid)| Ok((name, u32::from_le_bytes(self.0.number(rid)?)))).collect()
    }

    fn kept_rid(&self, folded_name: &str) -> Result<Option<u32>> {
        let kept = self.0.read(RIDS, folded_name)?;
        kept.map(|rid| self.0.number(rid).map(u32::from_le_bytes)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use redb::Database;

    use crate::State;

    fn state() -> State {
        let backend = redb::backends::InMemoryBackend::new();
        State::in_memory(Database::builder().create_with_backend(backend).unwrap())
    }

    #[test]
    fn an_account_keeps_its_rid_and_no_other_gets_it() {
        let state = state();
        let domain = state.account_domain();
        assert_eq!(domain.rids(&["anna", "Otto", "ANNA"]).unwrap(), [1000, 1001, 1000]);
        assert_eq!(domain.rids(&["otto", "zoe"]).unwrap(), [1001, 1002]);
        state.forget_user("Zoe").unwrap();
        assert_eq!(domain.rids(&["zoe", "anna"]).unwrap(), [1003, 1000]);
        assert_eq!(domain.rids(&[]).unwrap(), [0; 0]);
        let names: Vec<String> = (0..20).map(|n| format!("user{n}")).collect();
        let many: Vec<&str> = names.iter().map(|name| &**name).chain(["Anna"]).collect();
        let expected: Vec<u32> = (1004..1024).chain([1000]).collect();
        assert_eq!((domain.rids(&many).unwrap(), domain.rids(&many).unwrap()), (expected.clone(), expected));
    }

    #[test]
    fn a_domain_has_one_sid() {
        let domain = state().account_domain();
        let sid = domain.sid().unwrap();
        assert_eq!(domain.sid().unwrap(), sid);
        assert!(sid.member(1000).is_some_and(|account| account.in_domain() == Some((sid, 1000))), "{sid}");
        assert_ne!(state().account_domain().sid().unwrap(), sid);
        assert_eq!(domain.sid_of("anna").unwrap(), None);
        domain.rids(&["anna"]).unwrap();
        assert_eq!(domain.sid_of("Anna").unwrap(), sid.member(1000));
        assert_eq!(domain.sids_of(&["otto", "ANNA"]).unwrap(), [None, sid.member(1000)]);
    }
}
