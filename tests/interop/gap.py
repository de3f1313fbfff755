#!/usr/bin/env python3
"""How long an NFS server is away: calls it every 10 ms, each time on a new connection, until the file STOP exists and a call that began
after that was answered.

gap.py ADDRESS PORT STOP
Prints a line when the first call is answered, and at the end how many were, and the longest time between two answers in ms. Exits 1 if no call was answered after STOP existed. The call is procedure 0 of NFS (RFC 1813 3.3.0), in
a message of RPC (RFC 5531), with a record mark in front.
"""
import asyncio
import os
import struct
import sys
import time

INTERVAL = 0.010
# A client that gives a connection up tries again soon: a SYN that is lost is repeated by the kernel after a second only.
PATIENCE = 0.250
SECONDS_MAX = 600
# xid, CALL, RPC 2, program 100003, version 3, procedure 0, no credentials, no verifier
CALL = struct.pack(">10I", 1, 0, 2, 100003, 3, 0, 0, 0, 0, 0)

answers = []


async def call(address, port):
    reader, writer = await asyncio.open_connection(address, port)
    try:
        writer.write(struct.pack(">I", 0x80000000 | len(CALL)) + CALL)
        mark = await reader.readexactly(4)
        reply = await reader.readexactly(struct.unpack(">I", mark)[0] & 0x7FFFFFFF)
        # xid, REPLY, accepted, an empty verifier, success
        if reply == struct.pack(">6I", 1, 1, 0, 0, 0, 0):
            if not answers:
                print("begun", flush=True)
            answers.append(time.monotonic())
    finally:
        writer.close()


async def attempt(address, port):
    try:
        await asyncio.wait_for(call(address, port), PATIENCE)
    except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError):
        pass


async def main(address, port, stop):
    tasks = set()
    begun = time.monotonic()
    stopped, is_answered = None, False
    while time.monotonic() - begun < SECONDS_MAX:
        if stopped is None and os.path.exists(stop):
            stopped = time.monotonic()
        is_answered = stopped is not None and bool(answers) and answers[-1] > stopped + PATIENCE
        if is_answered:
            break
        task = asyncio.ensure_future(attempt(address, port))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        await asyncio.sleep(INTERVAL)
    if tasks:
        await asyncio.wait(tasks)
    gaps = [later - sooner for sooner, later in zip(answers, answers[1:])]
    print(f"{len(answers)} answers, longest gap {max(gaps, default=0) * 1000:.0f} ms")
    return 0 if is_answered else 1


sys.exit(asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
