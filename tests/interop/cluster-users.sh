#!/bin/bash
# The users of a cluster (docs/cluster.md), in a real Ceph cluster (tests/lab/ceph-lab): two gateways and the clients, each in a network
# namespace of its own. Users and access lists mean the same at each gateway, before and after a takeover; the gateway that serves shows the
# sessions. (root)
#   cluster-users.sh [--show]    also prints what the commands print
name=cluster-users network=192.0.2 flags=()
. "$(dirname "$0")/two-gateways.sh"
show=${1:-}
address=192.0.2.10
refused() {
  local name=$1 text=$2 said; shift 2
  if said=$("$@"); then fail "$name" "it was not refused: $said"
  elif grep -q -- "$text" <<<"$said"; then pass "$name"; else fail "$name" "$said"; fi
}
# add NODE USER ARGUMENT...: the password is that name and "-pw".
add() { local node=$1 user=$2; shift 2; echo "$user-pw" | at "$node" user add "$user" "$@"; }
# as USER COMMANDS: what smbclient prints.
as() { in_ns client smbclient -s /dev/null -t 30 "//$address/data" -U "$1%$1-pw" -c "$2" 2>&1; }
can() { as "$1" "get secret $scratch/got-$1" | grep -q 'getting file'; }
cannot() { as "$1" "get secret $scratch/got-$1" | grep -q "NT_STATUS_$2"; }
# sid NODE USER ARGUMENT...: fails if there is none.
sid() { at "$1" user list "${@:3}" --json | python3 -c 'import json, sys; sid = [u["sid"] for u in json.load(sys.stdin)["users"] if u["name"] == sys.argv[1]][0]; sys.exit("no SID") if sid is None else print(sid)' "$2"; }
same_sid() { local one other; one=$(sid a "$1" --cluster) && other=$(sid b "$1" --cluster) && [ "$one" = "$other" ]; }
acl() { in_ns client smbcacls -s /dev/null "//$address/data" "$1" -U 'carla%carla-pw' "${@:2}" 2>&1; }

serve a; serve b
check "a cluster is made" at a cluster init
check "the other joins" at b cluster join
check "a vserver is made" at a vserver create files --address "$address%eth0/24" --share data=cephfs:/files --nfs off
check "a user is added to the cluster" add a carla --cluster --uid 4001
check "another one, at the other gateway" add b dave --cluster --uid 4002
refused "a name is of one user" "there is a user CARLA already" add b CARLA --cluster --uid 4009
refused "who is nobody on the machine needs numbers" "the user emil has no uid" add a emil --cluster
check "each gateway has the same users" same_sid carla
check "also those that were added at the other" same_sid dave
check "they are no users of the server itself" eval 'at a user list | grep -q "^USER" && ! at a user list | grep -q carla'
# The same account at two gateways, whose own numbers of it differ.
check "an account is added at one gateway" add a gwen --uid 4003
check "and at the other, after another one" eval 'add b fred --uid 4004 && add b gwen --uid 4003'
check "the gateways themselves have other SIDs for it" eval 'one=$(sid a gwen) other=$(sid b gwen) && [ "$one" != "$other" ]'

check "a user of the cluster logs on" eval 'echo hush >"$scratch/secret" && as carla "put $scratch/secret secret" | grep -q "putting file"'
check "an account of the gateway does" soon eval 'as gwen ls | grep -q secret'
check "an access list names both" acl secret -S "ACL:FILES\\carla:ALLOWED/0x0/FULL,ACL:FILES\\gwen:ALLOWED/0x0/READ"
check "who is in the list reads" can gwen
check "who is not does not" cannot dave ACCESS_DENIED
check "who has another password does not log on" eval 'in_ns client smbclient -s /dev/null "//$address/data" -U "carla%wrong" -c ls 2>&1 | grep -q NT_STATUS_LOGON_FAILURE'
list=$(acl secret)
check "the list is told by name" grep -q 'ACL:FILES\\gwen:ALLOWED/0x0/READ' <<<"$list"
check "so is the owner" grep -q 'OWNER:Unix User\\carla' <<<"$list"

[ "$show" = '' ] || { add b erika --cluster --uid 4005; at a user list --cluster; acl secret >&2; } >/dev/null

