#!/bin/bash
# Earlier versions through the kernel's clients; ../../interop/snapshots.sh says what is in them. Environment:
#   SERVER SMB_PORT SHARE USER PASS   where and as whom
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
finish
