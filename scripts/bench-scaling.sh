#!/usr/bin/env bash
# What a second worker brings: CPU microseconds per request of the proxy with one and with two workers, and how many requests a second
# of its CPU time answers. wrk and the application (nginx, 23 bytes) need CPU, too, so on a machine of two cores requests a second
# cannot double; what can be seen there is whether a request becomes dearer when two workers run at once. Pairs alternate.
#   scripts/bench-scaling.sh [PAIRS]     SECONDS_EACH=5 MODE=crs|off|semantic|both CONNECTIONS=20
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
for tool in nginx wrk taskset; do
  command -v "$tool" >/dev/null || { echo "bench-scaling: $tool is needed" >&2; exit 1; }
done
program=${PROGRAM:-target/release/portcullis}
mode=${MODE:-crs}
seconds=${SECONDS_EACH:-5}
connections=${CONNECTIONS:-20}
source scripts/started.sh

# CPU clock ticks of a process so far.
ticks() { awk '{ sub(/.*\) /, ""); print $12 + $13 }' "/proc/$1/stat"; }

app=$(port)
cat >"$work/nginx.conf" <<END
daemon off; worker_processes 1; pid $work/nginx.pid; error_log $work/nginx.log crit;
events { worker_connections 4096; }
http { access_log off; keepalive_requests 100000000; client_body_temp_path $work/body;
  proxy_temp_path $work/p; fastcgi_temp_path $work/f; uwsgi_temp_path $work/u; scgi_temp_path $work/s;
  server { listen 127.0.0.1:$app; location / { return 200 "hello from the backend\n"; } } }
END
nginx -c "$work/nginx.conf" &
pids+=($!)
until_open "$app"

# measure NAME WORKERS CPUS: one line
measure() {
  local listen proxy before after requests errors
  listen=$(port)
  taskset -c "$3" "$program" run --listen "127.0.0.1:$listen" --upstream "http://127.0.0.1:$app" --mode "$mode" --workers "$2" \
    $([ "$mode" = crs ] || [ "$mode" = both ] && echo --crs .portcullis/crs) 2>"$work/output" &
  proxy=$!
  pids+=("$proxy")
  until_open "$listen" || { cat "$work/output" >&2; exit 1; }
  local url="http://127.0.0.1:$listen/products?category=books&sort=price&page=7"
  wrk -t1 -c"$connections" -d2s "$url" >/dev/null
  before=$(ticks "$proxy")
  wrk -t1 -c"$connections" -d"${seconds}s" "$url" >"$work/wrk"
  after=$(ticks "$proxy")
  kill -TERM "$proxy"
  wait "$proxy" || true
  requests=$(awk '/requests in/ { print $1 }' "$work/wrk")
  errors=$(awk '/Non-2xx|Socket errors/' "$work/wrk")
  awk -v name="$1" -v ticks=$((after - before)) -v hz="$(getconf CLK_TCK)" -v requests="$requests" -v seconds="$seconds" 'BEGIN {
    cpu = ticks / hz
    printf "%-26s %10.0f %14.1f %16.0f %12.0f %%\n", name, requests / seconds, cpu * 1e6 / requests, requests / cpu, cpu * 100 / seconds }' | tee -a "$work/table"
  [ -z "$errors" ] || echo "  $errors"
}

echo "mode $mode, $connections connections, $seconds s each"
printf '%-26s %10s %14s %16s %14s\n' '' 'requests/s' 'CPU us/request' 'requests/CPU-s' 'CPU of proxy'
cpus=$(($(nproc) - 1))
for _ in $(seq "${1:-3}"); do
  measure '1 worker, core 0' 1 0
  measure "2 workers, cores 0-$cpus" 2 "0-$cpus"
done
awk '/^1 worker/ { one += $(NF - 3); n++ } /^2 workers/ { two += $(NF - 3) }
  END { printf "a CPU second of two workers does %.2f of what one of one worker does: throughput times %.2f where cores are free\n", one / two, 2 * one / two }' "$work/table"
