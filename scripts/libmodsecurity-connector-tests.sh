#!/usr/bin/env bash
# The test cases of the connector ModSecurity-nginx with our libmodsecurity in Debian's nginx.
#   scripts/libmodsecurity-connector-tests.sh TESTS NGINX_TESTS
# TESTS: the folder `tests` of the sources of owasp-modsecurity/ModSecurity-nginx; NGINX_TESTS: the sources of nginx/nginx-tests,
# whose Test::Nginx they use. LIBRARY=FOLDER of libmodsecurity.so, default: target/debug. Fails if other cases fail than those of
# tests/modsecurity-nginx-known.txt. Needs prove, and Debian's nginx with its module.
set -euo pipefail

tests=${1:?the folder tests of ModSecurity-nginx} nginx_tests=${2:?the sources of nginx-tests}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
module=/usr/lib/nginx/modules/ngx_http_modsecurity_module.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for file in "$tests/modsecurity.t" "$nginx_tests/lib/Test/Nginx.pm" "$module"; do
  [[ -f $file ]] || { echo "$file is missing" >&2; exit 1; }
done
cp "$tests"/*.t "$work"
cp -r "$nginx_tests/lib" "$work/lib"
# Modules that Debian has packages of their own for, and that these cases do not need.
sed -i '/load_module \$modules/,+1d' "$work/lib/Test/Nginx.pm"
cp "${LIBRARY:-$root/target/debug}/libmodsecurity.so" "$work/libmodsecurity.so.3"
[[ $EUID != 0 ]] || user='user root; '
export TEST_NGINX_BINARY=/usr/sbin/nginx TEST_NGINX_GLOBALS="${user:-}load_module $module;" LD_LIBRARY_PATH=$work
cd "$work"
prove -Q ./*.t > "$work/all.txt" 2>&1 || true
grep '^Files=' "$work/all.txt"
# FILE NUMBERS, of the summary behind the cases
awk '/^Test Summary Report/ { in_summary = 1 } in_summary && /\.t / { file = $1; sub(".*/", "", file) }
     in_summary && /Failed tests?:/ { sub(/.*: */, ""); print file, $0 }
     in_summary && /Parse errors/ { print file, $0 }' "$work/all.txt" > "$work/failed.txt"
if ! diff <(grep -v '^#' "$root/tests/modsecurity-nginx-known.txt") "$work/failed.txt"; then
  grep -B2 -A12 'Failed test' "$work/all.txt" | cut -c1-200 | head -100 >&2
  echo "not what tests/modsecurity-nginx-known.txt says" >&2
  exit 1
fi
