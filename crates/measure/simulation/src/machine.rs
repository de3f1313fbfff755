//! The machine that a simulation runs on: its clock, its randomness, and the wait of a thread that has nothing to do.
//!
//! The servers, their libraries and the standard library read the clock and get random numbers through the C library.
//! So this file defines the three functions of the C library that matter. On a thread that simulates, each reading of
//! the clock moves the time by [`READING`], and the time jumps to the next timer when the runtime waits for events.
//! Otherwise the time stands still. Randomness comes from the seed. All other threads get the time and randomness of
//! the system.
#![expect(unsafe_code, reason = "functions of the C library are defined here")]

use std::cell::Cell;
use std::time::Duration;

use libc::{c_int, c_void, clockid_t, epoll_event, size_t, ssize_t, timespec};

use crate::chance::Chance;

/// How far the clock moves each time it is read.
const READING: Duration = Duration::from_nanos(100);
/// Where the clock starts: 2026-01-01. The monotonic clock and the wall clock show the same time.
const START: Duration = Duration::from_secs(1_767_225_600);
/// How far the clock jumps when the runtime has no timer. This must not happen, and the simulation detects it.
const FOR_EVER: Duration = Duration::from_secs(365 * 86_400);

#[derive(Clone, Copy)]
struct Machine {
    nanos: u64,
    chance: Chance,
}

thread_local! {
    static MACHINE: Cell<Option<Machine>> = const { Cell::new(None) };
}

/// Makes the current thread simulate from now on.
pub(crate) fn begin(seed: u64) {
    let nanos = u64::try_from(START.as_nanos()).unwrap_or(0);
    MACHINE.set(Some(Machine { nanos, chance: Chance::new(seed ^ 0x6d61_6368_696e_6521) }));
}

/// The virtual time since the start.
pub(crate) fn elapsed() -> Duration {
    MACHINE.get().map_or(Duration::ZERO, |machine| Duration::from_nanos(machine.nanos).saturating_sub(START))
}

/// Changes the machine of a thread that simulates, and returns what `change` returns.
fn on_machine<T>(change: impl FnOnce(&mut Machine) -> T) -> Option<T> {
    let mut machine = MACHINE.get()?;
    let result = change(&mut machine);
    MACHINE.set(Some(machine));
    Some(result)
}

fn advance(machine: &mut Machine, by: Duration) -> Duration {
    machine.nanos = machine.nanos.saturating_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX));
    Duration::from_nanos(machine.nanos)
}

/// clock_gettime(2).
///
/// # Safety
/// `time` points to room for a timespec, as the callers of the C library ensure.
#[unsafe(no_mangle)]
unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    let Some(now) = on_machine(|machine| advance(machine, READING)) else {
        // SAFETY: the system call of the same name, with the caller's arguments.
        return c_int::from(unsafe { libc::syscall(libc::SYS_clock_gettime, clock, time) } != 0)
            .wrapping_neg();
    };
    let now = timespec { tv_sec: now.as_secs().cast_signed(), tv_nsec: now.subsec_nanos().into() };
    // SAFETY: the caller gives room for a timespec.
    unsafe { time.write(now) };
    0
}

/// getrandom(2).
///
/// # Safety
/// `buffer` points to room for `length` bytes, as the callers of the C library ensure.
#[unsafe(no_mangle)]
unsafe extern "C" fn getrandom(buffer: *mut c_void, length: size_t, flags: libc::c_uint) -> ssize_t {
    let filled = on_machine(|machine| {
        // SAFETY: the caller gives room for that many bytes; zeros make them a slice that may be read.
        let room = unsafe {
            buffer.cast::<u8>().write_bytes(0, length);
            std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length)
        };
        machine.chance.fill(room);
    });
    if filled.is_some() {
        return length.cast_signed();
    }
    // SAFETY: the system call of the same name, with the caller's arguments.
    let filled = unsafe { libc::syscall(libc::SYS_getrandom, buffer, length, flags) };
    ssize_t::try_from(filled).unwrap_or(-1)
}

/// epoll_wait(2). A runtime that simulates has no descriptors to wait for, so the wait is always for its next timer.
///
/// # Safety
/// `events` points to room for `count` events, as the callers of the C library ensure.
#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_wait(
    epoll: c_int,
    events: *mut epoll_event,
    count: c_int,
    timeout: c_int,
) -> c_int {
    let waited = on_machine(|machine| {
        let wait = u64::try_from(timeout).map_or(FOR_EVER, Duration::from_millis);
        advance(machine, wait);
    });
    if waited.is_some() {
        return 0;
    }
    let no_mask = std::ptr::null::<c_void>();
    // SAFETY: epoll_pwait(2) without a mask is epoll_wait, with the caller's arguments.
    let ready =
        unsafe { libc::syscall(libc::SYS_epoll_pwait, epoll, events, count, timeout, no_mask, 8_usize) };
    c_int::try_from(ready).unwrap_or(-1)
}
