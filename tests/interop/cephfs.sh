#!/bin/bash
# A directory of CephFS as a store, on a real Ceph cluster (tests/lab/ceph-lab), by examples/on-ceph of crates/store/storage-ceph. All
# of it is in a network of its own. (root)
#   ON_CEPH=PROGRAM    the example, built already
top=$(cd "$(dirname "$0")/../.." && pwd)
if [ -z "${CEPHFS_NET:-}" ] && [ "$(id -u)" = 0 ]; then exec env CEPHFS_NET=1 unshare -n -- "$0" "$@"; fi
. "$top/tests/lab/guest/lib.sh"
[ "$(id -u)" = 0 ] || { echo "not tested: cephfs: a network of its own needs root"; finish; exit; }
ip link set lo up || exit 1
command -v ceph-osd >/dev/null && command -v ceph-mds >/dev/null && command -v ceph >/dev/null || {
  [ -n "${CI:-}" ] && fail "ceph" "not installed" || echo "not tested: cephfs: Ceph is not installed"
  finish; exit
}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/anabranch-cephfs.XXXXXX")
export CEPH_LAB_DIR=$scratch/ceph
lab=$top/tests/lab/ceph-lab
worker=''
trap '[ -z "$worker" ] || kill -KILL "$worker" 2>/dev/null; "$lab" down >/dev/null 2>&1; rm -rf "$scratch"' EXIT
on_ceph=${ON_CEPH:-${CARGO_TARGET_DIR:-$top/target}/debug/examples/on-ceph}
[ -n "${ON_CEPH:-}" ] || cargo build -q --locked --workspace --example on-ceph --manifest-path "$top/Cargo.toml" || exit 1
"$lab" up || exit 1
conf=$CEPH_LAB_DIR/ceph.conf
# With no more rights than the program's advice gives, and that to set quotas and pools.
user=client.anabranch
"$lab" ceph fs authorize lab "$user" / rwps >>"$CEPH_LAB_DIR/keyring" || exit 1

# refused NAME EXPECTED COMMAND...: the command fails and says so.
refused() {
  local name=$1 expected=$2 said; shift 2
  if said=$(timeout 120 "$@" 2>&1); then fail "$name" "nothing is refused"; return; fi
  if [[ $said == *"$expected"* ]]; then pass "$name"; else fail "$name" "$said"; fi
}
refused "a configuration file that is not there is named" "Ceph's configuration file $scratch/none.conf: No such file" \
  "$on_ceph" "$scratch/none.conf" "$user" conformance
refused "a user who does not exist is named" "does not admit client.nobody: there is no key here, or the cluster has another one" \
  "$on_ceph" "$conf" client.nobody conformance
sed "s|v2:127.0.0.1:[0-9]*|v2:127.0.0.1:9|" "$conf" >"$scratch/nobody.conf"
refused "monitors that do not answer are told" "no monitor of the Ceph cluster of $scratch/nobody.conf has answered" \
  "$on_ceph" "$scratch/nobody.conf" "$user" conformance
library=$(ldconfig -p | awk '$1 == "libcephfs.so.2" { print $NF; exit }')
refused "without Ceph's library it is said what to install" "Debian and Ubuntu: libcephfs2" \
  unshare -m -- sh -c 'mount --bind /dev/null "$0" && exec "$@"' "$(readlink -f "$library")" "$on_ceph" "$conf" "$user" conformance

check "a store has a quota and a pool of its own" timeout 120 "$on_ceph" "$conf" "$user" limits cephfs.data.lrs
check "a directory is served by one gateway alone" timeout 120 "$on_ceph" "$conf" "$user" alone
check "the limit of snapshots is told" timeout 300 "$on_ceph" "$conf" "$user" snapshot-limit 1000
check "random calls return what they return on the in-memory store" timeout 600 "$on_ceph" "$conf" "$user" model 4
timeout 600 "$on_ceph" "$conf" "$user" conformance >"$scratch/checks" 2>&1
while read -r name; do pass "$name"; done < <(sed -n 's/^ok //p' "$scratch/checks")
check "the store does what every store must do" grep -q '^[1-9][0-9]* checks passed, 0 failed$' "$scratch/checks"
grep -v '^ok ' "$scratch/checks"

