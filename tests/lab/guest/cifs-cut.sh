#!/bin/bash
# Channels cut under load: the kernel's SMB client writes and verifies over several channels while
# connections are closed from the server's side, an interface goes down and up, and a path loses
# every packet for a while. No error may reach a program, no byte may be wrong, and each time all
# channels must come back. The host closes the server's ends of the connections to address A each
# time this script prints `cut me A`. (It sends a FIN. A reset may meet the client between two parts of a
# request that it is sending, and then the kernel 6.1 gives the program ECONNABORTED, whatever the server.) Environment:
#   SERVER SERVERS SMB_PORT SHARE USER PASS   where and as whom; the server must advertise SERVERS
#   CHANNELS   channels wanted (as many as SERVERS)
#   ROUNDS     how often all of it (1)
#   EVENTS     what happens in a round, separated by commas (all of it): cut 10.0.5.2,down_up vec3 4,silent vec3 3
#   WRITERS    those of survive.py, separated by commas
#   ECHO       the client's echo_interval (2 s): it takes a silent server for dead after three
#   MOUNT_OPTS extra mount options
. "$(dirname "$0")/lib.sh"
: "${SMB_PORT:=445}" "${SHARE:=share}" "${USER:=user}" "${PASS:=pass}" "${ROUNDS:=1}" "${ECHO:=2}"
read -ra servers <<<"$SERVERS"
: "${CHANNELS:=${#servers[@]}}"
export SMB_PORT CHANNELS
export m=/mnt/smb o=/mnt/other
opts="vers=3.1.1,port=$SMB_PORT,username=$USER,password=$PASS,hard,echo_interval=$ECHO,nosharesock${MOUNT_OPTS:+,$MOUNT_OPTS}"

# ports ADDRESS: our ends of the connections to it.
ports() { ss -Htn state established "( dport = :$SMB_PORT ) and dst $1" | awk '{print $3}' | sort; }
# cut ADDRESS...: asks for it, and waits until none of the connections is left.
cut() {
  local a p was=(); for a in "$@"; do was+=("$(ports "$a")"); done
  for a in "$@"; do echo "cut me $a"; done
  for a in "$@"; do
    for p in ${was[0]}; do
      timeout 60 bash -c "while ss -Htn state established \"( dport = :$SMB_PORT )\" | grep -qF '$p '; do sleep 0.1; done" || { echo "FAIL nobody cut $p"; return 1; }
    done
    was=("${was[@]:1}")
  done
}
# whole: as many connections as channels, and none of which the client says that it is to be made again.
whole() {
  local n; n=$(ss -Htn state established "( dport = :$SMB_PORT )" | wc -l)
  echo "$n of $((CHANNELS + 1)) connections;" $(grep -oE 'Primary channel: DISCONNECTED|Channel: [0-9]+|DISCONNECTED|RECONNECTING' /proc/fs/cifs/DebugData)
  [ "$n" = $((CHANNELS + 1)) ] && ! grep -qE 'DISCONNECTED|RECONNECTING' /proc/fs/cifs/DebugData &&
    [ "$(awk '/Extra Channels:/ {n = $3} END {print n + 1}' /proc/fs/cifs/DebugData)" = "$CHANNELS" ]
}
silent() { tc qdisc replace dev "$1" root netem loss 100% && sleep "$2" && tc qdisc del dev "$1" root; }
down_up() { ip link set "$1" down && sleep "$2" && ip link set "$1" up; }
# overtaken DEV ADDRESS...: cuts channels one after the other while direct writes are queued in a slow one, which those that are
# sent again overtake. fio says what a program is told of it (docs/measured/linux-client.md); the event itself does not fail.
overtaken() {
  local dev=$1 a; shift
  tc qdisc replace dev "$dev" root tbf rate 4mbit burst 32kb latency 20s || return 1
  fio --name=overtaken --directory=$m/cut --rw=randwrite --direct=1 --ioengine=libaio --iodepth=32 --bs=64k --size=16m --time_based --runtime=12 \
    --eta=never --minimal >/tmp/overtaken 2>&1 &
  for a in "$@"; do sleep 3; cut "$a"; done
  wait; grep -a '^fio: ' /tmp/overtaken
  tc qdisc del dev "$dev" root
}
export -f ports cut whole silent down_up overtaken cifs_state

modprobe sch_netem
check "mount with $CHANNELS channels" mount_at $m -t cifs "//$SERVER/$SHARE" -o "$opts,multichannel,max_channels=$CHANNELS"
check "mount of another client" mount_at $o -t cifs "//$SERVER/$SHARE" -o "$opts,actimeo=0"
mountpoint -q $m && mountpoint -q $o && mkdir $m/cut || { finish; exit 1; }
# Further channels come up after the mount.
become_whole() { local end=$((SECONDS + 60)); until whole; do [ $SECONDS -lt $end ] || return 1; sleep 0.2; done; }
check "all channels before" become_whole
last=$((${#servers[@]} - 1)) events=()
for ((round = 0; round < ROUNDS; round++)); do
  [ -z "${EVENTS:-}" ] || { IFS=, read -ra given <<<"$EVENTS"; events+=("${given[@]}"); continue; }
  events+=("cut ${servers[$last]}" "cut ${servers[0]}" "cut ${servers[*]:1}" "down_up vec$last 4" "down_up vec0 4" "silent vec$last 3" "silent vec$last $((ECHO * 4 + 2))")
done
OTHER=$o/cut RECOVERED=whole EXPLAIN=cifs_state TALLY_S=$((300 * ROUNDS)) tally "cut:" python3 "$(dirname "$0")/survive.py" $m/cut "${WRITERS:-fio,files,log,cell,cached,names}" "${events[@]}"
check "all channels after" whole
rm -rf $m/cut
check "unmount both" umount $o $m
finish
