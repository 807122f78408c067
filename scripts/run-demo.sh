#!/usr/bin/env bash
# The demo: builds Portcullis, fetches the CRS, starts a small bookshop and puts Portcullis in front of it.
# Shows one benign and one blocked request, then serves until Ctrl-C. It stops only what it started.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
listen=${LISTEN:-127.0.0.1:8080}
upstream=${UPSTREAM_LISTEN:-127.0.0.1:9000}
admin=${ADMIN:-127.0.0.1:9090}
console=${CONSOLE:-127.0.0.1:9443}
events=.portcullis/events.jsonl
data=.portcullis/data
pids=()

stop() {
  trap - EXIT INT TERM
  # The proxy first, so that it drains while its upstream still answers.
  for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
    kill -TERM "${pids[i]}" 2>/dev/null || true
    wait "${pids[i]}" 2>/dev/null || true
  done
}
trap stop EXIT
trap 'echo; exit 0' INT TERM

command -v cargo >/dev/null || { echo "make run needs Rust: install it from https://rustup.rs" >&2; exit 1; }
scripts/fetch-crs.sh
if ! command -v npm >/dev/null; then
  echo "without npm the program is built without its web console (Node.js 18 or later brings it)"
elif ! (cd console && npm ci --no-audit --no-fund --silent && npm run --silent build); then
  echo "the web console could not be built, for the reason above; the program is built without it" >&2
fi
# Not the program to measure or to ship: that one takes ten minutes more (docs/operations.md).
cargo build --profile demo --locked -p portcullis -p portcullis-testkit --bin portcullis --bin demo-upstream

# wait_for ADDRESS PID NAME: until it answers; gives up if the process ends, as it does when the port is taken
wait_for() {
  for _ in $(seq 200); do
    if (exec 3<>"/dev/tcp/${1%:*}/${1##*:}") 2>/dev/null; then
      sleep 0.1
      jobs -pr | grep -qx "$2" && return
    fi
    jobs -pr | grep -qx "$2" || { echo "$3 has stopped; its reason is above" >&2; exit 1; }
    sleep 0.05
  done
  echo "$3 does not answer on $1" >&2
  exit 1
}

target/demo/demo-upstream "$upstream" &
pids+=($!)
wait_for "$upstream" "${pids[0]}" demo-upstream
target/demo/portcullis run --listen "$listen" --upstream "http://$upstream" --mode both --crs .portcullis/crs \
  --events "$events" --admin "$admin" --data "$data" --console "$console" &
pids+=($!)
wait_for "$listen" "${pids[1]}" portcullis
# A new token for each run; it expires after a day. After the start, which shows a one-time link as long as nobody may log in.
token=$(target/demo/portcullis token create --data "$data" --role viewer --name "demo $(date +%s%N)" --expires 1d)

# show URL: the command, and what it really prints
show() {
  echo
  echo "\$ curl -s -o /dev/null -w '%{http_code}' '$1'"
  if command -v curl >/dev/null; then
    curl -s -o /dev/null -w '%{http_code}\n' --max-time 10 "$1"
  else
    echo "(no curl on this machine: open it in a browser)"
  fi
}
# `localhost`, not the address: the CRS counts a numeric Host as a small oddity.
base=http://localhost:${listen##*:}
echo
echo "Portcullis guards http://$upstream on $listen with the semantic detector and the OWASP CRS."
show "$base/search?q=iron+and+oak"
show "$base/search?q=1%27+UNION+SELECT+name,password+FROM+users--+"
echo
echo "\$ curl -s -H 'Authorization: Bearer $token' 'http://$console/api/v1/events?limit=1'"
echo "\$ target/demo/portcullis events --data $data 'verdict = deny and time >= -1h'"
echo
echo "Console: http://$console/  (the first start prints a one-time link above; or: target/demo/portcullis user add NAME --role admin --data $data)"
echo "API: http://$console/api/v1/openapi.json    Metrics: http://$admin/metrics    Events: $events    Ctrl-C stops."
wait "${pids[1]}"
