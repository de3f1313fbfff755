//! The gateways of a cluster and their vservers, in the form of the API (`/v1/cluster`, `/v1/vservers`), and the interface of the gateway
//! that carries it out.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

use crate::Refusal;
use crate::shares::{NewShare, Share, ShareChange};
use crate::users::{NewUser, User, UserChange, Users};

/// How long a call that changes something takes at most: whoever makes it waits for longer before it says that nobody answers.
pub const CALL_MAX: Duration = Duration::from_secs(180);

/// The cluster, as one of its gateways sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// The name of the gateway that tells it.
    pub gateway: String,
    /// The pool in which gateways agree.
    pub pool: String,
    /// Whether that gateway has its place, so that it may serve vservers.
    pub has_place: bool,
    /// Why it has none, or cannot do a part of its work; and what cannot be read. None: it has one, or has not joined.
    pub problem: Option<String>,
    /// All gateways that have joined, by name.
    pub gateways: Vec<ClusterGateway>,
}

/// A gateway of the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterGateway {
    /// Its name.
    pub name: String,
    /// The version of its program when it joined.
    pub version: String,
    /// Whether it is there.
    pub is_alive: bool,
    /// From where it talks to the store in which gateways agree. None: it is not there.
    pub address: Option<String>,
    /// Whether no vserver is to come to it.
    pub is_drained: bool,
    /// The vservers that it is to serve.
    pub vservers: Vec<String>,
}

/// What one gateway of a cluster knows of itself, without asking anybody.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GatewayFigures {
    /// Whether it has its place.
    pub has_place: bool,
    /// Its interfaces for vservers that have no carrier, or are not there.
    pub cut_off: Vec<String>,
    /// The vservers that it serves, and their epochs.
    pub served: Vec<(String, u64)>,
    /// What it has taken over since it started, by vserver.
    pub takeovers: Vec<Takeovers>,
}

/// How often a gateway has taken over a vserver.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Takeovers {
    /// The vserver.
    pub vserver: String,
    /// How often.
    pub count: u64,
    /// The phases of the last time, and how long each took.
    pub last: Vec<(&'static str, Duration)>,
}

/// All vservers, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vservers {
    /// The vservers.
    pub vservers: Vec<Vserver>,
}

/// A vserver: a server that gateways pass on to each other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vserver {
    /// Its name.
    pub name: String,
    /// The gateway that is to serve it.
    pub gateway: String,
    /// The gateway that serves it. None: none does.
    pub served_by: Option<String>,
    /// How many owners it has had. None: it has never been served.
    pub epoch: Option<u64>,
    /// Its addresses: `ADDRESS%INTERFACE[/PREFIX]`, or `ADDRESS` for one that each gateway has.
    pub addresses: Vec<String>,
    /// The port of SMB. None: SMB is off.
    pub smb_port: Option<u16>,
    /// The port of NFS. None: NFS is off.
    pub nfs_port: Option<u16>,
    /// Its shares.
    pub shares: Vec<VserverShare>,
    /// Whether it has a keytab in the cluster. If not, it accepts tickets with that of the gateway that serves it.
    #[serde(default)]
    pub has_keytab: bool,
    /// The keys of that keytab, without the keys themselves.
    #[serde(default)]
    pub keys: Vec<VserverKey>,
    /// Why it is not served, or accepts no tickets although it has a keytab. None: neither is so, or not for long.
    pub problem: Option<String>,
}

/// A key of a vserver's keytab, without the key itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VserverKey {
    /// Whose key it is: `cifs/files.example.org@EXAMPLE.ORG`.
    pub principal: String,
    /// The version of the key.
    pub kvno: u32,
    /// For which encryption: `aes256-cts-hmac-sha1-96`.
    pub encryption: String,
}

/// A keytab for a vserver.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewKeytab {
    /// What is in the file; in Base64 (RFC 4648 4).
    pub keytab: KeytabBytes,
}

/// The bytes of a keytab. They are never logged.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeytabBytes(pub Zeroizing<Vec<u8>>);

