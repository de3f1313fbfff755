"""The minimum of SMB 2.1 with NTLMv2 for an attack ([MS-SMB2], [MS-NLMP]): requests are bytes, of replies only what is needed is read."""
import hashlib
import hmac
import os
import socket
import struct

# The password of all accounts, and MD4 of it in UTF-16LE ([MS-NLMP] 3.3.2), which OpenSSL 3 does not compute any more.
PASSWORD = "victim-Pass1"
NT_HASH = bytes.fromhex("c100f352e22ac1f346df550c4d88d988")

STATUS_MORE_PROCESSING_REQUIRED, STATUS_LOGON_FAILURE = 0xC0000016, 0xC000006D
# Seconds that a reply may take.
REPLY_MAX = 30
SESSION_SETUP, TREE_CONNECT, CREATE, CLOSE, READ = 1, 3, 5, 6, 8
SIGNED = 8

# [MS-NLMP] 2.2.1.1: NEGOTIATE_MESSAGE.
BEGINNING = b"NTLMSSP\0" + struct.pack("<II", 1, 0xE2088297) + b"\0" * 24
# The flags of the AUTHENTICATE_MESSAGE: those without NTLMSSP_NEGOTIATE_KEY_EXCH.
FLAGS = 0xA2088215


class Refused(OSError):
    """A request that has failed, with its status."""

    def __init__(self, what, status):
        super().__init__(f"{what}: {status:#010x}")
        self.status = status


def header(command, message_id, session=0, tree=0, flags=0, credits=31):
    fields = struct.pack("<HHIHHIIQIIQ", 64, 1, 0, command, credits, flags, 0, message_id, 0, tree, session)
    return b"\xfeSMB" + fields + b"\0" * 16


def framed(message):
    return struct.pack(">I", len(message)) + message


def negotiate():
    return framed(header(0, 0) + struct.pack("<HHHHI", 36, 2, 1, 0, 0) + b"\7" * 16 + b"\0" * 8 + struct.pack("<HH", 0x0202, 0x0210))


def setup(message_id, session, token):
    body = struct.pack("<HBBIIHHQ", 25, 0, 1, 0, 0, 88, len(token), 0)
    return framed(header(SESSION_SETUP, message_id, session) + body + token)


def authenticate(user, response):
    """An AUTHENTICATE_MESSAGE with this response to the challenge ([MS-NLMP] 2.2.1.3)."""
    fields, payload = b"", b""
    for part in [b"\0" * 24, response, b"", user.encode("utf-16-le"), b"", b""]:
        fields += struct.pack("<HHI", len(part), len(part), 64 + len(payload))
        payload += part
    return b"NTLMSSP\0" + struct.pack("<I", 3) + fields + struct.pack("<I", FLAGS) + payload


# It is wrong for every account.
WRONG_RESPONSE = b"\x5a" * 16 + b"\1\1" + b"\0" * 42


def right_response(user, challenge):
    """The response to a CHALLENGE_MESSAGE, and the session key ([MS-NLMP] 3.3.2)."""
    def digest(key, data):
        return hmac.digest(key, data, "md5")
    length, _, at = struct.unpack("<HHI", challenge[40:48])
    rest = b"\1\1" + b"\0" * 6 + b"\0" * 8 + os.urandom(8) + b"\0" * 4 + challenge[at:at + length] + b"\0" * 4
    key = digest(NT_HASH, user.upper().encode("utf-16-le"))
    proof = digest(key, challenge[24:32] + rest)
    return proof + rest, digest(key, proof)


def receive(stream):
    prefix = stream.recv(4, socket.MSG_WAITALL)
    if len(prefix) < 4:
        raise ConnectionError("the server has hung up")
    return stream.recv(struct.unpack(">I", prefix)[0], socket.MSG_WAITALL)


def ask(stream, question):
    stream.settimeout(REPLY_MAX)
    stream.sendall(question)
    return receive(stream)


def status_of(reply):
    return struct.unpack("<I", reply[8:12])[0]


def session_of(reply):
    return struct.unpack("<Q", reply[40:48])[0]


class Connection:
    """A connection with its next MessageId."""

    def __init__(self, stream):
        self.stream, self.next = stream, 1
        ask(stream, negotiate())

    def message_id(self):
        self.next += 1
        return self.next - 1


class Session:
    """A user who has logged on. Requests are signed (HMAC-SHA256, [MS-SMB2] 3.1.4.1)."""

    def __init__(self, connection, user):
        self.connection, self.tree = connection, 0
        begun = ask(connection.stream, setup(connection.message_id(), 0, BEGINNING))
        if status_of(begun) != STATUS_MORE_PROCESSING_REQUIRED:
            raise Refused("SESSION_SETUP", status_of(begun))
        at, length = struct.unpack("<HH", begun[68:72])
        response, self.key = right_response(user, begun[at:at + length])
        self.id = session_of(begun)
        done = ask(connection.stream, setup(connection.message_id(), self.id, authenticate(user, response)))
        if status_of(done):
            raise Refused("SESSION_SETUP", status_of(done))

    def request(self, command, body, credits=31):
        """A signed frame."""
        message = header(command, self.connection.message_id(), self.id, self.tree, SIGNED, credits) + body
        signature = hmac.digest(self.key, message, hashlib.sha256)[:16]
        return framed(message[:48] + signature + message[64:])

    def ask(self, what, *request, **how):
        reply = ask(self.connection.stream, self.request(*request, **how))
        if status_of(reply):
            raise Refused(what, status_of(reply))
        return reply

    def connect(self, share):
        path = f"\\\\server\\{share}".encode("utf-16-le")
        reply = self.ask("TREE_CONNECT", TREE_CONNECT, struct.pack("<HHHH", 9, 0, 72, len(path)) + path)
        self.tree = struct.unpack("<I", reply[36:40])[0]

    def open(self, name, credits=31):
        """The FileId of a file that is opened for reading, and shared ([MS-SMB2] 2.2.13)."""
        name = name.encode("utf-16-le")
        body = struct.pack("<HBBIQQIIIIIHHII", 57, 0, 0, 2, 0, 0, 0x00120089, 0, 7, 1, 0, 120, len(name), 0, 0)
        return self.ask("CREATE", CREATE, body + name, credits)[128:144]

    def close(self, file):
        self.ask("CLOSE", CLOSE, struct.pack("<HHI", 24, 0, 0) + file)

    def read_request(self, file, length):
        """A READ from the beginning ([MS-SMB2] 2.2.19)."""
        return self.request(READ, struct.pack("<HBBIQ", 49, 80, 0, length, 0) + file + struct.pack("<IIIHH", 0, 0, 0, 0, 0) + b"\0")
