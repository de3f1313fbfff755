#!/bin/bash
# Samba's smbcacls against a server: access control lists set, inherited, denied, read back, kept in step with the mode.
# smbcacls uses only port 445, so the server listens there on its own loopback address. (root)
. "$(dirname "$0")/server.sh"
[ "$(id -u)" = 0 ] || { echo "not tested: smbcacls: only root may listen on port 445"; finish; exit; }
SERVER_ADDRESS=127.$((64 + $$ % 64)).$((RANDOM % 256)).$((RANDOM % 254 + 1))
listen=$SERVER_ADDRESS want_smb=445 must "server starts" start_server || { finish; exit 1; }
printf '[global]\n' >"$scratch/smb.conf"

acl() { timeout 60 smbcacls -s "$scratch/smb.conf" "//$SERVER_ADDRESS/$SHARE" -U "$SMB_USER%$SMB_PASS" --numeric "$@" 2>&1; }
smb() {
  local out; out=$(timeout 60 smbclient -s "$scratch/smb.conf" "//$SERVER_ADDRESS/$SHARE" -U "$SMB_USER%$SMB_PASS" -c "$1" 2>&1)
  echo "$out"; ! grep -q NT_STATUS <<<"$out"
}
says() { local want=$1; shift; local out; out=$("$@"); echo "$out"; grep -q -- "$want" <<<"$out"; }
refuses() { local out; if out=$("$@"); then echo "not refused: $out"; return 1; fi; echo "$out"; grep -q NT_STATUS_ACCESS_DENIED <<<"$out"; }
mode() { [ "$(stat -c %a "$share_dir/$2")" = "$1" ] || { stat -c %a "$share_dir/$2"; return 1; }; }

echo data >"$scratch/data"
me=S-1-22-1-$(stat -c %u "$share_dir") everyone=S-1-1-0 other=S-1-22-1-1234
my_group=S-1-22-2-$(stat -c %g "$share_dir")
check "a file" smb "put $scratch/data f; mkdir d"
check "the mode as a list" says "ACL:$everyone:0/0x0/0x00120089" acl f
check "a file and a directory with their modes" smb "put $scratch/data m; mkdir n"
for what in m n; do
  check "$what: an entry more" acl -a "ACL:$other:ALLOWED/0x0/READ" $what
  check "$what: its owner, with the list as it is" acl -M "OWNER:$me" $what
  check "$what: the owner alone" acl -C "$me" $what
  check "$what: the entry is deleted" acl -D "ACL:$other:ALLOWED/0x0/READ" $what
  without() { ! acl $what | grep "ACL:$other"; }
  check "$what: and gone" without
  check "$what: owner, group and list" acl -S "REVISION:1,OWNER:$me,GROUP:$my_group,ACL:$me:0/0/0x1f01ff,ACL:$everyone:0/0/0x1200a9" $what
  check "$what: everybody's entry is deleted" acl -D "ACL:$everyone:0/0/0x1200a9" $what
  check "$what: what is left" says "ACL:$me:0/0x0/0x001f01ff" acl $what
