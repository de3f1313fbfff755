#!/bin/bash
# Users of a domain whose numbers somebody is asked for (domain-id-mapping), with tickets of the domain of tests/lab/ad-lab.
#   directory.sh [nss] [rfc2307] [names]     (all)
# rfc2307: the server asks the domain controller over LDAPS, with the password of its machine account.
# nss: the server's name service is winbind, that of the lab's domain controller, in a mount namespace of the server.
# names: numbers follow from SIDs, and the directory says who AD\group is in the lists of a share, and to clients that show and take names.
. "$(dirname "$0")/server.sh"
lab=$top/tests/lab/ad-lab
export AD_LAB_NETNS=anabranch-dir-$$
parts=${*:-nss rfc2307 names}

[ "$(id -u)" = 0 ] || { echo "needs root (network namespaces)"; exit 1; }
end_lab() { end_scratch; "$lab" down; }
trap end_lab EXIT

# serve LINE...: a server in the lab with these lines in its configuration.
serve() {
  config=$scratch/anabranch.toml
  { printf '%s\n' "$@"; printf '[[share]]\nname = "%s"\ndirectory = "%s"\n' "$SHARE" "$share_dir"; } >"$config"
  chmod 600 "$config"
  rm -rf "$scratch/state"; mkdir -m 700 "$scratch/state"
  "$ANABRANCH" domain import --keytab "$LAB_KEYTAB" --state "$scratch/state" &&
    listen=$LAB_FILES want_smb=445 want_nfs=2049 SIGNING=default start_server
}
reload() { ip netns exec "$LAB_NETNS" "$ANABRANCH" reload --state "$scratch/state"; }
anabranch() { ip netns exec "$LAB_NETNS" "$ANABRANCH" "$@" --state "$scratch/state"; }
says() { local want=$1 out; shift; out=$("$@" 2>&1); echo "$out"; grep -q -- "$want" <<<"$out"; }
ticket() { "$lab" kinit "$1"; }
# client COMMANDS: smbclient with the ticket of the lab's cache.
client() {
  "$lab" tool timeout 60 smbclient "//files.ad.lab.test/$SHARE" --use-kerberos=required --use-krb5-ccache="$LAB_STATE/ccache" -c "$1"
}
# refused STATUS: no session begins, and the client is told why.
refused() { local said; said=$(client ls 2>&1) && return 1; echo "$said"; grep -q "$1" <<<"$said"; }
mark() { marked=$(wc -c <"$scratch/server.log"); }
log_has() { tail -c "+$((marked + 1))" "$scratch/server.log" | grep -F -- "$1" || { tail -n 1 "$scratch/server.log"; return 1; }; }
owner_is() { [ "$(stat -c %u:%g "$share_dir/$1")" = "$2" ] || { stat -c '%n is of %u:%g' "$share_dir/$1"; return 1; }; }
sid_of() { awk -F'\t' -v name="$1" '$1 == name { print $2 }' "$LAB_STATE/sids"; }
# lsa COMMAND: what the server says of names.
lsa() {
  "$lab" tool timeout 60 rpcclient files.ad.lab.test --use-kerberos=required --use-krb5-ccache="$LAB_STATE/ccache" -c "$1" 2>&1
}
by_names() { "$lab" tool timeout 60 smbcacls "//files.ad.lab.test/$SHARE" --use-kerberos=required --use-krb5-ccache="$LAB_STATE/ccache" "$@"; }
acls() { by_names --numeric "$@"; }
# reads_nfs FILE UID GID: with the numbers that the client states.
reads_nfs() {
  local said; said=$(ip netns exec "$LAB_NETNS" timeout 60 nfs-cat "nfs://$LAB_FILES/$SHARE/$1?version=4&nfsport=$NFS_PORT&uid=$2&gid=$3" 2>&1)
  [ "$said" = "for $1" ] || { echo "$said"; return 1; }
}
reads_not_nfs() { ! reads_nfs "$@" && reads_nfs "$1" 0 0; }

# dc_processes PATTERN: the processes of the domain controller whose names match.
dc_processes() {
  local pids found=() pid
  pids=$(cat "$LAB_STATE/dc.pid")
  while [ -n "$pids" ]; do
    pids=$(for pid in $pids; do pgrep -P "$pid"; done)
    for pid in $pids; do grep -qs "$1" "/proc/$pid/comm" && found+=("$pid"); done
  done
  echo "${found[*]}"
}
# signal SIGNAL PATTERN
signal() { # shellcheck disable=SC2046
  kill "$1" $(dc_processes "$2"); }

