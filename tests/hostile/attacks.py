"""Attacks of hostile clients. Each attack runs until its time is over or it can take no more, and returns what it has gained.

An attack is a function (place, until) -> text. It uses its own address, 127.0.0.66, which no other client has.
"""
import os
import select
import socket
import struct
import threading
import time

import nfs

ADDRESS = "127.0.0.66"
CONNECTIONS_MAX = 3000


def connect(place, port, address=ADDRESS):
    stream = socket.socket()
    stream.settimeout(10)
    stream.bind((address, 0))
    stream.connect((place.host, port))
    return stream


def hold(place, port, greeting, until):
    """Opens as many connections as possible, and sends this greeting over each. Returns how many of them the server keeps."""
    held = []
    while time.monotonic() < until and len(held) < CONNECTIONS_MAX:
        try:
            stream = connect(place, port)
            stream.sendall(greeting)
            held.append(stream)
        except OSError:
            time.sleep(0.05)
    while time.monotonic() < until:
        time.sleep(0.1)
    kept = sum(is_open(stream) for stream in held)
    for stream in held:
        stream.close()
    return f"{kept} of {len(held)} connections kept"


def is_open(stream):
    """Whether the server has kept the connection. Its replies are skipped."""
    try:
        stream.setblocking(False)
        return any(stream.recv(65536) for _ in range(64))
    except BlockingIOError:
        return True
    except OSError:
        return False


def idle(place, until):
    return hold(place, place.smb, b"", until)


def null_calls(place, until):
    return hold(place, place.nfs, nfs.null(), until)


def partial_records(place, until):
    """The first half of a record of 1 MiB (RFC 5531 11)."""
    return hold(place, place.nfs, nfs.words(0x80000000 | 1 << 20) + b"\0" * (512 << 10), until)


def partial_frames(place, until):
    """The beginning of a frame of 64 KiB ([MS-SMB2] 2.1)."""
    return hold(place, place.smb, struct.pack(">I", 65535) + b"\xfeSMB" + b"\0" * 60000, until)


# [MS-NLMP] 2.2.1.1: NEGOTIATE_MESSAGE.
BEGINNING = b"NTLMSSP\0" + struct.pack("<II", 1, 0xE2088297) + b"\0" * 24
STATUS_MORE_PROCESSING_REQUIRED, STATUS_LOGON_FAILURE = 0xC0000016, 0xC000006D


def sessions(place, until):
    """Logons that are begun and never finished ([MS-SMB2] 2.2.5)."""
    begun = connections = 0
    while time.monotonic() < until:
        try:
            stream = connect(place, place.smb)
            connections += 1
            exchange(stream, negotiate())
            for number in range(1, 100):
                status, _ = exchange(stream, setup(number, 0, BEGINNING))
                begun += status == STATUS_MORE_PROCESSING_REQUIRED
        except OSError:
            time.sleep(0.01)
    return f"{begun} logons begun over {connections} connections"


