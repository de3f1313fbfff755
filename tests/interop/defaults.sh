#!/bin/bash
# The server with its own defaults: SMB must sign, and root of an NFS client is nobody. (The other suites were written and
# measured with relaxed settings.) Runs a part of smbtorture, and the kernel's clients.   (about 3 minutes)
here=$(dirname "$0")
export SIGNING=default SQUASH=default
"$here/../conformance/short" smb2-defaults.txt; torture=$?
"$here/lab.sh" defaults; lab=$?
[ $torture = 0 ] && [ $lab = 0 ]
