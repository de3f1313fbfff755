//! Replaces the configuration of a running server.

use std::sync::Arc;

use share::{Share, Terms};
use state::ShareRecord;

use super::{Administration, Serving};
use crate::apart::Apart;
use crate::control_tls::{Identity, Shown};
use crate::declared::{Declared, DeclaredShare, Idle};
use crate::descriptors::Allotment;
use crate::kerberos::{DomainNumbers, Tickets};
use crate::opening::Opener;
use crate::problem::{Cause, Problem, Result};
use crate::settings::{Settings, ShareSettings, same_share_name};
use crate::ticket_keys::KeysOf;
use crate::waiting::wait_for;
use crate::{accounts, control_access, control_tls, iakerb, kerberos, logged, moved, opening, without_ntlm};

impl Administration {
    /// Serves the shares and users that the configuration declares now, in place of those that it declared before.
    /// Clients of unchanged shares notice nothing. If a new declaration cannot be served, nothing changes.
    ///
    /// # Errors
    /// A declaration of the configuration cannot be served.
    pub fn use_settings(self: &Arc<Self>, settings: &Settings) -> Result<()> {
        let Some(serving) = &self.serving else { return Ok(()) };
        let mut idle = self.idle.lock();
        let before = self.declared();
        let mut now = opening::declare(settings, self.state.directory(), Some(&before))?;
        opening::check_stay(&now, &self.state)?;
        // These values change only at the next start.
        now.encryption = before.encryption;
        (now.metadata_latency, now.is_uncounted) = (before.metadata_latency, before.is_uncounted);
        if !self.state.keeps_nt_hashes()? {
            without_ntlm::check(settings, &self.state)?;
        }
        now.accounts = accounts::declared(settings, &self.state)?;
        let certificate = renewed_certificate(settings, serving)?;
        let before_tickets = serving.accounts.tickets();
        let numbers =
            DomainNumbers::again(&settings.kerberos, &before_tickets, &self.state, &serving.accounts)?;
        let mapping = kerberos::mapping(&settings.kerberos, &numbers.numbering);
        let kerberos = kerberos::keys(settings)?;
        let opens_max = Allotment::of(serving.descriptors, serving.shares.present().len() + 1).opens;
        let opener = Opener::new(&now, &self.state, opens_max, &serving.access_log);
        let new = open_new(&opener, &now, serving)?;
        logged::use_settings(&serving.access_log, settings, &now)?;

        // From here on, a failure concerns only one share or user, and is logged.
        told(self.tell_moved(settings, serving));
        told(self.end_what_leaves(&before, &now, serving, &mut idle));
        for share in &new {
            told(enter(serving, share));
        }
        told(enter_changed(&opener, &now, serving));
        for declared in &now.shares {
            if let Some(served) = serving.shares.present().by_name(&declared.given.name) {
                opening::change_declared(served, &declared.given);
                opening::tell_what_is_lacking(served, now.encryption);
            }
        }
        told(self.serve_made(&opener, &now, serving, &mut idle));
        moved::forget_others(&serving.shares, &settings.moved);
        let present = serving.shares.present();
        idle.retain(|name, _| present.by_name(name).is_none());
        told(self.use_accounts(&before, &now, serving));
        let tickets = Tickets::of(&settings.kerberos, numbers, kerberos.as_ref());
        serving.ticket_keys.replace(kerberos, mapping);
        serving.vservers.use_keys_of_gateway();
        let given = serving.ticket_keys.given(&KeysOf::Gateway, &serving.accounts);
        serving.nfs.use_kerberos(given.nfs);
        serving.smb.use_kerberos(given.smb);
        // Who has tickets of a realm keeps them.
        if serving.smb.iakerb_realm() != settings.kerberos.realm {
            let used = serving.smb.use_iakerb(iakerb::kdc(settings)?);
            told(used.map_err(|e| iakerb::no_kdc(&e)));
        }
        serving.accounts.use_tickets(tickets);
        serving.admins.use_list(&settings.admins);
        *self.declared.write() = Arc::new(now);
        if let Some((identity, certificate)) = certificate {
            told(self.show_certificate(identity, certificate));
        }
        self.await_stores();
        serving.names.look_again();
        self.allot_opens();
        told(self.keep_credits().map_err(|refusal| Problem::new(Cause::State, refusal.what, refusal.advice)));
        Ok(())
    }

