#!/usr/bin/env bash
# The console in Chromium against the real program: the way of a false alarm and its pace, what each role may do, a
# login at an OpenID Connect provider, numbers that lead to what they count, the histogram of events with columns and
# saved views, two periods and a report, the box that events are looked for in, what there is to do and bans by hand,
# values of the chart, languages, what was learned of fields, settings in forms, own rules, the profile of a known
# application and deviations from a declared API, a program with flags, every page in six shapes with axe-core, a long
# table, and the program gone and back.
# Builds what it needs; stops what it started. Of a failure, the open pages are kept in target/console-failures
# (FAILURES=FOLDER). SHOTS=FOLDER keeps the screenshots (SCENE=150 has traffic go on for so long before them; WHOLE=1:
# pages from top to end); ROWS=100000 SMOOTH=1 makes the long table longer and prints how it scrolls.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

folder=$(mktemp -d)
shots=${SHOTS:-$folder/shots} rows=${ROWS:-1000}
export FAILURES=${FAILURES:-$PWD/target/console-failures}
pids=()
stop() {
  trap - EXIT INT TERM
  for pid in "${pids[@]}"; do
    kill -TERM "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  rm -rf "$folder"
}
trap stop EXIT
trap 'exit 130' INT TERM

(cd console && npm test)
# With the features that the tests of `make test` take, whose objects are there already: those of all packages, HTTP/3,
# and, for an example among the targets, those of what tests need.
cargo build --locked --workspace --bin portcullis --example access-cost --features portcullis/http3
# Ports that are free now.
mapfile -t ports < <(python3 -c 'import socket
all = [socket.socket() for _ in range(7)]
for one in all: one.bind(("127.0.0.1", 0))
for one in all: print(one.getsockname()[1])')
site=127.0.0.1:${ports[0]} upstream=127.0.0.1:${ports[1]} admin=127.0.0.1:${ports[2]} console=127.0.0.1:${ports[3]}
# The provider is another site than the console, by name: the browser comes back from elsewhere.
provider=http://127.0.0.1:${ports[4]} by_name=http://localhost:${ports[3]}
cat >"$folder/portcullis.toml" <<EOF
workers = 1
admin = { listen = "$admin", oidc = { issuer = "$provider", client_id = "portcullis", client_secret_file = "secret", scopes = ["profile", "groups"], name = "Example", redirect = "$by_name", roles = { analyst = ["soc"] } } }
data = { folder = "data" }
# Each event is a row of the table.
events = { coalesce_above = 0 }

[client_address]
trusted_proxies = ["127.0.0.1/32"]
header = "x-forwarded-for"

# The tests that attack come from this machine, those with a client of their own say who it is.
[ban]
score = 40
except = ["127.0.0.0/8", "192.0.2.66/32"]

[[listeners]]
address = "$site"

[[sites]]
name = "shop"
hosts = ["*"]
upstream = "app"
mode = "semantic"
fields = { unusual = "detect" }
discovery = true
rate_limits = [{ name = "logins", rate = 5, per = "1m", methods = ["POST"] }]

[sites.access.deny]
networks = ["198.51.100.0/24"]

# A site that is being rolled out, with rules of its own.
[[sites]]
name = "blog"
hosts = ["blog.example"]
upstream = "app"
mode = "both"
engine = "detection_only"
profiles = ["wordpress"]

[sites.rules]
directives = '''
SecRule ARGS "@rx (?i)\\bunion\\b.{1,40}\\bselect\\b" \\
    "id:1001,phase:2,deny,log,msg:'SQL: UNION and SELECT in a parameter',severity:'CRITICAL',tag:'paranoia-level/1'"
SecRule ARGS "@rx <[a-z]" \\
    "id:1002,phase:2,deny,log,msg:'Markup in a parameter',severity:'WARNING',tag:'attack-xss',tag:'paranoia-level/2'"
SecRule REQUEST_HEADERS:User-Agent "@pm sqlmap nikto nuclei" \\
    "id:1003,phase:1,deny,log,msg:'A scanner that says so',severity:'NOTICE',tag:'paranoia-level/1'"
SecRule REQUEST_URI "@endsWith .bak" "id:1004,phase:1,deny,log,msg:'A file of a backup',severity:'WARNING'"
SecRuleRemoveById 1004
SecRule ARGS_NAMES "@streq debug" "id:1005,phase:2,pass,log,msg:'A parameter of developers',severity:'NOTICE'"
'''

[[sites.rules.exclude]]
rules = [1002]
target = "ARGS:comment"
path = "/posts/{id}"
until = "2030-12-31"
reason = "comments may have markup, which the blog filters"

[upstreams.app]
endpoints = ["http://$upstream"]
EOF
python3 - "${ports[1]}" >"$folder/upstream.log" 2>&1 <<'EOF' &
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "5")
        if self.path == "/flash":
            self.send_header("Set-Cookie", "flash=1'+or+'1'='1; Path=/")
        self.end_headers()
        self.wfile.write(b"found")
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.do_GET()
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
EOF
pids+=($!)
echo "a secret" >"$folder/secret"
# For a site that is added.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=forms.example \
  -addext subjectAltName=DNS:forms.example -keyout "$folder/site.key" -out "$folder/site.pem" 2>/dev/null
