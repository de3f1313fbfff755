//! A connection to a pool, and the operations on its objects. What librados reports as an error number is an [`Errno`].
#![expect(unsafe_code, reason = "functions of a C library are called here")]

use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::path::PathBuf;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use state::Error;

use crate::connection::{Connection, copied, done, text};
use crate::library::{
    CREATE_EXCLUSIVE, CREATE_IDEMPOTENT, EQUAL, Functions, IoContext, MAY_RENEW, MUST_RENEW, OmapIterator,
    Operation, Rados, TimeValue,
};

/// The longest attribute that is read, and each of the texts that describe who has a lock.
const TEXT_BYTES_MAX: usize = 4096;
/// How many records one answer may have.
const RECORDS_AT_ONCE: u64 = 1000;

/// Where a store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Ceph's configuration file, which says where the monitors and the keyring are.
    pub configuration: PathBuf,
    /// Whose key is used, such as `client.anabranch`.
    pub user: String,
    /// The pool.
    pub pool: String,
    /// The namespace in the pool: several clusters of gateways may share a pool.
    pub namespace: String,
}

/// A connection to a pool. It has an address of its own, by which the cluster can refuse it.
pub(crate) struct Pool {
    io: IoContext,
    pub(crate) rados: Rados,
    pub(crate) functions: &'static Functions,
    place: Place,
    /// Ends after the context of the pool does.
    _connection: Connection,
}

// SAFETY: librados may be called from several threads with one handle, as long as nobody changes the handle itself (its pool, its
// namespace, its configuration). That happens in `connect` only, before there is a `Pool`.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("place", &self.place).finish_non_exhaustive()
    }
}

/// One step of a change of an object. A change is made whole or, if a comparison fails, not at all (`ECANCELED`).
pub(crate) enum Step<'a> {
    /// Makes the object; if it is there already, the change is not made (`EEXIST`).
    CreateNew,
    /// Makes the object unless it is there.
    Create,
    /// The attribute must have this value; one that is not there is empty.
    CompareAttribute(&'a CStr, &'a [u8]),
    SetAttribute(&'a CStr, &'a [u8]),
    /// The record must have this value; one that is not there is empty.
    CompareRecord(&'a [u8], &'a [u8]),
    /// Keys and values; of one key, the last value.
    SetRecords(Vec<(&'a [u8], &'a [u8])>),
    /// The records of these keys.
    RemoveRecords(Vec<&'a [u8]>),
    /// The records from the first key on, and before the second.
    RemoveRange(&'a [u8], &'a [u8]),
}

/// Which attribute must have which value for an object to be read.
pub(crate) type Guard<'a> = (&'a CStr, &'a [u8]);

/// A key and its value.
pub(crate) type Record = (Vec<u8>, Vec<u8>);

/// The records of one answer, and whether there are more after them.
pub(crate) type Page = (Vec<Record>, bool);

fn pointer(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}

/// The pointers and the lengths of some bytes.
fn parts<'a>(bytes: impl Iterator<Item = &'a [u8]>) -> (Vec<*const c_char>, Vec<usize>) {
    bytes.map(|bytes| (pointer(bytes), bytes.len())).unzip()
}

impl Pool {
    /// Connects.
    ///
    /// # Errors
    /// Ceph's library, the configuration file, the key, the monitors or the pool are not there.
    pub(crate) fn connect(place: &Place) -> Result<Arc<Self>, Error> {
        let pool = text(&place.pool, "name of the pool")?;
        let namespace = text(&place.namespace, "namespace of the pool")?;
        let connection = Connection::new(
            &place.configuration,
            &place.user,
            &format!("mon 'profile rbd' osd 'allow rwx pool={}'", place.pool),
        )?;
        // From here on `Drop` gives back what there is.
        let mut connected = Self {
            io: null_mut(),
            rados: connection.rados,
            functions: connection.functions,
            place: place.clone(),
            _connection: connection,
        };
        let mut io = null_mut();
        // SAFETY: the handle is connected, and the text ends with NUL.
        done(unsafe { (connected.functions.ioctx_create)(connected.rados, pool.as_ptr(), &raw mut io) })
            .map_err(|e| connected.without_pool(e))?;
        connected.io = io;
        // SAFETY: the context was just made, and the text ends with NUL.
        unsafe { (connected.functions.ioctx_set_namespace)(io, namespace.as_ptr()) };
        Ok(Arc::new(connected))
    }