    /// Shows another certificate, and lets the commands on this machine trust it.
    fn show_certificate(&self, identity: &Identity, certificate: Shown) -> Result<()> {
        let pem = certificate.pem.clone();
        if identity.show(certificate) {
            control_access::publish_certificate(self.state.directory(), &pem)?;
        }
        Ok(())
    }

    /// Tells clients where shares are that other servers have now, and ends those of them that were served here.
    fn tell_moved(&self, settings: &Settings, serving: &Serving) -> Result<()> {
        let made = self.state.made_shares()?;
        let is_made = |name: &str| made.iter().any(|record| same_share_name(&record.name, name));
        let withdrawn = moved::tell(&serving.shares, self.state.server(), &settings.moved, is_made)?;
        // All are ended, whatever becomes of one.
        withdrawn.iter().map(|share| end_withdrawn(serving, share)).fold(Ok(()), Result::and)
    }

    /// Ends the shares that are no longer declared, those that are declared with another directory, with other reserved
    /// names or with another root for SMB clients, and those created by command that conflict with a declaration.
    fn end_what_leaves(
        &self,
        before: &Declared,
        now: &Declared,
        serving: &Serving,
        idle: &mut Idle,
    ) -> Result<()> {
        for DeclaredShare { given, directory, .. } in &before.shares {
            let declared = now.share(&given.name);
            match declared {
                Some(now) if now.given.name == given.name && now.directory == *directory => {
                    let homes = |share: &ShareSettings| share.terms.contains(Terms::HOMES);
                    let has_another_root = homes(&now.given) != homes(given);
                    if now.given.reserved_names != given.reserved_names || has_another_root {
                        self.end_with_transfer(serving, &given.name)?; // to be opened as it is declared now
                    }
                }
                Some(_) => {
                    if self.end_with_transfer(serving, &given.name)? {
                        // The filehandles of this share are not those of the declared share with the same name.
                        self.state.forget_share_number(&given.name)?;
                    }
                }
                None => {
                    serving.shares.await_no_more(&given.name);
                    self.end_with_transfer(serving, &given.name)?;
                    tracing::info!(share = given.name, "a share is not declared any more");
                }
            }
        }
        let apart = apart_from(now, &self.state);
        for record in self.state.made_shares()? {
            let is_shadowed = now.share(&record.name).is_some();
            let is_served = before.share(&record.name).is_none();
            if !is_shadowed && serving.shares.present().awaited_by_name(&record.name).is_some() {
                continue; // the share is checked when its storage answers
            }
            let why = if is_shadowed {
                opening::shadowed(&record.name, now.share_place(&record.name))
            } else {
                match apart.check(&record.name, &record.directory) {
                    Ok(()) => continue,
                    Err(problem) => problem.what,
                }
            };
            if is_served {
                self.end_with_transfer(serving, &record.name)?;
                tracing::warn!("the share {} is not served: {why}", record.name);
            }
            if is_shadowed && is_served {
                self.state.forget_share_number(&record.name)?;
            }
            if !is_shadowed {
                idle.insert(share::folded_name(&record.name), why);
            }
        }
        Ok(())
    }

    /// Ends a share, and what is being transferred to it.
    fn end_with_transfer(&self, serving: &Serving, name: &str) -> Result<bool> {
        let mirrors = self.mirrors();
        if mirrors.of(name).is_some() {
            // Before its transfer stops: so no other one begins.
            mirrors.leave(name);
            if !self.replications().stop(name) {
                tracing::error!("the transfer to the share {name} does not stop");
            }
        }
        end(serving, name)
    }

    /// Serves the shares created by command that conflicted with a declaration before, and no longer do.
    fn serve_made(&self, opener: &Opener, now: &Declared, serving: &Serving, idle: &mut Idle) -> Result<()> {
        let present = serving.shares.present();
        let is_missing = |record: &ShareRecord| {
            now.share(&record.name).is_none() && present.by_name(&record.name).is_none()
        };
        let (missing, others): (Vec<_>, Vec<_>) = self.state.made_shares()?.into_iter().partition(is_missing);
        opener.enter_made(missing, &others, now, &serving.shares, idle)
    }

