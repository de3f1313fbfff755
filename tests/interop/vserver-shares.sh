#!/bin/bash
# The shares of vservers (docs/cluster.md): they come, change, move and go while a client of another share works. A real Ceph cluster
# (tests/lab/ceph-lab), two gateways and the clients, each in a network namespace of its own. (root)
#   vserver-shares.sh [--show]    also prints what the commands print
#   VSERVERS=PROGRAM              the example `vservers` of crates/house/gateway, built already
vservers=${VSERVERS:-${CARGO_TARGET_DIR:-$(dirname "$0")/../../target}/debug/examples/vservers}
[ -x "$vservers" ] || { echo "build the example vservers first"; exit 1; }
name=vserver-shares network=192.0.2 flags=()
. "$(dirname "$0")/two-gateways.sh"
show=${1:-}
address=$network.10
refused() {
  local name=$1 text=$2 show='' said; shift 2
  if said=$("$@"); then fail "$name" "it was not refused: $said"
  elif grep -q -- "$text" <<<"$said"; then pass "$name"; else fail "$name" "$said"; fi
}
# smb USER SHARE COMMANDS [ADDRESS]: what smbclient prints.
smb() { in_ns client smbclient -s /dev/null -t 30 "//${4:-$address}/$2" -U "$1%$1-pw" -c "$3" 2>&1; }
lists() { in_ns client smbclient -s /dev/null -L "//$address" -U "anna%anna-pw" 2>&1 | grep -q "^[[:space:]]*$1 .*$2"; }
# share FIELD SHARE [VSERVER]: of the list of shares at the gateway b.
share() {
  local show=''
  at b vserver share list "${3:-files}" --json | python3 -c '
import json, sys
print([share[sys.argv[1]] for share in json.load(sys.stdin)["shares"] if share["name"] == sys.argv[2]][0])' "$1" "$2"
}
# hold SECONDS: a client of the share data over NFS, which works as long.
hold() { in_ns client "$vservers" hold "$address:2049" "holds" "$1" >"$scratch/hold" 2>&1 & holds=$!; clients+=("$holds"); }

in_ns hub /usr/bin/python3 - "$conf" <<'PY' || exit 1
import sys, cephfs
fs = cephfs.LibCephFS(conffile=sys.argv[1], auth_id="admin")
fs.mount()
for name in ("/projects", "/projects/old", "/archive"):
    fs.mkdir(name, 0o777)
    fs.chmod(name, 0o777)
fs.shutdown()
PY
serve a; serve b
check "two gateways are a cluster" eval 'at a cluster init && at b cluster join'
check "a user is added" eval 'echo anna-pw | at a user add anna --cluster --uid 4001'
check "another one" eval 'echo otto-pw | at b user add otto --cluster --uid 4002'
check "a vserver is made" at a vserver create files --address "$address%eth0/24" --share data=cephfs:/files
check "users log on" soon eval 'smb anna data ls | grep -q "blocks available"'
hold 40
check "a client works" soon grep -q '^writing' "$scratch/hold"

# What docs/cluster.md shows.
[ "$show" = '' ] || {
  at b vserver share add files projects cephfs:/projects --comment Projects --write anna --client 192.0.2.0/24
  at a vserver share set files projects --read otto --plan "custom iops=500"
  at a vserver share list files
  at b vserver share add files none cephfs:/none
  at b vserver share remove files projects
} >/dev/null

