#!/bin/bash
# How long clients wait when something happens to the gateway of their vserver, in a real Ceph cluster (tests/lab/ceph-lab): each fault of
# faults.sh several times, to the gateway that serves at that moment. For docs/measured/cluster.md; what is held and what is there is
# checked, and the times are judged with --judge only. (root; some minutes for each)
#   takeover-faults.sh [--judge] [FAULT ...]    these faults (kill kill-mds stop pause storage clients network osd)
#   TIMES      how often each happens (1)
#   FILES      how many open files with locks a client has (1000)
#   VSERVERS=PROGRAM, ANABRANCH=PROGRAM    built already
TIMES=${TIMES:-1} FILES=${FILES:-1000}
[[ $TIMES =~ ^[1-9][0-9]{0,3}$ && $FILES =~ ^[1-9][0-9]{0,3}$ ]] || { echo "takeover-faults: TIMES and FILES are 1 to 9999: $TIMES, $FILES"; exit 2; }
vservers=${VSERVERS:-${CARGO_TARGET_DIR:-$(dirname "$0")/../../target}/debug/examples/vservers}
[ -x "$vservers" ] || { echo "build the example vservers first"; exit 1; }
name=faults network=192.0.2 flags=() judges=''
[ "${1:-}" != --judge ] || { judges=--judge; shift; }
. "$(dirname "$0")/faults.sh"
faults=(${*:-kill kill-mds stop pause storage clients network osd})
for fault in "${faults[@]}"; do is_fault "$fault" || { echo "takeover-faults: there is no fault $fault"; exit 2; }; done
. "$(dirname "$0")/two-gateways.sh"

serve a; serve b
check "one gateway makes a cluster" at a cluster init
check "the other joins" at b cluster join
check "a vserver is made" at a vserver create files --address "$network.10%eth0/24" --share data=cephfs:/files --smb off
owner=a other=b
for fault in "${faults[@]}"; do
  for ((i = 1; i <= TIMES; i++)); do
    # At any moment between two renewals of the lease.
    sleep "0.$((RANDOM % 10))"
    takeover "$fault" "$fault-$i" "$FILES"
    echo "$fault $gap $wait $back" >>"$scratch/times"
  done
done
check "the vserver ends" at "$owner" vserver remove files
for node in a b; do
  kill -TERM "${pid[$node]}"; wait "${pid[$node]}"
  check "the gateway $node stops as it should" [ $? = 0 ]
  unset "pid[$node]"
  check "the log of $node has no panic" eval '! grep -q "panicked" "$scratch/log-$node"'
done
python3 "$top/tests/interop/takeover_times.py" $judges "$FILES" <"$scratch/times" || fail "the times" "a goal is missed"
[ "$failed" = 0 ] || logs
finish
