#!/bin/bash
# A server that is killed and started again while the kernel's SMB client writes: persistent handles
# are reclaimed, locks are held through it, and what was acknowledged is there, once. The share must be
# continuously available. The host kills and restarts the server each time this script prints `kill me N`. Environment:
#   SERVER SMB_PORT SHARE USER PASS   where and as whom
#   KILLS      how often (3)
#   CHANNELS   channels (4)
#   PERSISTENT whether the handles must be persistent (1)
. "$(dirname "$0")/lib.sh"
: "${SMB_PORT:=445}" "${SHARE:=share}" "${USER:=user}" "${PASS:=pass}" "${KILLS:=3}" "${CHANNELS:=4}" "${PERSISTENT:=1}"
m=/mnt/smb o=/mnt/other
opts="vers=3.1.1,port=$SMB_PORT,username=$USER,password=$PASS,hard,echo_interval=2,nosharesock"
[ "$PERSISTENT" != 1 ] || opts+=,persistenthandles
whole() { [ "$(ss -Htn state established "( dport = :$SMB_PORT )" | wc -l)" = $((CHANNELS + 1)) ] && ! grep -qE 'DISCONNECTED|RECONNECTING' /proc/fs/cifs/DebugData; }
export SMB_PORT CHANNELS; export -f whole cifs_state

check "mount with $CHANNELS channels" mount_at $m -t cifs "//$SERVER/$SHARE" -o "$opts,multichannel,max_channels=$CHANNELS"
check "mount of another client" mount_at $o -t cifs "//$SERVER/$SHARE" -o "$opts,actimeo=0"
mountpoint -q $m && mountpoint -q $o && mkdir $m/restart || { finish; exit 1; }
[ "$PERSISTENT" != 1 ] || check "handles are persistent" grep -q persistenthandles /proc/mounts
kills=(); for ((i = 1; i <= KILLS; i++)); do kills+=("echo kill me $i"); done
TALLY_S=700 OTHER=$o/restart RECOVERED=whole EXPLAIN=cifs_state tally "restart:" python3 "$(dirname "$0")/survive.py" $m/restart "${WRITERS:-files,log,cell,unstable,cached,names,locks}" "${kills[@]}"
rm -rf $m/restart
check "unmount both" umount $o $m
finish
