#!/bin/bash
# A vserver whose gateway dies, in a real Ceph cluster (tests/lab/ceph-lab): two gateways and the clients, each in a network namespace of
# its own, made by the commands of docs/cluster.md. The owner is killed, stopped for longer than its lease, cut off from its clients, and
# cut off from Ceph. A client of ours connects anew every 10 ms; another one holds an open file and a lock, and writes. (root)
#   takeover.sh [--show]    also prints what the commands print
#   VSERVERS=PROGRAM        the example `vservers` of crates/house/gateway, built already
vservers=${VSERVERS:-${CARGO_TARGET_DIR:-$(dirname "$0")/../../target}/debug/examples/vservers}
[ -x "$vservers" ] || { echo "build the example vservers first"; exit 1; }
name=takeover network=192.0.2 flags=()
. "$(dirname "$0")/two-gateways.sh"
. "$(dirname "$0")/faults.sh"
show=${1:-}
# refused NAME TEXT COMMAND...: the command fails, and says this.
refused() {
  local name=$1 text=$2 said; shift 2
  if said=$("$@"); then fail "$name" "it was not refused: $said"
  elif grep -q -- "$text" <<<"$said"; then pass "$name"; else fail "$name" "$said"; fi
}

serve a; serve b
check "two gateways start that are in no cluster yet" eval 'grep -q "^ready" "$scratch/ready-a" && grep -q "^ready" "$scratch/ready-b"'
refused "without a cluster it is said how to make one" "nobody has made a cluster in the pool gw.state" at a cluster status
check "one makes it" at a cluster init
refused "there is one cluster in a pool" "there is a cluster in the pool gw.state already" at b cluster init
check "the other joins" at b cluster join
check "both are there" eval '[ "$(at a cluster status | grep -c " there ")" = 2 ]'
address=192.0.2.10%eth0/24
check "a vserver is made" at a vserver create files --address $address --share data=cephfs:/files --smb off
refused "a name is of one vserver" "there is a vserver files already" at b vserver create files --address 192.0.2.11%eth0 --share x=cephfs:/more
refused "an address is of one vserver" "has the address 192.0.2.10" at b vserver create more --address 192.0.2.10%eth0 --share x=cephfs:/more
refused "a gateway that is none of the cluster is told" "there is no gateway c" at a vserver move files c
refused "a directory that is not there is told" "there is no such directory" at a vserver create more --address 192.0.2.11%eth0 --share x=cephfs:/none
refused "an interface that is not there is told" "no interface eth9" at a vserver create more --address 192.0.2.11%eth9 --share x=cephfs:/more
check "what could not be served is not kept" eval '! at a vserver list | grep -q "^more"'
refused "who serves a vserver does not leave" "is to serve the vserver files" at a cluster leave
check "a vserver moves" at a vserver move files b
check "the other serves it" serves a files b
check "a gateway is drained" at b vserver drain
check "and its vserver is elsewhere" serves a files a
refused "nothing comes to a gateway that is drained" "the gateway b is drained" at a vserver move files b
check "until it joins again" at b cluster join

owner=a other=b
takeover kill killed
metrics() { in_ns "$1" python3 -c "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:8080/metrics', timeout=30).read().decode())"; }
check "metrics tell the takeover and its phases" eval 'metrics b >"$scratch/metrics" && grep -q "^anabranch_vserver_takeovers_total{vserver=\"files\"} 1$" "$scratch/metrics" &&
  grep -q "^anabranch_vserver_takeover_seconds{vserver=\"files\",phase=\"fence\"} 0" "$scratch/metrics" && grep -q "^anabranch_cluster_place 1$" "$scratch/metrics"'
