#!/usr/bin/env bash
# Clients as they are installed, through the program to servers of this machine: the SDK and the command line of AWS and
# rclone send objects over TLS to moto, Prometheus writes its samples into a second Prometheus. `make client-test` calls this.
#   scripts/clients.sh [PROGRAM]
# Python's packages are those of scripts/clients/requirements.txt, from the Python at hand if it has them; rclone and
# prometheus are Debian's packages. Modes: semantic and, with the CRS, both.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=${1:-$root/target/debug/portcullis}
# shellcheck source=scripts/started.sh
source "$root/scripts/started.sh"
for needed in rclone prometheus openssl; do
  command -v "$needed" >/dev/null || { echo "clients: $needed is needed; install its package" >&2; exit 1; }
done
python=python3
if ! $python -c 'import boto3, moto.server, awscli' 2>/dev/null; then
  [[ -x $root/.portcullis/clients/bin/python ]] || python3 -m venv "$root/.portcullis/clients"
  python=$root/.portcullis/clients/bin/python
  "$python" -m pip install --quiet --requirement "$root/scripts/clients/requirements.txt"
fi

s3=$(port) receiver=$(port) secure=$(port) plain=$(port) sender=$(port)
"$python" -m moto.server -H 127.0.0.1 -p "$s3" >"$work/moto.log" 2>&1 &
pids+=($!)
mkdir "$work/received" "$work/sent"
echo 'global: { scrape_interval: 1s }' >"$work/received.yml"
prometheus --config.file="$work/received.yml" --storage.tsdb.path="$work/received" \
  --web.enable-remote-write-receiver --web.listen-address="127.0.0.1:$receiver" >"$work/received.log" 2>&1 &
pids+=($!)
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
  -keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null

for mode in semantic both; do
  rules='' allow=''
  if [[ $mode == both ]]; then
    # The CRS knows the types and methods of pages; a server of objects takes all.
    allow='SecRuleRemoveById 911100 920420 920440 920450'
    rules="rules = { crs = \"$root/.portcullis/crs\", directives = \"$allow\" }"
  fi
  cat >"$work/$mode.toml" <<EOF
workers = 2
events = { file = "$work/$mode.jsonl" }
limits = { held_bodies = "1GiB" }
[[listeners]]
name = "tls"
address = "127.0.0.1:$secure"
tls = { certificates = [{ cert = "$work/cert.pem", key = "$work/key.pem" }] }
[[listeners]]
name = "plain"
address = "127.0.0.1:$plain"
[[sites]]
name = "s3"
hosts = ["*"]
listeners = ["tls"]
upstream = "s3"
mode = "$mode"
$rules
[[sites]]
name = "metrics"
hosts = ["*"]
listeners = ["plain"]
upstream = "metrics"
mode = "$mode"
$rules
[upstreams.s3]
endpoints = ["http://127.0.0.1:$s3"]
[upstreams.metrics]
endpoints = ["http://127.0.0.1:$receiver"]
EOF
  "$program" run --config "$work/$mode.toml" >"$work/$mode.log" 2>&1 &
  served=$!
  pids+=("$served")
  for each in "$s3" "$receiver" "$secure" "$plain"; do
    until_open "$each" || { echo "clients: nothing listens at $each" >&2; cat "$work"/*.log >&2; exit 1; }
  done
  "$python" "$root/scripts/clients/s3.py" "https://localhost:$secure" "$work" "$mode"

  rm -rf "$work/sent" && mkdir "$work/sent"
  cat >"$work/sent.yml" <<EOF
global: { scrape_interval: 1s, external_labels: { mode: "$mode" } }
scrape_configs: [{ job_name: "itself", static_configs: [{ targets: ["127.0.0.1:$sender"] }] }]
# A label of Prometheus's own metrics is this URL, which is one of the machine itself here and nowhere else.
remote_write:
  - url: "http://127.0.0.1:$plain/api/v1/write"
    queue_config: { batch_send_deadline: 1s }
    write_relabel_configs: [{ regex: url, action: labeldrop }]
EOF
  prometheus --config.file="$work/sent.yml" --storage.tsdb.path="$work/sent" \
    --web.listen-address="127.0.0.1:$sender" >"$work/sent.log" 2>&1 &
  writer=$!
  pids+=("$writer")
  arrived=0
  for _ in $(seq 120); do
    arrived=$(curl -sG "http://127.0.0.1:$receiver/api/v1/query" \
      --data-urlencode "query=count({mode=\"$mode\"})" |
      "$python" -c 'import json, sys; found = json.load(sys.stdin)["data"]["result"]; print(found[0]["value"][1] if found else 0)')
    [[ $arrived -gt 100 ]] && break
    sleep 0.5
  done
  [[ $arrived -gt 100 ]] || { echo "clients: $mode: $arrived series arrived" >&2; cat "$work/sent.log" >&2; exit 1; }
  echo "$mode: prometheus remote write: $arrived series"
  kill -TERM "$writer" && wait "$writer" || true
  kill -TERM "$served" && wait "$served" || true
done