impl fmt::Debug for KeytabBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeytabBytes(..)")
    }
}

impl Serialize for KeytabBytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&Zeroizing::new(BASE64_STANDARD.encode(&*self.0)))
    }
}

impl<'de> Deserialize<'de> for KeytabBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Zeroizing::new(String::deserialize(deserializer)?);
        let bytes = BASE64_STANDARD.decode(&*text);
        // The error of the decoder quotes a byte of the keytab.
        let bytes = bytes.map_err(|_| D::Error::custom("the keytab is not in Base64"))?;
        Ok(Self(Zeroizing::new(bytes)))
    }
}

/// A share of a vserver.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VserverShare {
    /// Its name.
    pub name: String,
    /// Its directory: `cephfs:/PATH`.
    pub directory: String,
    /// Whether nobody may change it.
    #[serde(default)]
    pub is_read_only: bool,
    /// Whether its SMB clients get persistent handles.
    #[serde(default)]
    pub is_continuously_available: bool,
    /// Its plan; empty: unlimited.
    #[serde(default)]
    pub plan: String,
}

/// The shares of a vserver.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VserverShares {
    /// The vserver.
    pub vserver: String,
    /// Its shares, by name.
    pub shares: Vec<Share>,
    /// Shares that it had, by name, and the vservers to which they have gone.
    #[serde(default)]
    pub went: BTreeMap<String, String>,
}

/// A vserver to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewVserver {
    /// Its name.
    pub name: String,
    /// The gateway that is to serve it. None: the one that is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<String>,
    /// Its addresses.
    pub addresses: Vec<String>,
    /// The port of SMB. None: SMB is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smb_port: Option<u16>,
    /// The port of NFS. None: NFS is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nfs_port: Option<u16>,
    /// Its shares.
    pub shares: Vec<VserverShare>,
}

/// Where a vserver is to be served.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VserverMove {
    /// The gateway.
    pub gateway: String,
}

/// To which vserver a share is to move.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShareMove {
    /// The vserver.
    pub vserver: String,
}

/// What has moved.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drained {
    /// The gateway that has no vservers any more.
    pub gateway: String,
    /// The vservers, where they are now.
    pub vservers: Vec<Vserver>,
}

/// A gateway that may be one of a cluster. The calls wait for the cluster.
pub trait ClusterGateways: fmt::Debug + Send + Sync {
    /// What the gateway knows of itself. It waits for nothing.
    fn figures(&self) -> GatewayFigures;

