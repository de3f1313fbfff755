#!/bin/bash
# SMB over QUIC: smbclient of Samba 4.25, with passwords and with tickets of a domain (tests/lab/ad-lab). (root)
#   smb-quic.sh     unpacks the lab's programs from Debian sid if need be: 0.4 GB from Debian's mirror
. "$(dirname "$0")/server.sh"
export IDENTITY_LAB_SUITE=${IDENTITY_LAB_SUITE:-sid} AD_LAB_NETNS=anabranch-quic-$$
lab=$top/tests/lab/ad-lab
[ "$(id -u)" = 0 ] || { echo "not tested: smb-quic: network namespaces need root"; finish; exit; }
trap 'end_scratch; "$lab" down' EXIT
must "the lab starts" "$lab" up || { finish; exit 1; }
"$lab" versions | sed 's/^/  /'
eval "$("$lab" env)"

# issue NAME AUTHORITY: a key and a certificate of that authority, where the lab's programs see them.
pki=$LAB_STATE/pki; mkdir -p "$pki"
authority() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj "/CN=$1 authority" -keyout "$pki/$1.key" -out "$pki/$1.pem" 2>/dev/null
}
issue() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout "$pki/new.key" -out "$pki/new.csr" 2>/dev/null &&
    openssl x509 -req -in "$pki/new.csr" -CA "$pki/$2.pem" -CAkey "$pki/$2.key" -CAcreateserial -days 20 \
      -extfile <(printf 'subjectAltName=DNS:%s\n' "$1") -out "$pki/new.pem" 2>/dev/null &&
    chmod 600 "$pki/new.key" && cp -p "$pki/new.key" "$scratch/server.key" && cp "$pki/new.pem" "$scratch/server.pem"
}
authority lab && authority other && issue files.ad.lab.test lab || { fail "certificates" "openssl"; finish; exit 1; }

# serve LINE...: a server with these lines in its configuration, and the keytab of the lab.
share_dir=$scratch/share; mkdir -p "$share_dir" "$scratch/secret" "$scratch/closed"
chmod 1777 "$share_dir" "$scratch/secret" "$scratch/closed"; chmod 711 "$scratch"
mkdir -m 700 "$scratch/state"
serve() {
  config=$scratch/anabranch.toml
  cat >"$config" <<TOML
smb-quic = ["$LAB_FILES:443"]
control-certificate = "$scratch/server.pem"
control-key = "$scratch/server.key"
log = "info,smb_server=debug"
$(printf '%s\n' "$@")
[[share]]
name = "$SHARE"
directory = "$share_dir"
[[share]]
name = "secret"
directory = "$scratch/secret"
encrypted = true
[[share]]
name = "closed"
directory = "$scratch/closed"
[[share.client]]
network = "10.79.0.99"
[[user]]
name = "old"
password = "$SMB_PASS"
uid = 10009
gid = 10009
TOML
  chmod 600 "$config"
  START="ip netns exec $LAB_NETNS" SIGNING=default
  must "a server starts: ${*:-with the defaults}" start_server
}
must "the keytab is imported" "$ANABRANCH" domain import --keytab "$LAB_KEYTAB" --state "$scratch/state"

