#!/bin/bash
# Shares in CephFS, on a real Ceph cluster (tests/lab/ceph-lab): two gateways, smbclient and libnfs, snapshots. All of it is in a network of its
# own. (root)
if [ -z "${CEPHFS_NET:-}" ] && [ "$(id -u)" = 0 ]; then exec env CEPHFS_NET=1 unshare -n -- "$0" "$@"; fi
. "$(dirname "$0")/server.sh"
[ "$(id -u)" = 0 ] || { echo "not tested: cephfs-shares: a network of its own needs root"; finish; exit; }
ip link set lo up || exit 1
command -v ceph-osd >/dev/null && command -v ceph-mds >/dev/null && command -v ceph >/dev/null || {
  [ -n "${CI:-}" ] && fail "ceph" "not installed" || echo "not tested: cephfs-shares: Ceph is not installed"
  finish; exit
}
export CEPH_LAB_DIR=$scratch/ceph
lab=$top/tests/lab/ceph-lab
other_pid=''
trap '[ -z "$other_pid" ] || kill -KILL "$other_pid" 2>/dev/null; "$lab" down >/dev/null 2>&1; end_scratch' EXIT
must "a cluster starts" "$lab" up || { finish; exit 1; }
conf=$CEPH_LAB_DIR/ceph.conf
"$lab" ceph fs authorize lab client.anabranch / rw >>"$CEPH_LAB_DIR/keyring" || exit 1

# in_cephfs STATEMENT: a statement of Python, with `fs`, the file system as its administrator sees it.
in_cephfs() {
  /usr/bin/python3 - "$conf" "$1" <<'PY'
import sys, cephfs
fs = cephfs.LibCephFS(conffile=sys.argv[1], auth_id="admin")
fs.mount()
exec(sys.argv[2])
fs.shutdown()
PY
}
must "directories are made" in_cephfs 'for d in b"/projects", b"/projects/in", b"/beside": fs.mkdir(d, 0o755); fs.chown(d, 1000, 1000)'

# configured FILE SHARE DIRECTORY: a configuration with this share, and one on this machine.
configured() {
  (umask 077; mkdir -p "$scratch/of-$2"; cat >"$1" <<TOML
ceph-config = "$conf"
user = ["$SMB_USER=1000:$SMB_PASS"]
[[share]]
name = "$2"
directory = "$3"
continuous-availability = true
nfs-snapshots = "shown"
[[share]]
name = "local"
directory = "$scratch/of-$2"
TOML
  )
}
config=$scratch/first.toml other=$scratch/other.toml
configured "$config" projects cephfs:/projects
configured "$other" inner cephfs:/projects/in
must "a gateway starts" start_server || { cat "$scratch/server.log"; finish; exit 1; }
# start_other: another gateway, with a state of its own.
start_other() {
  mkdir -p -m 700 "$scratch/other-state"
  : >"$scratch/other-ready" # what the one before has said
  setpriv --pdeathsig KILL -- "$ANABRANCH" serve --config "$other" --smb 127.0.0.1:0 --nfs 127.0.0.1:0 --control 127.0.0.1:0 \
    --state "$scratch/other-state" >"$scratch/other-ready" 2>>"$scratch/other.log" </dev/null &
  other_pid=$!
  until_true grep -q '^ready ' "$scratch/other-ready"
}
# until_true COMMAND...: waits for at most three minutes.
until_true() { local tries; for ((tries = 0; tries < 3600; tries++)); do ! "$@" >/dev/null 2>&1 || return 0; sleep 0.05; done; return 1; }
end_of() { until_true eval "! kill -0 $1 2>/dev/null"; }
smb() { timeout 120 smbclient -s /dev/null "//127.0.0.1/projects" -p "$SMB_PORT" -U "$SMB_USER%$SMB_PASS" -c "$1" 2>&1; }
# put and get: smbclient says what fails, with status 0.
smb_does() { local out; out=$(smb "$1") && ! grep -q NT_STATUS <<<"$out" || { echo "$out"; return 1; }; }
nfs_has() { timeout 120 nfs-cat "nfs://127.0.0.1/projects/$1?nfsport=$NFS_PORT&mountport=$NFS_PORT&version=3" | cmp - "$scratch/data"; }
state_of() { "$ANABRANCH" share show "$1" --state "$scratch/$2"; }
tells() { local said; said=$("${@:2}" 2>&1); grep -qF "$1" <<<"$said" || { echo "$said"; return 1; }; }

