#!/usr/bin/env python3
"""Servers side by side, interleaved and repeated, driven by fsload on one machine.

    measure.py [--ours "smb=PORT nfs=PORT pid=N share=S user=U pass=W"] [--runs 5] [--secs 5]
               [--family SMB|NFS] [--only REGEX] [--raw FILE.tsv] [--markdown FILE.md]

Starts Samba twice (plain and signed; encrypted) and Ganesha on tmpfs, runs every row against
the peer and against ours one right after the other, in turns, and prints medians. The server's
CPU time per operation stands next to every figure: it suffers least from other work on the
machine. Another server: --extra "NAME smb port=P pid=N user=U pass=W share=S" or
"NAME nfs3 port=P mount_port=P share=/S pid=N" or "NAME nfs41 port=P share=/S pid=N".
FSLOAD names the load generator. The peers get ports and directories of their own, so several of
these may run. Exits 1, and writes no document, when a run of a row failed.
"""
import argparse
import os
import platform
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FSLOAD = os.environ.get("FSLOAD", os.path.join(HERE, "fsload/target/release/fsload"))
OPS = [
    ("4 KiB random read, depth 64", "op=randread bs=4k qd=64"),
    ("4 KiB random write, depth 64", "op=randwrite bs=4k qd=64"),
    ("64 KiB read, depth 16", "op=read bs=64k qd=16"),
    ("64 KiB write, depth 16", "op=write bs=64k qd=16"),
    ("1 MiB read, depth 8", "op=read bs=1m qd=8"),
    ("1 MiB write, depth 8", "op=write bs=1m qd=8"),
    ("metadata cycle, depth 16", "op=meta qd=16"),
]
MODES = [
    ("SMB plain", "smb", ""),
    ("SMB signed (GMAC)", "smb", "sign=1"),
    ("SMB encrypted (AES-128-GCM)", "smb", "encrypt=1"),
    ("NFSv3", "nfs3", ""),
    ("NFSv3, 4 connections", "nfs3", "conns=4"),
    ("NFSv4.1", "nfs41", ""),
    ("NFSv4.1, 4 connections", "nfs41", "conns=4"),
]
# A family of rows: its section in the document, the peer, what a metadata cycle is.
FAMILIES = {
    "SMB": ("# SMB beside Samba", "Samba", "create, close, open, close, open to delete, close"),
    "NFS": ("# NFS beside Ganesha", "NFS-Ganesha", "NFSv3 create, lookup, remove; NFSv4.1 OPEN to create, CLOSE, OPEN, CLOSE, REMOVE"),
}
PEER = {"smb": "smbd", "nfs3": "Ganesha", "nfs41": "Ganesha"}
# fsload's columns
RATE, MIB, P50, P99, CPU, CORES, CLIENT = range(7)


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ours", metavar="WORDS")
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("--secs", default="5")
    p.add_argument("--size", default="256m")
    p.add_argument("--family", action="append", choices=FAMILIES, help="these rows only, and their section of the document")
    p.add_argument("--only", default="", metavar="REGEX", help="rows whose name has this, such as 'NFSv3 4 KiB'")
    p.add_argument("--extra", action="append", default=[], metavar="WORDS")
    p.add_argument("--raw", metavar="FILE")
    p.add_argument("--markdown", metavar="FILE")
    return p.parse_args()


class Peer:
    """Samba or Ganesha, started by its script for as long as this program runs."""

    def __init__(self, script, **env):
        self.script, self.env = os.path.join(HERE, script), dict(os.environ, **env)
        print(self.call("start"))
        self.pid = self.call("pid")
        if not self.pid:
            sys.exit(f"{script} did not start")

    def call(self, word):
        return subprocess.run([self.script, word], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60).stdout.strip()