part_nss() {
  sed 's/^\(passwd\|group\):.*/& winbind/' /etc/nsswitch.conf >"$scratch/nsswitch.conf"
  cat >"$scratch/with-winbind" <<S2
#!/bin/sh
mount --bind "$scratch/nsswitch.conf" /etc/nsswitch.conf && mount -t tmpfs tmpfs /run && mkdir /run/samba &&
  mount --bind "$LAB_STATE/run-samba" /run/samba && exec "\$@"
S2
  chmod 755 "$scratch/with-winbind"; chmod 644 "$scratch/nsswitch.conf"
  START="ip netns exec $LAB_NETNS unshare --mount --propagation private $scratch/with-winbind"
  check "winbind knows alice" says 'alice:.*:10001:10000:' $START getent passwd 'ADLAB\alice'
  must "a server that asks the name service starts" serve 'domain-id-mapping = "nss"' || return
  check "alice gets a ticket" ticket alice
  check "she logs on, and makes a file" client "put /etc/hostname of-alice"
  check "it has her numbers of winbind" owner_is of-alice 10001:10000
  check "she is told" says "uid     10001" anabranch domain test alice@AD.LAB.TEST
  check "by which rule" says 'domain-id-mapping = "nss"' anabranch domain test alice@AD.LAB.TEST
  check "with a group of winbind" says '11000$' anabranch domain test alice@AD.LAB.TEST
  check "who is asked is told" says "^numbers  *name service  [0-9].* ago  *1  *0  *0 " anabranch domain status
  check "of bob nothing is known yet" says "no ticket of the user has come" anabranch domain test "$(sid_of bob)"
  echo "for owned" >"$share_dir/owned"; chown 10001:10000 "$share_dir/owned"; chmod 640 "$share_dir/owned"
  check "a file of her number is hers" says "OWNER:$(sid_of alice)" acls owned
  check "a list for her" acls -S "REVISION:1,OWNER:$(sid_of alice),GROUP:S-1-22-2-10000,ACL:$(sid_of alice):0/0/0x1f01ff" owned
  check "lets her number read over NFS" reads_nfs owned 10001 10000
  check "and nobody else's" reads_not_nfs owned 10002 10000
  must "winbind falls silent" signal -STOP "^winbind"
  mark
  check "bob gets a ticket" ticket bob
  check "he is refused for now" refused NT_STATUS_NO_LOGON_SERVERS
  check "the log says why" log_has "have not said which number the user has"
  check "and that somebody waited in vain" says "^numbers  *name service  .* ago  *1  *0  *0  *1 " anabranch domain status
  check "alice gets a ticket again" ticket alice
  check "she is known from before" client "put /etc/hostname of-alice-again"
  must "winbind speaks again" signal -CONT "^winbind"
  check "bob gets a ticket again" ticket bob
  check "he logs on" eventually client "put /etc/hostname of-bob"
  check "with his numbers" owner_is of-bob 10002:10000

  only 'write = ["@ADLAB\\editors"]'
  must "the share is for a group by winbind's word" reload
  check "bob, who is not in it, is refused" refused NT_STATUS_ACCESS_DENIED
  check "alice gets a ticket once more" ticket alice
  check "she is in it" client "put /etc/hostname of-editors"
  only 'write = ["ADLAB\\bob"]'
  must "it is for bob" reload
  check "alice is refused" refused NT_STATUS_ACCESS_DENIED
  only

  sed -i '1i domain-nss-names = "realm"' "$config"
  mark
  check "bob gets a ticket then" ticket bob
  must "the server asks for bob@AD.LAB.TEST" reload
  check "whom winbind does not know, so he is refused" refused NT_STATUS_LOGON_FAILURE
  check "the log says so" log_has "the user has no number here"
  must "SIGTERM ends the server" stop_server
  check "the server's log shows neither a panic nor a password" log_is_clean
}

