#!/bin/bash
# NFS over TLS (RFC 9289): the kernel's client with tlshd, in the guest of tests/lab/guest-next. (root)
#   nfs-tls.sh     builds that guest if need be: 0.3 GB from Debian's mirror
. "$(dirname "$0")/server.sh"
lab=$top/tests/lab
ns=anabranch-tls-$$
[ "$(id -u)" = 0 ] || { echo "not tested: nfs-tls: network namespaces need root"; finish; exit; }
trap 'end_scratch; ip netns del "$ns" 2>/dev/null' EXIT
CLIENT_LAB_CACHE=$("$lab/guest-next") || { fail "the guest" "cannot be built"; finish; exit 1; }
export CLIENT_LAB_CACHE

# issue NAME AUTHORITY DAYS: a key and a certificate of that authority.
pki=$scratch/pki given=$scratch/given
mkdir -p "$pki" "$given"; chmod 711 "$scratch"
authority() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj "/CN=$1 authority" -keyout "$pki/$1.key" -out "$pki/$1.pem" 2>/dev/null
}
issue() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" -keyout "$pki/$1.key" -out "$pki/$1.csr" 2>/dev/null &&
    openssl x509 -req -in "$pki/$1.csr" -CA "$pki/$2.pem" -CAkey "$pki/$2.key" -CAcreateserial -days "$3" \
      -extfile <(printf 'subjectAltName=DNS:%s\n' "$1") -out "$pki/$1.pem" 2>/dev/null
}
# expire NAME AUTHORITY: in place of its certificate, one that ended years ago.
expire() {
  local ca=$pki/ca-$1; mkdir -p "$ca"; : >"$ca/index"; echo 01 >"$ca/serial"
  cat >"$ca/config" <<CA
[ca]
default_ca = that
[that]
database = $ca/index
serial = $ca/serial
new_certs_dir = $ca
default_md = sha256
policy = any
x509_extensions = names
[any]
commonName = supplied
[names]
subjectAltName = DNS:$1
CA
  openssl ca -batch -notext -config "$ca/config" -startdate 20200101000000Z -enddate 20210101000000Z -cert "$pki/$2.pem" \
    -keyfile "$pki/$2.key" -in "$pki/$1.csr" -out "$pki/$1.pem" 2>/dev/null
}
authority lab && authority other && issue files.lab.test lab 30 && issue client.lab.test lab 30 && issue intruder.lab.test other 30 &&
  issue late.lab.test lab 30 && expire late.lab.test lab ||
  { fail "certificates" "openssl"; finish; exit 1; }
cp "$pki/files.lab.test.pem" "$scratch/server.pem"; cp "$pki/files.lab.test.key" "$scratch/server.key"; chmod 600 "$scratch/server.key"

"$lab/client-lab" net "$ns" 1 || exit 1
START="ip netns exec $ns" listen=0.0.0.0 want_nfs=2049
share_dir=$scratch/share

# serve LINE...: a server with these lines in its configuration. A word "share:" begins those of the share.
serve() {
  config=$scratch/anabranch.toml
  local of_server of_share
  of_server=$(printf '%s\n' "$@" | grep -v '^share: '); of_share=$(printf '%s\n' "$@" | sed -n 's/^share: //p')
  cat >"$config" <<TOML
control-certificate = "$scratch/server.pem"
control-key = "$scratch/server.key"
$of_server
[[share]]
name = "data"
directory = "$share_dir"
$of_share
TOML
  chmod 600 "$config"; mkdir -p "$share_dir"; chmod 1777 "$share_dir"
  must "a server starts: $*" start_server
}
# guest CLIENT MODE CHECK...: the checks in the guest, whose client has this certificate (or none).
guest() {
  local client=$1; shift
  rm -f "$given"/*; cp "$pki/lab.pem" "$given/ca.pem"; echo "10.0.2.2 files.lab.test" >"$given/etc-hosts"
  [ "$client" = none ] || { cp "$pki/$client.pem" "$given/client.pem"; cp "$pki/$client.key" "$given/client.key"; }
  tally "$client:" "$lab/client-lab" run --netns "$ns" --share "$given" "$lab/guest/nfs-tls.sh" files.lab.test "$@"
}
log_has() { grep -qF -- "$1" "$scratch/server.log" || { tail -n 1 "$scratch/server.log"; return 1; }; }

if serve 'nfs-tls = "required"'; then
  guest none tls mount4 big
  guest none none refused4
  check "the log says which cipher" log_has 'NFS over TLS'
  must "the server stops" stop_server
fi
if serve 'nfs-tls = "mutual"' "nfs-client-ca = \"$pki/lab.pem\""; then
  guest client.lab.test mtls mount4
  check "the log has the client's name" log_has 'client.lab.test'
  guest none tls refused4
  guest intruder.lab.test mtls refused4
  guest late.lab.test mtls refused4
  check "the log says that a certificate has expired" log_has "the client's certificate has expired"
  must "the server stops" stop_server
fi
if serve 'nfs-tls = "offered"' "nfs-client-ca = \"$pki/lab.pem\"" 'share: client = ["cert:*.lab.test"]'; then
  guest client.lab.test mtls mount4
  guest none tls refused4
  guest none none refused4
  must "the server stops" stop_server
fi
if serve 'nfs-tls = "offered"'; then
  guest none tls mount3
  guest none none mount4
  must "the server stops" stop_server
fi
if serve 'nfs-tls = "offered"' 'share: tls-required = true'; then
  guest none tls mount4
  guest none none refused4
  # Another certificate is shown without a restart.
  issue files.lab.test lab 20 && cp "$pki/files.lab.test.key" "$scratch/server.key" && cp "$pki/files.lab.test.pem" "$scratch/server.pem"
  fingerprint=$(openssl x509 -in "$scratch/server.pem" -noout -fingerprint -sha256 | sed 's/.*=//')
  for _ in $(seq 200); do log_has "$fingerprint" >/dev/null && break; sleep 0.1; done
  check "a certificate whose file changes is shown at once" log_has "$fingerprint"
  guest none tls mount4
  must "the server stops" stop_server
fi
check "the server's log shows neither a panic nor a password" log_is_clean
finish
