#!/usr/bin/env bash
# The CRS regression tests as their own runner, go-ftw, sees them: it sends the requests one by one and reads our
# error log, which is in ModSecurity's form. No test is left out and no expectation overridden.
#   scripts/go-ftw.sh [-only REGEX]
# go-ftw is fetched by the Go client, pinned in scripts/go-ftw/go.sum. Stops only what it started.
set -euo pipefail

# Of the pinned CRS, all that go-ftw reads.
count=${CRS_TESTS:?the number of tests; \`make go-ftw\` sets it}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
command -v go >/dev/null || { echo "go-ftw: go is needed; install Go 1.25 or later" >&2; exit 1; }
mkdir -p .portcullis
(cd scripts/go-ftw && GOWORK=off GOFLAGS=-mod=readonly go build -o "$root/.portcullis/go-ftw" .)

source scripts/started.sh

target/debug/crs-backend 127.0.0.1:0 > "$work/backend.txt" 2>&1 &
pids+=($!)
backend=$(addresses "$work/backend.txt" "${pids[0]}" 'listens on \([0-9.:]*\)' 1)

# The rule after the set-up writes go-ftw's marks to the log.
cp tests/crs-suite-setup.conf "$work/setup.conf"
cat >> "$work/setup.conf" <<'RULES'
SecRule REQUEST_HEADERS:X-CRS-Test "@rx ^.*$" \
  "id:999999,pass,phase:1,log,msg:'X-CRS-Test %{MATCHED_VAR}',ctl:ruleRemoveById=1-999999"
RULES
target/debug/portcullis run --listen 127.0.0.1:0 --upstream "http://$backend" --mode crs --crs .portcullis/crs \
  --paranoia 4 --detect-only --http-compat apache --workers 1 --setup "$work/setup.conf" \
  --error-log "$work/error.log" > "$work/portcullis.txt" 2>&1 &
pids+=($!)
proxy=$(addresses "$work/portcullis.txt" "${pids[1]}" ': listening on \([0-9.:]*\)' 1)

.portcullis/go-ftw -tests .portcullis/crs-tests -log "$work/error.log" -address "$proxy" -count "$count" "$@"