check "a killed gateway that is back takes the address away which it has left" soon eval '! has_address a'
check "the vserver goes back to it" at a vserver move files a
owner=a other=b
takeover stop stopped
check "the owner that was stopped says that it serves nothing any more" soon grep -q 'the vserver is not served here any more' "$scratch/log-a"
check "it has the address no more" soon eval '! has_address a'
# Port 2049 in the state TCP_LISTEN.
check "and listens nowhere any more" soon eval '! in_ns a grep -q ":0801 00000000:0000 0A " /proc/net/tcp'
check "the other serves the vserver" serves a files b

takeover clients unplugged
check "unplugged: it was said why" grep -q 'the gateway b is not reached by clients: the vserver comes to the gateway a' "$scratch/log-b"
check "unplugged: the vserver does not go back by itself" serves a files a
takeover storage cut-off
check "cut off: the vserver was taken over by the other" serves a files b

# The metadata server ends the session of the owner, which is b.
session_of_b() {
  in_ns hub "$lab" ceph tell "$(active_mds)" session ls 2>/dev/null | python3 -c '
import json, sys
print([s["id"] for s in json.load(sys.stdin) if "'"$storage"'.2:" in s["inst"] and s["client_metadata"].get("uuid", "").startswith("anabranch")][-1])'
}
epoch() { at a vserver list | awk '$1 == "files" { print $4 }'; }
ip netns exec "$net-client" "$vservers" hold 192.0.2.10:2049 evicted 12 >"$scratch/hold-evicted" 2>&1 &
hold=$!
soon grep -q '^writing' "$scratch/hold-evicted"
before=$(epoch)
check "evicted: the session of the owner is ended" in_ns hub "$lab" ceph tell "$(active_mds)" client evict "id=$(session_of_b)"
check "evicted: the owner notices" soon grep -q 'the Ceph cluster has ended the session of this gateway: the vserver begins anew' "$scratch/log-b"
check "evicted: it serves the vserver again, in another epoch" soon eval 'serves a files b && [ "$(epoch)" -gt "$before" ]'
wait $hold
check "evicted: the open file and the lock are back, and what was acknowledged is there" [ $? = 0 ]
cat "$scratch/hold-evicted"

# No metadata server answers when the owner dies.
mds() { local one; for one in a b; do kill "-$1" "$(cat "$CEPH_LAB_DIR/run/mds.$one.pid")"; done; }
mds STOP
kill -KILL "${pid[b]}"; wait "${pid[b]}" 2>/dev/null; unset 'pid[b]'
check "silent: the other says what it waits for" soon grep -q 'is not ended yet: the Ceph cluster has not answered' "$scratch/log-a"
check "silent: so does the list of vservers" soon eval 'at a vserver list | grep -q "the Ceph cluster has not answered"'
refused "silent: it begins others meanwhile, as far as they can" "the storage of cephfs:/more does not answer" at a vserver create more --address 192.0.2.11%eth0 --share x=cephfs:/more --smb off
mds CONT
check "silent: it takes over when one answers again" soon serves a files a
serve b
check "silent: the gateway that died is back" eval 'soon eval "at b cluster status | grep -q \"has its place\""'
check "silent: and has the vserver again" at a vserver move files b
kill -TERM "${pid[b]}"; wait "${pid[b]}"
check "a gateway stops as it should" [ $? = 0 ]
unset 'pid[b]'
check "and its vserver is served" soon serves a files a
[ "$show" = '' ] || { at a cluster status; at a vserver list; } >/dev/null
refused "who is not there does not leave while it has vservers" "there is no gateway" at a cluster leave c
check "who is not there is taken out" at a cluster leave b
check "a vserver ends" at a vserver remove files

serve b a
check "a name that another gateway has is told" soon grep -q "another gateway.* has the name a" "$scratch/log-b"
kill -TERM "${pid[b]}"; wait "${pid[b]}"; rm -rf "$scratch/state-b"; : >"$scratch/log-b"
serve b b none
check "a pool that is not there is told" soon grep -q "has no pool none" "$scratch/log-b"
kill -TERM "${pid[b]}"; wait "${pid[b]}"; unset 'pid[b]'
[ "$failed" = 0 ] || logs
finish