done
check "set" acl -S "ACL:$me:0/0/0x1f01ff,ACL:$everyone:0/0/0x120089" f
check "read back" says "ACL:$me:0/0x0/0x001f01ff" acl f
check "the mode follows" mode 744 f
check "deny another" acl -a "ACL:$other:1/0/0x2" f
check "the denial is kept" says "ACL:$other:1/0x0/0x00000002" acl f
check "chmod" chmod 640 "$share_dir/f"
check "chmod takes the list back" says "ACL:$everyone:0/0x0/0x00120080" acl f
check "deny everybody reading" acl -S "ACL:$everyone:1/0/0x1,ACL:$everyone:0/0/0x1f01ff" f
check "reading is denied" refuses smb "get f $scratch/back"
check "allow it again" acl -S "ACL:$everyone:0/0/0x1f01ff" f
check "reading is allowed" smb "get f $scratch/back"
check "entries to inherit" acl -a "ACL:$other:0/3/0x120089,ACL:S-1-3-0:0/11/0x10000000" d
check "made in it" smb "cd d; put $scratch/data f; mkdir e"
check "a file inherits it" says "ACL:$other:0/0x0/0x00120089" acl 'd\f'
check "its owner takes the creator's place" says "ACL:$me:0/0x0/0x001f01ff" acl 'd\f'
check "a directory hands it on" says "ACL:$other:0/0x3/0x00120089" acl 'd\e'
check "protect it" acl -I copy 'd\f'
check "protected" says 'CONTROL:0x9004' acl 'd\f'
check "taken out" acl -D "ACL:$other:0/3/0x120089" 'd\e'
gone() { ! acl 'd\e' | grep "ACL:$other"; }
check "gone" gone
check "an owner of another machine" acl -C S-1-5-21-1-2-3-1000 f
check "is kept" says 'OWNER:S-1-5-21-1-2-3-1000' acl f
given_away() { local out; out=$(acl -C "$other" f); echo "$out"; grep -q NT_STATUS_INVALID_OWNER <<<"$out"; }
check "it is not given to another user" given_away

