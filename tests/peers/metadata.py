#!/usr/bin/env python3
"""What the metadata cache is worth: two shares of one server, "on" and "off", in turns.

    metadata.py cache --added US --smb WORDS --nfs WORDS [--runs N] [--secs S] [--depth N] --results FILE
    metadata.py names --smb WORDS --nfs WORDS [--samba WORDS] [--runs N] [--secs S] --results FILE
    metadata.py section --results FILE [--document FILE]

`cache` runs the metadata cycles of fsload, and opens (SMB) and lookups (NFSv3) of files that are there. `names` opens files in a
directory of ten and in one of a million. Both print every run and add their rows to the results; `section` puts those into
a document. Called by scripts/bench-metadata. Exits 1 when a run failed.
"""
import argparse
import json
import statistics
import sys

import measure

HEADING = "# What the metadata cache is worth"
GOAL_RATE, GOAL_LATENCY, GOAL_LOCAL_CPU, GOAL_NAMES = 1.6, 0.7, 1.05, 1.5
NAMES = 1_000_000


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=("cache", "names", "section"))
    p.add_argument("--smb")
    p.add_argument("--nfs")
    p.add_argument("--samba")
    p.add_argument("--added", type=int, default=0)
    p.add_argument("--runs", type=int, default=5)
    p.add_argument("--secs", default="2")
    p.add_argument("--depth", type=int, default=16)
    p.add_argument("--results", required=True)
    p.add_argument("--document")
    opt = p.parse_args()
    opt.size = "1m"
    return opt


def in_turns(opt, name, targets):
    """{target's name: [figures of each run]}, each run of one target next to one of the other."""
    figures = {target: [] for target in targets}
    order = list(targets)
    for run in range(opt.runs):
        for target in order if run % 2 == 0 else order[::-1]:
            one, wrong = measure.load(targets[target], opt)
            if not one:
                sys.exit(f"FAIL {name}, {target}: {wrong}")
            figures[target].append(one)
            print(f"{run + 1} {name:64} {target:8} {one[measure.RATE]:9.0f} /s  p50 {one[measure.P50]:9.0f} us  CPU {one[measure.CPU]:8.1f} us", flush=True)
    return figures


def keep(opt, row):
    with open(opt.results, "a") as f:
        f.write(json.dumps(row) + "\n")


def cache(opt):
    works = [
        ("SMB create, close, open, close, open to delete, close", f"smb {opt.smb} share={{}} op=meta"),
        ("SMB create, close, open, close, open to delete, close, 4 connections", f"smb {opt.smb} share={{}} op=meta conns=4"),
        ("SMB open by a name in capitals, close", f"smb {opt.smb} share={{}} op=open within=files names=1000"),
        ("NFSv3 create, lookup, remove", f"nfs3 {opt.nfs} share=/{{}} op=meta"),
        ("NFSv3 create, lookup, remove, 4 connections", f"nfs3 {opt.nfs} share=/{{}} op=meta conns=4"),
        ("NFSv4.1 open to create, close, open, close, remove", f"nfs41 {opt.nfs} share=/{{}} op=meta"),
        ("NFSv3 lookup", f"nfs3 {opt.nfs} share=/{{}} op=open within=files names=1000"),
    ]
    for work, words in works:
        targets = {share: f"{words.format(share)} qd={opt.depth}" for share in ("off", "on")}
        figures = in_turns(opt, f"+{opt.added} us, {work}", targets)
        keep(opt, {"what": "cache", "added": opt.added, "depth": opt.depth, "runs": opt.runs, "secs": opt.secs, "work": work, **figures})


def names(opt):
    servers = [("Anabranch, SMB", f"smb {opt.smb} share=on"), ("Anabranch, NFSv3", f"nfs3 {opt.nfs} share=/on")]
    if opt.samba:
        servers.append(("Samba, SMB", f"smb {opt.samba}"))
    for server, words in servers:
        targets = {size: f"{words} op=open within={size} names={count} qd=1" for size, count in (("ten", 10), ("million", NAMES))}
        if server.startswith("Samba"):
            opt.secs, opt.runs = "10", 1
        figures = in_turns(opt, server, targets)
        keep(opt, {"what": "names", "runs": opt.runs, "secs": opt.secs, "work": server, **figures})


