#!/bin/bash
# The kernel's own clients (tests/lab) against one running Anabranch server, one share over both
# protocols.   lab.sh [PART ...]     (all of them: see `all`)
#   KILLS=1 lab.sh short       the form of scripts/test: a check that two versions or numbers of connections share is made
#                              once, with fewer files and operations
#   KILLS=20 lab.sh restart restart4.0 restart4.1 restart4     kills and restarts the server that many times (3; NFSv4.0: 1)
#   FSX_SECS=600 lab.sh fsx                         runs fsx that long over each protocol, side by side
# PEER=samba   uses Samba (tests/peers/samba.sh) instead of Anabranch, for cut, network-loss and cifs-restart*: a failure that
#              also occurs there is not Anabranch's
# ROUNDS, EVENTS, WRITERS   as in tests/lab/guest/cifs-cut.sh, for cut
# KEEP=DIR     keeps the packets (their first 300 bytes, if there is tcpdump) and the server's log of each failed part there
. "$(dirname "$0")/server.sh"
lab=$top/tests/lab
ns=anabranch-$$
all="cifs nfs3 nfs4 copy both both4 pairs nlm trunks acl pjdfstest pjdfstest4 restart restart4 nfs4.0 restart4.0 channels host"      # and by name: nfs4.2 pjdfstest4.2 defaults frozen fio lost4.0 restart4.1 fsx cut network-loss cifs-restart cifs-restart-1
short="channels nfs3 nfs4.2 copy both4 pairs nlm trunks acl pjdfstest pjdfstest4.2 restart restart4 nfs4.0 restart4.0 host"
kills_of_4_0=${KILLS:-1}
: "${KILLS:=3}" "${FSX_SECS:=600}"
parts=${*:-$all}
guest_form=()
[ "$parts" != short ] || parts=$short guest_form=(-e MANY=250 -e FSX_OPS=500)

[ "$(id -u)" = 0 ] || { echo "needs root (network namespaces)"; exit 1; }
"$lab/client-lab" build >/dev/null || exit 1
trap '[ -z "${PEER:-}" ] || stop_server; thaw; end_scratch; [ -z "$disk" ] || kill "$disk"; ip netns del "$ns" 2>/dev/null' EXIT

START="ip netns exec $ns" listen=0.0.0.0 want_smb=445 want_nfs=2049
# Replaces start_server and the like by functions for Samba, which has no persistent handles.
if [ "${PEER:-}" = samba ]; then
  SHARE=bench SMB_USER=bench SMB_PASS=bench-pass EXPORT=/none
  samba() {
    local i extra="interfaces ="
    for ((i = 0; i < nics; i++)); do extra+=" \"10.0.$((2 + i)).2;speed=10000000000\""; done
    ip netns exec "$ns" env PORT=445 BIND=0.0.0.0 STATE="$scratch/samba" BUSER="$SMB_USER" BPASS="$SMB_PASS" EXTRA="$extra" "$top/tests/peers/samba.sh" "$@"
  }
  start_server() { chmod 711 "$scratch" && : >"$scratch/server.log" && SMB_PORT=445 NFS_PORT=2049 && samba start; }
  stop_server() { samba stop; }
  # shellcheck disable=SC2046
  kill_server() { kill -KILL $(samba pids); rm -f "$scratch/samba/run/smbd.pid"; }
  log_is_clean() { true; }
fi

nics='' flags=()
server() { start_server ${flags[@]+"${flags[@]}"}; }
# serve NICS FLAG...: starts the server on a network with that many interfaces, unless it already runs so.
serve() {
  [ "$*" != "$served" ] || return 0
  [ -z "$served" ] || { must "SIGTERM ends the server of $nics interfaces" stop_server; ip netns del "$ns"; }
  served=$*; nics=$1 flags=("${@:2}")
  "$lab/client-lab" net "$ns" "$nics" || exit 1
  must "a server of $nics interfaces starts" server || { finish; exit 1; }
}
served=''