part_rfc2307() {
  START="ip netns exec $LAB_NETNS"
  install -m 600 "$LAB_STATE/machine.secret" "$scratch/ldap.password"
  echo wrong-Passw0rd >"$scratch/wrong.password"; chmod 600 "$scratch/wrong.password"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj "/CN=Another" \
    -keyout "$scratch/another.key" -out "$scratch/another.pem" 2>/dev/null
  must "a user with a number of the system is made" "$lab" tool samba-tool user create low low-Passw0rd --use-username-as-cn \
    --nis-domain=adlab --uid=low --uid-number=500 --gid-number=10000 --unix-home=/home/low --login-shell=/bin/sh
  must "a server that asks the directory starts" serve 'domain-id-mapping = "rfc2307"' 'domain-ldap-server = "dc1.ad.lab.test"' \
    'domain-ldap-account = "FILES$@AD.LAB.TEST"' "domain-ldap-password-file = \"$scratch/ldap.password\"" \
    "domain-ldap-ca = \"$LAB_STATE/ca.pem\"" || return
  check "alice gets a ticket" ticket alice
  check "she logs on, and makes a file" client "put /etc/hostname of-alice"
  check "it has her numbers of the directory" owner_is of-alice 10001:10000
  check "she is told" says "uid     10001" anabranch domain test alice@AD.LAB.TEST
  check "with her entry" says "uidNumber 10001, gidNumber 10000 of CN=alice,CN=Users,DC=ad" anabranch domain test alice@AD.LAB.TEST
  check "of bob the directory is told alone" says "of CN=bob" anabranch domain test "$(sid_of bob)"
  check "who is asked is told" says "^numbers  *directory  *[0-9].* ago  *1  *0  *0 " anabranch domain status
  check "by which rule" says "^numbers  *domain-id-mapping = .rfc2307.: .* at dc1.ad.lab.test" anabranch domain status
  echo "for staffs" >"$share_dir/staffs"; chown 10001:10000 "$share_dir/staffs"
  check "a list for a group" acls -S "REVISION:1,OWNER:$(sid_of alice),GROUP:S-1-22-2-10000,ACL:$(sid_of staff):0/0/0x1200a9" staffs
  check "lets a member of its number read over NFS" reads_nfs staffs 10002 11000
  check "and nobody else" reads_not_nfs staffs 10002 11009
  check "many gets a ticket" ticket many
  check "a user of 150 groups logs on" client "put /etc/hostname of-many"
  check "with a number" owner_is of-many 10005:10000
  local name status text
  while IFS=$'\t' read -r name text; do
    mark
    check "$name gets a ticket" ticket "$name"
    check "$name is refused" refused NT_STATUS_LOGON_FAILURE
    check "the log says why" log_has "$text"
  done <<'U'
nogid	the user has no number here
low	is below 1000
U
  while IFS=$'\t' read -r name status text; do
    mark
    sed "s,^$name = .*,$name = \"$status\"," "$scratch/right.toml" >"$config"
    must "$name is wrong" reload
    check "nobody is known" refused NT_STATUS_NO_LOGON_SERVERS
    check "the log says why: $text" log_has "$text"
    check "and so does the test" says "$text" anabranch domain test "$(sid_of many)"
    check "and so does the status" says "^\* .*$text" anabranch domain status
    check "with what failed last" says "^numbers of the directory failed last .* ago: .*$text" anabranch domain status
  done < <(cp "$config" "$scratch/right.toml"; ticket many >/dev/null 2>&1
    printf '%s\t%s\t%s\n' domain-ldap-password-file "$scratch/wrong.password" "does not accept the password" \
      domain-ldap-ca "$scratch/another.pem" "certificate" domain-ldap-server client.ad.lab.test "cannot connect to the directory")
  ip netns exec "$LAB_NETNS" python3 -c 'import socket, sys, time
listening = socket.create_server(("10.79.0.3", 636)); open(sys.argv[1], "w").close(); time.sleep(120)' "$scratch/listening" & local silent=$!
  check "a directory that accepts and says nothing is there" eventually test -e "$scratch/listening"
  sed -i '1i trusted-domains = []' "$config"; sed -i 's,^domain-ldap-base.*,,; 1i domain-ldap-base = "DC=ad,DC=lab,DC=test"' "$config"
  must "it is asked" reload
  check "nobody is known, and the client is told" refused NT_STATUS_NO_LOGON_SERVERS
  check "so is the administrator" says "client.ad.lab.test: timeout" anabranch domain test "$(sid_of many)"
  kill $silent
  cp "$scratch/right.toml" "$config"
  must "all is right again" reload
  check "bob gets tickets" tickets bob
  cp "$LAB_STATE/ccache" "$scratch/of-bob"
  check "alice gets tickets" tickets alice
  check "she logs on" client "put /etc/hostname of-alice-then"
  cp "$LAB_STATE/ccache" "$scratch/of-alice"
  "$lab" exec env KRB5CCNAME="$scratch/of-alice" "$ANABRANCH" bench job --target "smb://files.ad.lab.test/$SHARE?sec=krb5" \
    --reads 50 --block-size 64k --connections 2 --file-size 1M --seconds 12 --repetitions 1 >"$scratch/load" 2>&1 & local load=$!
  check "a session of hers is under load" eventually compgen -G "$share_dir/anabranch-bench-*"
  must "the domain controller falls silent" signal -STOP .
  check "alice is known from before" client "put /etc/hostname of-alice-meanwhile"
  check "with her numbers" owner_is of-alice-meanwhile 10001:10000
  cp "$scratch/of-bob" "$LAB_STATE/ccache"
  check "bob, who is new, is refused for now" refused NT_STATUS_NO_LOGON_SERVERS
  must "the domain controller is back" signal -CONT .
  check "bob logs on" eventually client "put /etc/hostname of-bob-then"
  check "with his numbers" owner_is of-bob-then 10002:10000
  local ended=0
  wait $load || ended=$?
  [ $ended = 0 ] || tail -n 5 "$scratch/load"
  check "the session under load has noticed nothing" [ $ended = 0 ]
  must "SIGTERM ends the server" stop_server
  check "the server's log shows neither a panic nor a password" log_is_clean
  check "nor that of the directory" no_secret
}
part_names() {
  START="ip netns exec $LAB_NETNS"
  install -m 600 "$LAB_STATE/machine.secret" "$scratch/ldap.password"
  must "a server whose numbers follow from SIDs starts" serve || return
  check "alice gets a ticket first" ticket alice
  check "without a directory, the name of a group is not known" says "$(sid_of staff) .*(8)" lsa "lookupsids $(sid_of staff)"
  only 'write = ["ADLAB\\staff"]'
  check "without a directory, nobody can be asked who a name is" says "nobody can be asked who ADLAB.staff is" reload
  only
  mkdir "$scratch/made"
  check "nor for a share that is made by command" says "nobody can be asked who @ADLAB.staff is" \
    anabranch share create made "$scratch/made" --write '@ADLAB\staff'
  local directory=('domain-ldap-server = "dc1.ad.lab.test"' 'domain-ldap-account = "FILES$@AD.LAB.TEST"'
    "domain-ldap-password-file = \"$scratch/ldap.password\"" "domain-ldap-ca = \"$LAB_STATE/ca.pem\"")
  { printf '%s\n' "${directory[@]}"; cat "$config"; } >"$scratch/with-directory"; cp "$scratch/with-directory" "$config"
  only 'read = ["@ad.lab.test\\staff"]' 'write = ["ADLAB\\Editors"]'
  must "the directory says who is meant" reload
  names_are_known
  check "alice gets a ticket" ticket alice
  check "an editor writes" client "put /etc/hostname by-editors"
  check "which of the entries gives that is told" says "elevated  *ADLAB.Editors" anabranch domain test alice@AD.LAB.TEST
  check "bob gets a ticket" ticket bob
  check "who is in staff alone, reads" client "get by-editors /dev/null"
  check "and does not write" refused_to "put /etc/hostname by-staff" NT_STATUS_ACCESS_DENIED
  check "many gets a ticket" ticket many
  check "and is in neither" refused NT_STATUS_ACCESS_DENIED
  only 'write = ["ADLAB\\many"]' 'read = ["@staff@ad.lab.test"]'
  must "a user by name, and the group in its other form" reload
  check "many writes" client "put /etc/hostname by-many"
  check "bob gets a ticket again" ticket bob
  check "bob reads" client "get by-many /dev/null"
  mark
  only 'write = ["ADLAB\\nobody-there", "@ADLAB\\alice", "OTHER\\staff"]'
  must "names that the directory does not have" reload
  check "give nothing" refused NT_STATUS_ACCESS_DENIED
  check "the log says so" log_has 'ADLAB\nobody-there, which does not exist'
  check "a user is no group" log_has '@ADLAB\alice, which does not exist'
  check "another domain is told" log_has 'is that of the domain ADLAB (ad.lab.test), not of OTHER'
  only 'write = ["ADLAB\\many"]'
  must "a name that is known" reload
  must "the domain controller falls silent" signal -STOP .
  only 'write = ["ADLAB\\many"]' 'comment = "again"'
  check "what it said last holds" reload
  cp "$LAB_STATE/ccache" "$scratch/of-bob"
  check "bob is refused" refused NT_STATUS_ACCESS_DENIED
  must "the domain controller is back" signal -CONT .
  check "many gets a ticket again" ticket many
  check "many writes again" client "put /etc/hostname by-many-again"
  must "SIGTERM ends the server" stop_server
  check "the server's log shows neither a panic nor a password" log_is_clean
  check "nor that of the directory" no_secret
}
# names_are_known: clients are shown the names of the directory, and may use them. Of these users, alice alone has come with a ticket.
names_are_known() {
  local name kind
  while read -r name kind; do
    check "$name has a name, and is of the kind $kind" says "^$(sid_of "$name") ADLAB.$name ($kind)" lsa "lookupsids $(sid_of "$name")"
    check "and a SID" says "^ADLAB.$name $(sid_of "$name") .*: $kind)" lsa "lookupnames 'ADLAB\\$name'"
  done <<'K'
bob 1
staff 2
readers 2
dl-files 4
K
  check "all of them at once" says "ADLAB.g150 (2)" lsa "lookupsids $(for ((n = 1; n <= 150; n++)); do sid_of "g$(printf %03d $n)"; done | tr '\n' ' ')"
  check "a name without the domain" says "^readers $(sid_of readers) .*: 2)" lsa "lookupnames readers"
  check "if the machine has none of that name" says "^staff S-1-22-2-" lsa "lookupnames staff"
  check "the name of a user for logging on" says "^bob@ad.lab.test $(sid_of bob) " lsa "lookupnames bob@ad.lab.test"
  check "a SID that nobody has" says "$(sid_of staff | sed 's/-[0-9]*$/-999999/') .*(8)" lsa "lookupsids $(sid_of staff | sed 's/-[0-9]*$/-999999/')"
  check "a name that nobody has" says "NONE_MAPPED" lsa "lookupnames 'ADLAB\\nobody-there'"
  check "a name with a meaning in filters" says "NONE_MAPPED" lsa "lookupnames 'ADLAB\\sta*'"
  check "another domain" says "NONE_MAPPED" lsa "lookupnames 'OTHER\\staff'"
  check "a file is made" client "put /etc/hostname named"
  check "a list by names is set" by_names -S 'REVISION:1,OWNER:ADLAB\alice,GROUP:ADLAB\Domain Users,ACL:ADLAB\staff:ALLOWED/0x0/READ' named
  check "and has the SIDs" says "ACL:$(sid_of staff):0/" acls named
  check "and is shown with the names" says 'ACL:ADLAB.staff:ALLOWED' by_names named
  check "who is asked for names is told" says "^names  *directory  *[0-9].* ago  *[1-9]" anabranch domain status
}
# only LINE...: the share in the configuration has these lines besides its name and its directory.
only() {
  sed -i '/^\[\[share\]\]/,$d' "$config"
  printf '%s\n' "[[share]]" "name = \"$SHARE\"" "directory = \"$share_dir\"" "$@" >>"$config"
}
# refused_to COMMANDS STATUS
refused_to() { local said; said=$(client "$1" 2>&1) && return 1; echo "$said"; grep -q "$2" <<<"$said"; }
# tickets USER: that for the server, too.
tickets() { ticket "$1" && "$lab" tool kvno cifs/files.ad.lab.test; }
no_secret() { ! grep -F -f "$LAB_STATE/machine.secret" "$scratch/server.log" && ! grep -F wrong-Passw0rd "$scratch/server.log"; }
# eventually COMMAND...: within a minute.
eventually() { local tries; for ((tries = 0; tries < 60; tries++)); do "$@" && return; sleep 1; done; return 1; }

must "the domain starts" "$lab" up || { finish; exit 1; }
"$lab" versions | sed 's/^/  /'
eval "$("$lab" env)"
chmod 711 "$scratch"; share_dir=$scratch/share; mkdir -p "$share_dir"; chmod 1777 "$share_dir"
for part in $parts; do "part_$part"; done
finish
