#!/usr/bin/env bash
# Brings the pinned OWASP CRS and its regression tests to .portcullis/ (ignored by git):
#   .portcullis/crs/crs-setup.conf, .portcullis/crs/rules/*.{conf,data}, .portcullis/crs-tests/**.yaml
# They come as a Go module, whose hash Go checks against the one pinned here; this script compares it once
# more. Safe to run again: nothing is done when the right version is there.
set -euo pipefail

module=github.com/corazawaf/coraza-coreruleset/v4
version=v4.25.0
sum='h1:tqFO1lfVpTiyWtlN618OXpZMfw+nnN0Q4///W5W+/HM='
mod_sum='h1:nRuGXITxOPvsLF2VxaTB7pYok8QB8BitX3ZenXcUryY='

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=$root/.portcullis
stamp=$target/crs/.from
want="$module@$version $sum"

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ] && [ -d "$target/crs-tests" ]; then
  echo "CRS ${version#v} is in ${target#"$PWD"/}/crs"
  exit 0
fi
command -v go >/dev/null || { echo "fetch-crs: go is needed to download $module@$version; install Go 1.21 or later" >&2; exit 1; }

mkdir -p "$target"
work=$(mktemp -d "$target/fetch.XXXXXX")
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
printf 'module fetch\ngo 1.21\nrequire %s %s\n' "$module" "$version" > "$work/go.mod"
printf '%s %s %s\n%s %s/go.mod %s\n' "$module" "$version" "$sum" "$module" "$version" "$mod_sum" > "$work/go.sum"

answer=$(cd "$work" && GOWORK=off GOFLAGS=-mod=mod go mod download -json "$module@$version") || {
  echo "fetch-crs: download failed: $answer" >&2
  exit 1
}
field() { printf '%s\n' "$answer" | sed -n "s/^[[:space:]]*\"$1\": \"\(.*\)\",\{0,1\}\$/\1/p"; }
[ "$(field Sum)" = "$sum" ] || { echo "fetch-crs: $module@$version has sum '$(field Sum)', expected '$sum'" >&2; exit 1; }
dir=$(field Dir)

mkdir -p "$work/crs/rules"
cp "$dir/rules/@crs-setup.conf.example" "$work/crs/crs-setup.conf"
cp "$dir"/rules/@owasp_crs/*.conf "$dir"/rules/@owasp_crs/*.data "$work/crs/rules/"
cp "$dir/rules/LICENSE" "$work/crs/"
cp -r "$dir/tests" "$work/crs-tests"
chmod -R u+w "$work"
printf '%s\n' "$want" > "$work/crs/.from"

for part in crs crs-tests; do
  rm -rf "${target:?}/$part"
  mv "$work/$part" "$target/$part"
done
rules=$(cat "$target"/crs/rules/*.conf | grep -cE '^Sec(Rule|Action)\b')
files=$(find "$target/crs-tests" -name '*.yaml' | wc -l)
echo "CRS ${version#v}: $rules rules in ${target#"$PWD"/}/crs, $files test files in ${target#"$PWD"/}/crs-tests"
