#!/bin/bash
# A share that is on another server than the one that is mounted. The kernel's client of NFSv4 goes where the first server tells it
# that the share is; those of NFSv3 and SMB do not find it. Each server says in the file `where` which one it is. Environment:
#   SERVER OTHER      the server that is mounted, and the one that has the shares
#   NEVER PORTED      shares of the other one, at the usual port of NFS and at another one
#   DATA              a share that moves there while it is mounted: prints `move me`, and is to be told in the file `moved` of HERE
#   HERE              a share that stays
#   VERSIONS          of NFSv4 (4.2 4.1 4.0)
#   USER PASS         for SMB
. "$(dirname "$0")/lib.sh"
: "${NEVER:=never}" "${PORTED:=ported}" "${DATA:=data}" "${HERE:=here}" "${VERSIONS:=4.2 4.1 4.0}"
is() { [ "$1" = "$2" ] || { echo "$1 is not $2"; return 1; }; }
at() { is "$(cat "$1/where")" "$2"; }
nfs() {
  local v3=; [ "$3" != 3 ] || v3=,nolock,port=2049,mountport=2049,mountproto=tcp
  mount_at "$1" -t nfs "$SERVER:$2" -o "vers=$3,proto=tcp,noac,lookupcache=none,sec=sys$v3"
}
lists() { ls "$1" | grep -qxF "$2" || { ls "$1"; return 1; }; }
source_of() { findmnt -n -o SOURCE -T "$1" | tail -n 1; }
on() { case $(source_of "$1") in "$2":*) ;; *) source_of "$1"; return 1 ;; esac; }
# refused TEXT COMMAND...: the command fails, and says so.
refused() { local said; said=$("${@:2}" 2>&1) && { echo "it went well"; return 1; }; grep -q -- "$1" <<<"$said" || { echo "$said"; return 1; }; }

r=/mnt/root
for version in $VERSIONS; do
  check "v$version: the root is mounted" nfs $r / "$version"
  check "v$version: the root lists what is elsewhere" lists $r "$NEVER"
  check "v$version: a share that is elsewhere is entered" at "$r/$NEVER" other
  check "v$version: the mount below is of the other server" on "$r/$NEVER" "$OTHER"
  check "v$version: a server at another port" at "$r/$PORTED" other
  check "v$version: a share that is here" at "$r/$HERE" here
  umount "$r/$NEVER" "$r/$PORTED" "$r/$HERE" 2>/dev/null
  umount $r
  check "v$version: a share that is elsewhere is mounted" nfs $r "/$NEVER" "$version"
  check "v$version: with what the other server has" at $r other
  check "v$version: it can be written" eval 'echo "from $version" >'$r"/by-$version"
  umount $r
done
smb() { mount_at /mnt/smb -t cifs "//$SERVER/$1" -o "vers=3.1.1,username=$USER,password=$PASS"; }
check "v3: a share that is elsewhere is not there" refused "No such file" nfs /mnt/three "/$NEVER" 3
check "SMB: a share that is elsewhere is not there" refused "No such file" smb "$NEVER"
check "SMB: a share that is here" smb "$HERE"; umount /mnt/smb

version=${VERSIONS%% *}
check "a share that is to move is mounted" nfs /mnt/data "/$DATA" "$version"
check "it is here" at /mnt/data here
check "the same in the root" nfs $r / "$version"
check "it is here, too" at "$r/$DATA" here
check "and over v3" nfs /mnt/three "/$DATA" 3
check "the share that stays is mounted" nfs /mnt/here "/$HERE" "$version"
exec 3<>/mnt/data/where
echo "  move me"
for ((tries = 0; tries < 600; tries++)); do [ ! -e /mnt/here/moved ] || break; sleep 0.1; done
check "the share has moved" [ -e /mnt/here/moved ]
# The client is told of the move in each reply until it has asked where the share is: it must not ask for ever.
asked() { awk '/^[ \t]*FSID_PRESENT:/ { n += $2 } END { print n + 0 }' /proc/self/mountstats; }
for ((tries = 0; tries < 600; tries++)); do cat /mnt/here/where >/dev/null; [ "$(asked)" = 0 ] || break; sleep 0.1; done
check "the client asks where the share is" [ "$(asked)" != 0 ]
sleep 2; before=$(asked); for ((tries = 0; tries < 20; tries++)); do cat /mnt/here/where >/dev/null; sleep 0.1; done
check "and then no more" is "$(asked)" "$before"
echo "  an open file: $(cat <&3 2>&1 | tail -n 1)"; exec 3<&-
echo "  the mount that stands: $(cat /mnt/data/where 2>&1 | tail -n 1)"
echo "  the mount of the root: $(cat $r/$DATA/where 2>&1 | tail -n 1)"
check "v3: the mount is stale" refused "Stale" cat /mnt/three/where
umount -f /mnt/three 2>/dev/null || umount -l /mnt/three
umount /mnt/data 2>/dev/null || umount -l /mnt/data
umount "$r/$DATA" 2>/dev/null || umount -l "$r/$DATA" 2>/dev/null
check "it is mounted again" nfs /mnt/data "/$DATA" "$version"
check "it is on the other server" at /mnt/data other
check "it is there in the root, too" at "$r/$DATA" other
check "the share that stays is here" at /mnt/here here
finish
