# Snapshots of the shares `projects` and `beside`, a part of cephfs-shares.sh: those of the server, of others, and of directories above.
theirs=scheduled-2026-11-27-05_00_00_UTC
# content TEXT FILE: a client writes this.
content() { echo "$1" >"$scratch/text"; smb_does "put $scratch/text $2"; }
# Snapshots have whole seconds, and the server looks for others once a second.
pause() { sleep 2.1; }
taken() { snapshot list "$1" | grep -o "^anabranch\.$2\.[^ ]*"; }
# times FILE: of which there are versions, as smbclient prints them, latest first.
times() { smb "allinfo $1" | grep -o '^@GMT-[0-9.]*-[0-9.]*'; }
count_is() { local n; n=$(times "$2" | wc -l); echo "$n versions"; [ "$n" = "$1" ]; }
# got TEXT PATH: over SMB. nfs_got TEXT PATH VERSION: over NFS.
got() { rm -f "$scratch/got"; smb_does "get \"$2\" $scratch/got" && [ "$(cat "$scratch/got")" = "$1" ]; }
nfs() { timeout 120 "$1" "nfs://127.0.0.1/projects/$2?nfsport=$NFS_PORT&mountport=$NFS_PORT&version=$3&uid=1000&gid=1000" 2>&1; }
nfs_got() { local out; out=$(nfs nfs-cat "$2" "$3"); [ "$out" = "$1" ] || { echo "$out"; return 1; }; }

check "a file is written" content first 'a\v'
check "and a named stream" content beside 'a\v:s'
check "others take a snapshot of the directory above" in_cephfs 'fs.mkdir(b"/.snap/whole", 0o755)'
pause
check "a snapshot is taken" snapshot create projects --label before
before=$(taken projects before)
pause
check "the file is changed" content second 'a\v'
check "and its stream" content 'later' 'a\v:s'
check "others take a snapshot" in_cephfs "fs.mkdir(b'/projects/.snap/$theirs', 0o755)"
pause
check "the file is removed" smb_does 'del a\v'
check "there is another one" content third 'a\v'
check "and one that is new" content new 'a\new'
check "SMB clients see three versions" count_is 3 'a\v'
check "and none of a new file" count_is 0 'a\new'
mapfile -t when < <(times 'a\v')
check "they get what others have kept" got second "${when[0]}"'\a\v'
check "they get what the server has kept" got first "${when[1]}"'\a\v'
check "with its stream" got beside "${when[1]}"'\a\v:s'
check "they get what was in the directory above" got first "${when[2]}"'\a\v'
check "and the file of now" got third 'a\v'
refused=$(smb "del ${when[1]}\\a\\v")
check "a version cannot be removed" grep -q MEDIA_WRITE_PROTECTED <<<"$refused"
for version in 3 4; do
  # libnfs cannot read this list in version 4; the kernel's client can (snapshots.sh).
  [ $version = 4 ] || check "NFSv$version: the snapshots are listed" tells "$theirs" nfs nfs-ls .snapshot $version
  check "NFSv$version: what the server has kept" nfs_got first ".snapshot/$before/a/v" $version
  check "NFSv$version: by the directory" nfs_got second "a/.snapshot/$theirs/v" $version
  check "NFSv$version: of the directory above" nfs_got first "a/.snapshot/_whole_1/v" $version
  check "NFSv$version: the file of now" nfs_got third a/v $version
  check "NFSv$version: CephFS' own directory is not there" tells "NOENT" nfs nfs-ls .snap $version
done
check "the list has those of others" tells "$theirs" snapshot list projects
check "whose removal is refused" tells "another program made the snapshot $theirs" snapshot remove projects "$theirs"
check "the share cannot go back" tells "CephFS cannot go back to a snapshot" "$ANABRANCH" share revert projects --to "$before" \
  --state "$scratch/state"
check "others remove theirs" in_cephfs "fs.rmdir(b'/projects/.snap/$theirs'); fs.rmdir(b'/.snap/whole')"
check "the server removes its own" snapshot remove projects "$before"
pause
check "no version is left" count_is 0 'a\v'
check "and none is found" tells OBJECT_NAME_NOT_FOUND smb "get ${when[1]}\\a\\v $scratch/got"

# A policy whose minute is the next one but one, so that it does not pass while the policy is made.
minute=$(date -ud '+2 minutes' +%M)
check "a policy is made" "$ANABRANCH" policy create office --hourly ":$minute/2" --state "$scratch/state"
check "a share gets it" "$ANABRANCH" share set beside --snapshot-policy office --state "$scratch/state"
check "and takes its snapshot" until_true taken beside hourly-office
# As many as there can be, with one of the directory above: the 101st is refused.
check "others take the rest" in_cephfs 'fs.mkdir(b"/.snap/whole", 0o755)
for n in range(98): fs.mkdir(b"/beside/.snap/x%d" % n, 0o755)'
check "one more is refused, with the limit" tells "the share beside has 100 snapshots, and CephFS keeps no more of a directory" \
  snapshot create beside
check "and how to raise it" tells "ceph config set mds mds_max_snaps_per_dir" snapshot create beside
check "the limit is raised" "$lab" ceph config set mds mds_max_snaps_per_dir 200
pause
check "and a snapshot is taken" snapshot create beside
