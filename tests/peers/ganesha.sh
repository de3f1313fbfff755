#!/bin/bash
# Private NFS-Ganesha (Debian's, VFS) with Kerberos, NFSv3 and 4.1, for side-by-side runs.   usage: ganesha.sh start|stop|pid
#   ADDRESS (127.0.0.1)  PORT (12049)  MOUNT_PORT (12050)  STATE ($TMPDIR/anabranch-peers/ganesha)  SHARE_DIR ($STATE/share)
#   KEYTAB (none)  the server's keys: krb5, krb5i and krb5p are served besides sys
#   PRINCIPAL (nfs@files.lab.test)  the name of its keys, as GSS writes it
#   KUSER, KUID, KGID (alice, 1000, 1000)  whom a ticket of KUSER stands for
#   CEPH=CONF  SHARE_DIR is in the CephFS of this cluster (nfs-ganesha-ceph), as its user CEPH_USER (admin), and exists
# NFSv3 mounts SHARE_DIR, NFSv4 mounts /data. Root is not squashed.
set -euo pipefail
ADDRESS=${ADDRESS:-127.0.0.1} PORT=${PORT:-12049} MOUNT_PORT=${MOUNT_PORT:-12050}
STATE=${STATE:-${TMPDIR:-/tmp}/anabranch-peers/ganesha} SHARE_DIR=${SHARE_DIR:-$STATE/share}
KEYTAB=${KEYTAB:-} PRINCIPAL=${PRINCIPAL:-nfs@files.lab.test} KUSER=${KUSER:-alice} KUID=${KUID:-1000} KGID=${KGID:-1000}
CEPH=${CEPH:-} CEPH_USER=${CEPH_USER:-admin}
LOG=$STATE/said

conf() {
    local plugins fsal=vfs store='Name = VFS;'
    [ -z "$CEPH" ] || { fsal=ceph store="Name = CEPH; User_Id = \"$CEPH_USER\";"; printf 'CEPH { Ceph_Conf = "%s"; }\n' "$CEPH"; }
    plugins=$(dirname "$(find /usr/lib -path "*/ganesha/libfsal$fsal.so" | head -n 1)")
    [ "$plugins" != . ] || { echo "libfsal$fsal.so is missing: it is in the package nfs-ganesha-$fsal" >&2; exit 1; }
    cat <<C
NFS_CORE_PARAM {
    Bind_addr = $ADDRESS;
    NFS_Port = $PORT; MNT_Port = $MOUNT_PORT;
    Protocols = 3, 4;
    Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false;
    Plugins_Dir = "$plugins";
}
NFSV4 {
    Minor_Versions = 0, 1, 2;
    Graceless = true; Lease_Lifetime = 60;
    Delegations = false;
    RecoveryBackend = fs; RecoveryRoot = "$STATE/recovery";
    Only_Numeric_Owners = true;
    IdmapConf = "$STATE/idmapd.conf";
}
NFS_KRB5 {
    Active_krb5 = $([ -n "$KEYTAB" ] && echo true || echo false);
    PrincipalName = "$PRINCIPAL"; KeytabPath = "$KEYTAB"; CCacheDir = "$STATE/ccache";
}
EXPORT {
    Export_Id = 1; Path = "$SHARE_DIR"; Pseudo = "/data";
    Access_Type = RW; Squash = No_Root_Squash; Transports = TCP;
    SecType = sys$([ -n "$KEYTAB" ] && echo ", krb5, krb5i, krb5p");
    Protocols = 3, 4; PrivilegedPort = false; Disable_ACL = true;
    MaxRead = 1048576; MaxWrite = 1048576; PrefRead = 1048576; PrefWrite = 1048576;
    FSAL { $store }
}
LOG { Default_Log_Level = EVENT; }
C
}

# Ganesha looks the user of a ticket up by name. It sees a copy of the machine's users with that one: a user without a number
# would be looked up again with each call.
idmap() {
    printf '[General]\nDomain = lab.test\nLocal-Realms = LAB.TEST\n[Mapping]\nNobody-User = nobody\nNobody-Group = nogroup\n'
    printf '[Translation]\nMethod = nsswitch\n'
}
users() { grep -v "^$KUSER:" /etc/passwd; echo "$KUSER:x:$KUID:$KGID::/nonexistent:/usr/sbin/nologin"; }

start() {
    mkdir -p "$STATE"/{recovery,ccache}
    [ -n "$CEPH" ] || mkdir -p "$SHARE_DIR"
    conf >"$STATE/ganesha.conf"; idmap >"$STATE/idmapd.conf"; users >"$STATE/passwd"
    # Ganesha 4.3 ends if no port mapper takes its registration.
    gcc -shared -fPIC -x c - -o "$STATE/no-port-mapper.so" <<<'_Bool svc_reg(void) { return 1; } _Bool rpcb_unset(void) { return 1; }'
    # shellcheck disable=SC2016
    STATE=$STATE LOG=$LOG setsid unshare --mount --propagation private bash -c '
        mount --bind "$STATE/passwd" /etc/passwd
        echo $$ >"$STATE/pid"
        LD_PRELOAD=$STATE/no-port-mapper.so exec ganesha.nfsd -F -f "$STATE/ganesha.conf" -L STDERR -p "$STATE/own-pid"
    ' </dev/null >"$LOG" 2>&1 &
    for _ in $(seq 300); do
        ! grep -q 'NFS SERVER INITIALIZED' "$LOG" || return 0
        [ ! -s "$STATE/pid" ] || alive || break
        sleep 0.1
    done
    echo "ganesha.nfsd does not answer:" >&2; tail -n 5 "$LOG" >&2; stop; exit 1
}

main_pid() { cat "$STATE/pid" 2>/dev/null || true; }
# Before it is ganesha.nfsd, the process is the shell that starts it.
alive() { grep -qzE 'ganesha|anabranch-peers|no-port-mapper' "/proc/$(main_pid)/cmdline" 2>/dev/null; }
stop() {
    alive || return 0
    local p; p=$(main_pid)
    kill "$p"; for _ in $(seq 50); do [ -e "/proc/$p" ] || break; sleep 0.1; done
    ! alive || kill -KILL "$p"
    for _ in $(seq 50); do [ -e "/proc/$p" ] || break; sleep 0.1; done
    rm -f "$STATE/pid"
}

case ${1:-} in
    start) start ;; stop) stop ;; pid) main_pid ;;
    *) sed -n 2,8p "$0"; exit 2 ;;
esac
