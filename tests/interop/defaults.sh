#!/bin/bash
# The server with its own defaults, which the other suites relax as they were written and measured: SMB must sign, and root of an NFS client
# is nobody. A part of smbtorture, and the kernel's clients.   (about 3 minutes)
here=$(dirname "$0")
export SIGNING=default SQUASH=default
"$here/../conformance/short" smb2-defaults.txt; torture=$?
"$here/lab.sh" defaults; lab=$?
[ $torture = 0 ] && [ $lab = 0 ]
