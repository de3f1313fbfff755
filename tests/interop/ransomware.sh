#!/bin/bash
# The ransomware alarm, with the kernel's clients: who encrypts files is told, with a protected snapshot on Btrfs, and slowed; ordinary work
# is not. Needs root, loop devices and btrfs-progs; elsewhere it says so. Parts of it by name: ransomware.sh [attack] [work]
#   WORK_VERSIONS=4.2    the versions of NFS over which there is ordinary work (3 and 4.2)
#   CLIENT_LAB_PACKAGES="rsync tcc"   with these in the guest, rsync and a compiler work, too
. "$(dirname "$0")/server.sh"
parts=${*:-attack work}
. "$(dirname "$0")/btrfs.sh"

share_dir=$disk/share
btrfs -q subvolume create "$share_dir" && chown 1000:1000 "$share_dir" || exit 1
in_share() { (cd "$share_dir" && setpriv --reuid 1000 --regid 1000 --clear-groups -- sh -ec "$1"); }
# Files that somebody has written: of three kinds where they are to be renamed.
for d in smb nfs3 nfs4.2; do
  in_share "mkdir $d $d/in-place $d/emptied $d/beside $d/over $d/renamed
    for i in \$(seq 0 11); do
      for how in in-place emptied beside over; do seq \$i 2000 >$d/\$how/\$i.txt; done
      case \$((i % 3)) in 0) suffix=txt;; 1) suffix=doc;; 2) suffix=csv;; esac
      seq \$i 2000 >$d/renamed/\$i.\$suffix
    done"
done
START="ip netns exec $ns" listen=0.0.0.0
"$top/tests/lab/client-lab" build >/dev/null && "$top/tests/lab/client-lab" net "$ns" 1 || exit 1
here() { $START timeout 100 "$@"; }
anabranch() { here "$ANABRANCH" "$@" --state "$scratch/state" 2>&1; }
config=$scratch/anabranch.toml; install -m 600 /dev/null "$config"
# serve RULE: an hour is within the time of a busy machine.
serve() {
  cat >"$config" <<EOF
[[share]]
name = "$SHARE"
directory = "$share_dir"
ransomware-alarm = "$1"
[[user]]
name = "$SMB_USER"
password = "$SMB_PASS"
uid = 1000
gid = 1000
EOF
  start_server
}
guest() {
  local what=$1; shift
  tally "$what:" "$top/tests/lab/client-lab" run --netns "$ns" --nics 1 --timeout 600 -e SMB_PORT="$SMB_PORT" -e NFS_PORT="$NFS_PORT" \
    -e SHARE="$SHARE" -e EXPORT="$EXPORT" -e USER="$SMB_USER" -e PASS="$SMB_PASS" -e WHAT="$what" "$@" "$top/tests/lab/guest/ransomware.sh"
}
# alarm CLIENT FIELD: of the alarm about the client of this protocol. NFS clients state a uid; that is how they are told apart here.
alarm() {
  anabranch share alarms "$SHARE" --json | python3 -c 'import json, sys
for alarm in json.load(sys.stdin)["alarms"]:
    if (alarm["user"] is None) == (sys.argv[1] == "nfs"): print(alarm[sys.argv[2]])' "$1" "$2"
}
between() { local got; got=$(alarm "$1" "$2"); echo "$1: $2 is $got"; [ "$got" -ge "$3" ] && [ "$got" -le "$4" ]; }
is() { local got; got=$(alarm "$1" "$2"); echo "$1: $2 is $got"; [ "$got" = "$3" ]; }

attack_part() {
  must "server starts" serve 'on files=10 within=60m snapshot=7d' || return
  guest attack
  check "smb: the user is told" is smb user "$SMB_USER"
  check "smb: the address is told" is smb client 10.0.2.15
  check "nfs: the address is told" is nfs client 10.0.2.15
  # What is emptied counts if it is in memory, where it is unless the machine is short of that.
  check "smb: files written over count" between smb overwritten 12 24
  check "smb: each file replaced counts" is smb replaced 24
  check "smb: each file renamed counts" is smb renamed 12
  check "nfs: files written over count" between nfs overwritten 24 48
  check "nfs: each file replaced counts" is nfs replaced 48
  check "nfs: each file renamed counts" is nfs renamed 24
  check "the suffix is told" is nfs suffix crypted
  taken() { local i; for i in $(seq 600); do case $(alarm smb snapshot) in *.ransomware.*) return ;; esac; sleep 0.1; done; anabranch share alarms "$SHARE"; false; }
  check "a snapshot was taken" taken
  one() { [ "$(anabranch snapshot list "$SHARE" | grep -c ransomware)" = 1 ]; }
  check "one for both clients" one
  kept() { local out; out=$(anabranch snapshot remove "$SHARE" "$(alarm smb snapshot)"); echo "$out"; grep -q 'is protected until' <<<"$out"; }
  check "nobody removes it" kept
  told() { anabranch status | grep "share $SHARE: $SMB_USER at 10.0.2.15 has replaced the contents of [0-9]* files"; }
  check "the status says who" told
  degraded() { local out; out=$(here curl -s "http://127.0.0.1:$CONTROL_PORT/healthz"); echo "$out"; grep -q 'works as ransomware does' <<<"$out" && ! grep -q "$SMB_USER\|10\.0\.2" <<<"$out"; }
  check "without a token, /healthz says only that" degraded
  check "the log says who" grep -q "as ransomware does.*who=$SMB_USER at 10.0.2.15" "$scratch/server.log"
  check "an alarm ends by command" anabranch share alarms "$SHARE" --end "$(alarm smb number)"
  gone() { [ -z "$(alarm smb number)" ] && [ -n "$(alarm nfs number)" ]; }
  check "the other one lasts" gone
  must "SIGTERM ends it" stop_server
}
work_part() {
  in_share 'rm -r smb nfs3 nfs4.2; mkdir smb nfs3 nfs4.2'
  must "server starts with a strict rule" serve 'on files=5 within=60m' || return
  guest work ${WORK_VERSIONS:+-e VERSIONS="$WORK_VERSIONS"}
  none() { local out; out=$(anabranch share alarms "$SHARE"); echo "$out"; grep -q '^There is no alarm' <<<"$out"; }
  check "no work looks like ransomware, although a few files in an hour would raise the alarm" none
  must "SIGTERM ends it" stop_server
}
for part in attack work; do
  [[ " $parts " != *" $part "* ]] || "${part}_part"
done
check "no panic, no password in the log" log_is_clean
finish
