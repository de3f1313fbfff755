#!/bin/bash
# The four roles of a share, given to users and to groups of the system, over SMB (smbclient, smbcacls) and NFSv3 and NFSv4.0
# (libnfs): who reads, who writes, who changes permissions, and who everything.
# smbcacls uses only port 445, so the server listens there on its own loopback address. (root)
. "$(dirname "$0")/server.sh"
[ "$(id -u)" = 0 ] || { echo "not tested: roles: only root may listen on port 445"; finish; exit; }
SERVER_ADDRESS=127.$((64 + $$ % 64)).$((RANDOM % 256)).$((RANDOM % 254 + 1))
printf '[global]\n' >"$scratch/smb.conf"

# name uid group gid: users in none of the groups have other ones.
people="reader:2001:daemon:1 contributor:2002:bin:2 elevated:2003:sys:3 admin:2004:games:60 other:2005:www-data:33"
mkdir -m 700 "$scratch/state"
config=$scratch/anabranch.toml
(
  umask 077
  for share in users groups; do
    mkdir -m 777 "$scratch/$share"; chmod 777 "$scratch/$share"; echo secret >"$scratch/$share/secret"
    printf '[[share]]\nname = "%s"\ndirectory = "%s"\n' "$share" "$scratch/$share"
    if [ "$share" = users ]; then printf 'read = ["reader"]\nwrite = ["contributor"]\nelevated = ["elevated"]\nadmin = ["admin"]\n'
    else printf 'read = ["@daemon"]\nwrite = ["@bin"]\nelevated = ["@sys"]\nadmin = ["@games"]\n'; fi
  done
  for one in $people; do
    IFS=: read -r name uid _ gid <<<"$one"
    printf '[[user]]\nname = "%s"\npassword = "%s"\nuid = %s\ngid = %s\n' "$name" "$SMB_PASS" "$uid" "$gid"
  done
) >"$config"
chmod 600 "$config"
listen=$SERVER_ADDRESS want_smb=445 must "server starts" start_server || { cat "$scratch/server.log"; finish; exit 1; }

as() { grep -o "$1:[^ ]*" <<<"$people" | cut -d: -f"$2"; }
smb() { timeout 60 smbclient -s "$scratch/smb.conf" "//$SERVER_ADDRESS/$share" -U "$1%$SMB_PASS" -c "$2" 2>&1; }
acl() { local who=$1; shift; timeout 60 smbcacls -s "$scratch/smb.conf" "//$SERVER_ADDRESS/$share" -U "$who%$SMB_PASS" --numeric "$@" 2>&1; }
# may COMMAND...: it works. may_not COMMAND...: it is refused for lack of rights, and not for another reason.
may() { local out; out=$("$@"); local rc=$?; echo "$out"; [ $rc = 0 ] && ! grep -q NT_STATUS <<<"$out"; }
may_not() { local out; out=$("$@"); echo "$out"; grep -q NT_STATUS_ACCESS_DENIED <<<"$out"; }
owner() { [ "$(stat -c %u "$scratch/$share/$2")" = "$1" ] || { stat -c %u "$scratch/$share/$2"; return 1; }; }

everyone=ACL:S-1-1-0:0/0/0x1f01ff
echo data >"$scratch/data"
for share in users groups; do
  chmod 600 "$scratch/$share/secret"; chown 0:0 "$scratch/$share/secret"
  check "SMB, by $share: a reader reads" may smb reader 'ls'
  check "SMB, by $share: and does not write" may_not smb reader "put $scratch/data r"
  check "SMB, by $share: a contributor writes" may smb contributor "put $scratch/data c"
  check "SMB, by $share: and changes no permissions" may_not acl contributor -a "$everyone" c
  check "SMB, by $share: nor the owner" may_not acl contributor -C "S-1-22-1-$(as contributor 2)" c
  check "SMB, by $share: and deletes" may smb contributor 'del c'
  check "SMB, by $share: an elevated contributor writes" may smb elevated "put $scratch/data e"
  check "SMB, by $share: and changes permissions" may acl elevated -a "$everyone" e
  check "SMB, by $share: not of a file of others" may_not acl elevated -a "$everyone" secret
  check "SMB, by $share: which it does not read" may_not smb elevated "get secret $scratch/leak"
  check "SMB, by $share: an administrator reads every file" may smb admin "get secret $scratch/read"
  check "SMB, by $share: and takes ownership" may acl admin -C "S-1-22-1-$(as admin 2)" secret
  check "SMB, by $share: of which the file system knows" owner "$(as admin 2)" secret
  check "SMB, by $share: and gives it away" may acl admin -C S-1-22-1-0 secret
  check "SMB, by $share: others have nothing" may_not smb other 'ls'
done

# nfs VERSION USER "WHAT IT SAYS" STEP...
nfs() {
  local version=$1 who=$2 want=$3 said; shift 3
  said=$(timeout 60 python3 "$top/tests/interop/nfs_roles.py" \
    "nfs://$SERVER_ADDRESS/$share?version=$version&nfsport=$NFS_PORT&mountport=$NFS_PORT" "$(as "$who" 2)" "$(as "$who" 4)" "$@" 2>&1 | tr '\n' ' ')
  echo "$said"
  [ "${said% }" = "$want" ]
}
for version in 3 4; do
  # Over NFSv4, libnfs opens a file to change its mode.
  others=EPERM; [ $version = 3 ] || others=EACCES
  for share in users groups; do
    rm -f "$scratch/$share/secret"; echo secret >"$scratch/$share/secret"
    chmod 600 "$scratch/$share/secret"; chown 0:0 "$scratch/$share/secret"
    echo open >"$scratch/$share/open"; chmod 644 "$scratch/$share/open"
    for who in contributor elevated; do
      # Over NFSv4, libnfs 4.0.0 gives files that it makes no mode.
      echo own >"$scratch/$share/of-$who"; chmod 640 "$scratch/$share/of-$who"; chown "$(as $who 2):$(as $who 4)" "$scratch/$share/of-$who"
    done
    its="NFSv$version, by $share:"
    check "$its a reader reads and changes nothing" nfs $version reader "ok EROFS EROFS" read=open create=r chmod=open:666
    check "$its a contributor writes, and keeps the permissions" nfs $version contributor "ok EACCES ok" create=c chmod=of-contributor:666 remove=c
    # libnfs 4.0.0 tells of a refused change of the owner over NFSv4 as ERANGE.
    [ $version = 4 ] || check "$its and the owner" nfs $version contributor EACCES "chown=of-contributor:$(as other 2)"
    check "$its an elevated contributor changes permissions of what is its own" nfs $version elevated "ok ok $others EACCES" create=e chmod=of-elevated:666 chmod=secret:666 read=secret
    check "$its an administrator has every file" nfs $version admin "ok ok ok ok" read=secret chmod=secret:640 "chown=secret:$(as admin 2)" remove=secret
    check "$its others have nothing" nfs $version other EACCES read=open
    rm -f "$scratch/$share/e"
  done
done
must "the log is clean" log_is_clean
must "server ends" stop_server
finish
