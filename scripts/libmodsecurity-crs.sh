#!/usr/bin/env bash
# The CRS regression tests through nginx with libmodsecurity in its module: ours, or with LIBRARY=FOLDER another one
# (LIBRARY=/usr/lib/x86_64-linux-gnu is Debian's). Judged by nginx's error log.
# With RUNNER=go-ftw they are sent and judged by go-ftw, as scripts/go-ftw.sh does it; flags are those of go-ftw then.
# With COMPAT=ModSecurity2 ours has the semantics of ModSecurity 2.
#   scripts/libmodsecurity-crs.sh [--filter 942] [further flags of crs-suite]
# Stops only what it started.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
source scripts/started.sh

if [[ -z ${LIBRARY:-} ]]; then
  cp "${CARGO_TARGET_DIR:-target}/debug/libmodsecurity.so" "$work/libmodsecurity.so.3"
  LIBRARY=$work
fi
bin=${CARGO_TARGET_DIR:-target}/debug
"$bin/crs-backend" 127.0.0.1:0 > "$work/backend.txt" 2>&1 &
pids+=($!)
backend=$(addresses "$work/backend.txt" "${pids[0]}" 'listens on \([0-9.:]*\)' 1)

cp tests/crs-suite-setup.conf "$work/setup.conf"
port=$(port)
[[ $EUID != 0 ]] || user='user root;'
# The types of bodies as the set-up of ModSecurity has them.
cat > "$work/main.conf" <<RULES
${COMPAT:+SecCompatibility $COMPAT}
SecRule REQUEST_HEADERS:Content-Type "^(?:application(?:/soap\+|/)|text/)xml" "id:200000,phase:1,t:none,t:lowercase,pass,nolog,ctl:requestBodyProcessor=XML"
SecRule REQUEST_HEADERS:Content-Type "^application/json" "id:200001,phase:1,t:none,t:lowercase,pass,nolog,ctl:requestBodyProcessor=JSON"
Include $work/setup.conf
Include $root/.portcullis/crs/crs-setup.conf
Include $root/.portcullis/crs/rules/*.conf
RULES
# The rule after the set-up writes go-ftw's marks to the log.
[[ ${RUNNER:-} != go-ftw ]] || cat >> "$work/setup.conf" <<'RULES'
SecRule REQUEST_HEADERS:X-CRS-Test "@rx ^.*$" \
  "id:999999,pass,phase:1,log,msg:'X-CRS-Test %{MATCHED_VAR}',ctl:ruleRemoveById=1-999999"
RULES
cat > "$work/nginx.conf" <<NGINX
load_module /usr/lib/nginx/modules/ngx_http_modsecurity_module.so;
${user:-}
daemon off; worker_processes 1; pid $work/nginx.pid; error_log $work/error.log info;
events { worker_connections 1024; }
http {
  access_log off; client_max_body_size 32m; client_body_temp_path $work/body; proxy_temp_path $work/proxy;
  fastcgi_temp_path $work/fastcgi; uwsgi_temp_path $work/uwsgi; scgi_temp_path $work/scgi;
  underscores_in_headers on; ignore_invalid_headers off; large_client_header_buffers 8 64k; merge_slashes off;
  modsecurity on; modsecurity_rules_file $work/main.conf;
  server { listen 127.0.0.1:$port; location / { proxy_pass http://$backend; proxy_set_header Host \$http_host; } }
}
NGINX
LD_LIBRARY_PATH=$LIBRARY /usr/sbin/nginx -p "$work" -c "$work/nginx.conf" > "$work/nginx.txt" 2>&1 &
pids+=($!)
until_open "$port" || { cat "$work/nginx.txt" "$work/error.log" >&2; exit 1; }
grep -q "$LIBRARY/libmodsecurity.so.3" "/proc/${pids[1]}/maps" || { echo "nginx has another library" >&2; exit 1; }

if [[ ${RUNNER:-} == go-ftw ]]; then
  (cd scripts/go-ftw && GOWORK=off GOFLAGS=-mod=readonly go build -o "$root/.portcullis/go-ftw" .)
  .portcullis/go-ftw -tests .portcullis/crs-tests -log "$work/error.log" -address "127.0.0.1:$port" -count "$CRS_TESTS" "$@"
  exit
fi
known=()
if [[ $LIBRARY == "$work" ]]; then
  # Under ModSecurity 2's semantics, those of version 3 are no misses.
  if [[ ${COMPAT:-} == ModSecurity2 ]]; then
    grep -v ': v3 semantics' tests/crs-known-misses-nginx.txt > "$work/known.txt"
  else
    cp tests/crs-known-misses-nginx.txt "$work/known.txt"
  fi
  known=(--expected-failures "$work/known.txt")
fi
"$bin/crs-suite" --target "127.0.0.1:$port" --log "$work/error.log" \
  --count "${CRS_TESTS:?the number of tests; make sets it}" "${known[@]}" "$@"
