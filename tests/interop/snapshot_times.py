"""How long snapshots of a share with many files take, and how long a client waits for the versions of a file.

snapshot_times.py btrfs|cephfs PROGRAM SCRATCH: see snapshot-times.sh. Prints rows of a table.
"""

import ctypes
import http.client
import json
import multiprocessing
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
import uuid

from smbprotocol.connection import Connection
from smbprotocol.ioctl import CtlCode, IOCTLFlags, SMB2IOCTLRequest, SMB2IOCTLResponse
from smbprotocol.open import CreateDisposition, CreateOptions, FileAttributes, FilePipePrinterAccessMask, ImpersonationLevel, Open, ShareAccess
from smbprotocol.session import Session
from smbprotocol.tree import TreeConnect

KIND, PROGRAM, SCRATCH = sys.argv[1:4]
FILES, REPEATS = int(os.environ.get("FILES", "100000")), int(os.environ.get("REPEATS", "7"))
DISK = os.path.join(SCRATCH, "disk")
USER, PASSWORD = "tester", "test-Pass1"
VERSIONS = 255
MIB = 1 << 20
# Ceph's client has threads, so a process that has used it is not forked.
PROCESSES = multiprocessing.get_context("spawn")


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=600).stdout


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def name_of(at):
    return f"d{at // 500}/f{at}"


class OnBtrfs:
    """A share on a subvolume of Btrfs in a file."""

    def __init__(self):
        self.share = os.path.join(DISK, "share")
        run("btrfs", "-q", "subvolume", "create", self.share)
        os.chown(self.share, 1000, 1000)
        for at in range(FILES):
            path = os.path.join(self.share, name_of(at))
            if at % 500 == 0:
                os.mkdir(os.path.dirname(path))
                os.chown(os.path.dirname(path), 1000, 1000)
            with open(path, "wb") as file:
                file.write(b"x" * 4096)
            os.chown(path, 1000, 1000)
        self.settle()

    def settings(self):
        return f'[[share]]\nname = "data"\ndirectory = "{self.share}"\n'

    def settle(self):
        run("btrfs", "filesystem", "sync", DISK)

    def forget(self):
        """Nothing of the file system is in the kernel's memory afterwards, but what the disk under it holds there."""
        run("umount", DISK)
        run("mount", "-o", "loop", os.path.join(SCRATCH, "image"), DISK)