    /// The cluster.
    ///
    /// # Errors
    /// [`Refusal`], as for all calls here: nobody has made the cluster, or it does not answer.
    fn cluster(&self) -> Result<Cluster, Refusal>;
    /// Makes a cluster, and takes the first place in it.
    ///
    /// # Errors
    /// There is one.
    fn init(&self) -> Result<Cluster, Refusal>;
    /// Takes a place in the cluster; for a gateway that was drained, vservers may come again.
    ///
    /// # Errors
    /// Another gateway has the name.
    fn join(&self) -> Result<Cluster, Refusal>;
    /// Takes a gateway out of the cluster.
    ///
    /// # Errors
    /// There is no such gateway, it is to serve vservers, or it is another one and is there.
    fn leave(&self, gateway: &str) -> Result<Cluster, Refusal>;
    /// Moves all vservers of a gateway to others.
    ///
    /// # Errors
    /// There is no such gateway, or no other one; or one of them cannot serve a vserver.
    fn drain(&self, gateway: &str) -> Result<Drained, Refusal>;
    /// All vservers.
    ///
    /// # Errors
    /// As above.
    fn vservers(&self) -> Result<Vservers, Refusal>;
    /// Makes a vserver, and has it served.
    ///
    /// # Errors
    /// The name is taken, a value is invalid, the gateway is not there or cannot serve it.
    fn create_vserver(&self, new: &NewVserver) -> Result<Vserver, Refusal>;
    /// Has another gateway serve a vserver.
    ///
    /// # Errors
    /// There is no such vserver, the gateway is not there or cannot serve it.
    fn move_vserver(&self, name: &str, to: &VserverMove) -> Result<Vserver, Refusal>;
    /// Gives a vserver a keytab, in place of the one that it has.
    ///
    /// # Errors
    /// There is no such vserver, or the keytab cannot be used.
    fn set_keytab(&self, vserver: &str, new: &NewKeytab) -> Result<Vserver, Refusal>;
    /// Takes the keytab of a vserver away.
    ///
    /// # Errors
    /// There is no such vserver, or it has no keytab.
    fn remove_keytab(&self, vserver: &str) -> Result<Vserver, Refusal>;
    /// Ends a vserver. Its keytab goes; its directories stay, and so does what it remembers.
    ///
    /// # Errors
    /// There is no such vserver.
    fn remove_vserver(&self, name: &str) -> Result<Vserver, Refusal>;
    /// The shares of a vserver.
    ///
    /// # Errors
    /// There is no such vserver.
    fn vserver_shares(&self, vserver: &str) -> Result<VserverShares, Refusal>;
    /// One of them.
    ///
    /// # Errors
    /// There is no such vserver or share.
    fn vserver_share(&self, vserver: &str, share: &str) -> Result<Share, Refusal>;
    /// Adds a share to a vserver, and has it served while the vserver goes on.
    ///
    /// # Errors
    /// There is no such vserver, the name is taken, a value is invalid, or the directory cannot be served.
    fn add_vserver_share(&self, vserver: &str, new: &NewShare) -> Result<Share, Refusal>;
    /// Changes a share of a vserver while clients use it.
    ///
    /// # Errors
    /// There is no such vserver or share, or a value is invalid.
    fn change_vserver_share(
        &self,
        vserver: &str,
        share: &str,
        change: &ShareChange,
    ) -> Result<Share, Refusal>;
    /// Removes a share from a vserver. Its directory stays.
    ///
    /// # Errors
    /// There is no such vserver or share, or it is the last one of the vserver.
    fn remove_vserver_share(&self, vserver: &str, share: &str) -> Result<Share, Refusal>;
    /// Moves a share to another vserver.
    ///
    /// # Errors
    /// There is no such vserver or share, the name is taken there, or the share cannot be served there.
    fn move_vserver_share(&self, vserver: &str, share: &str, to: &ShareMove) -> Result<Share, Refusal>;
    /// All users of the cluster, by name: they may log on to all vservers.
    ///
    /// # Errors
    /// As above.
    fn users(&self) -> Result<Users, Refusal>;
    /// Adds a user to the cluster. One without a uid has the numbers of the user of this machine who has the same name.
    ///
    /// # Errors
    /// The name is taken, or a value is invalid.
    fn add_user(&self, new: &NewUser) -> Result<User, Refusal>;
    /// Changes a user of the cluster. The sessions of one who is disabled end.
    ///
    /// # Errors
    /// There is no such user, or a value is invalid.
    fn change_user(&self, name: &str, change: &UserChange) -> Result<User, Refusal>;
    /// Removes a user of the cluster, whose sessions end.
    ///
    /// # Errors
    /// There is no such user.
    fn remove_user(&self, name: &str) -> Result<User, Refusal>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keytab_is_in_base64_and_in_no_log() {
        let new = NewKeytab { keytab: KeytabBytes(Zeroizing::new(vec![5, 2, 0, 255])) };
        let json = r#"{"keytab":"BQIA/w=="}"#;
        assert_eq!(serde_json::to_string(&new).unwrap(), json);
        assert_eq!(serde_json::from_str::<NewKeytab>(json).unwrap(), new);
        assert_eq!(format!("{new:?}"), "NewKeytab { keytab: KeytabBytes(..) }");
        for bad in ["BQIA_w==", "BQIA/w", "BQIA/w==\\n", " "] {
            let error = serde_json::from_str::<NewKeytab>(&format!("{{\"keytab\":\"{bad}\"}}")).unwrap_err();
            assert!(error.to_string().starts_with("the keytab is not in Base64"), "{bad:?}: {error}");
        }
    }
}
