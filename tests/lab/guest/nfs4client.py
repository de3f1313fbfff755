"""A bare client of NFSv4.1, for what the kernel's client cannot ask for: share reservations that deny something, and
delegations for writing. RFC 8881 for the operations, RFC 5662 for their encoding. One connection, one slot."""
import itertools
import os
import socket
import struct
import threading

PROGRAM, CALLBACK_PROGRAM = 100003, 0x40000000
READ, WRITE, BOTH, NONE = 1, 2, 3, 0  # OPEN4_SHARE_ACCESS_*, OPEN4_SHARE_DENY_*
WANT_WRITE_DELEGATION, WANT_NO_DELEGATION = 0x0200, 0x0400
NAMES = {10008: "NFS4ERR_DELAY", 10010: "NFS4ERR_DENIED", 10012: "NFS4ERR_LOCKED", 10013: "NFS4ERR_GRACE", 10015: "NFS4ERR_SHARE_DENIED"}
ANSWER_S = 20


class Refused(Exception):
    """A COMPOUND's status, by its name where it has one here."""

    def __init__(self, status):
        super().__init__(NAMES.get(status, f"status {status}"))
        self.status = status


def u32(*values):
    return struct.pack(f">{len(values)}I", *values)


def u64(value):
    return struct.pack(">Q", value)


def opaque(data):
    return u32(len(data)) + data + bytes(-len(data) % 4)


