#!/bin/bash
# The kernel's clients against a server that was told nothing but its share and its user: SMB is signed, and root of an NFS client is
# nobody. The share belongs to the user 1000. Environment: as in cifs-smoke.sh and nfs-common.sh.
. "$(dirname "$0")/lib.sh"
: "${SMB_PORT:=445}" "${NFS_PORT:=2049}" "${SHARE:=share}" "${EXPORT:=/export}" "${USER:=user}" "${PASS:=pass}"
as_owner() { setpriv --reuid 1000 --regid 1000 --clear-groups "$@"; }
fails() { ! "$@"; }
# Linux shows "signed" with a session whose messages are.
is_signed() { grep -iE 'sign|encrypt' /proc/fs/cifs/DebugData | tail -n 1; grep -q ' signed' /proc/fs/cifs/DebugData; }
owner_writes() { as_owner sh -c 'echo "$1" >"$0" && [ "$(cat "$0")" = "$1" ]' "$1" "$2" && [ "$(stat -c %u "$1")" = 1000 ]; }

m=/mnt/smb
check "smb: mount" mount_at "$m" -t cifs "//$SERVER/$SHARE" -o "vers=3.1.1,port=$SMB_PORT,username=$USER,password=$PASS,mfsymlinks,actimeo=1"
if mountpoint -q "$m"; then
  check "smb: the session signs" is_signed
  tally "smb:" python3 "$(dirname "$0")/fschecks.py" "$m" --no mode_bits,unlinked_name_hidden
  check "smb: unmount" umount "$m"
fi
check "smb: a wrong password is refused" fails mount -t cifs "//$SERVER/$SHARE" /mnt -o "vers=3.1.1,port=$SMB_PORT,username=$USER,password=wrong$PASS"

m=/mnt/nfs
for v in 3 4.2; do
  more=; [ $v != 3 ] || more=",mountport=$NFS_PORT,mountproto=tcp,nolock"
  check "nfs v$v: mount" mount_at "$m" -t nfs "$SERVER:$EXPORT" -o "vers=$v,port=$NFS_PORT,proto=tcp,hard,actimeo=1$more"
  mountpoint -q "$m" || continue
  check "nfs v$v: the owner writes" owner_writes "$m/of-the-owner-$v" "words of $v"
  check "nfs v$v: root makes nothing" fails touch "$m/of-root-$v"
  check "nfs v$v: root gives nothing away" fails chown 0:0 "$m/of-the-owner-$v"
  as_owner chmod 600 "$m/of-the-owner-$v"
  check "nfs v$v: root reads nothing private" fails dd if="$m/of-the-owner-$v" iflag=direct bs=4k count=1 of=/dev/null
  check "nfs v$v: root removes nothing" fails rm -f "$m/of-the-owner-$v"
  check "nfs v$v: the owner removes it" as_owner rm "$m/of-the-owner-$v"
  check "nfs v$v: unmount" umount "$m"
done
finish
