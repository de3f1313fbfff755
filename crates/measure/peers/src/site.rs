//! Where a server runs: on this machine, or in namespaces that another one has made.

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::daemon::free_port;
use crate::error::Result;

/// Where a server runs.
#[derive(Debug, Clone)]
pub struct Site {
    /// The address that it serves at.
    pub address: Ipv4Addr,
    /// The words before a program that start it there; none on this machine.
    pub entering: Vec<String>,
    /// A directory as this program sees it, and as the server does; the same where they see the same files.
    pub directory: (PathBuf, PathBuf),
}

impl Site {
    /// This machine's loopback.
    #[must_use]
    pub fn loopback() -> Self {
        let root = PathBuf::from("/");
        Self { address: Ipv4Addr::LOCALHOST, entering: Vec::new(), directory: (root.clone(), root) }
    }

    /// A path as the server sees it.
    pub(crate) fn seen(&self, path: &Path) -> PathBuf {
        let (here, there) = &self.directory;
        path.strip_prefix(here).map_or_else(|_| path.to_owned(), |rest| there.join(rest))
    }

    /// The port of a service: its usual one where nobody else is, otherwise one that nobody has at present.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn port(&self, usual: u16) -> Result<u16> {
        if self.entering.is_empty() { free_port() } else { Ok(usual) }
    }

    /// The words of a program that starts there.
    pub(crate) fn words(&self, program: &Path) -> Vec<OsString> {
        self.entering.iter().map(OsString::from).chain([program.as_os_str().to_owned()]).collect()
    }

    /// A command that runs there.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let words = self.words(program);
        let (first, rest) = words.split_first().map_or((program.as_os_str(), &[][..]), |(f, r)| (f, r));
        let mut command = Command::new(first);
        command.args(rest);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_server() {
        let directory = (PathBuf::from("/proc/7/root/dev/shm"), PathBuf::from("/dev/shm"));
        let entering = vec!["nsenter".to_owned(), "--".to_owned()];
        let site = Site { address: Ipv4Addr::new(198, 18, 0, 1), entering, directory };
        assert_eq!(site.seen(Path::new("/proc/7/root/dev/shm/a/b")), Path::new("/dev/shm/a/b"));
        assert_eq!(site.words(Path::new("/usr/sbin/smbd")), ["nsenter", "--", "/usr/sbin/smbd"]);
        assert_eq!(site.port(445).unwrap(), 445);
        let here = Site::loopback();
        assert_eq!(here.seen(Path::new("/srv/a")), Path::new("/srv/a"));
        assert_eq!(here.words(Path::new("/usr/sbin/smbd")), ["/usr/sbin/smbd"]);
    }
}
