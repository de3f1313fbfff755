#!/usr/bin/env python3
"""Write an NFS part of docs/measured/conformance.md: report-pynfs.py MINOR OURS.tsv DOCUMENT

Compares a run of run-pynfs with NFS-Ganesha's (baseline-pynfs41-ganesha-4.3.tsv, for the minor
version 0 baseline-pynfs40-...) and gives each test that fails the reason that reasons.tsv names.
"""
import contextlib
import io
import os
import re
import sys

sys.dont_write_bytecode = True
from report import HERE, read, reasons, share, why

TITLES = {"0": "NFSv4.0", "1": "NFSv4.1 and NFSv4.2"}
RUNS = {
    "0": "Made by `scripts/conformance-nfs --minor 0`: all server tests of pynfs's `nfs4.0` (flags `all` and `reboot`, lease of 10 s),",
    "1": "Made by `scripts/conformance-nfs`: all server tests of pynfs's `nfs4.1` (flags `all` and `reboot`, asked at minor version 2, lease of 10 s),",
}
LEFT_OUT = {"0": ": pynfs skips what `all` leaves out (delegations, RPCSEC_GSS, fs_locations, the order of waiting locks, names in UTF-8)", "1": ": pynfs skips what `all` leaves out (pNFS)"}


def report(minor, table):
    ours, details = read(table)
    baseline = f"baseline-pynfs4{minor}-ganesha-4.3.tsv"
    ganesha, _ = read(os.path.join(HERE, baseline))
    known = reasons()

    def both(suite=None):
        good = [k for k, r in ganesha.items() if r == "ok" and suite in (None, k[0])]
        return share(sum(ours.get(k) == "ok" for k in good), len(good))

    def count(result, suite=None):
        return sum(r == result for (s, _), r in ours.items() if suite in (None, s))

    def ours_only(key):
        return ours[key] == "ok" and ganesha.get(key) == "FAIL"

    print(f"## {TITLES[minor]}: pynfs\n")
    print(RUNS[minor])
    print(f"beside the results of NFS-Ganesha 4.3 (`tests/conformance/{baseline}`).\n")
    print(f"* **{count('ok')} passed, {count('FAIL')} failed, {count('SKIP')} skipped**{LEFT_OUT[minor]}")
    print(f"* Of what Ganesha passes: **{both()}**")
    print(f"* Passed here, failed by Ganesha: **{sum(map(ours_only, ours))}**\n")
    print("| suite | passed here | failed | skipped | of what Ganesha passes |\n|---|---|---|---|---|")
    for suite in dict.fromkeys(s for s, _ in ours):
        print(f"| {suite} | {count('ok', suite)} | {count('FAIL', suite)} | {count('SKIP', suite)} | {both(suite)} |")
    if "FAIL" not in ours.values():
        return
    print(f"\n### What fails of pynfs over {TITLES[minor]}\n")
    print("| suite | test | Ganesha | reason | what pynfs says |\n|---|---|---|---|---|")
    for (suite, test), result in ours.items():
        if result == "FAIL":
            detail = details[suite, test].replace("|", "/")[:110]
            print(f"| {suite} | {test} | {ganesha.get((suite, test), '-')} | {why(known, suite, test)} | {detail} |")



def main():
    minor, table, document = sys.argv[1:]
    part = io.StringIO()
    with contextlib.redirect_stdout(part):
        report(minor, table)
    whole = open(document).read()
    old = re.search(rf"^## {re.escape(TITLES[minor])}: pynfs\n.*?(?=^## |\Z)", whole, re.M | re.S)
    begin, end = old.span() if old else (len(whole), len(whole))
    parts = [text.strip("\n") for text in (whole[:begin], part.getvalue(), whole[end:])]
    with open(document, "w") as f:
        f.write("\n\n".join(text for text in parts if text) + "\n")


main()
