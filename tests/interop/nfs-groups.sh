#!/bin/bash
# Groups of users of NFS by the word of the server (nfs-groups), with libnfs over NFSv3 and NFSv4.0: a user in 40 groups, of whom the client
# states one. The server sees users and groups that the script makes, in a mount namespace of its own.
. "$(dirname "$0")/server.sh"
[ "$(id -u)" = 0 ] || { echo "needs root (a mount namespace)"; exit 1; }
USER_ID=4001 PRIMARY=4100 FOREIGN=6000 LAST=5040 STRANGER=4999

{ cat /etc/passwd; echo "worker:x:$USER_ID:$PRIMARY::/:/bin/false"; } >"$scratch/passwd"
{ cat /etc/group; echo "workers:x:$PRIMARY:"; for ((gid = 5001; gid <= LAST; gid++)); do echo "w$gid:x:$gid:worker"; done; } >"$scratch/group"
cat >"$scratch/with-names" <<S2
#!/bin/sh
mount --bind "$scratch/passwd" /etc/passwd && mount --bind "$scratch/group" /etc/group && exec "\$@"
S2
chmod 755 "$scratch" "$scratch/with-names"; chmod 644 "$scratch/passwd" "$scratch/group"
share_dir=$scratch/share; mkdir "$share_dir"; chmod 1777 "$share_dir"
START="unshare --mount --propagation private $scratch/with-names"

# file NAME GID: a file that only members of the group may read.
file() { echo "for $1" >"$share_dir/$1"; chown "0:$2" "$share_dir/$1"; chmod 640 "$share_dir/$1"; }
file last "$LAST"; file foreign "$FOREIGN"
url() { echo "nfs://127.0.0.1/$SHARE/$1?version=$VERSION&nfsport=$NFS_PORT&mountport=$NFS_PORT&uid=$2&gid=$3"; }
reads() { [ "$(timeout 60 nfs-cat "$(url "$@")")" = "for $1" ]; }
# A client that reads nothing must be told why: a server that does not answer proves nothing.
refused() { local said; said=$(timeout 60 nfs-cat "$(url "$@")" 2>&1); echo "$said"; grep -qi 'ACCES\|permission' <<<"$said"; }
# makes NAME UID GID WANTED: a new file is of this group.
makes() {
  timeout 60 nfs-cp /etc/hostname "$(url "$1" "$2" "$3")" >/dev/null && [ "$(stat -c %u:%g "$share_dir/$1")" = "$2:$4" ] ||
    { stat -c '%n is of %u:%g' "$share_dir/$1"; return 1; }
}

must "a server that decides the groups starts" start_server --nfs-groups server || { finish; exit 1; }
for VERSION in 3 4; do
  check "v$VERSION: the user is in the last of 40 groups" reads last $USER_ID $PRIMARY
  check "v$VERSION: but not in a group that the client states" refused foreign $USER_ID $FOREIGN
  check "v$VERSION: who is unknown is in no group" refused last $STRANGER $LAST
  check "v$VERSION: a new file is of the primary group" makes "new-$VERSION" $USER_ID $PRIMARY $PRIMARY
  check "v$VERSION: or of another one of the user's" makes "other-$VERSION" $USER_ID $LAST $LAST
  check "v$VERSION: but not of one that the client invents" makes "invented-$VERSION" $USER_ID $FOREIGN $PRIMARY
  check "v$VERSION: what a stranger makes is of no group" makes "strange-$VERSION" $STRANGER $LAST 65534
done
must "SIGTERM ends it" stop_server

# Without clients of before, it has no grace period.
rm -rf "$scratch/state"
must "a server that believes clients starts" start_server || { finish; exit 1; }
for VERSION in 3 4; do
  check "v$VERSION: the user is in the group that the client states" reads foreign $USER_ID $FOREIGN
  check "v$VERSION: and in no other" refused last $USER_ID $PRIMARY
done
# Shares say it for themselves, and a change counts at once.
nfs_groups() { "$ANABRANCH" share set own --nfs-groups "$1" --state "$scratch/state"; }
mkdir "$scratch/own"; chmod 1777 "$scratch/own"
must "a share of its own is created" "$ANABRANCH" share create own "$scratch/own" --nfs-groups server --state "$scratch/state"
share_dir=$scratch/own; of_server=$SHARE SHARE=own
file last "$LAST"; file foreign "$FOREIGN"
for VERSION in 3 4; do
  check "v$VERSION: the server decides the groups there" reads last $USER_ID $PRIMARY
  check "v$VERSION: and not the client" refused foreign $USER_ID $FOREIGN
done
must "its groups are those of the client" nfs_groups client
for VERSION in 3 4; do
  check "v$VERSION: the client is believed" reads foreign $USER_ID $FOREIGN
  check "v$VERSION: and the server is not" refused last $USER_ID $PRIMARY
done
SHARE=$of_server share_dir=$scratch/share
must "SIGTERM ends it, too" stop_server
check "the server's log shows neither a panic nor a password" log_is_clean
finish
