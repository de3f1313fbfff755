#!/bin/bash
# Redundancy classes and storage media of shares in CephFS, on a real Ceph cluster (tests/lab/ceph-lab) of six devices in three zones: data
# pools that are made, directories that get one, what is told and what is refused; with a replica at another server, on Btrfs in a file, if there is
# any. All of it is in a network of its own. (root)
#   --show   prints what docs/cephfs.md has
if [ -z "${CEPHFS_NET:-}" ] && [ "$(id -u)" = 0 ]; then exec env CEPHFS_NET=1 unshare -n -m --propagation slave -- "$0" "$@"; fi
. "$(dirname "$0")/server.sh"
[ "$(id -u)" = 0 ] || { echo "not tested: cephfs-redundancy: a network of its own needs root"; finish; exit; }
ip link set lo up || exit 1
command -v ceph-osd >/dev/null && command -v ceph-mds >/dev/null && command -v ceph >/dev/null || {
  [ -n "${CI:-}" ] && fail "ceph" "not installed" || echo "not tested: cephfs-redundancy: Ceph is not installed"
  finish; exit
}
show=""; [ "${1:-}" != --show ] || show=yes
exec 3>&2 # checks keep what is printed to the others
export CEPH_LAB_DIR=$scratch/ceph CEPH_LAB_OSDS=6
lab=$top/tests/lab/ceph-lab
replica_pid=''
trap '[ -z "$replica_pid" ] || kill -KILL "$replica_pid" 2>/dev/null; umount -l "$scratch/disk" 2>/dev/null; "$lab" down >/dev/null 2>&1; end_scratch' EXIT
must "a cluster starts" "$lab" up || { finish; exit 1; }
conf=$CEPH_LAB_DIR/ceph.conf
"$lab" ceph fs authorize lab client.anabranch / rws >>"$CEPH_LAB_DIR/keyring" || exit 1

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
must "directories are made" in_cephfs 'for d in b"/old", b"/host", b"/fast", b"/full", b"/both": fs.mkdir(d, 0o755); fs.chown(d, 1000, 1000)
f = fs.open(b"/full/file", "w", 0o644); fs.write(f, b"there", 0); fs.close(f)'

config=$scratch/server.toml
(umask 077; mkdir -p "$scratch/here"; chown 1000:1000 "$scratch/here"; cat >"$config" <<TOML
ceph-config = "$conf"
user = ["$SMB_USER=1000:$SMB_PASS"]
[[share]]
name = "old"
directory = "cephfs:/old"
TOML
)
must "a gateway starts" start_server || { cat "$scratch/server.log"; finish; exit 1; }
until_true() { local tries; for ((tries = 0; tries < 600; tries++)); do ! "$@" >/dev/null 2>&1 || return 0; sleep 0.05; done; return 1; }
share() { "$ANABRANCH" share "$@" --state "$scratch/state"; }
pools() { "$ANABRANCH" cluster pools --ceph-config "$conf" "$@"; }
# said COMMAND...: what it prints, and with --show, that and the command.
said() {
  local out status; out=$("$@" 2>&1); status=$?
  [ -z "$show" ] || { echo "\$ $*" | sed "s|$scratch/state|STATE|"; sed 's/^/    /' <<<"$out"; } >&3
  echo "$out"; return $status
}
# tells TEXT COMMAND...: it succeeds and prints this. refuses: it does not succeed.
tells() { local out; out=$(said "${@:2}") && grep -qF "$1" <<<"$out" || { echo "$out"; return 1; }; }
refuses() { local out; out=$(said "${@:2}") && { echo "it was done: $out"; return 1; }; grep -qF "$1" <<<"$out" || { echo "$out"; return 1; }; }
smb_does() { local out; out=$(timeout 120 smbclient -s /dev/null "//127.0.0.1/$1" -p "$SMB_PORT" -U "$SMB_USER%$SMB_PASS" -c "$2" 2>&1) && ! grep -q NT_STATUS <<<"$out" || { echo "$out"; return 1; }; }

# Of what there is.
check "the class of a share is told" tells 'redundancy zrs: 3 copies across zones, 2 to write (data pool cephfs.data.zrs)' share show old
check "and its medium" tells 'tier       hdd (devices of the class hdd)' share show old
check "the API has the same" tells '"copies_to_write": 2' share show old --json

# Directories get a data pool that gives the class.
check "without the right to set data pools, it is told" refuses 'may not set the data pool of a directory' \
  share create host cephfs:/host --redundancy lrs
