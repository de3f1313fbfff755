#!/bin/bash
# A share that is on another server: two servers in one network namespace, and the Linux kernel's clients (tests/lab), which are told where
# it is by the server that does not have it (`moved-share`). One of the shares moves while it is mounted.   (root; half a minute)
. "$(dirname "$0")/server.sh"
lab=$top/tests/lab ns=anabranch-moved-$$
[ "$(id -u)" = 0 ] || { echo "needs root (network namespaces)"; exit 1; }
"$lab/client-lab" build >/dev/null || exit 1
declare -A pid address=([a]=10.0.2.2 [b]=10.0.3.2)
trap 'for node in "${!pid[@]}"; do kill -KILL "${pid[$node]}" 2>/dev/null; done; end_scratch; ip netns del "$ns" 2>/dev/null' EXIT
"$lab/client-lab" net "$ns" 2 || exit 1

in_ns() { ip netns exec "$ns" "$@"; }
# serve NODE FURTHER-ADDRESSES-OF-NFS < the shares of its configuration
serve() {
  local node=$1 tries
  mkdir -p -m 700 "$scratch/state-$node"
  cat >"$scratch/$node.toml"
  setpriv --pdeathsig KILL -- ip netns exec "$ns" "$ANABRANCH" serve --config "$scratch/$node.toml" --smb "${address[$node]}:445" \
    --nfs "${address[$node]}:2049" ${2:+--nfs "$2"} --control "${address[$node]}:8080" --state "$scratch/state-$node" --nfs-squash none \
    --user "$SMB_USER=1000:1000:$SMB_PASS" >"$scratch/ready-$node" 2>>"$scratch/server.log" </dev/null &
  pid[$node]=$!
  for ((tries = 0; tries < 1200; tries++)); do
    ! grep -q '^ready ' "$scratch/ready-$node" || return 0
    kill -0 "${pid[$node]}" 2>/dev/null || break
    sleep 0.05
  done
  tail -n 5 "$scratch/server.log"; return 1
}
# directory SERVER SHARE: with a file that says which server it is.
directory() { mkdir -p "$scratch/$1/$2" && echo "$1" >"$scratch/$1/$2/where" && chown -R 1000:1000 "$scratch/$1/$2"; }
share() { printf '[[share]]\nname = "%s"\ndirectory = "%s"\n' "$2" "$scratch/$1/$2"; }
moved() { printf 'moved-share = ["never=%s", "ported=%s:20490"%s]\n' "${address[b]}" "${address[b]}" "${1:-}"; }
for s in here data; do directory here "$s"; done
for s in never ported data; do directory other "$s"; done

{ moved; share here here; share here data; } >"$scratch/before"
{ moved ", \"data=${address[b]}\""; share here here; } >"$scratch/after"
must "the server with the shares starts" serve b "${address[b]}:20490" < <(share other never; share other ported; share other data)
must "the server without them starts" serve a <"$scratch/before" || { finish; exit 1; }

# says NAME TEXT COMMAND...: the command fails and says this.
says() { local said; said=$("${@:3}" 2>&1) && { fail "$1" "it went well"; return; }; if grep -q -- "$2" <<<"$said"; then pass "$1"; else fail "$1" "$said"; fi; }
smb() { in_ns smbclient "//${address[a]}/$1" -U "$SMB_USER%$SMB_PASS" -c ls; }
says "smbclient: a share that is elsewhere" NT_STATUS_BAD_NETWORK_NAME smb never
check "smbclient: a share that is here" smb data

# The share goes: its declaration is replaced in one step.
moves() {
  local tries
  cp "$scratch/after" "$scratch/a.toml" && kill -HUP "${pid[a]}"
  for ((tries = 0; tries < 1200; tries++)); do
    ! grep -q 'the share data has moved' "$scratch/server.log" || { : >"$scratch/here/here/moved"; return 0; }
    sleep 0.05
  done
  tail -n 5 "$scratch/server.log"; return 1
}
ended=0
while IFS= read -r line; do
  case $line in
    "ok "*) pass "${line#ok }" ;;
    "FAIL "*) fail "${line#FAIL }" ;;
    "  move me") must "the share moves" moves ;;
    [0-9]*" passed, "[0-9]*" failed") ended=1 ;;
    *) echo "  $line" ;;
  esac
done < <("$lab/client-lab" run --netns "$ns" --nics 2 --timeout 300 -e SERVER="${address[a]}" -e OTHER="${address[b]}" -e USER="$SMB_USER" -e PASS="$SMB_PASS" \
  "$lab/guest/moved.sh" 2>&1)
[ "$ended" = 1 ] || fail "the guest" "was cut off"
says "smbclient: the share that has moved" NT_STATUS_BAD_NETWORK_NAME smb data
for node in a b; do
  server_pid=${pid[$node]}; unset "pid[$node]"
  must "the server $node stops as it should" stop_server
done
check "the log has no panic" log_is_clean
finish
