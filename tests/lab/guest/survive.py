#!/usr/bin/env python3
"""Write while things break: survive.py DIR WRITER[,WRITER...] EVENT...

All writers work the whole time, each on files of its own in DIR, and keep count of what was acknowledged. Each EVENT
is a shell command that breaks something and may mend it again (`echo kill me 1` asks the host to do it). After
every event each writer must get further, and in the end all that was acknowledged must be there. Environment:
  OTHER      DIR seen through a client of its own: locks are contended and results read there
  RECOVERED  a shell command that must succeed after every event, within DEADLINE_S
  DEADLINE_S how long a writer may take to get further (60)
  EXPLAIN    a shell command that prints what the client is doing: run at the first error, and when an event
             is not over in time

The kernel's SMB client (6.1) repeats reads and writes itself when a connection goes, but not opens, creates, renames and
fsync, not even with `hard`: those return EAGAIN. Here they are asked for again, and the count is told.
"""
import ctypes
import datetime
import errno
import fcntl
import hashlib
import mmap
import os
import subprocess
import sys
import threading
import time

AFTER_EVENT_S = 3.0
BEFORE_EVENT_S = 1.5
DEADLINE_S = int(os.environ.get("DEADLINE_S", "60"))
OTHER = os.environ.get("OTHER", "")
RECOVERED = os.environ.get("RECOVERED", "")
EXPLAIN = os.environ.get("EXPLAIN", "")
done = threading.Event()
explained = threading.Event()
problems = []
repeated = []


def shell(command, output=subprocess.PIPE):
    """Runs a shell command, not in DIR: a shell looks at its folder before it looks for a program, and would wait there
    for what that program is to mend."""
    return subprocess.run(["bash", "-c", command], cwd="/", stdout=output, stderr=subprocess.STDOUT, check=False)


def explain(what):
    """Prints what the client is doing, once."""
    if explained.is_set():
        return
    explained.set()
    print(f"info at {datetime.datetime.now(datetime.timezone.utc):%H:%M:%S.%f}: {what}", flush=True)
    if EXPLAIN:
        print(shell(EXPLAIN).stdout.decode(errors="replace"), flush=True)