def free_ports(count):
    """Ports that nobody has at present."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [str(s.getsockname()[1]) for s in held]
    for s in held:
        s.close()
    return ports


class Peers:
    """Samba without and with encryption, and Ganesha, on tmpfs."""

    def __init__(self):
        self.state = tempfile.mkdtemp(prefix="anabranch-peers.")
        self.data = tempfile.mkdtemp(prefix="anabranch-peers.", dir="/dev/shm")
        os.chmod(self.state, 0o755)
        os.chmod(self.data, 0o755)
        self.plain_port, self.sealed_port, self.nfs_port, self.mount_port, lock_port = free_ports(5)
        self.started = []
        self.plain = self.start("samba.sh", "plain", PORT=self.plain_port, MODE="off")
        self.sealed = self.start("samba.sh", "sealed", PORT=self.sealed_port, MODE="encrypt")
        self.nfs = self.start("ganesha.sh", "export", PORT=self.nfs_port, MNT_PORT=self.mount_port, NLM_PORT=lock_port)

    def start(self, script, name, **env):
        peer = Peer(script, STATE=os.path.join(self.state, name), SHARE_DIR=os.path.join(self.data, name), **env)
        self.started.append(peer)
        return peer

    def stop(self):
        for peer in self.started:
            peer.call("stop")
        shutil.rmtree(self.state, ignore_errors=True)
        shutil.rmtree(self.data, ignore_errors=True)


def peer_target(peers, proto, words):
    if proto == "smb":
        peer, port = (peers.sealed, peers.sealed_port) if "encrypt" in words else (peers.plain, peers.plain_port)
        return f"smb port={port} pid={peer.pid}"
    if proto == "nfs3":
        return f"nfs3 port={peers.nfs_port} mount_port={peers.mount_port} share={peers.data}/export pid={peers.nfs.pid}"
    return f"nfs41 port={peers.nfs_port} share=/bench pid={peers.nfs.pid}"


def our_target(ours, proto):
    if proto == "smb":
        return f"smb port={ours['smb']} pid={ours['pid']} user={ours['user']} pass={ours['pass']} share={ours['share']}"
    mount = f" mount_port={ours['nfs']}" if proto == "nfs3" else ""
    return f"{proto} port={ours['nfs']}{mount} share=/{ours['share']} pid={ours['pid']}"


def targets(opt, peers):
    """{row's mode: [(server's name, fsload's words)]}, the peer first."""
    found = {}
    ours = dict(w.split("=", 1) for w in opt.ours.split()) if opt.ours else None
    for mode, proto, words in MODES:
        found[mode] = [(PEER[proto], f"{peer_target(peers, proto, words)} {words}")]
        if ours:
            found[mode].append(("Anabranch", f"{our_target(ours, proto)} {words}"))
        for extra in opt.extra:
            name, extra_proto, rest = extra.split(" ", 2)
            if extra_proto == proto:
                found[mode].append((name, f"{proto} {rest} {words}"))
    return found


def load(words, opt, before=()):
    """One run of fsload, `before` in front of its command: its figures, or None and the reason."""
    cmd = [*before, FSLOAD] + words.split() + [f"secs={opt.secs}", "ramp=1", f"size={opt.size}", "tsv=1", "label=x"]
    try:
        r = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60 + 3 * float(opt.secs))
    except subprocess.TimeoutExpired:
        return None, "no end"
    line = r.stdout.strip()
    return ([float(x) for x in line.split("\t")[1:]], "") if line else (None, r.stderr.strip().splitlines()[-1:] or "no output")


def measure(opt, rows):
    """{(mode, op, server): [figures of each run]}, how many runs failed"""
    results, lost = {}, 0
    raw = open(opt.raw, "a") if opt.raw else None
    for run in range(opt.runs):
        for mode, op, words, servers in rows:
            # the order changes from run to run: whoever comes second finds a warmer machine
            for server, target in servers if run % 2 == 0 else servers[::-1]:
                figures, wrong = load(f"{target} {words}", opt)
                if not figures:
                    print(f"FAIL {mode}, {op}, {server}: {wrong}", flush=True)
                    lost += 1
                    continue
                results.setdefault((mode, op, server), []).append(figures)
                print(f"{run + 1} {mode:28} {op:30} {server:10} {figures[RATE]:9.0f} /s {figures[CPU]:8.1f} us", flush=True)
                if raw:
                    words_out = [str(int(time.time())), open("/proc/loadavg").read().split()[0], mode, op, server]
                    raw.write("\t".join(words_out + [f"{f:g}" for f in figures]) + "\n")
                    raw.flush()
    return results, lost


def middle(runs, column):
    return statistics.median(r[column] for r in runs)


def ratio(ours, theirs, column):
    """Median, least and greatest of the ratios of runs that stood next to each other."""
    each = sorted(a[column] / b[column] for a, b in zip(ours, theirs) if b[column])
    return (statistics.median(each), each[0], each[-1]) if each else None


def goal(op):
    """Server CPU per operation, ours by the peer's, at most."""
    return 1 / 3 if op.startswith(("4 KiB", "metadata")) else 0.8


