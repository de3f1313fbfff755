"""Attacks of hostile clients. Each attack goes on until it is told to end, and returns what it has gained.

An attack is a function (place, over) -> text; `over` is an event. It uses its own addresses, 127.0.0.66 or ADDRESSES, which no other
client has, and over SMB the account `attacker`.
"""
import os
import resource
import select
import socket
import struct
import threading

import nfs
import smb

ADDRESS = "127.0.0.66"
# So many that none has more than a quarter of the connections.
ADDRESSES = [f"127.0.1.{number}" for number in range(1, 11)]
USER = "attacker"
# What this process keeps for other descriptors than those of an attack.
DESCRIPTORS_KEPT = 500


def connect(place, port, address=ADDRESS):
    stream = socket.socket()
    stream.settimeout(10)
    stream.bind((address, 0))
    stream.connect((place.host, port))
    return stream


def hold(place, ways, count, over):
    """Opens as many connections as there may be, up to this count. The ways are used in turns: a port, an address, and what is sent
    first. Returns how many of the connections the server keeps."""
    held = []
    count = min(count, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - DESCRIPTORS_KEPT)
    while not over.is_set() and len(held) < count:
        port, address, greeting = ways[len(held) % len(ways)]
        try:
            stream = connect(place, port, address)
            stream.sendall(greeting)
            held.append(stream)
        except OSError:
            over.wait(0.05)
    over.wait()
    kept = sum(is_open(stream) for stream in held)
    for stream in held:
        stream.close()
    return f"{kept} of {len(held)} connections kept"


def is_open(stream):
    """Whether the server has kept the connection. Its replies are skipped."""
    try:
        stream.setblocking(False)
        return all(stream.recv(65536) for _ in range(64))
    except BlockingIOError:
        return True
    except OSError:
        return False


def greetings(place, addresses):
    """Connections that are idle over SMB, and idle after a NULL call over NFS."""
    return [way for address in addresses for way in [(place.smb, address, b""), (place.nfs, address, nfs.null())]]


def connections(place, over):
    return hold(place, greetings(place, ADDRESSES), 10000, over)


def one_address(place, over):
    return hold(place, greetings(place, [ADDRESS]), 6000, over)


def partial_records(place, over):
    """The first half of a record of 1 MiB (RFC 5531 11)."""
    return hold(place, [(place.nfs, ADDRESS, nfs.words(0x80000000 | 1 << 20) + b"\0" * (512 << 10))], 3000, over)


def partial_frames(place, over):
    """The beginning of a frame of 64 KiB ([MS-SMB2] 2.1)."""
    return hold(place, [(place.smb, ADDRESS, struct.pack(">I", 65535) + b"\xfeSMB" + b"\0" * 60000)], 3000, over)


def sessions(place, over):
    """Logons that are begun and never finished ([MS-SMB2] 2.2.5)."""
    begun = connected = 0
    while not over.is_set():
        try:
            stream = connect(place, place.smb)
            connected += 1
            smb.ask(stream, smb.negotiate())
            for number in range(1, 100):
                reply = smb.ask(stream, smb.setup(number, 0, smb.BEGINNING))
                begun += smb.status_of(reply) == smb.STATUS_MORE_PROCESSING_REQUIRED
        except OSError:
            over.wait(0.01)
    return f"{begun} logons begun over {connected} connections"


def long_logons(place, over):
    """Logons that are begun with long tokens and never finished, five over each connection ([MS-NLMP] 2.2.1.1)."""
    beginnings = b"".join(smb.setup(number, 0, smb.BEGINNING + b"\0" * 50000) for number in range(1, 6))
    return hold(place, [(place.smb, address, smb.negotiate() + beginnings) for address in ADDRESSES], 3000, over)


