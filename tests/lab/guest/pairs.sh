#!/bin/bash
# What one protocol's client holds, every other one's must honour: locks, share modes and what clients cache, SMB and NFSv3 and
# NFSv4 and NLM in every pair and direction, through the kernel's own clients (pairs.py has the table). Wants two interfaces: the second
# one goes to a network of its own, so that a second NFSv4 client of the kernel has it. Environment:
#   SERVER SERVERS SMB_PORT SHARE USER PASS   the share over SMB
#   NFS_PORT MOUNT_PORT EXPORT        the same over NFS
#   OPENS_PORT    where ../smb-opens listens on SERVER
#   ROWS          a regular expression: rows whose line it matches (all)
. "$(dirname "$0")/lib.sh"
: "${SMB_PORT:=445}" "${SHARE:=share}" "${USER:=user}" "${PASS:=pass}" "${NFS_PORT:=2049}" "${EXPORT:=/export}" "${MOUNT_PORT:=$NFS_PORT}"
umask 0
second=${SERVERS##* } address=$(ip -4 -o addr show vec1 | awk '{print $4}')

# A client of its own has a network and a name of its own.
ip netns add second && ip link set vec1 netns second && ip -n second addr add "$address" dev vec1 && ip -n second link set vec1 up
mount_second() { nsenter --net=/run/netns/second unshare --uts bash -c "echo second >/proc/sys/kernel/hostname; mount -t nfs '$second:$EXPORT' /mnt/other -o 'vers=4.2,$nfs'"; }

nfs="port=$NFS_PORT,proto=tcp,hard"
check "mount over SMB" mount_at /mnt/smb -t cifs "//$SERVER/$SHARE" -o "vers=3.1.1,port=$SMB_PORT,username=$USER,password=$PASS"
check "mount over NFSv3" mount_at /mnt/nfs3 -t nfs "$SERVER:$EXPORT" -o "vers=3,mountport=$MOUNT_PORT,mountproto=tcp,nolock,noac,lookupcache=none,$nfs"
check "mount over NFSv4.2" mount_at /mnt/nfs4 -t nfs "$SERVER:$EXPORT" -o "vers=4.2,$nfs"
check "mount over NFSv4.0" mount_at /mnt/nfs40 -t nfs "$SERVER:$EXPORT" -o "vers=4.0,$nfs"
mkdir -p /mnt/other; check "mount over NFSv4.2, as a second client" mount_second
start_finders
check "mount over NFSv3 with locks" mount_at /mnt/nlm -t nfs "$SERVER:$EXPORT" -o vers=3,noac,lookupcache=none,nosharecache,hard
for m in smb nfs3 nlm nfs4 nfs40 other; do mountpoint -q /mnt/$m || { finish; exit 1; }; done
folder=pairs.$$
mkdir /mnt/nfs3/$folder && chmod 777 /mnt/nfs3/$folder
TALLY_S=550 tally "pairs:" python3 "$(dirname "$0")/pairs.py" $folder
rm -rf "/mnt/nfs3/$folder"
check "unmount all" umount /mnt/smb /mnt/nfs3 /mnt/nlm /mnt/nfs4 /mnt/nfs40 /mnt/other
finish
