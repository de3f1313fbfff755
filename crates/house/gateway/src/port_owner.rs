//! Which process has a port that a gateway would listen on.

use std::fs;
use std::path::Path;

/// The process that listens on a port, as `NAME (process PID)`, as far as this process may see it.
#[must_use]
pub fn of_listener(port: u16) -> Option<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let inodes: Vec<u64> =
        tables.iter().filter_map(|t| fs::read_to_string(t).ok()).flat_map(|t| listeners(&t, port)).collect();
    let pids =
        fs::read_dir("/proc").ok()?.flatten().filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    let mut processes = pids.map(|pid| (pid, Path::new("/proc").join(pid.to_string())));
    let (pid, process) = processes.find(|(_, process)| holds_one(process, &inodes))?;
    let name = fs::read_to_string(process.join("comm")).unwrap_or_default();
    Some(format!("{} (process {pid})", name.trim()))
}

/// Inodes of the sockets in a table of `/proc/net` that listen on a port.
fn listeners(table: &str, port: u16) -> Vec<u64> {
    /// TCP_LISTEN
    const LISTEN: &str = "0A";
    let of_line = |line: &str| {
        let mut words = line.split_whitespace();
        let local = words.nth(1)?;
        let state = words.nth(1)?;
        let inode = words.nth(5)?.parse().ok()?;
        let found = u16::from_str_radix(local.rsplit(':').next()?, 16).ok()?;
        (state == LISTEN && found == port).then_some(inode)
    };
    table.lines().skip(1).filter_map(of_line).collect()
}

fn holds_one(process: &Path, inodes: &[u64]) -> bool {
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else { return false };
    descriptors.flatten().filter_map(|fd| fs::read_link(fd.path()).ok()).any(|target| {
        let target = target.to_string_lossy();
        let inode = target.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']'));
        inode.and_then(|i| i.parse().ok()).is_some_and(|inode| inodes.contains(&inode))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets_are_read_from_the_kernels_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
   0: 0100007F:28CD 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0\n\
   1: 0100007F:28CD 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 100 0 0 10 0\n";
        assert_eq!(listeners(table, 10445), [4711]);
        assert!(listeners(table, 10446).is_empty());
    }
}
