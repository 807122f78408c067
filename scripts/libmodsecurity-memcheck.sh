#!/usr/bin/env bash
# valgrind's memcheck over our libmodsecurity: the C programs of its tests, the hostile one with many more transactions, and
# nginx with its module in one process, under requests that are honest, hostile, cut off and too long.
#   scripts/libmodsecurity-memcheck.sh [TRANSACTIONS]      default: 1,000
# LIBRARY=FOLDER of libmodsecurity.so, default: target/debug. Fails if an error has our library in its stack, or memory that our
# library allocated is lost. Stops only what it started.
set -euo pipefail

transactions=${1:-1000}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
source scripts/started.sh
library=${LIBRARY:-$root/target/debug}
for tool in valgrind cc python3; do command -v $tool >/dev/null || { echo "$tool is missing" >&2; exit 1; }; done
cp "$library/libmodsecurity.so" "$work/libmodsecurity.so.3"
export LD_LIBRARY_PATH=$work
check=(valgrind -q --num-callers=40 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite)

programs=crates/portcullis-libmodsecurity/tests/programs
for program in program hostile; do
  cc -Wall -Wextra -Werror -g -o "$work/$program" $programs/$program.c "$work/libmodsecurity.so.3"
done
echo a=evil > "$work/body"
"${check[@]}" --error-exitcode=9 "$work/program" "$work/body"
"${check[@]}" --error-exitcode=9 "$work/hostile" "$transactions" "$work/nobody.sock"

[[ $EUID != 0 ]] || user='user root;'
cat > "$work/rules.conf" <<RULES
SecRuleEngine On
SecRequestBodyAccess On
SecResponseBodyAccess On
SecResponseBodyMimeType text/plain
SecRequestBodyLimit 200000
SecSemanticDetector Strict
SecAuditEngine On
SecAuditLogParts ABCEFHIJKZ
SecAuditLog $work/audit.log
SecEventSocket $work/nobody.sock
SecDataDir $work
SecAction "id:7,phase:1,pass,nolog,initcol:ip=%{REQUEST_HEADERS.User-Agent}"
SecAction "id:8,phase:1,pass,nolog,setvar:ip.n=+1,setvar:ip.agent=%{REQUEST_HEADERS.User-Agent},expirevar:ip.n=60"
SecRule IP:n "@gt 100000" "id:9,phase:1,deny,log"
SecRule REQUEST_HEADERS:Content-Type "@contains json" "id:5,phase:1,pass,nolog,ctl:requestBodyProcessor=JSON"
SecRule REQUEST_HEADERS:Content-Type "@contains xml" "id:6,phase:1,pass,nolog,ctl:requestBodyProcessor=XML"
SecRule ARGS|REQUEST_BODY "@contains evil" "id:1,phase:2,deny,log,msg:'Evil'"
SecRule ARGS "@contains go" "id:2,phase:2,redirect:https://b.example/%{MATCHED_VAR},log"
SecRule RESPONSE_BODY "@contains leak" "id:3,phase:4,deny,log"
RULES
port=$(port)
{
  echo "load_module /usr/lib/nginx/modules/ngx_http_modsecurity_module.so; ${user:-}"
  echo "daemon off; master_process off; pid $work/nginx.pid; error_log $work/error.log info;"
  echo "events { worker_connections 64; } http { access_log off; client_body_buffer_size 1k;"
  for name in body proxy fastcgi uwsgi scgi; do echo "${name/body/client_body}_temp_path $work/$name;"; done
  echo "modsecurity on; modsecurity_rules_file $work/rules.conf; default_type text/plain;"
  echo "server { listen 127.0.0.1:$port; root $work/site; location / { try_files /index.txt =404; }"
  echo "  location /own { return 200 own; } location /leak { try_files /leak.txt =404; }"
  echo "  location /free { modsecurity_rules 'SecRuleRemoveById 1'; try_files /index.txt =404; } } }"
} > "$work/nginx.conf"
mkdir "$work/site"
echo fine > "$work/site/index.txt"
echo 'a leak' > "$work/site/leak.txt"
# The module of nginx does not free the address of a redirect, which it is given to free.
cat > "$work/known.supp" <<'KNOWN'
{
  address of a redirect
  Memcheck:Leak
  match-leak-kinds: definite
  fun:malloc
  ...
  fun:msc_intervention
  ...
  fun:ngx_http_core_run_phases
}
KNOWN
# What else is lost there and has no frame of ours is nginx's own.
"${check[@]}" --suppressions="$work/known.supp" --log-file="$work/valgrind.txt" /usr/sbin/nginx -p "$work" -c "$work/nginx.conf" > "$work/nginx.txt" 2>&1 &
pids+=($!)
nginx=$!
until_open "$port" || { cat "$work/nginx.txt" "$work/valgrind.txt" >&2; exit 1; }
python3 scripts/hostile-requests.py "$port" 400
kill -TERM "$nginx"
wait "$nginx" || true
lines=$(grep -c 'id "1"' "$work/error.log" || true)
((lines > 20)) || { echo "nginx inspected nothing: $lines lines" >&2; exit 1; }
if grep -q 'libmodsecurity\|msc_' "$work/valgrind.txt"; then
  cat "$work/valgrind.txt" >&2
  exit 1
fi
echo "nginx: no error of ours ($lines refusals in its log; $(grep -c '== [A-Z]' "$work/valgrind.txt" || true) remarks on nginx itself)"
