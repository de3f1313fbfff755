//! Tap devices: interfaces whose frames a program reads and writes.
#![expect(unsafe_code, reason = "the request that attaches to a device has no safe wrapper in rustix")]

use std::ffi::c_short;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::OFlags;
use rustix::ioctl::{Setter, ioctl, opcode};

/// `TUNSETIFF` of linux/if_tun.h.
const ATTACH: rustix::ioctl::Opcode = opcode::write::<std::ffi::c_int>(b'T', 202);
/// `IFF_TAP | IFF_NO_PI` of linux/if_tun.h: Ethernet frames, with nothing before them.
const FRAMES: c_short = 0x0002 | 0x1000;

/// `struct ifreq` of linux/if.h, as far as it is used here: 40 bytes where pointers have 8, which is more than elsewhere.
#[repr(C)]
#[derive(Debug)]
struct Request {
    name: [u8; 16],
    flags: c_short,
    rest: [u8; 22],
}

/// Attaches to a tap device of the calling thread's network, so that its frames can be read and written, without waiting.
///
/// # Errors
/// There is none of this name, or it is attached to.
pub(crate) fn attach(name: &str) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open("/dev/net/tun")?;
    let mut request = Request { name: [0; 16], flags: FRAMES, rest: [0; 22] };
    // The last byte of a name is 0.
    let place = request.name.get_mut(..name.len()).filter(|_| name.len() < 16);
    place.ok_or(io::ErrorKind::InvalidInput)?.copy_from_slice(name.as_bytes());
    // SAFETY: TUNSETIFF takes a pointer to a `struct ifreq`, which `Request` is as large as; the kernel writes the name back into
    // it. It lives until the call has returned.
    unsafe { ioctl(&file, Setter::<ATTACH, Request>::new(request))? };
    Ok(file)
}