def guesses(place, over):
    """Wrong passwords, over eight connections at a time ([MS-NLMP] 2.2.1.3: AUTHENTICATE_MESSAGE)."""
    made = []

    def guess():
        while not over.is_set():
            try:
                stream = connect(place, place.smb)
                smb.ask(stream, smb.negotiate())
                for number in range(1, 100, 2):
                    if over.is_set():  # an answer takes up to 10 s
                        break
                    session = smb.session_of(smb.ask(stream, smb.setup(number, 0, smb.BEGINNING)))
                    wrong = smb.authenticate("victim", smb.WRONG_RESPONSE)
                    if smb.status_of(smb.ask(stream, smb.setup(number + 1, session, wrong))) == smb.STATUS_LOGON_FAILURE:
                        made.append(number)
            except OSError:
                over.wait(0.01)

    threads = [threading.Thread(target=guess) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return f"{len(made)} guesses answered"


def logons(place, over):
    """Sessions of one user, as many as one connection has after another, until they are refused ([MS-SMB2] 2.2.6)."""
    held, had, refused = [], 0, 0
    while not over.is_set():
        try:
            stream = connect(place, place.smb)
            held.append(stream)
            connection = smb.Connection(stream)
            while not over.is_set():
                smb.Session(connection, USER)
                had += 1
        except smb.Refused:
            refused += 1
            over.wait(0.01)
        except OSError:
            over.wait(0.05)
    for stream in held:
        stream.close()
    return f"{had} sessions over {len(held)} connections, {refused} refused"


def opens(place, over):
    """OPENs with a new owner each, until they are refused (RFC 8881 18.16)."""
    stream = connect(place, place.nfs)
    session, had = nfs.Session(stream), 0
    while not over.is_set():
        status = session.open(b"data", b"read-me", b"owner %d" % had)
        if status:
            over.wait(0.05)
        else:
            had += 1
    stream.close()
    return f"{had} opens"


def smb_opens(place, over):
    """CREATEs of one user, until they are refused ([MS-SMB2] 2.2.13)."""
    stream = connect(place, place.smb)
    session, had, refused = smb.Session(smb.Connection(stream), USER), 0, 0
    session.connect("data")
    while not over.is_set():
        try:
            session.open("read-me")
            had += 1
        except smb.Refused:
            refused += 1
            over.wait(0.05)
    stream.close()
    return f"{had} opens, {refused} refused"


def client_ids(place, over):
    """NFSv4.1 clients with the longest names, each with a session (RFC 8881 18.35, 18.36), and as many that make none."""
    stream = connect(place, place.nfs)
    had = begun = refused = 0
    while not over.is_set():
        try:
            nfs.Session(stream, name=os.urandom(1024))
            had += 1
            nfs.exchange_id(stream, os.urandom(1024))
            begun += 1
        except nfs.Refused:
            refused += 1
    stream.close()
    return f"{had} clients, {begun} more client ids, {refused} refused"


READERS = 24


def read_slowly(readers, over):
    """Sends the questions of readers, pairs of a connection and an iterator of questions, and takes no reply."""
    asked, unsent = 0, {stream: b"" for stream, _ in readers}
    questions = dict(readers)
    for stream in unsent:
        stream.setblocking(False)
    while not over.is_set():
        _, writable, _ = select.select([], list(unsent), [], 0.2)
        for stream in writable:
            try:
                question = unsent[stream] or next(questions[stream])
                unsent[stream] = question[stream.send(question):]
                asked += not unsent[stream]
            except (OSError, StopIteration):
                del unsent[stream]
    for stream in questions:
        stream.close()
    return f"{asked} answers of 64 KiB asked for, none taken"


def slow_readers(place, over):
    """READs of 64 KiB whose replies the client does not take (RFC 1813 3.3.6)."""
    def reader():
        stream = connect(place, place.nfs)
        file = nfs.lookup3(stream, nfs.handle3(stream, b"/data"), b"read-me")
        return stream, iter(lambda: nfs.read3(file, 0, 65536), None)
    return read_slowly([reader() for _ in range(READERS)], over)


def smb_slow_readers(place, over):
    """READs of 64 KiB whose replies the client does not take ([MS-SMB2] 2.2.19), as many as there are credits for."""
    credits = 8000

    def reader():
        stream = connect(place, place.smb)
        session = smb.Session(smb.Connection(stream), USER)
        session.connect("data")
        file = session.open("read-me", credits)
        return stream, (session.read_request(file, 65536) for _ in range(credits))
    return read_slowly([reader() for _ in range(READERS)], over)


def malformed(place, over):
    """Violates the protocols again and again, with an invalid frame and an invalid record."""
    sent = 0
    while not over.is_set():
        for port, nonsense in [(place.smb, smb.framed(b"\xfdSMB" + b"\0" * 100)), (place.nfs, nfs.words(0x80000028) + b"\xff" * 40)]:
            try:
                stream = connect(place, port)
                stream.sendall(nonsense)
                stream.close()
                sent += 1
            except OSError:
                pass
    return f"{sent} connections with nonsense"


ALL = [connections, one_address, partial_records, partial_frames, sessions, long_logons, guesses, logons, opens, smb_opens, client_ids, slow_readers,
       smb_slow_readers, malformed]
