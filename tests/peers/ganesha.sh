#!/bin/bash
# Private nfs-ganesha (VFS FSAL), NFSv3 + v4.0/4.1.   usage: ganesha.sh start|stop|status|pid|conf
#   PORT (12049)  MNT_PORT (12050)  NLM_PORT (12051)  STATE ($TMPDIR/anabranch-peers/ganesha)  SHARE_DIR ($STATE/export)
#   BIND (127.0.0.1)  EXPORT_EXTRA="a line for EXPORT"
#   Export: path $SHARE_DIR, pseudo /bench; no root squash. NLM and rquota off, no rpcbind needed.
set -eu
PORT=${PORT:-12049} MNT_PORT=${MNT_PORT:-12050} NLM_PORT=${NLM_PORT:-12051}
STATE=${STATE:-${TMPDIR:-/tmp}/anabranch-peers/ganesha} SHARE_DIR=${SHARE_DIR:-$STATE/export}
CONF=$STATE/ganesha.conf PIDF=$STATE/ganesha.pid

conf() { cat <<E
NFS_CORE_PARAM {
    $([ "${BIND:-}" = 0.0.0.0 ] || echo "Bind_addr = ${BIND:-127.0.0.1};")
    NFS_Port = $PORT; MNT_Port = $MNT_PORT; NLM_Port = $NLM_PORT;
    Protocols = 3, 4;
    Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false;
    NFS_Program = 100003; MNT_Program = 100005;
    Plugins_Dir = "/usr/lib/x86_64-linux-gnu/ganesha";
}
NFSV4 {
    Minor_Versions = 0, 1, 2;
    Grace_Period = ${GRACE:-5}; Lease_Lifetime = ${LEASE:-60};
    Delegations = ${DELEG:-false};
    RecoveryBackend = fs; RecoveryRoot = "$STATE/recovery";
    Graceless = ${GRACELESS:-true};
    Only_Numeric_Owners = true;
}
NFS_KRB5 { Active_krb5 = false; }
EXPORT {
    Export_Id = 1; Path = "$SHARE_DIR"; Pseudo = "/bench";
    Access_Type = RW; Squash = No_Root_Squash; SecType = sys; Transports = TCP;
    Protocols = 3, 4; PrivilegedPort = false; Disable_ACL = ${DISABLE_ACL:-true};
    MaxRead = 1048576; MaxWrite = 1048576; PrefRead = 1048576; PrefWrite = 1048576;
    ${EXPORT_EXTRA:-}
    FSAL { Name = VFS; }
}
LOG { Default_Log_Level = ${LOGLEVEL:-EVENT}; }
E
}
alive() { [ -s "$PIDF" ] && [ "$(cat "/proc/$(cat "$PIDF")/comm" 2>/dev/null)" = ganesha.nfsd ]; }
start() {
    if alive; then echo "already running $(cat "$PIDF")"; return; fi
    mkdir -p "$SHARE_DIR" "$STATE/recovery"; chmod 777 "$SHARE_DIR"
    conf >"$CONF"
    ulimit -n "$(ulimit -Hn)"
    # Ganesha 4.3 ends if it cannot register with rpcbind: answer those two calls for it.
    [ -e "$STATE/noreg.so" ] || echo '_Bool svc_reg(void){return 1;} _Bool rpcb_unset(void){return 1;}' | gcc -shared -fPIC -x c - -o "$STATE/noreg.so"
    LD_PRELOAD=$STATE/noreg.so ganesha.nfsd -f "$CONF" -L "$STATE/ganesha.log" -p "$PIDF"
    for i in $(seq 100); do (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null && { echo "ganesha $(cat "$PIDF") on 127.0.0.1:$PORT, mountd $MNT_PORT"; return; }; sleep 0.1; done
    echo "ganesha does not answer; see $STATE/ganesha.log" >&2; exit 1
}
stop() {
    alive || { echo "not running"; return; }
    local p; p=$(cat "$PIDF"); kill "$p"
    for i in $(seq 100); do kill -0 "$p" 2>/dev/null || break; sleep 0.1; done
    kill -9 "$p" 2>/dev/null || true; rm -f "$PIDF"; echo stopped
}
case ${1:-} in
    start) start ;; stop) stop ;; restart) stop; start ;; conf) conf ;;
    pid) cat "$PIDF" ;; status) alive && echo "running $(cat "$PIDF")" || echo "not running" ;;
    *) sed -n 2,6p "$0"; exit 2 ;;
esac
