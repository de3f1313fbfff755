#!/usr/bin/env python3
"""Write docs/measured/conformance.md: report.py OURS.tsv >conformance.md

Compares a run of run-smbtorture with Samba's (baseline-samba-4.17.tsv) and gives each
subtest that fails the reason that reasons.tsv names (suite, test, reason; both names may
have * at the end).
"""
import fnmatch
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
UNKNOWN = "not looked into yet"


def read(path):
    """{(suite, test): result}, {(suite, test): detail}"""
    rows = [line.rstrip("\n").split("\t") for line in open(path)][1:]
    return {(r[0], r[1]): r[2] for r in rows}, {(r[0], r[1]): (r + ["", ""])[4] for r in rows}


def suites(path):
    words = [line.split("#")[0].split() for line in open(path)]
    return [w[0] for w in words if w]


def reasons():
    path = os.path.join(HERE, "reasons.tsv")
    return [line.rstrip("\n").split("\t") for line in open(path) if line.strip() and not line.startswith("#")]


def why(known, suite, test):
    for row in known:
        if fnmatch.fnmatchcase(suite, row[0]) and fnmatch.fnmatchcase(test, row[1]):
            return row[2]
    return UNKNOWN


def share(part, whole):
    return f"{part} of {whole} ({100 * part / whole:.1f} %)" if whole else "-"


def main():
    ours, details = read(sys.argv[1])
    samba, _ = read(os.path.join(HERE, "baseline-samba-4.17.tsv"))
    short = set(suites(os.path.join(HERE, "smb2-short.txt")))
    known = reasons()
    ran = list(dict.fromkeys(suite for suite, _ in ours))
    print("# Conformance\n")
    print("Made by `scripts/conformance`: Samba's smbtorture (4.17) against Anabranch, beside the results of Samba 4.17 itself")
    print("(`tests/conformance/baseline-samba-4.17.tsv`). The percentages count the subtests that Samba passes.\n")

    def both(names):
        good = [k for k, r in samba.items() if r == "ok" and k[0] in names]
        return share(sum(ours.get(k) == "ok" for k in good), len(good))

    print(f"* Suites of every test run (`tests/conformance/smb2-short.txt`): **{both(short & set(ran))}**")
    print(f"* All suites below: **{both(set(ran))}**\n")
    print("| suite | passed here | failed | skipped | of what Samba passes |\n|---|---|---|---|---|")
    for suite in ran:
        n = {k: sum(r == k for (s, _), r in ours.items() if s == suite) for k in ("ok", "FAIL", "SKIP")}
        print(f"| {suite}{'' if suite in short else ' *'} | {n['ok']} | {n['FAIL']} | {n['SKIP']} | {both({suite})} |")
    print("\n\\* not in every test run; (ca): repeated on a share with continuous availability\n\n## What fails\n")
    print("| suite | subtest | Samba | reason | what smbtorture says |\n|---|---|---|---|---|")
    for (suite, test), result in ours.items():
        if result == "FAIL":
            detail = details[suite, test].replace("|", "/")[:110]
            print(f"| {suite} | {test} | {samba.get((suite, test), '-')} | {why(known, suite, test)} | {detail} |")
    missing = [k for k, r in samba.items() if r == "ok" and k[0] in ran and k not in ours]
    if missing:
        print("\nPassed by Samba and not reached here: " + ", ".join(f"{s} {t}" for s, t in missing) + ".")


if __name__ == "__main__":
    main()