    /// Applies passwords and identities from the next logon on. Users who are no longer declared lose their sessions.
    fn use_accounts(&self, before: &Declared, now: &Declared, serving: &Serving) -> Result<()> {
        let added = self.state.added_users()?;
        for gone in before.accounts.iter().filter(|account| now.account(&account.name).is_none()) {
            serving.accounts.take(&gone.name);
            if let Some(user) = added.iter().find(|user| auth::same_name(&user.name, &gone.name)) {
                serving.accounts.enter(accounts::added(user));
            }
            wait_for(serving.smb.end_user(&gone.name))
                .map_err(|refusal| Problem::new(Cause::Serving, refusal.what, refusal.advice))?;
            tracing::info!(user = gone.name, "a user is not declared any more");
        }
        for account in &now.accounts {
            serving.accounts.enter(account.clone());
        }
        Ok(())
    }
}

/// The certificate that the control address is to show from now on. It is read again even if its files have the same
/// names, because a renewal replaces what they hold. None: whether the address uses TLS, and whether the certificate is
/// the server's own, is decided at the start.
fn renewed_certificate<'a>(
    settings: &Settings,
    serving: &'a Serving,
) -> Result<Option<(&'a Identity, Shown)>> {
    let (Some(identity), Some(files)) = (&serving.identity, &settings.control_certificate) else {
        return Ok(None);
    };
    control_tls::load(files).map(|certificate| Some((&**identity, certificate)))
}

/// Opens the shares with new names, which affects no client.
fn open_new(opener: &Opener, now: &Declared, serving: &Serving) -> Result<Vec<Arc<Share>>> {
    let present = serving.shares.present();
    let new = now.shares.iter().filter(|share| present.by_name(&share.given.name).is_none());
    opener.open_declared(&new.cloned().collect::<Vec<_>>(), &serving.shares)
}

/// Serves the shares whose directories or reserved names have changed, and which were ended for that reason.
fn enter_changed(opener: &Opener, now: &Declared, serving: &Serving) -> Result<()> {
    let present = serving.shares.present();
    let is_missing = |name| present.by_name(name).is_none() && present.awaited_by_name(name).is_none();
    let changed = now.shares.iter().filter(|share| is_missing(&share.given.name)).cloned();
    for share in opener.open_declared(&changed.collect::<Vec<_>>(), &serving.shares)? {
        enter(serving, &share)?;
    }
    Ok(())
}

fn told(result: Result<()>) {
    if let Err(problem) = result {
        tracing::error!("the new configuration: {}", problem.what);
    }
}

fn apart_from(declared: &Declared, state: &state::State) -> Apart {
    let mut apart = Apart::from_state(state.directory());
    for share in &declared.shares {
        apart.take(&share.given.name, &share.directory);
    }
    apart
}

fn enter(serving: &Serving, share: &Arc<Share>) -> Result<()> {
    let entered = serving.shares.enter(share);
    entered.map_err(|e| Problem::new(Cause::Settings, format!("the share {}: {e}", share.name()), ""))?;
    tracing::info!("serving the share {}", share.name());
    Ok(())
}

/// Ends a share for all its clients. Returns false if it was not served.
pub(super) fn end(serving: &Serving, name: &str) -> Result<bool> {
    let present = serving.shares.present();
    let served = present.by_name(name).filter(|share| same_share_name(share.name(), name));
    let Some(gone) = served.and_then(|share| serving.shares.withdraw(share.id())) else { return Ok(false) };
    end_withdrawn(serving, &gone).map(|()| true)
}

/// Ends what clients have in a share that was withdrawn from the table.
fn end_withdrawn(serving: &Serving, gone: &Arc<Share>) -> Result<()> {
    let ended = wait_for(async {
        serving.nfs.end_share(gone).await;
        serving.smb.end_share(gone).await;
    });
    ended.map_err(|refusal| Problem::new(Cause::Serving, refusal.what, refusal.advice))
}