# over_quic SHARE COMMANDS OPTION...: smbclient over QUIC.
over_quic() {
  local share=$1 commands=$2; shift 2
  timeout 320 "$lab" tool timeout 300 smbclient "//files.ad.lab.test/$share" "--option=client smb transports=quic" \
    "--option=tls verify peer=ca_and_name" "--option=tls cafile=${authority:-$pki/lab.pem}" "$@" -c "$commands"
}
password() { local share=$1 commands=$2; shift 2; over_quic "$share" "$commands" --use-kerberos=off -U "old%$SMB_PASS" "$@"; }
with_ticket() { local share=$1 commands=$2; shift 2; over_quic "$share" "$commands" --use-kerberos=required --use-krb5-ccache="$LAB_STATE/ccache" "$@"; }
refused() { ! "$@"; }
says() { local text=$1; shift; "$@" 2>&1 | tee "$scratch/heard" | grep -qF -- "$text" || { tail -n 1 "$scratch/heard"; return 1; }; }
mark() { marked=$(wc -c <"$scratch/server.log"); }
log_has() { tail -c "+$((marked + 1))" "$scratch/server.log" | grep -qF -- "$1" || { tail -n 1 "$scratch/server.log"; return 1; }; }
log_lacks() { ! log_has "$1" >/dev/null; }
owner_is() { [ "$(stat -c %u "$share_dir/$1")" = "$2" ] || { stat -c '%n is of %u' "$share_dir/$1"; return 1; }; }
rid_of() { awk -F'\t' -v name="$1" '$1 == name { n = split($2, part, "-"); print 1000000 + part[n] }' "$LAB_STATE/sids"; }
# goes_and_comes WHO SHARE OPTION...: 8 MiB are written and read.
goes_and_comes() {
  local who=$1 share=$2; shift 2
  head -c 8388608 /dev/urandom >"$LAB_STATE/sent"; rm -f "$LAB_STATE/got"
  "$who" "$share" "put $LAB_STATE/sent of-$who; get of-$who $LAB_STATE/got" "$@" && cmp "$LAB_STATE/sent" "$LAB_STATE/got"
}
# while_connected COMMAND...: runs while a client is connected.
while_connected() {
  { echo ls; sleep 5; } | password_session >/dev/null 2>&1 &
  local client=$! tries status=1
  for tries in $(seq 50); do "$@" && { status=0; break; }; sleep 0.1; done
  wait "$client"
  return $status
}
password_session() {
  timeout 60 "$lab" tool smbclient "//files.ad.lab.test/$SHARE" "--option=client smb transports=quic" "--option=tls verify peer=ca_and_name" \
    "--option=tls cafile=$pki/lab.pem" --use-kerberos=off -U "old%$SMB_PASS"
}
listed() { ip netns exec "$LAB_NETNS" "$ANABRANCH" client list --state "$scratch/state" >"$scratch/list" && grep -F "$LAB_FILES:443 (QUIC)" "$scratch/list"; }
at_once() {
  local n pids=()
  head -c 1048576 "$LAB_STATE/sent" >"$LAB_STATE/part"
  for n in 1 2 3 4 5 6; do password "$SHARE" "put $LAB_STATE/part at-once-$n" >/dev/null 2>&1 & pids+=($!); done
  for n in "${pids[@]}"; do wait "$n" || return 1; done
  for n in 1 2 3 4 5 6; do cmp "$LAB_STATE/part" "$share_dir/at-once-$n" || return 1; done
}

if serve; then
  check "the ready line has the address" grep -F "smb-quic=$LAB_FILES:443" "$scratch/ready"
  check "a password logs on" password "$SHARE" ls
  check "8 MiB go and come with a password" goes_and_comes password "$SHARE"
  check "alice gets a ticket" "$lab" kinit alice
  check "a ticket logs on" with_ticket "$SHARE" ls
  check "8 MiB go and come with a ticket" goes_and_comes with_ticket "$SHARE"
  check "the file is of the user of the domain" owner_is of-with_ticket "$(rid_of alice)"
  check "six clients at once" at_once
  check "the list of clients shows it" while_connected listed
  sed 's/^/  /' "$scratch/list"
  check "the client list of a share counts" says NT_STATUS_ACCESS_DENIED password closed ls
  mark
  check "a share that requires encryption is encrypted over QUIC, too" goes_and_comes password secret
  check "a client may not rely on QUIC" goes_and_comes password secret "--option=client smb encryption over quic=no"
  check "the log says so" log_lacks 'transport_security=true'
  check "a wrong password is refused" says NT_STATUS_LOGON_FAILURE over_quic "$SHARE" ls --use-kerberos=off -U old%wrong
  authority=$pki/other.pem
  check "a certificate of another authority is refused by the client" refused password "$SHARE" ls
  authority=$pki/lab.pem
  # Another certificate is shown without a restart.
  mark; issue files.ad.lab.test other
  for _ in $(seq 200); do log_has "with the certificate" >/dev/null && break; sleep 0.1; done
  authority=$pki/other.pem
  check "a certificate whose file changes is shown" password "$SHARE" ls
  issue files.ad.lab.test lab; authority=$pki/lab.pem
  must "SIGTERM ends the server" stop_server
fi
if serve 'smb-encryption = "required"' 'smb-encryption-over-quic = false'; then
  mark
  check "who does not ask encrypts" goes_and_comes password secret
  check "the log shows it" log_lacks 'transport_security=true'
  check "who asks relies on QUIC" goes_and_comes password secret "--option=client smb encryption over quic=no"
  check "the log shows that, too" log_has 'transport_security=true'
  check "with a ticket, too" goes_and_comes with_ticket secret "--option=client smb encryption over quic=no"
  must "SIGTERM ends the server again" stop_server
fi
if serve 'smb-channel-binding = "required"'; then
  mark
  # Samba 4.25 binds nothing to its channel.
  check "a password that is not bound is refused" says NT_STATUS_LOGON_FAILURE password "$SHARE" ls
  check "a ticket that is not bound is refused" says NT_STATUS_LOGON_FAILURE with_ticket "$SHARE" ls
  check "the log says why" log_has "the client does not bind itself to its TLS channel"
  must "SIGTERM ends the server that requires channel bindings" stop_server
fi
check "the server's log shows neither a panic nor a password" log_is_clean
finish
