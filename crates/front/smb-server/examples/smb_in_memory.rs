//! Serves one share in memory, over SMB 2 and 3, until interrupted. The user is anna, the password is hush-hush.
//!
//!     cargo run -p anabranch-smb-server --example smb_in_memory -- 127.0.0.1:4450
//!     smbclient //127.0.0.1/data -p 4450 -U anna%hush-hush

use std::error::Error;
use std::net::TcpListener;
use std::sync::Arc;

use anabranch_smb_server::{Config, Server, Service};
use auth::{Account, AccountList, nt_hash};
use share::{Settings, Share, ShareId, ShareTable};
use storage::memory::MemoryStore;

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:4450".to_owned());
    let share = Share::new(ShareId(1), Settings::new("data"), Arc::new(MemoryStore::new()));
    let shares = ShareTable::new([share])?;

    let anna = Account {
        name: "anna".to_owned(),
        nt_hash: Some(nt_hash("hush-hush")),
        keys: None,
        uid: 1000,
        gid: 1000,
        groups: Vec::new(),
        sid: None,
        disabled: false,
    };
    let server = Server::new(Config::default(), shares, Arc::new(AccountList(vec![anna])));

    let shards = net::Shards::start(1)?;
    let listener = TcpListener::bind(address)?;
    println!("data is at {}", listener.local_addr()?);
    let scavenged = Arc::clone(&server);
    shards.spawn(move || {
        let scavenged = Arc::clone(&scavenged);
        async move { scavenged.scavenge().await }
    })?;
    shards.listen(listener, Arc::new(Service::new(server)))?;
    loop {
        std::thread::park();
    }
}
