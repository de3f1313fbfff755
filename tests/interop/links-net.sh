# Sourced by tests/interop/links.sh, and for `cargo xtask bench links`: two network namespaces with several links between them.
#   server_ns client_ns    their names
#   address I              the server's address on link I (from 0)

: "${server_ns:=anabranch-server-$$}" "${client_ns:=anabranch-client-$$}"
address() { echo "10.77.$1.1"; }

# can_make_links: whether this machine allows that; otherwise prints the reason.
can_make_links() {
  [ "$(id -u)" = 0 ] || { echo "this needs root (network namespaces)"; return 1; }
  command -v ip >/dev/null && command -v tc >/dev/null || { echo "this needs ip and tc (iproute2)"; return 1; }
  ip netns add "$server_ns" 2>/dev/null || { echo "this machine makes no network namespaces"; return 1; }
  ip -n "$server_ns" link add link0 type veth peer name probe 2>/dev/null &&
    tc -n "$server_ns" qdisc add dev link0 root tbf rate 10mbit burst 8kb latency 50ms 2>/dev/null
  local status=$?
  ip netns del "$server_ns"
  [ $status = 0 ] || echo "this kernel has no veth, or no tc with tbf"
  return $status
}

# make_links COUNT: makes that many links, each with its own subnet and still without a limit.
make_links() {
  local i
  ip netns add "$server_ns" && ip netns add "$client_ns" || return 1
  ip -n "$server_ns" link set lo up && ip -n "$client_ns" link set lo up || return 1
  for ((i = 0; i < $1; i++)); do
    ip -n "$server_ns" link add "link$i" type veth peer name "link$i" netns "$client_ns" || return 1
    ip -n "$server_ns" addr add "$(address "$i")/24" dev "link$i" && ip -n "$client_ns" addr add "10.77.$i.2/24" dev "link$i" || return 1
    ip -n "$server_ns" link set "link$i" up && ip -n "$client_ns" link set "link$i" up || return 1
  done
}

# limit_links COUNT MBIT [bare]: limits each link to that rate, each way. After a rest, tc's token bucket passes as much as fits
# into it at once, which no real link does. The bucket has 8 kB, so that the rate is kept while the machine is busy. With `bare` it
# has one packet of 300 bytes, so that an operation that has the link to itself takes as long as its bytes do.
limit_links() {
  local i ns mtu=1500 bucket=8kb
  [ "${3:-}" != bare ] || mtu=300 bucket=314b
  for ns in "$server_ns" "$client_ns"; do
    for ((i = 0; i < $1; i++)); do
      ip -n "$ns" link set "link$i" mtu $mtu || return 1
      tc -n "$ns" qdisc replace dev "link$i" root tbf rate "$2mbit" burst $bucket latency 50ms || return 1
    done
  done
}

# limit_flows MBIT: limits each TCP connection over link 0 to that rate, each way; the link carries their sum. Connections are
# distinguished by bits 1 to 7 of the client's port: two of four share a class in one of 22 cases.
limit_flows() {
  local ns port n
  for ns in "$server_ns" "$client_ns"; do
    ip -n "$ns" link set link0 mtu 1500 || return 1
    tc -n "$ns" qdisc del dev link0 root 2>/dev/null
    port=dport; [ "$ns" = "$server_ns" ] || port=sport
    {
      echo "qdisc replace dev link0 root handle 1: htb default 999"
      echo "class add dev link0 parent 1: classid 1:999 htb rate 100gbit quantum 60000"
      for ((n = 0; n < 128; n++)); do
        echo "class add dev link0 parent 1: classid 1:$(printf %x $((n + 1))) htb rate $1mbit burst 8kb cburst 8kb quantum 60000"
        echo "filter add dev link0 parent 1: protocol ip u32 match ip protocol 6 0xff match ip $port $((n * 2)) 0x00fe flowid 1:$(printf %x $((n + 1)))"
      done
    } | tc -n "$ns" -batch - || return 1
  done
}

remove_links() {
  ip netns del "$server_ns" 2>/dev/null
  ip netns del "$client_ns" 2>/dev/null
  true
}
