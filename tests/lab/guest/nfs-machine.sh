#!/bin/bash
# A user's ticket ends while a file is open: client-lab run --netns $LAB_NETNS --share $LAB_STATE guest/nfs-machine.sh SERVER SHARE VERSION
# with kdc-lab and a ticket of alice in its cache that ends soon. The machine's key is client.keytab.
. /guest/lib.sh
. /guest/krb5-env.sh
server=$1 share=$2 version=$3
printf 'alice:x:10001:10001::/tmp:/bin/bash\n' >>/etc/passwd
ticket 10001
gssd
as_alice() { setpriv --reuid 10001 --regid 10001 --clear-groups "$@"; }

# How many operations of a kind were sent, and how many of them failed (/proc/self/mountstats: the first and the last figure).
sent() { awk -v "kind=$1:" '$1 == kind { print $2, $NF }' /proc/self/mountstats; }
# until_ SECONDS COMMAND...: waits until it succeeds.
until_() { local left=$1; shift; while ! "$@"; do [ "$((left -= 1))" -gt 0 ] || return 1; sleep 1; done; }
is_held() { [ -s /mnt/held ]; }
has_no_ticket() { ! as_alice touch /mnt/late 2>/dev/null; }
is_over() { ! kill -0 "$holder" 2>/dev/null; }
is_closed() { [ "$(sent CLOSE)" = "$((closed_before + 1)) $failed_before" ] || { sent CLOSE; return 1; }; }

check "the machine mounts" mount_at /mnt -t nfs "$server:/$share" -o "vers=$version,sec=krb5i"
as_alice python3 -c '
import fcntl, os, time
held = open("/mnt/held", "w")
fcntl.lockf(held, fcntl.LOCK_EX)
held.write("of alice")
held.flush()
os.fsync(held.fileno())
while not os.path.exists("/tmp/close"):
    time.sleep(0.2)
' &
holder=$!
check "alice opens, locks and writes a file" until_ 20 is_held
check "her ticket ends" until_ 180 has_no_ticket
read -r closed_before failed_before <<<"$(sent CLOSE)"
touch /tmp/close
check "her program ends" until_ 20 is_over
check "her file is closed by the machine" until_ 20 is_closed
check "it unmounts" umount /mnt
finish
