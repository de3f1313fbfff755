#!/bin/bash
# What gateways agree on, kept in a real Ceph cluster (tests/lab/ceph-lab), by examples/gateways.rs of crates/house/rados. All of it is in
# a network of its own. (root)
#   cluster.sh [--measure]    also prints how long the operations take
#   GATEWAYS=PROGRAM          the example, built already
top=$(cd "$(dirname "$0")/../.." && pwd)
if [ -z "${CLUSTER_NET:-}" ] && [ "$(id -u)" = 0 ]; then exec env CLUSTER_NET=1 unshare -n -- "$0" "$@"; fi
. "$top/tests/lab/guest/lib.sh"
[ "$(id -u)" = 0 ] || { echo "not tested: cluster: a network of its own needs root"; finish; exit; }
ip link set lo up || exit 1
command -v ceph-osd >/dev/null && command -v ceph-mds >/dev/null && command -v ceph >/dev/null || {
  [ -n "${CI:-}" ] && fail "ceph" "not installed" || echo "not tested: cluster: Ceph is not installed"
  finish; exit
}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/anabranch-cluster.XXXXXX")
export CEPH_LAB_DIR=$scratch/ceph
lab=$top/tests/lab/ceph-lab
owner='' taker=''
trap 'for p in $owner $taker; do kill -KILL "$p" 2>/dev/null; done; "$lab" down >/dev/null 2>&1; rm -rf "$scratch"' EXIT
gateways=${GATEWAYS:-${CARGO_TARGET_DIR:-$top/target}/debug/examples/gateways}
[ -n "${GATEWAYS:-}" ] || cargo build -q --locked --workspace --example gateways --manifest-path "$top/Cargo.toml" || exit 1
"$lab" up || exit 1
conf=$CEPH_LAB_DIR/ceph.conf
# With no more rights than the program's advice gives.
user=client.anabranch
"$lab" ceph auth get-or-create "$user" mon 'profile rbd' osd 'allow rwx pool=gw.state' >>"$CEPH_LAB_DIR/keyring" || exit 1
run() { timeout 120 "$gateways" "$conf" "$user" gw.state "$@"; }

# refused NAME EXPECTED COMMAND...: the command fails and says so.
refused() {
  local name=$1 expected=$2 said; shift 2
  if said=$(timeout 120 "$@" 2>&1); then fail "$name" "nothing is refused"; return; fi
  if [[ $said == *"$expected"* ]]; then pass "$name"; else fail "$name" "$said"; fi
}
refused "a configuration file that is not there is named" "Ceph's configuration file $scratch/none.conf: No such file" \
  "$gateways" "$scratch/none.conf" client.admin gw.state conformance
refused "a pool that is not there is named" "the Ceph cluster has no pool none" "$gateways" "$conf" client.admin none conformance
why="there is no key here, or the cluster has another one"
refused "a user who does not exist is named" "does not let client.nobody in: $why" "$gateways" "$conf" client.nobody gw.state conformance
sed "s|^ *keyring = .*|  keyring = $scratch/keyring|" "$conf" >"$scratch/wrong.conf"
refused "a missing key is told" "does not let client.admin in: $why" "$gateways" "$scratch/wrong.conf" client.admin gw.state conformance
ceph-authtool --create-keyring "$scratch/keyring" --gen-key -n client.admin >/dev/null
refused "a wrong key is told" "does not let client.admin in: $why" "$gateways" "$scratch/wrong.conf" client.admin gw.state conformance
sed "/^ *mon host = /d; /^ *mon initial members = /d" "$conf" >"$scratch/nowhere.conf"
refused "a file without monitors is told" "$scratch/nowhere.conf names no monitor" "$gateways" "$scratch/nowhere.conf" client.admin gw.state conformance
sed "s|v2:127.0.0.1:[0-9]*|v2:127.0.0.1:9|" "$conf" >"$scratch/nobody.conf"
refused "monitors that do not answer are told" "no monitor of $scratch/nobody.conf has answered" "$gateways" "$scratch/nobody.conf" client.admin gw.state conformance
library=$(ldconfig -p | awk '$1 == "librados.so.2" { print $NF; exit }')
refused "without Ceph's library it is said what to install" "Debian and Ubuntu: librados2" \
  unshare -m -- sh -c 'mount --bind /dev/null "$0" && exec "$@"' "$(readlink -f "$library")" "$gateways" "$conf" client.admin gw.state conformance

check "the store in RADOS does what every store must do" run conformance

# lines FILE PATTERN: how many lines of the file match.
lines() { grep -c "$2" "$1" 2>/dev/null; }
# until_lines FILE PATTERN NUMBER: waits until so many lines match.
until_lines() {
  local tries
  for ((tries = 0; tries < 1200; tries++)); do [ "$(lines "$1" "$2")" -lt "$3" ] || return 0; sleep 0.05; done
  return 1
}
last_written() { sed -n 's/^wrote //p' "$scratch/owner" | tail -n 1; }
"$gateways" "$conf" "$user" gw.state own >"$scratch/owner" 2>&1 &
owner=$!
check "the owner of a group writes" until_lines "$scratch/owner" '^wrote' 200
"$lab" kill osd.1
before=$(lines "$scratch/owner" '^wrote')
check "it writes on when an OSD has died" until_lines "$scratch/owner" '^wrote' $((before + 200))
"$lab" start osd.1

mkfifo "$scratch/ask"
"$gateways" "$conf" "$user" gw.state take-over <"$scratch/ask" >"$scratch/taker" 2>&1 &
taker=$!
exec 7>"$scratch/ask"
check "another sees it alive" until_lines "$scratch/taker" '^a is alive' 1
kill -STOP "$owner"
check "another takes over when the lease of a stopped owner has run out" until_lines "$scratch/taker" '^owner in epoch 2' 1
cat "$scratch/taker"
found=$(sed -n 's/^owner in epoch 2 .*: //p' "$scratch/taker")
# What the owner has been told is written is there. One more may be written that it was not told of.
if [ "$found" = "$(last_written)" ] || [ "$found" = $(($(last_written) + 1)) ]; then pass "what was acknowledged is there"
else fail "what was acknowledged is there" "$(last_written) was written, $found is there"; fi
kill -CONT "$owner"
check "the owner of before goes on, and is refused" until_lines "$scratch/owner" '^refused at' 1
grep '^refused at' "$scratch/owner"
echo >&7
check "it has changed nothing" until_lines "$scratch/taker" "^$found\$" 1
exec 7>&-
wait "$taker"
taker=''

[ "${1:-}" != --measure ] || run measure
finish