# Sets $tcpdump while the packets of a part are recorded. They go into a ring of files, because a part may move gigabytes.
tcpdump=''
start_capture() {
  [ -n "${KEEP:-}" ] || return 0
  log_from=$(wc -c <"$scratch/server.log") failed_before=$failed
  mkdir -p "$KEEP" "$scratch/packets"
  command -v tcpdump >/dev/null || { echo "no tcpdump: the packets are not kept"; return 0; }
  ip netns exec "$ns" setpriv --pdeathsig KILL -- tcpdump -q -n -Z root -i any -s 300 -B 16384 -C 200 -W 4 \
    -w "$scratch/packets/$1.pcap" "tcp port $SMB_PORT or tcp port $NFS_PORT or arp or icmp" 2>/dev/null &
  tcpdump=$!
}
end_capture() {
  local f
  [ -n "${KEEP:-}" ] || return 0
  [ -z "$tcpdump" ] || { kill "$tcpdump"; wait "$tcpdump" 2>/dev/null; tcpdump=''; }
  if [ "$failed" != "$failed_before" ]; then
    tail -c "+$((log_from + 1))" "$scratch/server.log" >"$KEEP/$$-$1.log"
    for f in "$scratch/packets/"*; do [ ! -e "$f" ] || mv "$f" "$KEEP/$$-${f##*/}"; done
    echo "kept: $KEEP/$$-$1.*"
  fi
  rm -rf "$scratch/packets"
}

# A local disk that can be made to stall: an ext4 file system in a file. Only the server and $disk see it; $disk holds the mount
# namespace in which it is mounted.
disk=''
mount_disk() {
  local tries
  mkdir -p "$scratch/disk"
  truncate -s 64M "$scratch/disk.image" && mkfs.ext4 -q -F -E root_owner=1000:1000 "$scratch/disk.image" || return 1
  # shellcheck disable=SC2016
  setpriv --pdeathsig KILL -- unshare -m --propagation slave -- sh -c 'mount -o loop "$0" "$1" && exec sleep infinity' \
    "$scratch/disk.image" "$scratch/disk" 2>"$scratch/said" &
  disk=$!
  for ((tries = 0; tries < 200; tries++)); do
    kill -0 "$disk" 2>/dev/null || { disk=''; return 1; }
    on_disk mountpoint -q "$scratch/disk" 2>/dev/null && return 0
    sleep 0.05
  done
  return 1
}
on_disk() { nsenter -t "$disk" -m -- "$@"; }
# Another process thaws the disk, even if this one is killed meanwhile.
freeze() {
  # shellcheck disable=SC2016
  on_disk setsid sh -c 'fsfreeze -f "$0" && sleep "$1"; fsfreeze -u "$0"' "$scratch/disk" "$1"
}
thaw() { [ -z "$disk" ] || on_disk fsfreeze -u "$scratch/disk" 2>/dev/null; }

engine=()
guest() {  # SECONDS SCRIPT [-e NAME=VALUE ...]
  local limit=$1 script=$2; shift 2
  "$lab/client-lab" run ${engine[@]+"${engine[@]}"} --netns "$ns" --nics "$nics" --timeout "$limit" -e SMB_PORT="$SMB_PORT" -e NFS_PORT="$NFS_PORT" -e SHARE="$SHARE" -e EXPORT="$EXPORT" \
    -e USER="$SMB_USER" -e PASS="$SMB_PASS" ${guest_form[@]+"${guest_form[@]}"} "$@" "$lab/guest/$script"
}
# tell PREFIX: counts the ok and FAIL lines of a guest script, and prints the others. The script's last line must be there.
tell() {
  local line seen=0 ended=0
  while IFS= read -r line; do
    case $line in
      "ok "*) seen=1; pass "$1 ${line#ok }" ;;
      "FAIL "*) seen=1; fail "$1 ${line#FAIL }" ;;
      # A request is at the beginning of its line, because results mention these events too.
      "  kill me "*) echo "$line"; kill_and_restart ;;
      "  freeze me "*) echo "$line"; freeze "${line##* }" || fail "the disk is frozen" ;;
      "  cut me "*) echo "$line"; ip netns exec "$ns" "$lab/close-connections" "${line##* }" "$SMB_PORT" ;;
      [0-9]*" passed, "[0-9]*" failed") ended=1; echo "  $line" ;;
      *) echo "  $line" ;;
    esac
  done
  [ "$seen" = 1 ] || fail "$1" "printed no result"
  [ "$ended" = 1 ] || fail "$1" "was cut off"
}
# restart VERSION (of NFS): all clients must get back what they held, before the grace period ends by itself. Clients of
# NFSv4.0 do not report that they have it, so it always ends by itself.
restart() {
  local from; from=$(wc -l <"$scratch/server.log")
  tell "nfs v$1" < <(guest $((300 + KILLS * 60)) restart.sh -e VERSION="$1" -e KILLS="$KILLS" 2>&1)
  case $1 in 3 | 4.0) return 0 ;; esac
  local said
  if said=$(reclaimed "$from"); then pass "nfs v$1 restart: $said"; else fail "nfs v$1 restart" "$said"; fi
}
# reclaimed FROM-LINE: reports the grace periods in the log from that line on, and their lengths. Each must have ended with the
# last reclaim.
reclaimed() {
  tail -n "+$(($1 + 1))" "$scratch/server.log" | sed -n 's/^\([^ ]*Z\) .*NFSv4 clients \(may\|have\) reclaim.*/\1 \2/p' >"$scratch/graces"
  python3 - "$scratch/graces" "$KILLS" <<'PYTHON'
import datetime, sys
lines = [line.split() for line in open(sys.argv[1])]
whens = [(datetime.datetime.fromisoformat(when.rstrip("Z")), what) for when, what in lines]
ended = [(end[0] - begin[0]).total_seconds() for begin, end in zip(whens, whens[1:]) if (begin[1], end[1]) == ("may", "have")]
began = sum(what == "may" for _, what in lines)
print(f"{len(ended)} of {began} grace periods ended with the last reclaim, after {max(ended, default=0):.1f} s at most")
sys.exit(len(ended) != began or began < int(sys.argv[2]))
PYTHON
}
# pairs: uses SMB sessions on this machine for share modes that the kernel's client does not request.
pairs() {
  local port=1446
  ip netns exec "$ns" setpriv --pdeathsig KILL -- "$lab/smb-opens" $port 127.0.0.1 "$SHARE" "$SMB_USER" "$SMB_PASS" >"$scratch/opens" 2>&1 &
  local pid=$! tries
  for ((tries = 0; tries < 600; tries++)); do grep -q '^ready' "$scratch/opens" && break; sleep 0.1; done
  tell "" < <(guest 600 pairs.sh -e OPENS_PORT=$port ${ROWS:+-e ROWS="$ROWS"} 2>&1)
  grep -v '^ready' "$scratch/opens" | tail -n 5
  kill "$pid"; wait "$pid" 2>/dev/null
}
# with_program PREFIX SECONDS SCRIPT ...: shows the guest only the program, not the directory in which it was built.
with_program() {
  mkdir -p "$scratch/program"
  ln "$ANABRANCH" "$scratch/program/anabranch" 2>/dev/null || cp "$ANABRANCH" "$scratch/program/anabranch"
  cp "$top/tests/peers/fio_beside.py" "$scratch/program/"
  tell "$1" < <(guest "${@:2}" --share "$scratch/program" 2>&1)
}
kill_and_restart() {
  kill_server
  sleep 0.5
  server || fail "restart: the server starts again"
}

