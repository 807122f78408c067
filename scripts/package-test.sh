#!/usr/bin/env bash
# Installs the Debian package in a clean Debian root, serves with the packaged document, upgrades, purges.
#   scripts/package-test.sh [target/debug/portcullis]
# As root, on Debian, with debootstrap and the network that it needs the first time: the root is kept in
# .portcullis/debian-root. There is no systemd in the root that runs, so the unit's ExecStartPre and ExecStart are run by
# hand, as its user, in a view of the root where only what the unit names may be written (ProtectSystem=strict). PORT and
# the next three ports of loopback have to be free. Stops only what it started.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
program=${1:-target/debug/portcullis} port=${PORT:-18380}
base=.portcullis/debian-root
pids=()

fail() { echo "package-test: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "a root folder needs root"
command -v debootstrap >/dev/null || fail "install debootstrap"
[[ -x ${program%/*}/demo-upstream ]] || fail "cargo build -p portcullis-testkit --bin demo-upstream"

if [ ! -e "$base/.complete" ]; then
  rm -rf "$base"
  debootstrap --variant=minbase --include=systemd,ca-certificates,logrotate bookworm "$base" >&2
  touch "$base/.complete"
fi
work=$(mktemp -d)
root=$work/root
stop() {
  for pid in "${pids[@]}"; do kill -TERM "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
  umount "$root/proc" 2>/dev/null || true
  rm -rf --one-file-system "$work"
}
trap stop EXIT
cp -a "$base" "$root"
mount -t proc proc "$root/proc"

inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 "$@"; }
# The user of the unit, without its one capability, which these ports do not need.
as_service() { inside setpriv --reuid portcullis --regid portcullis --init-groups --inh-caps=-all -- "$@"; }
unit_line() { sed -n "s/^$1=//p" "$root/usr/lib/systemd/system/portcullis.service"; }
step() { echo "package-test: $*"; }
# In a mount namespace of its own: the root can only be read, but for what the unit lets its user write.
as_unit() {
  local writable=(/tmp)
  mapfile -t -O 1 writable < <(unit_line StateDirectory | sed 's|^|/var/lib/|'; unit_line LogsDirectory | sed 's|^|/var/log/|'
    unit_line RuntimeDirectory | sed 's|^|/run/|'; unit_line ReadWritePaths | tr ' ' '\n')
  # shellcheck disable=SC2016 # expanded by the shell in there
  exec unshare --mount bash -ec '
    root=$1; shift
    mount --bind "$root" "$root"
    while [ "$1" != -- ]; do mount --bind "$root$1" "$root$1"; shift; done; shift
    mount -o remount,bind,ro "$root"
    exec chroot "$root" env RUNTIME_DIRECTORY=/run/portcullis \
      setpriv --reuid portcullis --regid portcullis --init-groups --inh-caps=-all -- "$@"' \
    as_unit "$root" "${writable[@]}" -- "$@"
}

package=$(packaging/debian/build.sh "$program" "$work")
cp "$package" "$root/portcullis.deb"
step "installing"
inside dpkg -i /portcullis.deb >"$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log" >&2; fail "it does not install"; }
inside getent passwd portcullis >/dev/null || fail "there is no user portcullis"
for file in usr/bin/portcullis usr/share/man/man1/portcullis-run.1.gz usr/share/portcullis/crs/crs-setup.conf \
  usr/share/portcullis/grafana/portcullis-traffic.json usr/share/portcullis/prometheus/alerts.yml \
  usr/share/bash-completion/completions/portcullis usr/share/zsh/vendor-completions/_portcullis \
  usr/share/fish/vendor_completions.d/portcullis.fish usr/share/doc/portcullis/crs.md; do
  [[ -s $root/$file ]] || fail "$file is missing"
done
[ "$(inside stat -c '%U %a' /var/lib/portcullis)" = "portcullis 750" ] || fail "/var/lib/portcullis is not its user's"
[ "$(inside stat -c '%U %G %a' /etc/portcullis)" = "root portcullis 1770" ] || fail "/etc/portcullis is not as it should be"
[ "$(inside stat -c '%U %a' /etc/portcullis/portcullis.toml)" = "portcullis 640" ] || fail "the document is not its user's"

step "checking the document as it comes"
# shellcheck disable=SC2046 # words of a command
as_service $(unit_line ExecStartPre) >"$work/check.log" || { cat "$work/check.log" >&2; fail "the check fails"; }

step "serving with the CRS, as the document says, on free ports"
document=$root/etc/portcullis/portcullis.toml
# Both lines are there as comments.
sed -i -e "s/^mode = \"semantic\".*//" -e "s/^# \(mode = \"both\"\)/\1/" -e "s/^# \(rules = \)/\1/" \
  -e "/^engine = \"detection_only\"/d" -e "s/0\.0\.0\.0:80\"/127.0.0.1:$port\"/" \
  -e "s/127\.0\.0\.1:9443/127.0.0.1:$((port + 3))/" \
  -e "s/127\.0\.0\.1:9090/127.0.0.1:$((port + 1))/" -e "s/127\.0\.0\.1:8000/127.0.0.1:$((port + 2))/" "$document"
# shellcheck disable=SC2046
as_service $(unit_line ExecStartPre) >"$work/check.log" || { cat "$work/check.log" >&2; fail "the check fails"; }
"${program%/*}/demo-upstream" "127.0.0.1:$((port + 2))" >/dev/null &
pids+=($!)
inside install -d -o portcullis -g portcullis -m 0755 /run/portcullis
# Every command of it is an exec: the process itself gets the signal.
# shellcheck disable=SC2046
as_unit $(unit_line ExecStart) >"$work/run.log" 2>&1 &
server=$!
pids=("$server" "${pids[@]}")
status() { curl -s -o /dev/null -w '%{http_code}' --max-time 10 "http://localhost:$port$1" || true; }
for _ in $(seq 100); do
  [ "$(status /)" != 000 ] && break
  kill -0 "$server" 2>/dev/null || { cat "$work/run.log" >&2; fail "it ended"; }
  sleep 0.2
done
expect() {
  got=$(status "$2")
  [ "$got" = "$1" ] || { cat "$work/run.log" >&2; fail "$2: $got, not $1"; }
}
expect 200 '/search?q=iron+and+oak'
expect 403 '/search?q=1%27+UNION+SELECT+name,password+FROM+users--+'
sleep 2
events=$(as_service portcullis events --data /var/lib/portcullis/data --json)
grep -q '"sqli"\|942100' <<<"$events" || fail "no event of the attack: $events"

step "changing the document through the API"
token=$(as_service portcullis token create --data /var/lib/portcullis/data --role admin --name test --expires 1h)
install -m 640 /dev/null "$root/etc/portcullis/site.key"
chroot "$root" chgrp portcullis /etc/portcullis/site.key
# api PATH ARGUMENT...: a change of the document as it is now; prints the status
api() {
  local at=http://127.0.0.1:$((port + 3))/api/v1 version
  version=$(curl -s -o /dev/null -D - --max-time 20 -H "Authorization: Bearer $token" "$at/config" | tr -d '\r' | sed -n 's/^etag: //Ip')
  curl -s -o "$work/answer" -w '%{http_code}' --max-time 20 -H "Authorization: Bearer $token" -H "If-Match: $version" \
    -H 'Content-Type: application/json' "$at$1" "${@:2}"
}
changed() { [ "$1" = 200 ] || [ "$1" = 201 ] || { cat "$work/answer" >&2; fail "$2: $1"; }; }
changed "$(api /exclusions -d '{"site":"site","class":"sqli","location":"query:q","reason":"a test"}')" "an exclusion"
changed "$(api /lists/deny/clients -d '{"client":"198.51.100.7","reason":"a test"}')" "a denied client"
changed "$(api /sites/site -X PATCH -d '{"engine":"detection_only"}')" "another engine"
for text in 'sqli' '198.51.100.7' 'detection_only' '# better: the names that you serve'; do
  grep -q "$text" "$document" || fail "the document does not have: $text"
done
[ "$(inside stat -c '%U %a' /etc/portcullis/portcullis.toml)" = "portcullis 640" ] || fail "the document changed hands"
as_service portcullis check /etc/portcullis/portcullis.toml >"$work/check.log" || fail "the check fails: $(cat "$work/check.log")"
expect 200 '/search?q=1%27+UNION+SELECT+name,password+FROM+users--+'
# What root put beside it is not the service's to replace.
if as_service sh -c 'echo >/etc/portcullis/k && mv -f /etc/portcullis/k /etc/portcullis/site.key' 2>/dev/null; then
  fail "the service replaced a key"
fi
rm -f "$root/etc/portcullis/k" "$root/etc/portcullis/site.key"

step "upgrading to the same package"
before=$(sha256sum <"$document")
inside dpkg -i /portcullis.deb >"$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log" >&2; fail "it does not upgrade"; }
[ "$(sha256sum <"$document")" = "$before" ] || fail "the upgrade changed the document"
expect 200 '/search?q=iron+and+oak'
kill -TERM "$server"
wait "$server" || fail "it did not end well: $(cat "$work/run.log")"
# systemd's part: RuntimeDirectory.
rm -r "$root/run/portcullis"

step "upgrading from a document that root owns, as earlier packages had it"
chroot "$root" chown root:root /etc/portcullis/portcullis.toml
inside dpkg -i /portcullis.deb >"$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log" >&2; fail "it does not upgrade"; }
[ "$(inside stat -c '%U %a' /etc/portcullis/portcullis.toml)" = "portcullis 640" ] || fail "the document is still root's"

step "purging"
inside dpkg --purge portcullis >"$work/dpkg.log" 2>&1 || { cat "$work/dpkg.log" >&2; fail "it does not purge"; }
rm "$root/portcullis.deb"
# Users stay, as Debian's policy wants it; logs of dpkg are not ours.
left=$(cd "$root" && find . -xdev -iname '*portcullis*' -not -path './proc/*' -not -path './.portcullis/*')
[ -z "$left" ] || fail "left behind: $left"
step "passed"
