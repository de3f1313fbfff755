//! What a row does, as a person would say it.

use super::units::block;
pub(super) use advise::counted;
use load::result::{Key, Mix, Protocol};

/// What is done: `4 KiB random reads`.
pub(super) fn work(key: &Key) -> String {
    let order = if key.random { "random" } else { "sequential" };
    match key.mix {
        Mix::Metadata => "metadata cycles".to_owned(),
        Mix::ReadPercent(100) => format!("{} {order} reads", block(key.block_bytes)),
        Mix::ReadPercent(0) => format!("{} {order} writes", block(key.block_bytes)),
        Mix::ReadPercent(reads) => format!("{} {order}, {reads} % reads", block(key.block_bytes)),
    }
}

/// Over what: `4 channels`, `1 connection`.
pub(super) fn connections(protocol: Protocol, count: u32) -> String {
    let thing = match protocol {
        Protocol::Smb => "channel",
        Protocol::Nfs3 | Protocol::Nfs41 => "connection",
        Protocol::Directory => "mount",
    };
    counted(count, thing)
}

/// Who does it: `10 files, 8 threads with 8 under way each`.
pub(super) fn load(key: &Key) -> String {
    let mut parts = Vec::new();
    if key.clients > 1 {
        parts.push(counted(key.clients, "client"));
    }
    if key.mix != Mix::Metadata {
        parts.push(counted(key.files, "file"));
    }
    parts.push(match key.queue_depth {
        1 => counted(key.threads, "thread"),
        depth => format!("{} with {depth} under way", counted(key.threads, "thread")),
    });
    parts.extend(key.settings.iter().map(|(name, value)| format!("{name} {value}")));
    parts.join(", ")
}

/// All of it.
pub(super) fn row(protocol: Protocol, key: &Key) -> String {
    format!("{}, {}, {}", work(key), connections(protocol, key.connections), load(key))
}

/// The protocol as people write it.
pub(super) fn protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Smb => "SMB 3.1.1",
        Protocol::Nfs3 => "NFSv3",
        Protocol::Nfs41 => "NFSv4.1",
        Protocol::Directory => "a directory",
    }
}
