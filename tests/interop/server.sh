# Sourced by the scripts beside it: one Anabranch server that runs during a script.
#   ANABRANCH     the program (target/debug/anabranch)
#   SERVER SMB_PORT NFS_PORT SHARE EXPORT SMB_USER SMB_PASS   the server and the user; with SMB_PORT or
#                 NFS_PORT set from outside, that server is tested and none is started
#   SIGNING SQUASH   --smb-signing and --nfs-squash (enabled, none: the suites and benchmarks were written and measured
#                 with these); `default` leaves the choice to the program
. "$(dirname "${BASH_SOURCE[0]}")/../lab/guest/lib.sh"
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
: "${ANABRANCH:=${CARGO_TARGET_DIR:-$top/target}/debug/anabranch}"
: "${SIGNING:=enabled}" "${SQUASH:=none}"
: "${SHARE:=data}" "${SMB_USER:=tester}" "${SMB_PASS:=test-Pass1}"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/anabranch-interop.XXXXXX")
server_pid=''

# must NAME COMMAND...: a check that runs in this shell, for commands that start or stop the server.
must() {
  local name=$1; shift
  if "$@" >"$scratch/said" 2>&1; then pass "$name"; else fail "$name" "$(tail -n 1 "$scratch/said")"; return 1; fi
}

# start_server FLAG...: serves $share_dir with further flags; sets the ports from the ready line.
# With a file $config, serves what that declares instead.
# START (a command and its arguments) comes before the program: START="ip netns exec NAME".
start_server() {
  : "${share_dir:=$scratch/share}" "${listen:=127.0.0.1}"
  mkdir -p -m 700 "$scratch/state"
  # Owned by an ordinary user, for whom the account of the tests stands: the account must not be a superuser in the share.
  if [ ! -d "$share_dir" ]; then
    mkdir -p "$share_dir" && { [ "$(id -u)" != 0 ] || chown 1000:1000 "$share_dir"; }
  fi
  local what=(--share "$SHARE=$share_dir" --user "$SMB_USER=$(stat -c %u:%g "$share_dir"):$SMB_PASS")
  [ -z "${config:-}" ] || what=(--config "$config")
  [ "$SIGNING" = default ] || what+=(--smb-signing "$SIGNING")
  [ "$SQUASH" = default ] || what+=(--nfs-squash "$SQUASH")
  : >"$scratch/ready"
  # shellcheck disable=SC2086
  setpriv --pdeathsig KILL -- ${START:-} "$ANABRANCH" serve "${what[@]}" \
    --smb "$listen:${want_smb:-0}" --nfs "$listen:${want_nfs:-0}" --control "127.0.0.1:${want_control:-0}" \
    --state "$scratch/state" "$@" >"$scratch/ready" 2>>"$scratch/server.log" </dev/null &
  server_pid=$!
  local tries
  for ((tries = 0; tries < 1200; tries++)); do
    grep -q '^ready ' "$scratch/ready" && break
    kill -0 "$server_pid" 2>/dev/null || break
    sleep 0.05
  done
  if ! grep -q '^ready ' "$scratch/ready"; then
    echo "the server printed no ready line:"; tail -n 20 "$scratch/server.log"
    return 1
  fi
  SERVER=127.0.0.1 EXPORT=/$SHARE
  SMB_PORT=$(sed -n 's/^ready .*smb=[^ ]*:\([0-9]*\).*/\1/p' "$scratch/ready")
  NFS_PORT=$(sed -n 's/^ready .*nfs=[^ ]*:\([0-9]*\).*/\1/p' "$scratch/ready")
  CONTROL_PORT=$(sed -n 's/^ready .*control=[^ ]*:\([0-9]*\).*/\1/p' "$scratch/ready")
  MOUNT_PORT=$NFS_PORT
}

# stop_server: SIGTERM must end it within a minute, with status 0.
stop_server() {
  local p=$server_pid tries
  [ -n "$p" ] || return 0
  kill -0 "$p" 2>/dev/null || { echo "the server is gone"; return 1; }
  kill -TERM "$p"
  for ((tries = 0; tries < 1200; tries++)); do kill -0 "$p" 2>/dev/null || break; sleep 0.05; done
  if kill -0 "$p" 2>/dev/null; then echo "still there a minute after SIGTERM"; return 1; fi
  wait "$p"; local status=$?
  server_pid=''
  [ "$status" = 0 ] || { echo "exit status $status"; return 1; }
}

# kill_server: no chance to clean up.
kill_server() { kill -KILL "$server_pid"; wait "$server_pid" 2>/dev/null; server_pid=''; }

# Checks that the server has written neither a panic nor a password.
log_is_clean() {
  if grep -nE 'panicked|RUST_BACKTRACE' "$scratch/server.log"; then return 1; fi
  if grep -nF "$SMB_PASS" "$scratch/server.log" "$scratch/ready"; then return 1; fi
}

end_scratch() {
  [ -z "$server_pid" ] || kill -KILL "$server_pid" 2>/dev/null
  if [ "$failed" != 0 ] && grep -qv ' INFO ' "$scratch/server.log" 2>/dev/null; then
    echo "the server's last warnings:"; grep -v ' INFO ' "$scratch/server.log" | tail -n 10
  fi
  rm -rf "$scratch"
}
trap end_scratch EXIT
trap 'exit 130' INT TERM HUP
