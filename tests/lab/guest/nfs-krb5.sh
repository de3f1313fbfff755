#!/bin/bash
# Kerberos mounts of nfs.ko: client-lab run --netns $LAB_NETNS --share $LAB_STATE guest/nfs-krb5.sh SERVER SHARE SECRET
# with kdc-lab and a ticket of alice in its cache. The machine's key is client.keytab. SHARE admits all flavors, SECRET is a share
# that must be encrypted.
. /guest/lib.sh
. /guest/krb5-env.sh
server=$1 share=$2 secret=$3
printf 'alice:x:10001:10001::/tmp:/bin/bash\n' >>/etc/passwd
# With Kerberos, the kernel has owners translated by nfsidmap: alice@LAB.TEST is the alice of this machine.
printf '[General]\nDomain = lab.test\n' >/etc/idmapd.conf
echo 'create id_resolver * * /usr/sbin/nfsidmap %k %d' >/etc/request-key.d/id_resolver.conf
ticket 10001
gssd
# Without a port mapper, NFSv3 must be told the ports; locks stay in the client.
v3=vers=3,proto=tcp,port=2049,mountport=2049,mountproto=tcp,nolock
options() { case $1 in 3) echo "$v3" ;; *) echo "vers=$1" ;; esac; }
as_alice() { setpriv --reuid 10001 --regid 10001 --clear-groups "$@"; }
as_bob() { setpriv --reuid 10002 --regid 10002 --clear-groups "$@"; }

# with VERSION SEC: mounts, writes and reads as alice, is refused as bob, who has no ticket, unmounts.
with() {
  local name=of-$1-$2
  check "v$1 sec=$2: it mounts" mount_at /mnt -t nfs "$server:/$share" -o "$(options "$1"),sec=$2" || return
  check "v$1 sec=$2: the kernel uses it" grep -q " /mnt nfs.*vers=$1.*sec=$2," /proc/mounts
  check "v$1 sec=$2: alice writes and reads" written "$name"
  check "v$1 sec=$2: the file is hers" owner_is "/mnt/$name" 10001
  [ "$1" = 3 ] || check "v$1 sec=$2: a list names her, and nobody who is unknown" named_in_list "/mnt/$name"
  check "v$1 sec=$2: 8 MiB come back as they went" moved
  check "v$1 sec=$2: bob has no ticket, and is refused" not as_bob ls /mnt
  check "v$1 sec=$2: it unmounts" umount /mnt
}
not() { ! "$@" >/dev/null 2>&1; }
written() {
  as_alice sh -c "echo of $1 >/mnt/$1" && echo 3 >/proc/sys/vm/drop_caches && as_alice grep -q "of $1" "/mnt/$1"
}
owner_is() { local is; is=$(as_alice stat -c %u "$1"); [ "$is" = "$2" ] || { echo "of $is"; return 1; }; }
# The tools show names as the server sends them.
named_in_list() {
  as_alice nfs4_setfacl -a A::alice@LAB.TEST:R "$1" && as_alice nfs4_getfacl "$1" | grep -F 'A::alice@LAB.TEST:' &&
    not as_alice nfs4_setfacl -a A::nobody-here@LAB.TEST:R "$1"
}
moved() {
  head -c 8M /dev/urandom >/tmp/sent && chmod 644 /tmp/sent && as_alice cp /tmp/sent /mnt/moved &&
    echo 3 >/proc/sys/vm/drop_caches && as_alice cmp /tmp/sent /mnt/moved && as_alice rm /mnt/moved
}
# Whether a share is used with this flavor, if the client asks for none.
negotiated() { mount_at /mnt -t nfs "$server:/$secret" -o "$(options "$1")" && grep " /mnt nfs" /proc/mounts | grep -q 'sec=krb5p,'; }

for version in 3 4.0 4.1 4.2; do
  for sec in krb5 krb5i krb5p; do with "$version" "$sec"; done
done
for version in 3 4.2; do
  check "v$version: a share that must be encrypted leads its clients to krb5p" negotiated "$version"
  check "v$version: alice writes and reads there" written "secret-$version"
  check "v$version: it unmounts" umount /mnt
  for sec in sys krb5i; do
    check "v$version: with sec=$sec it is refused" not timeout 60 mount -t nfs "$server:/$secret" /mnt -o "$(options "$version"),sec=$sec"
    umount /mnt 2>/dev/null
  done
done
check "sec=sys is there next to it" mount_at /mnt -t nfs "$server:/$share" -o vers=4.2,sec=sys
check "and a user is as stated" as_bob ls /mnt
check "it unmounts" umount /mnt
finish
