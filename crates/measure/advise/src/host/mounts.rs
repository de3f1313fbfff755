//! The mounts of network file systems.

use std::collections::BTreeMap;

use super::Machine;

/// A mount, as /proc/self/mountinfo has it (proc(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) directory: String,
    /// `cifs`, `smb3`, `nfs`, `nfs4`, ...
    pub(super) kind: String,
    /// The number of the device, such as `0:30`.
    pub(super) device: String,
    pub(super) options: Options,
}

/// Options by name; those without a value have an empty one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Options(BTreeMap<String, String>);

impl Options {
    pub(super) fn parse(text: &str) -> Self {
        let pair = |option: &str| {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            (name.to_owned(), value.to_owned())
        };
        Self(text.split(',').map(pair).collect())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(super) fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.value(name)?.parse().ok()
    }
}

pub(super) fn mounts(machine: &Machine) -> Vec<Mount> {
    machine.text("proc/self/mountinfo").unwrap_or_default().lines().filter_map(mount).collect()
}

/// `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`
fn mount(line: &str) -> Option<Mount> {
    let (place, what) = line.split_once(" - ")?;
    let place: Vec<&str> = place.split(' ').collect();
    let mut what = what.splitn(3, ' ');
    let kind = what.next()?.to_owned();
    Some(Mount {
        directory: unescape(place.get(4)?),
        kind,
        device: (*place.get(2)?).to_owned(),
        options: Options::parse(what.nth(1)?),
    })
}

/// The kernel writes white space and backslashes in octal: `\040`.
pub(super) fn unescape(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        let byte = after.get(..3).and_then(|octal| u8::from_str_radix(octal, 8).ok());
        match byte.filter(u8::is_ascii) {
            Some(byte) => plain.push(byte.into()),
            None => plain.push('\\'),
        }
        rest = if byte.is_some_and(|byte| byte.is_ascii()) { &after[3..] } else { after };
    }
    plain + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_mountinfo_are_taken_apart() {
        let line = r"30 25 0:28 / /mnt/my\040share rw,relatime shared:3 - cifs //h/s\040t rw,vers=3.1.1,soft,multichannel,max_channels=4";
        let mount = mount(line).unwrap();
        assert_eq!(
            (mount.directory.as_str(), mount.kind.as_str(), mount.device.as_str()),
            ("/mnt/my share", "cifs", "0:28")
        );
        assert_eq!(mount.options.number::<u32>("max_channels"), Some(4));
        assert!(mount.options.has("multichannel") && !mount.options.has("seal"));
        assert_eq!(super::mount("nonsense"), None);
        assert_eq!(unescape(r"a\134b\9\04"), r"a\b\9\04");
    }
}
