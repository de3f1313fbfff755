#!/bin/bash
# What `anabranch advise host` says of a machine whose kernel has mounted something: the mounts beside what the kernel itself shows.
# The program is in /share. Environment: SERVER SMB_PORT NFS_PORT SHARE EXPORT USER PASS, as for the others; the server offers two
# interfaces with RSS and takes four channels.
. "$(dirname "$0")/lib.sh"
: "${SMB_PORT:=445}" "${NFS_PORT:=2049}" "${SHARE:=share}" "${EXPORT:=/export}" "${USER:=user}" "${PASS:=pass}"

smb=/mnt/smb n4=/mnt/n4 n3=/mnt/n3
look() { timeout 60 /share/anabranch advise host --json >/tmp/said.json; }
# says ABOUT VERDICT TEXT: the last look has exactly one finding with the text of that thing, and its verdict is that one.
says() {
  python3 - "$@" <<'PYTHON'
import json, sys
about, verdict, text = sys.argv[1:]
of = [f for f in json.load(open("/tmp/said.json")) if f["about"] == about]
print([(f["verdict"], f["text"]) for f in of])
sys.exit([f["verdict"] for f in of if text in f["text"]] != [verdict])
PYTHON
}
silent() { python3 -c 'import json,sys; of=[f["about"] for f in json.load(open("/tmp/said.json")) if f["about"].startswith("/mnt")]; print(of); sys.exit(bool(of))'; }
channels() { awk '/Extra Channels:/ {n=$NF} END {print n+1}' /proc/fs/cifs/DebugData; }
conns() { grep -c 'xprt:.*tcp' <(sed -n "\\, on $1 ,,/^device.* on [^ ]* with fstype /{\\, on $1 ,p;/xprt/p}" /proc/self/mountstats); }
# mount_smb CHANNELS OPTIONS: further channels come up after the mount; they are waited for.
mount_smb() {
  local end=$((SECONDS + 60))
  mount_at "$smb" -t cifs "//$SERVER/$SHARE" -o "vers=3.1.1,port=$SMB_PORT,username=$USER,password=$PASS$2" || return 1
  until [ "$(channels)" = "$1" ]; do
    [ $SECONDS -lt $end ] || { echo "$(channels) channels"; return 1; }
    sleep 0.2
  done
}
nfs="port=$NFS_PORT,proto=tcp,hard,timeo=100"

check "the program runs" look
check "nothing is mounted: nothing is said of mounts" silent
check "kernel $(uname -r)" says "Linux $(uname -r | cut -d. -f1,2)" green "nconnect"
check "an interface of a guest" says vec0 yellow "reports no speed"

check "mount four channels" mount_smb 4 ,multichannel,max_channels=4
check "four channels, as the kernel has them" bash -c "[ $(channels) = 4 ]"
check "look" look
check "four channels" says "$smb" green "4 channels"
check "leases" says cifs.ko green "the client asks for leases"
check "unmount" umount "$smb"
check "mount one channel" mount_smb 1 ""
check "look" look
check "one channel" says "$smb" yellow "one channel"
check "unmount" umount "$smb"
check "mount eight channels" mount_smb 4 ,multichannel,max_channels=8
has=$(channels)
check "fewer, as the kernel has them" bash -c "[ $has -lt 8 ]"
check "look" look
check "$has of eight channels" says "$smb" red "$has of the 8 channels"

check "mount nfs 4.1" mount_at "$n4" -t nfs "$SERVER:$EXPORT" -o "$nfs,vers=4.1,nconnect=4"
check "mount nfs 3" mount_at "$n3" -t nfs "$SERVER:$EXPORT" -o "$nfs,vers=3,mountport=$NFS_PORT,mountproto=tcp,nolock,nconnect=2,nosharecache"
ls "$n4" "$n3" >/dev/null
check "look" look
check "nfs 4.1: four connections, as the kernel has them" bash -c "[ $(conns $n4) = 4 ]"
check "nfs 4.1: four connections" says "$n4" green "4 connections"
check "nfs 3: connections, as the kernel has them" says "$n3" green "$(conns $n3) connections"
check "nfs 4.1: slots" says "$n4" green "slots"
for m in "$n4" "$n3"; do
  bdi=/sys/class/bdi/$(mountpoint -d "$m")
  check "$m: read-ahead" says "$m" yellow "reads $(cat "$bdi/read_ahead_kb") KiB ahead"
  echo 15360 >"$bdi/read_ahead_kb"
done
check "look" look
for m in "$n4" "$n3"; do check "$m: read-ahead, mended" says "$m" green "reads 15360 KiB ahead"; done
check "smb stays as it was" says "$smb" red "of the 8 channels"
echo "what it says then:"
timeout 60 /share/anabranch advise host
for m in "$smb" "$n4" "$n3"; do check "unmount $m" umount "$m"; done
check "look" look
check "nothing is mounted any more" silent
finish
