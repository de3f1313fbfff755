#!/bin/bash
# Private Samba (Debian smbd) for side-by-side runs.   usage: samba.sh start|stop|status|pids|conf
#   MODE=off|sign|encrypt   (off)    PROFILE=bench|conf   (bench)
#   PORT (11445)  STATE ($TMPDIR/anabranch-peers/samba)  BUSER/BPASS (bench/bench-pass)  SHARE_DIR ($STATE/share)
#   CHANNELS=1  extra listen addresses for multichannel: 127.0.0.1 .. 127.0.0.$CHANNELS
#   BIND=0.0.0.0  listen everywhere, not only on these addresses
#   MINPROTO=SMB3  (SMB2_02 for the torture suites)
#   EXTRA="a line for [global]"
#   CEPH=CONF  SHARE_DIR is in the CephFS of this cluster (vfs_ceph), as its user CEPH_USER (admin), and exists
set -eu
MODE=${MODE:-off} PROFILE=${PROFILE:-bench} PORT=${PORT:-11445} STATE=${STATE:-${TMPDIR:-/tmp}/anabranch-peers/samba}
BUSER=${BUSER:-bench} BPASS=${BPASS:-bench-pass} SHARE_DIR=${SHARE_DIR:-$STATE/share} CHANNELS=${CHANNELS:-1} EXTRA=${EXTRA:-}
MINPROTO=${MINPROTO:-SMB3} CEPH=${CEPH:-} CEPH_USER=${CEPH_USER:-admin}
CONF=$STATE/smb.conf

conf() {
    local sig enc addrs="" i valid="valid users = $BUSER"
    case $MODE in
        off)     sig=default   enc=off ;;       # signing only if the client asks
        sign)    sig=mandatory enc=off ;;
        encrypt) sig=default   enc=desired ;;   # "required" makes 4.17 refuse the binding of further channels
        *) echo "MODE=$MODE?" >&2; exit 2 ;;
    esac
    # the torture suites ask for encryption themselves, and log in anonymously on open handles
    if [ "$PROFILE" = conf ]; then valid="guest ok = no"; [ "$MODE" = off ] && enc=default; fi
    [ -n "${BIND:-}" ] || for i in $(seq 1 "$CHANNELS"); do addrs+=" \"127.0.0.$i;speed=10000000000,capability=RSS\""; done
    cat <<E
[global]
    netbios name = PEER
    workgroup = WORKGROUP
    server role = standalone server
    smb ports = $PORT
    interfaces =$addrs
    bind interfaces only = $([ -n "${BIND:-}" ] && echo no || echo yes)
    disable netbios = yes
    disable spoolss = yes
    load printers = no
    printcap name = /dev/null
    server min protocol = $MINPROTO
    server max protocol = SMB3_11
    server multi channel support = yes
    server signing = $sig
    server smb encrypt = $enc
    aio read size = 1
    aio write size = 1
    smb2 max credits = 8192
    private dir = $STATE/private
    lock directory = $STATE/lock
    state directory = $STATE/state
    cache directory = $STATE/cache
    pid directory = $STATE/run
    ncalrpc dir = $STATE/ncalrpc
    passdb backend = tdbsam:$STATE/private/passdb.tdb
    log file = $STATE/log/smbd.%m
    log level = ${LOGLEVEL:-1}
    max log size = 20000
    map to guest = never
    restrict anonymous = 0
    $EXTRA
E
    if [ "$PROFILE" = conf ]; then cat <<E
    vfs objects = acl_xattr streams_xattr
    ea support = yes
    store dos attributes = yes
    map archive = no
    map system = no
    map hidden = no
    map readonly = no
    inherit acls = no
    create mask = 0777
    directory mask = 0777
    kernel change notify = no
    kernel oplocks = no
    kernel share modes = no
    posix locking = no
    durable handles = yes
    acl_xattr:ignore system acls = yes
    dos filemode = yes
    acl allow execute always = no
    strict rename = no
    smbd:FSCTL_SMBTORTURE = yes
    rpc_server:srvsvc = embedded
