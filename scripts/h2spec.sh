#!/usr/bin/env bash
# h2spec, the conformance tests for HTTP/2 (RFC 7540, RFC 7541), against the real binary with inspection on: over TLS, where no
# test may fail, and in clear text with prior knowledge.
#   scripts/h2spec.sh [target/debug/portcullis]
# h2spec is fetched by the Go client, pinned in scripts/h2spec/go.sum. Loopback only; stops only what it started.
set -euo pipefail

# All tests, the strict ones too: a run that read another number has not run what we think.
count=146

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
program=${1:-target/debug/portcullis}
[[ -x $program ]] || { echo "h2spec: $program is missing; cargo build -p portcullis" >&2; exit 1; }
for tool in go openssl; do
  command -v "$tool" >/dev/null || { echo "h2spec: $tool is needed" >&2; exit 1; }
done
mkdir -p .portcullis
(cd scripts/h2spec && GOWORK=off GOFLAGS=-mod=readonly go build -o "$root/.portcullis/h2spec" \
  github.com/summerwind/h2spec/cmd/h2spec)

source scripts/started.sh

target/debug/demo-upstream 127.0.0.1:0 > "$work/backend" 2>&1 &
pids+=($!)
backend=$(addresses "$work/backend" "${pids[0]}" 'listens on \([0-9.:]*\)' 1)
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=localhost" \
  -keyout "$work/own.key" -out "$work/own.pem" 2>/dev/null
cat > "$work/portcullis.toml" <<END
workers = 1
[[listeners]]
address = "127.0.0.1:0"
name = "tls"
tls = { certificates = [{ cert = "own.pem", key = "own.key" }] }
[[listeners]]
address = "127.0.0.1:0"
name = "cleartext"
http2 = { cleartext = true }
[[sites]]
name = "site"
hosts = ["*"]
mode = "semantic"
upstream = "app"
[upstreams.app]
endpoints = ["http://$backend"]
END
"$program" run --config "$work/portcullis.toml" > "$work/output" 2>&1 &
pids+=($!)
{ read -r tls; read -r cleartext; } <<< "$(addresses "$work/output" "${pids[1]}" ': listening on \([0-9.:]*\)' 2)"

failed=0
# run NAME ADDRESS FAILURES OPTIONS...: FAILURES are the tests that may fail, one in a line, after their number
run() {
  local name=$1 address=$2 expected=$3
  shift 3
  .portcullis/h2spec --strict -h "${address%:*}" -p "${address##*:}" -o 5 "$@" > "$work/$name" 2>&1 || true
  echo "== $name: $(tail -1 "$work/$name")"
  [[ $(tail -1 "$work/$name") == "$count tests, "* ]] || { tail -20 "$work/$name" >&2; failed=1; }
  local found
  found=$(sed -n '/^Failures:/,$s/^ *× *[0-9]*: //p' "$work/$name")
  [[ -z $found ]] || sed -n '/^Failures:/,$p' "$work/$name"
  [[ $found == "$expected" ]] || failed=1
}
run tls "$tls" "" -t -k
# What does not begin as HTTP/2 is HTTP/1 on such a listener: it is answered 400, and then closed.
run cleartext "$cleartext" "Sends invalid connection preface"
kill -0 "${pids[1]}" || failed=1
exit "$failed"
