#!/bin/bash
# A share on one server is a replica of a share on another (docs/replicate.md): both on Btrfs in a file, seen through smbclient, and both
# servers killed at random moments. Needs root, loop devices and btrfs-progs; elsewhere it says so.
#   KILLS    how often a server is killed (4)
#   FILES    with this, only how long the first transfer of so many files takes, and later ones of which 100 were changed, or none; each
#            server has a network namespace of its own then. No time is judged. For docs/measured/replication.md:
#              FILES=100000 REPEATS=7 SIZE=8G ANABRANCH=PROGRAM tests/interop/replication.sh
#   REPEATS  how often each of these is measured (5)
. "$(dirname "$0")/server.sh"
disk_size=${SIZE:-2G}
. "$(dirname "$0")/btrfs.sh"
python3 "$top/tests/interop/replication.py" "$ANABRANCH" "$scratch"
