#!/bin/bash
# What one channel carries and what several carry: fio reads and writes one file over SMB, rounds
# interleaved, one line `rate CHANNELS read|write MBYTES` for each. Environment:
#   SERVER SMB_PORT SHARE USER PASS   where and as whom; the server must advertise its interfaces
#   CHANNELS      channels compared with one (4)
#   ROUNDS        how often (5)
#   MIB           what is moved per channel in one measurement (160)
#   MOUNT_OPTS    extra mount options
. "$(dirname "$0")/lib.sh"
: "${SMB_PORT:=445}" "${SHARE:=share}" "${USER:=user}" "${PASS:=pass}" "${CHANNELS:=4}" "${ROUNDS:=5}" "${MIB:=160}"
m=/mnt/smb
opts="vers=3.1.1,port=$SMB_PORT,username=$USER,password=$PASS,nosharesock${MOUNT_OPTS:+,$MOUNT_OPTS}"

connected_to() { ss -Htn state established "( dport = :$SMB_PORT )" | awk '{sub(/:[0-9]+$/, "", $4); print $4}' | sort -u | wc -l; }
# one CHANNELS OP: MB/s of 1 MiB requests past the page cache, 16 in flight, from the first byte to the last.
one() {
  local bytes
  bytes=$(timeout 120 fio --name=rate --filename=$m/rate --size=256m --rw="$2" --bs=1m --direct=1 --ioengine=libaio --iodepth=16 \
    --io_size=$(($1 * MIB))m --fallocate=none --output-format=terse --terse-version=3 2>/tmp/said |
    awk -F';' -v op="$2" '{print op == "read" ? $7 : $48}')
  [ "${bytes:-0}" -gt 0 ] || { fail "$1 channels, $2" "$(tail -n 1 /tmp/said)"; return; }
  awk -v c="$1" -v o="$2" -v k="$bytes" 'BEGIN {printf "rate %s %s %.1f\n", c, o, k * 1024 / 1e6}'
}
for ((round = 1; round <= ROUNDS; round++)); do
  for n in 1 "$CHANNELS"; do
    o=$opts; [ "$n" = 1 ] || o="$opts,multichannel,max_channels=$n"
    check "mount with $n channels, round $round" mount_at $m -t cifs "//$SERVER/$SHARE" -o "$o"
    mountpoint -q $m || continue
    [ "$round" != 1 ] || [ "$n" != 1 ] || { head -c 256M /dev/zero >$m/rate; echo "info $(grep -o 'rsize=[^)]*bsize=[0-9]*' /proc/mounts | head -n 1)"; }
    sleep 2   # further channels come up after the mount
    [ "$(connected_to)" = "$n" ] || fail "$n channels over interfaces of their own" "connected to $(connected_to) addresses"
    for op in write read; do one "$n" $op; done
    umount $m
  done
done
finish
