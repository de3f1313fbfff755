#!/bin/bash
# How long snapshots take, what writers wait meanwhile, and how long clients wait for the versions of a file among 255 snapshots. No time is
# judged. For docs/measured/snapshots.md:
#   cargo xtask bench snapshots btrfs     on Btrfs in a file, in a mount namespace of its own (root, loop devices, btrfs-progs)
#   cargo xtask bench snapshots cephfs    in CephFS, on a real cluster (tests/lab/ceph-lab)
#   FILES     how many files the share has (100000)
#   REPEATS   how often each time is measured (7)
# Needs the package index of Python (smbprotocol).
kind=${1:-btrfs}
. "$(dirname "$0")/server.sh"
case $kind in
  btrfs) disk_size=8G; . "$(dirname "$0")/btrfs.sh" ;;
  cephfs)
    export CEPH_LAB_DIR=${CEPH_LAB_DIR:-$scratch/ceph} CEPH_LAB_PORT=${CEPH_LAB_PORT:-$((20000 + $$ % 10000))}
    lab=$top/tests/lab/ceph-lab
    trap '"$lab" down >/dev/null 2>&1; end_scratch' EXIT
    "$lab" up || exit 1
    "$lab" ceph fs authorize lab client.anabranch / rws >>"$CEPH_LAB_DIR/keyring" && "$lab" ceph config set mds mds_max_snaps_per_dir 300 || exit 1 ;;
  *) echo "snapshot-times.sh btrfs|cephfs"; exit 2 ;;
esac
# Debian's Python has Ceph's module.
python=$scratch/python
/usr/bin/python3 -m venv --system-site-packages "$python" && "$python/bin/pip" -q install smbprotocol==1.17.0 || exit 1
"$python/bin/python" "$top/tests/interop/snapshot_times.py" "$kind" "$ANABRANCH" "$scratch"
