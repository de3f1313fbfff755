//! An smbclient that stays connected.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use crate::needs;
use crate::server::Server;

/// An smbclient that is killed when the test ends.
pub(crate) struct Connected(pub(crate) Child);

impl Connected {
    /// Connects to a share as a user (`NAME%PASSWORD`). None where there is no smbclient.
    pub(crate) fn start(server: &Server, share: &str, user: &str) -> Option<Self> {
        let (_, port) = server.address("smb").rsplit_once(':').unwrap();
        let started = Command::new("smbclient")
            .args([&format!("//127.0.0.1/{share}"), "-p", port, "-U", user])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        needs::installed("smbclient", started).map(Self)
    }

    /// Gives it a command, and does not wait.
    pub(crate) fn tell(&mut self, command: &str) {
        writeln!(self.0.stdin.as_mut().unwrap(), "{command}").unwrap();
    }

    /// What it says to all of these commands, and then to `exit`.
    pub(crate) fn say(mut self, commands: &str) -> String {
        self.tell(&format!("{commands}\nexit"));
        drop(self.0.stdin.take());
        let mut said = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut said).unwrap();
        said
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
