#!/bin/bash
# Quotas as clients list and set them: Samba's smbcquotas, which uses only port 445, and for NFS the command quota, which asks over
# UDP and finds the program through port 111. Runs in a network of its own. (root)
if [ -z "${QUOTAS_INSIDE:-}" ]; then
  [ "$(id -u)" = 0 ] || { echo "needs root (network namespaces)"; exit 1; }
  QUOTAS_INSIDE=1 exec unshare --net --mount --propagation private "$0" "$@"
fi
ip link set lo up && mount -t tmpfs tmpfs /run || exit 1
SQUASH=default
. "$(dirname "$0")/server.sh"
# In memory, no blocks are allocated for anything but data. It goes with this mount namespace.
share_dir=/run/share
mkdir -m 777 "$share_dir"
cat >"$scratch/config.toml" <<TOML
admins = ["boss"]
[[share]]
name = "declared"
directory = "$scratch/declared"
quotas = ["* hard=1GiB"]
TOML
mkdir "$scratch/declared"
passwords=()
for user in anna=1000 otto=1001 boss=1002; do passwords+=(--user "$user:$SMB_PASS"); done
config=$scratch/config.toml want_smb=445 want_nfs=2049
must "the server starts" start_server "${passwords[@]}" --portmap on || { finish; exit 1; }
printf '[global]\n' >"$scratch/smb.conf"

anabranch() { "$ANABRANCH" "$@" --state "$scratch/state"; }
# quotas USER OPTION...: what smbcquotas says for this user; quotas_of SHARE USER OPTION... of another share.
quotas_of() { local share=$1 user=$2; shift 2; timeout 60 smbcquotas -s "$scratch/smb.conf" "//127.0.0.1/$share" -U "$user%$SMB_PASS" "$@" 2>&1; }
quotas() { quotas_of made "$@"; }
# says PATTERN COMMAND...; spaces stand for any number of them.
says() { local want=${1// / *} out; shift; out=$("$@"); echo "$out"; grep -qE -- "$want" <<<"$out"; }
not() { if "$@"; then return 1; fi; }
counted() { local i; for ((i = 0; i < 240; i++)); do anabranch quota list made | grep -q '^1001 *8 KiB' && return 0; sleep 0.25; done; anabranch quota list made; return 1; }

none=18446744073709551615
check "a share" anabranch share create made "$share_dir"
head -c 102400 /dev/zero >"$share_dir/a" && chown 1000:1000 "$share_dir/a"
head -c 8192 /dev/zero >"$share_dir/o" && chown 1001:1001 "$share_dir/o"
check "smbcquotas: a share without quotas has none" says "^Quotas are not supported by the server" quotas boss -L
check "a quota" anabranch quota set made anna --soft 1MiB --hard 2MiB
check "a default" anabranch quota set made '*' --hard 5MiB
check "all files were counted" counted
check "smbcquotas -L: a quota of its own" says "^Unix User.anna : 102400/ 1048576/ 2097152\$" quotas boss -L
check "smbcquotas -L: the default" says "^Unix User.otto : 8192/ *$none/ 5242880\$" quotas boss -L
check "smbcquotas -L -n: SIDs" says "^S-1-22-1-1000 : 102400/ 1048576/ 2097152\$" quotas boss -L -n
check "smbcquotas -u: one user" says "^ANABRANCH.anna : 102400/ 1048576/ 2097152\$" quotas boss -u anna
check "smbcquotas -F: the default" says "Default Hard Limit: 5242880" quotas boss -F
check "smbcquotas -F: quotas hold" says "Deny Disk: On" quotas boss -F
check "smbcquotas -S: a user" says "^ANABRANCH.otto : 8192/ 300000/ 400000\$" quotas boss -S UQLIM:otto:300000/400000
check "it is kept" says '"hard": 400000' anabranch quota show made 1001 --json
check "smbcquotas -S: no limit" quotas boss -S UQLIM:otto:0/0
check "the user may hold everything" says "^ANABRANCH.otto : 8192/ *$none/ *$none\$" quotas boss -u otto
check "smbcquotas -S: the default" says "Default Hard Limit: 2000000" quotas boss -S FSQLIM:1000000/2000000
check "it is kept" says '"soft": 1000000' anabranch quota show made '*' --json
check "smbcquotas -S: the flags" says "Deny Disk: On" quotas boss -S FSQFLAGS:QUOTA_ENABLED/DENY_DISK
check "a user sees its own quota" says "^ANABRANCH.anna : 102400/ 1048576/ 2097152\$" quotas anna -u anna
check "and no other" says NT_STATUS_ACCESS_DENIED quotas anna -u otto
check "not in the list either" not says otto quotas anna -L
check "and sets none" says NT_STATUS_ACCESS_DENIED quotas anna -S UQLIM:anna:0/0
check "nor the default" says NT_STATUS_ACCESS_DENIED quotas anna -S FSQLIM:0/0
# quota asks for each mount of NFS that it finds in /proc/mounts. This kernel may have no client of NFS.
chmod 755 "$scratch" && mkdir "$scratch/proc" /run/mnt && echo "127.0.0.1:/made /run/mnt nfs rw,vers=3 0 0" >"$scratch/proc/mounts"
# quota_as UID OPTION...
quota_as() {
  local uid=$1; shift
  timeout 60 unshare --mount --propagation private sh -c \
    'mount --bind "$0" /proc && exec setpriv --reuid "$1" --regid "$1" --clear-groups quota $2' "$scratch/proc" "$uid" "$*" 2>&1
}
check "quota: an NFS user's own" says "127.0.0.1:/made 100 1024 2048 " quota_as 1000 -w -u
check "quota: what is like each other's" says "127.0.0.1:/made 0 976 1953 " quota_as 1003 -w -v -u
check "quota: root is not believed" says "Operation not permitted" quota_as 0 -w -u 1000
check "rquotad over TCP" rpcinfo -T tcp 127.0.0.1 100011 2
check "rquotad over UDP" rpcinfo -T udp 127.0.0.1 100011 1
check "an administrator of the share may" anabranch share set made --admin otto
check "and does" says "^ANABRANCH.anna : 102400/ 200000/ 300000\$" quotas otto -S UQLIM:anna:200000/300000
check "the configuration's quotas are listed" says "Default Hard Limit: 1073741824" quotas_of declared boss -F
check "and changed nowhere else" says NT_STATUS_NOT_SUPPORTED quotas_of declared boss -S UQLIM:anna:1/2
must "the server ends" stop_server
must "it starts again" start_server "${passwords[@]}" --portmap on
check "what was set is there" says "hard.*: 300000" anabranch quota show made anna --json
check "no panic, no password in the log" log_is_clean
must "the server ends" stop_server
finish