def block(seed, size):
    one = hashlib.sha256(str(seed).encode()).digest()
    return (one * (size // 32 + 1))[:size]


def drop_caches():
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w") as f:
        f.write("3")


def patient(call, *args):
    """What the client leaves to its callers to repeat."""
    until = time.time() + DEADLINE_S
    while True:
        try:
            return call(*args)
        except BlockingIOError:
            if time.time() > until:
                raise
            repeated.append(call.__name__)
            time.sleep(0.1)


def start_writeback(fd):
    """Make the client send what is dirty, without a COMMIT or FLUSH."""
    sync_file_range_write = 2
    ctypes.CDLL(None).sync_file_range(fd, ctypes.c_int64(0), ctypes.c_int64(0), sync_file_range_write)


def other(name):
    """The path under which another client sees a file of ours."""
    return os.path.join(OTHER or ".", name)


def same_blocks(name, steps, size):
    """A file is the blocks 0 to steps - 1, one after the other, and nothing else."""
    data = open(other(name), "rb").read()
    for i in range(steps):
        assert data[i * size:(i + 1) * size] == block(i, size), f"block {i} of {steps} differs"
    assert len(data) == steps * size, f"{len(data)} bytes are not {steps} blocks of {size}"


class Writer(threading.Thread):
    """One kind of writing; `steps` counts what was acknowledged, and `further` how many make up getting further:
    one step may have been under way."""

    further = 2

    def __init__(self):
        super().__init__(daemon=True)
        self.steps = 0
        self.standstill = 0.0  # the longest time from one acknowledged step to the next, in seconds

    def run(self):
        try:
            last = time.monotonic()
            while not done.is_set():
                self.step(self.steps)
                self.steps += 1
                now = time.monotonic()
                self.standstill, last = max(self.standstill, now - last), now
                time.sleep(0.005)
            self.end()
        except Exception as e:
            problems.append(f"{type(self).__name__} step {self.steps}: {type(e).__name__}: {e}")
            explain(problems[-1])

    def begin(self):
        pass

    def end(self):
        pass

    def verify(self):
        pass


class Files(Writer):
    """New files, each written, synced and closed."""

    def step(self, i):
        fd = patient(os.open, f"file{i}", os.O_CREAT | os.O_RDWR)
        assert os.pwrite(fd, block(i, 20000 + i), 0) == 20000 + i
        patient(os.fsync, fd)
        os.close(fd)

    def verify(self):
        for i in range(self.steps):
            data = open(other(f"file{i}"), "rb").read()
            assert data == block(i, 20000 + i), f"file{i} of {self.steps} differs ({len(data)} bytes)"


class Log(Writer):
    """One file kept open and appended to, each record synced: all are there, each once."""

    SIZE = 10000

    def begin(self):
        self.fd = os.open("log", os.O_CREAT | os.O_RDWR)

    def step(self, i):
        assert os.pwrite(self.fd, block(i, self.SIZE), i * self.SIZE) == self.SIZE
        patient(os.fsync, self.fd)

    def end(self):
        os.close(self.fd)

    def verify(self):
        same_blocks("log", self.steps, self.SIZE)


class Cell(Writer):
    """One place written again and again and read back through a second handle: a write that was
    sent twice, and took effect the second time after its successor, would be seen."""

    SIZE = 4096

    def begin(self):
        self.out, self.back = mmap.mmap(-1, self.SIZE), mmap.mmap(-1, self.SIZE)
        self.fd = os.open("cell", os.O_CREAT | os.O_RDWR | os.O_DIRECT)
        self.reader = os.open("cell", os.O_RDONLY | os.O_DIRECT)

    def step(self, i):
        self.out[:] = block(i, self.SIZE)
        assert os.pwritev(self.fd, [self.out], 0) == self.SIZE
        assert os.preadv(self.reader, [self.back], 0) == self.SIZE
        assert self.back[:] == self.out[:], f"write {i} is not what is read after it"

    def end(self):
        os.close(self.fd)
        os.close(self.reader)

    def verify(self):
        assert open(other("cell"), "rb").read() == block(self.steps - 1, self.SIZE), "not what was written last"


class Unstable(Writer):
    """Written back by the client without being asked to be stable; synced at the end."""

    SIZE = 1 << 20
    SLOTS = 40

    def begin(self):
        self.fd = os.open("unstable", os.O_CREAT | os.O_RDWR)

    def step(self, i):
        os.pwrite(self.fd, block(i, self.SIZE), i % self.SLOTS * self.SIZE)
        start_writeback(self.fd)
        time.sleep(0.1)

    def end(self):
        patient(os.fsync, self.fd)
        os.close(self.fd)

    def verify(self):
        with open(other("unstable"), "rb") as f:
            for slot in range(min(self.steps, self.SLOTS)):
                last = max(range(slot, self.steps, self.SLOTS))
                assert f.read(self.SIZE) == block(last, self.SIZE), f"slot {slot} differs"


class Cached(Writer):
    """Small pieces left to the client's cache until the end."""

    SIZE = 3000

    def begin(self):
        self.fd = os.open("cached", os.O_CREAT | os.O_RDWR)

    def step(self, i):
        os.pwrite(self.fd, block(i, self.SIZE), i * self.SIZE)
        if i:
            assert os.pread(self.fd, self.SIZE, (i // 2) * self.SIZE) == block(i // 2, self.SIZE), f"block {i // 2} differs"
        time.sleep(0.02)

    def end(self):
        patient(os.fsync, self.fd)
        os.close(self.fd)

    def verify(self):
        same_blocks("cached", self.steps, self.SIZE)


class Names(Writer):
    """Creates and renames. Where the first answer was lost, a repetition finds the work done: neither NFSv3 nor
    the kernel's SMB client can tell."""

    def step(self, i):
        try:
            patient(os.mkdir, f"dir{i}")
        except FileExistsError:
            pass
        try:
            patient(os.rename, f"dir{i}", f"renamed{i}")
        except FileNotFoundError:
            os.stat(f"renamed{i}")

    def verify(self):
        names = set(os.listdir(other(".")))
        missing = [i for i in range(self.steps) if f"renamed{i}" not in names]
        assert not missing, f"renamed{missing[0]} is missing"


class Locks(Writer):
    """A lock held from the beginning to the end, which another client asks for again and again in vain."""

    def begin(self):
        with open("locked", "wb") as f:
            f.write(bytes(4096))
        self.contender = os.open(other("locked"), os.O_RDWR)
        self.fd = os.open("locked", os.O_RDWR)
        fcntl.lockf(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 100, 0)

    def step(self, i):
        try:
            fcntl.lockf(self.contender, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 50)
        except OSError as e:
            if e.errno not in (errno.EAGAIN, errno.EACCES):
                raise
        else:
            raise AssertionError("another client got the lock")
        assert os.pwrite(self.fd, block(i, 100), 0) == 100
        time.sleep(0.05)

    def end(self):
        fcntl.lockf(self.fd, fcntl.LOCK_UN, 100, 0)
        fcntl.lockf(self.contender, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 50)
        os.close(self.contender)
        os.close(self.fd)


class Fio(Writer):
    """fio's checksummed blocks, written and read back, buffered and past the cache, several files each."""

    further = 1

    def step(self, i):
        common = [f"--directory={os.getcwd()}", "--nrfiles=3", "--size=9m", "--rw=randwrite", "--bsrange=4k-256k", "--bs_unaligned=0",
                  "--verify=crc32c", "--verify_backlog=24", "--do_verify=1", "--verify_fatal=1", "--verify_state_save=0", "--fallocate=none", f"--randseed={i}"]
        jobs = ["--name=buffered", "--ioengine=psync", *common, "--name=direct", "--ioengine=libaio", "--iodepth=8", "--direct=1", *common]
        patient(self.fio, jobs)

    @staticmethod
    def fio(jobs):
        ran = subprocess.run(["fio", *jobs], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd="/tmp", check=False)
        if ran.returncode == 0:
            return
        why = [line for line in ran.stdout.decode(errors="replace").splitlines() if line.startswith("fio: ")]
        if all(f"err={errno.EAGAIN}/" in line and "func=open" in line for line in why):
            raise BlockingIOError(why)
        raise AssertionError(why)


class Fsx(Writer):
    """fsx: random reads, writes, truncates and mapped accesses on one file, every read compared; another seed each time."""

    further = 1

    def step(self, i):
        ran = subprocess.run(["fsx", "-q", "-N", "200", "-S", str(i + 1), "-P", "/tmp", f"fsx{i}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert ran.returncode == 0, ran.stdout.decode(errors="replace")[-500:]
        os.unlink(f"fsx{i}")


def recovered(deadline):
    """Whether RECOVERED succeeded in time, and what it said last."""
    while True:
        ran = shell(RECOVERED)
        if ran.returncode == 0 or time.time() > deadline:
            return ran.returncode == 0, ran.stdout.decode(errors="replace").strip()
        time.sleep(0.5)


def disturb(event, writers):
    """Runs an event and waits until every writer has got further."""
    late = threading.Timer(DEADLINE_S - 5, explain, [f"not over: {event}"])
    late.daemon = True
    late.start()
    try:
        go_on_after(event, writers)
    finally:
        late.cancel()


def go_on_after(event, writers):
    before = [w.steps for w in writers]
    begun = time.time()
    ran = shell(event, None)
    if ran.returncode != 0:
        problems.append(f"event failed: {event}")
        print(f"FAIL {event}: status {ran.returncode}", flush=True)
        return
    time.sleep(AFTER_EVENT_S)

    def stuck():
        return [type(w).__name__ for w, b in zip(writers, before) if w.steps < b + w.further]

    while time.time() < begun + DEADLINE_S and not problems and stuck():
        time.sleep(0.2)
    if stuck():
        print(f"FAIL goes on after: {event}: {stuck()} did not", flush=True)
        return
    if RECOVERED:
        whole, said = recovered(begun + DEADLINE_S)
        if not whole:
            print(f"FAIL recovers after: {event}: {said}", flush=True)
            return
    print(f"ok goes on after: {event} ({time.time() - begun:.1f} s)", flush=True)


def main():
    os.chdir(sys.argv[1])
    kinds = {k.__name__.lower(): k for k in Writer.__subclasses__()}
    writers = [kinds[name]() for name in sys.argv[2].split(",")]
    for w in writers:
        w.begin()
    for w in writers:
        w.start()
    for event in sys.argv[3:]:
        time.sleep(BEFORE_EVENT_S)
        disturb(event, writers)
    done.set()
    for w in writers:
        w.join(DEADLINE_S)
        if w.is_alive():
            problems.append(f"{type(w).__name__} hangs")
    for p in problems:
        print(f"FAIL no error reaches the application: {p}")
    if not problems:
        print("ok no error reaches the application")
    if repeated:
        print("info repeated after EAGAIN:", ", ".join(f"{name} {repeated.count(name)}" for name in sorted(set(repeated))))
    stood = [(w.standstill, type(w).__name__) for w in writers if w.further > 1]  # the steps of the others are long in themselves
    print("info longest standstill: {1}, {0:.1f} s".format(*max(stood)))
    drop_caches()
    for w in writers:
        name = type(w).__name__
        try:
            assert w.steps >= w.further * len(sys.argv[3:]), f"only {w.steps} steps"
            w.verify()
            print(f"ok {name}: all of {w.steps} right")
        except Exception as e:
            problems.append(name)
            print(f"FAIL {name}: {type(e).__name__}: {e}")
    sys.exit(bool(problems))


main()
