#!/bin/bash
# A server that is killed and started again while the kernel's NFSv3 client writes: old file handles
# go on, and everything that was acknowledged as stable is there. The host kills and restarts the
# server each time this script prints `kill me N`, and goes on when it is up again. Environment:
#   SERVER NFS_PORT MOUNT_PORT EXPORT   where
#   KILLS     how often (3)
. "$(dirname "$0")/lib.sh"
: "${NFS_PORT:=2049}" "${EXPORT:=/export}" "${MOUNT_PORT:=$NFS_PORT}" "${KILLS:=3}"
m=/mnt/nfs
check "mount" mount_at $m -t nfs "$SERVER:$EXPORT" -o "vers=3,port=$NFS_PORT,mountport=$MOUNT_PORT,proto=tcp,mountproto=tcp,nolock,hard,timeo=10,nconnect=4"
mountpoint -q $m || { finish; exit 1; }
mkdir $m/restart && chmod 777 $m/restart
kills=(); for ((i = 1; i <= KILLS; i++)); do kills+=("echo kill me $i"); done
tally "restart:" python3 "$(dirname "$0")/survive.py" $m/restart files,log,unstable,names "${kills[@]}"
rm -rf $m/restart
check "unmount" umount $m
finish