# pjdfstest prints only failures and its own count. The tests that NFSv3 or its clients cannot pass
# are named here (Ganesha fails them too, and also utimensat::follow_symlink). With NFSv4 only the
# client's silly rename remains.
known=unlink::open_file_not_freed,utimensat::y2038
known4=unlink::open_file_not_freed
posix() {  # KIND KNOWN
  local out; out=$(guest 500 pjdfstest.sh -e KIND="$1" -e KNOWN="$2" 2>&1)
  grep '^FAIL' <<<"$out" | sed "s/^FAIL/& $1:/"; grep '^info' <<<"$out" | sed "s/^info/  $1:/"
  local counts; counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed' <<<"$out" | tail -n 1)
  [ -n "$counts" ] || { echo "$out" | tail -n 3; fail "pjdfstest $1" "printed no result"; return; }
  passed=$((passed + ${counts%% *}))
  counts=${counts#*, }; failed=$((failed + ${counts%% *}))
}

# When a server without persistent handles is killed, locks are lost, and so are the files that are open.
reopened=(); [ -z "${PEER:-}" ] || reopened=(-e PERSISTENT=0 -e WRITERS=files,log,cell,unstable,cached,names)
two_rss=(--smb-interface '10.0.2.2;rss' --smb-interface '10.0.3.2;rss')
for part in $parts; do
  case $part in
    defaults | cifs | nfs3 | nfs4 | nfs4.2 | copy | both | both4 | acl | pjdfstest | pjdfstest4 | pjdfstest4.2 | restart | restart4 | restart4.1 | fsx) serve 1 ;;
    nfs4.0 | restart4.0 | lost4.0) serve 2 --nfs-lease 10 ;;
    channels | host | fio) serve 2 "${two_rss[@]}" ;;
    pairs) serve 2 --portmap serve ;;
    nlm) serve 2 --portmap serve --nfs-lease 20 ;;
    trunks) serve 2 ;;
    frozen)
      # The server is started in the namespace of the disk.
      if ! mount_disk; then echo "not tested: frozen: no loop device, or no right to mount one: $(tail -n 1 "$scratch/said")"; continue; fi
      START="nsenter -t $disk -m -- ip netns exec $ns"
      serve 1 --share "frozen=$scratch/disk" --continuous-availability "$SHARE"
      START="ip netns exec $ns" ;;
    cut | network-loss) serve 4 ;;
    cifs-restart | cifs-restart-1) serve 4 --continuous-availability "$SHARE" ;;
    *) echo "no such part: $part"; exit 2 ;;
  esac
  case $part in
    # With several channels the client would spin on the only processor of the other guest (docs/measured/linux-client.md).
    cifs-restart) engine=(--engine qemu --smp 2) ;;
    # In the other guest a system call, such as a reading of the clock, costs 50 us: it would measure the tools themselves.
    fio) engine=(--engine qemu) ;;
    *) engine=() ;;
  esac
  start_capture "$part"
  case $part in
    defaults) tell "defaults:" < <(guest 300 defaults.sh 2>&1) ;;
    cifs) tell "cifs:" < <(guest 400 cifs-smoke.sh -e CHANNELS=1 2>&1) ;;
    channels) tell "channels:" < <(guest 400 cifs-smoke.sh -e CHANNELS=4 2>&1) ;;
    host) with_program "host:" 300 host-advice.sh ;;
    fio) with_program "fio:" 900 fio-beside.sh ${FIO_RATE:+--rate "$FIO_RATE"} ${FIO_SECS:+-e SECS="$FIO_SECS"} ${FIO_REPETITIONS:+-e REPETITIONS="$FIO_REPETITIONS"} ;;
    nfs3) tell "nfs3:" < <(guest 400 nfs3-smoke.sh -e CHANNELS=4 2>&1) ;;
    nfs4) tell "nfs" < <(guest 400 nfs41-smoke.sh -e CHANNELS=4 2>&1) ;;
    nfs4.2) tell "nfs" < <(guest 400 nfs41-smoke.sh -e CHANNELS=4 -e VERSIONS=4.2 2>&1) ;;
    nfs4.0) tell "nfs" < <(guest 400 nfs41-smoke.sh -e CHANNELS=1 -e VERSIONS=4.0 2>&1) ;;
    copy) tell "nfs v4.2: copy:" < <(guest 300 nfs42-copy.sh 2>&1) ;;
    both) tell "" < <(guest 300 both.sh -e OWNER=1000 2>&1) ;;
    both4) tell "nfs v4.2" < <(guest 300 both.sh -e OWNER=1000 -e VERSION=4.2 2>&1) ;;
    pairs) pairs ;;
    nlm) tell "nlm:" < <(guest 400 nlm.sh 2>&1) ;;
    trunks) tell "trunks:" < <(guest 400 nfs-rate.sh -e WAYS="discovered trunked" -e ROUNDS=1 -e MIB=16 -e SIZE=16 2>&1) ;;
    acl) tell "acl:" < <(guest 200 cifs-acl.sh -e OWNER=1000 2>&1) ;;
    pjdfstest) posix nfs3 "$known" ;;
    pjdfstest4.2) posix nfs4.2 "$known4" ;;
    pjdfstest4) posix nfs4.1 "$known4"; posix nfs4.2 "$known4" ;;
    restart) restart 3 ;;
    restart4) restart 4.2 ;;
    lost4.0) tell "nfs v4.0 lost:" < <(guest 200 lost-client.sh -e VERSION=4.0 2>&1) ;;
    restart4.0) KILLS=$kills_of_4_0 restart 4.0 ;;
    restart4.1) restart 4.1 ;;
    frozen) tell "frozen:" < <(guest 200 frozen.sh 2>&1) ;;
    fsx) tell "fsx:" < <(guest $((FSX_SECS + 300)) fsx.sh -e FSX_SECS="$FSX_SECS" ${FSX_KINDS:+-e KINDS="$FSX_KINDS"} 2>&1) ;;
    cut) tell "" < <(guest $((600 + 300 * ${ROUNDS:-1})) cifs-cut.sh ${ROUNDS:+-e ROUNDS="$ROUNDS"} ${EVENTS:+-e EVENTS="$EVENTS"} ${WRITERS:+-e WRITERS="$WRITERS"} 2>&1) ;;
    network-loss) tell "" < <(guest 600 cifs-loss.sh 2>&1) ;;
    cifs-restart) tell "" < <(guest 600 cifs-restart.sh ${reopened[@]+"${reopened[@]}"} 2>&1) ;;
    cifs-restart-1) tell "" < <(guest 600 cifs-restart.sh -e CHANNELS=1 ${reopened[@]+"${reopened[@]}"} 2>&1) ;;
  esac
  end_capture "$part"
done
check "no panic, no password in the log" log_is_clean
must "SIGTERM ends it" stop_server
finish
