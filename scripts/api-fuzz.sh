#!/bin/sh
# Runs schemathesis against the admin API of a Portcullis with a folder of its own; fails if there is a finding.
# EXAMPLES: for each operation and phase. The stream of events has no end, and is left out.
set -eu
cd "$(dirname "$0")/.."
version=4.32.5
venv=.portcullis/schemathesis-$version
program=${PORTCULLIS:-target/debug/portcullis}
console=127.0.0.1:${CONSOLE_PORT:-19643}
if [ ! -x "$venv/bin/schemathesis" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet "schemathesis==$version"
fi
data=$(mktemp -d)
token=$("$program" token create --data "$data" --role admin --name api-fuzz --expires 1h)
cat >"$data/portcullis.toml" <<TOML
listeners = [{ address = "127.0.0.1:${LISTEN_PORT:-19680}" }]
access = { deny = { networks = ["198.51.100.0/24"] } }
[[sites]]
name = "shop"
hosts = ["*"]
upstream = "app"
[[sites.semantic.exclude]]
class = "xss"
location = "form:text"
[upstreams.app]
endpoints = ["http://127.0.0.1:9"]
TOML
"$program" run --config "$data/portcullis.toml" --data "$data" --console "$console" 2>"$data/log" &
server=$!
trap 'kill $server 2>/dev/null; rm -rf "$data"' EXIT
for _ in $(seq 100); do
    curl --silent --fail --output /dev/null "http://$console/api/v1/health" && break
    kill -0 $server || { cat "$data/log"; exit 1; }
    sleep 0.1
done
fuzz() {
    "$venv/bin/schemathesis" run "http://$console/api/v1/openapi.json" -H "Authorization: Bearer $token" \
        --exclude-path /api/v1/events/stream -n "${EXAMPLES:-30}" --seed "${SEED:-1}" --warnings off --no-color "$@"
}
# One operation revokes the token of the run, and comes last.
fuzz --exclude-name 'DELETE /api/v1/tokens/{id}' --max-time "${SECONDS_MAX:-180}"
fuzz --include-name 'DELETE /api/v1/tokens/{id}' --max-time 30
kill -0 $server || { echo 'Portcullis ended meanwhile' >&2; cat "$data/log"; exit 1; }
