//! Topics: who watches an object is told what others notify it of.
#![expect(unsafe_code, reason = "functions of a C library are called here, and call back")]

use std::ffi::{CStr, CString, c_int, c_void};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;
use state::cluster::{Heard, Listening};

use crate::pool::Pool;

/// How long who listens has to answer, in milliseconds.
const PATIENCE: u64 = 5000;
/// After how many seconds without a sign of life an OSD forgets who listens.
const SILENCE: u32 = 30;

/// Listens until it is dropped.
pub(crate) struct Watch {
    ear: Box<Ear>,
    cookie: u64,
}

/// What librados calls back with.
struct Ear {
    pool: Arc<Pool>,
    object: CString,
    heard: Heard,
    is_broken: AtomicBool,
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("object", &self.ear.object).finish_non_exhaustive()
    }
}

impl Listening for Watch {
    fn is_broken(&self) -> bool {
        self.ear.is_broken.load(Ordering::Relaxed)
    }
}

impl Watch {
    /// Watches an object, which is there.
    pub(crate) fn begin(pool: Arc<Pool>, object: CString, heard: Heard) -> Result<Self, Errno> {
        let mut watch =
            Self { ear: Box::new(Ear { pool, object, heard, is_broken: AtomicBool::new(false) }), cookie: 0 };
        let pool = &watch.ear.pool;
        let ear = (&raw const *watch.ear).cast_mut().cast();
        // SAFETY: the text ends with NUL. The ear stays where it is until `Drop` has ended the watch and waited for the last call.
        let result = unsafe {
            (pool.functions.watch3)(
                pool.io(),
                watch.ear.object.as_ptr(),
                &raw mut watch.cookie,
                told,
                broken,
                SILENCE,
                ear,
            )
        };
        if result < 0 {
            // There is nothing to end.
            watch.cookie = 0;
            return Err(Errno::from_raw_os_error(-result));
        }
        Ok(watch)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let pool = &self.ear.pool;
        if self.cookie != 0 {
            // SAFETY: the watch was begun, and after the flush nobody calls back any more.
            unsafe {
                (pool.functions.unwatch2)(pool.io(), self.cookie);
                (pool.functions.watch_flush)(pool.rados);
            }
        }
    }
}

/// `rados_watchcb2_t`
unsafe extern "C" fn told(
    ear: *mut c_void,
    notification: u64,
    cookie: u64,
    _: u64,
    data: *mut c_void,
    length: usize,
) {
    // SAFETY: librados gives back what `Watch::begin` gave it, which is still there.
    let ear = unsafe { &*ear.cast_const().cast::<Ear>() };
    let message = if length == 0 {
        &[]
    } else {
        // SAFETY: librados says so.
        unsafe { std::slice::from_raw_parts(data.cast_const().cast(), length) }
    };
    // A panic must not go through C.
    if catch_unwind(AssertUnwindSafe(|| (ear.heard)(message))).is_err() {
        tracing::error!("whoever listens to {} panicked", ear.object.to_string_lossy());
    }
    // SAFETY: the text ends with NUL, and an answer may be empty.
    unsafe {
        (ear.pool.functions.notify_ack)(ear.pool.io(), ear.object.as_ptr(), notification, cookie, null(), 0);
    }
}

/// `rados_watcherrcb_t`
unsafe extern "C" fn broken(ear: *mut c_void, _: u64, error: c_int) {
    // SAFETY: as in `told`.
    let ear = unsafe { &*ear.cast_const().cast::<Ear>() };
    ear.is_broken.store(true, Ordering::Relaxed);
    tracing::warn!("nothing is heard of {}: error {}", ear.object.to_string_lossy(), -error);
}

/// Tells all that watch an object, which is there, and waits for their answers.
pub(crate) fn tell(pool: &Pool, object: &CStr, message: &[u8]) -> Result<(), Errno> {
    let length = c_int::try_from(message.len()).map_err(|_| Errno::MSGSIZE)?;
    let (mut answers, mut answers_length) = (null_mut(), 0);
    // SAFETY: the text ends with NUL, the message has its length with it, and the answers are given back.
    let result = unsafe {
        let result = (pool.functions.notify2)(
            pool.io(),
            object.as_ptr(),
            message.as_ptr().cast(),
            length,
            PATIENCE,
            &raw mut answers,
            &raw mut answers_length,
        );
        if !answers.is_null() {
            (pool.functions.buffer_free)(answers);
        }
        result
    };
    match result {
        0.. => Ok(()),
        // Somebody has not answered in time.
        error if Errno::from_raw_os_error(-error) == Errno::TIMEDOUT => Ok(()),
        error => Err(Errno::from_raw_os_error(-error)),
    }
}
