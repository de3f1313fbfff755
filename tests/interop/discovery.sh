#!/bin/bash
# Discovery: clients in another network namespace find the server: wsdd, as Windows does, and avahi-browse, as macOS and Linux do.
# (about 30 seconds)
. "$(dirname "$0")/server.sh"
. "$(dirname "$0")/links-net.sh"
why=$(can_make_links) || why=${why:-no}
for tool in wsdd avahi-daemon avahi-browse dbus-daemon curl; do
  [ -n "$why" ] || command -v $tool >/dev/null || why="there is no $tool"
  [ -z "${CI:-}" ] || check "$tool, which scripts/install-test-deps installs" command -v $tool
done
if [ -n "$why" ]; then echo "not tested: discovery: $why"; finish; exit; fi
pids=()
end_clients() { local p; for p in "${pids[@]}"; do kill "$p" 2>/dev/null; done; }
trap 'end_clients; end_scratch; remove_links' EXIT
must "two links between two namespaces" make_links 2 || { finish; exit 1; }

# Two shares, one of which hides; SMB and NFS at the first link alone.
mkdir -p "$scratch/data" "$scratch/secret" "$scratch/state"; chmod 700 "$scratch/state"
cat >"$scratch/anabranch.toml" <<TOML
discovery = ["wsd", "mdns"]
[[share]]
name = "projects"
directory = "$scratch/data"
[[share]]
name = "secret"
directory = "$scratch/secret"
hidden = true
TOML
config=$scratch/anabranch.toml listen=$(address 0) want_smb=445 want_nfs=2049
cat >"$scratch/named" <<'SH'
#!/bin/sh
hostname testfiles && exec "$@"
SH
chmod +x "$scratch/named"
START="ip netns exec $server_ns unshare --uts $scratch/named"
must "a server starts" start_server --log info || { finish; exit 1; }

client="ip netns exec $client_ns"
# until_so COMMAND...: tries for 30 s.
until_so() { local end=$((SECONDS + 30)); until "$@"; do [ $SECONDS -lt $end ] || return 1; sleep 0.3; done; }

# wsdd asks as Windows does: Probe, Resolve, and the metadata over HTTP. Its log has what it finds; its API needs an older Python.
$client wsdd --discovery --no-host --ipv4only --interface link0 -vv >"$scratch/wsdd.log" 2>&1 & pids+=($!)
wsdd_says() { grep -q "$1" "$scratch/wsdd.log" || { tail -n 1 "$scratch/wsdd.log"; return 1; }; }
check "wsdd finds the host by its name, with its address" until_so wsdd_says "discovered TESTFILES in Workgroup:WORKGROUP on $(address 0)%link0"

# A system bus and an Avahi of this test's own.
mkdir -p "$scratch/run/avahi-daemon" "$scratch/avahi"
cat >"$scratch/bus.conf" <<XML
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path=$scratch/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow own="*"/><allow send_destination="*"/><allow receive_sender="*"/><allow user="*"/></policy></busconfig>
XML
printf '[server]\nallow-interfaces=link0\nuse-ipv6=no\nhost-name=testclient\n[wide-area]\nenable-wide-area=no\n[rlimits]\n' >"$scratch/avahi.conf"
export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$scratch/bus
dbus-daemon --config-file="$scratch/bus.conf" --nofork --nopidfile >"$scratch/bus.log" 2>&1 & pids+=($!)
until_so test -S "$scratch/bus"
$client unshare --mount --propagation private sh -c "mount --bind $scratch/run /run && exec avahi-daemon --no-drop-root --no-chroot --no-rlimits -f $scratch/avahi.conf" \
  >"$scratch/avahi.log" 2>&1 & pids+=($!)
browse() { timeout 10 $client avahi-browse --resolve --parsable --terminate "$1" 2>&1; }
# =;link0;IPv4;INSTANCE;TYPE;DOMAIN;HOST;ADDRESS;PORT;TXT
smb_is_found() { browse _smb._tcp | tee "$scratch/smb.list" | grep -q "^=;link0;IPv4;testfiles;[^;]*;local;testfiles.local;$(address 0);445;"; }
nfs_is_found() { browse _nfs._tcp | tee "$scratch/nfs.list" | grep -q "^=;link0;IPv4;projects.*testfiles;[^;]*;local;testfiles.local;$(address 0);2049;.*path=/projects"; }
check "avahi-browse finds SMB with its port" until_so smb_is_found
check "avahi-browse finds the share over NFS, with its path" until_so nfs_is_found
hides() { ! grep -q secret "$scratch/nfs.list" "$scratch/smb.list" "$scratch/wsdd.log"; }
check "a hidden share is not announced" hides

# Who is not asked, and who asks too much.
uuid=$(sed -n 's/.*resolve match for urn:uuid:\([-0-9a-f]*\) on.*/\1/p' "$scratch/wsdd.log" | head -n 1)
refused() { [ "$($client curl -s -o /dev/null -w '%{http_code}' --max-time 5 "$@")" = "${want:-000}" ]; }
want=000 check "no metadata at the other link, where the server does not listen" refused "http://$(address 1):5357/$uuid"
want=405 check "metadata is asked for with POST" refused "http://$(address 0):5357/$uuid"
want=404 check "no other path" refused -X POST "http://$(address 0):5357/x"
want=400 check "a body that is no XML is refused" refused --data-binary '<a' "http://$(address 0):5357/$uuid"
large() { head -c 100000 /dev/zero | tr '\0' x | want=413 refused --data-binary @- "http://$(address 0):5357/$uuid"; }
check "nor is a large one read" large

must "SIGTERM ends the server" stop_server
check "the host has said goodbye" until_so wsdd_says '"Bye urn:uuid:'
smb_is_gone() { local said; said=$(browse _smb._tcp); echo "$said"; ! grep -q testfiles <<<"$said"; }
check "so has the service" until_so smb_is_gone
check "no panic in the log" log_is_clean
finish
