#!/bin/bash
# Earlier versions of a share in CephFS through the kernel's clients, on a real Ceph cluster (tests/lab/ceph-lab). All of it is in a network
# of its own. (root)
. "$(dirname "$0")/server.sh"
[ "$(id -u)" = 0 ] || { echo "not tested: cephfs-kernel: a network of its own needs root"; finish; exit; }
command -v ceph-osd >/dev/null && command -v ceph-mds >/dev/null && command -v ceph >/dev/null || {
  [ -n "${CI:-}" ] && fail "ceph" "not installed" || echo "not tested: cephfs-kernel: Ceph is not installed"
  finish; exit
}
ns=anabranch-$$
export CEPH_LAB_DIR=$scratch/ceph
here() { ip netns exec "$ns" timeout 120 "$@"; }
lab() { here "$top/tests/lab/ceph-lab" "$@"; }
trap 'lab down >/dev/null 2>&1; end_scratch; ip netns del "$ns" 2>/dev/null' EXIT
"$top/tests/lab/client-lab" build >/dev/null && "$top/tests/lab/client-lab" net "$ns" 1 || exit 1
must "a cluster starts" lab up || { finish; exit 1; }
conf=$CEPH_LAB_DIR/ceph.conf
lab ceph fs authorize lab client.anabranch / rws >>"$CEPH_LAB_DIR/keyring" || exit 1

# The directory, with what ../lab/guest/snapshots.sh looks for. Snapshots have whole seconds.
made() {
  here /usr/bin/python3 - "$conf" <<'PY'
import os, sys, time, cephfs
fs = cephfs.LibCephFS(conffile=sys.argv[1], auth_id="admin")
fs.mount()
def write(name, text, mode=0o644):
    file = fs.open("/share/" + name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, mode)
    if text: fs.write(file, text.encode(), 0) # the library asserts that there is something
    fs.close(file)
    fs.chown("/share/" + name, 1000, 1000)
def mkdir(path):
    fs.mkdir(path, 0o755)
    fs.chown(path, 1000, 1000)
for path in "/share", "/share/d", "/share/d/e": mkdir(path)
for name, text in ("f", "then\n"), ("empty", ""), ("name with blanks", "a b\n"): write("d/" + name, text)
fs.symlink("f", "/share/d/link")
fs.mkdir("/share/.snap/first", 0o755)
time.sleep(1.1)
write("d/f", "now, and longer\n")
write("d/g", "new\n")
fs.unlink("/share/d/name with blanks")
fs.mkdir("/share/.snap/second", 0o755)
write("d/f", "last\n")
fs.rename("/share/d/e", "/share/d/e2")
fs.unlink("/share/d/empty")
write("d/e2/x", "other\n")
print(fs.getxattr("/share/.snap/first", "ceph.snap.btime").decode().split(".")[0])
fs.shutdown()
PY
}
first=$(made) || { fail "a directory with snapshots is made" "$first"; finish; exit 1; }
START="ip netns exec $ns" listen=0.0.0.0 config=$scratch/anabranch.toml
(umask 077; cat >"$config" <<EOF
ceph-config = "$conf"
user = ["$SMB_USER=1000:$SMB_PASS"]
[[share]]
name = "$SHARE"
directory = "cephfs:/share"
nfs-snapshots = "shown"
EOF
)
must "a gateway starts" start_server || { cat "$scratch/server.log"; finish; exit 1; }
# The time of the first snapshot as a FILETIME: in units of 100 ns since 1601.
tally "kernel:" "$top/tests/lab/client-lab" run --netns "$ns" --nics 1 --timeout 200 -e SMB_PORT="$SMB_PORT" -e NFS_PORT="$NFS_PORT" -e SHARE="$SHARE" \
  -e EXPORT="$EXPORT" -e USER="$SMB_USER" -e PASS="$SMB_PASS" -e TIME="$(((first + 11644473600) * 10000000))" "$top/tests/lab/guest/snapshots.sh"
must "it ends" stop_server
check "its log has neither panics nor passwords" log_is_clean
finish
