#!/bin/bash
# Symbolic links over SMB: by smbprotocol, which makes and follows them, and by smbclient, which lists them. The kernel's
# clients are in lab.sh (both). Needs the package index of Python.
. "$(dirname "$0")/server.sh"
must "server starts" start_server || { finish; exit 1; }
if ! { python3 -m venv "$scratch/python" && "$scratch/python/bin/pip" -q install smbprotocol==1.17.0; } >"$scratch/said" 2>&1; then
  # The machine may reach no package index.
  [ -n "${CI:-}" ] || { echo "not tested: symlinks: $(tail -n 1 "$scratch/said")"; finish; exit; }
fi
tally "smbprotocol:" "$scratch/python/bin/python" "$top/tests/interop/symlinks.py" "$SMB_PORT" "$SHARE" "$SMB_USER" "$SMB_PASS" "$share_dir"

smb() { timeout 60 smbclient "//127.0.0.1/$SHARE" -p "$SMB_PORT" -U "$SMB_USER%$SMB_PASS" -c "$1" 2>&1; }
says() { local out; out=$(smb "$2"); echo "$out"; grep -q -- "$1" <<<"$out"; }
ln -s f "$share_dir/link"; ln -s nowhere "$share_dir/lost"; ln -s /etc/passwd "$share_dir/outside"; ln -s d "$share_dir/dir"
for name in link lost outside dir f d; do
  check "smbclient: ls shows $name" says "^  $name  " ls
done
check "smbclient: a link is no file" says 'NT_STATUS_STOPPED_ON_SYMLINK' 'get link /dev/null'
check "smbclient: nothing outside is read" says 'NT_STATUS_STOPPED_ON_SYMLINK' 'get outside /dev/null'
check "smbclient: allinfo" says 'attributes: .*\(r\|400\|420\)' 'allinfo link'
removed() { smb "rm link; rm lost; rm outside; rm dir"; [ ! -L "$share_dir/link" ] && [ ! -L "$share_dir/dir" ] && [ -f "$share_dir/f" ] && [ -d "$share_dir/d" ]; }
check "smbclient: rm removes the links" removed
check "no panic, no password in the log" log_is_clean
must "SIGTERM ends it" stop_server
finish
