#!/bin/bash
# Earlier versions on Btrfs, as real clients see them: smbclient, Samba's smbtorture, libnfs, and the kernel's clients.
# The file system lies in a file, and only this script and the server see it. Needs root, loop devices and btrfs-progs; elsewhere it
# says so. Parts of it by name: snapshots.sh [smbclient] [smbtorture] [libnfs] [kernel] [restore]
. "$(dirname "$0")/server.sh"
parts=${*:-smbclient smbtorture libnfs kernel restore}
. "$(dirname "$0")/btrfs.sh"

# A share on a subvolume that nobody can write.
btrfs -q subvolume create "$disk/base" && install -m 666 /dev/stdin "$disk/base/f" <<<old && btrfs -q subvolume snapshot -r "$disk/base" "$disk/old" || exit 1
# And one on a directory that is encrypted with fscrypt.
ext4=$scratch/ext4; mkdir "$ext4" && truncate -s 64M "$scratch/ext4.image"
{ mkfs.ext4 -q -O encrypt "$scratch/ext4.image" && mount -o loop "$scratch/ext4.image" "$ext4" && python3 "$top/tests/interop/fscrypt.py" "$ext4/enc"; } >"$scratch/said" 2>&1
share_dir=$disk/share
btrfs -q subvolume create "$share_dir" && chown 1000:1000 "$share_dir" || exit 1
in_share() { (cd "$share_dir" && setpriv --reuid 1000 --regid 1000 --clear-groups -- sh -ec "$1"); }
# take NAME: as snapper or btrbk would. Snapshots have whole seconds, and the server looks once a second.
take() { btrfs -q subvolume snapshot -r "$share_dir" "$disk/$1" && sleep 2.1; }

case $parts in *kernel*) START="ip netns exec $ns" listen=0.0.0.0; "$top/tests/lab/client-lab" build >/dev/null && "$top/tests/lab/client-lab" net "$ns" 1 || exit 1 ;; esac
config=$scratch/anabranch.toml; install -m 600 /dev/null "$config"
cat >"$config" <<EOF
access-log-file = "$scratch/access.json"
access-log-kinds = ["open", "read", "rename", "administration"]
[[share]]
name = "$SHARE"
directory = "$share_dir"
nfs-snapshots = "shown"
[[share]]
name = "old"
directory = "$disk/old"
$([ ! -d "$ext4/enc" ] || printf '[[share]]\nname = "enc"\ndirectory = "%s"\n' "$ext4/enc")
[[user]]
name = "$SMB_USER"
password = "$SMB_PASS"
uid = 1000
gid = 1000
EOF
must "server starts" start_server || { finish; exit 1; }
here() { ${START:-} timeout 100 "$@"; }

cd "$scratch" || exit 1
printf '[global]\n' >smb.conf
smb() {
  local out rc
  out=$(here smbclient -s "$scratch/smb.conf" "//127.0.0.1/${share:-$SHARE}" -p "$SMB_PORT" -U "$SMB_USER%$SMB_PASS" -c "$1" 2>&1); rc=$?
  echo "$out"
  [ $rc = 0 ] && ! grep -q '^NT_STATUS\|: NT_STATUS' <<<"$out"
}
says() { local out; out=$(smb "$2"); echo "$out"; grep -q -- "$1" <<<"$out"; }
# times FILE: of which there are versions, as smbclient prints them, latest first.
times() { smb "allinfo $1" | grep -o '^@GMT-[0-9.]*-[0-9.]*'; }
count_is() { local n; n=$(times "$2" | wc -l); echo "$n versions"; [ "$n" = "$1" ]; }
got() { rm -f got; smb "get \"$1\" got" && cat got && [ "$(cat got)" = "$2" ]; }
in_share 'umask 022; mkdir -p d/e; echo then >d/f; : >d/empty; echo "a b" >"d/name with blanks"; ln -s f d/link; chmod 600 d/empty'
smb 'put smb.conf d\f:stream' >/dev/null
take first
in_share 'echo now, and longer >d/f; echo new >d/g; rm "d/name with blanks"'
take second
in_share 'echo last >d/f; mv d/e d/e2; rm -r d/empty; echo other >d/e2/x'

second=$(times d/f | head -n 1) first=$(times d/f | tail -n 1)

