#!/bin/bash
# Several links between two network namespaces, each limited by tc: runs the families of `anabranch bench` over one and over four
# of them, and checks the output of `anabranch advise` for the results. This is the short form of cargo xtask bench links, which
# also judges the throughput: here it is only printed.   (about 2 minutes)
. "$(dirname "$0")/server.sh"
. "$(dirname "$0")/links-net.sh"
# Links slow enough that a debug build, client and server on one machine, fills all four.
links=4 rate=80
if ! why=$(can_make_links); then
  echo "not tested: links and channels: $why"
  for tool in ip tc; do [ -z "${CI:-}" ] || check "$tool, which scripts/install-test-deps installs" command -v $tool; done
  finish; exit
fi
trap 'end_scratch; remove_links' EXIT
must "four links between two namespaces" make_links $links || { finish; exit 1; }
START="ip netns exec $server_ns" listen=0.0.0.0 want_smb=445 want_nfs=2049
must "a server starts behind them" start_server --log warn || { finish; exit 1; }
smb=smb://$SMB_USER:$SMB_PASS@$(address 0)/$SHARE nfs=nfs://$(address 0)$EXPORT

# measure NAME FAMILY TARGET FLAG...: measures the rows of one and of four connections, and writes result and advice into files.
measure() {
  local name=$1 family=$2 target=$3; shift 3
  ip netns exec "$client_ns" "$ANABRANCH" bench run "$family" --connections 1,4 --file-size 512k \
    --seconds "$seconds" --ramp 0.2 --target "$target" --out "$scratch/$name.json" "$@" &&
    "$ANABRANCH" advise --json "$scratch/$name.json" >"$scratch/$name.advice"
}
seconds=0.5
# measure_until EXPRESSION NAME FAMILY...: the same, and longer if the result does not satisfy the expression. On a busy machine
# a row may end before each of its connections has had its turn.
measure_until() {
  local expression=$1 seconds; shift
  for seconds in 0.5 2 6; do
    measure "$@" || return 1
    ! judged "$1" "$expression" || break
  done
}
# judged NAME 'EXPRESSION': evaluates an expression with the result r, ratios(key=value...) of comparisons and
# verdicts(rule, row...) of the advice.
judged() {
  python3 - "$scratch/$1.json" "$scratch/$1.advice" "$2" <<'PYTHON'
import json, sys
result, advice = (json.load(open(path)) for path in sys.argv[1:3])
def ratios(**key):
    chosen = [c for c in result["comparisons"] if all(c["other"][k] == v for k, v in key.items())]
    return [c["rate"]["ratio"]["median"] for c in chosen]
def verdicts(rule, *words):
    return [a["verdict"] for of in advice if all(w in of["row"].split() for w in words) for a in of["advice"] if a["rule"] == rule]
channels = result["environment"]["negotiated"]
def carried(**key):
    "for each row: how many connections carried bytes in its repetition where the most did"
    rows = [r for r in result["rows"] if all(r["key"][k] == v for k, v in key.items())]
    return [max(sum(b > 0 for b in repetition["connection_bytes"]) for repetition in row["repetitions"]) for row in rows]
print(ratios(), carried(), [(a["row"], [(b["rule"], b["verdict"]) for b in a["advice"]]) for a in advice])
sys.exit(0 if eval(sys.argv[3]) else 1)
PYTHON
}

limit_links $links $rate
all_read_and_write='len(ratios()) == 2 and carried(connections=4) == [4, 4]'
deep_all_read_and_write='len(ratios(queue_depth=64)) == 2 and carried(connections=4, queue_depth=64) == [4, 4]'
check "smb-mc-multifile over four links" measure_until "$all_read_and_write" multifile smb-mc-multifile "$smb" --block-size 64k --quick
check "the server has told of its four addresses" judged multifile 'len(channels["server_interfaces"]) == 4 and channels["connections"] == 4'
check "four channels carry bytes, reads and writes" judged multifile "$all_read_and_write"
check "advice speaks of channels for several threads on several files (R1)" judged multifile 'len(verdicts(1)) == 2'
check "nfs-nconnect over four links" measure_until "$deep_all_read_and_write" trunked nfs-nconnect "$nfs?vers=4.1" --block-size 64k --quick \
  --address "$(address 0)" --address "$(address 1)" --address "$(address 2)" --address "$(address 3)"
check "four trunked connections carry bytes" judged trunked "$deep_all_read_and_write"
check "advice speaks of connections for a deep queue (R7)" judged trunked 'len(verdicts(7, "qd=64")) == 2'

# With one operation under way, no link waits for another.
limit_links $links $rate bare
check "single-thread over four links" measure single single-thread "$smb" --block-size 64k --repetitions 3
check "advice speaks of channels for one thread (R3)" judged single 'len(verdicts(3)) == 4'

must "one link, each connection limited" limit_flows $rate
check "nfs-nconnect over one link" measure_until "$deep_all_read_and_write" nconnect nfs-nconnect "$nfs?vers=3" --block-size 64k --quick
check "four connections carry bytes" judged nconnect "$deep_all_read_and_write"
check "advice speaks of connections for a deep queue (R7), whatever the version" judged nconnect 'len(verdicts(7, "qd=64")) == 2'

check "no panic, no password in the log" log_is_clean
must "SIGTERM ends it" stop_server
finish
