#!/bin/bash
# The keytab of a vserver is in the cluster: a ticket for the vserver logs on at each gateway that serves it. A real Ceph cluster
# (tests/lab/ceph-lab), two gateways and a client, each in a network namespace of its own, and smbclient with a ticket of MIT's KDC
# (tests/lab/kdc-lab), which has ended before the ticket is used for the first time: there is no other one. (root)
#   takeover-tickets.sh [--show]    also prints what the commands print
name=tickets network=192.0.2 flags=()
. "$(dirname "$0")/two-gateways.sh"
. "$top/tests/lab/identity-root"
kdc=$top/tests/lab/kdc-lab
export KDC_LAB_NETNS=$net-kdc
trap '"$kdc" down; end_all; rm -rf "/etc/netns/$net-client"' EXIT
show=${1:-}
# Names of files are in messages.
cd "$scratch" || exit 1
# refused NAME TEXT COMMAND...: the command fails, and says this.
refused() {
  local name=$1 text=$2 said; shift 2
  if said=$("$@"); then fail "$name" "it was not refused: $said"
  elif grep -q -- "$text" <<<"$said"; then pass "$name"; else fail "$name" "$said"; fi
}

# The only ticket, and the keys of the service.
state=$scratch/client
mkdir -p "$state/etc/samba"
check "a KDC starts" "$kdc" up
eval "$("$kdc" env)"
check "alice gets a ticket for the vserver" eval '"$kdc" kinit alice && "$kdc" tool kvno cifs/files.lab.test'
cp "$LAB_STATE/krb5.conf" "$LAB_STATE/ccache" "$state" && cp "$LAB_STATE/etc/samba/smb.conf" "$state/etc/samba" &&
  cp "$LAB_KEYTAB" "$scratch/files.keytab" && cp "$LAB_WRONG_KEYTAB" "$scratch/wrong.keytab" || exit 1
chmod 600 "$scratch"/*.keytab
check "and the KDC ends" "$kdc" down
unset KRB5CCNAME
mkdir -p "/etc/netns/$net-client" && printf '127.0.0.1 localhost\n%s.10 files.lab.test\n' "$network" >"/etc/netns/$net-client/hosts" || exit 1
# client COMMANDS: smbclient with the ticket.
client() {
  lab_inside "$net-client" "$state" timeout 60 smbclient //files.lab.test/data --use-kerberos=required \
    --use-krb5-ccache="$state/ccache" -c "$1"
}
# Without keys, no server offers Kerberos.
is_not_accepted() { client ls | grep -q 'session setup failed'; }
is_refused() { client ls | grep -q 'session setup failed: NT_STATUS_LOGON_FAILURE'; }

cat >"$scratch/anabranch.toml" <<'TOML'
account-realm = ["LAB.TEST"]
[[user]]
name = "alice"
password = "alice's own"
uid = 10001
gid = 10001
TOML
chmod 600 "$scratch/anabranch.toml"
flags=(--config "$scratch/anabranch.toml")
serve a; serve b
check "two gateways are a cluster" eval 'at a cluster init && at b cluster join'
check "a vserver is made" at a vserver create files --address "$network.10%eth0/24" --share data=cephfs:/files
check "without a keytab, the ticket does not log on" soon is_not_accepted

echo hello >hello; chmod 600 hello
cp files.keytab open.keytab; chmod 644 open.keytab
refused "a file that is no keytab is refused" "this is not a keytab" at b vserver keytab files hello
refused "so is one that is not there" "cannot read the keytab" at b vserver keytab files none
refused "and a keytab that others may read" "others may read or change the keytab" at b vserver keytab files open.keytab
refused "there is no vserver of another name" "there is no vserver none" at b vserver keytab none files.keytab
refused "what has no keytab loses none" "the vserver files has no keytab" at b vserver keytab files --remove

at b vserver keytab files files.keytab >said
check "a keytab is stored at the gateway that does not serve the vserver" [ $? = 0 ]
at a vserver list --json >said
check "the other one tells whose keys are in it" grep -q '"principal": "cifs/files.lab.test@LAB.TEST"' said
echo "by the first gateway" >first; echo "by the second gateway" >second
check "the first gateway serves the vserver" serves a files a
check "the ticket logs on there, and writes" soon client "put $scratch/first first"
kill -KILL "${pid[a]}"; wait "${pid[a]}" 2>/dev/null; unset 'pid[a]'
check "the first gateway is killed: the second takes over" soon serves b files b
check "the same ticket logs on there" soon client ls
check "reads what was written before" eval 'client "get first $scratch/read" && cmp "$scratch/first" "$scratch/read"'
check "and writes" eval 'client "put $scratch/second second; get second $scratch/again" && cmp "$scratch/second" "$scratch/again"'
check "the log of the second gateway says whose keys it uses" grep -q 'tickets are accepted with the keytab in the cluster vserver="files"' "$scratch/log-b"

check "another keytab is stored" at b vserver keytab files wrong.keytab
check "which refuses the ticket" soon is_refused
check "the log says what to do" grep -q 'export the keytab again' "$scratch/log-b"
check "the first one is stored again" at b vserver keytab files files.keytab
check "and accepts it" soon client ls
at b vserver keytab files --remove >said
check "the keytab is removed" [ $? = 0 ]
check "the ticket does not log on any more" soon is_not_accepted
check "a vserver ends" at b vserver remove files
check "no log has a panic" eval '! grep -q panicked "$scratch/log-a" "$scratch/log-b"'
[ "$failed" = 0 ] || logs
finish
