# Two gateways of a real Ceph cluster (tests/lab/ceph-lab), each in a network namespace of its own, for the scripts that source this. Two
# bridges are the networks of the clients (eth0 of each) and of the storage (eth1 of the gateways). The scripts set:
#   name      of the script, for what it says
#   network   of the clients: the first three numbers of the addresses. The gateways a and b have .1 and .2, a client .3
#   flags     further arguments of the gateways
# ANABRANCH=PROGRAM, built already. Root.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$top/tests/lab/guest/lib.sh"
[ "$(id -u)" = 0 ] || { echo "not tested: $name: namespaces need root"; finish; exit; }
command -v ceph-osd >/dev/null && command -v ceph-mds >/dev/null && command -v ceph >/dev/null || {
  [ -n "${CI:-}" ] && fail "ceph" "not installed" || echo "not tested: $name: Ceph is not installed"
  finish; exit
}
target=${CARGO_TARGET_DIR:-$top/target}/debug
anabranch=${ANABRANCH:-$target/anabranch}
[ -x "$anabranch" ] || { echo "build anabranch first"; exit 1; }
scratch=$(mktemp -d "${TMPDIR:-/tmp}/anabranch-$name.XXXXXX")
net=anabranch-$name-$$
lab=$top/tests/lab/ceph-lab
storage=198.51.100 # RFC 5737
export CEPH_LAB_DIR=$scratch/ceph CEPH_LAB_ADDR=$storage.250
declare -A pid
# Further processes of a script.
clients=()
in_ns() { local node=$1; shift; ip netns exec "$net-$node" "$@"; }
end_all() {
  local p
  for p in ${clients[@]+"${clients[@]}"}; do kill -KILL "$p"; done 2>/dev/null
  for p in "${pid[@]}"; do kill -CONT "$p"; kill -KILL "$p"; done 2>/dev/null
  in_ns hub "$lab" down >/dev/null 2>&1
  for node in a b client hub; do ip netns del "$net-$node" 2>/dev/null; done
  [ "$failed" = 0 ] && rm -rf "$scratch"
}
trap end_all EXIT
in_hub() { ip -n "$net-hub" "$@"; }
# port NODE INTERFACE BRIDGE NAME ADDRESS: an interface of a node, which is the port NAME of a bridge.
port() {
  in_hub link add "$4" type veth peer name "$2" netns "$net-$1" && in_hub link set "$4" master "$3" up || return 1
  ip -n "$net-$1" link set "$2" up && ip -n "$net-$1" addr add "$5/24" dev "$2"
}
nets() {
  ip netns add "$net-hub" && in_hub link set lo up || return 1
  in_hub link add br0 type bridge && in_hub link set br0 up && in_hub link add br1 type bridge && in_hub link set br1 up || return 1
  in_hub addr add "$storage.250/24" dev br1 || return 1
  local node host=0
  for node in a b client; do
    host=$((host + 1))
    ip netns add "$net-$node" && ip -n "$net-$node" link set lo up && port $node eth0 br0 "to-$node" "$network.$host" || return 1
    [ $node = client ] || port $node eth1 br1 "store-$node" "$storage.$host" || return 1
  done
}
nets || { echo "not tested: $name: this machine makes no bridge between namespaces"; finish; exit; }
in_ns hub "$lab" up || exit 1
conf=$CEPH_LAB_DIR/ceph.conf
in_ns hub "$lab" ceph auth get-or-create client.anabranch mds 'allow rw fsname=lab' mon 'profile rbd, allow r fsname=lab' \
  osd 'allow rw tag cephfs data=lab, allow rwx pool=gw.state' >>"$CEPH_LAB_DIR/keyring" || exit 1
in_ns hub /usr/bin/python3 - "$conf" <<'PY' || exit 1
import sys, cephfs
fs = cephfs.LibCephFS(conffile=sys.argv[1], auth_id="admin")
fs.mount()
for name in ("/files", "/more"):
    fs.mkdir(name, 0o777)
    fs.chmod(name, 0o777)
fs.shutdown()
PY
# soon COMMAND...: true within a minute.
soon() { local until=$((SECONDS + 60)); while [ $SECONDS -lt $until ]; do "$@" >/dev/null 2>&1 && return 0; sleep 0.05; done; "$@"; }
# serve NODE [GATEWAY [POOL]]
serve() {
  : >"$scratch/ready-$1"
  setpriv --pdeathsig KILL -- ip netns exec "$net-$1" "$anabranch" serve --state "$scratch/state-$1" --smb off --nfs off --nfs-lease 10 --control 127.0.0.1:8080 --ceph-config "$conf" \
    --cluster-gateway "${2:-$1}" --cluster-pool "${3:-gw.state}" ${flags[@]+"${flags[@]}"} >"$scratch/ready-$1" 2>>"$scratch/log-$1" </dev/null &
  pid[$1]=$!
  soon grep -q '^ready ' "$scratch/ready-$1"
}
show=''
# at NODE COMMAND...: a command of the administrator's of this machine.
at() {
  local node=$1; shift
  [ "$show" = '' ] || echo "$node\$ anabranch $*" >&2
  in_ns "$node" "$anabranch" "$@" --state "$scratch/state-$node" 2>&1 | if [ "$show" = '' ]; then cat; else tee -a /dev/stderr; fi
  return "${PIPESTATUS[0]}"
}
serves() { at "$1" vserver list | grep -q "^$2 *$3 *served "; }
has_place() { at "$1" cluster status | grep -q "has its place"; }
logs() { echo "see $scratch"; tail -n 30 "$scratch"/log-a "$scratch"/log-b; }
