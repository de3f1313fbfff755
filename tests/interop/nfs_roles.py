"""What a user of an NFS client may do with a file, through libnfs: nfs_roles.py URL UID GID STEP...

Each STEP prints `ok` or the name of the error: create=NAME, read=NAME, chmod=NAME:MODE, chown=NAME:UID, remove=NAME.
"""
import ctypes
import ctypes.util
import errno
import os
import sys

nfs = ctypes.CDLL(ctypes.util.find_library("nfs") or "libnfs.so")
nfs.nfs_init_context.restype = ctypes.c_void_p
nfs.nfs_parse_url_dir.restype = ctypes.c_void_p
nfs.nfs_get_error.restype = ctypes.c_char_p


class Url(ctypes.Structure):
    _fields_ = [("server", ctypes.c_char_p), ("path", ctypes.c_char_p), ("file", ctypes.c_char_p)]


def mounted(url, uid, gid):
    context = ctypes.c_void_p(nfs.nfs_init_context())
    parsed = nfs.nfs_parse_url_dir(context, url.encode())
    if not parsed:
        sys.exit(f"libnfs: {nfs.nfs_get_error(context)}")
    nfs.nfs_set_uid(context, uid)
    nfs.nfs_set_gid(context, gid)
    parts = ctypes.cast(parsed, ctypes.POINTER(Url)).contents
    status = nfs.nfs_mount(context, parts.server, parts.path)
    if status:
        sys.exit(f"mount: {nfs.nfs_get_error(context)}")
    return context


def opened(context, name, flags):
    file = ctypes.c_void_p()
    status = nfs.nfs_open(context, name, flags, ctypes.byref(file))
    if status:
        return status, None
    return 0, file


def create(context, name, _):
    file = ctypes.c_void_p()
    status = nfs.nfs_creat(context, name, 0o640, ctypes.byref(file))
    return status or nfs.nfs_close(context, file)


def read(context, name, _):
    status, file = opened(context, name, os.O_RDONLY)
    if status:
        return status
    buffer = ctypes.create_string_buffer(4)
    got = nfs.nfs_read(context, file, ctypes.c_uint64(4), buffer)
    nfs.nfs_close(context, file)
    return min(got, 0)


STEPS = {
    "create": create,
    "read": read,
    "chmod": lambda context, name, mode: nfs.nfs_chmod(context, name, int(mode, 8)),
    "chown": lambda context, name, uid: nfs.nfs_chown(context, name, int(uid), 0),
    "remove": lambda context, name, _: nfs.nfs_unlink(context, name),
}


def main():
    url, uid, gid, *steps = sys.argv[1:]
    context = mounted(url, int(uid), int(gid))
    for step in steps:
        what, _, rest = step.partition("=")
        name, _, value = rest.partition(":")
        status = STEPS[what](context, f"/{name}".encode(), value)
        print("ok" if status >= 0 else errno.errorcode.get(-status, str(status)))


main()
