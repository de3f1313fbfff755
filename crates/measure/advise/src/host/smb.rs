//! The kernel's SMB client: its settings, and its mounts with their channels.

use super::super::advice::{Source, Verdict, document};
use super::mounts::Mount;
use super::{Finding, Machine};

const MOUNT_CIFS: Source = Source::Manual("mount.cifs(8)");
/// As many as the documents ask for (1.15, line 54).
const CHANNELS: u32 = 4;

pub(super) fn examine(machine: &Machine, mounts: &[Mount]) -> Vec<Finding> {
    let sessions = sessions(&machine.text("proc/fs/cifs/DebugData").unwrap_or_default());
    let mounted = mounts.iter().filter(|mount| matches!(mount.kind.as_str(), "cifs" | "smb3"));
    let of_mount = |mount: &Mount| {
        let address = mount.options.value("addr").unwrap_or_default();
        let session = sessions
            .iter()
            .filter(|session| session.address == address)
            .max_by_key(|session| session.channels);
        [Some(channels(mount, session)), dialect(mount)].into_iter().flatten().collect::<Vec<_>>()
    };
    settings(machine).into_iter().chain(mounted.flat_map(of_mount)).collect()
}

/// Without a word the client caches by leases and oplocks.
fn settings(machine: &Machine) -> Option<Finding> {
    let oplocks = machine.text("sys/module/cifs/parameters/enable_oplocks")?;
    let source = Source::Manual("modinfo cifs: enable_oplocks");
    Some(if oplocks == "N" {
        let text =
            "enable_oplocks=N: the client caches nothing by leases, each open and stat asks the server";
        Finding::new("cifs.ko", Verdict::Red, source, text)
            .mend("echo Y > /sys/module/cifs/parameters/enable_oplocks; rm -f /etc/modprobe.d/cifs.conf   # then mount again")
    } else {
        Finding::new("cifs.ko", Verdict::Green, source, "the client asks for leases")
    })
}

fn dialect(mount: &Mount) -> Option<Finding> {
    let version = mount.options.value("vers")?;
    let is_old = version.starts_with('1') || version.starts_with('2');
    let text = format!("SMB {version} has neither several channels nor encryption");
    is_old.then(|| {
        Finding::new(&mount.directory, Verdict::Red, document("1.19", 77), text)
            .mend("mount -t cifs -o vers=3.1.1 ...")
    })
}

fn channels(mount: &Mount, session: Option<&Session>) -> Finding {
    let about = mount.directory.as_str();
    let asked =
        mount.options.number("max_channels").filter(|_| mount.options.has("multichannel")).unwrap_or(1);
    let Some(session) = session else {
        let text = format!("asks for {asked} channels; the kernel does not say how many it has");
        return Finding::new(about, Verdict::Yellow, MOUNT_CIFS, text);
    };
    let has = session.channels;
    if session.disconnected > 0 {
        let text = format!("{} of {has} channels are disconnected", session.disconnected);
        Finding::new(about, Verdict::Red, document("1.19", 77), text).mend("cat /proc/fs/cifs/DebugData")
    } else if has < asked {
        let text = format!(
            "{has} of the {asked} channels that were asked for: the server offers too few addresses without RSS, or accepts no more"
        );
        Finding::new(about, Verdict::Red, document("1.19", 77), text)
            .mend("anabranch client explain   # on the server")
    } else if has == 1 {
        let text = "one channel: several threads get 2 to 4 times as much from several, where the network is the limit";
        Finding::new(about, Verdict::Yellow, document("1.20", 85), text)
            .mend(format!("mount -t cifs -o multichannel,max_channels={CHANNELS} ..."))
    } else {
        Finding::new(about, Verdict::Green, document("1.19", 77), format!("{has} channels"))
    }
}

/// What /proc/fs/cifs/DebugData tells of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Session {
    address: String,
    channels: u32,
    /// Of these, how many have lost their connection.
    disconnected: u32,
}

/// fs/smb/client/cifs_debug.c writes "Address: A Uses: N ..." for each session, and "Extra Channels: N" where it has more than
/// one. "TCP status: 1" is CifsGood; that of a session's first channel stands above its address.
fn sessions(text: &str) -> Vec<Session> {
    let mut sessions: Vec<Session> = Vec::new();
    let mut first_is_lost = false;
    let mut is_first = true;
    for line in text.lines() {
        let line = line.trim();
        let after = |name: &str| line.split_once(name).and_then(|(_, rest)| rest.split_whitespace().next());
        if let Some(status) = after("TCP status: ") {
            let lost = status != "1";
            match sessions.last_mut().filter(|_| !is_first) {
                Some(session) => session.disconnected += u32::from(lost),
                None => first_is_lost = lost,
            }
        } else if line.contains("Hostname: ") {
            is_first = true;
        } else if let Some(address) = after(") Address: ") {
            let disconnected = u32::from(first_is_lost);
            sessions.push(Session { address: address.to_owned(), channels: 1, disconnected });
            is_first = false;
        } else if let (Some(extra), Some(session)) = (after("Extra Channels: "), sessions.last_mut()) {
            session.channels += extra.parse::<u32>().unwrap_or(0);
        }
    }
    sessions
}