check "and the share is not there" refuses 'there is no share host' share show host
"$lab" ceph auth caps client.anabranch mds 'allow rwps fsname=lab' mon 'allow r fsname=lab' osd 'allow rw tag cephfs data=lab' >/dev/null 2>&1
must "the gateway starts again, with that right" eval 'stop_server && start_server'
check "a share of a class is created" share create host cephfs:/host --redundancy lrs --tier hdd
check "it has that class" tells 'redundancy lrs: 3 copies across hosts, 2 to write (data pool cephfs.data.lrs)' share show host
head -c 300000 /dev/urandom >"$scratch/data"
check "SMB writes" smb_does host "mkdir a; put $scratch/data a/data"
# lies POOL PATH: CephFS says that the file's data is there, and so do the objects of the pool, whose names begin with the inode.
lies() {
  in_cephfs "p = fs.getxattr('$2', 'ceph.file.layout.pool').decode(); assert p == '$1', p
print('%x' % fs.stat(b'$2').st_ino)" >"$scratch/inode" || { cat "$scratch/inode"; return 1; }
  until_true pool_has "$1" "$(tail -n 1 "$scratch/inode").00000000"
}
pool_has() { rados -c "$conf" -p "$1" ls | grep -qx "$2"; }
check "its data lies in that pool" lies cephfs.data.lrs /host/a/data
check "a directory with files keeps its pool" refuses 'it is not empty, and its files are in the data pool cephfs.data.zrs, which gives zrs on hdd' \
  share create full cephfs:/full --redundancy lrs
check "which is accepted if it gives the class" share create full cephfs:/full --redundancy zrs

# What the cluster cannot give.
check "a medium that is not there is refused" refuses 'no data pool of the file system lab gives zrs on ssd: cephfs.data.zrs gives zrs on hdd' \
  share create fast cephfs:/fast --redundancy zrs --tier ssd
check "and the command is told" refuses 'anabranch cluster pools --redundancy zrs --tier ssd' share create fast cephfs:/fast --redundancy zrs --tier ssd
check "which is refused, too" refuses 'zrs on ssd needs 3 zones with devices of the class ssd below default, and the Ceph cluster has 0: none' \
  pools --redundancy zrs --tier ssd
# to_ssd DEVICE...: they are of solid state from now on.
to_ssd() { "$lab" ceph osd crush rm-device-class "$@" && "$lab" ceph osd crush set-device-class ssd "$@"; }
check "two devices are of solid state" to_ssd osd.3 osd.4
check "two zones are too few" refuses 'and the Ceph cluster has 2: z0, z1' pools --redundancy zrs --tier ssd
check "and so are two hosts" refuses 'lrs on ssd needs 3 hosts with devices of the class ssd below default, and the Ceph cluster has 2: h3, h4' \
  pools --redundancy lrs --tier hdd,ssd
check "a third one is" to_ssd osd.5
check "the user of a gateway may not make pools" refuses 'ceph osd crush rule create-replicated lab.zrs.ssd default zone ssd' \
  pools --redundancy zrs --tier ssd --ceph-user client.anabranch
check "a try changes nothing" tells 'ceph fs add_data_pool lab lab.zrs.ssd' pools --redundancy zrs --tier ssd --dry-run
check "an administrator may" tells 'zrs on ssd: the data pool lab.zrs.ssd was made: zrs on ssd (3 copies across zones, 2 to write)' \
  pools --redundancy zrs --tier ssd
before=$("$lab" ceph osd dump 2>/dev/null | sed -n 's/^epoch //p')
check "once" tells 'zrs on ssd: the data pool lab.zrs.ssd is there' pools --redundancy zrs --tier ssd
check "and nothing is changed then" [ "$("$lab" ceph osd dump 2>/dev/null | sed -n 's/^epoch //p')" = "$before" ]
check "several at once" tells 'lrs on ssd: the data pool lab.lrs.ssd was made' pools --redundancy lrs,zrs --tier hdd,ssd
check "a class that is none is named" refuses 'there is no redundancy class `raid`' pools --redundancy raid

# Shares on a medium.
check "a plan for another medium is refused" refuses 'is on ssd, and the plan azure-files-v2-hdd is for hdd' \
  share create fast cephfs:/fast --redundancy zrs --tier ssd --plan "azure-files-v2-hdd capacity=1TiB"
check "one for the medium is not" share create fast cephfs:/fast --redundancy zrs --tier ssd --plan "azure-files-v2-ssd capacity=1TiB"
check "the share is on it" tells 'redundancy zrs: 3 copies across zones, 2 to write (data pool lab.zrs.ssd)' share show fast
check "as its devices say" tells 'tier       ssd (devices of the class ssd)' share show fast
check "its plan is billed so" tells 'billing    Azure Files, provisioned v2' share show fast
check "SMB writes there" smb_does fast "put $scratch/data data"
check "its data lies there" lies lab.zrs.ssd /fast/data
check "the plan cannot be changed to one for another medium" refuses 'is for hdd' share set fast --plan "azure-files-v2-hdd capacity=1TiB"
check "nor can the medium" refuses 'its files stay on the devices that they are on' share set fast --tier hdd
check "a class on several media needs one" refuses 'Say on which medium' share create both cephfs:/both --redundancy lrs
check "a medium without a class is refused" refuses 'a tier is one of a redundancy class' share create both cephfs:/both --tier ssd
check "grs is what gives it" refuses 'Create it with --redundancy lrs' share create both cephfs:/both --redundancy grs