def guesses(place, until):
    """Wrong passwords, over eight connections at a time ([MS-NLMP] 2.2.1.3: AUTHENTICATE_MESSAGE)."""
    made = []

    def guess():
        while time.monotonic() < until:
            try:
                stream = connect(place, place.smb)
                exchange(stream, negotiate())
                for number in range(1, 100, 2):
                    _, session = exchange(stream, setup(number, 0, BEGINNING))
                    status, _ = exchange(stream, setup(number + 1, session, authenticate("victim")))
                    if status == STATUS_LOGON_FAILURE:
                        made.append(number)
            except OSError:
                time.sleep(0.01)

    threads = [threading.Thread(target=guess) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return f"{len(made)} guesses answered"


def authenticate(user):
    """An AUTHENTICATE_MESSAGE whose response to the challenge is wrong for every account."""
    name, response = user.encode("utf-16-le"), b"\x5a" * 16 + b"\1\1" + b"\0" * 42
    fields, payload = b"", b""
    for part in [b"\0" * 24, response, b"", name, b"", b""]:
        fields += struct.pack("<HHI", len(part), len(part), 64 + len(payload))
        payload += part
    return b"NTLMSSP\0" + struct.pack("<I", 3) + fields + struct.pack("<I", 0xE2088215) + payload


def header(command, message_id, session=0):
    return b"\xfeSMB" + struct.pack("<HHIHHIIQQQ", 64, 1, 0, command, 31, 0, 0, message_id, 0, session) + b"\0" * 16


def setup(message_id, session, token):
    body = struct.pack("<HBBIIHHQ", 25, 0, 1, 0, 0, 88, len(token), 0)
    return framed(header(1, message_id, session) + body + token)


def framed(message):
    return struct.pack(">I", len(message)) + message


def negotiate():
    return framed(header(0, 0) + struct.pack("<HHHHI", 36, 2, 1, 0, 0) + b"\7" * 16 + b"\0" * 8 + struct.pack("<HH", 0x0202, 0x0210))


def exchange(stream, question):
    """The status and the SessionId of the reply."""
    stream.settimeout(60)
    stream.sendall(question)
    prefix = stream.recv(4, socket.MSG_WAITALL)
    if len(prefix) < 4:
        raise ConnectionError("the server has hung up")
    answer = stream.recv(struct.unpack(">I", prefix)[0], socket.MSG_WAITALL)
    return struct.unpack("<I", answer[8:12])[0], struct.unpack("<Q", answer[40:48])[0]


def opens(place, until):
    """OPENs with a new owner each, until they are refused (RFC 8881 18.16)."""
    stream = connect(place, place.nfs)
    session, had = nfs.Session(stream), 0
    while time.monotonic() < until:
        status = session.open(b"data", b"read-me", b"owner %d" % had)
        if status:
            time.sleep(0.05)
        else:
            had += 1
    stream.close()
    return f"{had} opens"


def client_ids(place, until):
    """NFSv4.1 clients with the longest names, each with a session (RFC 8881 18.35, 18.36), and as many that make none."""
    stream = connect(place, place.nfs)
    had = begun = refused = 0
    while time.monotonic() < until:
        try:
            nfs.Session(stream, name=os.urandom(1024))
            had += 1
            nfs.exchange_id(stream, os.urandom(1024))
            begun += 1
        except nfs.Refused:
            refused += 1
    stream.close()
    return f"{had} clients, {begun} more client ids, {refused} refused"


def slow_readers(place, until):
    """READs of 64 KiB whose replies the client does not take (RFC 1813 3.3.6)."""
    readers, asked = [], 0
    while time.monotonic() < until and len(readers) < 24:
        stream = connect(place, place.nfs)
        file = nfs.lookup3(stream, nfs.handle3(stream, b"/data"), b"read-me")
        stream.setblocking(False)
        readers.append((stream, nfs.read3(file, 0, 65536)))
    while time.monotonic() < until:
        _, writable, _ = select.select([], [stream for stream, _ in readers], [], 0.2)
        for stream, question in readers:
            if stream in writable:
                try:
                    stream.send(question)
                    asked += 1
                except OSError:
                    pass
    for stream, _ in readers:
        stream.close()
    return f"{asked} answers of 64 KiB asked for, none taken"


def malformed(place, until):
    """Violates the protocols again and again, with an invalid frame and an invalid record."""
    sent = 0
    while time.monotonic() < until:
        for port, nonsense in [(place.smb, framed(b"\xfdSMB" + b"\0" * 100)), (place.nfs, nfs.words(0x80000028) + b"\xff" * 40)]:
            try:
                stream = connect(place, port)
                stream.sendall(nonsense)
                stream.close()
                sent += 1
            except OSError:
                pass
    return f"{sent} connections with nonsense"


ALL = [idle, null_calls, partial_records, partial_frames, sessions, guesses, opens, client_ids, slow_readers, malformed]
