#!/usr/bin/python3
"""MIT's library as a client with a password and no KDC: IAKERB.

Usage: gss_initiator.py USER@REALM PASSWORD SERVICE@HOST

Prints each of its tokens as a line of hexadecimal digits, and reads the replies in the same form. The last line is `complete`
with the session key, or `failed` with the words of the library. The library is called by ctypes: the packages of Python that
wrap it cannot be had for each of its versions.
"""
import ctypes
import os
import sys

# Nothing of this machine's Kerberos counts.
os.environ['KRB5_CONFIG'] = '/dev/null'
os.environ.pop('KRB5CCNAME', None)

user, password, service = sys.argv[1:4]
gss = ctypes.CDLL('libgssapi_krb5.so.2')
u32, pointer = ctypes.c_uint32, ctypes.c_void_p


class Buffer(ctypes.Structure):
    _fields_ = [('length', ctypes.c_size_t), ('value', ctypes.c_char_p)]


class Out(ctypes.Structure):
    _fields_ = [('length', ctypes.c_size_t), ('value', pointer)]


class Oid(ctypes.Structure):
    _fields_ = [('length', u32), ('elements', ctypes.c_char_p)]


class OidSet(ctypes.Structure):
    _fields_ = [('count', ctypes.c_size_t), ('elements', ctypes.POINTER(Oid))]


class BufferSet(ctypes.Structure):
    _fields_ = [('count', ctypes.c_size_t), ('elements', ctypes.POINTER(Out))]


def oid(*content):
    return Oid(len(content), bytes(content))


IAKERB = oid(0x2b, 6, 1, 5, 2, 5)
USER_NAME = oid(0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 1, 1)
HOST_BASED = oid(0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 1, 4)
# GSS_C_INQ_SSPI_SESSION_KEY: the key that SMB uses
SESSION_KEY = oid(0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 2, 5, 5)
MUTUAL, REPLAY, SEQUENCE, CONFIDENTIALITY, INTEGRITY = 2, 4, 8, 16, 32
CONTINUE = 1


def bytes_of(buffer):
    return ctypes.string_at(buffer.value, buffer.length) if buffer.value else b''


def words(major, minor):
    said = []
    for code, kind in ((major, 1), (minor, 2)):
        more, minor_status, text = u32(0), u32(0), Out()
        gss.gss_display_status(ctypes.byref(minor_status), u32(code), kind, ctypes.byref(IAKERB), ctypes.byref(more), ctypes.byref(text))
        said.append(bytes_of(text).decode(errors='replace'))
    return '; '.join(said)


def end(line):
    try:
        print(line, flush=True)
    except BrokenPipeError:
        os._exit(0)  # nobody wants to know any more
    sys.exit(0)


def checked(major, minor):
    if major & 0xffff0000:
        end(f'failed {words(major, minor.value)}')
    return major


def name(text, kind):
    minor, made = u32(0), pointer()
    buffer = Buffer(len(text), text.encode())
    checked(gss.gss_import_name(ctypes.byref(minor), ctypes.byref(buffer), ctypes.byref(kind), ctypes.byref(made)), minor)
    return made


def credential():
    minor, made = u32(0), pointer()
    secret = Buffer(len(password.encode()), password.encode())
    mechanisms = OidSet(1, ctypes.pointer(IAKERB))
    checked(gss.gss_acquire_cred_with_password(
        ctypes.byref(minor), name(user, USER_NAME), ctypes.byref(secret), u32(0xffffffff), ctypes.byref(mechanisms), 1,
        ctypes.byref(made), None, None), minor)
    return made


def session_key(context):
    minor, keys = u32(0), ctypes.POINTER(BufferSet)()
    checked(gss.gss_inquire_sec_context_by_oid(ctypes.byref(minor), context, ctypes.byref(SESSION_KEY), ctypes.byref(keys)), minor)
    return bytes_of(keys.contents.elements[0]).hex()


for function in (gss.gss_import_name, gss.gss_acquire_cred_with_password, gss.gss_init_sec_context, gss.gss_display_status,
                 gss.gss_inquire_sec_context_by_oid):
    function.restype = u32
made, target, context = credential(), name(service, HOST_BASED), pointer()
reply = b''
while True:
    minor, token, given = u32(0), Out(), Buffer(len(reply), reply)
    major = checked(gss.gss_init_sec_context(
        ctypes.byref(minor), made, ctypes.byref(context), target, ctypes.byref(IAKERB),
        u32(MUTUAL | REPLAY | SEQUENCE | CONFIDENTIALITY | INTEGRITY), u32(0), None, ctypes.byref(given) if reply else None, None,
        ctypes.byref(token), None, None), minor)
    if token.length:
        print(bytes_of(token).hex(), flush=True)
    if not major & CONTINUE:
        end(f'complete {session_key(context)}')
    line = sys.stdin.readline().strip()
    if not line:
        end('failed the acceptor has ended')
    reply = bytes.fromhex(line)