    fn without_pool(&self, error: Errno) -> Error {
        let pool = &self.place.pool;
        match error {
            Errno::NOENT => Error::new(
                format!("the Ceph cluster has no pool {pool}"),
                format!("Make it with: ceph osd pool create {pool}"),
            ),
            _ => Error::new(format!("the pool {pool} of the Ceph cluster: {error}"), ""),
        }
    }

    /// The value of an object's attribute. None: it has none, or there is no object.
    pub(crate) fn attribute(&self, object: &CStr, name: &CStr) -> Result<Option<Vec<u8>>, Errno> {
        let mut found = vec![0_u8; TEXT_BYTES_MAX];
        // SAFETY: the texts end with NUL, and no more is written than the length that is given.
        let length = unsafe {
            (self.functions.getxattr)(
                self.io,
                object.as_ptr(),
                name.as_ptr(),
                found.as_mut_ptr().cast(),
                found.len(),
            )
        };
        match done(length) {
            Ok(length) => {
                found.truncate(usize::try_from(length).unwrap_or_default());
                Ok(Some(found))
            }
            Err(Errno::NOENT | Errno::NODATA) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Changes an object, and returns when that is on stable storage.
    pub(crate) fn change(&self, object: &CStr, steps: &[Step<'_>]) -> Result<(), Errno> {
        let f = self.functions;
        // SAFETY: makes an operation, which is given back below.
        let operation = unsafe { (f.create_write_op)() };
        for step in steps {
            self.add(operation, step);
        }
        // SAFETY: the operation is one that was made, the text ends with NUL, and without a time librados takes the present one.
        let result = unsafe { (f.write_op_operate2)(operation, self.io, object.as_ptr(), null_mut(), 0) };
        // SAFETY: it is used no more.
        unsafe { (f.release_write_op)(operation) };
        done(result).map(drop)
    }

    /// Adds a step to an operation, which copies what it is given.
    fn add(&self, operation: Operation, step: &Step<'_>) {
        let f = self.functions;
        // SAFETY: the operation is one that was made, names end with NUL, each other pointer has its length with it, and librados takes
        // null where the caller does not want to know how a step of a change went.
        unsafe {
            match step {
                Step::CreateNew => (f.write_op_create)(operation, CREATE_EXCLUSIVE, null()),
                Step::Create => (f.write_op_create)(operation, CREATE_IDEMPOTENT, null()),
                Step::CompareAttribute(name, value) => {
                    (f.write_op_cmpxattr)(operation, name.as_ptr(), EQUAL, pointer(value), value.len());
                }
                Step::SetAttribute(name, value) => {
                    (f.write_op_setxattr)(operation, name.as_ptr(), pointer(value), value.len());
                }
                Step::CompareRecord(key, value) => {
                    (f.write_op_omap_cmp2)(
                        operation,
                        pointer(key),
                        EQUAL,
                        pointer(value),
                        key.len(),
                        value.len(),
                        null_mut(),
                    );
                }
                Step::SetRecords(records) => {
                    let (keys, key_lengths) = parts(records.iter().map(|record| record.0));
                    let (values, value_lengths) = parts(records.iter().map(|record| record.1));
                    (f.write_op_omap_set2)(
                        operation,
                        keys.as_ptr(),
                        values.as_ptr(),
                        key_lengths.as_ptr(),
                        value_lengths.as_ptr(),
                        records.len(),
                    );
                }
                Step::RemoveRecords(keys) => {
                    let (keys, lengths) = parts(keys.iter().copied());
                    (f.write_op_omap_rm_keys2)(operation, keys.as_ptr(), lengths.as_ptr(), keys.len());
                }
                Step::RemoveRange(first, end) => {
                    (f.write_op_omap_rm_range2)(
                        operation,
                        pointer(first),
                        first.len(),
                        pointer(end),
                        end.len(),
                    );
                }
            }
        }
    }

    /// The value of a record, if the guard holds.
    pub(crate) fn record(
        &self,
        object: &CStr,
        guard: Guard<'_>,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, Errno> {
        let (keys, lengths) = ([pointer(key)], [key.len()]);
        let mut found = self.read(object, guard, |operation, iterator| {
            // SAFETY: the key has its length with it, and what is written to lives until the operation is done.
            unsafe {
                (self.functions.read_op_omap_get_vals_by_keys2)(
                    operation,
                    keys.as_ptr(),
                    1,
                    lengths.as_ptr(),
                    iterator,
                    null_mut(),
                );
            }
        })?;
        Ok(found.pop().map(|(_, value)| value))
    }

    /// Records after a key, whose keys begin in some way, in their order, if the guard holds.
    pub(crate) fn page(
        &self,
        object: &CStr,
        guard: Guard<'_>,
        after: &CStr,
        beginning: &CStr,
    ) -> Result<Page, Errno> {
        let mut more = 0;
        let more_pointer = &raw mut more;
        let found = self.read(object, guard, |operation, iterator| {
            // SAFETY: the texts end with NUL, and what is written to lives until the operation is done.
            unsafe {
                (self.functions.read_op_omap_get_vals2)(
                    operation,
                    after.as_ptr(),
                    beginning.as_ptr(),
                    RECORDS_AT_ONCE,
                    iterator,
                    more_pointer,
                    null_mut(),
                );
            }
        })?;
        Ok((found, more != 0))
    }

    /// Records of an object, if the guard holds. The argument adds what is to be read to an operation.
    fn read(
        &self,
        object: &CStr,
        guard: Guard<'_>,
        add: impl FnOnce(Operation, *mut OmapIterator),
    ) -> Result<Vec<Record>, Errno> {
        let f = self.functions;
        let mut iterator = null_mut();
        // SAFETY: the operation is made here and given back at the end, texts end with NUL, and the value has its length with it.
        let (operation, result) = unsafe {
            let operation = (f.create_read_op)();
            (f.read_op_cmpxattr)(operation, guard.0.as_ptr(), EQUAL, pointer(guard.1), guard.1.len());
            add(operation, &raw mut iterator);
            (operation, (f.read_op_operate)(operation, self.io, object.as_ptr(), 0))
        };
        let found = done(result).map(|_| self.listed(iterator));
        // SAFETY: `add` has made the iterator, and neither is used any more.
        unsafe {
            (f.omap_get_end)(iterator);
            (f.release_read_op)(operation);
        }
        found
    }

    fn listed(&self, iterator: OmapIterator) -> Vec<Record> {
        let mut found = Vec::new();
        loop {
            let (mut key, mut value) = (null_mut(), null_mut());
            let (mut key_length, mut value_length) = (0, 0);
            // SAFETY: the iterator is one of an operation that succeeded. A key that is not null has its length, and so has its value.
            // Both stay until the iterator is given back.
            unsafe {
                let result = (self.functions.omap_get_next2)(
                    iterator,
                    &raw mut key,
                    &raw mut value,
                    &raw mut key_length,
                    &raw mut value_length,
                );
                if result < 0 || key.is_null() {
                    return found;
                }
                found.push((copied(key, key_length), copied(value, value_length)));
            }
        }
    }

    /// Takes a lock that nobody has, or that this connection has, for so long by the clock of its OSD. False: another has it.
    pub(crate) fn lock(
        &self,
        object: &CStr,
        name: &CStr,
        cookie: &CStr,
        length: Duration,
    ) -> Result<bool, Errno> {
        match self.lock_with(object, name, cookie, length, MAY_RENEW) {
            Err(Errno::BUSY) => Ok(false),
            result => result.map(|()| true),
        }
    }

    /// Keeps a lock for so long from now on. False: this connection has it not, or not any more.
    pub(crate) fn renew(
        &self,
        object: &CStr,
        name: &CStr,
        cookie: &CStr,
        length: Duration,
    ) -> Result<bool, Errno> {
        match self.lock_with(object, name, cookie, length, MUST_RENEW) {
            Err(Errno::BUSY | Errno::NOENT) => Ok(false),
            result => result.map(|()| true),
        }
    }

    fn lock_with(
        &self,
        object: &CStr,
        name: &CStr,
        cookie: &CStr,
        length: Duration,
        flags: u8,
    ) -> Result<(), Errno> {
        let seconds = i64::try_from(length.as_secs()).unwrap_or(i64::MAX);
        let mut length = TimeValue { seconds, microseconds: length.subsec_micros().into() };
        // SAFETY: the texts end with NUL, and the time is there until the call returns.
        let result = unsafe {
            (self.functions.lock_exclusive)(
                self.io,
                object.as_ptr(),
                name.as_ptr(),
                cookie.as_ptr(),
                c"".as_ptr(),
                &raw mut length,
                flags,
            )
        };
        done(result).map(drop)
    }

    /// Gives a lock back, if this connection has it.
    pub(crate) fn unlock(&self, object: &CStr, name: &CStr, cookie: &CStr) -> Result<(), Errno> {
        // SAFETY: the texts end with NUL.
        match done(unsafe {
            (self.functions.unlock)(self.io, object.as_ptr(), name.as_ptr(), cookie.as_ptr())
        }) {
            Err(Errno::NOENT | Errno::BUSY) => Ok(()),
            result => result.map(drop),
        }
    }

    /// The cookie and the address of who has a lock.
    pub(crate) fn locker(&self, object: &CStr, name: &CStr) -> Result<Option<(String, String)>, Errno> {
        let mut texts = [[0_u8; TEXT_BYTES_MAX]; 4];
        let mut lengths = [TEXT_BYTES_MAX; 4];
        let mut is_exclusive = 0;
        let pointers = texts.each_mut().map(|text| text.as_mut_ptr().cast());
        let l = lengths.each_mut().map(|length| &raw mut *length);
        // SAFETY: the names end with NUL, and no more is written to the texts than the lengths that are given.
        let count = unsafe {
            (self.functions.list_lockers)(
                self.io,
                object.as_ptr(),
                name.as_ptr(),
                &raw mut is_exclusive,
                pointers[0],
                l[0],
                pointers[1],
                l[1],
                pointers[2],
                l[2],
                pointers[3],
                l[3],
            )
        };
        match done(c_int::try_from(count).unwrap_or(0)) {
            Ok(0) | Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error),
            Ok(_) => {}
        }
        let [_, _, cookie, address] = texts.map(|text| {
            String::from_utf8_lossy(text.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
        });
        Ok(Some((cookie, address)))
    }

    /// Has the cluster refuse whatever comes from an address, and returns when this connection knows the map that says so: an OSD that
    /// hears from it afterwards refuses, too.
    pub(crate) fn refuse(&self, address: &CStr) -> Result<(), Errno> {
        let mut address = address.to_owned().into_bytes_with_nul();
        // SAFETY: the text ends with NUL. Zero seconds are as many as the cluster has configured.
        done(unsafe { (self.functions.blocklist_add)(self.rados, address.as_mut_ptr().cast(), 0) })?;
        // SAFETY: the handle is connected.
        done(unsafe { (self.functions.wait_for_latest_osdmap)(self.rados) }).map(drop)
    }

    pub(crate) fn io(&self) -> IoContext {
        self.io
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: what is given back was made in `connect`, and nobody uses it any more: whoever does has the pool.
        unsafe {
            if !self.io.is_null() {
                (self.functions.ioctx_destroy)(self.io);
            }
        }
    }
}
