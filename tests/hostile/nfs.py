"""The minimum of NFSv3 and NFSv4.1 for an attack (RFC 5531, 1813, 8881): calls are bytes, replies are read as far as needed."""
import itertools
import os
import socket
import struct

NFS, MOUNT = 100003, 100005
xids = itertools.count(1)


def words(*numbers):
    return struct.pack(f">{len(numbers)}I", *numbers)


def opaque(data):
    return words(len(data)) + data + b"\0" * (-len(data) % 4)


def sys(uid=1000, gid=1000):
    """AUTH_SYS of a machine without a name, and the empty verifier (RFC 5531 appendix A)."""
    body = words(0) + opaque(b"") + words(uid, gid, 0)
    return words(1) + opaque(body) + words(0, 0)


def call(program, version, procedure, arguments=b"", who=None):
    """A complete record with a call."""
    message = words(next(xids), 0, 2, program, version, procedure) + (who or words(0, 0, 0, 0)) + arguments
    return words(0x80000000 | len(message)) + message


def null():
    return call(NFS, 3, 0)


def receive(stream):
    """One reply without its RPC header. None: the server has closed the connection."""
    def take(length):
        data = b""
        while len(data) < length:
            part = stream.recv(length - len(data))
            if not part:
                return None
            data += part
        return data
    mark = take(4)
    message = mark and take(struct.unpack(">I", mark)[0] & 0x7FFFFFFF)
    return message and message[24:]


def ask(stream, *what, **how):
    stream.sendall(call(*what, **how))
    answer = receive(stream)
    if answer is None:
        raise ConnectionError("the server has hung up")
    return answer


def handle3(stream, path):
    """The filehandle of an export (MNT, RFC 1813 appendix I)."""
    answer = ask(stream, MOUNT, 3, 1, opaque(path), who=sys())
    status, length = struct.unpack(">II", answer[:8])
    if status:
        raise ConnectionError(f"MNT: {status}")
    return answer[8:8 + length]


def lookup3(stream, directory, name):
    answer = ask(stream, NFS, 3, 3, opaque(directory) + opaque(name), who=sys())
    status, length = struct.unpack(">II", answer[:8])
    if status:
        raise ConnectionError(f"LOOKUP: {status}")
    return answer[8:8 + length]


def read3(file, offset, count):
    return call(NFS, 3, 6, opaque(file) + struct.pack(">QI", offset, count), who=sys())


class Refused(Exception):
    """A COMPOUND that has failed, with its status."""


def compound(stream, *operations):
    """The status, and the results from the first operation's number on (RFC 8881 16.2)."""
    body = opaque(b"") + words(1, len(operations)) + b"".join(operations)
    answer = ask(stream, NFS, 4, 1, body, who=sys())
    status, tag = struct.unpack(">II", answer[:8])
    return status, answer[12 + tag + (-tag % 4):]


def exchange_id(stream, owner):
    """The client id for this owner, and the sequence number of its CREATE_SESSION (RFC 8881 18.35)."""
    status, answer = compound(stream, words(42) + os.urandom(8) + opaque(owner) + words(0, 0, 0))
    if status:
        raise Refused(status)
    return struct.unpack(">QI", answer[8:20])


class Session:
    """An NFSv4.1 client with one session of one slot (RFC 8881 18.36)."""

    def __init__(self, stream, name=None):
        self.stream, self.sequence = stream, 0
        client, sequence = exchange_id(stream, name or b"hostile " + os.urandom(8).hex().encode())
        attributes = words(0, 1 << 16, 1 << 16, 4096, 8, 1, 0)
        arguments = struct.pack(">QII", client, sequence, 0) + attributes * 2 + words(0x40000000, 1, 0)
        status, answer = compound(stream, words(43) + arguments)
        if status:
            raise Refused(status)
        self.session = answer[8:24]
        self.sequenced(words(58, 0))  # RECLAIM_COMPLETE

    def compound(self, *operations):
        self.status, results = compound(self.stream, *operations)
        return results

    def sequenced(self, *operations):
        self.sequence += 1
        return self.compound(words(53) + self.session + words(self.sequence, 0, 0, 0), *operations)

    def open(self, share, name, owner):
        """The status of an OPEN for reading, with a new owner (RFC 8881 18.16)."""
        claim = words(0) + opaque(name)
        opening = words(18, 0, 1, 0) + struct.pack(">Q", 0) + opaque(owner) + words(0) + claim
        self.sequenced(words(24), words(15) + opaque(share), opening)
        return self.status
