#!/usr/bin/env python3
"""nlm.py COMMAND ...: byte-range locks for nlm.sh.

hold FILE SECONDS [START]   lock a range, print `held`, and keep it until the time is over
try FILE [START]            lock a range without waiting; prints `granted` or `refused`
wait FILE SECONDS           lock a range however long that takes, at most so long; prints `granted after N.N s`
owner FILE                  who has the range: the number of the process (F_GETLK), or `nobody`
"""
import errno
import fcntl
import os
import signal
import struct
import sys
import time

LENGTH = 100


def lock(file, start=0, wait=False):
    fcntl.lockf(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), LENGTH, start)


def hold(path, seconds, start="0"):
    file = os.open(path, os.O_RDWR)
    lock(file, int(start))
    print("held", flush=True)
    time.sleep(float(seconds))


def attempt(path, start="0"):
    try:
        lock(os.open(path, os.O_RDWR), int(start))
        print("granted")
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        print("refused")


def wait(path, seconds):
    signal.alarm(int(seconds))
    begun = time.monotonic()
    lock(os.open(path, os.O_RDWR), wait=True)
    print(f"granted after {time.monotonic() - begun:.1f} s")


def owner(path):
    asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, LENGTH, 0)
    kind, _, _, _, pid = struct.unpack("hhqqi4x", fcntl.fcntl(os.open(path, os.O_RDWR), fcntl.F_GETLK, asked))
    print("nobody" if kind == fcntl.F_UNLCK else pid)


{"hold": hold, "try": attempt, "wait": wait, "owner": owner}[sys.argv[1]](*sys.argv[2:])
