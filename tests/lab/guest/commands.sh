#!/bin/bash
# Runs the commands that tests/pages/page.py leaves in /share/client: client-lab run --netns $LAB_NETNS --share $LAB_STATE guest/commands.sh
# with ad-lab, until the guest is ended.
. /guest/krb5-env.sh
cd /share/client || exit
rm -f status
while :; do
  until [ -e command ]; do sleep 0.1; done
  mv command running
  (. running) >printed 2>&1 </dev/null
  echo $? >status.new
  mv status.new status
done
