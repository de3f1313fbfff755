#!/bin/bash
# A client of NFS that is gone without a word: its lock gives way once its lease is over. Wants two interfaces: the second one goes to
# a network of its own, with a second client of the kernel, which is cut off while it holds a lock. Environment:
#   SERVER SERVERS NFS_PORT EXPORT   where
#   VERSION   of the client that is lost (4.0); the other one has 4.2
. "$(dirname "$0")/lib.sh"
: "${NFS_PORT:=2049}" "${EXPORT:=/export}" "${VERSION:=4.0}"
second=${SERVERS##* } address=$(ip -4 -o addr show vec1 | awk '{print $4}')
ip netns add second && ip link set vec1 netns second && ip -n second addr add "$address" dev vec1 && ip -n second link set vec1 up
options="port=$NFS_PORT,proto=tcp,hard"
mount_second() { nsenter --net=/run/netns/second unshare --uts bash -c "echo second >/proc/sys/kernel/hostname; mount -t nfs '$second:$EXPORT' /mnt/other -o 'vers=$VERSION,$options'"; }
check "mount" mount_at /mnt/nfs -t nfs "$SERVER:$EXPORT" -o "vers=4.2,$options"
mkdir -p /mnt/other; check "mount over NFSv$VERSION, as a second client" mount_second
for m in nfs other; do mountpoint -q /mnt/$m || { finish; exit 1; }; done
umask 0; : >/mnt/nfs/lost

# lock FILE KIND [hold]: locks a range of the file; with `hold`, tells so and keeps the lock.
lock() {
  python3 -c 'import fcntl, os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR)
fcntl.lockf(fd, getattr(fcntl, sys.argv[2]) | fcntl.LOCK_NB, 100)
if "hold" in sys.argv: print("held", flush=True); time.sleep(600)' "$@"
}
lock /mnt/other/lost LOCK_EX hold >/tmp/held & holder=$!
for ((i = 0; i < 100; i++)); do grep -q held /tmp/held && break; sleep 0.2; done
check "the client has a lock" grep held /tmp/held
is_refused() { local said; said=$(lock /mnt/nfs/lost LOCK_EX 2>&1); echo "$said" | tail -n 1; grep -q BlockingIOError <<<"$said"; }
check "another client is refused" is_refused
ip -n second link set vec1 down
check "another client is still refused, right after the loss" is_refused
began=$SECONDS
check "another client gets it" timeout 120 python3 -c 'import fcntl, os
fcntl.lockf(os.open("/mnt/nfs/lost", os.O_RDWR), fcntl.LOCK_EX, 100)'
echo "  info after $((SECONDS - began)) s"
kill "$holder"; umount -f -l /mnt/other
check "unmount" umount /mnt/nfs
finish
