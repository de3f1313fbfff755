//! The flags of commands that make and change shares, of a server and of a vserver.

use clap::Args;
use control::shares::{NewShare, ShareChange};

use crate::rules_given::{RulesGiven, given};

/// On what terms clients are to use a new share.
#[derive(Debug, Args)]
pub(crate) struct ShareTerms {
    /// Refuse all changes
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Admit SMB clients without an account, as nobody
    #[arg(long)]
    pub(crate) guest: bool,
    /// List only what the user may read
    #[arg(long)]
    pub(crate) access_based_enumeration: bool,
    /// Require encryption from SMB clients
    #[arg(long)]
    pub(crate) encrypted: bool,
    /// Require TLS from NFS clients, and encryption from SMB clients
    #[arg(long)]
    pub(crate) tls_required: bool,
    /// How NFS clients may secure their calls; sys: the client states the user, krb5: a ticket proves the user, krb5i: nobody can
    /// change what is sent, krb5p: nobody can read it [default: all]
    #[arg(long, value_name = "sys,krb5,krb5i,krb5p", value_delimiter = ',')]
    pub(crate) nfs_security: Vec<String>,
    /// Who says in which groups users of NFS clients with AUTH_SYS are [default: as the server's nfs-groups says]
    #[arg(long, value_name = "client|server", default_value = "", hide_default_value = true)]
    pub(crate) nfs_groups: String,
    /// Whether NFS clients find earlier versions in .snapshot: by its name only, or also in the listing of the root [default: off]
    #[arg(long, value_name = "off|hidden|shown", default_value = "", hide_default_value = true)]
    pub(crate) nfs_snapshots: String,
    /// Let root of NFS clients create device nodes, even if the share has a client list
    #[arg(long)]
    pub(crate) devices: bool,
    /// Let root of NFS clients set the set-user-ID and set-group-ID bits, even if the share has a client list
    #[arg(long)]
    pub(crate) set_id: bool,
    /// Refuse NFS clients that connect from ports above 1023
    #[arg(long)]
    pub(crate) secure_port: bool,
    /// Hide the share from clients that list the shares
    #[arg(long)]
    pub(crate) hidden: bool,
    /// The comment that clients see when they list the shares
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) comment: String,
    #[command(flatten)]
    pub(crate) rules: RulesGiven,
    /// Write what clients do in the share to the access log [default: on]
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) access_log: Option<bool>,
    /// The plan, for example "azure-files-v2-ssd capacity=1TiB iops=5000" [default: unlimited]
    #[arg(long)]
    pub(crate) plan: Option<String>,
}

/// What is to become of the terms of a share.
#[derive(Debug, Args)]
pub(crate) struct ShareTermsChange {
    /// Refuse all changes
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) read_only: Option<bool>,
    /// Admit SMB clients without an account, as nobody
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) guest: Option<bool>,
    /// List only what the user may read
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) access_based_enumeration: Option<bool>,
    /// Give SMB clients persistent handles, which survive a restart of the server
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) continuous_availability: Option<bool>,
    /// Require encryption from SMB clients
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) encrypted: Option<bool>,
    /// Require TLS from NFS clients, and encryption from SMB clients; `off` leaves --encrypted as it is
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) tls_required: Option<bool>,
    /// How NFS clients may secure their calls; "" admits all
    #[arg(long, value_name = "sys,krb5,krb5i,krb5p", value_delimiter = ',')]
    pub(crate) nfs_security: Vec<String>,
    /// Who says in which groups users of NFS clients with AUTH_SYS are; "": as the server's nfs-groups says
    #[arg(long, value_name = "client|server")]
    pub(crate) nfs_groups: Option<String>,
    /// Whether NFS clients find earlier versions in .snapshot: by its name only, or also in the listing of the root
    #[arg(long, value_name = "off|hidden|shown")]
    pub(crate) nfs_snapshots: Option<String>,
    /// Let root of NFS clients create device nodes, even if the share has a client list
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) devices: Option<bool>,
    /// Let root of NFS clients set the set-user-ID and set-group-ID bits, even if the share has a client list
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) set_id: Option<bool>,
    /// Refuse NFS clients that connect from ports above 1023
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) secure_port: Option<bool>,
    /// Hide the share from clients that list the shares
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) hidden: Option<bool>,
    /// The comment that clients see when they list the shares
    #[arg(long, value_name = "TEXT")]
    pub(crate) comment: Option<String>,
    #[command(flatten)]
    pub(crate) rules: RulesGiven,
    /// Write what clients do in the share to the access log
    #[arg(long, value_name = "on|off", value_parser = parse_switch)]
    pub(crate) access_log: Option<bool>,
    /// The plan; `unlimited` removes all limits
    #[arg(long)]
    pub(crate) plan: Option<String>,
}

impl ShareTerms {
    /// A new share of no name and no directory.
    pub(crate) fn new_share(&self) -> NewShare {
        NewShare {
            read_only: self.read_only,
            guest: self.guest,
            access_based_enumeration: self.access_based_enumeration,
            encrypted: self.encrypted,
            tls_required: self.tls_required,
            nfs_security: given(&self.nfs_security).unwrap_or_default(),
            nfs_groups: self.nfs_groups.clone(),
            nfs_snapshots: self.nfs_snapshots.clone(),
            devices: self.devices,
            set_id: self.set_id,
            secure_port: self.secure_port,
            hidden: self.hidden,
            comment: self.comment.clone(),
            rules: self.rules.change(),
            access_log: self.access_log,
            plan: self.plan.clone(),
            ..NewShare::default()
        }
    }
}

impl ShareTermsChange {
    /// The change of a share.
    pub(crate) fn change(&self) -> ShareChange {
        ShareChange {
            read_only: self.read_only,
            guest: self.guest,
            access_based_enumeration: self.access_based_enumeration,
            continuous_availability: self.continuous_availability,
            encrypted: self.encrypted,
            tls_required: self.tls_required,
            nfs_security: given(&self.nfs_security),
            nfs_groups: self.nfs_groups.clone(),
            nfs_snapshots: self.nfs_snapshots.clone(),
            devices: self.devices,
            set_id: self.set_id,
            secure_port: self.secure_port,
            hidden: self.hidden,
            comment: self.comment.clone(),
            rules: self.rules.change(),
            access_log: self.access_log,
            plan: self.plan.clone(),
            ..ShareChange::default()
        }
    }
}

/// `on` or `off`, and what people write for them.
pub(super) fn parse_switch(text: &str) -> Result<bool, String> {
    match text {
        "on" | "true" | "yes" => Ok(true),
        "off" | "false" | "no" => Ok(false),
        _ => Err("it is on or off (or true, false, yes, no)".to_owned()),
    }
}
