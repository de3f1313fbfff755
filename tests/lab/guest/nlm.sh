#!/bin/bash
# NFSv3 as the kernel's client mounts it by itself: with no option that names a port, and with locks (NLM, NSM). Two clients: the
# guest, and a network namespace of it on the second interface, each with a rpcbind and a rpc.statd of its own. Environment:
#   SERVER SERVERS EXPORT   where
#   SMB_PORT SHARE USER PASS   the same share over SMB
# The host kills and restarts the server when this script prints `kill me`.
. "$(dirname "$0")/lib.sh"
: "${SMB_PORT:=445}" "${SHARE:=share}" "${USER:=user}" "${PASS:=pass}" "${EXPORT:=/export}"
umask 0
here=$(dirname "$0") second=${SERVERS##* } address=$(ip -4 -o addr show vec1 | awk '{print $4}')
m=/mnt/first f=/mnt/first/locked

start_finders

# The second client has a name, a network, and daemons with their files of its own.
ip netns add second && ip link set vec1 netns second && ip -n second link set lo up && ip -n second addr add "$address" dev vec1 && ip -n second link set vec1 up
cat >/tmp/second.sh <<INNER
. $here/lib.sh
echo second >/proc/sys/kernel/hostname
mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /var/lib/nfs
start_finding_daemons
mkdir -p /mnt/second
mount -t nfs -o vers=3 $second:$EXPORT /mnt/second && echo mounted >/tmp/second.mounted || echo failed >/tmp/second.mounted
while [ ! -e /tmp/second.end ]; do sleep 0.2; done
INNER
mkdir -p /mnt/second
nsenter --net=/run/netns/second unshare --uts --mount --propagation private bash /tmp/second.sh >/tmp/second.log 2>&1 &
second_pid=$!
# second_shell COMMAND...: runs a command as the second client.
second_shell() { nsenter --net=/run/netns/second -t $second_pid --uts --mount -- "$@"; }

is_listed() { showmount -e "$SERVER" --no-headers | tee /dev/stderr | grep -qE "^$EXPORT +"; }
knows() {  # PROGRAM VERSION NETWORK
  rpcinfo -p "$SERVER" | awk -v p="$1" -v v="$2" -v n="$3" '$1 == p && $2 == v && $3 == n {found = 1} END {exit !found}' || { rpcinfo -p "$SERVER"; return 1; }
}
check "showmount -e lists the share" is_listed
for program in "100003 3 tcp" "100003 4 tcp" "100005 3 tcp" "100021 4 tcp" "100024 1 tcp" "100024 1 udp" "100000 2 tcp"; do
  # shellcheck disable=SC2086
  check "rpcinfo -p knows $program" knows $program
done
check "rpcinfo calls NLM over TCP" rpcinfo -T tcp "$SERVER" 100021 4
check "rpcinfo calls NSM over UDP" rpcinfo -T udp "$SERVER" 100024 1

check "mount -o vers=3, no further option" mount_at $m -t nfs -o vers=3 "$SERVER:$EXPORT"
mountpoint -q $m || { finish; exit 1; }
check "locks are not local" grep -q " $m nfs .*local_lock=none" /proc/mounts
for ((i = 0; i < 300; i++)); do [ -e /tmp/second.mounted ] && break; sleep 0.1; done
check "the second client mounts" grep -q mounted /tmp/second.mounted
grep -q mounted /tmp/second.mounted || { cat /tmp/second.log; finish; exit 1; }
check "mount over SMB" mount_at /mnt/smb -t cifs "//$SERVER/$SHARE" -o "vers=3.1.1,port=$SMB_PORT,username=$USER,password=$PASS"
check "mount over NFSv4.2" mount_at /mnt/nfs4 -t nfs "$SERVER:$EXPORT" -o vers=4.2
echo content >$f; chmod 666 $f; sync $f

locks() { python3 "$here/nlm.py" "$@"; }
other() { second_shell python3 "$here/nlm.py" "$@"; }
# hold NAME COMMAND...: begins to hold a lock; $holder is the process.
hold() { : >/tmp/held; "$@" >/tmp/held 2>&1 & holder=$!; for ((i = 0; i < 200; i++)); do grep -q held /tmp/held && return 0; kill -0 $holder 2>/dev/null || break; sleep 0.1; done; cat /tmp/held; return 1; }
release() { pkill -P $holder 2>/dev/null; kill $holder 2>/dev/null; wait $holder 2>/dev/null; true; }
says() { local want=$1 got; shift; got=$("$@" 2>&1); [ "$got" = "$want" ] || { echo "said: $got"; return 1; }; }

check "a client locks" says granted locks try $f
hold locks hold $f 60 || fail "the first client holds a lock" "$(cat /tmp/held)"
check "another client is refused" says refused other try /mnt/second/locked
check "another client locks another range" says granted other try /mnt/second/locked 1000
# A process of another machine has a negative number.
check "another client sees that a process of another one has it" bash -c "[[ \"$(other owner /mnt/second/locked)\" = -* ]]"
check "an SMB client is refused" says refused locks try /mnt/smb/locked
check "an NFSv4 client is refused" says refused locks try /mnt/nfs4/locked
other wait /mnt/second/locked 60 >/tmp/waited 2>&1 & waiter=$!
sleep 2
check "a client that wants the lock waits" kill -0 $waiter
begun=$(date +%s%N); release
wait $waiter; took=$((($(date +%s%N) - begun) / 1000000))
check "and has it when it is free" grep -q granted /tmp/waited
# The client asks again by itself after 30 s: sooner is the callback.
check "by a callback, after $took ms" [ $took -lt 15000 ]
check "the lock of an ended process is free" says granted locks try $f

hold locks hold /mnt/smb/locked 60; check "a lock of SMB refuses" says refused other try /mnt/second/locked; release
hold locks hold /mnt/nfs4/locked 60; check "a lock of NFSv4 refuses" says refused other try /mnt/second/locked; release
check "what SMB and NFSv4 have released is free" says granted other try /mnt/second/locked

# The server is killed: its locks are reclaimed, and nobody gets in between.
hold locks hold $f 300 || fail "the first client holds a lock" "$(cat /tmp/held)"
echo "  kill me 1"
reclaimed() {  # the second client is refused before and after the grace period
  local i said
  for ((i = 0; i < 60; i++)); do
    said=$(other try /mnt/second/locked 2>&1)
    [ "$said" = refused ] && return 0
    [ "$said" = granted ] && { echo "the second client got the lock"; return 1; }
    sleep 1
  done
  echo "$said"; return 1
}
check "after a restart of the server the lock is still held" reclaimed
check "and its client still runs" kill -0 $holder
release
free_again() { local i; for ((i = 0; i < 40; i++)); do [ "$(other try /mnt/second/locked 2>&1)" = granted ] && return 0; sleep 1; done; return 1; }
check "and is free when it is released" free_again

# A client that restarts says so, and its locks are free. The process of before is still there and does not know.
hold other hold /mnt/second/locked 300 || fail "the second client holds a lock" "$(cat /tmp/held)"
check "the second client has the lock" says refused locks try $f
second_shell sm-notify -f >/tmp/notified 2>&1
check "when the client has restarted, its locks are free" bash -c "$(declare -f locks); here=$here; for i in \$(seq 100); do [ \"\$(locks try $f)\" = granted ] && exit 0; sleep 0.2; done; cat /tmp/notified; exit 1"
release

check "unmount the second" second_shell umount /mnt/second
touch /tmp/second.end
wait $second_pid
check "unmount" umount $m /mnt/smb /mnt/nfs4
finish
