#!/usr/bin/env python3
"""The same jobs by fio and by `anabranch bench job --fio`, in turns; a line of JSON for each job.

    fio_beside.py PLACE REPETITIONS SECONDS DIRECTORY PORT EXPORT STATE FIO ANABRANCH

PLACE directory, guest: threads on the file `fio` of DIRECTORY; nfs, link: NFSv3 by both tools' own clients, of EXPORT on PORT.
A job's figures are, for each repetition and tool, operations a second and the mean latency in microseconds; for Anabranch in
the place nfs also the operations that the server (its state directory STATE) counted, by those that it counted itself.
"""
import json, os, signal, subprocess, sys

place, repetitions, seconds, directory, port, export, state, fio, anabranch = sys.argv[1:]
has_threads = place in ("directory", "guest")
size = "8m" if place == "guest" else "64m"
if has_threads:
    target, only_anabranch, only_fio = f"dir:{directory}", [], ["--ioengine=psync", "--thread", f"--directory={directory}", "--filename=fio", "--fallocate=none"]
else:
    target = f"nfs://127.0.0.1:{port}{export}?vers=3&uid=1000&gid=1000"
    url = f"nfs://127.0.0.1{export}?version=3&nfsport={port}&mountport={port}&uid=1000&gid=1000"
    only_anabranch = ["--server-state", state] if place == "nfs" else []
    only_fio = ["--ioengine=nfs", f"--nfs_url={url}", "--filename=/fio"]


def text_of(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.returncode}\n{done.stderr}{done.stdout[-500:]}")
    return done.stdout


def by_fio(job, kind):
    command = [fio, "--name=job", *job, *only_fio, "--invalidate=0", "--randrepeat=0", "--output-format=json"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        text, _ = running.communicate(timeout=float(seconds) + (60 if has_threads else 2))
    except subprocess.TimeoutExpired:
        # Its nfs engine does not always come back from libnfs's nfs_umount. By then all is counted, and what is counted lies in
        # memory that its processes share: without the one that hangs, it is printed.
        for child in open(f"/proc/{running.pid}/task/{running.pid}/children").read().split():
            os.kill(int(child), signal.SIGTERM)
        text, _ = running.communicate(timeout=20)
    [done] = json.loads(text[text.index("{"):])["jobs"]
    if done["error"]:
        sys.exit(f"fio: error {done['error']}")
    return done[kind]["iops"], done[kind]["lat_ns"]["mean"] / 1000


def by_anabranch(job, kind):
    line = " ".join(["fio", *job])
    text = text_of([anabranch, "bench", "job", "--target", target, "--fio", line, "--repetitions", "1", "--no-check", "--json", *only_anabranch])
    row = json.loads(text)["rows"][0]
    one = row["repetitions"][0]
    # Over the limited link the question to the server is late itself.
    counted = one["server"]["operations"] / one["operations"][kind]["count"] if place == "nfs" else None
    return row["measure"]["rate"]["median"], row["measure"]["latency"][kind]["mean_us"], counted


milliseconds = round(float(seconds) * 1000)
for kind in ("read", "write"):
    for block in ("4k", "64k"):
        for depth in (1, 16):
            # On a directory a system call waits for its data: what is under way at a time are threads, by both.
            under_way = ["--iodepth=1", f"--numjobs={depth}"] if has_threads else [f"--iodepth={depth}", "--numjobs=1"]
            job = [f"--rw=rand{kind}", f"--bs={block}", *under_way, f"--size={size}", f"--runtime={milliseconds}ms", "--ramp_time=200ms",
                   "--time_based", "--group_reporting", "--norandommap"]
            row = {"kind": kind, "block": block, "depth": depth, "fio": [], "anabranch": []}
            for n in range(int(repetitions)):
                turn = [("fio", by_fio), ("anabranch", by_anabranch)]
                for name, measure in turn if n % 2 == 0 else reversed(turn):
                    row[name].append(measure(job, kind))
            print(json.dumps(row), flush=True)
            print(f"{place} {kind} {block} {depth}: fio {row['fio'][-1]}, anabranch {row['anabranch'][-1]}", file=sys.stderr)
