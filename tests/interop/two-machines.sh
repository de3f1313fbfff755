#!/bin/bash
# Two machines and one disk: two servers, each in a network namespace with a name of its own, with one state directory, one share and one
# service address for IPv4 and one for IPv6; clients are in a third namespace on the same bridge. The owner is killed under load with its
# link cut, as a cluster manager fences a machine; or it ends as it should.   (about half a minute)
#   two-machines.sh         all checks
#   two-machines.sh gap N   N takeovers, and the longest time without an answer in each
. "$(dirname "$0")/server.sh"
mode=${1:-checks}
net=anabranch-two-$$
V4=192.0.2.10 V6=2001:db8:2::10
nodes='a b client'
declare -A pid

in_ns() { local node=$1; shift; ip netns exec "$net-$node" "$@"; }
# nets: a bridge, and on it the two machines and the clients.
nets() {
  [ "$(id -u)" = 0 ] || { echo "this needs root (network namespaces)"; return 1; }
  ip netns add "$net-hub" 2>/dev/null || { echo "this machine makes no network namespaces"; return 1; }
  ip -n "$net-hub" link add br0 type bridge 2>/dev/null || { echo "this kernel has no bridge"; return 1; }
  ip -n "$net-hub" link set br0 up
  local node host=0
  for node in $nodes; do
    host=$((host + 1))
    ip netns add "$net-$node" && ip -n "$net-hub" link add "to-$node" type veth peer name eth0 netns "$net-$node" || return 1
    ip -n "$net-hub" link set "to-$node" master br0 up
    ip -n "$net-$node" link set lo up && ip -n "$net-$node" link set eth0 up || return 1
    ip -n "$net-$node" addr add "192.0.2.$host/24" dev eth0 && ip -n "$net-$node" addr add "2001:db8:2::$host/64" dev eth0 nodad || return 1
  done
  # What a neighbour is told is all that the client learns: by itself it would not look again for an hour.
  local family
  for family in ipv4 ipv6; do
    in_ns client sh -c "cd /proc/sys/net/$family/neigh/eth0 && echo 3600000 >base_reachable_time_ms && echo 3600 >delay_first_probe_time" || return 1
  done
}
remove_nets() {
  local node
  for node in "${!pid[@]}"; do kill -KILL "${pid[$node]}" 2>/dev/null; done
  for node in $nodes hub; do ip netns del "$net-$node" 2>/dev/null; done
  true
}

# serve NODE FLAG...: starts a server on this machine.
serve() {
  local node=$1; shift
  : >"$scratch/ready-$node"
  # shellcheck disable=SC2016
  setpriv --pdeathsig KILL -- ip netns exec "$net-$node" unshare --uts sh -c 'hostname "$0" && exec "$@"' "node-$node" \
    "$ANABRANCH" serve --config "$scratch/anabranch.toml" "$@" >"$scratch/ready-$node" 2>>"$scratch/log-$node" </dev/null &
  pid[$node]=$!
}
# soon COMMAND...: true within a minute.
soon() { local tries; for ((tries = 0; tries < 1200; tries++)); do "$@" >/dev/null 2>&1 && return 0; sleep 0.05; done; "$@"; }
serves() { grep '^ready ' "$scratch/ready-$1" || { tail -n 5 "$scratch/log-$1"; return 1; }; }
says() { grep -q -- "$2" "$scratch/log-$1" || { tail -n 5 "$scratch/log-$1"; return 1; }; }
# stands_by NODE FOR
stands_by() { says "$1" "standing by: the state directory .* is in use by process ${pid[$2]} on node-$2\$"; }
# crash NODE: the machine is away, as one without power is: none of its last words is heard.
crash() {
  ip -n "$net-hub" link set "to-$1" down; kill -KILL "${pid[$1]}"
  wait "${pid[$1]}" 2>/dev/null; unset "pid[$1]"
}
# ends NODE: SIGTERM ends it, with status 0.
ends() {
  local p=${pid[$1]} status
  kill -TERM "$p"; soon gone "$p" || return 1
  wait "$p"; status=$?; unset "pid[$1]"
  [ $status = 0 ] || { echo "exit status $status"; return 1; }
}
gone() { ! kill -0 "$1" 2>/dev/null; }
# has NODE, lacks NODE: both service addresses.
has() { ip -n "$net-$1" -o addr show dev eth0 | grep -q " $V4/" && ip -n "$net-$1" -o addr show dev eth0 | grep -q " $V6/"; }
lacks() { ! ip -n "$net-$1" -o addr show dev eth0 | grep -e " $V4/" -e " $V6/"; }
mac() { in_ns "$1" cat /sys/class/net/eth0/address; }
# neighbour NODE: the client's kernel sends what is for the service addresses to this machine.
neighbour() {
  local address
  for address in $V4 $V6; do
    ip -n "$net-client" neigh show "$address" dev eth0 | grep -q "lladdr $(mac "$1")" || { ip -n "$net-client" neigh show "$address" dev eth0; return 1; }
  done
}
silent() { ! in_ns "$1" ss -Hltn | grep .; }
# smb ADDRESS COMMAND
smb() { in_ns client timeout 60 smbclient "//$1/$SHARE" -U "$SMB_USER%$SMB_PASS" -c "$2" 2>&1; }
listed() { local out; out=$(smb "$1" ls); echo "$out"; grep -q '^  first  ' <<<"$out"; }
url() { echo "nfs://$V4/$SHARE/$1?version=$2&nfsport=2049&mountport=2049&uid=1000&gid=1000"; }
nfs_reads() { [ "$(in_ns client timeout 60 nfs-cat "$(url first "$1")")" = first ]; }