check "a share is added at the other gateway" at b vserver share add files projects cephfs:/projects --comment "All projects" --write anna
check "it is served" eval 'smb anna projects "put $conf f" | grep -q "putting file"'
check "its comment is listed" lists projects "All projects"
check "who is not in the list has no access" eval 'smb otto projects ls | grep -q NT_STATUS_ACCESS_DENIED'
check "a reader is added" at a vserver share set files projects --read otto
check "who reads" eval 'smb otto projects "get f $scratch/got" | grep -q "getting file"'
check "and does not write" eval 'smb otto projects "put $conf g" | grep -q "NT_STATUS_\(ACCESS_DENIED\|MEDIA_WRITE_PROTECTED\)"'
check "the share is for a network" at b vserver share set files projects --client 10.0.0.0/8
check "others have no access" eval 'smb anna projects ls | grep -q NT_STATUS_ACCESS_DENIED'
check "it is for everybody again" at b vserver share set files projects --client "" --read "" --write ""
check "also for who was not in the list" eval 'smb otto projects ls | grep -q "blocks available"'
check "it is encrypted, hidden and has a plan" at b vserver share set files projects --encrypted on --hidden on --plan "custom iops=500"
check "it is not listed" eval '! lists projects ""'
check "with encryption, it is served" eval 'smb anna projects ls | grep -q "blocks available"'
check "its plan is told" [ "$(share plan projects)" = "custom iops=500" ]
check "it is for SMB only" at b vserver share set files projects --protocols smb --encrypted off --hidden off
check "that is told" [ "$(share served_by projects)" = "['smb']" ]
refused "two shares do not overlap" "lies in that of the share projects of the vserver files" at a vserver share add files old cephfs:/projects/old
refused "a directory that is not there is not served" "the vserver files cannot serve the share none" at a vserver share add files none cephfs:/none
refused "and the share is not there" "has no share none" at b vserver share remove files none
refused "a directory of a machine is none of a vserver" "is not in CephFS" at a vserver share add files tmp /tmp
refused "a share has no recycle bin there" "unexpected argument" at a vserver share add files x cephfs:/archive --recycle-bin on
refused "the name is taken" "has a share DATA\|has a share data" at a vserver share add files DATA cephfs:/archive

check "another vserver is made" at b vserver create more --gateway b --address "$network.11%eth0/24" --share papers=cephfs:/more
check "the share moves there" at a vserver share move projects files more
check "it is there, with its file" eval 'smb anna projects "get f $scratch/got" "$network.11" | grep -q "getting file"'
check "and not where it was" eval 'smb anna projects ls | grep -q NT_STATUS_BAD_NETWORK_NAME'
check "the list says where it has gone" eval 'at b vserver share list files | grep -q "files: the share projects has moved to the vserver more"'
[ "$show" = '' ] || at a vserver share list >/dev/null
check "it moves back" at b vserver share move projects more files
check "it is back" eval 'smb anna projects ls | grep -q "blocks available"'
check "nothing is said to have moved" eval '! at b vserver share list files | grep -q "has moved"'
check "a share is removed" at b vserver share remove files projects
check "it is gone" eval 'smb anna projects ls | grep -q NT_STATUS_BAD_NETWORK_NAME'
refused "the last one stays" "is the last one of the vserver files" at b vserver share remove files data
wait "$holds"
check "the client of the other share has worked all the time" [ $? = 0 ]
check "without a gap" eval '! grep -q "gap" "$scratch/hold"'

check "a share is added again" at b vserver share add files projects cephfs:/projects --write anna --protocols smb
kill -KILL "${pid[a]}"; wait "${pid[a]}" 2>/dev/null; unset 'pid[a]'
check "killed: the other takes over" soon serves b files b
check "killed: the share is there" soon eval 'smb anna projects ls | grep -q "blocks available"'
check "killed: its settings are the same" eval 'smb otto projects ls | grep -q NT_STATUS_ACCESS_DENIED'
check "killed: it moves" at b vserver share move projects files more
check "killed: it is there" eval 'smb anna projects ls "$network.11" | grep -q "blocks available"'
check "the other vserver is removed" at b vserver remove more
check "nothing is said to have moved to it" eval '! at b vserver share list | grep -q "has moved"'
check "no log shows a panic" eval '! grep -q "panicked at" "$scratch"/log-*'
kill -TERM "${pid[b]}"; wait "${pid[b]}"; check "SIGTERM ends b" [ $? = 0 ]; unset 'pid[b]'
[ "$failed" = 0 ] || logs
finish
