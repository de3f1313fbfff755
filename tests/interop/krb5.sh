#!/bin/bash
# MIT's Kerberos library against our acceptor (examples/accept.rs of crates/rules/krb5), with tickets of a real KDC: all four
# encryption types, messages both ways, and what is refused. (root)
#   krb5.sh [--record FOLDER]    also records sessions for crates/rules/krb5/testdata/recorded
#   KRB5_ACCEPT=PROGRAM          the example, built already
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/tests/lab/guest/lib.sh"
lab=${KDC_LAB:-$top/tests/lab/kdc-lab} client=$top/tests/interop/krb5_client.py
export KDC_LAB_NETNS=anabranch-krb5-$$
scratch=$(mktemp -d "${TMPDIR:-/tmp}/anabranch-krb5.XXXXXX")
trap '"$lab" down >/dev/null 2>&1; rm -rf "$scratch"' EXIT
[ "$(id -u)" = 0 ] || { echo "not tested: krb5: the KDC needs root"; finish; exit; }
/usr/bin/python3 -c 'import gssapi' 2>/dev/null || {
  [ -n "${CI:-}" ] && fail "python3-gssapi" "not installed" || echo "not tested: krb5: python3-gssapi is not installed"
  finish; exit
}
accept=${KRB5_ACCEPT:-${CARGO_TARGET_DIR:-$top/target}/debug/examples/accept}
# with the features of the whole workspace, as in other steps: otherwise half of it is built again
[ -n "${KRB5_ACCEPT:-}" ] || cargo build -q --locked --workspace --example accept --manifest-path "$top/Cargo.toml" || exit 1
"$lab" up >"$scratch/env" || exit 1
eval "$("$lab" env)"
"$lab" kinit alice >/dev/null || exit 1
tally MIT: "$lab" exec /usr/bin/python3 "$client" "$accept" "$LAB_KEYTAB" "$LAB_WRONG_KEYTAB"
# tickets whose session key is of one type
for type in aes128-cts-hmac-sha1-96 aes256-cts-hmac-sha1-96 aes128-cts-hmac-sha256-128 aes256-cts-hmac-sha384-192; do
  sed "s/^\[libdefaults\]/&\n  permitted_enctypes = $type/" "$KRB5_CONFIG" >"$scratch/$type.conf"
  with=(env "KRB5_CONFIG=$scratch/$type.conf" "KRB5CCNAME=FILE:$scratch/$type.ccache")
  echo alice-Passw0rd | "$lab" exec "${with[@]}" kinit alice >/dev/null || exit 1
  tally "MIT, $type:" "$lab" exec "${with[@]}" /usr/bin/python3 "$client" "$accept" "$LAB_KEYTAB" "$LAB_WRONG_KEYTAB" pair
  if [ "${1:-}" = --record ]; then
    cp "$LAB_KEYTAB" "$2/mit.keytab"
    tally "MIT, $type:" "$lab" exec "${with[@]}" /usr/bin/python3 "$client" "$accept" "$LAB_KEYTAB" "$LAB_WRONG_KEYTAB" record "$2/mit-$type.txt"
  fi
done
finish
