//! A connection to a Ceph cluster, below its pools.
#![expect(unsafe_code, reason = "functions of a C library are called here")]

use std::ffi::{CStr, CString, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

use rustix::io::Errno;
use state::Error;

use crate::library::{self, Functions, Rados};

/// How long a monitor or an OSD may take to answer, in seconds. Ceph itself would wait for ever.
const ANSWER: &str = "10";

/// A connection. It ends when this is dropped.
pub(crate) struct Connection {
    pub(crate) rados: Rados,
    pub(crate) functions: &'static Functions,
    configuration: PathBuf,
    user: String,
}

pub(crate) fn done(result: c_int) -> Result<c_int, Errno> {
    if result < 0 { Err(Errno::from_raw_os_error(-result)) } else { Ok(result) }
}

pub(crate) fn text(text: &str, what: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::new(format!("the {what} has a NUL in it"), ""))
}

impl Connection {
    /// Connects. `rights` are those that a new user of Ceph needs.
    ///
    /// # Errors
    /// Ceph's library, the configuration file, the key or the monitors are not there.
    pub(crate) fn new(configuration: &Path, user: &str, rights: &str) -> Result<Self, Error> {
        let functions = library::functions()?;
        let path = CString::new(configuration.as_os_str().as_bytes());
        let path =
            path.map_err(|_| Error::new("the path of Ceph's configuration file has a NUL in it", ""))?;
        let name = text(user, "user of Ceph")?;
        let mut rados = null_mut();
        // SAFETY: the texts end with NUL, and the handle is written to before it is used.
        done(unsafe { (functions.create2)(&raw mut rados, c"ceph".as_ptr(), name.as_ptr(), 0) }).map_err(
            |e| Error::new(format!("{user} is no user of Ceph: {e}"), "Name one, such as client.anabranch"),
        )?;
        // From here on `Drop` gives back what there is.
        let connected =
            Self { rados, functions, configuration: configuration.to_owned(), user: user.to_owned() };
        connected.configure(&path)?;
        // SAFETY: the handle is one that was made, and is not connected yet.
        done(unsafe { (connected.functions.connect)(connected.rados) })
            .map_err(|e| connected.refused(e, rights))?;
        Ok(connected)
    }

    fn configure(&self, path: &CStr) -> Result<(), Error> {
        // SAFETY: the handle is one that was made, and the text ends with NUL.
        done(unsafe { (self.functions.conf_read_file)(self.rados, path.as_ptr()) }).map_err(|e| {
            let file = self.configuration.display();
            Error::new(
                format!("Ceph's configuration file {file}: {e}"),
                "Copy it from a machine of the Ceph cluster",
            )
        })?;
        let seconds = text(ANSWER, "time")?;
        for option in [c"rados_osd_op_timeout", c"rados_mon_op_timeout", c"client_mount_timeout"] {
            // SAFETY: as above.
            done(unsafe { (self.functions.conf_set)(self.rados, option.as_ptr(), seconds.as_ptr()) })
                .map_err(|e| {
                    Error::new(format!("Ceph's library has no option {}: {e}", option.to_string_lossy()), "")
                })?;
        }
        Ok(())
    }

    fn refused(&self, error: Errno, rights: &str) -> Error {
        let Self { configuration, user, .. } = self;
        let file = configuration.display();
        match error {
            Errno::ACCESS | Errno::PERM => Error::new(
                format!(
                    "the Ceph cluster of {file} does not let {user} in: there is no key here, or the cluster has another one"
                ),
                format!(
                    "Put into the keyring that {file} names what this prints: ceph auth get {user} (for a new user: \
                     ceph auth get-or-create {user} {rights})"
                ),
            ),
            Errno::NOENT => Error::new(
                format!("{file} names no monitor of a Ceph cluster"),
                "Copy the file from a machine of the cluster: it needs mon host",
            ),
            Errno::TIMEDOUT => Error::new(
                format!("no monitor of {file} has answered for {ANSWER} s"),
                "Look whether the monitors run and can be reached from here: ceph -s",
            ),
            _ => Error::new(format!("the Ceph cluster of {file}: {error}"), "Try: ceph -s"),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: the handle was made in `new`, and nobody uses it any more: whoever does has this value.
        unsafe { (self.functions.shutdown)(self.rados) };
    }
}