def populate_ceph(configuration, first, step):
    import cephfs

    fs = cephfs.LibCephFS(conffile=configuration, auth_id="admin")
    fs.mount()
    for directory in range(first, (FILES + 499) // 500, step):
        fs.mkdir(f"/data/d{directory}".encode(), 0o755)
        fs.chown(f"/data/d{directory}".encode(), 1000, 1000)
        for at in range(directory * 500, min(FILES, directory * 500 + 500)):
            file = fs.open(f"/data/{name_of(at)}".encode(), "w", 0o644)
            fs.write(file, b"x" * 4096, 0)
            fs.close(file)
    fs.shutdown()


class OnCephFs:
    """A share in CephFS."""

    def __init__(self):
        import cephfs

        self.configuration = os.path.join(os.environ["CEPH_LAB_DIR"], "ceph.conf")
        fs = cephfs.LibCephFS(conffile=self.configuration, auth_id="admin")
        fs.mount()
        fs.mkdir(b"/data", 0o755)
        fs.chown(b"/data", 1000, 1000)
        fs.shutdown()
        makers = [PROCESSES.Process(target=populate_ceph, args=(self.configuration, at, 6)) for at in range(6)]
        for maker in makers:
            maker.start()
        for maker in makers:
            maker.join()
            assert maker.exitcode == 0

    def settings(self):
        return f'ceph-config = "{self.configuration}"\n[[share]]\nname = "data"\ndirectory = "cephfs:/data"\n'

    def settle(self):
        time.sleep(6)  # Ceph's client writes within five seconds.

    def forget(self):
        """The client of Ceph is the server's: it has ended with it. The metadata servers keep what they know."""


class Server:
    def __init__(self, place):
        self.smb, self.control, self.process = free_port(), free_port(), None
        self.state, configuration = os.path.join(SCRATCH, "state"), os.path.join(SCRATCH, "measured.toml")
        os.makedirs(self.state, mode=0o700, exist_ok=True)
        with open(os.open(configuration, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(f'user = ["{USER}=1000:{PASSWORD}"]\n{place.settings()}')
        self.command = [PROGRAM, "serve", "--config", configuration, "--smb", f"127.0.0.1:{self.smb}", "--nfs", "127.0.0.1:0",
                        "--control", f"127.0.0.1:{self.control}", "--state", self.state]
        self.start()
        self.token = json.loads(run(PROGRAM, "token", "create", "times", "--scope", "all", "--json", "--state", self.state))["token"]

    def start(self):
        with open(os.path.join(SCRATCH, "server.log"), "a") as log:
            self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=log, text=True, preexec_fn=die_with_parent)
        if not any(line.startswith("ready ") for line in self.process.stdout):
            raise SystemExit(open(os.path.join(SCRATCH, "server.log")).read()[-2000:])
        self.api = http.client.HTTPConnection("127.0.0.1", self.control, timeout=300)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(timeout=60) == 0

    def ask(self, method, path, body=None):
        self.api.request(method, path, body and json.dumps(body), {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"})
        answer = self.api.getresponse()
        said = answer.read()
        assert answer.status < 300, said
        return json.loads(said)

    def take(self):
        """Takes a snapshot. Returns its name and how many seconds that took, from the request to the API to its answer."""
        begun = time.monotonic()
        taken = self.ask("POST", "/v1/shares/data/snapshots", {})
        return taken["name"], time.monotonic() - begun

    def remove(self, name):
        self.ask("DELETE", f"/v1/shares/data/snapshots/{name}")


class Client:
    """A client of SMB 3.1.1."""

    def __init__(self, port):
        self.connection = Connection(uuid.uuid4(), "127.0.0.1", port)
        self.connection.connect()
        self.session = Session(self.connection, USER, PASSWORD, require_encryption=False)
        self.session.connect()
        self.tree = TreeConnect(self.session, r"\\127.0.0.1\data")
        self.tree.connect()

    def open(self, path, create=False):
        file = Open(self.tree, path.replace("/", "\\"))
        access = FilePipePrinterAccessMask.GENERIC_READ | (FilePipePrinterAccessMask.GENERIC_WRITE if create else 0)
        how = CreateDisposition.FILE_OPEN_IF if create else CreateDisposition.FILE_OPEN
        file.create(ImpersonationLevel.Impersonation, access, FileAttributes.FILE_ATTRIBUTE_NORMAL,
                    ShareAccess.FILE_SHARE_READ | ShareAccess.FILE_SHARE_WRITE, how, CreateOptions.FILE_NON_DIRECTORY_FILE)
        return file

    def versions(self, file):
        """How many versions of a file there are, and how many seconds it took to be told all of them."""
        ask = SMB2IOCTLRequest()
        ask["ctl_code"] = CtlCode.FSCTL_SRV_ENUMERATE_SNAPSHOTS
        ask["file_id"] = file.file_id
        ask["max_output_response"] = 65536
        ask["flags"] = IOCTLFlags.SMB2_0_IOCTL_IS_FSCTL
        begun = time.monotonic()
        sent = self.connection.send(ask, sid=self.session.session_id, tid=self.tree.tree_connect_id)
        answer = self.connection.receive(sent)
        took = time.monotonic() - begun
        told = SMB2IOCTLResponse()
        told.unpack(answer["data"].get_value())
        output = told["buffer"].get_value()
        count, returned = (int.from_bytes(output[at:at + 4], "little") for at in (0, 4))
        assert count == returned, (count, returned)
        return count, took

    def large(self, name):
        """Writes 200 MB, as clients do that leave it to the server when they are on disk."""
        file = self.open(name, create=True)
        for at in range(200):
            file.write(os.urandom(MIB), at * MIB)
        file.close()


def writes(port, name, write_through, pipe):
    """A process that writes 4 KiB at a time, over and over in 16 MiB. Answers each question with the longest wait since the last one."""
    die_with_parent()
    file = Client(port).open(name, create=True)
    block, at, longest, count = b"w" * 4096, 0, 0.0, 0
    while True:
        begun = time.monotonic()
        file.write(block, (at % 4096) * 4096, write_through=write_through)
        longest, at, count = max(longest, time.monotonic() - begun), at + 1, count + 1
        if pipe.poll():
            pipe.recv()
            pipe.send((longest, count))
            longest, count = 0.0, 0


class Writer:
    def __init__(self, port, name, write_through=False):
        self.pipe, far = PROCESSES.Pipe()
        self.process = PROCESSES.Process(target=writes, args=(port, name, write_through, far), daemon=True)
        self.process.start()

    def longest(self):
        """The longest that a write has waited since the last question; one that is under way counts when it has ended."""
        self.pipe.send(None)
        return self.pipe.recv()[0]

    def end(self):
        self.process.kill()
        self.process.join()


def row(name, seconds):
    ms = sorted(1000 * one for one in seconds)
    print(f"| {name} | {statistics.median(ms):.1f} ms | {ms[0]:.1f} to {ms[-1]:.1f} ms | {len(ms)} |", flush=True)


def takes(server, place):
    idle = []
    for _ in range(REPEATS):
        place.settle()
        time.sleep(0.5)
        name, took = server.take()
        idle.append(took)
        server.remove(name)
    row("a snapshot, nobody writes", idle)
    client, dirty = Client(server.smb), []
    for _ in range(REPEATS):
        place.settle()
        client.large("large")
        name, took = server.take()
        dirty.append(took)
        server.remove(name)
    row("a snapshot, 200 MB unwritten", dirty)


def waits(server, place):
    """How long writers wait beside a snapshot, and without one."""
    client = Client(server.smb)
    writers = {"4 KiB writes": Writer(server.smb, "plain"), "4 KiB writes, each on disk at once": Writer(server.smb, "through", True)}
    found = {}
    for _ in range(REPEATS):
        for what in ("without a snapshot", "with a snapshot", "without a snapshot, 200 MB unwritten", "with a snapshot, 200 MB unwritten"):
            place.settle()
            if "200" in what:
                client.large("large")
            for writer in writers.values():
                writer.longest()
            if what.startswith("with a"):
                server.remove(server.take()[0])
            time.sleep(2)
            for name, writer in writers.items():
                found.setdefault((name, what), []).append(writer.longest())
    for writer in writers.values():
        writer.end()
    for (name, what), longest in sorted(found.items()):
        row(f"the longest wait of {name}, {what}", longest)


def versions(server, place):
    last = []
    while server.ask("GET", "/v1/shares/data/snapshots")["snapshots"].__len__() < VERSIONS:
        last.append(server.take()[1])
    row(f"a snapshot, nobody writes, beside {VERSIONS - REPEATS} to {VERSIONS - 1} others", last[-REPEATS:])
    cold, again, listed, other = [], [], [], []
    for _ in range(REPEATS):
        server.end()
        place.forget()
        server.start()
        client = Client(server.smb)
        file = client.open(name_of(FILES // 2))
        count, took = client.versions(file)
        assert count == VERSIONS, count
        cold.append(took)
        other.append(client.versions(client.open(name_of(FILES // 3)))[1])
        for _ in range(5):
            time.sleep(1.2)
            listed.append(client.versions(file)[1])
            again.append(client.versions(file)[1])
    row("versions of a file, the first time after the file system was mounted" if KIND == "btrfs" else "versions of a file, the first time after a start of the server", cold)
    row("versions of another file after that", other)
    row("versions of the same file again, more than a second later", listed)
    row("versions of the same file again, at once", again)


def main():
    place = OnBtrfs() if KIND == "btrfs" else OnCephFs()
    server = Server(place)
    print(f"{FILES} files; load at the start {os.getloadavg()[0]:.1f}", flush=True)
    print("| | median | lowest to highest | times |\n|---|---|---|---|", flush=True)
    try:
        takes(server, place)
        waits(server, place)
        versions(server, place)
        print(f"load at the end {os.getloadavg()[0]:.1f}")
    finally:
        server.process.kill()


if __name__ == "__main__":
    main()