# said WORD FILE: waits until a line begins so.
said() { local tries; for ((tries = 0; tries < 600; tries++)); do ! grep -q "^$1" "$2" || return 0; sleep 0.05; done; return 1; }
# in_cephfs DIRECTORY STATEMENT: a statement of Python, with `fs`, the file system as its administrator sees it, and `at`.
in_cephfs() {
  /usr/bin/python3 - "$conf" "$1" "$2" <<'PY'
import sys, cephfs
fs = cephfs.LibCephFS(conffile=sys.argv[1], auth_id="admin")
fs.mount()
at = "/" + sys.argv[2]
exec(sys.argv[3])
fs.shutdown()
PY
}

# What `cp -a` does to an object on a mounted file system: the other one carries the same attributes.
mkfifo "$scratch/copied"
"$on_ceph" "$conf" "$user" copies <"$scratch/copied" >"$scratch/copies" 2>&1 &
worker=$!
exec 7>"$scratch/copied"
said 'made ' "$scratch/copies"
check "an object is copied with its attributes" in_cephfs "$(sed -n 's/^made //p' "$scratch/copies")" \
  'name = "trusted.anabranch.streams"; fs.setxattr(at + "/b", name, fs.getxattr(at + "/a", name), 0)'
echo >&7
exec 7>&-
wait "$worker"
check "a copy of an object has streams of its own" [ $? = 0 ]
worker=''
grep -v '^made ' "$scratch/copies"

# Snapshots of others, which they remove while they are used, with a library that soon forgets names.
sed 's/^\[global\]/&\nclient_cache_size = 20/' "$conf" >"$scratch/forgetful.conf"
mkfifo "$scratch/taken"
"$on_ceph" "$scratch/forgetful.conf" "$user" snapshots <"$scratch/taken" >"$scratch/snapshots" 2>&1 &
worker=$!
exec 7>"$scratch/taken"
said 'made ' "$scratch/snapshots"
path=$(sed -n 's/^made //p' "$scratch/snapshots")
check "others take snapshots" in_cephfs "$path" 'fs.mkdir(at + "/.snap/theirs", 0o755); fs.mkdir("/.snap/above", 0o755)'
echo >&7
said used "$scratch/snapshots"
check "and remove them" in_cephfs "$path" 'fs.rmdir(at + "/.snap/theirs"); fs.rmdir("/.snap/above")'
echo >&7
exec 7>&-
wait "$worker"
check "who uses them reads what was there, or learns that they are gone" [ $? = 0 ]
worker=''
grep -v '^made \|^used' "$scratch/snapshots"

# lines PATTERN: how many lines of the worker match.
lines() { grep -c "$1" "$scratch/worker"; }
# until_done NUMBER: waits until so many rounds of work are done.
until_done() {
  local tries
  for ((tries = 0; tries < 6000; tries++)); do [ "$(lines '^done')" -lt "$1" ] || return 0; sleep 0.05; done
  return 1
}
mkfifo "$scratch/end"
"$on_ceph" "$conf" "$user" work <"$scratch/end" >"$scratch/worker" 2>&1 &
worker=$!
exec 7>"$scratch/end"
check "a store is worked in" until_done 20
"$lab" kill osd.1
check "the work goes on when an OSD has died" until_done $(($(lines '^done') + 50))
"$lab" start osd.1
# A standby follows the journal of the active one before it can take over.
active=$("$lab" active-mds)
"$lab" kill "mds.${active#mds.}"
check "the work goes on when the metadata server has died" until_done $(($(lines '^done') + 50))
"$lab" start "mds.${active#mds.}"
echo >&7
exec 7>&-
wait "$worker"
check "the worker ends" [ $? = 0 ]
worker=''
check "nothing has failed meanwhile" [ "$(lines '^done')" -gt 0 -a "$(grep -vc '^done' "$scratch/worker")" = 0 ]
grep -v '^done' "$scratch/worker"
finish
