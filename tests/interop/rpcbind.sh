#!/bin/bash
# How clients of NFSv3 find the server (--portmap): by Debian's rpcbind, which comes and goes, and by the server itself. Runs in a
# network and a /run of its own, so that port 111 and rpcbind's socket are free.
if [ -z "${RPCBIND_INSIDE:-}" ]; then
  [ "$(id -u)" = 0 ] || { echo "needs root (network namespaces)"; exit 1; }
  RPCBIND_INSIDE=1 exec unshare --net --mount --propagation private "$0" "$@"
fi
ip link set lo up && mount -t tmpfs tmpfs /run || exit 1
. "$(dirname "$0")/server.sh"
daemons=()
trap '[ ${#daemons[@]} = 0 ] || kill "${daemons[@]}" 2>/dev/null; end_scratch' EXIT

want_nfs=2049
start_rpcbind() {
  mkdir -p /run/rpcbind
  setpriv --pdeathsig KILL -- rpcbind -f 2>>"$scratch/rpcbind.log" &
  rpcbind=$!; daemons+=($rpcbind)
  local i; for ((i = 0; i < 100; i++)); do [ -S /run/rpcbind.sock ] && return 0; sleep 0.1; done
  cat "$scratch/rpcbind.log"; return 1
}
stop_rpcbind() { kill $rpcbind; wait $rpcbind 2>/dev/null; rm -f /run/rpcbind.sock; }

# eventually COMMAND...: within half a minute.
eventually() { local i; for ((i = 0; i < 60; i++)); do "$@" >/dev/null 2>&1 && return 0; sleep 0.5; done; "$@"; }
not() { if "$@"; then return 1; fi; }
health() { curl -sS "http://127.0.0.1:$CONTROL_PORT/healthz" | tee "$scratch/health" | head -n 1; }
is_healthy() { [ "$(health)" = ok ] || { cat "$scratch/health"; return 1; }; }
alarms() { [ "$(health)" = degraded ] && grep -q "^portmap: .*not registered" "$scratch/health" || { cat "$scratch/health"; return 1; }; }
knows() {  # ADDRESS PROGRAM VERSION NETWORK
  rpcinfo -p "$1" 2>&1 | tee "$scratch/rpcinfo" | awk -v p="$2" -v v="$3" -v n="$4" '$1 == p && $2 == v && $3 == n && $4 == 2049 {found = 1} END {exit !found}' || { cat "$scratch/rpcinfo"; return 1; }
}
knows6() { rpcinfo -s "$1" 2>&1 | tee "$scratch/rpcinfo" | awk -v p="$2" '$1 == p && $3 ~ /tcp6/ {found = 1} END {exit !found}' || { cat "$scratch/rpcinfo"; return 1; }; }
all=("100003 3 tcp" "100003 4 tcp" "100005 3 tcp" "100021 4 tcp" "100024 1 tcp" "100024 1 udp" "100011 1 udp" "100011 2 tcp" "100011 2 udp")
knows_all() { local program; for program in "${all[@]}"; do knows "$1" $program || return 1; done; }
knows_none() { local program; for program in "${all[@]}"; do not knows "$1" $program || { cat "$scratch/rpcinfo"; return 1; }; done; }
exports() { showmount -e "$1" --no-headers 2>&1 | tee "$scratch/said" | grep -qE "^$EXPORT +\(everyone\)" || { cat "$scratch/said"; return 1; }; }

# Without being asked, the server does neither.
must "rpcbind starts" start_rpcbind || { finish; exit 1; }
must "a server starts" start_server
check "nothing is registered unless asked" knows_none 127.0.0.1
must "it ends" stop_server

listen=[::]
must "a server that is to be registered starts" start_server --portmap register
listen=127.0.0.1
check "rpcbind knows all its programs" eventually knows_all 127.0.0.1
check "over IPv6 too" knows6 127.0.0.1 100021
check "showmount -e finds it" exports 127.0.0.1
check "rpcinfo calls NFS, MOUNT and NLM" bash -c "rpcinfo -T tcp 127.0.0.1 100003 3 && rpcinfo -T tcp 127.0.0.1 100005 3 && rpcinfo -T tcp 127.0.0.1 100021 4"
check "rpcinfo calls NSM over UDP" rpcinfo -T udp 127.0.0.1 100024 1
check "nothing is amiss" is_healthy
must "SIGTERM ends it" stop_server
check "then nothing is registered" knows_none 127.0.0.1

# A server that is killed leaves its registrations, and the next one takes them.
must "a server starts" start_server --portmap on
check "it is registered" eventually knows_all 127.0.0.1
kill_server
must "the next one starts" start_server --portmap register
check "it is registered" eventually knows_all 127.0.0.1
check "and nothing is amiss" is_healthy
must "it ends" stop_server

# Another program's registration is left alone.
setpriv --pdeathsig KILL -- rpc.statd -F --no-notify 2>>"$scratch/statd.log" & statd=$!; daemons+=($statd)
check "rpc.statd is registered" eventually rpcinfo -T udp 127.0.0.1 100024 1
must "a server starts beside rpc.statd" start_server --portmap register
check "an alarm says so" eventually alarms
check "the log says which program" grep -q "another program of this machine serves program 100024" "$scratch/server.log"
check "what is free is registered" eventually knows 127.0.0.1 100021 4 tcp
kill $statd; wait $statd 2>/dev/null
must "it ends" stop_server
check "rpc.statd was left alone" rpcinfo -p 127.0.0.1
stop_rpcbind

must "a server starts without rpcbind" start_server --portmap register
check "an alarm says so" eventually alarms
must "rpcbind comes" start_rpcbind
check "the server is registered" eventually knows_all 127.0.0.1
check "and the alarm is over" eventually is_healthy
must "it ends" stop_server
check "port 111 is taken" bash -c "'$ANABRANCH' serve --share x='$share_dir' --user u=1:password --smb off --nfs 127.0.0.1:0 --control 127.0.0.1:0 --state '$scratch/other' --portmap serve; [ \$? = 4 ]"
stop_rpcbind

must "a server that answers port 111 starts" start_server --portmap on
check "it knows all its programs" knows_all 127.0.0.1
check "showmount -e finds it" exports 127.0.0.1
check "rpcinfo calls NSM over UDP" rpcinfo -T udp 127.0.0.1 100024 1
check "nobody registers with it" not rpcinfo -d 100003 3
check "it does not list programs over UDP" python3 - <<'PYTHON'
import socket, struct
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(10)
s.sendto(struct.pack(">10I", 7, 0, 2, 100000, 2, 4, 0, 0, 0, 0), ("127.0.0.1", 111))
reply = s.recv(4096)
assert struct.unpack(">6I", reply) == (7, 1, 0, 0, 0, 3), reply
PYTHON
must "SIGTERM ends it" stop_server
check "no panic, no password in the log" log_is_clean
finish
