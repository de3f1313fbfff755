# Kerberos in the guest: source it first. Expects `client-lab run --netns $LAB_NETNS --share $LAB_STATE`
# (kdc-lab or ad-lab). The root folder is read-only, so /etc becomes a copy with the lab's files in it.
cp -a /etc /tmp/etc && mount --bind /tmp/etc /etc
cp /share/krb5.conf /etc/krb5.conf
cat /share/etc/hosts >/etc/hosts
[ ! -e /share/etc/resolv.conf ] || cp /share/etc/resolv.conf /etc/resolv.conf
echo client >/proc/sys/kernel/hostname
# cifs: the kernel asks request-key for a key of type cifs.spnego, cifs.upcall makes it from a ticket
mkdir -p /etc/request-key.d
cat >/etc/request-key.d/cifs.spnego.conf <<'C'
create  cifs.spnego    * * /usr/sbin/cifs.upcall %k
C
[ -e /sbin/request-key ] || ln -s /usr/sbin/request-key /sbin/request-key
# tickets: the cache that the lab holds, under the name that cifs.upcall and rpc.gssd look for
ticket() { cp "/share/${2:-ccache}" "/tmp/krb5cc_$1" && chmod 600 "/tmp/krb5cc_$1" && chown "$1" "/tmp/krb5cc_$1"; }
# nfs: rpc.gssd answers the kernel through rpc_pipefs; the machine's own key is in a keytab
gssd() {
  mkdir -p /run/rpc_pipefs /var/lib/nfs
  mount -t rpc_pipefs rpc_pipefs /run/rpc_pipefs 2>/dev/null || mount -t rpc_pipefs sunrpc /run/rpc_pipefs
  modprobe auth_rpcgss; modprobe rpcsec_gss_krb5
  [ ! -e /share/client.keytab ] || cp /share/client.keytab /etc/krb5.keytab
  rpc.gssd -p /run/rpc_pipefs "$@"
}
