#!/bin/bash
# A share on one server is a replica of a share on another (docs/replicate.md): both on Btrfs in a file, seen through smbclient, and both
# servers killed at random moments. Needs root, loop devices and btrfs-progs; elsewhere it says so.
#   KILLS    how often a server is killed (4)
#   FILES    with this, only how long 100 changed files among so many take, and nothing is judged
. "$(dirname "$0")/server.sh"
disk_size=${SIZE:-2G}
. "$(dirname "$0")/btrfs.sh"
python3 "$top/tests/interop/replication.py" "$ANABRANCH" "$scratch"
