#!/usr/bin/env bash
# The WebSocket cases of the Autobahn test suite against its own echo server, once without us and once through us. They must come
# out alike, and none may fail.
#   scripts/websocket.sh [target/debug/portcullis]
# autobahntestsuite comes from PyPI, pinned, into .portcullis/autobahn; it needs Python 2.7 (PYTHON2=path). Loopback only;
# stops only what it started.
set -euo pipefail

# Without those of compression (12, 13), which the echo server does not know: a run of another number has not run what we think.
count=301

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
program=$root/${1:-target/debug/portcullis}
python2=${PYTHON2:-python2.7}
[[ -x $program ]] || { echo "websocket: $program is missing; cargo build -p portcullis" >&2; exit 1; }
"$python2" -c 'import sys; sys.exit(sys.version_info[:2] != (2, 7))' 2>/dev/null \
  || { echo "websocket: Python 2.7 is needed; name it in PYTHON2" >&2; exit 1; }
suite=$root/.portcullis/autobahn
if [[ ! -e $suite/bin/wstest ]]; then
  "$python2" -m pip install --disable-pip-version-check -q --target "$suite" autobahntestsuite==0.8.2
fi

source scripts/started.sh

# The folder holds a namespace package, which PYTHONPATH alone does not find.
cat > "$work/wstest.py" <<END
import site, sys
site.addsitedir("$suite")
sys.path.insert(0, "$suite")
from autobahntestsuite.wstest import run
run()
END
cd "$work"

# await PORT PID FILE: until something listens there
await() {
  for _ in $(seq 300); do
    (exec 3<> "/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
    kill -0 "$2" 2>/dev/null || break
    sleep 0.1
  done
  echo "websocket: nothing listens on port $1:" >&2
  tail -20 "$3" >&2
  return 1
}

# The suite cannot be told to take any port and say which.
read -r echo front < <("$python2" -c 'import socket
both = [socket.socket() for _ in range(2)]
for one in both: one.bind(("127.0.0.1", 0))
print(" ".join(str(one.getsockname()[1]) for one in both))')
"$python2" -W ignore wstest.py -m echoserver -u 0 -w "ws://127.0.0.1:$echo" > echo.log 2>&1 &
pids+=($!)
await "$echo" "${pids[0]}" echo.log
# The echo server looks at the port in Host.
cat > portcullis.toml <<END
workers = 1
[[listeners]]
address = "127.0.0.1:$front"
[[sites]]
name = "site"
hosts = ["*"]
mode = "semantic"
upstream = "app"
[[sites.routes]]
path = "/"
request_headers = { set = { Host = "127.0.0.1:$echo" } }
[upstreams.app]
endpoints = ["http://127.0.0.1:$echo"]
END
"$program" run --config portcullis.toml > portcullis.log 2>&1 &
pids+=($!)
await "$front" "${pids[1]}" portcullis.log

cat > cases.json <<END
{"outdir": "reports", "cases": ["*"], "exclude-cases": ["12.*", "13.*"], "exclude-agent-cases": {}, "servers": [
  {"agent": "direct", "url": "ws://127.0.0.1:$echo"}, {"agent": "portcullis", "url": "ws://127.0.0.1:$front"}]}
END
"$python2" -W ignore wstest.py -m fuzzingclient -s cases.json > client.log 2>&1 || { tail -20 client.log >&2; exit 1; }
"$python2" - "$count" <<'END'
from __future__ import print_function
import json, sys
from collections import Counter
both = json.load(open("reports/index.json"))
results = {agent: {case: (r["behavior"], r["behaviorClose"]) for case, r in cases.items()} for agent, cases in both.items()}
for agent in sorted(results):
    words = Counter(behavior for behavior, _ in results[agent].values())
    print("%s: %d cases, %s" % (agent, len(results[agent]), ", ".join("%d %s" % (n, w) for w, n in words.most_common())))
direct, through = results["direct"], results["portcullis"]
other = sorted(case for case in direct if through.get(case) != direct[case])
failed = sorted(case for case, words in through.items() if "FAILED" in words or "UNCLEAN" in words)
for case in other + failed:
    print("case", case, "direct", direct[case], "through us", through.get(case))
sys.exit(bool(other or failed or len(through) != int(sys.argv[1])))
END