head -c 3000000 /dev/urandom >"$scratch/data"
check "SMB writes" smb_does "mkdir a; put $scratch/data a/data"
check "SMB writes a named stream" smb_does "put $scratch/ready a/data:stream"
check "NFS reads what SMB wrote" nfs_has a/data
check "CephFS has it" in_cephfs 's = fs.stat(b"/projects/a/data"); assert (s.st_size, s.st_uid) == (3000000, 1000), s'
check "the stream is in no listing of CephFS' directory" in_cephfs 'd = fs.opendir(b"/projects/a"); names = []
while e := fs.readdir(d): names.append(e.d_name)
assert sorted(names) == [b".", b"..", b"data"], names'
refused=$(smb 'mkdir .snap/x')
check "SMB clients find no directory of snapshots" grep -q NT_STATUS <<<"$refused"
check "it is told where the share lies" tells "cephfs:/projects" state_of projects state
check "a share is created by a command" "$ANABRANCH" share create beside cephfs:/beside --state "$scratch/state"
check "and tells where it lies" tells "directory  cephfs:/beside" state_of beside state
create() { "$ANABRANCH" share create "$1" "$2" --state "$scratch/state"; }
check "a directory that is not there is refused" tells "cannot serve cephfs:/none: there is no such directory" create none cephfs:/none
check "one in that of another share is refused" tells "lies in that of the share projects" create in cephfs:/projects/in
check "a path is refused that is not absolute" tells "cephfs:none is not absolute" create none cephfs:none
check "so is one with .." tells "has . or .. in it" create none cephfs:/projects/../beside
check "streams are not checked there, which is said" tells "it lies in CephFS" "$ANABRANCH" share check projects --state "$scratch/state"

# Snapshots need a right of their own, which a session has from its start on.
snapshot() { "$ANABRANCH" snapshot "$@" --state "$scratch/state"; }
check "without the right to take snapshots, it is told" tells "In CephFS, its user needs the right s" snapshot create projects
check "the user gets the right" "$lab" ceph auth caps client.anabranch mds 'allow rws fsname=lab' mon 'allow r fsname=lab' \
  osd 'allow rw tag cephfs data=lab'

must "another gateway starts" start_other
# Why it waits is known as soon as it has tried again.
waits_there() { tells "another gateway serves it, a part of it, or what holds it" state_of inner other-state; }
check "what lies in the first one's directory is not served there" until_true waits_there
check "its other share is" tells "state      served" state_of local other-state
"$lab" kill "mds.$("$lab" active-mds | sed 's/^mds.//')"
check "a metadata server dies, and work goes on" smb_does "mkdir b; put $scratch/data b/data"
check "NFS reads it" nfs_has b/data
check "the other gateway still waits" until_true waits_there
kill_server
must "the gateway is killed, and starts again" start_server || { cat "$scratch/server.log"; finish; exit 1; }
served_again() { tells "state      served" state_of projects state; }
check "it has its share again" until_true served_again
check "what was acknowledged is there" nfs_has b/data
check "with its stream" smb_does "get a/data:stream $scratch/stream"
check "which is the same" [ "$(wc -c <"$scratch/stream")" -gt 0 ]

. "$(dirname "$0")/cephfs-snapshots.sh"

session_of() {
  "$lab" ceph tell "mds.$("$lab" active-mds | sed 's/^mds.//')" session ls 2>/dev/null | python3 -c '
import json, sys
print([s["id"] for s in json.load(sys.stdin) if s["client_metadata"].get("uuid", "").startswith("anabranch") and s["num_caps"] > 0][-1])'
}
evict() { "$lab" ceph tell "mds.$("$lab" active-mds | sed 's/^mds.//')" client evict "id=$1"; }
kill -TERM "$other_pid"
check "the other gateway ends" end_of "$other_pid"
wait "$other_pid"
check "with status 0" [ $? = 0 ]
other_pid=''
check "the session of the gateway is evicted" evict "$(session_of)"
check "which is told" until_true grep -q 'the Ceph cluster has ended the session of this gateway: the share projects is opened again' "$scratch/server.log"
check "the share is opened again in another session" until_true served_again
check "SMB writes again" smb_does "put $scratch/data c"
check "NFS reads it" nfs_has c

must "the other gateway starts again" start_other
check "and waits again" until_true waits_there
must "the first gateway ends" stop_server
inner_served() { tells "state      served" state_of inner other-state; }
check "the other one serves the directory as soon as it is free" until_true inner_served

other_port=$(sed -n 's/^ready .*smb=[^ ]*:\([0-9]*\).*/\1/p' "$scratch/other-ready")
smb_of_other() { timeout 60 smbclient -s /dev/null //127.0.0.1/inner -p "$other_port" -U "$SMB_USER%$SMB_PASS" -c "put $scratch/data $1"; }
check "it writes there" smb_of_other one
for daemon in mon.a mgr.a osd.0 osd.1 osd.2 mds.a mds.b; do "$lab" kill "$daemon" >/dev/null 2>&1; done
smb_of_other two >"$scratch/waiting" 2>&1 &
waiting=$!
sleep 1 # so that, usually, its call waits for the cluster
kill -TERM "$other_pid"
check "a gateway ends whose cluster is gone" end_of "$other_pid"
wait "$other_pid"
check "with status 0" [ $? = 0 ]
other_pid=''
wait "$waiting"
must "a gateway starts whose cluster is gone" start_server
check "it serves its other shares" tells "state      served" state_of local state
not_served() { tells "no monitor of the Ceph cluster of $conf has answered" state_of projects state; }
check "and tells why it does not serve those in CephFS" until_true not_served
must "it ends" stop_server
check "its log has neither panics nor passwords" log_is_clean
finish
