#!/usr/bin/env python3
"""Calls a server that is stopped on connections that were there before, and counts the answers that come afterwards.

late.py ADDRESS PORT
Connects, and prints "connected" when each connection was answered. After a line of input it calls on each, and prints "called". After the
next line it waits until each connection has ended, at most 10 s, and prints how many calls were answered. The call is procedure 0 of NFS
(RFC 1813 3.3.0), in a message of RPC (RFC 5531), with a record mark in front.
"""
import select
import socket
import struct
import sys
import time

CONNECTIONS = 16
PATIENCE = 30
WAIT = 10
# xid, CALL, RPC 2, program 100003, version 3, procedure 0, no credentials, no verifier
CALL = struct.pack(">10I", 1, 0, 2, 100003, 3, 0, 0, 0, 0, 0)
RECORD = struct.pack(">I", 0x80000000 | len(CALL)) + CALL
# record mark, xid, REPLY, accepted, an empty verifier, success
ANSWER = struct.pack(">7I", 0x80000000 | 24, 1, 1, 0, 0, 0, 0)


def connect(address, port):
    connection = socket.create_connection((address, port), PATIENCE)
    connection.sendall(RECORD)
    if connection.recv(len(ANSWER), socket.MSG_WAITALL) != ANSWER:
        raise SystemExit("the server does not answer")
    return connection


def main(address, port):
    connections = [connect(address, port) for _ in range(CONNECTIONS)]
    print("connected", flush=True)
    sys.stdin.readline()
    for connection in connections:
        connection.sendall(RECORD)
    print("called", flush=True)
    sys.stdin.readline()
    answers, until = 0, time.monotonic() + WAIT
    while connections and time.monotonic() < until:
        for connection in select.select(connections, [], [], 0.1)[0]:
            try:
                received = connection.recv(len(ANSWER))
            except OSError:
                received = b""
            answers += bool(received)
            if not received:
                connections.remove(connection)
    print(f"{answers} answers, {len(connections)} connections are left")


main(sys.argv[1], int(sys.argv[2]))
