#!/usr/bin/env bash
# Memory of nginx with our libmodsecurity and the CRS: with one and with a hundred server blocks, and over reloads.
#   scripts/libmodsecurity-reload.sh [RELOADS]      default: 1,000
# LIBRARY=FOLDER of the library, default: target/release. Fails if memory grows, or if a block is missed. Stops only what it started.
set -euo pipefail

reloads=${1:-1000}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
source scripts/started.sh
library=${LIBRARY:-$root/target/release}
setup=$(compgen -G '.portcullis/crs/crs-setup.conf*' | head -1)
[[ $EUID != 0 ]] || user='user root;'

cat > "$work/main.conf" <<RULES
SecRuleEngine On
SecRequestBodyAccess On
Include $root/$setup
Include $root/.portcullis/crs/rules/*.conf
RULES

# configure BLOCKS: as many server blocks, each naming the rules for itself
configure() {
  {
    echo "load_module /usr/lib/nginx/modules/ngx_http_modsecurity_module.so; ${user:-}"
    echo "daemon off; worker_processes 1; pid $work/nginx.pid; error_log $work/error.log crit;"
    echo "events { worker_connections 256; } http { access_log off; server_names_hash_max_size 4096;"
    for name in body proxy fastcgi uwsgi scgi; do echo "${name/body/client_body}_temp_path $work/$name;"; done
    for ((i = 1; i <= $1; i++)); do
      echo "server { listen 127.0.0.1:$port; server_name s$i; modsecurity on; modsecurity_rules_file $work/main.conf;"
      echo "  location / { return 200 ok; } location /a { return 200 ok; } }"
    done
    echo '}'
  } > "$work/nginx.conf"
}
# KiB that the master and its workers hold, shared pages counted once
memory() { cat /proc/"$1"/smaps_rollup $(sed 's#[0-9]\+#/proc/&/smaps_rollup#g' "/proc/$1/task/$1/children") 2>/dev/null | awk '/^Pss:/ { sum += $2 } END { print sum }'; }
workers() { cat "/proc/$1/task/$1/children"; }
status() { curl -s -o /dev/null -w '%{http_code}' -H "Host: $1" "http://127.0.0.1:$port/?q=$2"; }
start() {
  LD_LIBRARY_PATH=$library /usr/sbin/nginx -p "$work" -c "$work/nginx.conf" > "$work/nginx.txt" 2>&1 &
  pids+=($!)
  master=$!
  until_open "$port" || { cat "$work/nginx.txt" >&2; exit 1; }
}
check() {
  [[ $(status s1 fine) == 200 && $(status s1 '%3Cscript%3Ealert(1)%3C/script%3E') == 403 ]] || { echo "$1: not what was expected" >&2; exit 1; }
}

for blocks in 1 100; do
  port=$(port)
  configure "$blocks"
  begin=$(date +%s%N)
  start
  echo "$blocks server block(s): started in $((($(date +%s%N) - begin) / 1000000)) ms"
  check "$blocks blocks"
  held=$(memory "$master")
  echo "$blocks server block(s): $held KiB"
  [[ $blocks == 1 ]] && one=$held
  kill -TERM "$master"
  wait "$master" || true
done
echo "a hundred take $((100 * (held - one) / one)) % more"

port=$(port)
configure 2
start
first=
for ((i = 1; i <= reloads; i++)); do
  before=$(workers "$master")
  kill -HUP "$master"
  for _ in $(seq 2000); do
    now=$(workers "$master")
    [[ -n $now && $now != *"${before% }"* && $now != "$before" ]] && break
    sleep 0.01
  done
  if ((i % (reloads >= 20 ? reloads / 20 : 1) == 0)); then
    check "after $i reloads"
    last=$(memory "$master")
    [[ -n $first ]] || first=$last
    echo "after $i reloads: $last KiB"
  fi
done
grow=$((last - first))
echo "grown by $grow KiB between the first mark and the last"
((grow < first / 20)) || { echo "memory grows" >&2; exit 1; }
