#!/bin/bash
# Copies on the server through the kernel's NFSv4.2 client: large ones go on behind their answer (RFC 7862 15.2). Environment:
#   SERVER NFS_PORT EXPORT   where
#   MIB       how much is copied (200)
. "$(dirname "$0")/lib.sh"
: "${NFS_PORT:=2049}" "${EXPORT:=/export}" "${MIB:=200}"
m=/mnt/nfs
check "mount" mount_at $m -t nfs "$SERVER:$EXPORT" -o "vers=4.2,port=$NFS_PORT,proto=tcp,hard,timeo=100,nconnect=4"
mountpoint -q $m || { finish; exit 1; }
d=$m/copy.$$; mkdir $d || exit 1

# range FROM TO BYTES: copy_file_range(2) until all is copied.
cat >/tmp/range.py <<'PY'
import os, sys
a, b, left = os.open(sys.argv[1], os.O_RDONLY), os.open(sys.argv[2], os.O_CREAT | os.O_RDWR), int(sys.argv[3])
while left:
    count = os.copy_file_range(a, b, left)
    assert count > 0, "the source has ended"
    left -= count
PY
range() { timeout 120 python3 /tmp/range.py "$1" "$2" "$3"; }
# called OPERATION: how often the client has sent it for this mount.
called() { awk -v op="$1:" '$1 == "device" { here = $5 == m } here && $1 == op { print $2; exit }' m=$m /proc/self/mountstats; }
more_calls() { local n; n=$(called "$1"); echo "$n times, $2 before"; [ "$n" -gt "$2" ]; }

head -c "${MIB}M" /dev/urandom >$d/from; sync -f $d/from
bytes=$((MIB << 20))
copies() { range $d/from $d/to $bytes && cmp $d/from $d/to; }
check "a large copy" copies
few_copies() { local n; n=$(called COPY); echo "$n COPY"; [ "$n" -ge 1 ] && [ "$n" -le 2 ]; }
check "it went on behind its answer" few_copies
load() { local i; for i in 1 2 3; do dd if=/dev/zero of=$d/load$i bs=64k count=640 conv=fsync 2>/dev/null & done; }
under_load() {
  load; rm -f $d/to; range $d/from $d/to $bytes || return 1
  wait; cmp $d/from $d/to
}
check "the same under load" under_load
two_at_once() {
  range $d/from $d/one $bytes & range $d/from $d/two $bytes || return 1
  wait $! && cmp $d/from $d/one && cmp $d/from $d/two
}
check "two at once" two_at_once
over() { cp $d/one $d/odd && truncate -s $((bytes - 777)) $d/odd && cp --reflink=never $d/odd $d/three && cmp $d/odd $d/three; }
check "cp of an odd length" over
rm -f $d/one $d/two $d/three $d/odd $d/load* $d/to

# A program that is killed ends its copy: nothing is written any more.
truncate -s 8G $d/much
cancels=$(called OFFLOAD_CANCEL)
# until_called OPERATION COUNT: waits until it was called more often than that.
until_called() {
  local tries
  for ((tries = 0; tries < 600; tries++)); do more_calls "$1" "$2" && return 0; sleep 0.1; done
  return 1
}
size() { head -c 1 "$1" >/dev/null && stat -c %s "$1"; }  # opened: the server is asked again
killed() {
  local copies program before after
  copies=$(called COPY)
  python3 /tmp/range.py $d/much $d/to $((8 << 30)) & program=$!
  until_called COPY "$copies" || return 1
  kill -KILL $program; wait $program 2>/dev/null
  until_called OFFLOAD_CANCEL "$cancels" || return 1
  # The piece that was being copied is finished.
  local end=$((SECONDS + 60))
  until before=$(size $d/to); sleep 1; after=$(size $d/to); [ "$before" = "$after" ]; do [ $SECONDS -lt $end ] || break; done
  echo "$before bytes, and $after a second later"
  [ "$before" = "$after" ] && [ "$after" -gt 0 ] && [ "$after" -lt $((8 << 30)) ]
}
check "a killed program's copy ends" killed
check "with OFFLOAD_CANCEL" more_calls OFFLOAD_CANCEL "${cancels:-0}"
rm -rf $d
check "unmount" umount $m
finish
