#!/bin/bash
# What one link carries over NFS, what four connections over it carry (nconnect), and what trunked links carry: fio reads and
# writes one file, rounds interleaved, one line `rate WAY read|write MBYTES` for each. Environment:
#   SERVER SERVERS NFS_PORT EXPORT   where; SERVERS has the server's address on each link
#   VERSION       4.1 or 4.2 (4.2)
#   WAYS          of those below (all)
#   ROUNDS        how often (5)
#   MIB           what is moved per link in one measurement (160)
#   SIZE          of the file, in MiB (256)
# Ways: one (one connection), nconnect (four on one link), trunked (the server is mounted by each of its addresses, max_connect=4: the
# client makes each a further connection of the session of the first), discovered (one mount with trunkdiscovery: the client
# asks the server for its addresses).
. "$(dirname "$0")/lib.sh"
: "${NFS_PORT:=2049}" "${EXPORT:=/export}" "${VERSION:=4.2}" "${WAYS:=one nconnect trunked discovered}" "${ROUNDS:=5}" "${MIB:=160}" "${SIZE:=256}"
m=/mnt/nfs
links=$(wc -w <<<"$SERVERS")
opts="vers=$VERSION,port=$NFS_PORT,proto=tcp,hard"

conns() { ss -Htn state established "( dport = :$NFS_PORT )" | awk '{sub(/:[0-9]+$/, "", $4); print $4}'; }
connected_to_all() { local n; n=$(conns | sort -u | wc -l); echo "$n of $links addresses"; [ "$n" = "$links" ]; }
# mount_way WAY
mount_way() {
  local server
  case $1 in
    one) mount_at $m -t nfs "$SERVER:$EXPORT" -o "$opts" ;;
    nconnect) mount_at $m -t nfs "$SERVER:$EXPORT" -o "$opts,nconnect=4" ;;
    trunked)
      mount_at $m -t nfs "$SERVER:$EXPORT" -o "$opts,max_connect=$links" || return 1
      for server in $SERVERS; do [ "$server" = "$SERVER" ] || mount_at "$m.$server" -t nfs "$server:$EXPORT" -o "$opts,max_connect=$links" || return 1; done ;;
    discovered) mount_at $m -t nfs "$SERVER:$EXPORT" -o "$opts,max_connect=$links,trunkdiscovery" ;;
  esac
}
# one WAY OP: MB/s of 1 MiB requests past the page cache, 16 in flight, from the first byte to the last.
one() {
  local bytes factor=1
  case $1 in trunked | discovered) factor=$links ;; esac
  bytes=$(timeout 200 fio --name=rate --filename=$m/rate --size="${SIZE}m" --rw="$2" --bs=1m --direct=1 --ioengine=libaio --iodepth=16 \
    --io_size=$((factor * MIB))m --fallocate=none --output-format=terse --terse-version=3 2>/tmp/said |
    awk -F';' -v op="$2" '{print op == "read" ? $7 : $48}')
  [ "${bytes:-0}" -gt 0 ] || { fail "$1, $2" "$(tail -n 1 /tmp/said)"; return; }
  awk -v c="$1" -v o="$2" -v k="$bytes" 'BEGIN {printf "rate %s %s %.1f\n", c, o, k * 1024 / 1e6}'
}
for ((round = 1; round <= ROUNDS; round++)); do
  for way in $WAYS; do
    check "mount: $way, round $round" mount_way "$way"
    mountpoint -q $m || continue
    [ -e $m/rate ] || head -c "${SIZE}M" /dev/zero >$m/rate
    [ "$round" != 1 ] || [ "$way" != one ] || echo "info $(grep -o 'vers=[^,]*,rsize=[^,]*,wsize=[^,]*' /proc/mounts | head -n 1)"
    ls $m >/dev/null; sleep 1
    [ "$round" != 1 ] || echo "info $way: $(conns | wc -l) connections to $(conns | sort -u | wc -l) addresses"
    case $way in trunked | discovered) check "$way: a connection to each address, round $round" connected_to_all ;; esac
    for op in write read; do one "$way" $op; done
    umount $m
    for server in $SERVERS; do mountpoint -q "$m.$server" && umount "$m.$server"; done
  done
done
finish
