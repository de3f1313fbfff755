#!/bin/bash
# All channels lost at once while the server lives: every interface is silent for so long that the kernel's
# SMB client gives all connections up. Open files go on, and locks are held through it (durable handles). Environment:
#   SERVER SERVERS SMB_PORT SHARE USER PASS   where and as whom
#   LOSSES     how often (2)
. "$(dirname "$0")/lib.sh"
: "${SMB_PORT:=445}" "${SHARE:=share}" "${USER:=user}" "${PASS:=pass}" "${LOSSES:=2}"
read -ra servers <<<"$SERVERS"
: "${CHANNELS:=${#servers[@]}}"
export SMB_PORT CHANNELS nics=${#servers[@]}
m=/mnt/smb o=/mnt/other
opts="vers=3.1.1,port=$SMB_PORT,username=$USER,password=$PASS,hard,echo_interval=2,nosharesock"
whole() { [ "$(ss -Htn state established "( dport = :$SMB_PORT )" | wc -l)" = $((CHANNELS + 1)) ] && ! grep -qE 'DISCONNECTED|RECONNECTING' /proc/fs/cifs/DebugData; }
# silence SECONDS: nothing leaves this machine.
silence() {
  local i
  for ((i = 0; i < nics; i++)); do tc qdisc replace dev vec$i root netem loss 100% || return 1; done
  sleep "$1"
  for ((i = 0; i < nics; i++)); do tc qdisc del dev vec$i root; done
}
export -f whole silence cifs_state

modprobe sch_netem
check "mount with $CHANNELS channels" mount_at $m -t cifs "//$SERVER/$SHARE" -o "$opts,multichannel,max_channels=$CHANNELS"
check "mount of another client" mount_at $o -t cifs "//$SERVER/$SHARE" -o "$opts,actimeo=0"
mountpoint -q $m && mountpoint -q $o && mkdir $m/loss || { finish; exit 1; }
events=(); for ((i = 1; i <= LOSSES; i++)); do events+=("silence 10"); done
OTHER=$o/loss RECOVERED=whole EXPLAIN=cifs_state tally "loss:" python3 "$(dirname "$0")/survive.py" $m/loss "${WRITERS:-log,cell,cached,locks}" "${events[@]}"
rm -rf $m/loss
check "unmount both" umount $o $m
finish
