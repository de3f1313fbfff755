#!/usr/bin/env python3
"""Makes a table of what tests/interop/takeover-faults.sh has measured.

takeover_times.py [--judge] FILES
Reads lines of a fault and three times in ms: the longest without an answer for a client that connects anew all the time; the longest
without a write that is answered; and how long until all files and locks of a client were back. A time may be "none". With --judge, exits 1 if
a goal is missed, or a time with a goal is not there.
"""
import statistics
import sys

# In ms, for the three times. The links fail for longer than that; what is not there has no goal.
GOALS = {
    "kill": (4000, None, 5000),
    "kill-mds": (15000, 15000, None),
    "stop": (4000, None, 5000),
    "storage": (4000, None, 5000),
    "clients": (4000, None, 5000),
    "network": (4000, None, 5000),
    "osd": (None, 2000, None),
}
COLUMNS = ("new connections", "a write", "all files and locks")


def cell(times, goal):
    if None in times:
        return "not measured", goal is not None
    if not any(times):
        return "-", goal is not None
    median, highest = statistics.median(times), max(times)
    text = f"{median / 1000:.2f} s ({min(times) / 1000:.2f} to {highest / 1000:.2f})"
    if goal is None:
        return text, False
    return text + f", goal {goal / 1000:g} s", highest > goal


def main(arguments):
    is_judged = "--judge" in arguments
    files = arguments[-1]
    found = {}
    for line in sys.stdin:
        fault, *times = line.split()
        found.setdefault(fault, []).append([None if time == "none" else int(time) for time in times])
    print(f"| fault | times | {' | '.join(COLUMNS)} ({files}) |")
    print("|---" * (2 + len(COLUMNS)) + "|")
    missed = []
    for fault, rows in found.items():
        goals = GOALS.get(fault, (None,) * len(COLUMNS))
        cells = [cell([row[i] for row in rows], goals[i]) for i in range(len(COLUMNS))]
        missed += [f"{fault}: {COLUMNS[i]}" for i in range(len(COLUMNS)) if cells[i][1]]
        print(f"| {fault} | {len(rows)} | {' | '.join(text for text, _ in cells)} |")
    for what in missed:
        print(f"missed: {what}")
    return 1 if is_judged and missed else 0


sys.exit(main(sys.argv[1:]))