cat >"$folder/provider.json" <<EOF
{ "port": ${ports[4]}, "redirect_uri": "$by_name/api/v1/login/oidc/callback", "secret": "a secret",
  "auth_method": "client_secret_basic", "algorithm": "RS256", "accounts": { "anna": ["soc"], "mallory": [] } }
EOF
node "$(scripts/oidc-provider.sh)" "$folder/provider.json" >"$folder/provider.log" 2>&1 &
pids+=($!)
password=$(head -c 12 /dev/urandom | base64)
mkdir "$folder/data"
for role in admin analyst viewer; do
  printf '%s\n' "$password" | target/debug/portcullis user add "$role" --role "$role" --data "$folder/data"
done
# What the shop has learned: of recorded requests, and a few fields with names that clients have chosen to attack.
python3 - >"$folder/recorded.jsonl" <<'EOF'
import json
for number in range(120):
    targets = [f"/catalogue/{number}?size={number % 50}&colour={['small', 'medium', 'large'][number % 3]}",
               f"/hostile/{number}?at={number}", f"/notes?text=a+word,+{number}+times"]
    for target in targets:
        print(json.dumps({"request": f"GET {target} HTTP/1.1\r\nHost: shop.example\r\n\r\n"}))
EOF
target/debug/portcullis learn "$folder/recorded.jsonl" --site shop --data "$folder/data"
python3 - "$folder"/data/learned/*.import <<'EOF'
import copy, json, sys
learned = json.load(open(sys.argv[1]))
fields = learned["learned"]["fields"]
field = next(each for each in fields if each[0]["name"] == "at")
for name in ['"><script>self["pwned"]=1</script>', "\u202egpj_exe\u2066\u200b\u0007",
             '<img/src=x/onerror=self["pwned"]=1>' + "a" * 80, "\u05e9\u05dc\u05d5\u05dd\u200f"]:
    other = copy.deepcopy(field)
    other[0]["name"] = name
    fields.append(other)
# One that many have sent something else in.
drifted = copy.deepcopy(field)
profile = drifted[1]["profile"]
drifted[0].update(template="/orders", name="drifted")
profile.update(closed=None, reopened={"form": {"type": "whole"}, "day": profile["all"]["days"]["last"]})
fields.append(drifted)
# And one that carries statements for many.
reports = copy.deepcopy(drifted)
profile = reports[1]["profile"]
reports[0].update(template="/reports", name="columns", method="POST", place="form")
profile.pop("reopened")
seen = profile["all"]
profile["openings"] = {"sqli.statement": {"seen": seen, "sessions": seen["networks"], "trusted": 0, "state": "proposed", "since": seen["days"]["last"]}}
fields.append(reports)
json.dump(learned, open(sys.argv[1], "w"))
EOF
run=("$PWD/target/debug/portcullis" run --config "$folder/portcullis.toml" --console "$console")
"${run[@]}" >"$folder/run.log" 2>&1 &
program=$!
pids+=("$program")
for _ in $(seq 200); do
  curl -sf -o /dev/null "http://$console/api/v1/health" && break
  sleep 0.05
done
# The same without a document, at its first start.
"$PWD/target/debug/portcullis" run --listen "127.0.0.1:${ports[5]}" --upstream "http://$upstream" --data "$folder/flags" \
  --console "127.0.0.1:${ports[6]}" >"$folder/flags.log" 2>&1 &
pids+=($!)
run_test() {
  (cd console && node test/run.mjs "$@")
}
# Tests at the same time, with `--` between them.
beside() {
  local jobs=() one=() word
  for word in "$@" --; do
    if [ "$word" = -- ]; then
      run_test "${one[@]}" &
      jobs+=($!) one=()
    else
      one+=("$word")
    fi
  done
  local failed=0
  for word in "${jobs[@]}"; do wait "$word" || failed=1; done
  return "$failed"
}
if ! {
  run_test flow "http://$console" "http://$site" admin "$password" &&
    run_test pace "http://$console" "http://$site" admin "$password" &&
    beside roles "http://$console" "http://$site" "$password" -- oidc "$by_name" anna analyst -- oidc "$by_name" mallory none &&
    run_test scene "http://$site" "${SCENE:-0}" &&
    run_test numbers "http://$console" "http://$site" admin "$password" &&
    run_test chart "http://$console" admin "$password" &&
    run_test histogram "http://$console" admin "$password" viewer &&
    run_test search "http://$console" admin "$password" &&
    run_test tasks "http://$console" "http://$site" "$password" &&
    run_test periods "http://$console" admin "$password" viewer &&
    run_test languages "http://$console" admin "$password" &&
    run_test interfaces "http://$console" "http://$site" "$password" &&
    run_test forms "http://$console" "http://$site" "$password" "$folder" &&
    run_test directives "http://$console" "http://$site" "$password" &&
    run_test offers "$PWD/target/debug/portcullis" &&
    run_test flags "$folder/flags.log" "http://127.0.0.1:${ports[5]}" &&
    run_test pages "http://$console" admin "$password" "$shots" &&
    run_test hostile "http://$console" "http://$site" admin "$password" &&
    run_test fill "http://$site" "$rows" && run_test long "http://$console" admin "$password" "$rows" &&
    run_test gone "http://$console" "http://$site" admin "$password" "$program" "${run[@]}"
}; then
  echo "the program said:" >&2
  cat "$folder/run.log" >&2
  exit 1
fi
