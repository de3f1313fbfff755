# Sourced by each command of a page (BASH_ENV): what its hidden commands may use beside programs.

# serve: starts the server with the configuration, in place of one that runs already.
serve() {
  end_server || return
  : >/run/server.ready
  setsid anabranch serve --config /etc/anabranch/anabranch.toml >/run/server.ready 2>>"$SERVER_LOG" </dev/null &
  echo $! >/run/server.pid
  local tries
  for ((tries = 0; tries < 1200; tries++)); do
    grep -q '^ready ' /run/server.ready && return
    kill -0 $! 2>/dev/null || break
    sleep 0.05
  done
  tail -n 5 "$SERVER_LOG"
  return 1
}

# end_server: SIGTERM ends it within a minute.
end_server() {
  local pid tries
  pid=$(cat /run/server.pid 2>/dev/null) || return 0
  kill -TERM "$pid" || { echo "the server is gone"; return 1; }
  for ((tries = 0; tries < 1200; tries++)); do
    kill -0 "$pid" 2>/dev/null || { rm /run/server.pid; return 0; }
    sleep 0.05
  done
  echo "the server is still there a minute after SIGTERM"
  return 1
}

# certify NAME: a certificate for that name where the pages have the server's, and its authority where they have it ($LAB_STATE is the
# client's /share).
certify() {
  local new=(openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes)
  mkdir -p /run/pki && cd /run/pki &&
    "${new[@]}" -x509 -days 30 -subj "/CN=Our authority" -keyout authority.key -out our-authority.pem &&
    "${new[@]}" -subj "/CN=$1" -addext "subjectAltName=DNS:$1" -keyout key.pem -out csr &&
    openssl x509 -req -days 30 -in csr -CA our-authority.pem -CAkey authority.key -CAcreateserial -copy_extensions copy -out chain.pem &&
    install -m 644 our-authority.pem /etc/ssl/certs/ && install -m 644 our-authority.pem "$LAB_STATE/" &&
    install -m 600 key.pem chain.pem /etc/anabranch/
}

# leave_domain: for the pages whose readers have no domain.
leave_domain() { echo '[global]' >/etc/samba/smb.conf && : >/etc/krb5.conf; }
