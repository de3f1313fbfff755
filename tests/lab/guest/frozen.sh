#!/bin/bash
# The disk of one share stalls for some seconds while programs work on another share of the same server: none of them sees an
# error, and what they wrote is there. The host freezes the disk when this script prints `freeze me SECONDS`, and thaws it
# by itself. The share that is worked on must be continuously available: without persistent handles the kernel's SMB client has fsync fail
# with EBADF once a connection is lost (docs/measured/linux-client.md). Environment: as in cifs-smoke.sh and nfs-common.sh, and
#   FROZEN    the share on that disk (frozen)
#   SECONDS_FROZEN   for how long (4)
. "$(dirname "$0")/lib.sh"
: "${SMB_PORT:=445}" "${NFS_PORT:=2049}" "${SHARE:=share}" "${EXPORT:=/export}" "${USER:=user}" "${PASS:=pass}"
: "${FROZEN:=frozen}" "${SECONDS_FROZEN:=4}"
smb="vers=3.1.1,port=$SMB_PORT,username=$USER,password=$PASS,hard"
nfs="vers=4.1,port=$NFS_PORT,proto=tcp,hard"
for share in "$SHARE" "$FROZEN"; do
  # Each mount over SMB has a connection of its own; those over NFS have one between them.
  more=; [ "$share" = "$FROZEN" ] || more=,persistenthandles
  check "smb: mount $share" mount_at "/mnt/smb-$share" -t cifs "//$SERVER/$share" -o "$smb,nosharesock$more"
  check "nfs: mount $share" mount_at "/mnt/nfs-$share" -t nfs "$SERVER:/$share" -o "$nfs,nosharecache"
done
[ "$failed" = 0 ] || { finish; exit 1; }
for kind in smb nfs; do mkdir -p "/mnt/nfs-$SHARE/$kind" && chmod 777 "/mnt/nfs-$SHARE/$kind"; done

# Whoever writes on the disk that stalls waits, and goes on.
cat >/tmp/patient <<'END'
i=0
while [ ! -e /tmp/over ]; do i=$((i + 1)); echo "$i" >"$1/f$i" && [ "$(cat "$1/f$i")" = "$i" ] && rm "$1/f$i" || exit 1; sleep 0.1; done
echo "$i"
END
sh /tmp/patient "/mnt/nfs-$FROZEN" >/tmp/patient-said 2>&1 & patient=$!

survive() {  # KIND WRITERS EVENT
  DEADLINE_S=60 tally "$1:" python3 "$(dirname "$0")/survive.py" "/mnt/$1-$SHARE/$1" "$2" "$3"
}
# The programs of one protocol ask for the event, those of the other work meanwhile.
event="echo freeze me $SECONDS_FROZEN; sleep $((SECONDS_FROZEN + 1))"
# Over SMB in small pieces: of a large write, half sent when the connection goes, the kernel's client tells ECONNABORTED, and drops it.
(survive smb files,log "sleep $((SECONDS_FROZEN + 1))"; finish) >/tmp/smb-said 2>&1 & other=$!
survive nfs files,log,unstable,cached,names "$event"
wait "$other"
while IFS= read -r line; do
  case $line in
    "ok "*) pass "${line#ok }" ;;
    "FAIL "*) fail "${line#FAIL }" ;;
    *" passed, "*) ;;
    *) echo "$line" ;;
  esac
done </tmp/smb-said

touch /tmp/over
if wait "$patient"; then pass "nfs: who writes on the disk that stalled sees no error ($(tail -n 1 /tmp/patient-said) files)"; else fail "nfs: who writes on the disk that stalled" "$(tail -n 1 /tmp/patient-said)"; fi
for kind in smb nfs; do
  works() { head -c 1M /dev/urandom >/tmp/some && cp /tmp/some "/mnt/$1-$FROZEN/some-$1" && sync -f "/mnt/$1-$FROZEN/some-$1" && echo 3 >/proc/sys/vm/drop_caches && cmp /tmp/some "/mnt/$1-$FROZEN/some-$1"; }
  check "$kind: the disk that stalled works again" works "$kind"
done
check "unmount" umount "/mnt/smb-$SHARE" "/mnt/smb-$FROZEN" "/mnt/nfs-$SHARE" "/mnt/nfs-$FROZEN"
finish
