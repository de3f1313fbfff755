//! The cluster of a server that has none.

use super::*;
use crate::cluster::{
    Cluster, Drained, GatewayFigures, NewKeytab, NewVserver, ShareMove, Vserver, VserverMove, VserverShares,
    Vservers,
};

/// Moves and lists vservers slowly, and tells how large their keytabs are.
impl ClusterGateways for Nobody {
    fn figures(&self) -> GatewayFigures {
        GatewayFigures::default()
    }
    fn cluster(&self) -> Result<Cluster, Refusal> {
        none()
    }
    fn init(&self) -> Result<Cluster, Refusal> {
        none()
    }
    fn join(&self) -> Result<Cluster, Refusal> {
        none()
    }
    fn leave(&self, _: &str) -> Result<Cluster, Refusal> {
        none()
    }
    fn drain(&self, _: &str) -> Result<Drained, Refusal> {
        none()
    }
    fn vservers(&self) -> Result<Vservers, Refusal> {
        std::thread::sleep(10 * CONNECTION_TIME);
        Ok(Vservers::default())
    }
    fn create_vserver(&self, _: &NewVserver) -> Result<Vserver, Refusal> {
        none()
    }
    fn move_vserver(&self, name: &str, VserverMove { gateway }: &VserverMove) -> Result<Vserver, Refusal> {
        std::thread::sleep(10 * CONNECTION_TIME);
        Ok(Vserver { name: name.to_owned(), gateway: gateway.clone(), ..Vserver::default() })
    }
    fn set_keytab(&self, name: &str, new: &NewKeytab) -> Result<Vserver, Refusal> {
        let epoch = u64::try_from(new.keytab.0.len()).ok();
        Ok(Vserver { name: name.to_owned(), epoch, ..Vserver::default() })
    }
    fn remove_keytab(&self, _: &str) -> Result<Vserver, Refusal> {
        none()
    }
    fn remove_vserver(&self, _: &str) -> Result<Vserver, Refusal> {
        none()
    }
    fn vserver_shares(&self, _: &str) -> Result<VserverShares, Refusal> {
        none()
    }
    fn vserver_share(&self, _: &str, _: &str) -> Result<shares::Share, Refusal> {
        none()
    }
    fn add_vserver_share(&self, _: &str, _: &shares::NewShare) -> Result<shares::Share, Refusal> {
        none()
    }
    fn change_vserver_share(
        &self,
        _: &str,
        _: &str,
        _: &shares::ShareChange,
    ) -> Result<shares::Share, Refusal> {
        none()
    }
    fn remove_vserver_share(&self, _: &str, _: &str) -> Result<shares::Share, Refusal> {
        none()
    }
    fn move_vserver_share(&self, _: &str, _: &str, _: &ShareMove) -> Result<shares::Share, Refusal> {
        none()
    }
    fn users(&self) -> Result<users::Users, Refusal> {
        none()
    }
    fn add_user(&self, _: &users::NewUser) -> Result<users::User, Refusal> {
        none()
    }
    fn change_user(&self, _: &str, _: &users::UserChange) -> Result<users::User, Refusal> {
        none()
    }
    fn remove_user(&self, _: &str) -> Result<users::User, Refusal> {
        none()
    }
}
