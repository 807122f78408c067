#!/usr/bin/env bash
# Makes the files of a release of a program, serves them on loopback and installs from there with the release's own
# script: as people do, twice, with a damaged archive, with half a script; then removes what was installed.
#   scripts/install-test.sh [target/debug/portcullis]
# PORT of loopback has to be free. Stops only what it started.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
program=${1:-target/debug/portcullis} port=${PORT:-18390}
work=$(mktemp -d)
server=
stop() {
  if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap stop EXIT
fail() { echo "install-test: $*" >&2; exit 1; }

url=http://127.0.0.1:$port/release
release=$work/web/release prefix="$work/a prefix"
archive=$(packaging/archive.sh "$program" "$release" "$url")
mkdir "$work/again"
again=$(packaging/archive.sh "$program" "$work/again" "$url")
cmp "$archive" "$again" || fail "the same program makes another archive"
python3 -m http.server --bind 127.0.0.1 --directory "$work/web" "$port" >/dev/null 2>&1 &
server=$!
for _ in $(seq 50); do
  curl -fsS "$url/SHA256SUMS" -o "$work/sums" 2>/dev/null && break
  sleep 0.1
done
(cd "$release" && sha256sum --quiet -c "$work/sums") || fail "SHA256SUMS is not that of the archive"

# install NAME ARGUMENT...: as people do, by a shell without bash's extras; what it says is in $work/NAME
install() { curl -fsS "$url/install.sh" | dash -s -- --prefix "$prefix" "${@:2}" >"$work/$1" 2>&1; }
# refused NAME TEXT ARGUMENT...
refused() {
  if install "$1" "${@:3}"; then fail "$1 was installed: $(cat "$work/$1")"; fi
  grep -qF -- "$2" "$work/$1" || fail "$1: $(cat "$work/$1")"
}
# Nothing may be left of an attempt that failed.
untouched() { [ -z "$(find "$prefix" -mindepth 1 2>/dev/null)" ] || fail "$1 left something in the prefix"; }

mkdir -p "$work/mirror-damaged" "$work/mirror-cut" "$work/mirror-empty"
cp "$archive" "$work/mirror-damaged/" && printf x | dd of="$work/mirror-damaged/$(basename "$archive")" bs=1 seek=5000 conv=notrunc status=none
head -c 100000 "$archive" >"$work/mirror-cut/$(basename "$archive")"
refused damaged "is not what was released" --from "$work/mirror-damaged"
refused cut "is not what was released" --from "$work/mirror-cut"
refused absent "cannot be read" --from "$work/mirror-empty"
refused plain "is not an https:// address" --from http://mirror.example/release
refused gone "cannot be downloaded" --from "$url/nothing"
refused option "is no option" --force
refused uninstalled "nothing was installed" --uninstall
untouched "a refused installation"
# A download of the script that breaks off anywhere in it.
for share in 20 50 80 99; do
  head -c $(($(wc -c <"$release/install.sh") * share / 100)) "$release/install.sh" >"$work/half.sh"
  dash "$work/half.sh" --prefix "$prefix" >/dev/null 2>&1 || true
  untouched "a script of $share %"
done

install first || fail "$(cat "$work/first")"
[ "$("$prefix/bin/portcullis" --version)" = "$("$program" --version)" ] || fail "another program"
for file in share/man/man1/portcullis-run.1.gz share/portcullis/crs/rules/REQUEST-901-INITIALIZATION.conf \
  share/portcullis/prometheus/alerts.yml share/bash-completion/completions/portcullis share/doc/portcullis/index.md; do
  [ -s "$prefix/$file" ] || fail "$file is missing"
done
"$prefix/bin/portcullis" check "$prefix/share/portcullis/crs" >"$work/check" 2>&1 || fail "its CRS: $(cat "$work/check")"

# Again, over an older version that had a file more, beside files of others.
echo share/portcullis/old/gone.txt >>"$prefix/share/portcullis/installed-files"
mkdir "$prefix/share/portcullis/old"
touch "$prefix/share/portcullis/old/gone.txt" "$prefix/bin/other"
install second || fail "$(cat "$work/second")"
[ ! -e "$prefix/share/portcullis/old" ] || fail "a file of the version before is left"
# The list of files is not to be believed beyond what such a list has.
printf '%s\n' ../outside /etc/outside bin/../../outside >>"$prefix/share/portcullis/installed-files"
touch "$work/outside"
install removed --uninstall || fail "$(cat "$work/removed")"
[ -e "$work/outside" ] || fail "a file outside of the prefix was removed"
left=$(find "$prefix" -type f)
[ "$left" = "$prefix/bin/other" ] || fail "left behind, or too much removed: $left"
echo "install-test: passed"
