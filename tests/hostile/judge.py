"""How long others wait while a server is attacked, beside how long they wait otherwise.

Each round has a turn with the attack and one without, in alternating order, each with a server of its own. A round's ratio is the
latency with the attack by that without it; the median of the rounds' ratios is judged.
"""
import os
import platform
import statistics
import subprocess
import tempfile
import time

from place import PROGRAM, TOP, Measured, Place

# How much longer others may wait: their median latency, and their 99th percentile.
MEDIAN_MAX, P99_MAX = 2, 2
RATE = 100
HEADING = "# Others while the server is attacked"
HEADS = ["attack", "over", "median: without", "with", "ratio", "99th percentile: without", "with", "ratio", ""]


def turn(attack, seconds):
    """What the attack has gained, and the others' latencies by protocol; raises an error if one was not served."""
    with tempfile.TemporaryDirectory(prefix="anabranch-hostile.") as scratch:
        place = Place(scratch)
        try:
            measured = Measured(place, attack, seconds, RATE, yielding=True)
        finally:
            place.end()
    problems = [f"{who}: {problem}" for who, problem in measured.problems.items() if problem]
    if problems:
        raise SystemExit(f"{attack.__name__ if attack else 'without an attack'}: {'; '.join(problems)}")
    return measured.said, measured.latency


class Compared:
    """A latency without an attack and with it, round by round."""

    def __init__(self, pairs):
        without, beside = zip(*pairs)
        self.without, self.beside = statistics.median(without), statistics.median(beside)
        self.ratios = sorted(b / a for a, b in pairs)
        self.ratio = statistics.median(self.ratios)

    def cells(self):
        return [f"{self.without:.2f} ms", f"{self.beside:.2f} ms", f"{self.ratio:.2f}x ({self.ratios[0]:.2f} to {self.ratios[-1]:.2f})"]


def measure(attack, seconds, rounds):
    """What the attack has gained in the last round, and the rows of the table; and whether all limits were kept."""
    turns = []
    for number in range(rounds):
        order = [None, attack] if number % 2 else [attack, None]
        turns.append({which: turn(which, seconds) for which in order})
    rows, kept = [], True
    for protocol in ("smb", "nfs"):
        def compared(figure):
            return Compared([tuple(of[which][1][protocol][figure] for which in (None, attack)) for of in turns])
        median, p99 = compared(0), compared(1)
        missed = [name for name, held, most in [("median", median, MEDIAN_MAX), ("99th percentile", p99, P99_MAX)] if held.ratio > most]
        rows.append([attack.__name__, {"smb": "SMB", "nfs": "NFSv3"}[protocol], *median.cells(), *p99.cells(),
                     f"**missed**: {', '.join(missed)}" if missed else "kept"])
        kept = kept and not missed
    return turns[-1][attack][0], rows, kept


def said(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=TOP).stdout.strip()


def markdown_row(cells):
    return "|" + "".join(f" {cell} |" if cell else " |" for cell in cells)


def section(rows, gained, seconds, rounds, loads):
    commit = said("git", "rev-parse", "--short", os.environ.get("COMMIT", "HEAD"))
    version = said(PROGRAM, "--version")
    table = [markdown_row(HEADS), "|" + "---|" * len(HEADS), *map(markdown_row, rows)]
    return "\n".join([
        HEADING, "",
        f"Made by `tests/hostile/run --judge`. Two ordinary clients, one over SMB (signed) and one over NFSv3, do {RATE} cycles a second each",
        "(create, write, close, open, stat, list and delete a file); the table has the latency of a cycle. Each round has a turn with the",
        "attack and one without it, with a server of its own each; the attack begins 2 s before the clients and lasts until they have ended.",
        "Latencies are medians of the rounds, ratios those of a round's two turns: their median, and the least and the greatest.",
        "The attackers' threads have the lowest priority (SCHED_IDLE), because attackers have machines of their own; what the server does for",
        f"them has not. Limits: the median at most {MEDIAN_MAX} times, the 99th percentile at most {P99_MAX} times as long as without the attack.", "",
        *table, "",
        "What the attacks gained (last round):", "",
        *[f"* {name}: {what}" for name, what in gained], "",
        f"Measured on {time.strftime('%Y-%m-%d', time.gmtime())}, commit {commit}, {version}, {os.cpu_count()} processors, which server, clients",
        f"and attackers share, Linux {platform.release()}; {rounds} rounds, {seconds} s a turn after as long a warm-up. The load average of a",
        f"minute, read before each attack and at the end, was {min(loads):.1f} to {max(loads):.1f}, these programs included.", ""])


def with_section(page, new):
    """The page with this section in the place of that with the same heading, or at the end."""
    parts = [""]
    for line in page.splitlines(keepends=True):
        if line.startswith("# "):
            parts.append("")
        parts[-1] += line
    places = [number for number, part in enumerate(parts) if part.startswith(HEADING + "\n")]
    parts[places[0] if places else len(parts):] = [new, *(parts[places[0] + 1:] if places else [])]
    return "\n".join(part.strip("\n") + "\n" for part in parts if part)


def run(chosen, seconds, rounds, markdown):
    """Measures these attacks, prints the table, and writes it into the page. Returns 1 if a limit was not kept."""
    rows, gained, loads, all_kept = [], [], [os.getloadavg()[0]], True
    for attack in chosen:
        what, more, kept = measure(attack, seconds, rounds)
        gained.append((attack.__name__, what))
        rows += more
        all_kept = all_kept and kept
        loads.append(os.getloadavg()[0])
        for row in more:
            print(" | ".join(row), flush=True)
    if markdown:
        page = open(markdown).read() if os.path.exists(markdown) else ""
        with open(markdown, "w") as file:
            file.write(with_section(page, section(rows, gained, seconds, rounds, loads)))
    return int(not all_kept)
