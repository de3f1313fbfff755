#!/usr/bin/env python3
"""pairs.py FOLDER: one client holds something, another one asks; see pairs.sh, which mounts what this uses.
pairs.py --table LOG: the table in Markdown, with what a run printed.

Clients: smb, nfs3, nlm (the kernel's NFSv3 without and with locks on the server), nfs4, nfs40 (the kernel's; nfs40 is NFSv4.0), other (the kernel's NFSv4 as a second client), opens (Samba's library, for share modes
that the kernel does not ask for: ../smb-opens), bare (nfs4client.py, for share reservations and delegations of the same kind).
Each row of the table below prints one line for each order: the asker opens its file before the holder takes what it
holds, or after. Where asking is opening, there is but one order; the other one is another row.
"""
import errno
import fcntl
import json
import mmap
import os
import re
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import nfs4client

FOLDER = sys.argv[1]
SOON_S = 1.5  # who waits is still waiting after this
LATE_S = 30  # and is through by then, once nobody is in the way
SIZE = 4096
OLD, NEW = b"old " * (SIZE // 4), b"new " * (SIZE // 4)
NO = (errno.EAGAIN, errno.EACCES, errno.EBUSY, errno.ETXTBSY)


class Refusal(Exception):
    """The server said no."""


def direct(fd, write):
    """Past the client's cache, which wants memory at a page's beginning."""
    page = mmap.mmap(-1, SIZE)
    if write:
        page[:] = NEW
        return os.pwritev(fd, [page], 0)
    os.preadv(fd, [page], 0)
    return page[:]


class Kernel:
    """A mount."""

    def __init__(self, name):
        self.root = f"/mnt/{name}/{FOLDER}"

    def open(self, name, access, flags=0):
        modes = {"r": os.O_RDONLY, "w": os.O_WRONLY, "rw": os.O_RDWR}
        return KernelFile(os.open(f"{self.root}/{name}", modes[access] | flags))

    def remove(self, name):
        os.unlink(f"{self.root}/{name}")

    def rename(self, name):
        os.rename(f"{self.root}/{name}", f"{self.root}/{name}.renamed")

    def told(self):
        """How often the server has had the kernel give up what it caches: breaks acknowledged, delegations returned."""
        if self.root.startswith("/mnt/smb/"):
            return int(re.search(r"OplockBreaks: (\d+)", open("/proc/fs/cifs/Stats").read()).group(1))
        return sum(int(n) for n in re.findall(r"DELEGRETURN: (\d+)", open("/proc/self/mountstats").read()))

    def end(self):
        pass


class KernelFile:
    def __init__(self, fd):
        self.fd = fd

    def lock(self, kind=fcntl.LOCK_EX, wait=False, start=0):
        fcntl.lockf(self.fd, kind | (0 if wait else fcntl.LOCK_NB), 100, start)

    def unlock(self):
        fcntl.lockf(self.fd, fcntl.LOCK_UN)

    def read(self):
        return os.pread(self.fd, SIZE, 0)

    def write(self):
        os.pwrite(self.fd, NEW, 0)

    def direct_read(self):
        return direct(self.fd, False)

    def direct_write(self):
        direct(self.fd, True)

    def close(self):
        os.close(self.fd)


class Opens:
    """An SMB session of ../smb-opens."""

    def __init__(self):
        self.stream = socket.create_connection((os.environ["SERVER"], int(os.environ["OPENS_PORT"])), timeout=60)
        self.lines = self.stream.makefile("rw")

    def ask(self, *words):
        print(json.dumps(words), file=self.lines, flush=True)
        answer = json.loads(self.lines.readline())
        if isinstance(answer, dict):
            raise Refusal(answer["refused"])
        return answer

    def open(self, name, access, shared="rwd"):
        return OpensFile(self, self.ask("open", f"{FOLDER}/{name}", access, shared))

    def end(self):
        self.stream.close()


class OpensFile:
    def __init__(self, session, number):
        self.session, self.number = session, number

    def direct_read(self):
        return self.session.ask("read", self.number, SIZE).encode()

    def direct_write(self):
        self.session.ask("write", self.number, NEW.decode())

    def close(self):
        self.session.ask("close", self.number)


class Bare(nfs4client.Client):
    def __init__(self):
        super().__init__(os.environ["SERVER"], int(os.environ["NFS_PORT"]), os.environ["EXPORT"])

    def open(self, name, access, shared="rwd", want=nfs4client.WANT_NO_DELEGATION):
        bits = sum({"r": 1, "w": 2}[letter] for letter in access)
        deny = sum(bit for letter, bit in (("r", 1), ("w", 2)) if letter not in shared)
        return BareFile(super().open(f"{FOLDER}/{name}", bits, deny, want))


class BareFile:
    def __init__(self, file):
        self.file = file

    def direct_read(self):
        return self.file.read(0, SIZE)

    def direct_write(self):
        self.file.write(0, NEW)

    def close(self):
        self.file.close()


def client(name):
    return {"opens": Opens, "bare": Bare}[name]() if name in ("opens", "bare") else Kernel(name)


# ---------------------------------------------------------------- what is held

class Held:
    """What a holder has; `release` gives it up, `check` is looked at last. Of what kernels cache, `alone` says that the asker
    has not opened the file yet: then there is something to be recalled."""

    def __init__(self, who, name, words, alone):
        self.who, self.name, self.alone = who, name, alone
        self.take(*words)

    def release(self):
        self.file.close()

    def check(self, _asked):
        pass


class Lock(Held):
    def take(self, kind):
        self.file = self.who.open(self.name, "rw")
        self.file.lock({"exclusive": fcntl.LOCK_EX, "shared": fcntl.LOCK_SH}[kind])


class Open(Held):
    def take(self, access, shared="rwd"):
        self.file = self.who.open(self.name, access) if isinstance(self.who, Kernel) else self.who.open(self.name, access, shared.strip("-"))


class KernelCache(Held):
    def __init__(self, who, name, words, alone):
        self.before = who.told()
        super().__init__(who, name, words, alone)

    def release(self):
        pass

    def check(self, asked):
        self.file.close()
        if self.alone and "nfs3" not in self.who.root:
            assert self.who.told() > self.before, "nothing was recalled"


class Cached(KernelCache):
    """Read, and so in the client's cache: what another one writes must be seen. NFSv4 without a delegation promises that from the
    next open on (RFC 8881 10.3.1), and a delegation that was recalled is none any more."""

    def take(self):
        self.file = self.who.open(self.name, "r")
        assert self.file.read() == OLD
        assert self.file.read() == OLD

    def check(self, asked):
        if "write" in asked:
            seen = NEW if "nfs4" in self.who.root else self.file.read()
            assert seen == NEW, f"the holder still reads {seen[:8]}"
            again = self.who.open(self.name, "r")
            seen = again.read()
            again.close()
            assert seen == NEW, f"the holder opens it again and reads {seen[:8]}"
        super().check(asked)


class Dirty(KernelCache):
    """Written into the client's cache, and nowhere else yet: what another one reads must be that."""

    def take(self):
        self.file = self.who.open(self.name, "rw")
        self.file.write()


class Delegation(Held):
    """Of a bare client, which writes and gives it back when it is recalled."""

    def take(self, kind):
        self.recalled = threading.Event()
        self.file = self.who.open(self.name, "rw" if kind == "write" else "r", want=0x0200 if kind == "write" else 0x0100)
        assert self.file.file.delegation, "no delegation came"
        self.kind = kind
        self.who.on_recall = self.recall

    def recall(self):
        if self.kind == "write":
            self.file.direct_write()
        self.file.file.give_back()
        self.recalled.set()

    def release(self):
        pass

    def check(self, _asked):
        assert self.recalled.wait(1), "it was not recalled"
        self.file.close()


class SilentDelegation(Delegation):
    """It is recalled, and given back only on release."""

    def recall(self):
        self.recalled.set()

    def release(self):
        super().recall()


HELD = {"lock": Lock, "open": Open, "cached": Cached, "dirty": Dirty, "delegation": Delegation, "silent-delegation": SilentDelegation}

# ---------------------------------------------------------------- what is asked

WITH_FILE = {
    "lock": lambda f: f.lock(),
    "lock elsewhere": lambda f: f.lock(start=1000),
    "shared lock": lambda f: f.lock(fcntl.LOCK_SH),
    "wait for lock": lambda f: f.lock(wait=True),
    "read": lambda f: f.direct_read(),
    "write": lambda f: f.direct_write(),
}


def ask_without_file(who, name, asked):
    word, *args = asked.split()
    if word == "open":
        access, shared = args[0], (args[1] if len(args) > 1 else "rwd").strip("-")
        (who.open(name, access) if isinstance(who, Kernel) else who.open(name, access, shared)).close()
    else:
        getattr(who, word)(name)


# ---------------------------------------------------------------- the table

TABLE = """
# holder  holds              asker  asks              what must happen (until it is released)
# Byte-range locks.
smb       lock exclusive     nfs4   lock              refused
smb       lock exclusive     nfs4   shared lock       refused
smb       lock exclusive     nfs4   lock elsewhere    goes
smb       lock exclusive     nfs4   wait for lock     waits
smb       lock shared        nfs4   lock              refused
smb       lock shared        nfs4   shared lock       goes
smb       lock exclusive     nfs4   write             refused
smb       lock exclusive     nfs4   read              refused
smb       lock shared        nfs4   write             refused
smb       lock shared        nfs4   read              goes
smb       lock exclusive     nfs3   write             waits
smb       lock exclusive     nfs3   read              waits
smb       lock shared        nfs3   write             waits
smb       lock shared        nfs3   read              goes
nfs4      lock exclusive     smb    lock              refused
nfs4      lock exclusive     smb    shared lock       refused
nfs4      lock exclusive     smb    lock elsewhere    goes
nfs4      lock exclusive     smb    wait for lock     waits
nfs4      lock shared        smb    lock              refused
nfs4      lock shared        smb    shared lock       goes
nfs4      lock exclusive     smb    write             refused
nfs4      lock exclusive     smb    read              refused
nfs4      lock exclusive     opens  write             refused
nfs4      lock exclusive     opens  read              refused
nfs4      lock shared        opens  write             refused
nfs4      lock shared        opens  read              goes
nfs4      lock exclusive     nfs3   write             goes
nfs4      lock exclusive     nfs3   read              goes
nfs4      lock exclusive     other  lock              refused
nfs4      lock exclusive     other  shared lock       refused
nfs4      lock exclusive     other  lock elsewhere    goes
nfs4      lock exclusive     other  wait for lock     waits
nfs4      lock shared        other  shared lock       goes
nfs4      lock exclusive     other  write             goes
nfs40     lock exclusive     smb    lock              refused
nfs40     lock exclusive     smb    write             refused
nfs40     lock shared        smb    shared lock       goes
nfs40     lock exclusive     nfs4   lock              refused
nfs40     lock exclusive     nfs4   lock elsewhere    goes
nfs40     lock exclusive     nfs4   wait for lock     waits
smb       lock exclusive     nfs40  lock              refused
smb       lock exclusive     nfs40  write             refused
nfs4      lock exclusive     nfs40  lock              refused
nfs4      lock shared        nfs40  shared lock       goes
nfs4      lock exclusive     nfs40  wait for lock     waits
# Locks of NFSv3 clients (NLM).
nlm       lock exclusive     smb    lock              refused
nlm       lock exclusive     smb    shared lock       refused
nlm       lock exclusive     smb    lock elsewhere    goes
nlm       lock exclusive     smb    wait for lock     waits
nlm       lock shared        smb    lock              refused
nlm       lock shared        smb    shared lock       goes
nlm       lock exclusive     smb    write             refused
nlm       lock exclusive     smb    read              refused
nlm       lock shared        opens  read              goes
nlm       lock exclusive     nfs4   lock              refused
nlm       lock exclusive     nfs4   shared lock       refused
nlm       lock exclusive     nfs4   lock elsewhere    goes
nlm       lock exclusive     nfs4   wait for lock     waits
nlm       lock shared        nfs4   shared lock       goes
nlm       lock exclusive     nfs4   write             goes
nlm       lock exclusive     nfs3   write             goes
smb       lock exclusive     nlm    lock              refused
smb       lock exclusive     nlm    shared lock       refused
smb       lock exclusive     nlm    lock elsewhere    goes
smb       lock exclusive     nlm    wait for lock     waits
smb       lock shared        nlm    lock              refused
smb       lock shared        nlm    shared lock       goes
nfs4      lock exclusive     nlm    lock              refused
nfs4      lock exclusive     nlm    shared lock       refused
nfs4      lock exclusive     nlm    lock elsewhere    goes
nfs4      lock exclusive     nlm    wait for lock     waits
nfs4      lock shared        nlm    shared lock       goes
nlm       lock exclusive     nfs40  lock              refused
nlm       lock shared        nfs40  shared lock       goes
nlm       lock exclusive     nfs40  wait for lock     waits
nfs40     lock exclusive     nlm    lock              refused
nfs40     lock shared        nlm    shared lock       goes
nfs40     lock exclusive     nlm    wait for lock     waits
# Share modes: what the holder shares is its last word, r, w and d; -- is nothing.
opens     open rw --         nfs3   read              waits
opens     open rw --         nfs3   write             waits
opens     open rw --         nfs3   remove            waits
opens     open rw --         nfs3   rename            waits
opens     open r r           nfs3   read              goes
opens     open r r           nfs3   write             waits
opens     open r rw          nfs3   write             goes
opens     open r rw          nfs3   remove            waits
opens     open r rwd         nfs3   remove            goes
opens     open rw --         nfs4   open r            refused-or-waits
opens     open rw --         nfs4   open rw           refused-or-waits
opens     open rw --         nfs4   remove            waits
opens     open rw --         nfs4   rename            waits
opens     open r r           nfs4   open r            goes
opens     open r r           nfs4   open w            refused-or-waits
opens     open r rw          nfs4   open rw           goes
opens     open rw --         bare   open r            refused
opens     open r r           bare   open r            goes
opens     open r r           bare   open w            refused
opens     open rw --         smb    open r            refused
nfs4      open r             opens  open r r          goes
nfs4      open r             opens  open r --         refused
nfs4      open r             opens  open w r          goes
nfs4      open w             opens  open r r          refused
nfs4      open w             opens  open r rw         goes
nfs4      open rw            opens  open r --         refused
nfs4      open rw            smb    open rw           goes
nfs3      open rw            opens  open rw --        goes
nfs3      open rw            smb    open rw           goes
nfs3      open rw            nfs4   open rw           goes
nfs3      open rw            bare   open rw --        goes
bare      open r r           opens  open r            goes
bare      open r r           opens  open w            refused
bare      open rw --         opens  open r            refused
bare      open rw --         smb    open r            refused
bare      open r r           smb    open w            refused
bare      open r r           smb    open r            goes
bare      open rw --         nfs4   open r            refused-or-waits
bare      open r r           nfs4   open w            refused-or-waits
bare      open r r           nfs4   open r            goes
bare      open r r           nfs3   write             waits
bare      open r r           nfs3   read              goes
bare      open rw --         nfs3   read              waits
nfs4      open w             bare   open r r          refused
nfs4      open r             bare   open r r          goes
opens     open rw --         nfs40  open r            refused-or-waits
nfs40     open w             opens  open r r          refused
nfs40     open w             bare   open r r          refused
bare      open r r           nfs40  open r            goes
# What clients cache: leases and oplocks of SMB, delegations of NFSv4, page caches.
smb       cached             nfs3   write             goes
smb       cached             nfs4   write             goes
smb       dirty              nfs3   read              fresh
smb       dirty              nfs4   read              fresh
smb       dirty              nfs3   remove            goes
nfs4      cached             smb    write             goes
nfs4      cached             opens  write             goes
nfs4      cached             nfs3   write             goes
nfs4      cached             other  write             goes
nfs4      cached             nfs3   remove            goes
nfs3      cached             smb    write             goes
nfs3      cached             nfs4   write             goes
bare      delegation read    smb    write             goes
bare      delegation read    nfs3   write             goes
bare      delegation read    nfs4   write             goes
bare      delegation write   smb    read              fresh
bare      delegation write   opens  read              fresh
bare      delegation write   nfs3   read              fresh
bare      delegation write   nfs4   read              fresh
bare      delegation write   nfs40  read              fresh
bare      delegation write   smb    write             goes
bare      silent-delegation write  smb   read         waits
bare      silent-delegation write  nfs3  read         waits
bare      silent-delegation write  nfs4  read         waits
"""

CACHES = ("cached", "dirty", "delegation", "silent-delegation")


class Row:
    def __init__(self, line, number):
        words = re.split(r"\s{2,}", line)
        assert len(words) == 5, line
        self.holder, held, self.asker, self.asks, self.outcome = words
        self.held, *self.how = held.split()
        self.line, self.number = " ".join(line.split()), number

    def orders(self):
        """NFSv3 opens nothing; no delegation comes where another client has the file open."""
        if self.asks not in WITH_FILE or ("delegation" in self.held and self.asker != "nfs3"):
            return ["after"]
        return ["before", "after"]

    def run(self, order):
        name = f"row{self.number}{order}"
        with open(f"/mnt/nfs3/{FOLDER}/{name}", "wb") as f:
            f.write(OLD)
        holder, asker = client(self.holder), client(self.asker)
        ask = Ask(asker, name, self.asks)
        if order == "before":
            ask.open()
        held = HELD[self.held](holder, name, self.how, order == "after")
        getattr(self, "must_" + self.outcome.replace("-", "_"))(ask, held)
        held.check(self.asks)
        ask.close()
        holder.end()
        asker.end()

    def must_goes(self, ask, held, expected=OLD):
        ask.begin()
        assert ask.done(LATE_S / 2), f"has not come through in {LATE_S / 2:.0f} s"
        assert not ask.error, f"was refused: {ask.error!r}"
        assert self.asks != "read" or ask.result == expected, f"read {ask.result[:8]}"
        held.release()

    def must_fresh(self, ask, held):
        self.must_goes(ask, held, NEW)

    def must_refused(self, ask, held):
        ask.begin()
        assert ask.done(LATE_S / 2), f"stood for {LATE_S / 2:.0f} s"
        self.refused(ask, held)

    def refused(self, ask, held):
        self.is_refusal(ask.error)
        held.release()
        self.goes_at_last(ask)

    def is_refusal(self, said):
        assert said, "was let in"
        assert isinstance(said, (Refusal, nfs4client.Refused)) or said.errno in NO, f"failed with {said!r}"

    def goes_at_last(self, ask):
        until = time.monotonic() + LATE_S
        while ask.error and time.monotonic() < until:
            time.sleep(0.3)
            ask.begin()
            ask.done(LATE_S)
        assert not ask.error, f"is still refused after the release: {ask.error!r}"

    def must_waits(self, ask, held):
        ask.begin()
        assert not ask.done(SOON_S), f"did not wait: {ask.error or 'was let in'!r}"
        held.release()
        assert ask.done(LATE_S), f"still waits {LATE_S} s after the release"
        assert not ask.error, f"waited, and failed: {ask.error!r}"

    def must_refused_or_waits(self, ask, held):
        ask.begin()
        if ask.done(SOON_S):
            return self.refused(ask, held)
        held.release()
        assert ask.done(LATE_S), f"still waits {LATE_S} s after the release"
        # A refusal may have been on its way: on a busy machine it takes longer than SOON_S.
        if ask.error:
            self.is_refusal(ask.error)
        self.goes_at_last(ask)


class Ask:
    """What the asker does, in a thread of its own."""

    def __init__(self, who, name, asked):
        self.who, self.name, self.asked = who, name, asked
        self.file = self.error = self.result = self.thread = None

    def open(self):
        flags = os.O_DIRECT if self.asked in ("read", "write") else 0
        self.file = self.who.open(self.name, "rw", flags) if isinstance(self.who, Kernel) else self.who.open(self.name, "rw")

    def begin(self):
        self.error = None
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            if self.asked not in WITH_FILE:
                ask_without_file(self.who, self.name, self.asked)
                return
            if not self.file:
                self.open()
            self.result = WITH_FILE[self.asked](self.file)
        except Exception as error:  # whatever it is, it is told
            self.error = error

    def done(self, seconds):
        self.thread.join(seconds)
        return not self.thread.is_alive()

    def close(self):
        if self.file:
            self.file.close()


def verdict(row, order):
    begun = time.monotonic()
    when = f", opened {order}" if len(row.orders()) > 1 else ""
    try:
        row.run(order)
    except Exception as error:
        print(f"FAIL {row.line}{when}: {error if isinstance(error, AssertionError) else repr(error)}", flush=True)
        return False
    print(f"ok {row.line}{when} ({time.monotonic() - begun:.1f} s)", flush=True)
    return True


def table_of(log):
    """The rows with what a run printed of them, in Markdown."""
    printed = open(log, errors="replace").read().splitlines()
    for row in ROWS:
        of = [line for line in printed if re.search(f"pairs: {re.escape(row.line)}(,| \\(|:)", line)]
        results = [("before " if "opened before" in line else "after " if "opened after" in line else "") + line.split()[0] for line in of]
        print(f"| {row.holder} | {row.held} {' '.join(row.how)} | {row.asker} | {row.asks} | {row.outcome} | {', '.join(sorted(results, reverse=True))} |")


def main():
    rows = [row for row in ROWS if re.search(os.environ.get("ROWS", ""), row.line)]
    runs = [(row, order) for row in rows for order in row.orders()]
    # What is recalled is counted, by the kernel as a whole: one after the other. The others mostly wait.
    with ThreadPoolExecutor(8) as pool:
        right = list(pool.map(lambda run: verdict(*run), [run for run in runs if run[0].held not in CACHES]))
    right += [verdict(*run) for run in runs if run[0].held in CACHES]
    # Threads may hang in the kernel.
    sys.stdout.flush()
    os._exit(not all(right))


ROWS = [Row(line, number) for number, line in enumerate(line for line in TABLE.splitlines() if line and not line.startswith("#"))]
if sys.argv[1] == "--table":
    table_of(sys.argv[2])
else:
    main()
