# What may happen to the gateway that serves the vserver `files`, for the scripts that source two-gateways.sh, too. They set `owner`, which
# serves it, and `other`. The faults:
#   kill       the process is killed
#   kill-mds   the same, and the active metadata server is killed, too
#   stop       the process is stopped for STOPPED seconds (8), longer than its lease, and goes on
#   pause      the same for a second
#   storage    its link to Ceph fails for STOPPED seconds
#   clients    the same of its link to the clients
#   network    both links
#   osd        an OSD is killed
STOPPED=${STOPPED:-8}
case $STOPPED in [5-9] | [1-9][0-9]) ;; *) echo "STOPPED is 5 to 99 seconds, more than a lease: $STOPPED"; exit 2 ;; esac
is_fault() { case $1 in kill | kill-mds | stop | pause | storage | clients | network | osd) ;; *) false ;; esac; }
# Whether another gateway takes over.
moves() { case $1 in pause | osd) false ;; esac; }
link() { in_hub link set "$1-$owner" "$2"; }
active_mds() { echo "mds.$(in_ns hub "$lab" active-mds | sed 's/^mds\.//')"; }
# break_down FAULT: it happens to the owner.
break_down() {
  broken_at=$(date +%s)
  case $1 in
    kill) kill -KILL "${pid[$owner]}" ;;
    kill-mds) broken=$(active_mds); kill -KILL "${pid[$owner]}"; in_ns hub "$lab" kill "$broken" ;;
    # One thread gets the signal, and stops the others when it runs.
    stop | pause) kill -STOP "${pid[$owner]}"; soon is_stopped "${pid[$owner]}" ;;
    storage) link store down ;;
    clients) link to down ;;
    network) link to down; link store down ;;
    osd) broken=osd.1; in_ns hub "$lab" kill $broken ;;
  esac
}
# repair FAULT: it is over, STOPPED seconds after it happened or later. The gateway that was the owner has its place, and another may serve.
repair() {
  local rest=$((broken_at + STOPPED + 1 - $(date +%s)))
  case $1 in kill | kill-mds) ;; pause) sleep 1 ;; *) [ $rest -le 0 ] || sleep $rest ;; esac
  case $1 in
    kill | kill-mds) wait "${pid[$owner]}" 2>/dev/null; serve "$owner" ;;
    stop | pause) kill -CONT "${pid[$owner]}" ;;
    storage) link store up ;;
    clients) link to up ;;
    network) link store up; link to up ;;
  esac
  case $1 in kill-mds | osd) in_ns hub "$lab" start "$broken" ;; esac
  [ "$1" != kill-mds ] || soon has_standby
  [ "$1" != osd ] || soon are_osds_up
  soon has_place "$owner" && soon has_carriers
}
has_carriers() { local said; said=$(at "$owner" cluster status) && ! grep -q 'has no carrier' <<<"$said"; }
# Each thread of a process is in the state T (proc_pid_stat(5)).
is_stopped() { ! sed 's/.*) //' /proc/"$1"/task/*/stat | grep -qv '^T'; }
are_osds_up() { in_ns hub "$lab" ceph osd stat | grep -q '3 up'; }
has_address() { ip -n "$net-$1" addr show dev eth0 | grep -q " $network.10/"; }
# Where the client sends what is for the vserver, and where a gateway is.
neighbour() { ip -n "$net-client" neigh show "$network.10" | grep -o 'lladdr [0-9a-f:]*'; }
link_address() { ip -n "$net-$1" link show eth0 | sed -n 's/.*ether \([0-9a-f:]*\).*/lladdr \1/p'; }
has_standby() { in_ns hub "$lab" ceph mds stat | grep -q 'standby'; }

# takeover FAULT NAME [FILES]: what clients see of it. One connects anew every 10 ms; another holds files open, with a lock in each, and
# writes. Sets gap and wait (ms) to the longest time without an answer of the one and the other, and back (ms) to the time until all files
# were back, 0 if nothing was lost.
takeover() {
  local fault=$1 name=$2 files=${3:-1} gaps hold late said='' in out
  rm -f "$scratch/stop"
  ip netns exec "$net-client" python3 "$top/tests/interop/gap.py" "$network.10" 2049 "$scratch/stop" >"$scratch/gap-$name" 2>&1 &
  gaps=$!
  ip netns exec "$net-client" "$vservers" hold "$network.10:2049" "$name" $((STOPPED + 4)) "$files" >"$scratch/hold-$name" 2>&1 &
  hold=$! clients=($gaps $hold)
  if [ "$fault" = stop ]; then
    coproc LATE { ip netns exec "$net-client" python3 "$top/tests/interop/late.py" "$network.10" 2049 2>&1; }
    # bash closes its own ends when the process has ended.
    late=$LATE_PID; exec {in}<&"${LATE[0]}" {out}>&"${LATE[1]}"; clients+=($late); read -r <&$in
  fi
  soon grep -q '^writing' "$scratch/hold-$name"; soon grep -q '^begun' "$scratch/gap-$name"; sleep 1
  break_down "$fault"
  [ "$fault" != stop ] || { echo >&$out; read -r <&$in; }
  ! moves "$fault" || check "$name: the other takes over" soon serves "$other" files "$other"
  [ "$fault" != kill ] || check "$name: the address stays on its machine" has_address "$owner"
  [ "$fault" != clients ] || check "$name: no vserver comes to it" eval 'at "$other" vserver move files "$owner" | grep -q "has no carrier"'
  # Not inside of `check`, which has a shell of its own: it may start a gateway.
  repair "$fault"
  check "$name: the gateway that served is a gateway again" [ $? = 0 ]
  if [ "$fault" = stop ]; then
    check "$name: clients are not sent back to it" [ "$(neighbour)" = "$(link_address "$other")" ]
    echo >&$out; read -r said <&$in
    check "$name: it answers nothing of what it was asked before ($said)" eval '[[ "$said" = "0 answers"* ]]'
    wait "$late"; exec {in}<&- {out}>&-
  fi
  wait $hold
  check "$name: files and locks are back, and what was acknowledged is there" [ $? = 0 ]
  sleep 1; touch "$scratch/stop"; wait $gaps
  check "$name: the client that connects anew is answered to the end" [ $? = 0 ]
  clients=()
  cat "$scratch/gap-$name" "$scratch/hold-$name"
  gap=$(sed -n 's/.*longest gap \([0-9]*\) ms/\1/p' "$scratch/gap-$name")
  wait=$(sed -n 's/^longest wait \([0-9]*\) ms/\1/p' "$scratch/hold-$name")
  back=$(sed -n 's/^all back after \([0-9]*\) ms/\1/p' "$scratch/hold-$name" | sort -n | tail -n 1); back=${back:-0} gap=${gap:-none} wait=${wait:-none}
  serves "$other" files "$other" || return 0
  grep 'was taken over' "$scratch/log-$other" | tail -n 1 | sed 's/.*vserver="files"/ /'
  local served=$owner; owner=$other other=$served
}