# By name, as the dialogs of Windows do.
named() { timeout 60 smbcacls -s "$scratch/smb.conf" "//$SERVER_ADDRESS/$SHARE" -U "$SMB_USER%$SMB_PASS" "$@" 2>&1; }
rpc() { timeout 60 rpcclient -s "$scratch/smb.conf" "$SERVER_ADDRESS" -U "$SMB_USER%$SMB_PASS" -c "$1" 2>&1; }
my_name="Unix User\\$SMB_USER"
check "the owner has a name" says "OWNER:Unix User.$SMB_USER" named m
check "entries have names" says "ACL:Unix User.$SMB_USER:ALLOWED/" named m
check "an entry by name" named -a "ACL:Unix Group\\daemon:ALLOWED/0x0/READ" m
check "it is that of the group" says "ACL:S-1-22-2-1:0/0x0/" acl m
check "an entry for everyone, by name" named -a 'ACL:Everyone:ALLOWED/0x0/READ' m
check "the owner by name" named -C "$SMB_USER" m
check "an account's SID" says "$SMB_USER S-1-5-21-[0-9-]* (User: 1)" rpc "lookupnames $SMB_USER"
account=$(rpc "lookupnames $SMB_USER" | grep -o 'S-1-5-21-[0-9-]*')
check "and its name" says "$account ANABRANCH.$SMB_USER (1)" rpc "lookupsids $account"
check "the owner is the account" says "OWNER:ANABRANCH.$SMB_USER" named m
# The accounts of the server, as rpcclient and net list them. net asks at port 445, too.
net_rpc() { timeout 60 net -s "$scratch/smb.conf" rpc "$@" -S "$SERVER_ADDRESS" -I "$SERVER_ADDRESS" -U "$SMB_USER%$SMB_PASS" 2>&1; }
machine=${account%-*} hex=$(printf '0x%x' "${account##*-}")
check "rpcclient: the domains" says "name:\[Builtin\] idx:" rpc enumdomains
check "rpcclient: the SID of the domain" says "Domain SID: $machine" rpc "lookupdomain ANABRANCH"
check "rpcclient: the users" says "user:\[$SMB_USER\] rid:\[$hex\]" rpc enumdomusers
check "rpcclient: the groups" says "group:\[None\] rid:\[0x201\]" rpc enumdomgroups
check "rpcclient: the local groups" says "group:\[Administrators\] rid:\[0x220\]" rpc "enumalsgroups builtin"
check "rpcclient: a user" says "User Name   :	$SMB_USER" rpc "queryuser $hex"
check "rpcclient: its number" says "user_rid :	$hex" rpc "queryuser $hex"
check "rpcclient: the groups of a user" says "group rid:\[0x201\] attr:\[0x7\]" rpc "queryusergroups $hex"
check "rpcclient: the local groups of a user" says "group rid:\[0x221\]" rpc "queryuseraliases builtin $account"
check "rpcclient: a group" says "Num Members:1" rpc "querygroup 0x201"
check "rpcclient: its members" says "rid:\[$hex\] attr:\[0x7\]" rpc "querygroupmem 0x201"
check "rpcclient: its members" says "sid:\[S-1-5-11\]" rpc "queryaliasmem builtin 0x221"
check "rpcclient: the number of a name" says "name $SMB_USER: $hex (1)" rpc "samlookupnames domain $SMB_USER"
check "rpcclient: the name of a number" says "rid $hex: $SMB_USER (1)" rpc "samlookuprids domain $hex"
check "rpcclient: a list to show" says "RID: $hex acb: 0x00000210 Account: $SMB_USER" rpc querydispinfo
check "rpcclient: the groups to show" says "Account: None" rpc "querydispinfo 3"
check "rpcclient: the domain" says "Total Users:	1" rpc querydominfo
check "rpcclient: the rules for passwords" says "min_password_length: 0" rpc getdompwinfo
decoded() { /usr/bin/python3 "$(dirname "$0")/samr.py" "$SERVER_ADDRESS" "$scratch/smb.conf" "$SMB_USER" "$SMB_PASS" 2>&1; }
check "Samba decodes every class" says "^revision: 1 3" decoded
check "Samba decodes a user" says "^all: $SMB_USER True 513 0x210 168 {255}" decoded
denied() { local out; out=$("$@"); echo "$out"; grep -Eq "NT_STATUS_ACCESS_DENIED|Access is denied" <<<"$out"; }
check "rpcclient: no account is made" denied rpc "createdomuser intruder"
check "rpcclient: no account is deleted" denied rpc "deletedomuser $SMB_USER"
check "net: the users" says "^$SMB_USER\$" net_rpc user
check "net: the groups" says "^None" net_rpc group list
check "net: and the local groups" says "^Administrators" net_rpc group list
check "net: the members of a group" says "ANABRANCH.$SMB_USER" net_rpc group members None
check "net: the domain" says "Domain SID: $machine" net_rpc info
check "net: the shares" says "^$SHARE\$" net_rpc share list
check "net: no account is made" denied net_rpc user add intruder
check "a name's SID, with its domain" says "$me (User: 1)" rpc "lookupnames \"Unix User\\$SMB_USER\""
check "names of the machine" says "root S-1-22-1-0 (User: 1)" rpc "lookupnames root"
check "a well-known name" says "BUILTIN.Administrators S-1-5-32-544 (Local Group: 4)" rpc 'lookupnames BUILTIN\\Administrators'
check "a name that nobody has" says "NT_STATUS_NONE_MAPPED" rpc "lookupnames nobody-has-this"
check "some names of many" says "$account (User: 1)" rpc "lookupnames nobody-has-this $SMB_USER"
check "a SID's name" says "$me Unix User.$SMB_USER (1)" rpc "lookupsids $me"
check "well-known SIDs" says "S-1-1-0 .Everyone (5)" rpc 'lookupsids S-1-1-0 S-1-5-11 S-1-3-0'
check "a SID that nobody has" says "S-1-5-21-1-2-3-1000 \*unknown\*\|NT_STATUS_NONE_MAPPED" rpc 'lookupsids S-1-5-21-1-2-3-1000'
check "the user" says "Account Name: $SMB_USER" rpc getusername
check "the workgroup" says "WORKGROUP" rpc lsaquery
check "the domain of the accounts" says "${account%-*}" rpc "lsaquery 5"
check "the role" says "Machine Role = \[2\]" rpc dsroledominfo
must "the log is clean" log_is_clean
must "server ends" stop_server
finish
