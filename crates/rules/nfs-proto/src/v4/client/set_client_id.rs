//! SETCLIENTID and SETCLIENTID_CONFIRM: how a client of NFSv4.0 introduces itself (RFC 7530 16.33, 16.34).
//!
//! The documents name a record { v, x, c, k, s }: verifier, name, client ID, callback and confirmation. This server makes
//! no callbacks to such clients, so it keeps no k: of an update of the callback there is only the new confirmation.

use std::net::IpAddr;
use std::time::Instant;

use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{ClientId, Verifier};

use super::protection::StateProtection;
use super::{Clients, Holding, Incarnation, Principal, Standing};

#[cfg(test)]
mod tests;

/// How a client confirms its ID.
#[derive(Debug, Clone, Copy)]
pub(super) struct Confirmation {
    /// `s`: what the client sends, or has sent.
    expected: Verifier,
    /// `t`: the confirmation of an update of the callback, which has not been confirmed yet.
    of_update: Option<Verifier>,
}

/// The arguments of SETCLIENTID.
#[derive(Debug, Clone)]
pub struct SetClientId<'a> {
    /// `x`, `client.id`: the client's name for itself.
    pub name: &'a [u8],
    /// `v`, `client.verifier`: different after each restart of the client.
    pub verifier: Verifier,
    /// Who sends the request.
    pub principal: Principal,
    /// The network or address that the request comes from, as in [`ExchangeId`](super::ExchangeId).
    pub origin: IpAddr,
}

/// The result of SETCLIENTID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Introduced {
    /// `c`: the client ID, which is confirmed already if only the callback changes.
    pub client: ClientId,
    /// What confirms it.
    pub confirm: Verifier,
}

impl<C, R: Clone> Clients<C, R> {
    /// SETCLIENTID, in the cases of RFC 7530 16.33.5. `make` makes the value for a new record; `look` tells what a client
    /// has. Values returned with the result belonged to unconfirmed records that were removed.
    ///
    /// # Errors
    /// [`Status::ClidInUse`]; [`Status::Delay`] when the table is full of clients that are alive, or the origin has too
    /// many of its own.
    pub fn set_client_id(
        &mut self,
        request: SetClientId<'_>,
        now: Instant,
        look: impl Fn(&C) -> Holding,
        make: impl FnOnce(ClientId) -> C,
    ) -> Result<(Introduced, Vec<C>), Status> {
        let SetClientId { name, verifier, principal, origin } = request;
        let known = self.owners.without.get(name).and_then(|owner| owner.confirmed);
        let confirm = self.confirmation();
        let mut gone = Vec::new();
        if let Some(id) = known
            && let Some(record) = self.by_id.get_mut(&id)
        {
            if record.principal != principal {
                // 9.1.2: "a client ID that currently has no state, or it has state but the lease has expired [...] the
                // server MUST allow the SETCLIENTID". The record stays until the new one is confirmed.
                let Holding { renewed, state } = look(&record.value);
                if state && self.times.standing(renewed, now) == Standing::Current {
                    return Err(Status::ClidInUse);
                }
            } else if record.verifier == verifier
                && let Some(confirmation) = &mut record.confirmation
            {
                // "the server treats this as a probable callback information update [...] Any pre-existing unconfirmed
                // { v, x, c, *, * } is removed."
                confirmation.of_update = Some(confirm);
                self.forget_unconfirmed(name, false, &mut gone);
                return Ok((Introduced { client: id, confirm }, gone));
            }
        }
        // "simply removes the unconfirmed { w, x, d, m, t } record and replaces it"
        self.forget_unconfirmed(name, false, &mut gone);
        self.make_room(origin, now, &look, &mut gone)?;
        let confirmation = Confirmation { expected: confirm, of_update: None };
        let protection = StateProtection::None;
        let incarnation = Incarnation { owner: name, verifier, principal, protection, origin };
        let client = self.enter(incarnation, Some(confirmation), make);
        Ok((Introduced { client, confirm }, gone))
    }

    /// SETCLIENTID_CONFIRM, in the cases of RFC 7530 16.34.5. With the result comes the value of an earlier incarnation of
    /// the client, whose state must end.
    ///
    /// # Errors
    /// [`Status::StaleClientId`], [`Status::ClidInUse`].
    pub fn confirm_client_id(
        &mut self,
        Introduced { client, confirm }: Introduced,
        principal: &Principal,
    ) -> Result<Option<C>, Status> {
        let record = self.by_id.get_mut(&client).ok_or(Status::StaleClientId)?;
        let confirmation = record.confirmation.as_mut().ok_or(Status::StaleClientId)?;
        let is_update = record.confirmed && confirmation.of_update == Some(confirm);
        if !is_update && confirmation.expected != confirm {
            return Err(Status::StaleClientId);
        }
        if record.principal != *principal {
            return Err(Status::ClidInUse);
        }
        if is_update {
            *confirmation = Confirmation { expected: confirm, of_update: None };
        }
        // "leaves client x's relevant leased client state intact" when it was confirmed before.
        Ok(if std::mem::replace(&mut record.confirmed, true) { None } else { self.confirm(client) })
    }

    /// Why there is no confirmed client of this ID: it was there in this run of the server and has lost its lease
    /// (RFC 7530 9.6.3.2: "the use of the associated clientid will result in NFS4ERR_EXPIRED"), or it is from another run,
    /// or not confirmed.
    #[must_use]
    pub fn missing(&self, client: ClientId) -> Status {
        let (run, number) = (client.0 >> 32, client.0 & u64::from(u32::MAX));
        let was_made = run == u64::from(self.run) && (1..u64::from(self.next)).contains(&number);
        if was_made && !self.by_id.contains_key(&client) { Status::Expired } else { Status::StaleClientId }
    }

    /// The value of a confirmed client of NFSv4.0.
    #[must_use]
    pub fn confirmed_without_session(&self, client: ClientId) -> Option<&C> {
        let record = self.by_id.get(&client).filter(|record| record.confirmed && !record.has_sessions());
        record.map(|record| &record.value)
    }

    /// "must take care to ensure that these values are extremely unlikely to ever be regenerated"
    fn confirmation(&mut self) -> Verifier {
        let number = self.next_confirmation;
        self.next_confirmation = number.wrapping_add(1);
        Verifier((u64::from(self.run) << 32 | u64::from(number)).to_be_bytes())
    }
}
