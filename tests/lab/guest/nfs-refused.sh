#!/bin/bash
# A ticket of a user whom the server does not know: client-lab run --netns $LAB_NETNS --share $LAB_STATE guest/nfs-refused.sh SERVER SHARE
# with kdc-lab and a ticket of bob in its cache.
. /guest/lib.sh
. /guest/krb5-env.sh
printf 'bob:x:10002:10002::/tmp:/bin/bash\n' >>/etc/passwd
ticket 10002
gssd
refused() { ! setpriv --reuid 10002 --regid 10002 --clear-groups ls /mnt 2>/dev/null; }
check "the machine mounts" mount_at /mnt -t nfs "$1:/$2" -o vers=4.2,sec=krb5
check "its user is refused" refused
check "it unmounts" umount /mnt
finish