smbclient_part() {
  check "allinfo: two versions" count_is 2 d/f
  check "allinfo: of a file made since the first" count_is 1 d/g
  check "allinfo: of a file removed and made since" count_is 0 d/e2/x
  check "allinfo: of a directory" count_is 2 d
  check "get: the file of now" got 'd\f' last
  check "get: a time in front" got "$second"'\d\f' 'now, and longer'
  check "get: the first" got "$first"'\d\f' then
  check "get: a time inside of the path" got 'd\'"$first"'\f' then
  check "get: in any case" got "$first"'\D\F' then
  check "get: of a file that is removed" got "$first"'\d\name with blanks' 'a b'
  check "get: made since" says OBJECT_NAME_NOT_FOUND "get $first\\d\\g /dev/null"
  check "get: no such time" says OBJECT_NAME_NOT_FOUND 'get @GMT-2001.01.01-00.00.00\d\f /dev/null'
  check "ls: what was there" says '^  empty  *A  *0 ' "ls $first\\d\\*"
  moved() { ! says '^  e2 ' "ls $first\\d\\*" && says '^  e  *D ' "ls $first\\d\\*"; }
  check "ls: what was renamed" moved
  check "rm: write protected" says MEDIA_WRITE_PROTECTED "rm $first\\d\\f"
  check "put: write protected" says MEDIA_WRITE_PROTECTED "put got $first\\d\\new"
  check "mkdir: write protected" says MEDIA_WRITE_PROTECTED "mkdir $first\\d\\new"
  check "rename: refused" says 'NT_STATUS_' "rename $first\\d\\f $first\\d\\h"
  check "still there" got "$first"'\d\f' then
  back() { smb "get $first\\d\\f back; put back d\\f" && [ "$(cat "$share_dir/d/f")" = then ] && in_share 'echo last >d/f'; }
  check "put back" back
  logged() { local i; for i in $(seq 100); do grep -q '"kind":"open".*"path":"/.snapshot/first/d/f"' access.json && return; sleep 0.1; done; tail -n 3 access.json; false; }
  check "the access log names the snapshot" logged
  local share=old
  check "a share on a read-only subvolume is read" got f old
  check "a share on a read-only subvolume takes no changes" says 'NT_STATUS_MEDIA_WRITE_PROTECTED\|NT_STATUS_ACCESS_DENIED' 'put smb.conf new'
  check "the log says that it is served read-only" grep -q 'share is served read-only, since nobody can write' "$scratch/server.log"
  share=''
  at_rest() { here "$ANABRANCH" share show "$1" --json --state "$scratch/state" | grep "\"encryption_at_rest\": \"$2\""; }
  told() { here "$ANABRANCH" share show enc --state "$scratch/state" | grep -x 'at rest    encrypted with fscrypt'; }
  check "what is on a disk is looked for" at_rest old '\(none-seen\|dm-crypt\)'
  if [ -d "$ext4/enc" ]; then check "fscrypt is seen" at_rest enc fscrypt; check "it is told" told; else echo "not tested: fscrypt: $(tail -n 1 "$scratch/said")"; fi
  check "a snapshot is removed" btrfs -q subvolume delete "$disk/second"
  sleep 2.1
  check "allinfo: one version is left" count_is 1 d/f
  check "get: of the removed one" says 'OBJECT_NAME_NOT_FOUND' "get $second\\d\\f /dev/null"
  check "get: of the one that is left" got "$first"'\d\f' then
}
torture() {
  here smbtorture "//127.0.0.1/$SHARE" -p "$SMB_PORT" -U "$SMB_USER%$SMB_PASS" "smb2.twrp.$1" \
    --option="torture:twrp_snapshot=$first" \
    --option='torture:twrp_file=d\f' --option=torture:twrp_stream=stream --option=torture:twrp_stream_size=9 2>&1 | tee said | grep '^success' || { tail -n 4 said | tr '\n' ' '; false; }
}
# smb2.twrp.listdir asks for the file `subdir/hardlink`, and a slash is in no name of Windows: it is not run.
smbtorture_part() {
  local test
  for test in openroot write stream; do check "smb2.twrp.$test" torture $test; done
}
# nfs PROGRAM PATH: by libnfs, as the user who owns the files.
nfs() { here "$1" "nfs://127.0.0.1/$SHARE/$2?nfsport=$NFS_PORT&mountport=$MOUNT_PORT&version=$version&uid=1000&gid=1000" 2>&1; }
nfs_says() { local out; out=$(nfs "$2" "$3"); echo "$out"; grep -q -- "$1" <<<"$out"; }
nfs_got() { local out; out=$(nfs nfs-cat "$1"); echo "$out"; [ "$out" = "$2" ]; }
libnfs_part() {
  local version
  for version in 3 4; do
    check "libnfs v$version: the root shows .snapshot" nfs_says '[[:space:]]\.snapshot$' nfs-ls ''
    hidden() { ! nfs_says '\.snapshot' nfs-ls d; }
    check "libnfs v$version: no other directory does" hidden
    check "libnfs v$version: the file of then" nfs_got .snapshot/first/d/f then
    check "libnfs v$version: by the directory" nfs_got d/.snapshot/second/f 'now, and longer'
    check "libnfs v$version: the file of now" nfs_got d/f last
    read_by() { local i; for i in $(seq 100); do grep '"kind":"read".*"path":"/.snapshot/first/d/f"' access.json | grep -q "\"protocol\":\"nfs$version" && return; sleep 0.1; done; tail -n 3 access.json; false; }
    check "libnfs v$version: the access log names the snapshot" read_by
  done
}
# filetime TOKEN: in units of 100 ns since 1601.
filetime() { local t=${1#@GMT-}; echo $((($(date -ud "${t:0:4}-${t:5:2}-${t:8:2} ${t:11:2}:${t:14:2}:${t:17:2}" +%s) + 11644473600) * 10000000)); }
kernel_part() {
  tally "kernel:" "$top/tests/lab/client-lab" run --netns "$ns" --nics 1 --timeout 200 -e SMB_PORT="$SMB_PORT" -e NFS_PORT="$NFS_PORT" -e SHARE="$SHARE" \
    -e EXPORT="$EXPORT" -e USER="$SMB_USER" -e PASS="$SMB_PASS" -e TIME="$(filetime "$first")" "$top/tests/lab/guest/snapshots.sh"
}
anabranch() { here "$ANABRANCH" "$@" --state "$scratch/state" 2>&1; }
# restore WORDS ARGUMENT...: succeeds, or fails where WORDS are those of an error, and says so.
restore() {
  local words=$1 out rc; shift
  out=$(anabranch share restore "$SHARE" "$@"); rc=$?
  echo "$out"
  case $out in *error:*) [ $rc = 7 ] ;; *) [ $rc = 0 ] ;; esac && grep -q -- "$words" <<<"$out"
}
restore_part() {
  local version third hold
  in_share 'mkdir -p r/deep; echo then >r/f; echo then >r/deep/g; ln r/f r/deep/f'
  smb 'put smb.conf r\f:stream' >/dev/null
  sleep 1.1; take third
  third=$(anabranch snapshot list "$SHARE" | awk 'END { print $1 }')
  in_share 'rm -r r/deep; echo now >r/f; echo new >r/h'
  check "restore: not in the place of what is there" restore 'has a /r already' --from "$third" r
  # smbclient has a file open, and does not share deletion.
  mkfifo "$scratch/hold"
  here smbclient -s "$scratch/smb.conf" "//127.0.0.1/$SHARE" -p "$SMB_PORT" -U "$SMB_USER%$SMB_PASS" <"$scratch/hold" >/dev/null 2>&1 &
  exec {hold}>"$scratch/hold"; echo 'open r\f' >&"$hold"
  is_open() { local i; for i in $(seq 200); do anabranch file list --share "$SHARE" | grep -q 'r/f' && return; sleep 0.1; done; false; }
  check "restore: a client has a file open" is_open
  check "restore: it is left alone, and all else restored" restore 'left alone: /r/f: a client has it open' --from "$third" r --replace
  check "restore: the client reads what it had" [ "$(cat "$share_dir/r/f")" = now ]
  exec {hold}>&-; wait $!
  check "restore: when the file is closed" restore '^/r was restored' --from "$third" r --replace
  check "restore: SMB clients read it" got 'r\f' then
  check "restore: its stream, too" smb 'get r\f:stream got'
  check "restore: under its other name" got 'r\deep\f' then
  check "restore: what the snapshot does not have stays" got 'r\h' new
  for version in 3 4; do check "restore: libnfs v$version reads it" nfs_got r/deep/g then; done
  check "restore: elsewhere, by time" restore '^/r/old (from /r/f)' --from "$(anabranch snapshot list "$SHARE" | awk 'END { print $2 }')" r/f --to r/old
  for version in 3 4; do check "restore: libnfs v$version reads it there" nfs_got r/old then; done
  admin_logged() { local i; for i in $(seq 100); do grep '/restore"' access.json | grep -q '"operationName":"POST"' && return; sleep 0.1; done; grep restore access.json | tail -n 1; false; }
  copied() { anabranch share create copy "$disk/copy" --from "$SHARE@$third" && [ "$(cat "$disk/copy/r/f")" = then ]; }
  check "a new share from a snapshot" copied
  of_copy() { here smbclient -s "$scratch/smb.conf" //127.0.0.1/copy -p "$SMB_PORT" -U "$SMB_USER%$SMB_PASS" -c 'get r\f:stream got; put smb.conf r\new'; }
  check "it has the streams, and can be written" of_copy
  check "the access log has who restored" admin_logged
}
# smbclient and restore last: the one removes a snapshot, the other one has one more.
for part in kernel smbtorture libnfs smbclient restore; do
  [[ " $parts " != *" $part "* ]] || "${part}_part"
done
must "SIGTERM ends it" stop_server
in_share 'mkdir .snapshot && echo own >.snapshot/f'
must "server starts with an entry .snapshot in the root" start_server
check "the log says that it keeps the name" grep -q 'has an entry .snapshot of its own' "$scratch/server.log"
check "no panic, no password in the log" log_is_clean
must "SIGTERM ends it again" stop_server
finish