def middle(row, side, column):
    return statistics.median(run[column] for run in row[side])


def cache_row(row):
    cells = [row["work"]]
    ratios = {}
    for column, digits in ((measure.RATE, 0), (measure.P50, 0), (measure.CPU, 1)):
        ratios[column] = measure.ratio(row["on"], row["off"], column)
        cells += [f"{middle(row, side, column):.{digits}f}" for side in ("off", "on")]
        cells.append("{:.2f} ({:.2f} - {:.2f})".format(*ratios[column]))
    rate, latency = ratios[measure.RATE][0], ratios[measure.P50][0]
    is_reached = rate >= GOAL_RATE and latency <= GOAL_LATENCY if row["added"] else ratios[measure.CPU][0] <= GOAL_LOCAL_CPU
    return "| " + " | ".join(cells) + f" | {'reached' if is_reached else '**missed**'} |"


def names_row(row):
    cells = [row["work"]]
    for column, digits in ((measure.P50, 0), (measure.CPU, 1)):
        cells += [f"{middle(row, side, column):.{digits}f}" for side in ("ten", "million")]
        found = measure.ratio(row["million"], row["ten"], column)
        cells.append("{:.2f} ({:.2f} - {:.2f})".format(*found) if found else "-")
    is_reached = measure.ratio(row["million"], row["ten"], measure.P50)[0] <= GOAL_NAMES
    goal = "" if row["work"].startswith("Samba") else "reached" if is_reached else "**missed**"
    return "| " + " | ".join(cells) + f" | {goal} |"


def section(opt):
    rows = [json.loads(line) for line in open(opt.results)]
    lines = [
        "Made by `scripts/bench-metadata`: two shares of one server, one with `metadata-cache = false`, in turns; one connection of",
        "`tests/peers/fsload`, or four, over the loopback. A ratio is the median of the ratios of runs that stood next to each other, with the",
        "least and the greatest; the rest are medians. CPU is the server's, per operation.",
        "",
        f"* {measure.machine()}",
        f"* commit {measure.version_of_tree()}",
        "",
    ]
    for added in dict.fromkeys(row["added"] for row in rows if row["what"] == "cache"):
        those = [row for row in rows if row["what"] == "cache" and row["added"] == added]
        one = those[0]
        where = f"With {added} us added to each metadata call of the storage" if added else "On the local disk"
        goal = f"rate >= {GOAL_RATE:.2f} and p50 <= {GOAL_LATENCY:.2f}" if added else f"CPU <= {GOAL_LOCAL_CPU:.2f}"
        lines += [
            f"## {where}",
            "",
            f"{one['runs']} runs of {one['secs']} s, depth {one['depth']}. Goal: {goal}.",
            "",
            "| | without, 1/s | with, 1/s | ratio | without, p50 us | with, p50 us | ratio | without, CPU us | with, CPU us | ratio | goal |",
            "|---|---|---|---|---|---|---|---|---|---|---|",
            *map(cache_row, those),
            "",
        ]
    those = [row for row in rows if row["what"] == "names"]
    if those:
        lines += [
            "## A name in a directory of 10 and of 1,000,000",
            "",
            "Files on tmpfs, at depth 1, a random one each time: SMB opens it by its name in capitals and closes it, NFSv3 looks it up. Samba serves the same",
            f"directory. Goal: a million costs at most {GOAL_NAMES:.1f} times ten. " + "; ".join(f"{row['work']}: runs of {row['secs']} s, {row['runs']}" for row in those) + ".",
            "",
            "| | ten, p50 us | a million, p50 us | ratio | ten, CPU us | a million, CPU us | ratio | goal |",
            "|---|---|---|---|---|---|---|---|",
            *map(names_row, those),
            "",
        ]
    print("\n".join(lines))
    if opt.document:
        measure.write_section(opt.document, HEADING, lines)
        print(f"wrote {opt.document}")


if __name__ == "__main__":
    given = options()
    {"cache": cache, "names": names, "section": section}[given.what](given)
