#!/bin/bash
# Earlier versions through the kernel's clients; ../../interop/snapshots.sh says what is in them. Environment:
#   SERVER SMB_PORT NFS_PORT SHARE EXPORT USER PASS   where and as whom
#   TIME      of the first snapshot, as a FILETIME
. "$(dirname "$0")/lib.sh"
: "${SMB_PORT:=445}" "${SHARE:=share}" "${USER:=user}" "${PASS:=pass}"
opts="vers=3.1.1,port=$SMB_PORT,username=$USER,password=$PASS"
is() { local got; got=$(cat "$1") && echo "$got" && [ "$got" = "$2" ]; }
refused() { local out; if out=$("$@" 2>&1); then echo "not refused"; return 1; fi; echo "$out"; }

check "smb: mount of now" mount_at /mnt/now -t cifs "//$SERVER/$SHARE" -o "$opts"
check "smb: mount at a time" mount_at /mnt/then -t cifs "//$SERVER/$SHARE" -o "$opts,snapshot=$TIME"
check "smb: both are there, and differ" bash -c 'mountpoint -q /mnt/now && mountpoint -q /mnt/then'
check "smb: the file of now" is /mnt/now/d/f last
check "smb: the file of then" is /mnt/then/d/f then
check "smb: a file that is removed" is "/mnt/then/d/name with blanks" 'a b'
listed() { local got; got=$(ls /mnt/then/d | tr '\n' '|'); echo "$got"; [ "$got" = 'e|empty|f|link|name with blanks|' ]; }
check "smb: the names of then" listed
check "smb: no file made since" refused cat /mnt/then/d/g
check "smb: no writing" refused sh -c 'echo x >/mnt/then/d/f'
check "smb: no new file" refused touch /mnt/then/d/new
check "smb: no removal" refused rm -f /mnt/then/d/f
check "smb: still there" is /mnt/then/d/f then
check "smb: no such time" refused mount -t cifs "//$SERVER/$SHARE" /mnt -o "$opts,snapshot=$((TIME - 10000000))"
check "smb: unmount" umount /mnt/then /mnt/now

: "${NFS_PORT:=2049}" "${EXPORT:=/share}"
for version in 3 4.0 4.1 4.2; do
  m=/mnt/nfs$version
  check "nfs v$version: mount" mount_at $m -t nfs "$SERVER:$EXPORT" -o "vers=$version,port=$NFS_PORT,proto=tcp,hard,timeo=100$([ $version != 3 ] || echo ",mountport=$NFS_PORT,nolock")"
  mountpoint -q $m || continue
  check "nfs v$version: the file of now" is $m/d/f last
  check "nfs v$version: the file of then" is $m/.snapshot/first/d/f then
  check "nfs v$version: by its directory" is $m/d/.snapshot/first/f then
  check "nfs v$version: the second" is $m/d/.snapshot/second/f 'now, and longer'
  check "nfs v$version: a file that is removed" is "$m/d/.snapshot/first/name with blanks" 'a b'
  versions() { local got; got=$(ls $m/d/.snapshot | tr '\n' '|'); echo "$got"; [ "$got" = 'first|second|' ]; }
  check "nfs v$version: the names of both" versions
  none() { [ -z "$(ls -A $m/d/e2/.snapshot)" ]; }
  check "nfs v$version: of a directory that has none" none
  own() { local now then; now=$(stat -c %d:%i $m/d/f) then=$(stat -c %d:%i $m/d/.snapshot/first/f); echo "$now $then"; [ "${now%:*}" != "${then%:*}" ] && [ "${now#*:}" = "${then#*:}" ]; }
  check "nfs v$version: a file system of its own" own
  listed() { local got; got=$(ls $m/.snapshot/first/d | tr '\n' '|'); echo "$got"; [ "$got" = 'e|empty|f|link|name with blanks|' ]; }
  check "nfs v$version: the names of then" listed
  shown() { ls -a $m | grep -qx .snapshot && ! ls -a $m/d | grep -qx .snapshot; }
  check "nfs v$version: shown in the root alone" shown
  walks() { ! find $m/d | grep -q snapshot && ! tar -C $m -cf - d | tar -tf - | grep -q snapshot; }
  check "nfs v$version: find and tar do not fall into it" walks
  stays() { ! find $m -xdev | grep -q first/; }
  check "nfs v$version: find -xdev stays outside of it" stays
  check "nfs v$version: no writing" refused sh -c "echo x >$m/d/.snapshot/first/f"
  check "nfs v$version: no new file" refused touch $m/d/.snapshot/first/new
  check "nfs v$version: no removal" refused rm -f $m/d/.snapshot/first/f
  check "nfs v$version: no snapshot by mkdir" refused mkdir $m/d/.snapshot/third
  check "nfs v$version: the name is taken" refused mkdir $m/d/e2/.snapshot
  copied() { cp $m/d/.snapshot/first/f $m/d/back.$version && is $m/d/back.$version then && rm $m/d/back.$version; }
  check "nfs v$version: copied back" copied
  umount -l $m/.snapshot/* $m/d/.snapshot/* 2>/dev/null
  check "nfs v$version: unmount" umount -l $m
done
finish
