#!/bin/bash
# One share, two protocols: the same folder mounted over SMB and over NFS by the kernel's own
# clients; what one writes the other reads. Environment:
#   SERVER SMB_PORT SHARE USER PASS   the share over SMB
#   NFS_PORT MOUNT_PORT EXPORT        the same over NFS
#   VERSION     of NFS: 3 (default), 4.1 or 4.2
#   MOUNT_OPTS  further options of the SMB mount (nolease: caching across protocols is not looked at)
#   OWNER     the numeric user that files made over SMB belong to; empty: not checked
#   SKIP      checks to leave out, comma separated (the functions' names)
. "$(dirname "$0")/lib.sh"
: "${SMB_PORT:=445}" "${SHARE:=share}" "${USER:=user}" "${PASS:=pass}"
: "${NFS_PORT:=2049}" "${EXPORT:=/export}" "${MOUNT_PORT:=$NFS_PORT}" "${VERSION:=3}" "${OWNER:=}" "${SKIP:=}"
[ "$VERSION" != 3 ] || v3="mountport=$MOUNT_PORT,mountproto=tcp,nolock,"
umask 0   # so that the SMB user may write what root makes over NFS
s=/mnt/smb n=/mnt/nfs d=both.$$
check "mount over SMB" mount_at $s -t cifs "//$SERVER/$SHARE" -o "vers=3.1.1,port=$SMB_PORT,username=$USER,password=$PASS,cache=none,actimeo=0,nolease,iocharset=utf8${MOUNT_OPTS:+,$MOUNT_OPTS}"
check "mount over NFS" mount_at $n -t nfs "$SERVER:$EXPORT" -o "vers=$VERSION,port=$NFS_PORT,proto=tcp,${v3:-}noac,lookupcache=none"
mountpoint -q $s && mountpoint -q $n || { finish; exit 1; }
mkdir $s/$d && chmod 777 $n/$d || { fail "a folder to work in"; finish; exit 1; }
s=$s/$d n=$n/$d

is() { [ "$1" = "$2" ] || { echo "${3:-}$1 is not $2"; return 1; }; }
same() { cmp "$1" "$2"; }
gone() { if [ -e "$1" ] || ls "$(dirname "$1")" | grep -qxF "$(basename "$1")"; then echo "$1 is still there"; return 1; fi; }
names() { ls -A "$1" | LC_ALL=C sort; }
big() { head -c 32M /dev/urandom >/tmp/big; cp /tmp/big "$1/big" && sync -f "$1/big" && echo 3 >/proc/sys/vm/drop_caches && same /tmp/big "$2/big" && rm "$2/big" && gone "$1/big"; }