# measure FILE, then `measured FILE`: how long nobody is answered meanwhile.
measure() {
  rm -f "$scratch/stop"
  in_ns client python3 "$top/tests/interop/gap.py" "$V4" 2049 "$scratch/stop" >"$1" 2>&1 &
  measuring=$!
  soon grep begun "$1"
}
measured() { touch "$scratch/stop"; wait "$measuring"; }
# load: writes files one after another and notes those that were acknowledged, until the server is away.
load() {
  local n
  for ((n = 1; n <= 2000; n++)); do
    echo "load $n" >"$scratch/load-$n"
    in_ns client timeout 5 nfs-cp "$scratch/load-$n" "$(url "load-$n" 3)" >/dev/null 2>&1 || return 0
    echo "$n" >>"$scratch/acknowledged"
  done
}
# Each write that was acknowledged is there.
all_there() {
  local n count=0
  while read -r n; do cmp "$scratch/load-$n" "$share_dir/load-$n" || return 1; count=$((count + 1)); done <"$scratch/acknowledged"
  echo "$count files"; [ $count -gt 0 ]
}
loaded() { [ "$(wc -l <"$scratch/acknowledged")" -ge 3 ]; }

trap 'end_scratch; remove_nets' EXIT
if ! why=$(nets); then
  echo "not tested: two machines: $why"
  for tool in ip ss smbclient nfs-cp; do [ -z "${CI:-}" ] || check "$tool, which scripts/install-test-deps installs" command -v $tool; done
  finish; exit
fi
share_dir=$scratch/disk/share
mkdir -p "$share_dir" && mkdir -m 700 "$scratch/disk/state" && chown 1000:1000 "$share_dir"
chmod 755 "$scratch" "$scratch/disk"; : >"$scratch/server.log"
cat >"$scratch/anabranch.toml" <<TOML
smb = ["$V4:445", "[$V6]:445"]
nfs = ["$V4:2049", "[$V6]:2049"]
control = "$V4:8443"
service-address = ["$V4%eth0/24", "$V6%eth0/64"]
state = "$scratch/disk/state"
smb-signing = "$SIGNING"
nfs-lease = 10
continuous-availability = ["$SHARE"]

[[share]]
name = "$SHARE"
directory = "$share_dir"

[[user]]
name = "$SMB_USER"
password = "$SMB_PASS"
uid = 1000
gid = 1000
TOML
chmod 600 "$scratch/anabranch.toml"
echo first >"$share_dir/first"; chown 1000:1000 "$share_dir/first"

if [ "$mode" = gap ]; then
  serve a --wait-for-state; soon serves a || { finish; exit 1; }
  owner=a other=b
  for ((run = 1; run <= ${2:-5}; run++)); do
    serve $other --wait-for-state; soon stands_by $other $owner || { finish; exit 1; }
    measure "$scratch/gap"
    crash $owner; soon serves $other; measured
    echo "kill -9 of $owner: $(tail -n 1 "$scratch/gap")"
    ip -n "$net-hub" link set "to-$owner" up
    : >"$scratch/log-$owner"
    swap=$owner owner=$other other=$swap
  done
  exit
