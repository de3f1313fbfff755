#!/bin/bash
# Debian's smbclient against a server: lists, copies, checksums, refusals, dialects, ciphers.
# Starts a server, or tests the one that SMB_PORT names (see server.sh).
. "$(dirname "$0")/server.sh"
own=''
if [ -z "${SMB_PORT:-}" ]; then
  own=1; must "server starts" start_server || { finish; exit 1; }
fi
: "${SERVER:=127.0.0.1}"
here=$scratch/here; mkdir "$here"; cd "$here" || exit 1
printf '[global]\n' >"$scratch/smb.conf"

# smb COMMANDS [OPTION...]: runs smbclient's commands on the share as the user.
smb() { local c=$1; shift; smbclient_on "$SHARE" "$SMB_USER%$SMB_PASS" -c "$c" "$@"; }
smbclient_on() {
  local share=$1 who=$2 out; shift 2
  out=$(timeout 60 smbclient -s "$scratch/smb.conf" "//$SERVER/$share" -p "$SMB_PORT" -U "$who" "$@" 2>&1); local rc=$?
  echo "$out"
  [ $rc = 0 ] && ! grep -q '^NT_STATUS\|: NT_STATUS' <<<"$out"
}
says() { local want=$1; shift; local out; out=$("$@"); echo "$out"; grep -q -- "$want" <<<"$out"; }
refuses() { local want=$1; shift; local out; if out=$("$@"); then echo "not refused: $out"; return 1; fi; echo "$out"; grep -q -- "$want" <<<"$out"; }
same() { cmp "$1" "$2"; }
there_and_back() {  # FILE [OPTION...]
  local f=$1; shift
  smb "put $f $f.far; get $f.far $f.back; rm $f.far" "$@" && same "$f" "$f.back"
}

head -c 5000000 /dev/urandom >big
head -c 12345 /dev/urandom >odd
: >empty
list() { timeout 60 smbclient -s "$scratch/smb.conf" -L "//$SERVER" -p "$SMB_PORT" -U "$SMB_USER%$SMB_PASS" 2>&1; }
check "lists the share" says "^[[:space:]]*$SHARE  *Disk" list
check "lists IPC\$" says '^[[:space:]]*IPC\$  *IPC' list
check "put, get, checksum" there_and_back big
check "an odd length" there_and_back odd
check "an empty file" there_and_back empty

mput() {
  mkdir many && (cd many && for i in $(seq 500); do head -c $((i * 37 % 9000)) /dev/zero | tr '\0' "$((i % 10))" >"f$i"; done)
  smb "mkdir many; cd many; lcd many; prompt; mput f*" >"$scratch/out" || { grep -m 1 NT_STATUS "$scratch/out"; return 1; }
}
mget() {
  mkdir back
  smb "cd many; lcd back; prompt; mget f*" >"$scratch/out" || { grep -m 1 NT_STATUS "$scratch/out"; return 1; }
  diff -rq many back
}
count() { [ "$(smb "cd many; ls f*" | grep -c '^ *f[0-9]')" = 500 ]; }
check "mput of 500 files" mput
check "500 names listed" count
check "mget of 500 files, contents" mget
check "wildcards" says '^ *f499 ' smb 'cd many; ls f49?'
check "delete by wildcard" smb 'deltree many'
check "deleted" refuses 'NT_STATUS_OBJECT_NAME_NOT_FOUND\|NT_STATUS_NO_SUCH_FILE' smb 'ls many'

