#!/bin/bash
# The same jobs by fio and by `anabranch bench`, in turns, on a folder that the kernel's SMB client has mounted without a cache: a line
# `row JSON` for each job (fio_beside.py, which is in /share with the program). Environment: SERVER SMB_PORT SHARE USER PASS, and
#   REPETITIONS SECS   how often and for how long each job is measured (6, 0.5)
. "$(dirname "$0")/lib.sh"
: "${SMB_PORT:=445}" "${SHARE:=share}" "${USER:=user}" "${PASS:=pass}" "${REPETITIONS:=6}" "${SECS:=0.5}"
m=/mnt/smb
measure() { python3 /share/fio_beside.py guest "$REPETITIONS" "$SECS" "$m" - - - fio /share/anabranch >/tmp/rows; }

check "mount" mount_at "$m" -t cifs "//$SERVER/$SHARE" -o "vers=3.1.1,port=$SMB_PORT,username=$USER,password=$PASS,cache=none"
check "a file" bash -c "head -c 8M /dev/urandom >$m/fio"
check "all jobs by both" measure
sed 's/^/row /' /tmp/rows
check "nothing else is left" bash -c "[ \"\$(ls $m)\" = fio ]"
rm -f "$m/fio"
check "unmount" umount "$m"
finish
