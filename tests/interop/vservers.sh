#!/bin/bash
# Vservers that move between two gateways, in a real Ceph cluster (tests/lab/ceph-lab), by examples/vservers of crates/house/gateway. All
# of it is in a network of its own. (root)
#   vservers.sh [--measure]    also prints how long clients wait
#   VSERVERS=PROGRAM           the example, built already
top=$(cd "$(dirname "$0")/../.." && pwd)
if [ -z "${VSERVERS_NET:-}" ] && [ "$(id -u)" = 0 ]; then exec env VSERVERS_NET=1 unshare -n -- "$0" "$@"; fi
. "$top/tests/lab/guest/lib.sh"
[ "$(id -u)" = 0 ] || { echo "not tested: vservers: a network of its own needs root"; finish; exit; }
ip link set lo up || exit 1
command -v ceph-osd >/dev/null && command -v ceph-mds >/dev/null && command -v ceph >/dev/null || {
  [ -n "${CI:-}" ] && fail "ceph" "not installed" || echo "not tested: vservers: Ceph is not installed"
  finish; exit
}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/anabranch-vservers.XXXXXX")
export CEPH_LAB_DIR=$scratch/ceph
lab=$top/tests/lab/ceph-lab
a='' b='' client='' beside=''
trap 'for p in $a $b $client $beside; do kill -KILL "$p" 2>/dev/null; done; "$lab" down >/dev/null 2>&1; rm -rf "$scratch"' EXIT
vservers=${VSERVERS:-${CARGO_TARGET_DIR:-$top/target}/debug/examples/vservers}
[ -n "${VSERVERS:-}" ] || cargo build -q --locked --workspace --example vservers --manifest-path "$top/Cargo.toml" || exit 1
"$lab" up || exit 1
conf=$CEPH_LAB_DIR/ceph.conf
user=client.anabranch
"$lab" ceph auth get-or-create "$user" mds 'allow rw fsname=lab' mon 'profile rbd, allow r fsname=lab' \
  osd 'allow rw tag cephfs data=lab, allow rwx pool=gw.state' >>"$CEPH_LAB_DIR/keyring" || exit 1
/usr/bin/python3 - "$conf" <<'PY' || exit 1
import sys, cephfs
fs = cephfs.LibCephFS(conffile=sys.argv[1], auth_id="admin")
fs.mount()
for name in "/files", "/others":
    fs.mkdir(name, 0o777)
    fs.chmod(name, 0o777)
fs.shutdown()
PY

# said FILE PATTERN NUMBER: waits until so many lines match.
said() {
  local tries
  for ((tries = 0; tries < 1200; tries++)); do [ "$(grep -c "$2" "$1")" -lt "$3" ] || return 0; sleep 0.05; done
  return 1
}
# started NAME: a gateway of this name, told by lines in $scratch/NAME.in; the process is $!.
started() {
  mkfifo "$scratch/$1.in"
  "$vservers" serve "$1" "$conf" "$user" gw.state "$scratch/state-$1" <"$scratch/$1.in" >"$scratch/$1" 2>&1 &
}
started a; a=$!; exec 7>"$scratch/a.in"
started b; b=$!; exec 8>"$scratch/b.in"
check "two gateways join" eval 'said "$scratch/a" "^ready" 1 && said "$scratch/b" "^ready" 1'
at=127.0.0.1:20490
echo "begin files cephfs:/files $at" >&7
check "one serves a vserver" said "$scratch/a" '^begin files' 1
echo "begin files cephfs:/files 127.0.0.1:20499" >&8
check "the other does not, and says who does" said "$scratch/b" 'the vserver files is served by the gateway a' 1
echo "begin others cephfs:/others 127.0.0.1:20491" >&8
check "the other serves another one" said "$scratch/b" '^begin others' 1
"$vservers" serve a "$conf" "$user" gw.state "$scratch/state-same" </dev/null >"$scratch/same" 2>&1
check "a name is of one gateway" grep -q '^a has the name' "$scratch/same"

moves=${MOVES:-10}
"$vservers" watch "$at" $((moves * 2 + 4)) >"$scratch/watch" 2>&1 &
client=$!
"$vservers" watch 127.0.0.1:20491 $((moves * 2 + 4)) >"$scratch/beside" 2>&1 &
beside=$!
said "$scratch/watch" '^writing' 1
for ((move = 1; move <= moves; move++)); do
  sleep 1.5
  from=7 to=8 from_said=$scratch/a to_said=$scratch/b
  [ $((move % 2)) = 1 ] || { from=8 to=7 from_said=$scratch/b to_said=$scratch/a; }
  ended=$(grep -c '^end files' "$from_said") begun=$(grep -c '^begin files' "$to_said")
  echo "end files" >&"$from"
  said "$from_said" '^end files' $((ended + 1)) || break
  echo "begin files cephfs:/files $at" >&"$to"
  said "$to_said" '^begin files' $((begun + 1)) || break
done
wait "$client"
check "a client writes on, with its open file, over $moves moves" [ $? = 0 ]
client=''
check "it was told of each" [ "$(grep -c '^gap' "$scratch/watch")" = "$moves" ]
wait "$beside"
check "a client of the other vserver writes on" [ $? = 0 ]
beside=''
check "and was told of none" [ "$(grep -c '^gap' "$scratch/beside")" = 0 ]
exec 7>&- 8>&-
wait "$a"; check "one gateway ends" [ $? = 0 ]; a=''
wait "$b"; check "the other gateway ends" [ $? = 0 ]; b=''
if [ "$1" = --measure ]; then
  sed -n 's/^gap //p' "$scratch/watch" | sort -n | tr '\n' ' '; echo
  grep -h '^end\|^begin' "$scratch/a" "$scratch/b" | sort
fi
[ "$failed" = 0 ] || cat "$scratch"/{a,b,watch,beside}
finish
