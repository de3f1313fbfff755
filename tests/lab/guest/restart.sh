#!/bin/bash
# A server that is killed and started again while the kernel's NFS client writes: old file handles go on, everything
# that was acknowledged as stable is there, and with NFSv4 no open file and no lock is lost. The host kills and restarts the
# server each time this script prints `kill me N`, and goes on when it is up again. Environment:
#   SERVER NFS_PORT MOUNT_PORT EXPORT   where
#   VERSION   3 (default), 4.0, 4.1 or 4.2
#   KILLS     how often (3)
. "$(dirname "$0")/lib.sh"
: "${NFS_PORT:=2049}" "${EXPORT:=/export}" "${MOUNT_PORT:=$NFS_PORT}" "${VERSION:=3}" "${KILLS:=3}"
m=/mnt/nfs writers=files,log,unstable,names,fio,fsx
options="vers=$VERSION,port=$NFS_PORT,proto=tcp,hard,timeo=10,nconnect=4"
case $VERSION in
  # The data paths of the minor versions are the same, and the kills fewer: no steps as long as fio's and fsx's.
  4.0) writers=files,log,unstable,names,locks,cached ;;
  3) options+=",mountport=$MOUNT_PORT,mountproto=tcp,nolock" ;;
  *) writers+=,locks,cached ;;
esac
check "mount" mount_at $m -t nfs "$SERVER:$EXPORT" -o "$options"
mountpoint -q $m || { finish; exit 1; }
mkdir $m/restart && chmod 777 $m/restart
if [ "$VERSION" != 3 ]; then  # locks are contended through a mount of their own
  check "second mount" mount_at $m.other -t nfs "$SERVER:$EXPORT" -o "$options,nosharecache"
  export OTHER=$m.other/restart
fi
kills=(); for ((i = 1; i <= KILLS; i++)); do kills+=("echo kill me $i"); done
# fio's and fsx's steps are long on a busy machine, a writer's longest standstill is told.
DEADLINE_S=120 TALLY_S=$((200 + KILLS * 60)) tally "restart:" python3 "$(dirname "$0")/survive.py" $m/restart "$writers" "${kills[@]}"
rm -rf $m/restart
[ -z "${OTHER:-}" ] || check "unmount the second" umount $m.other
check "unmount" umount $m
finish
