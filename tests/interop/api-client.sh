#!/bin/bash
# Every call of the API, by a client that openapi-python-client makes of /v1/openapi.json. Needs the package index of Python.
. "$(dirname "$0")/server.sh"
must "server starts" start_server || { finish; exit 1; }
control=$(sed -n 's/.*control=//p' "$scratch/ready")
admin() { "$ANABRANCH" "$@" --state "$scratch/state"; }
token=$(admin token create tester --scope all --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["token"])')
get() { curl -fsS --max-time 60 --noproxy '*' -H "Authorization: Bearer $token" "http://$control$1"; }

if ! { python3 -m venv "$scratch/python" && "$scratch/python/bin/pip" -q install openapi-python-client==0.29.1; } >"$scratch/said" 2>&1; then
  # The machine may reach no package index.
  [ -n "${CI:-}" ] || { echo "not tested: api: $(tail -n 1 "$scratch/said")"; finish; exit; }
fi
make_client() {
  get /v1/openapi.json >"$scratch/openapi.json" &&
    "$scratch/python/bin/openapi-python-client" generate --path "$scratch/openapi.json" --meta none --output-path "$scratch/api_of_server" &&
    [ "$(grep -l sync_detailed "$scratch"/api_of_server/api/default/*.py | wc -l)" -ge 30 ]
}
must "a client is made of the description" make_client || { finish; exit 1; }

# A client that works in the share until it is disconnected, or the script ends.
while [ -e "$scratch/ready" ] && echo ls && sleep 0.05; do :; done 2>/dev/null |
  timeout 300 smbclient "//127.0.0.1/$SHARE" -p "$SMB_PORT" -U "$SMB_USER%$SMB_PASS" >/dev/null 2>&1 &
connected() { for _ in $(seq 300); do get /v1/clients | grep -q client_guid && return; sleep 0.2; done; return 1; }
check "a client works" connected
mkdir "$scratch/made"
every_call() { PYTHONPATH="$scratch" timeout 300 "$scratch/python/bin/python" "$top/tests/interop/api_client.py" "http://$control" "$token" "$scratch/made"; }
check "every call" every_call
finish
