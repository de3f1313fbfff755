#!/usr/bin/env python3
"""Write the NFS part of docs/measured/conformance.md: report-pynfs.py OURS.tsv

Compares a run of run-pynfs with NFS-Ganesha's (baseline-pynfs41-ganesha-4.3.tsv) and gives
each test that fails the reason that reasons.tsv names.
"""
import os
import sys

sys.dont_write_bytecode = True
from report import HERE, read, reasons, share, why


def main():
    ours, details = read(sys.argv[1])
    ganesha, _ = read(os.path.join(HERE, "baseline-pynfs41-ganesha-4.3.tsv"))
    known = reasons()

    def both(suite=None):
        good = [k for k, r in ganesha.items() if r == "ok" and suite in (None, k[0])]
        return share(sum(ours.get(k) == "ok" for k in good), len(good))

    def count(result, suite=None):
        return sum(r == result for (s, _), r in ours.items() if suite in (None, s))

    def ours_only(key):
        return ours[key] == "ok" and ganesha.get(key) == "FAIL"

    print("## NFSv4.1 and NFSv4.2: pynfs\n")
    print("Made by `scripts/conformance-nfs`: all server tests of pynfs's `nfs4.1` (flags `all` and `reboot`, asked at minor version 2, lease of 10 s),")
    print("beside the results of NFS-Ganesha 4.3 (`tests/conformance/baseline-pynfs41-ganesha-4.3.tsv`).\n")
    print(f"* **{count('ok')} passed, {count('FAIL')} failed, {count('SKIP')} skipped**: pynfs skips what `all` leaves out (pNFS)")
    print(f"* Of what Ganesha passes: **{both()}**")
    print(f"* Passed here, failed by Ganesha: **{sum(map(ours_only, ours))}**\n")
    print("| suite | passed here | failed | skipped | of what Ganesha passes |\n|---|---|---|---|---|")
    for suite in dict.fromkeys(s for s, _ in ours):
        print(f"| {suite} | {count('ok', suite)} | {count('FAIL', suite)} | {count('SKIP', suite)} | {both(suite)} |")
    print("\n### What fails of pynfs\n")
    print("| suite | test | Ganesha | reason | what pynfs says |\n|---|---|---|---|---|")
    for (suite, test), result in ours.items():
        if result == "FAIL":
            detail = details[suite, test].replace("|", "/")[:110]
            print(f"| {suite} | {test} | {ganesha.get((suite, test), '-')} | {why(known, suite, test)} | {detail} |")


main()
