//! Serves one share in memory, over NFSv3, NFSv4.1 and NFSv4.2, until interrupted. Clients are believed to be who they
//! say they are.
//!
//!     cargo run -p anabranch-nfs-server --example nfs_in_memory -- 127.0.0.1:2049
//!     mount -t nfs -o vers=4.2 127.0.0.1:/data /mnt

use std::error::Error;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use anabranch_nfs_server::{Config, NfsServer, Squashing};
use share::{Settings, Share, ShareId, ShareTable, Squash};
use storage::memory::MemoryStore;

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:2049".to_owned());
    let share = Share::new(ShareId(1), Settings::new("data"), Arc::new(MemoryStore::new()));
    let shares = ShareTable::new([share])?;

    let squashing = Squashing { squash: Squash::None, ..Squashing::default() };
    let key = *b"a key to be kept"; // of the filehandles: what is in memory does not outlive the server anyway
    let started = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let server = NfsServer::new(Config::new(shares, squashing, key, started.to_le_bytes()));

    let shards = net::Shards::start(1)?;
    let listener = TcpListener::bind(address)?;
    println!("/data is at {}", listener.local_addr()?);
    shards.listen(listener, server)?;
    loop {
        std::thread::park();
    }
}
