#!/bin/bash
# Kerberos mounts of cifs.ko: client-lab run --netns $LAB_NETNS --share $LAB_STATE guest/cifs-krb5.sh //SERVER/SHARE [OPTIONS]
# with a ticket in the lab's cache (ad-lab kinit alice). The server's name must be one for which it has a key.
. /guest/lib.sh
. /guest/krb5-env.sh
unc=$1 options=vers=3.1.1,cruid=0,nosharesock${2:+,$2}
ticket 0

# with SEC NAME: mounts, writes, reads back what was written, unmounts.
with() {
  check "a ticket mounts with sec=$1" mount_at /mnt -t cifs "$unc" -o "sec=$1,$options" || return
  check "its user writes and reads with sec=$1" written "$1"
  grep -E 'Security type|Cred User' /proc/fs/cifs/DebugData | sed 's/^/  /'
  check "it unmounts with sec=$1" umount /mnt
}
written() { echo "of $1" >/mnt/of-"${1%%,*}" && echo 3 >/proc/sys/vm/drop_caches && grep -q "of $1" /mnt/of-"${1%%,*}"; }
refused() { ! timeout 60 mount -t cifs "$unc" /mnt -o "sec=krb5,$options" 2>/dev/null; }

with krb5
with krb5i,seal
rm /tmp/krb5cc_0
check "no ticket, no mount" refused
finish