# A replica at another server.
at_replica() { "$ANABRANCH" share "$@" --state "$scratch/replica-state"; }
start_replica() {
  mkdir -p -m 700 "$scratch/replica-state"; btrfs -q subvolume create "$scratch/disk/copy" || return
  setpriv --pdeathsig KILL -- "$ANABRANCH" serve --share "copy=$scratch/disk/copy" --user "$SMB_USER=1000:$SMB_PASS" --smb 127.0.0.1:0 --nfs 127.0.0.1:0 \
    --control 127.0.0.1:0 --state "$scratch/replica-state" >"$scratch/replica-ready" 2>>"$scratch/server.log" </dev/null &
  replica_pid=$!
  until_true grep -q '^ready ' "$scratch/replica-ready"
}
replicate() {
  (umask 077; "$ANABRANCH" token create replicas --scope replicate --state "$scratch/state" 2>/dev/null >"$scratch/token")
  at_replica replicate copy --from "http://127.0.0.1:$CONTROL_PORT/$1" --token-file "$scratch/token"
}
mkdir "$scratch/disk"; truncate -s 400M "$scratch/image"
if mkfs.btrfs -q "$scratch/image" >"$scratch/said" 2>&1 && mount -o loop "$scratch/image" "$scratch/disk" >>"$scratch/said" 2>&1; then
  must "another server starts" start_replica
  check "it replicates a share" replicate fast
  check "until that has a replica" until_true at_replica replicate copy --now
  check "the source learns of it with the next transfer" until_true at_replica replicate copy --now
  check "which makes zrs gzrs" tells 'redundancy gzrs: 3 copies across zones, 2 to write (data pool lab.zrs.ssd)' share show fast
  check "and its age is told" tells 'replica    as of 2' share show fast
  check "what was not replicated is no gzrs" tells 'redundancy lrs: ' share show host
  kill -TERM "$replica_pid"; wait "$replica_pid"; replica_pid=''
else
  echo "not tested: cephfs-redundancy: a replica: $(tail -n 1 "$scratch/said")"
fi

# Directories of this machine.
check "they have no class" refuses 'is a directory of this machine' share create here "$scratch/here" --redundancy lrs
check "a medium can be stated" share create here "$scratch/here" --tier ssd --plan "azure-files-v1 capacity=1TiB"
check "which is told" tells 'tier       ssd (stated, not checked)' share show here
check "with what the server knows of the rest" tells 'redundancy local: what the disks of its machine give' share show here
check "only plans for it are accepted" refuses 'The plans on ssd are: unlimited, azure-files-v1, azure-files-v2-ssd' \
  share set here --plan "azure-files-v2-hdd capacity=1TiB"
check "another medium is not stated with this plan" refuses 'is on hdd, and the plan azure-files-v1 is for ssd' share set here --tier hdd
check "both are changed at once" share set here --tier hdd --plan unlimited
check "a plan that is billed by use is for disks" share set here --plan azure-files-payg
check "a client writes" smb_does here "put $scratch/data data"
check "its transactions are counted" eval 'share show here | grep -qE "^billed     transactions: [1-9][0-9]* write, 0 list, [0-9]+ read, [1-9][0-9]* other, 0 delete$"'
check "its billing is told" tells 'billing    Azure Files, pay-as-you-go' share show here
check "and the JSON has them" tells '"transactions": {' share show here --json
check "and the medium is taken back" share set here --tier ""
check "then nothing is told of it" eval '! share show here | grep "^tier"'

# What becomes of it.
check "the devices of a zone are moved" eval '"$lab" ceph osd crush move h2 zone=z0 && "$lab" ceph osd crush move h5 zone=z0'
check "two zones are no class" tells 'redundancy no class: 2 copies across zones, 2 to write (data pool lab.zrs.ssd)' share show fast
"$lab" kill mon.a
check "without a monitor it is not known" tells 'redundancy not known: ' share show fast
"$lab" start mon.a >/dev/null 2>&1
check "with one it is known again" until_true tells 'redundancy no class' share show fast
must "the gateway ends" stop_server
check "without a server, nothing can be set" refuses 'only a running one gives a directory in CephFS its data pool' \
  share create both cephfs:/both --redundancy zrs --tier ssd
check "the log has neither panics nor passwords" log_is_clean
finish