E
    else cat <<E
    store dos attributes = yes
    strict locking = auto
    kernel oplocks = no
    kernel share modes = no
    posix locking = no
    durable handles = yes
    rpc_server:srvsvc = embedded
E
    fi
    cat <<E
[bench]
    path = $SHARE_DIR
    read only = no
    $valid
E
    [ -z "$CEPH" ] || printf '    vfs objects = ceph\n    ceph:config_file = %s\n    ceph:user_id = %s\n' "$CEPH" "$CEPH_USER"
    [ "$PROFILE" = conf ] && cat <<E
[admin]
    path = $SHARE_DIR
    read only = no
    admin users = $BUSER
[hideunread]
    path = $SHARE_DIR
    read only = no
    hide unreadable = yes
[bench2]
    path = $STATE/share2
    read only = no
[ro]
    path = $SHARE_DIR
    read only = yes
[nostreams]
    path = $STATE/share3
    read only = no
    vfs objects = acl_xattr
[sealed]
    path = $SHARE_DIR
    read only = no
    smb encrypt = required
[dosasync]
    path = $STATE/share3
    read only = no
    smbd async dosmode = yes
[shadow]
    path = $STATE/shadow
    read only = no
    vfs objects = acl_xattr shadow_copy2
    shadow:mountpoint = $STATE/shadow
E
    return 0
}
start() {
    if alive; then echo "already running: $(pids)"; return; fi
    mkdir -p "$STATE"/{private,lock,state,cache,run,ncalrpc,log,share2,share3,shadow}
    id "$BUSER" >/dev/null 2>&1 || useradd -M -s /usr/sbin/nologin "$BUSER"
    [ -n "$CEPH" ] || { mkdir -p "$SHARE_DIR"; chown "$BUSER": "$SHARE_DIR"; }
    chown "$BUSER": "$STATE"/share2 "$STATE"/share3 "$STATE"/shadow
    conf >"$CONF"
    printf '%s\n%s\n' "$BPASS" "$BPASS" | smbpasswd -c "$CONF" -L -s -a "$BUSER" >/dev/null 2>&1
    smbd -s "$CONF" -D
    for i in $(seq 100); do (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null && { echo "smbd $(cat "$STATE/run/smbd.pid") on 127.0.0.1:$PORT MODE=$MODE PROFILE=$PROFILE"; return; }; sleep 0.1; done
    echo "smbd does not answer; see $STATE/log" >&2; exit 1
}
main_pid() { cat "$STATE/run/smbd.pid" 2>/dev/null || true; }
alive() { local p; p=$(main_pid); [ -n "$p" ] && [ "$(cat "/proc/$p/comm" 2>/dev/null)" = smbd ]; }
pids() { local p; p=$(main_pid); [ -n "$p" ] && ps -o pid= --pid "$p" --ppid "$p" | tr -s ' \n' ' '; }
stop() {
    alive || { echo "not running"; return; }
    local p all; p=$(main_pid); all=$(pids)
    kill "$p"; for i in $(seq 50); do kill -0 "$p" 2>/dev/null || break; sleep 0.1; done
    for q in $all; do [ "$(cat "/proc/$q/comm" 2>/dev/null)" = "" ] || { case $(cat "/proc/$q/comm") in smbd*|lpqd|samba*) kill -9 "$q" 2>/dev/null || true;; esac; }; done
    rm -f "$STATE/run/smbd.pid"; echo stopped
}
case ${1:-} in
    start) start ;; stop) stop ;; restart) stop; start ;; conf) conf ;;
    pids) pids ;; pid) main_pid ;; status) alive && echo "running $(pids)" || echo "not running" ;;
    *) sed -n 2,9p "$0"; exit 2 ;;
esac
