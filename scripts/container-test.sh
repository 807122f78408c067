#!/usr/bin/env bash
# Builds the container image of a static program and serves from it: as its user, with its CRS, on loopback.
#   scripts/container-test.sh [target/static/portcullis]
# Needs buildah, whose chroot isolation runs where containers cannot (as root). PORT and the next of loopback have to be
# free. Stops only what it started.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
program=${1:-target/static/portcullis} upstream=${UPSTREAM:-target/debug/demo-upstream} port=${PORT:-18394}
fail() { echo "container-test: $*" >&2; exit 1; }
command -v buildah >/dev/null || fail "install buildah"
[[ -x $upstream ]] || fail "cargo build -p portcullis-testkit --bin demo-upstream"
image=localhost/portcullis:container-test
work=$(mktemp -d)
container=
pids=()
# The last of a line of processes: buildah passes no signal on to what it runs.
innermost() {
  local child
  child=$(pgrep -P "$1" | head -n 1)
  if [ -n "$child" ]; then innermost "$child"; else echo "$1"; fi
}
stop() {
  for pid in "${pids[@]}"; do kill -TERM "$(innermost "$pid")" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
  if [ -n "$container" ]; then buildah rm "$container" >/dev/null; fi
  buildah rmi "$image" >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap stop EXIT

BUILDER=buildah packaging/container.sh "$program" "$image" >/dev/null
container=$(buildah from --pull-never "$image")
[ "$(buildah inspect --type image --format '{{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}}' "$image")" = \
  "65532:65532 [/usr/bin/portcullis]" ] || fail "another user or another program"
install -d -o 65532 -g 65532 -m 750 "$work/state"
inside() {
  buildah run --isolation=chroot --volume "$work/state:/var/lib/portcullis" "$container" -- /usr/bin/portcullis "$@"
}
inside check /usr/share/portcullis/crs >"$work/check" 2>&1 || fail "its CRS: $(cat "$work/check")"

"$upstream" "127.0.0.1:$((port + 1))" >/dev/null &
pids+=($!)
# The upstream by its name: names are found without the plug-ins of a C library.
inside run --listen "127.0.0.1:$port" --upstream "http://localhost:$((port + 1))" --mode both \
  --crs /usr/share/portcullis/crs --data /var/lib/portcullis/data >"$work/run" 2>&1 &
pids=($! "${pids[@]}")
status() { curl -s -o /dev/null -w '%{http_code}' --max-time 10 "http://127.0.0.1:$port$1" || true; }
for _ in $(seq 150); do
  [ "$(status /)" != 000 ] && break
  sleep 0.2
done
[ "$(status '/search?q=iron+and+oak')" = 200 ] || fail "a benign request: $(cat "$work/run")"
[ "$(status '/search?q=1%27+UNION+SELECT+name,password+FROM+users--+')" = 403 ] || fail "an attack: $(cat "$work/run")"
# The store writes what it has every second.
for _ in $(seq 20); do
  inside events --data /var/lib/portcullis/data --json >"$work/events" 2>&1 || true
  grep -q '"class":"sqli"' "$work/events" && break
  sleep 1
done
grep -q '"class":"sqli"' "$work/events" || fail "no event of the attack: $(cat "$work/events")"
echo "container-test: passed"
