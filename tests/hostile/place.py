"""A server that is attacked, and others whom it serves meanwhile."""
import ctypes
import json
import os
import re
import signal
import subprocess
import threading
import time

import attacks
import nfs
import smb

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(TOP, "target"))
PROGRAM = os.environ.get("ANABRANCH", os.path.join(TARGET, "debug", "anabranch"))
MIB = 1 << 20
PATIENCE = 60
NEWCOMERS = ["127.0.0.77", "127.0.0.78"]
# Those who must be served while the server is attacked.
OTHERS = ["smb", "nfs", "a new client of SMB", "a new client of NFSv4"]


class Place:
    """A server with one share and two accounts, which runs during an attack."""

    def __init__(self, scratch):
        self.scratch, self.host = scratch, "127.0.0.1"
        share = os.path.join(scratch, "share")
        os.makedirs(share)
        with open(os.path.join(share, "read-me"), "wb") as file:
            file.write(os.urandom(MIB))
        for path in [share, os.path.join(share, "read-me")]:
            os.chown(path, 1000, 1000)
        command = [PROGRAM, "serve", "--share", f"data={share}", "--user", f"victim=1000:{smb.PASSWORD}",
                   "--user", f"{attacks.USER}=1001:{smb.PASSWORD}", "--smb", "127.0.0.1:0", "--nfs", "127.0.0.1:0",
                   "--control", "127.0.0.1:0", "--state", os.path.join(scratch, "state")]
        self.log = os.path.join(scratch, "log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                                            preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL))
        ready = self.process.stdout.readline().decode()
        ports = dict(re.findall(r"(\w+)=[^ ]*:(\d+)", ready))
        if not {"smb", "nfs"} <= ports.keys():
            raise SystemExit(f"the server printed no ready line: {open(self.log).read()}")
        self.smb, self.nfs = int(ports["smb"]), int(ports["nfs"])

    def memory(self):
        """Bytes that the server holds."""
        status = open(f"/proc/{self.process.pid}/status").read()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) << 10

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def end(self):
        """The exit status after SIGTERM."""
        self.process.terminate()
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "none: it did not end"


def serve_others(place, protocol, seconds, rate):
    """Runs an ordinary client for this time, twice: the first pass is a warm-up. Returns its problems, and the latency of its cycles
    (create, write, close, open, stat, list, delete) in milliseconds: median and 99th percentile."""
    target = {"smb": f"smb://victim:{smb.PASSWORD}@{place.host}:{place.smb}/data",
              "nfs": f"nfs://{place.host}:{place.nfs}/data?uid=1000&gid=1000"}[protocol]
    command = [PROGRAM, "bench", "job", "--target", target, "--metadata", "--rate", str(rate), "--seconds", str(seconds), "--ramp", "0.1",
               "--repetitions", "1", "--file-size", "1M", "--timeout", str(smb.REPLY_MAX), "--json"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds * 2 + 4 * PATIENCE)
    if done.returncode:
        return done.stderr.decode().strip(), None
    result = json.loads(done.stdout)
    cycle = result["rows"][0]["measure"]["latency"]["cycle"]
    return "; ".join(problem["text"] for problem in result["problems"]), (cycle["p50_us"] / 1000, cycle["p99_us"] / 1000)


def mount(place, address):
    """A new client of NFSv4.1 mounts the share."""
    with attacks.connect(place, place.nfs, address) as stream:
        stream.settimeout(smb.REPLY_MAX)
        session = nfs.Session(stream)
        session.sequenced(nfs.words(24), nfs.words(15) + nfs.opaque(b"data"))  # PUTROOTFH, LOOKUP
        return f"LOOKUP: {session.status}" if session.status else ""


def log_on(place, address):
    """A user logs on over SMB and opens a file."""
    with attacks.connect(place, place.smb, address) as stream:
        session = smb.Session(smb.Connection(stream), "victim")
        session.connect("data")
        session.close(session.open("read-me"))
        return ""


def come_late(come, place, address, seconds):
    """Comes when the attack has gone on for this time, from an address of its own. Returns the problem."""
    time.sleep(seconds)
    try:
        return come(place, address)
    except (OSError, nfs.Refused) as e:
        return repr(e)


class Measured:
    """One attack, or none, with two ordinary clients beside it, and two newcomers."""

    def __init__(self, place, attack, seconds, rate=50, yielding=False):
        self.before, self.descriptors = place.memory(), place.descriptors()
        self.most, self.said, self.problems, self.latency = self.before, "", {}, {}
        ended, over = threading.Event(), threading.Event()

        def assault():
            if yielding:  # to everybody else on this machine, because attackers have machines of their own
                os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            try:
                self.said = attack(place, over)
            except OSError as e:
                self.said = f"it got nowhere: {e}"

        def watch():
            while not ended.wait(0.05):
                self.most = max(self.most, place.memory())

        def other(protocol):
            self.problems[protocol], self.latency[protocol] = serve_others(place, protocol, seconds, rate)

        def newcomer(name, *come):
            self.problems[name] = come_late(*come)

        # Daemons, because an attack goes on until it is told to end: it must not outlive this process if something else fails.
        threads = [threading.Thread(target=target, daemon=True) for target in [watch] + ([assault] if attack else [])]
        for thread in threads:
            thread.start()
        if attack:
            time.sleep(2)  # the attack begins before the others come, and lasts until they have gone
        others = [threading.Thread(target=other, args=[protocol]) for protocol in OTHERS[:2]]
        for name, come, address in zip(OTHERS[2:], [log_on, mount], NEWCOMERS):
            others.append(threading.Thread(target=newcomer, args=[name, come, place, address, seconds]))
        for thread in others:
            thread.start()
        for thread in others:
            thread.join()
        over.set()
        for thread in threads[1:]:
            thread.join()
        ended.set()
        threads[0].join()
