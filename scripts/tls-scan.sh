#!/usr/bin/env bash
# What two scanners say of our TLS, with the default settings: sslyze against Mozilla's recommendation "intermediate", and
# testssl.sh. Ends with an error if one of them has a finding.
#   scripts/tls-scan.sh [target/debug/portcullis]
# sslyze comes from PyPI, pinned, into .portcullis/sslyze; testssl.sh 3.0.8 is the Debian package (or TESTSSL=path). Loopback
# only; stops only what it started.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
program=${1:-target/debug/portcullis}
sslyze_version=6.1.0
testssl=${TESTSSL:-$(command -v testssl || command -v testssl.sh || true)}
[[ -x $program ]] || { echo "tls-scan: $program is missing; cargo build -p portcullis" >&2; exit 1; }
for tool in openssl python3; do
  command -v "$tool" >/dev/null || { echo "tls-scan: $tool is needed" >&2; exit 1; }
done
venv=$root/.portcullis/sslyze
if [[ ! -x $venv/bin/sslyze ]]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q "sslyze==$sslyze_version"
fi

source scripts/started.sh

# An authority, and a certificate for 90 days.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 -subj "/CN=Test authority" \
  -addext keyUsage=critical,keyCertSign,cRLSign \
  -keyout "$work/ca.key" -out "$work/ca.pem" 2>/dev/null
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=localhost" \
  -keyout "$work/own.key" -out "$work/own.csr" 2>/dev/null
printf '%s\n' subjectAltName=DNS:localhost extendedKeyUsage=serverAuth keyUsage=critical,digitalSignature \
  authorityKeyIdentifier=keyid basicConstraints=CA:FALSE > "$work/extensions"
openssl x509 -req -in "$work/own.csr" -CA "$work/ca.pem" -CAkey "$work/ca.key" -CAcreateserial -days 90 -sha256 \
  -extfile "$work/extensions" -out "$work/own.pem" 2>/dev/null

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cat > "$work/portcullis.toml" <<END
workers = 1
[[listeners]]
address = "127.0.0.1:$port"
tls = { certificates = [{ cert = "own.pem", key = "own.key" }] }
[[sites]]
name = "site"
hosts = ["*"]
https = { hsts = { max_age = "8760h", include_subdomains = true } }
mode = "off"
[[sites.routes]]
path = "/"
respond = { status = 200, body = "hello", content_type = "text/plain" }
[upstreams.unused]
endpoints = ["http://127.0.0.1:1"]
END
"$program" run --config "$work/portcullis.toml" 2> "$work/output" &
pids+=($!)
for _ in $(seq 200); do
  grep -q 'listening on' "$work/output" && break
  kill -0 "${pids[0]}" 2>/dev/null || { cat "$work/output" >&2; exit 1; }
  sleep 0.1
done

failed=0
echo "== sslyze $sslyze_version"
"$venv/bin/sslyze" --mozilla_config=intermediate --certinfo --certinfo_ca_file="$work/ca.pem" --heartbleed --robot \
  --openssl_ccs --reneg --compression --fallback --early_data --resum \
  "localhost:$port" > "$work/sslyze" 2>&1 || true
grep -q 'COMPLIANCE AGAINST' "$work/sslyze" || { tail -20 "$work/sslyze" >&2; exit 1; }
sed -n '/COMPLIANCE AGAINST/,$p' "$work/sslyze" | grep -E '^ +(\*|localhost)' | while read -r line; do
  case $line in
    # The recommendation calls this curve prime256v1, the scanner secp256r1; both are P-256 (RFC 8422, appendix A).
    '* certificate_curves: Certificate curve is secp256r1, '* | "* tls_curves: TLS curves {'secp256r1'} are supported, "*)
      echo "same curve under another name: $line" ;;
    '* '*) echo "$line"; echo "$line" >> "$work/sslyze.findings" ;;
  esac
done
if [[ -e $work/sslyze.findings ]]; then failed=1; else echo "no findings"; fi
echo "== testssl.sh"
if [[ -n $testssl ]]; then
  # The authority is our own, so the chain cannot be trusted; that and revocation are not about this program.
  "$testssl" --quiet --color 0 --warnings off --ip 127.0.0.1 --add-ca "$work/ca.pem" \
    --jsonfile "$work/testssl.json" "localhost:$port" > "$work/testssl" 2>&1 || true
  sed -n '/Overall/p;/Final Score/p;/Rating/p' "$work/testssl"
  [[ -s $work/testssl.json ]] || { tail -20 "$work/testssl" >&2; exit 1; }
  python3 - "$work/testssl.json" <<'END' || failed=1
import json, sys
findings = [f for f in json.load(open(sys.argv[1])) if f["severity"] in ("LOW", "MEDIUM", "HIGH", "CRITICAL")]
about_the_certificate = ("cert_", "OCSP_stapling", "DNS_CAArecord")
ours = [f for f in findings if not f["id"].startswith(about_the_certificate)]
for f in findings:
    print(f["severity"], f["id"], f["finding"], "" if f in ours else "(of the test's certificate)")
print(len(ours), "findings about the program")
sys.exit(bool(ours))
END
else
  echo "skipped: testssl.sh is not installed (apt install testssl.sh)"
fi
exit "$failed"
