# Sourced by scripts beside it, after server.sh: a Btrfs file system in a file, mounted at $disk in a mount namespace of the script's own.
# $disk_size is its size (512M). Needs root, loop devices and btrfs-progs; elsewhere the script says so and ends. $ns is a name for a network
# namespace, which is removed.
[ "$(id -u)" = 0 ] || { echo "needs root (mounts, network namespaces)"; exit 1; }
if [ -z "${BTRFS_ALONE:-}" ]; then
  rm -rf "$scratch"
  BTRFS_ALONE=1 exec unshare -m --propagation slave -- "$0" "$@"
fi
ns=anabranch-$$ disk=$scratch/disk
# This one removes nothing of what is mounted.
end_scratch() {
  [ -z "$server_pid" ] || kill -KILL "$server_pid" 2>/dev/null
  [ "$failed" = 0 ] || grep -v ' INFO ' "$scratch/server.log" 2>/dev/null | tail -n 10
  cd /
  umount -l "$disk" "$scratch/ext4" 2>/dev/null
  rm -rf --one-file-system "$scratch"
  ip netns del "$ns" 2>/dev/null
}
mkdir "$disk" && truncate -s "${disk_size:-512M}" "$scratch/image"
if ! mkfs.btrfs -q "$scratch/image" >"$scratch/said" 2>&1 || ! mount -o loop "$scratch/image" "$disk" >>"$scratch/said" 2>&1; then
  echo "not tested: Btrfs in a file: $(tail -n 1 "$scratch/said")"; finish; exit
fi
