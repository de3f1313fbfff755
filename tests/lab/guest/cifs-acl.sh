#!/bin/bash
# Access control lists through the kernel's clients: raw (system.cifs_acl, system.smb3_acl), as modes (mount option
# cifsacl), and what they mean to an NFS mount of the same share. Environment: as both.sh.
. "$(dirname "$0")/lib.sh"
: "${SMB_PORT:=445}" "${NFS_PORT:=2049}" "${MOUNT_PORT:=$NFS_PORT}" "${SHARE:=share}" "${EXPORT:=/$SHARE}" "${USER:=user}" "${PASS:=pass}"
: "${OWNER:=1000}"
opts="vers=3.1.1,port=$SMB_PORT,username=$USER,password=$PASS,actimeo=1,uid=$OWNER,gid=$OWNER"
s=/mnt/smb n=/mnt/nfs

raw() { getfattr --absolute-names --only-values -n "system.$1" "$2" | od -An -v -tx1 | tr -d ' \n'; }
looks_like_a_descriptor() { local r; r=$(raw "$1" "$2"); echo "$r"; [[ $r == 0100* && ${#r} -gt 80 ]]; }
# copy_list FROM TO: the list of one file for another, byte by byte.
copy_list() {
  setfattr -n system.cifs_acl -v "0x$(raw cifs_acl "$1")" "$2" && [ "$(raw cifs_acl "$1")" = "$(raw cifs_acl "$2")" ]
}
mode_is() { local m; m=$(stat -c %a "$2"); echo "$m"; [ "$m" = "$1" ]; }
as() { setpriv --reuid "$1" --regid "$1" --clear-groups "${@:2}"; }
# A descriptor in hexadecimal with nothing but a DACL: uid 1234 (S-1-22-1-1234) may not read, everybody (S-1-1-0) may do all.
list=0x0100048000000000000000000000000014000000
list+=0200340002000000
list+=0100180001000000010200000000001601000000d2040000
list+=00001400ff011f00010100000000000100000000

check "mount smb" mount_at "$s" -t cifs "//$SERVER/$SHARE" -o "$opts"
check "mount nfs" mount_at "$n" -t nfs -o "vers=3,proto=tcp,port=$NFS_PORT,mountport=$MOUNT_PORT,mountproto=tcp,nolock,noac" "$SERVER:$EXPORT"
if mountpoint -q "$s" && mountpoint -q "$n"; then
  echo data >"$s/one"; echo data >"$s/two"
  check "system.cifs_acl is a descriptor" looks_like_a_descriptor cifs_acl "$s/one"
  check "system.smb3_acl is one, too" looks_like_a_descriptor smb3_acl "$s/one"
  check "set a list" setfattr -n system.cifs_acl -v "$list" "$s/one"
  check "copied to another file" copy_list "$s/one" "$s/two"
  check "the mode follows" mode_is 777 "$n/one"
  check "somebody reads over NFS" as 1235 cat "$n/one"
  denied() { ! as 1234 cat "$n/one"; }
  check "who is denied does not" denied
  check "chmod over NFS takes it back" as "$OWNER" chmod 644 "$n/one"
  check "who was denied reads" as 1234 cat "$n/one"
  check "unmount" umount "$s"
fi
check "mount cifsacl" mount_at "$s" -t cifs "//$SERVER/$SHARE" -o "$opts,cifsacl"
if mountpoint -q "$s"; then
  check "lists show as modes" mode_is 644 "$s/one"
  check "chmod with cifsacl" chmod 640 "$s/one"
  check "shows over NFS" mode_is 640 "$n/one"
  rm -f "$s/one" "$s/two"
  check "unmount cifsacl" umount "$s"
fi
mountpoint -q "$n" && check "unmount nfs" umount "$n"
finish
