#!/bin/bash
# fsx for minutes over each protocol, side by side, through the kernel's own clients: random reads, writes, truncates and
# mapped accesses on one file, every read compared; a new seed every FSX_OPS operations. Environment:
#   SERVER NFS_PORT MOUNT_PORT EXPORT            over NFS
#   SMB_PORT SHARE USER PASS                     over SMB
#   KINDS     of nfs3 nfs4.1 nfs4.2 smb (all)
#   FSX_SECS  how long (600)
. "$(dirname "$0")/lib.sh"
: "${NFS_PORT:=2049}" "${EXPORT:=/export}" "${MOUNT_PORT:=$NFS_PORT}" "${SMB_PORT:=445}" "${SHARE:=share}" "${USER:=user}" "${PASS:=pass}"
: "${KINDS:=nfs3 nfs4.1 nfs4.2 smb}" "${FSX_SECS:=600}" "${FSX_OPS:=2000}"
umask 0

mount_kind() {
  local nfs="port=$NFS_PORT,proto=tcp,hard,nosharecache"
  case $1 in
    nfs3) mount_at "/mnt/$1" -t nfs "$SERVER:$EXPORT" -o "vers=3,mountport=$MOUNT_PORT,mountproto=tcp,nolock,$nfs" ;;
    nfs4.*) mount_at "/mnt/$1" -t nfs "$SERVER:$EXPORT" -o "vers=${1#nfs},$nfs" ;;
    smb) mount_at "/mnt/$1" -t cifs "//$SERVER/$SHARE" -o "vers=3.1.1,port=$SMB_PORT,username=$USER,password=$PASS" ;;
  esac
}
# one KIND: rounds until the time is over; what fsx says of a difference, or how far it came.
one() {
  local end=$((SECONDS + FSX_SECS)) seed=0 file=/mnt/$1/fsx.$1
  while [ $SECONDS -lt $end ]; do
    seed=$((seed + 1))
    timeout 300 fsx -q -N "$FSX_OPS" -S "$seed" -P /tmp "$file" >"/tmp/said.$1" 2>&1 || { echo "seed $seed: status $?"; tail -n 5 "/tmp/said.$1"; return 1; }
    rm -f "$file"
  done
  echo "$((seed * FSX_OPS)) operations in $((SECONDS - end + FSX_SECS)) s"
}
kinds=()
for kind in $KINDS; do check "mount $kind" mount_kind "$kind"; mountpoint -q "/mnt/$kind" && kinds+=("$kind"); done
for kind in "${kinds[@]}"; do { one "$kind" >"/tmp/far.$kind"; echo $? >"/tmp/status.$kind"; } & done
wait
for kind in "${kinds[@]}"; do
  if [ "$(cat "/tmp/status.$kind")" = 0 ]; then pass "$kind: $(cat "/tmp/far.$kind")"; else fail "$kind" "$(tr '\n' ' ' <"/tmp/far.$kind")"; fi
  check "unmount $kind" umount "/mnt/$kind"
done
finish
