#!/usr/bin/env python3
"""Plain, signed and encrypted SMB side by side, interleaved and repeated; `scripts/bench-security` runs it.

    security.py --ours "port=N pid=N ..." --link COMMAND --loopback COMMAND [--runs 7] [--secs 1]
                [--gbit 10] [--only REGEX] [--document FILE.md]

COMMAND goes before fsload, to run it where that regime's client is. The ratios are those of runs that stood next to each
other. Exits 1, and writes nothing, when a run failed.
"""
import argparse
import re
import shlex
import statistics
import subprocess
import sys

from measure import CLIENT, CPU, FSLOAD, MIB, load, machine, version_of_tree, write_section

HEADING = "# What signing and encryption cost"
# name, fsload's words, blocks in a MiB, what the server does with the data when it is encrypted
ROWS = [
    ("64 KiB read, depth 16", "op=read bs=64k qd=16", 16, "seal"),
    ("64 KiB write, depth 16", "op=write bs=64k qd=16", 16, "open"),
    ("1 MiB read, depth 8", "op=read bs=1m qd=8", 1, "seal"),
    ("1 MiB write, depth 8", "op=write bs=1m qd=8", 1, "open"),
]
MODES = [("plain", "", 1.0), ("signed", "sign=1 signing=gmac", 0.90), ("encrypted", "encrypt=1", 0.85)]


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ours", required=True, metavar="WORDS")
    p.add_argument("--link", required=True, metavar="COMMAND")
    p.add_argument("--loopback", required=True, metavar="COMMAND")
    p.add_argument("--runs", type=int, default=7)
    p.add_argument("--secs", default="1")
    p.add_argument("--size", default="256m")
    p.add_argument("--gbit", default="10")
    p.add_argument("--only", default="", metavar="REGEX", help="rows whose name has this, such as 'loopback.*write'")
    p.add_argument("--document", metavar="FILE")
    return p.parse_args()


def regimes(opt):
    link = f"Over a link of {opt.gbit} Gbit/s"
    loopback = "Over the loopback: the processors are the limit"
    return [(link, shlex.split(opt.link)), (loopback, shlex.split(opt.loopback))]


def measure(opt):
    """{(regime, row, mode): [figures of each run]}"""
    results = {}
    for run in range(opt.runs):
        for regime, command in regimes(opt):
            for row, words, _, _ in ROWS:
                if not re.search(opt.only, f"{regime} {row}"):
                    continue
                # the order changes from run to run: whoever comes later finds a warmer machine
                for mode, how, _ in MODES[run % 3:] + MODES[:run % 3]:
                    figures, wrong = load(f"smb {opt.ours} {words} {how} whole=1", opt, command)
                    if not figures:
                        sys.exit(f"FAIL {regime}, {row}, {mode}: {wrong}: nothing is written")
                    results.setdefault((regime, row, mode), []).append(figures)
                    print(f"{run + 1} {regime[:18]:18} {row:24} {mode:10} {figures[MIB]:8.0f} MiB/s", flush=True)
    return results


def ratio(ours, plain):
    """Median, least and greatest of the ratios of runs that stood next to each other."""
    each = sorted(a[MIB] / b[MIB] for a, b in zip(ours, plain))
    return statistics.median(each), each[0], each[-1]


def rate_table(regime, results):
    yield "| | plain, MiB/s | signed, MiB/s | signed / plain (least - greatest) | encrypted, MiB/s | encrypted / plain (least - greatest) | goal |"
    yield "|---|---|---|---|---|---|---|"
    for row, _, _, _ in ROWS:
        runs = [results.get((regime, row, mode)) for mode, _, _ in MODES]
        if not all(runs):
            continue
        rates = [statistics.median(r[MIB] for r in each) for each in runs]
        signed, encrypted = ratio(runs[1], runs[0]), ratio(runs[2], runs[0])
        verdicts = [f"{mode} {'reached' if found[0] >= least else '**missed**'} (>= {least:.2f})" for found, (mode, _, least) in zip((signed, encrypted), MODES[1:])]
        show = lambda r: f"{r[0]:.2f} ({r[1]:.2f} - {r[2]:.2f})"
        yield f"| {row} | {rates[0]:.0f} | {rates[1]:.0f} | {show(signed)} | {rates[2]:.0f} | {show(encrypted)} | {', '.join(verdicts)} |"
    yield ""


def crypto_costs(command):
    """What the server's core spends on a MiB: {"gmac": us, "seal": us, "open": us}"""
    said = subprocess.run([*command, FSLOAD, "crypto", "bs=64k"], stdout=subprocess.PIPE, text=True, check=True).stdout
    return {name: float(cost) for name, cost in re.findall(r"(\w+)=([\d.]+)", said)}


def cpu_table(regime, results, costs):
    """The last column: how much of the plain rate a server could reach that is busy all the time in both modes."""
    yield "| CPU us per MiB, server + generator | plain | signed | encrypted | with the cryptography alone added, of plain's rate, if the server's core is the limit |"
    yield "|---|---|---|---|---|"
    for row, _, per_mib, work in ROWS:
        runs = [results.get((regime, row, mode)) for mode, _, _ in MODES]
        if not all(runs):
            continue
        middle = lambda each, column: statistics.median(r[column] for r in each) * per_mib
        plain = middle(runs[0], CPU)
        most = [plain / (plain + costs[work]) for work in ("gmac", work)]
        yield f"| {row} | " + " | ".join(f"{middle(each, CPU):.0f} + {middle(each, CLIENT):.0f}" for each in runs) + f" | {most[0]:.2f}, {most[1]:.2f} |"
    yield ""


def section(opt, results, costs):
    yield "Made by `scripts/bench-security`: one SMB 3.1.1 connection, plain, signed (AES-128-GMAC) and encrypted (AES-128-GCM); files on"
    yield f"tmpfs; {opt.runs} interleaved runs of {opt.secs} s. A ratio is the median of the ratios of runs that stood next to each other, with the least and"
    yield "the greatest. The generator receives all data and checks every signature; it and the server have half of the processors each."
    yield "Where the time goes: [profiles.md](profiles.md).\n"
    yield f"* {machine()}"
    yield f"* commit {version_of_tree()}; congestion control cubic, or reno where that is not allowed"
    yield f"* the cryptography alone, us of a core per MiB (`fsload crypto`): GMAC {costs['gmac']:.0f}, GCM sealing {costs['seal']:.0f}, opening {costs['open']:.0f}\n"
    for regime in dict.fromkeys(regime for regime, _, _ in results):
        yield f"## {regime}\n"
        yield from rate_table(regime, results)
        yield from cpu_table(regime, results, costs)


def main():
    opt = options()
    results = measure(opt)
    lines = list(section(opt, results, crypto_costs(shlex.split(opt.loopback))))
    print("\n".join(lines))
    if opt.document and not opt.only:
        write_section(opt.document, HEADING, lines)
        print(f"wrote {opt.document}")


if __name__ == "__main__":
    main()
