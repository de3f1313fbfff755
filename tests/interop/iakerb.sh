#!/bin/bash
# MIT's Kerberos library logs on with a password and no KDC (IAKERB): against our acceptor (examples/iakerb.rs of
# crates/rules/auth) and, over SMB, against a server without NTLM. The versions of this system and of the lab speak two dialects.
#   iakerb.sh [--record FOLDER]    also records exchanges for crates/rules/auth/testdata/iakerb
. "$(dirname "$0")/server.sh"
client=$top/tests/interop/iakerb_client.py initiator=$top/tests/interop/gss_initiator.py
lab=$top/tests/lab/kdc-lab
export KDC_LAB_NETNS=anabranch-iakerb-$$
[ "$(id -u)" = 0 ] || { echo "not tested: iakerb: the lab needs root"; finish; exit; }
trap 'end_scratch; "$lab" down >/dev/null 2>&1' EXIT
[ -n "${IAKERB_ACCEPT:-}" ] || cargo build -q --locked --workspace --example iakerb --manifest-path "$top/Cargo.toml" || exit 1
accept=${IAKERB_ACCEPT:-${CARGO_TARGET_DIR:-$top/target}/debug/examples/iakerb}
# The lab is there for its newer library: its KDC is not asked.
must "the lab starts" "$lab" up
here=(/usr/bin/python3 "$initiator") newer=("$lab" tool /usr/bin/python3 -c "$(cat "$initiator")")
tally "MIT of this system:" /usr/bin/python3 "$client" "$accept" "${here[@]}"
tally "MIT of the lab:" /usr/bin/python3 "$client" "$accept" "${newer[@]}"
if [ "${1:-}" = --record ]; then
  tally "MIT of this system:" /usr/bin/python3 "$client" "$accept" "${here[@]}" -- record "$2/mit-1.20.txt"
  tally "MIT of the lab:" /usr/bin/python3 "$client" "$accept" "${newer[@]}" -- record "$2/mit-1.22.txt"
fi

config=$scratch/anabranch.toml share_dir=$scratch/share
mkdir -p "$share_dir" "$scratch/state"; chmod 700 "$scratch/state"
cat >"$config" <<TOML
ntlm = "off"
realm = "FILES.TEST"
[[share]]
name = "data"
directory = "$share_dir"
[[user]]
name = "anna"
password = "correct horse"
uid = 10001
gid = 10001
TOML
chmod 600 "$config"
smb() { /usr/bin/python3 "$client" --smb "$SERVER:$SMB_PORT" data "$1" "$2" "${@:3}"; }
says() { local wanted=$1 said; shift; said=$("$@" 2>&1); grep -qF -- "$wanted" <<<"$said" || { echo "$said" | tail -n 1; return 1; }; }
must "a server without NTLM starts" start_server
check "IAKERB is offered, and NTLM is not" says "offered: IAKERB -" smb anna@FILES.TEST "correct horse" "${here[@]}"
check "a password logs on over SMB, with MIT of this system" says "status 0x00000000" smb anna@FILES.TEST "correct horse" "${here[@]}"
check "a password logs on over SMB, with MIT of the lab" says "status 0x00000000" smb anna@FILES.TEST "correct horse" "${newer[@]}"
check "a wrong password does not" says "status 0xc000006d" smb anna@FILES.TEST "wrong horse" "${here[@]}"
check "nor does an unknown user" says "status 0xc000006d" smb otto@FILES.TEST "correct horse" "${here[@]}"
check "the log says which password was wrong" grep -q 'user="anna".*reason=wrong password' "$scratch/server.log"
must "SIGTERM ends the server" stop_server
finish