smb_to_nfs() { echo from-smb >$s/a && is "$(cat $n/a)" from-smb; }
nfs_to_smb() { echo from-nfs >$n/b && is "$(cat $s/b)" from-nfs; }
big_smb_to_nfs() { big $s $n; }
big_nfs_to_smb() { big $n $s; }
overwrite() { echo longer-than-before >$n/a && is "$(cat $s/a)" longer-than-before && echo x >$s/a && is "$(cat $n/a)" x; }
append() { printf 1 >$s/app; printf 2 >>$n/app; printf 3 >>$s/app; printf 4 >>$n/app; is "$(cat $s/app)" 1234 && is "$(cat $n/app)" 1234; }
sizes() {
  head -c 70000 /dev/zero >$s/size; is "$(stat -c %s $n/size)" 70000 || return 1
  truncate -s 100 $n/size; is "$(stat -c %s $s/size)" 100 || return 1
  truncate -s 5000000000 $s/size; is "$(stat -c %s $n/size)" 5000000000 && rm $n/size
}
rename_by_nfs() { echo r >$s/r1 && mv $n/r1 $n/r2 && is "$(cat $s/r2)" r && gone $s/r1; }
rename_by_smb() { mv $s/r2 $s/r3 && is "$(cat $n/r3)" r && gone $n/r2; }
rename_over() { echo old >$n/o && echo new >$s/o.new && mv $s/o.new $s/o && is "$(cat $n/o)" new; }
delete_by_nfs() { echo x >$s/d1 && rm $n/d1 && gone $s/d1; }
delete_by_smb() { echo x >$n/d2 && rm $s/d2 && gone $n/d2; }
folders() { mkdir $n/f && mkdir $s/f/g && echo x >$n/f/g/h && is "$(cat $s/f/g/h)" x && ! rmdir $s/f/g 2>/dev/null && rm $s/f/g/h && rmdir $n/f/g && gone $s/f/g && rmdir $s/f && gone $n/f; }
listings() {
  mkdir $n/list; local i; for i in $(seq 150); do echo >$n/list/n$i; echo >$s/list/s$i; done
  is "$(names $n/list | wc -l)" 300 && is "$(names $s/list)" "$(names $n/list)" "names " && rm -r $s/list && gone $n/list
}
unicode() { local u; u=$(printf 'gr\303\274n \346\274\242 \360\237\230\200'); echo u >"$n/$u" && is "$(cat "$s/$u")" u && mv "$s/$u" "$s/x$u" && is "$(cat "$n/x$u")" u; }
case_of_names() { echo c >$n/CaSe && is "$(cat $s/cAsE)" c && is "$(ls $s | grep -ix case)" CaSe && ! [ -e $n/cAsE ]; }
times_by_nfs() { touch -d '2001-02-03 04:05:06.7890123' $n/b && is "$(stat -c %y $s/b)" "$(stat -c %y $n/b)"; }
times_by_smb() { touch -d '2011-12-13 14:15:16.1234567' $s/b && is "$(stat -c %y $n/b)" "$(stat -c %y $s/b)"; }
new_times() { local t; echo t >$s/t; t=$(stat -c %Y $n/t); [ $(($(date +%s) - t)) -lt 60 ] && is "$(stat -c %y $s/t | cut -c 1-27)" "$(stat -c %y $n/t | cut -c 1-27)"; }  # SMB has units of 100 ns
file_ids() { is "$(stat -c %i $s/a)" "$(stat -c %i $n/a)"; }
hard_link() { echo l >$n/l1 && ln $n/l1 $n/l2 && is "$(stat -c %h $s/l2)" 2 && echo more >>$s/l2 && is "$(tail -n 1 $n/l1)" more; }
owner() { [ -z "$OWNER" ] || is "$(stat -c %u $n/a)" "$OWNER" "owner "; }
permission() {  # what the mode bits refuse is refused to the SMB user too
  [ -z "$OWNER" ] && return 0
  echo secret >$n/p && chown 12345:12345 $n/p && chmod 600 $n/p || return 1
  if cat $s/p 2>/dev/null; then echo "read in spite of mode 600"; return 1; fi
  if echo x 2>/dev/null >>$s/p; then echo "written in spite of mode 600"; return 1; fi
  chmod 644 $n/p && is "$(cat $s/p)" secret
}
open_meanwhile() {  # a file open over SMB sees what NFS appends
  printf one >$s/m; exec 8<$s/m; printf two >>$n/m
  local got; got=$(cat <&8); exec 8<&-; is "$got" onetwo
}
odd_names() {  # names that Windows cannot have do not disturb its listing
  echo x >"$n/with:colon"; echo x >"$n/with\\backslash"; echo x >"$n/question?"; echo y >$n/ordinary
  ls $s >/tmp/listed && grep -qx ordinary /tmp/listed && is "$(cat $s/ordinary)" y && rm "$n/with:colon" "$n/with\\backslash" "$n/question?"
}
symlinks() {  # made and renamed over NFS: read, followed and removed over SMB
  echo in-d >$n/d.f && mkdir -p $n/d.d && echo deep >$n/d.d/f || return 1
  ln -s d.f $n/ln.file && ln -s ./d.d $n/ln.dir && ln -s ../d.f $n/d.d/up && ln -s no/where $n/ln.lost &&
    ln -s /etc/hostname $n/ln.abs && ln -s ln.loop $n/ln.loop && echo odd >"$n/a:b?" && ln -s "a:b?" $n/ln.odd || return 1
  local l
  for l in ln.file ln.dir d.d/up ln.lost ln.abs ln.loop; do
    is "$(readlink $s/$l)" "$(readlink $n/$l)" "$l: " && is "$(stat -c %F $s/$l)" "symbolic link" "$l: " || return 1
  done
  is "$(ls -l $s | grep -c '^l')" 6 "links listed: " || return 1
  is "$(cat $s/ln.odd)" odd || return 1  # Linux 6.1 shows the private characters of that target
  is "$(cat $s/ln.file)" in-d && is "$(cat $s/ln.dir/f)" deep && is "$(cat $s/ln.dir/up)" in-d || return 1
  is "$(cat $s/ln.abs)" "$(cat /etc/hostname)" "the client's own file: " || return 1
  echo through >$s/ln.file && is "$(cat $n/d.f)" through || return 1
  ! cat $s/ln.lost 2>/tmp/said && grep -q 'No such file' /tmp/said || { cat /tmp/said; return 1; }
  ! cat $s/ln.loop 2>/tmp/said && grep -q 'Too many levels' /tmp/said || { cat /tmp/said; return 1; }
  mv $n/ln.file $n/ln.moved && is "$(readlink $s/ln.moved)" d.f && gone $s/ln.file || return 1  # Linux 6.1 cannot over SMB
  rm $s/ln.moved $s/ln.dir $s/ln.lost $s/ln.abs $s/ln.loop $s/ln.odd || return 1
  is "$(names $n | grep -c '^ln')" 0 "links left: " && is "$(cat $n/d.f)" through && is "$(cat $n/d.d/f)" deep
}
symlinks_replaced() {  # another target, and a file in the place of a link, are seen by both
  ln -s one $n/ln.r && is "$(readlink $s/ln.r)" one && ln -sfn two $n/ln.r && is "$(readlink $s/ln.r)" two || return 1
  echo file >$s/ln.new && mv $s/ln.new $s/ln.r && is "$(cat $n/ln.r)" file && is "$(stat -c %F $n/ln.r)" "regular file"
}
free_space() { local a b; a=$(stat -f -c "%S %b" $s | awk "{print int(\$1 * \$2 / 16777216)}"); b=$(stat -f -c "%S %b" $n | awk "{print int(\$1 * \$2 / 16777216)}"); is "$a" "$b"; }
parallel_writers() {  # two clients, one file, ranges of their own
  local i; truncate -s 8M $n/pw
  (for i in $(seq 0 2 15); do head -c 512K /dev/zero | tr '\0' s | dd of=$s/pw bs=512K seek=$i conv=notrunc status=none; done) &
  (for i in $(seq 1 2 15); do head -c 512K /dev/zero | tr '\0' n | dd of=$n/pw bs=512K seek=$i conv=notrunc status=none; done); wait
  local want; want=$(for i in $(seq 8); do head -c 512K /dev/zero | tr '\0' s; head -c 512K /dev/zero | tr '\0' n; done | sha256sum)
  is "$(sha256sum <$s/pw)" "$want" && is "$(sha256sum <$n/pw)" "$want"
}

for c in smb_to_nfs nfs_to_smb big_smb_to_nfs big_nfs_to_smb overwrite append sizes rename_by_nfs rename_by_smb rename_over \
  delete_by_nfs delete_by_smb folders listings unicode case_of_names times_by_nfs times_by_smb new_times file_ids hard_link \
  owner permission open_meanwhile odd_names symlinks symlinks_replaced free_space parallel_writers; do
  case ",$SKIP," in *",$c,"*) echo "skip $c" ;; *) check "both: $c" $c ;; esac
done
rm -rf "$n"; check "tidy up" gone $s
check "unmount both" umount /mnt/smb /mnt/nfs
finish
