#!/bin/bash
# The Linux kernel's clients (tests/lab) while the gateway of their vserver dies, hangs or is cut off, in a real Ceph cluster: writers over SMB with
# persistent handles, and over NFSv4.2 with locks, must go on without an error, and what was acknowledged must be there. (root)
#   takeover-kernel.sh [smb] [nfs]    these protocols (both)
#   EVENTS="kill stop ..."            what happens to the gateway that serves (kill stop): faults of faults.sh
EVENTS=${EVENTS:-kill stop}
name=takeover-kernel network=10.0.2 user=alice password=one-two-three
flags=(--user "$user=1000:1000:$password")
. "$(dirname "$0")/faults.sh"
for event in $EVENTS; do is_fault "$event" || { echo "takeover-kernel: there is no fault $event"; exit 2; }; done
. "$(dirname "$0")/two-gateways.sh"
"$top/tests/lab/client-lab" build >/dev/null || exit 1
# The guest's address is 10.0.2.15.
ip -n "$net-hub" tuntap add dev clab0 mode tap && ip -n "$net-hub" link set clab0 master br0 up || { echo "not tested: $name: no tap"; finish; exit; }

serve a; serve b
check "one gateway makes a cluster" at a cluster init
check "the other joins" at b cluster join
check "a vserver is made" at a vserver create files --address "$network.10%eth0/24" --share data=cephfs:/files
owner=a other=b

# happens FAULT: to the gateway that serves. The other one takes over, if it is to, and the first is a gateway again.
happens() {
  local begun; begun=$(date +%s.%N)
  break_down "$1"
  if moves "$1"; then
    soon serves "$other" files "$other" || fail "$1: the other gateway takes over" "$(at "$other" vserver list)"
    echo "  $1: the other gateway serves after $(python3 -c "import time; print(f'{time.time() - $begun:.1f} s')")"
    grep 'was taken over' "$scratch/log-$other" | tail -n 1 | sed 's/.*vserver="files"/ /'
  fi
  repair "$1" || fail "$1: the gateway that served is a gateway again" "$(at "$owner" cluster status)"
  serves "$other" files "$other" || return 0
  local served=$owner; owner=$other other=$served
}
events=($EVENTS)
# tell PREFIX COMMAND...: counts the lines of a guest's script, and does what it asks for: `kill me N` is the Nth event.
tell() {
  local prefix=$1 line ended=0; shift
  while IFS= read -r line; do
    case $line in
      "ok "*) pass "$prefix ${line#ok }" ;;
      "FAIL "*) fail "$prefix ${line#FAIL }" ;;
      "  kill me "*) happens "${events[${line##* } - 1]}" ;;
      [0-9]*" passed, "[0-9]*" failed") ended=1 ;;
      *) echo "  $line" ;;
    esac
  done < <("$@" 2>&1)
  [ "$ended" = 1 ] || fail "$prefix" "was cut off"
}
guest() {
  local script=$1; shift
  "$top/tests/lab/client-lab" run --netns "$net-hub" --nics 1 --timeout $((300 + 120 * ${#events[@]})) -e SERVER="$network.10" -e KILLS=${#events[@]} \
    "$@" "$top/tests/lab/guest/$script"
}
for protocol in ${*:-smb nfs}; do
  case $protocol in
    smb) tell "smb:" guest cifs-restart.sh -e SHARE=data -e USER="$user" -e PASS="$password" -e CHANNELS=1 ;;
    nfs) tell "nfs:" guest restart.sh -e EXPORT=/data -e VERSION=4.2 -e NFS_PORT=2049 ;;
    *) echo "takeover-kernel: no such protocol: $protocol"; exit 2 ;;
  esac
done
check "the vserver ends" at "$owner" vserver remove files
for node in a b; do
  kill -TERM "${pid[$node]}"; wait "${pid[$node]}"
  check "the gateway $node stops as it should" [ $? = 0 ]
  unset "pid[$node]"
  check "the log of $node has no panic" eval '! grep -q "panicked" "$scratch/log-$node"'
done
[ "$failed" = 0 ] || logs
finish