check "folders: make, rename, remove" smb 'mkdir d; mkdir d\e; rename d\e d\f; cd d\f; cd ..; rmdir f; cd ..; rmdir d'
check "a full folder stays" refuses NT_STATUS_DIRECTORY_NOT_EMPTY smb 'mkdir d; put odd d\odd; rmdir d'
check "tidy up" smb 'rm d\odd; rmdir d'
check "rename over another needs force" refuses NT_STATUS_OBJECT_NAME_COLLISION smb 'put odd r1; put empty r2; rename r1 r2'
check "rename with force" smb 'rename r1 r2 -f; get r2 r2.back; rm r2'
check "renamed contents" same odd r2.back
check "names: case is kept" says '^ *MixedCase.TXT ' smb 'put odd MixedCase.TXT; ls'
check "names: case does not matter" smb 'get mixedcase.txt case.back; rm MIXEDCASE.txt'
check "names: case, contents" same odd case.back
unicode=$(printf 'gr\303\266\303\237e \346\274\242\345\255\227')
check "names: Unicode" smb "put odd \"$unicode\"; get \"$unicode\" uni.back; rm \"$unicode\""
check "names: Unicode, contents" same odd uni.back
check "attributes" says '^ *ro  *[A-Z]*R' smb 'put odd ro; setmode ro +r; ls ro'
check "a read-only file is not deleted" refuses 'NT_STATUS_CANNOT_DELETE\|NT_STATUS_ACCESS_DENIED' smb 'rm ro'
check "attributes back" smb 'setmode ro -r; rm ro'
check "free space" says 'blocks of size' smb du
reget() { head -c 1000 big >big.part; smb "put big big.far; reget big.far big.part; rm big.far" && same big big.part; }
check "resume a download" reget

check "wrong password refused" refuses NT_STATUS_LOGON_FAILURE smbclient_on "$SHARE" "$SMB_USER%wrong$SMB_PASS" -c ls
for name in "$SMB_USER@EXAMPLE.ORG" "EXAMPLE\\$SMB_USER" "EXAMPLE/$SMB_USER"; do
  check "logs on as $name" smbclient_on "$SHARE" "$name%$SMB_PASS" --use-kerberos=off -c ls
  check "as $name with a wrong password: refused" refuses NT_STATUS_LOGON_FAILURE smbclient_on "$SHARE" "$name%wrong" --use-kerberos=off -c ls
done
check "unknown user refused" refuses NT_STATUS_LOGON_FAILURE smbclient_on "$SHARE" "nobody-here%$SMB_PASS" -c ls
check "empty password refused" refuses 'NT_STATUS_LOGON_FAILURE\|NT_STATUS_ACCESS_DENIED' smbclient_on "$SHARE" "$SMB_USER%" -c ls
check "anonymous refused" refuses 'NT_STATUS_LOGON_FAILURE\|NT_STATUS_ACCESS_DENIED' smbclient_on "$SHARE" "%" -N -c ls
check "unknown share refused" refuses NT_STATUS_BAD_NETWORK_NAME smbclient_on no-such-share "$SMB_USER%$SMB_PASS" -c ls
check "no file" refuses NT_STATUS_OBJECT_NAME_NOT_FOUND smb 'get no-such-file'
check "no folder" refuses NT_STATUS_OBJECT_PATH_NOT_FOUND smb 'put odd no-such-folder\odd'

check "encrypted" there_and_back big --client-protection=encrypt
check "signed" there_and_back big --client-protection=sign
for cipher in AES-128-GCM AES-128-CCM AES-256-GCM AES-256-CCM; do
  check "encrypted with $cipher" there_and_back odd --client-protection=encrypt --option="client smb3 encryption algorithms=$cipher"
done
for algorithm in AES-128-GMAC AES-128-CMAC HMAC-SHA256; do
  check "signed with $algorithm" there_and_back odd --client-protection=sign --option="client smb3 signing algorithms=$algorithm"
done
for dialect in SMB2_02 SMB2_10 SMB3_00 SMB3_02 SMB3_11; do
  check "at most $dialect" there_and_back big -m "$dialect" --option='client min protocol=SMB2_02'
  check "at most $dialect, signed" there_and_back odd -m "$dialect" --option='client min protocol=SMB2_02' --client-protection=sign