# A session of gwen, which is open.
mkfifo "$scratch/gwens-asks"
in_ns client smbclient -s /dev/null -t 30 "//$address/data" -U gwen%gwen-pw <"$scratch/gwens-asks" >"$scratch/gwens-session" 2>&1 &
clients+=($!)
exec 8<>"$scratch/gwens-asks"
works() { echo ls >&8; sleep 0.2; grep -q secret "$scratch/gwens-session"; }
# The metrics of a gateway, which name clients.
metrics() {
  in_ns "$1" curl -sS -H "Authorization: Bearer $(cat "$scratch/state-$1/control-token")" http://127.0.0.1:8080/metrics
}
has_lines() { metrics "$1" | grep -q "^anabranch_requests_total{share=\"data\",vserver=\"files\",protocol=\"smb\",api=\"Create\"} "; }
lists() { at "$1" client list | grep -q "^0x[0-9a-f]* *files *gwen *$network.3 "; }
has_status() { at "$1" status | grep -q "^data *files *ok *unlimited "; }
counts() { at "$1" status | grep -q "^Clients: $2 SMB session"; }
check "a user has a session" soon works
check "the gateway that serves has metrics of the share" soon has_lines a
check "and of its clients" eval 'metrics a | grep -q "^anabranch_client_requests_total{share=\"data\",vserver=\"files\",protocol=\"smb\",client="'
check "and tells the share in its status" has_status a
check "and counts the session" counts a 1
check "and lists the session" lists a
check "and says that it is well" eval '[ "$(in_ns a curl -sS http://127.0.0.1:8080/healthz)" = ok ]'
check "the other gateway has no such metrics" eval 'metrics b >"$scratch/metrics-b" && grep -q "^anabranch_cluster_place 1" "$scratch/metrics-b" && ! grep -q "share=.data.,vserver=.files." "$scratch/metrics-b"'
check "nor the share in its status" eval 'at b status >"$scratch/status-b" && ! grep -q "^data " "$scratch/status-b"'
check "nor counts the session" counts b 0
check "nor lists it" eval 'at b client list >"$scratch/clients-b" && grep -q "^SMB: 0 sessions" "$scratch/clients-b"'
refused "it cannot disconnect the client" "no client" at b client disconnect "$network.3"
[ "$show" = '' ] || { at a status; at a client list; } >/dev/null
check "the gateway that serves disconnects it" eval 'at a client disconnect "$network.3" | grep -q "1 SMB session,"'
check "the session is gone" soon eval '! lists a'
exec 8>&-

kill -KILL "${pid[a]}"; wait "${pid[a]}" 2>/dev/null; unset 'pid[a]'
check "killed: the other takes over" soon serves b files b
check "killed: users log on there" soon eval 'as carla ls | grep -q secret'
check "killed: its metrics have the share" soon has_lines b
check "killed: who is in the list reads" can gwen
check "killed: who is not does not" cannot dave ACCESS_DENIED
check "killed: the list is the same" [ "$(acl secret)" = "$list" ]

# A session of dave, which is asked again and again.
mkfifo "$scratch/asks"
in_ns client smbclient -s /dev/null -t 30 "//$address/data" -U dave%dave-pw <"$scratch/asks" >"$scratch/session" 2>&1 &
clients+=($!)
exec 7<>"$scratch/asks"
still() { echo ls >&7; sleep 0.2; grep -q "$1" "$scratch/session"; }
check "a user has a session" soon still secret
check "the user is disabled" at b user set dave --cluster --disable
check "the session ends" soon still 'NT_STATUS_USER_SESSION_DELETED'
check "the user does not log on" soon cannot dave ACCOUNT_DISABLED
exec 7>&-
check "the user is enabled" at b user set dave --cluster --enable
check "the user logs on" soon eval 'as dave ls | grep -q secret'
before=$(sid b dave --cluster)
check "the user is removed" at b user remove dave --cluster
check "nobody logs on under that name" soon cannot dave LOGON_FAILURE
refused "the user is gone" "there is no user dave of the cluster" at b user set dave --cluster --enable
check "another user of that name is another" eval 'add b dave --cluster --uid 4002 && after=$(sid b dave --cluster) && [ "$after" != "$before" ]'

serve a
check "the gateway that was killed is back" soon has_place a
check "it knows the users" soon same_sid dave
check "the vserver moves there" at b vserver move files a
check "moved: who is in the list reads" soon can gwen
check "moved: the list is the same" [ "$(acl secret)" = "$list" ]
check "a user is removed at the gateway that does not serve" at b user remove carla --cluster
check "and does not log on" soon eval 'as carla ls | grep -q NT_STATUS_LOGON_FAILURE'
check "no log shows a panic" eval '! grep -q "panicked at" "$scratch"/log-*'
check "no log shows a password" eval '! grep -q -- "-pw" "$scratch"/log-*'
for node in a b; do kill -TERM "${pid[$node]}"; wait "${pid[$node]}"; check "SIGTERM ends $node" [ $? = 0 ]; unset "pid[$node]"; done
[ "$failed" = 0 ] || logs
finish
