# Sourced by the scripts that run smbtorture: one server, in a network namespace of its own.
# Some tests connect to port 445 whatever port they are given, some cut connections off with iptables, some want
# a share with access-based enumeration or a second user: there they find all that, and disturb nobody.
. "$(dirname "${BASH_SOURCE[0]}")/../interop/server.sh"
cd "$top/tests/conformance" || exit 1
namespace=anabranch-torture-$$
address=10.0.2.2

end_namespace() { ip netns del "$namespace" 2>/dev/null; end_scratch; }

# start_torture_server FLAG...: sets SERVER and the rest as start_server does.
start_torture_server() {
  ip netns add "$namespace" || { echo "smbtorture's server needs a network namespace: run this as root"; return 1; }
  trap end_namespace EXIT
  ip -n "$namespace" link set lo up
  ip -n "$namespace" link add smb0 type veth peer name smb0-peer &&
    ip -n "$namespace" address add "$address/24" dev smb0 &&
    ip -n "$namespace" link set smb0-peer up && ip -n "$namespace" link set smb0 up || return 1
  share_dir=$scratch/share
  local own=("$share_dir" "$scratch/hideunread" "$scratch/persistent")
  mkdir -p "${own[@]}" && chown 1000:1000 "${own[@]}"
  config=$scratch/anabranch.toml
  cat >"$config" <<TOML
max-channels = 32
user = [{ name = "$SMB_USER", password = "$SMB_PASS", uid = 1000, gid = 1000 }, { name = "other", password = "$SMB_PASS", uid = 1001, gid = 1001 }]
[[share]]
name = "$SHARE"
directory = "$share_dir"
[[share]]
name = "hideunread"
directory = "$scratch/hideunread"
access-based-enumeration = true
[[share]]
name = "persistent"
directory = "$scratch/persistent"
continuous-availability = true
TOML
  START="ip netns exec $namespace" listen=$address want_smb=445
  start_server "$@" && SERVER=$address
}

# torture OPTION...: run-smbtorture against it, where it can be reached.
torture() {
  ip netns exec "$namespace" ./run-smbtorture --server "$SERVER" --port "$SMB_PORT" --share "$SHARE" --user "$SMB_USER" --password "$SMB_PASS" \
    --option torture:use_iptables=yes --option torture:iptables_command="$PWD/iptables-when-acknowledged" \
    --option torture:user2name=other --option "torture:user2password=$SMB_PASS" "$@"
}
