#!/bin/bash
# RPC-with-TLS mounts of the kernel's NFS client, whose handshakes tlshd does. In the guest of guest-next:
#   client-lab run --netns NAME --share DIR guest/nfs-tls.sh HOST MODE CHECK...
# DIR has ca.pem and etc-hosts; client.pem and client.key, if the client is to have a certificate. MODE is none, tls or mtls.
# CHECK: mount4 mount3 (with a file written and read), refused4 (the mount fails), big (32 MiB written and read)
. /guest/lib.sh
host=$1 mode=$2; shift 2
cp -a /etc /tmp/etc && mount --bind /tmp/etc /etc
cat /share/etc-hosts >/etc/hosts
for f in ca.pem client.pem client.key; do [ ! -e "/share/$f" ] || { cp "/share/$f" /tmp/; chown 0:0 "/tmp/$f"; chmod 600 "/tmp/$f"; }; done
{
  printf '[debug]\nloglevel=1\n[authenticate]\n[authenticate.client]\nx509.truststore=/tmp/ca.pem\n'
  [ ! -e /tmp/client.key ] || printf 'x509.certificate=/tmp/client.pem\nx509.private_key=/tmp/client.key\n'
} >/tmp/tlshd.conf
modprobe tls; modprobe sunrpc
tlshd -s -c /tmp/tlshd.conf >/tmp/tlshd.log 2>&1 &
for _ in $(seq 50); do grep -q . /tmp/tlshd.log && break; sleep 0.1; done

options() { echo "vers=$1,sec=sys,xprtsec=$mode,soft,timeo=100,retrans=1$2"; }
mount4() { mount_at /mnt -t nfs4 -o "$(options 4.2 '')" "$host:/data"; }
mount3() { mount_at /mnt -t nfs -o "$(options 3 ,proto=tcp,port=2049,mountport=2049,mountproto=tcp,nolock)" "$host:/data"; }
refused() { ! mount_at /mnt -t nfs4 -o "$(options "$1" '')" "$host:/data"; }
is_encrypted() { [ "$mode" = none ] && is_there || grep ' /mnt ' /proc/mounts | grep -q "xprtsec=$mode"; }
is_there() { grep -q " /mnt nfs" /proc/mounts; }
works() { is_there && echo "$mode $1" >/mnt/f && [ "$(cat /mnt/f)" = "$mode $1" ] && rm /mnt/f; }
big() {
  is_there || return 1
  dd if=/dev/urandom of=/tmp/big bs=1M count=32 2>/dev/null && cp /tmp/big /mnt/big && sync || return 1
  echo 3 >/proc/sys/vm/drop_caches
  cmp /tmp/big /mnt/big && rm /mnt/big
}
for wanted; do
  case $wanted in
    mount3 | mount4)
      check "$mode: $wanted" "$wanted"
      check "$mode: $wanted: /proc/mounts says so" is_encrypted
      check "$mode: $wanted: a file is written and read" works "$wanted"
      ;;
    refused4) check "$mode: the mount is refused" refused 4.2 ;;
    big) check "$mode: 32 MiB are read as they were written" big ;;
    *) fail "$wanted" "no such check" ;;
  esac
done
! is_there || umount /mnt
grep -hE '^Tls[TR]x(Sw|Device)' /proc/net/tls_stat | tr '\n' ' '; echo
[ "$failed" = 0 ] || tail -n 5 /tmp/tlshd.log
finish
