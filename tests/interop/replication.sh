#!/bin/bash
# A share on one server is a replica of a share on another (docs/replicate.md): both on Btrfs in a file, seen through smbclient, and both
# servers killed at random moments. Needs root, loop devices and btrfs-progs; elsewhere it says so.
#   KILLS    how often a server is killed (4)
#   FILES    with this, only how long 100 changed files among so many take, and nothing is judged
. "$(dirname "$0")/server.sh"
[ "$(id -u)" = 0 ] || { echo "needs root (mounts)"; exit 1; }

# In a mount namespace of its own, so that nothing stays mounted.
if [ -z "${REPLICATION_ALONE:-}" ]; then
  rm -rf "$scratch"
  REPLICATION_ALONE=1 exec unshare -m --propagation slave -- "$0" "$@"
fi
disk=$scratch/disk
end_scratch() {
  cd /
  umount -l "$disk" 2>/dev/null
  rm -rf --one-file-system "$scratch"
}
mkdir "$disk" && truncate -s "${SIZE:-2G}" "$scratch/image"
if ! mkfs.btrfs -q "$scratch/image" >"$scratch/said" 2>&1 || ! mount -o loop "$scratch/image" "$disk" >>"$scratch/said" 2>&1; then
  echo "not tested: Btrfs in a file: $(tail -n 1 "$scratch/said")"; finish; exit
fi
python3 "$top/tests/interop/replication.py" "$ANABRANCH" "$scratch"
