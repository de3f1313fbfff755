#!/bin/bash
# Debian's libnfs tools against a server's NFSv3 and NFSv4.0, which is the NFSv4 that they know: list, copy there and back,
# checksums, refusals.
# Starts a server, or tests the one that NFS_PORT names (SERVER NFS_PORT MOUNT_PORT EXPORT; see server.sh).
# LOCAL_DIR: the exported folder, when it can be read here. VERSION: 3 (default) or 4; a server that this script has started is
# tested with both.
. "$(dirname "$0")/server.sh"
own=''
if [ -z "${NFS_PORT:-}" ]; then
  own=1; SQUASH=root must "server starts" start_server || { finish; exit 1; }
  LOCAL_DIR=$share_dir
fi
: "${SERVER:=127.0.0.1}" "${EXPORT:=/$SHARE}" "${MOUNT_PORT:=$NFS_PORT}" "${VERSION:=3}"
here=$scratch/here; mkdir "$here"; cd "$here" || exit 1

# Runs as user 1000, who owns the tests' share: root of a client is nobody by default.
url() { echo "nfs://$SERVER$EXPORT${1:+/$1}?version=$VERSION&nfsport=$NFS_PORT&mountport=$MOUNT_PORT&uid=${2:-1000}&gid=${2:-1000}"; }
nfs() { local tool=$1; shift; timeout 60 "nfs-$tool" "$@" 2>&1; }
# Over NFSv4, libnfs 4.0.0 fails to encode a WRITE of 4,000 bytes, whatever the server is ("ZDR error"): a large file
# gets to the folder beside the server, and is read over NFSv4.
put() {
  if [ "$VERSION" = 4 ] && [ "$(stat -c %s "$1")" -gt 3500 ]; then cp -p "$1" "$LOCAL_DIR/$2" && chown 1000:1000 "$LOCAL_DIR/$2"
  else nfs cp "$1" "$(url "$2")"; fi
}
get() { nfs cp "$(url "$1")" "$2"; }
empty() { local out; out=$(nfs ls "$(url)"); local rc=$?; echo "$out"; [ $rc = 0 ] && [ -z "$out" ]; }
there_and_back() { put "$1" "$1.far" && get "$1.far" "$1.back" && cmp "$1" "$1.back"; }
refuses() { local want=$1 out; shift; out=$("$@"); echo "$out"; grep -q -- "$want" <<<"$out"; }

head -c 20000000 /dev/urandom >big
head -c 12345 /dev/urandom >odd
: >empty
check "mounts and lists an empty folder" empty
check "copies 20 MB there and back" there_and_back big
check "an odd length" there_and_back odd
head -c 3500 odd >small
check "a small file" there_and_back small
check "an empty file" there_and_back empty
cat_same() { [ "$(nfs cat "$(url big.far)" | sha256sum)" = "$(sha256sum <big)" ]; }
check "nfs-cat, checksum" cat_same
sizes() { nfs ls "$(url)" | awk '{print $NF, $(NF-1)}' | sort | tr '\n' ';' >"$scratch/sizes"; cat "$scratch/sizes"; grep -q 'big.far 20000000;empty.far 0;odd.far 12345;small.far 3500;' "$scratch/sizes"; }
check "names and sizes" sizes
if [ -n "${LOCAL_DIR:-}" ]; then
  local_same() { cmp big "$LOCAL_DIR/big.far" && cmp empty "$LOCAL_DIR/empty.far"; }
  check "the server's folder holds the same" local_same
  deep() { mkdir -p "$LOCAL_DIR/a/b" && cp odd "$LOCAL_DIR/a/b/c d" && get 'a/b/c d' deep && cmp odd deep; }
  check "a file made beside the server, deep down" deep
  many() { mkdir "$LOCAL_DIR/many" && (cd "$LOCAL_DIR/many" && seq 2000 | xargs touch) && [ "$(nfs ls "$(url many)" | wc -l)" = 2000 ]; }
  check "2000 names listed" many
  tree() { [ "$(nfs ls -R "$(url)" | wc -l)" -ge 2007 ]; }
  check "recursive list" tree
  linked() { ln -s /etc "$LOCAL_DIR/etc" && ln -s ../../../../../../../etc/passwd "$LOCAL_DIR/pw" && ! get etc/passwd leak1 && [ ! -s leak1 ] && ! get pw leak2 && [ ! -s leak2 ]; }
  check "a link never leads out" linked
fi
check "no such file" refuses 'ERR_NOENT\|ENOENT\|No such file' get no-such-file gone
check "no such folder" refuses 'Failed to open' put small no-such-folder/small
no_export() { nfs ls "nfs://$SERVER/no-such-export?version=$VERSION&nfsport=$NFS_PORT&mountport=$MOUNT_PORT"; }
check "no such export" refuses 'MNT3ERR\|ermission\|No such\|NOENT\|ailed to mount' no_export
no_climb() { nfs ls "nfs://$SERVER$EXPORT/../../etc?version=$VERSION&nfsport=$NFS_PORT&mountport=$MOUNT_PORT"; }
check "no way out with .." refuses 'MNT3ERR\|ermission\|No such\|NOENT\|ailed to mount' no_climb
long() { put small "$(printf 'n%.0s' $(seq 256))"; }
check "a name of 256 bytes" refuses 'NAMETOOLONG\|too long\|ENAMETOOLONG' long
parallel() { local i pids=(); for i in 1 2 3 4 5 6 7 8; do put small "p$i" >/dev/null & pids+=($!); done; for i in "${pids[@]}"; do wait "$i" || return 1; done
  for i in 1 2 3 4 5 6 7 8; do get "p$i" "p$i" >/dev/null && cmp small "p$i" || return 1; done; }
check "eight clients at once" parallel
if [ -n "$own" ]; then
  squashed() { ! nfs cp odd "$(url by-root 0)" && [ ! -e "$LOCAL_DIR/by-root" ]; }
  check "the root of a client is nobody" squashed
  owned() { [ "$(stat -c %u:%g "$LOCAL_DIR/big.far")" = 1000:1000 ]; }
  [ "$(id -u)" != 0 ] || check "files belong to who made them" owned
  mkdir "$LOCAL_DIR/four" && { [ "$(id -u)" != 0 ] || chown 1000:1000 "$LOCAL_DIR/four"; }
  tally "NFSv4.0:" env SERVER="$SERVER" NFS_PORT="$NFS_PORT" EXPORT="$EXPORT/four" LOCAL_DIR="$LOCAL_DIR/four" VERSION=4 "$top/tests/interop/libnfs.sh"
  check "no panic in the log" log_is_clean
  must "SIGTERM ends it" stop_server
fi
finish
