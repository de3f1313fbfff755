#!/bin/bash
# Programs that replace the contents of files, through the kernel's clients; ../../interop/ransomware.sh says what the server should
# think of them. Environment:
#   SERVER SMB_PORT NFS_PORT SHARE EXPORT USER PASS   where and as whom
#   WHAT   attack: as ransomware does; work: as people do
#   VERSIONS   of NFS (3 4.2)
. "$(dirname "$0")/lib.sh"
: "${SMB_PORT:=445}" "${NFS_PORT:=2049}" "${SHARE:=share}" "${EXPORT:=/share}" "${USER:=user}" "${PASS:=pass}"
FILES=12
each() { local i; for ((i = 0; i < FILES; i++)); do "$1" $i || return 1; done; }
noise() { head -c "$1" /dev/urandom; }
encrypted() { openssl enc -aes-256-ctr -pbkdf2 -nosalt -pass pass:secret -in "$1"; }

attack() { # what an attacker does with files that somebody else has written, in $1
  local d=$1
  in_place() { encrypted "$d/in-place/$1.txt" >/tmp/new && cat /tmp/new 1<>"$d/in-place/$1.txt"; }
  emptied() { encrypted "$d/emptied/$1.txt" >/tmp/new && cat /tmp/new >"$d/emptied/$1.txt"; }
  beside() { encrypted "$d/beside/$1.txt" >"$d/beside/$1.txt.locked" && rm "$d/beside/$1.txt"; }
  over() { encrypted "$d/over/$1.txt" >"$d/over/tmp" && mv "$d/over/tmp" "$d/over/$1.txt"; }
  renamed() { mv "$d/renamed/$1".* "$d/renamed/$1.crypted"; }
  for how in in_place emptied beside over renamed; do check "$2: files are encrypted: $how" each $how; done
}

photo() { printf '\377\330\377\340'; noise 40000; }
work() { # what people do, in the empty directory $1
  local d=$1
  cd "$d" || return
  import() { photo >"/tmp/photo$1.jpg" && cp "/tmp/photo$1.jpg" "$d/photo$1.jpg"; }
  retouch() { photo >"$d/retouched" && mv "$d/retouched" "$d/photo$1.jpg"; }
  write_text() { seq "$1" 3000 >"$d/text$1"; }
  save() { seq "$1" 2000 >"$d/saved" && mv "$d/saved" "$d/text$1"; }
  unpack() {
    mkdir -p /tmp/packed && noise 20000 >/tmp/packed/data && seq 5000 | gzip >/tmp/packed/list.gz && cp /bin/ls /tmp/packed/ls || return 1
    tar -C /tmp -cf "$d/packed$1.tar" packed && mkdir "$d/unpacked$1" && tar -C "$d/unpacked$1" -xf "$d/packed$1.tar" && rm "$d/packed$1.tar"
  }
  compress() { cp "$d/text$1" "$d/old$1.txt" && gzip "$d/old$1.txt"; }
  back_up() { mkdir -p "$d/backup" && noise 30000 >"$d/backup/pack$1" && { [ "$1" = 0 ] || rm "$d/backup/pack$(($1 - 1))"; }; }
  disk() { noise 8000 | dd of="$d/disk" bs=4096 seek="$1" conv=notrunc status=none; }
  build() { perl -e 'print "\177ELF", pack("N*", map { $_ * 3 } 1..3000)' >"$d/object$1.o" && cat "$d"/object*.o >"$d/program"; }
  clean() { rm -f "$d/object$1.o"; }
  rename_all() { mv "$d/photo$1.jpg" "$d/photo$1.jpeg"; }
  keep_old() { cp "$d/text$1" "$d/kept$1" && mv "$d/kept$1" "$d/text$1.bak"; }
  for what in import retouch write_text save unpack compress back_up disk build build clean rename_all keep_old; do
    check "$2: $what" each $what
  done
  if command -v rsync >/dev/null; then
    again() { mkdir -p /tmp/from && seq "$1" 4000 >"/tmp/from/text$1" && noise 50000 >"/tmp/from/data$1" && photo >"/tmp/from/photo$1.jpg" && rsync -a /tmp/from/ "$d/to/" && rsync -a --inplace --ignore-times /tmp/from/ "$d/to/"; }
    check "$2: rsync, anew and in place" each again
  fi
  if command -v tcc >/dev/null; then
    compile() { echo "int f$1(int n) { return n * $1 + 3; }" >"$d/f$1.c" && tcc -c "$d/f$1.c" -o "$d/f$1.o" && tcc -r "$d"/f*.o -o "$d/all.o"; }
    check "$2: tcc, twice" sh -c true && each compile && each compile
  fi
  cd / || return
}

check "smb: mount" mount_at /mnt/smb -t cifs "//$SERVER/$SHARE" -o "vers=3.1.1,port=$SMB_PORT,username=$USER,password=$PASS"
mountpoint -q /mnt/smb && "$WHAT" /mnt/smb/smb smb
umount /mnt/smb
for version in ${VERSIONS:-3 4.2}; do
  m=/mnt/nfs$version
  check "nfs v$version: mount" mount_at $m -t nfs "$SERVER:$EXPORT" -o "vers=$version,port=$NFS_PORT,proto=tcp,hard,timeo=100$([ $version != 3 ] || echo ",mountport=$NFS_PORT,nolock")"
  mountpoint -q $m && "$WHAT" "$m/nfs$version" "nfs v$version"
  umount $m
done
