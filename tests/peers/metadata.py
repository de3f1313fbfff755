#!/usr/bin/env python3
"""The metadata cycle of fsload on two shares of one server, "on" and "off", in turns: what the metadata cache is worth.

Called by scripts/bench-metadata. Prints every run, then rows of a table: medians, and medians of the ratios of runs that
stood next to each other. Exits 1 when a run failed.
"""
import argparse
import statistics
import sys

import measure

GOAL_RATE, GOAL_LATENCY = 1.6, 0.7


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--smb", required=True)
    p.add_argument("--nfs", required=True)
    p.add_argument("--added", type=int, required=True)
    p.add_argument("--runs", type=int, default=3)
    p.add_argument("--secs", default="3")
    p.add_argument("--depth", type=int, default=16)
    p.add_argument("--latency", help="read by scripts/bench-metadata")
    opt = p.parse_args()
    opt.size = "1m"
    targets = {
        "SMB": lambda share: f"smb {opt.smb} share={share}",
        "NFSv3": lambda share: f"nfs3 {opt.nfs} share=/{share}",
    }
    rows = []
    for name, target in targets.items():
        figures = {"on": [], "off": []}
        for run in range(opt.runs):
            for share in ("off", "on") if run % 2 == 0 else ("on", "off"):
                one, wrong = measure.load(f"{target(share)} op=meta qd={opt.depth}", opt)
                if not one:
                    sys.exit(f"FAIL {name}, cache {share}: {wrong}")
                figures[share].append(one)
                print(f"{run + 1} {name:6} +{opt.added} us, cache {share:3} {one[measure.RATE]:9.0f} /s  p50 {one[measure.P50]:8.0f} us  CPU {one[measure.CPU]:7.1f} us", flush=True)
        rows.append(row(name, opt, figures))
    print("\n| | cycles/s, off | on | ratio | p50 us, off | on | ratio | CPU us, off | on | goal |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    print("\n".join(rows), flush=True)


def row(name, opt, figures):
    cells = [f"{name}, +{opt.added} us a call, depth {opt.depth}"]
    ratios = {}
    for column in (measure.RATE, measure.P50, measure.CPU):
        off, on = (statistics.median(run[column] for run in figures[share]) for share in ("off", "on"))
        cells += [f"{off:.0f}", f"{on:.0f}"]
        if column != measure.CPU:
            ratios[column] = measure.ratio(figures["on"], figures["off"], column)[0]
            cells.append(f"{ratios[column]:.2f}")
    is_reached = ratios[measure.RATE] >= GOAL_RATE and ratios[measure.P50] <= GOAL_LATENCY
    goal = ("reached" if is_reached else "**missed**") if opt.added else "none"
    return "| " + " | ".join(cells) + f" | {goal} |"


if __name__ == "__main__":
    main()
