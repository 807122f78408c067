#!/usr/bin/env bash
# Installs the Debian package of our libmodsecurity beside Debian's nginx and its module for ModSecurity 3 in a clean
# root: nginx loads ours, blocks and logs; removed and purged, it loads Debian's again.
#   scripts/libmodsecurity-package-test.sh [target/debug/libmodsecurity.so]
# As root, on Debian, with debootstrap and the network that it needs the first time: the root is kept in
# .portcullis/debian-root-nginx. PORT of loopback has to be free. Stops only what it started.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
library=${1:-target/debug/libmodsecurity.so} port=${PORT:-18390}
base=.portcullis/debian-root-nginx
server=

fail() { echo "libmodsecurity-package-test: $*" >&2; exit 1; }
step() { echo "libmodsecurity-package-test: $*"; }
[ "$(id -u)" = 0 ] || fail "a root folder needs root"
command -v debootstrap >/dev/null || fail "install debootstrap"

if [ ! -e "$base/.complete" ]; then
  rm -rf "$base"
  debootstrap --variant=minbase --include=nginx-light,libnginx-mod-http-modsecurity bookworm "$base" >&2
  touch "$base/.complete"
fi
work=$(mktemp -d)
root=$work/root
stop_server() {
  [ -n "$server" ] || return 0
  kill -TERM "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  server=
}
end() {
  stop_server
  umount "$root/proc" 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap end EXIT
cp -a "$base" "$root"
mount -t proc proc "$root/proc"
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"; }

mkdir "$root/srv/waf"
cat > "$root/srv/waf/rules.conf" <<'RULES'
SecRuleEngine On
SecRule ARGS "@contains evil" "id:1,phase:2,deny,status:403,log,msg:'Evil'"
RULES
cat > "$root/srv/waf/nginx.conf" <<CONFIGURATION
load_module modules/ngx_http_modsecurity_module.so;
daemon off; worker_processes 1; pid /srv/waf/nginx.pid; error_log /srv/waf/error.log info;
events { worker_connections 64; }
http { access_log off; modsecurity on; modsecurity_rules_file /srv/waf/rules.conf;
  server { listen 127.0.0.1:$port; location / { return 200 ok; } } }
CONFIGURATION
nginx_test() { inside nginx -t -c /srv/waf/nginx.conf 2>&1; }
# What the worker has loaded, as its path.
loaded() { awk '/libmodsecurity/ { print $6; exit }' "/proc/$(cut -d' ' -f1 "/proc/$server/task/$server/children")/maps"; }
status() { curl -s -o /dev/null -w '%{http_code}' --max-time 10 "http://127.0.0.1:$port$1" || true; }
# serve PATH: starts nginx, which must block, and must have loaded the library of this path
serve() {
  : > "$root/srv/waf/error.log"
  chroot "$root" nginx -c /srv/waf/nginx.conf >"$work/nginx.txt" 2>&1 &
  server=$!
  for _ in $(seq 100); do
    [ "$(status '/own?q=fine')" != 000 ] && break
    kill -0 "$server" 2>/dev/null || { cat "$work/nginx.txt" "$root/srv/waf/error.log" >&2; fail "nginx ended"; }
    sleep 0.1
  done
  [[ $(loaded) == *"$1"* ]] || fail "nginx has loaded $(loaded), not $1"
  got="$(status '/own?q=fine') $(status '/own?q=evil')"
  [ "$got" = "$2" ] || { cat "$root/srv/waf/error.log" >&2; fail "with $1: $got, not $2"; }
  step "nginx has loaded $(loaded | sed "s#^$root##")"
  stop_server
}
ours=/usr/lib/portcullis/libmodsecurity/libmodsecurity.so.3
theirs=/usr/lib/$(inside sh -c 'echo $(uname -m)')-linux-gnu/libmodsecurity.so.3
run_dpkg() { inside dpkg "$@" >"$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log" >&2; fail "dpkg $*"; }; }
no_complaints() { ! grep -i 'warning\|not a symbolic\|error' "$work/dpkg.log" || fail "dpkg complains"; }

step "before: the library of Debian"
sums() { (cd "$root" && sha256sum ".$theirs" && readlink ".$theirs"); }
before=$(sums)
# With `return 200` Debian's never comes to phase 2.
serve "$theirs" "200 200"

package=$(packaging/debian/libmodsecurity/build.sh "$library" "$work")
cp "$package" "$root/package.deb"
step "installing $(stat -c %s "$package") bytes"
run_dpkg -i /package.deb
no_complaints
serve "$ours" "200 403"
grep -q 'Access denied with code 403 (phase 2).*\[msg "Evil"\]' "$root/srv/waf/error.log" || fail "no line of the attack"
# A directive of ours: with Debian's library it is a mistake.
echo 'SecSemanticDetector Balanced' >> "$root/srv/waf/rules.conf"
said=$(nginx_test) || fail "with ours: $said"
serve "$ours" "200 403"

step "upgrading to the same package, and libmodsecurity3 anew"
run_dpkg -i /package.deb
no_complaints
inside ldconfig > "$work/dpkg.log" 2>&1
no_complaints
[ "$(sums)" = "$before" ] || fail "Debian's files have changed"
serve "$ours" "200 403"

step "removing"
run_dpkg --remove portcullis-libmodsecurity
no_complaints
! said=$(nginx_test) || fail "Debian's library takes a directive of ours: $said"
sed -i '/SecSemanticDetector/d' "$root/srv/waf/rules.conf"
serve "$theirs" "200 200"
step "installing again, and purging"
run_dpkg -i /package.deb
serve "$ours" "200 403"
run_dpkg --purge portcullis-libmodsecurity
serve "$theirs" "200 200"
[ "$(sums)" = "$before" ] || fail "Debian's files have changed"
rm "$root/package.deb"
left=$(cd "$root" && find . -xdev -iname '*portcullis*' -not -path './proc/*')
[ -z "$left" ] || fail "left behind: $left"
step "passed"