def table(mode, rows, results):
    peer = PEER[next(proto for name, proto, _ in MODES if name == mode)]
    yield f"## {mode}\n"
    yield f"| | {peer}, 1/s | Anabranch, 1/s | ratio (least - greatest) | {peer}, CPU us | Anabranch, CPU us | ratio (least - greatest) | goal |"
    yield "|---|---|---|---|---|---|---|---|"
    for _, op, _, _ in (r for r in rows if r[0] == mode):
        theirs, ours = results.get((mode, op, peer)), results.get((mode, op, "Anabranch"))
        if not theirs or not ours:
            yield f"| {op} | {'-' if not theirs else f'{middle(theirs, RATE):.0f}'} | {'-' if not ours else f'{middle(ours, RATE):.0f}'} | | | | | not measured |"
            continue
        rate, cpu = ratio(ours, theirs, RATE), ratio(ours, theirs, CPU)
        reached = "reached" if cpu and cpu[0] <= goal(op) and rate and rate[0] > 1 else "**missed**"
        show = lambda r: f"{r[0]:.2f} ({r[1]:.2f} - {r[2]:.2f})" if r else "-"
        yield (f"| {op} | {middle(theirs, RATE):.0f} | {middle(ours, RATE):.0f} | {show(rate)} | {middle(theirs, CPU):.1f} | {middle(ours, CPU):.1f} "
               f"| {show(cpu)} | {reached}: CPU <= {goal(op):.2f}, rate > 1 |")
    yield ""


def version(*command):
    found = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    return (re.search(r"\d+\.\d+[.\d]*", found) or [found.strip()])[0]


def markdown(opt, family, rows, results):
    peer, cycle = FAMILIES[family][1:]
    yield f"Made by `scripts/bench-peers --family {family}`: Anabranch and {peer} on one machine, one client (`tests/peers/fsload`),"
    yield f"files on tmpfs and in the page cache, TCP loopback; {opt.runs} interleaved runs of {opt.secs} s a row. Rates and CPU are medians; a ratio is"
    yield "the median of the ratios of runs that stood next to each other, with the least and the greatest. CPU is the server's, per operation."
    yield "Ratios and CPU per operation mean something here; absolute rates on a shared machine do not.\n"
    yield f"* {machine()}"
    yield f"* congestion control {open('/proc/sys/net/ipv4/tcp_congestion_control').read().strip()}"
    yield f"* smbd {version('smbd', '--version')}, Ganesha {version('ganesha.nfsd', '-v')}, commit {version_of_tree()}"
    yield f"* a metadata cycle: {cycle}\n"
    for mode in dict.fromkeys(r[0] for r in rows):
        yield from table(mode, rows, results)


def machine():
    cpu = next((l.split(":", 1)[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "?")
    return f"{os.cpu_count()} x {cpu}, Linux {platform.release()}, load {' '.join(open('/proc/loadavg').read().split()[:3])}, {time.strftime('%Y-%m-%d')}"


def write_section(path, heading, lines):
    """Puts a section under its heading in a document, and leaves all others as they are."""
    text = open(path).read() if os.path.exists(path) else ""
    parts = re.split(r"(?m)^(?=# )", text)
    section = "\n".join([heading, "", *lines]).rstrip("\n") + "\n"
    at = next((i for i, part in enumerate(parts) if part.startswith(heading + "\n")), len(parts))
    parts[at:at + 1] = [section]
    with open(path, "w") as f:
        f.write("\n".join(part.rstrip("\n") + "\n" for part in parts if part.strip()))


def version_of_tree():
    return subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, stdout=subprocess.PIPE, text=True).stdout.strip() or "?"


def main():
    opt = options()
    opt.family = opt.family or list(FAMILIES)
    if not os.path.exists(FSLOAD):
        sys.exit(f"{FSLOAD} is missing: cargo build --release in tests/peers/fsload, or set FSLOAD")
    peers = Peers()
    try:
        servers = targets(opt, peers)
        rows = [(mode, op, words, servers[mode]) for mode in servers for op, words in OPS
                if mode.startswith(tuple(opt.family)) and re.search(opt.only, f"{mode} {op}")]
        results, lost = measure(opt, rows)
    finally:
        peers.stop()
    print(f"\nmedians of {opt.runs} x {opt.secs} s")
    print(f"{'':72} {'ops/s':>9} {'MiB/s':>8} {'p50 us':>8} {'p99 us':>8} {'srv us/op':>10} {'cores':>6} {'cli us/op':>9}")
    for (mode, op, server), runs in sorted(results.items()):
        m = [middle(runs, c) for c in range(7)]
        print(f"{mode:28} {op:32} {server:10} {m[0]:9.0f} {m[1]:8.1f} {m[2]:8.0f} {m[3]:8.0f} {m[4]:10.1f} {m[5]:6.2f} {m[6]:9.2f}")
    if lost:
        sys.exit(f"{lost} runs failed: nothing is written")
    for family in opt.family if opt.markdown else []:
        of_it = [row for row in rows if row[0].startswith(family)]
        write_section(opt.markdown, FAMILIES[family][0], markdown(opt, family, of_it, results))


if __name__ == "__main__":
    main()
