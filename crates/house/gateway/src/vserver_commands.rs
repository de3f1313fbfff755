//! What a gateway is told about vservers: to take its place among gateways, to serve one, to end it here.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use state::cluster::{Begun, Member, Owner, Ownership};

use crate::gateway::Gateway;
use crate::membership::Membership;
use crate::problem::{Cause, Problem, Result, serving};
use crate::vserver::{Own, Vserver};
use crate::vserver_shares::{Directories, VserverOpener, VserverShare};
use crate::vservers::{Served, check_vserver_name, ips, lost};

/// A vserver that a gateway is to serve.
#[derive(Debug)]
pub struct NewVserver {
    /// Its name, which [`check_vserver_name`] accepts.
    pub name: String,
    /// Its shares.
    pub shares: Vec<VserverShare>,
    /// The sockets of SMB, which listen already; none: SMB is off.
    pub smb: Vec<TcpListener>,
    /// The sockets of NFS.
    pub nfs: Vec<TcpListener>,
}

impl Gateway {
    /// Takes its place among other gateways, by the lease that `member` has on its name. It is renewed until the gateway ends.
    ///
    /// # Errors
    /// The gateway has a place already, or the system has no more threads.
    pub fn join(&self, member: Arc<Member>) -> Result<()> {
        let mut membership = self.membership.lock();
        if membership.as_ref().is_some_and(Membership::holds) {
            return Err(Problem::new(Cause::Settings, "this gateway has a place among others already", ""));
        }
        let begun = Membership::begin(member, Arc::clone(&self.vservers));
        *membership = Some(begun.map_err(serving("cannot start a thread"))?);
        Ok(())
    }

    /// Serves a vserver that no gateway serves, beside everything else. If it cannot be served here, another gateway may.
    ///
    /// # Errors
    /// Another gateway serves it; or its records, its directories or its sockets cannot be used.
    pub fn serve_vserver(&self, new: NewVserver) -> Result<()> {
        check_vserver_name(&new.name).map_err(|why| Problem::new(Cause::Settings, why, ""))?;
        let _one = self.vservers.beginning.lock();
        let ownership = self.own(&new.name)?;
        match self.begin_vserver(&ownership, new) {
            Ok((vserver, directories)) => {
                let (name, epoch) = (ownership.vserver().to_owned(), ownership.owner().epoch);
                self.vservers.enter(Served { ownership, vserver, directories });
                if !self.membership.lock().as_ref().is_some_and(Membership::holds) {
                    // The others have ended meanwhile.
                    self.vservers.abandon_all();
                    return Err(no_place(&name));
                }
                self.administration().allot_opens();
                tracing::info!(vserver = name, epoch, "serving the vserver");
                Ok(())
            }
            Err(problem) => {
                let name = ownership.vserver().to_owned();
                if let Err(error) = ownership.end() {
                    tracing::error!("{}", lost(&name, &error));
                }
                Err(problem)
            }
        }
    }

    /// The ownership of a vserver that nobody serves.
    fn own(&self, name: &str) -> Result<Ownership> {
        let membership = self.membership.lock();
        let held = membership.as_ref().filter(|membership| membership.holds());
        let member = held.map(|membership| Arc::clone(&membership.member)).ok_or_else(|| no_place(name))?;
        drop(membership);
        match member.own(name).map_err(|error| lost(name, &error))? {
            Begun::Owned(ownership) => Ok(ownership),
            Begun::By(Owner { gateway, .. }) => {
                let what = format!("the vserver {name} is served by the gateway {gateway}");
                Err(Problem::new(Cause::State, what, "That gateway has to end it first."))
            }
        }
    }

    fn begin_vserver(&self, ownership: &Ownership, new: NewVserver) -> Result<(Vserver, Directories)> {
        let name = ownership.vserver();
        let records = ownership.records().map_err(|error| lost(name, &error))?;
        let opener = VserverOpener {
            records: records.clone(),
            ceph: self.administration().ceph(),
            gateway: self.name_in_cephfs()?,
            opens_max: self.administration().opens_with(new.shares.len()),
            access_log: self.lent.access_log.clone(),
        };
        let (table, directories) = opener.open_all(&new.shares, self.administration().apart()?)?;
        let own = Own {
            name: name.to_ascii_uppercase(),
            records,
            shares: table,
            smb: ips(&addresses(&new.smb)?),
            nfs: ips(&addresses(&new.nfs)?),
            has_network_locks: false,
        };
        let vserver = Vserver::new(&self.lent, own, &self.shards)?;
        vserver.listen(new.smb.into_iter().map(Into::into).collect(), new.nfs)?;
        Ok((vserver, directories))
    }

    /// Ends a vserver here, so that another gateway may serve it. False: it is not served here.
    ///
    /// # Errors
    /// A storage does not answer, or the records cannot be written: nobody else may serve it.
    pub fn end_vserver(&self, name: &str) -> Result<bool> {
        let Some(served) = self.vservers.take(name) else { return Ok(false) };
        served.end()?;
        self.administration().allot_opens();
        Ok(true)
    }

    /// The vservers that are served here, with their epochs.
    #[must_use]
    pub fn vservers(&self) -> Vec<(String, Owner)> {
        self.vservers.owners()
    }
}

fn no_place(name: &str) -> Problem {
    let what = format!("the vserver {name} cannot be served: this gateway has no place among others");
    Problem::new(Cause::Serving, what, "")
}

fn addresses(listeners: &[TcpListener]) -> Result<Vec<SocketAddr>> {
    let of = |listener: &TcpListener| listener.local_addr().map_err(serving("cannot read an address"));
    listeners.iter().map(of).collect()
}