done
check "SMB1 refused" refuses 'NT_STATUS_\|protocol negotiation failed' smb ls -m NT1 --option='client min protocol=NT1'
check "still serving" there_and_back odd
if [ -n "$own" ]; then
  check "no panic, no password in the log" log_is_clean
  must "SIGTERM ends it" stop_server

  # A second share, which admits guests. They have no key, so the client must not insist on signing.
  open=$scratch/open; mkdir -m 777 "$open"; cp odd "$open/odd"; install -m 600 odd "$open/private"
  homes=$scratch/homes; mkdir -p "$homes/$SMB_USER" "$homes/other"; chown 1000:1000 "$homes/$SMB_USER" 2>/dev/null
  config=$scratch/guest.toml; install -m 600 /dev/null "$config"
  cat >"$config" <<EOF
[[share]]
name = "$SHARE"
directory = "$share_dir"
[[share]]
name = "open"
directory = "$open"
guest = true
[[share]]
name = "homes"
directory = "$homes/{user}"
[[user]]
name = "$SMB_USER"
password = "$SMB_PASS"
uid = 1000
gid = 1000
EOF
  as_guest() { local share=$1; shift; smbclient_on "$share" "%" -N --client-protection=off "$@"; }
  as_stranger() { local share=$1; shift; smbclient_on "$share" "stranger%any" --client-protection=off "$@"; }
  list_as_guest() { timeout 60 smbclient -s "$scratch/smb.conf" -N -L "//$SERVER" -p "$SMB_PORT" --client-protection=off --option='client ipc signing=auto' 2>&1; }
  must "a server with a share for guests starts" start_server
  for guest in as_guest as_stranger; do
    check "$guest: reads and writes the share for guests" "$guest" open -c "get odd $guest.back; put odd left; rm left"
    check "$guest: contents" same odd "$guest.back"
    check "$guest: a private file is refused" refuses NT_STATUS_ACCESS_DENIED "$guest" open -c "get private"
    check "$guest: an ordinary share is refused" refuses NT_STATUS_ACCESS_DENIED "$guest" "$SHARE" -c ls
  done
  check "a guest lists the shares" says '^[[:space:]]*open  *Disk' list_as_guest
  check "a wrong password makes no guest" refuses NT_STATUS_LOGON_FAILURE smbclient_on open "$SMB_USER%wrong$SMB_PASS" -c ls
  check "a client that insists on signing is no guest" refuses NT_STATUS_ACCESS_DENIED smbclient_on open "%" -N --client-protection=sign -c ls
  check "a user comes to both" smb ls
  at_home() { smbclient_on "$1" "$SMB_USER%$SMB_PASS" -c "put odd $1.file; mkdir $1.dir; rename $1.file $1.dir\\odd" && same odd "$homes/$SMB_USER/$1.dir/odd"; }
  for name in homes "$SMB_USER"; do
    check "$name is the directory of the user" at_home "$name"
  done
  check "the directories of others are not there" refuses NT_STATUS_OBJECT_NAME_NOT_FOUND smbclient_on homes "$SMB_USER%$SMB_PASS" -c "cd other"
  check "nobody has another user's name as a share" refuses NT_STATUS_BAD_NETWORK_NAME smbclient_on other "$SMB_USER%$SMB_PASS" -c ls
  check "a guest has no home" refuses NT_STATUS_ACCESS_DENIED as_guest homes -c ls
  must "SIGTERM ends that, too" stop_server

  # Without a setting for signing, users sign. Guests cannot sign, and are admitted.
  SIGNING=default must "a server with its own defaults starts" start_server
  check "a user who signs" smb ls
  check "and whose client would rather not" smb ls --client-protection=off
  for guest in as_guest as_stranger; do
    check "$guest: comes unsigned where users must sign" "$guest" open -c "get odd $guest.back; put odd left; rm left"
  done
  must "SIGTERM ends that one" stop_server
fi
finish