class Reader:
    """XDR, read from the front."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def raw(self, size):
        self.at += size
        return self.data[self.at - size:self.at]

    def u32(self):
        return struct.unpack(">I", self.raw(4))[0]

    def u64(self):
        return struct.unpack(">Q", self.raw(8))[0]

    def opaque(self):
        size = self.u32()
        data = self.raw(size)
        self.raw(-size % 4)
        return data


class Client:
    """A client with an owner of its own, and one session."""

    numbers = itertools.count(1)

    def __init__(self, server, port, export):
        self.export = export
        self.owner = f"bare {os.getpid()} {next(self.numbers)}".encode()
        self.stream = socket.create_connection((server, port), timeout=ANSWER_S)
        self.stream.settimeout(None)
        self.sending, self.calling = threading.Lock(), threading.Lock()
        self.xid, self.replies, self.arrived = 1, {}, threading.Condition()
        self.on_recall = lambda: None
        self.session = None
        threading.Thread(target=self.listen, daemon=True).start()
        got = self.compound([(42, os.urandom(8) + opaque(self.owner) + u32(0, 0, 0))], bare=True)
        self.client_id, first = got.u64(), got.u32()
        channel = u32(0, 65536, 65536, 4096, 16, 1, 0)
        got = self.compound([(43, u64(self.client_id) + u32(first, 2) + channel + channel + u32(CALLBACK_PROGRAM, 1, 0))], bare=True)
        self.session, self.sequence = got.raw(16), 0
        self.compound([(58, u32(0))])

    def listen(self):
        while record := self.record():
            message = Reader(record)
            xid, kind = message.u32(), message.u32()
            if kind == 0:
                self.answer_callback(xid, message)
                continue
            with self.arrived:
                self.replies[xid] = message
                self.arrived.notify_all()

    def record(self):
        whole = b""
        while True:
            mark = self.bytes(4)
            if not mark:
                return None
            size = struct.unpack(">I", mark)[0]
            whole += self.bytes(size & 0x7FFFFFFF)
            if size >> 31:
                return whole

    def bytes(self, size):
        data = b""
        while len(data) < size:
            more = self.stream.recv(size - len(data))
            if not more:
                return b""
            data += more
        return data

    def send(self, message):
        with self.sending:
            self.stream.sendall(u32(len(message) | 1 << 31) + message)

    def answer_callback(self, xid, message):
        """CB_NULL and CB_COMPOUND: all is well, and a recall is told."""
        _rpc, _program, _version, procedure = (message.u32() for _ in range(4))
        for _ in range(2):  # credentials, verifier
            message.u32(), message.opaque()
        results = b""
        if procedure == 1:
            tag, _minor, _ident, count = message.opaque(), message.u32(), message.u32(), message.u32()
            results, recalled, status = b"", False, 0
            for _ in range(count):
                operation = message.u32()
                # CB_GETATTR: this client does not say what it has, and gives the delegation back instead.
                status = 10004 if operation == 3 else 0
                results += u32(operation, status)
                if operation == 11:  # CB_SEQUENCE
                    session, sequence, slot, highest = message.raw(16), message.u32(), message.u32(), message.u32()
                    message.u32(), message.u32()  # to be kept; no referring calls
                    results += session + u32(sequence, slot, highest, highest)
                elif operation == 4:  # CB_RECALL, the last one of its COMPOUND
                    recalled = True
            results = u32(status) + opaque(tag) + u32(count) + results
            if recalled:
                threading.Thread(target=self.on_recall, daemon=True).start()
        self.send(u32(xid, 1, 0, 0, 0, 0) + results)

    def compound(self, operations, bare=False):
        """The body of the last result."""
        with self.calling:
            if not bare:
                self.sequence += 1
                operations = [(53, self.session + u32(self.sequence, 0, 0, 0)), *operations]
            self.xid += 1
            credentials = u32(1) + opaque(u32(0) + opaque(b"bare") + u32(0, 0, 0))
            body = opaque(b"") + u32(1, len(operations)) + b"".join(u32(number) + body for number, body in operations)
            self.send(u32(self.xid, 0, 2, PROGRAM, 4, 1) + credentials + u32(0, 0) + body)
            with self.arrived:
                if not self.arrived.wait_for(lambda: self.xid in self.replies, ANSWER_S):
                    raise TimeoutError("no answer")
                reply = self.replies.pop(self.xid)
        reply.u32(), reply.u32(), reply.opaque(), reply.u32()  # accepted, verifier, success
        status = reply.u32()
        reply.opaque(), reply.u32()
        if status:
            raise Refused(status)
        for number, _ in operations[:-1]:
            reply.u32(), reply.u32()
            if number == 53:
                reply.raw(36)
            elif number == 18:
                raise AssertionError("OPEN must be the last operation, or the last but one")
        reply.u32(), reply.u32()
        return reply

    def look_up(self, path):
        parts = [part.encode() for part in f"{self.export}/{path}".split("/") if part]
        return [(24, b"")] + [(15, opaque(part)) for part in parts]

    def open(self, path, access, deny, want=WANT_NO_DELEGATION):
        """An open file, with its delegation if one came."""
        folder, _, name = path.rpartition("/")
        owner = u64(self.client_id) + opaque(self.owner)
        claim = u32(0, 0) + opaque(name.encode())  # not created, CLAIM_NULL
        got = self.compound([*self.look_up(folder), (18, u32(0, access | want, deny) + owner + claim)])
        stateid = got.raw(16)
        got.raw(20 + 4)  # change, flags
        got.raw(4 * got.u32())
        delegation = got.raw(16) if got.u32() in (1, 2) else None
        handle = self.compound([*self.look_up(path), (10, b"")]).opaque()
        return File(self, handle, stateid, delegation)

    def end(self):
        session, self.session = self.session, None
        self.compound([(44, session)], bare=True)
        self.compound([(57, u64(self.client_id))], bare=True)
        self.stream.shutdown(socket.SHUT_RDWR)


class File:
    """An open, and perhaps a delegation of the same file."""

    def __init__(self, client, handle, stateid, delegation):
        self.client, self.handle, self.stateid, self.delegation = client, handle, stateid, delegation

    def on_it(self, number, body):
        return self.client.compound([(22, opaque(self.handle)), (number, body)])

    def read(self, offset, count):
        got = self.on_it(25, self.stateid + u64(offset) + u32(count))
        got.u32()
        return got.opaque()

    def write(self, offset, data):
        self.on_it(38, self.stateid + u64(offset) + u32(2) + opaque(data))

    def give_back(self):
        delegation, self.delegation = self.delegation, None
        if delegation:
            self.on_it(8, delegation)

    def close(self):
        self.give_back()
        self.on_it(4, u32(0) + self.stateid)