fi

# refused STATUS WORDS FLAG...
refused() {
  local status=$1 words=$2 out; shift 2
  out=$(in_ns a timeout 60 "$@" 2>&1 </dev/null); local rc=$?
  echo "$out" | tail -n 2; [ $rc = "$status" ] && grep -q -- "$words" <<<"$out"
}
check "a service address without an interface is refused" refused 2 'names no interface' "$ANABRANCH" serve --config "$scratch/anabranch.toml" --service-address $V4
check "one on an interface that is not there is refused" refused 4 'there is no interface eth7' "$ANABRANCH" serve --config "$scratch/anabranch.toml" --service-address $V4%eth7
check "without the capabilities, the drop-in is named" refused 4 'lacks CAP_NET_ADMIN and CAP_NET_RAW' setpriv --bounding-set=-net_admin,-net_raw "$ANABRANCH" serve --config "$scratch/anabranch.toml"
check "an address that cannot be listened on is refused" refused 4 'does not have the address' "$ANABRANCH" serve --config "$scratch/anabranch.toml" --smb 203.0.113.9:445
check "nothing is left of them" lacks a

serve a --wait-for-state
must "the first machine serves" soon serves a || { finish; exit 1; }
check "it has the addresses" has a
for address in $V4 $V6; do check "SMB at $address" listed "$address"; done
for version in 3 4; do check "NFSv$version" nfs_reads $version; done
check "the client knows the first machine" neighbour a

serve b --wait-for-state
must "the second machine stands by for the first one" soon stands_by b a
check "it has no address" lacks b
check "it listens nowhere" silent b
must "SIGTERM ends a server that stands by" ends b
: >"$scratch/log-b"
serve b --wait-for-state
must "it stands by again" soon stands_by b a
slow() { kill -STOP "${pid[a]}"; sleep 1; kill -CONT "${pid[a]}"; ! serves b; }
check "a machine that is only slow keeps the state" slow

: >"$scratch/acknowledged"
load & loading=$!
must "a client calls all the time" measure "$scratch/gap"
must "files are written" soon loaded
crash a
must "the second machine takes over from one that was killed" soon serves b || { finish; exit 1; }
check "the client was told, for IPv4 and IPv6" soon neighbour b
check "it has the addresses" has b
for address in $V4 $V6; do check "SMB at $address, after the takeover" listed "$address"; done
for version in 3 4; do check "NFSv$version, after the takeover" nfs_reads $version; done
measured; wait $loading
check "each write that was acknowledged is there" all_there
echo "  kill -9: $(tail -n 1 "$scratch/gap")"

check "what a killed server has left is on its machine" has a
ip -n "$net-hub" link set to-a up
: >"$scratch/log-a"
serve a --wait-for-state
must "its next server stands by for the second machine" soon stands_by a b
check "and has taken away what was left" soon lacks a
check "commands find the server that serves, from both machines" eval \
  'in_ns a "$ANABRANCH" status --state "$scratch/disk/state" && in_ns b "$ANABRANCH" status --state "$scratch/disk/state"'

must "a client calls all the time" measure "$scratch/gap"
must "SIGTERM ends the second machine's server" ends b
check "it has taken its addresses away" lacks b
must "the first machine takes over" soon serves a
check "the client was told" soon neighbour a
check "SMB at $V4, once more" listed "$V4"
measured
echo "  SIGTERM: $(tail -n 1 "$scratch/gap")"
must "SIGTERM ends it" ends a
check "no address is left" lacks a

# Addresses that others manage.
for address in $V4/24 $V6/64; do ip -n "$net-a" addr add "$address" dev eth0 $([ $address = $V4/24 ] || echo nodad); done
: >"$scratch/log-a"
serve a
must "a server serves at addresses that were there" soon serves a
check "it says that they stay" says a "stays when the server ends"
must "SIGTERM ends it, too" ends a
check "they have stayed" has a
check "no log shows a panic" eval '! grep -n panicked "$scratch"/log-*'
finish
