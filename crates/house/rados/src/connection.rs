//! A connection to a Ceph cluster, below its pools.
#![expect(unsafe_code, reason = "functions of a C library are called here")]

use std::ffi::{CStr, CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};

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

    /// What the monitors print of a command, which is JSON.
    ///
    /// # Errors
    /// Their error number, and what they say of it.
    pub(crate) fn command(&self, command: &CStr) -> Result<Vec<u8>, (Errno, String)> {
        let f = self.functions;
        let (mut printed, mut said) = (null_mut(), null_mut());
        let (mut printed_length, mut said_length) = (0, 0);
        let commands = [command.as_ptr()];
        // SAFETY: the handle is connected, there is one command, which ends with NUL, no input, and what is written to lives until the
        // call returns.
        let result = unsafe {
            (f.mon_command)(
                self.rados,
                commands.as_ptr(),
                commands.len(),
                null(),
                0,
                &raw mut printed,
                &raw mut printed_length,
                &raw mut said,
                &raw mut said_length,
            )
        };
        // SAFETY: a buffer that is not null has so many bytes, and is given back once.
        let [printed, said] = unsafe {
            [(printed, printed_length), (said, said_length)].map(|(buffer, length)| {
                let copy = copied(buffer, length);
                (f.buffer_free)(buffer);
                copy
            })
        };
        done(result).map(|_| printed).map_err(|e| (e, String::from_utf8_lossy(&said).into_owned()))
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

/// # Safety
/// There are so many bytes at the pointer.
pub(crate) unsafe fn copied(bytes: *const c_char, length: usize) -> Vec<u8> {
    if length == 0 || bytes.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller says so.
    unsafe { std::slice::from_raw_parts(bytes.cast(), length) }.to_vec()
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: the handle was made in `new`, and nobody uses it any more: whoever does has this value.
        unsafe { (self.functions.shutdown)(self.rados) };
    }
}
