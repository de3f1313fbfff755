"""What the measurements here share: runs of fsload, ratios of runs that stood next to each other, sections of a document.

FSLOAD names the load generator. The server's CPU time per operation suffers least from other work on the machine.
"""
import os
import platform
import re
import statistics
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FSLOAD = os.environ.get("FSLOAD", os.path.join(HERE, "fsload/target/release/fsload"))
# fsload's columns
RATE, MIB, P50, P99, CPU, CORES, CLIENT = range(7)


def load(words, opt, before=()):
    """One run of fsload, `before` in front of its command: its figures, or None and the reason."""
    cmd = [*before, FSLOAD] + words.split() + [f"secs={opt.secs}", "ramp=1", f"size={opt.size}", "tsv=1", "label=x"]
    try:
        r = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60 + 3 * float(opt.secs))
    except subprocess.TimeoutExpired:
        return None, "no end"
    line = r.stdout.strip()
    return ([float(x) for x in line.split("\t")[1:]], "") if line else (None, r.stderr.strip().splitlines()[-1:] or "no output")


def ratio(ours, theirs, column):
    """Median, least and greatest of the ratios of runs that stood next to each other."""
    each = sorted(a[column] / b[column] for a, b in zip(ours, theirs) if b[column])
    return (statistics.median(each), each[0], each[-1]) if each else None


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
