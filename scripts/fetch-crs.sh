#!/usr/bin/env bash
# Brings the pinned releases of the OWASP CRS and their regression tests to .portcullis/ (ignored by git):
#   .portcullis/crs/crs-setup.conf, .portcullis/crs/rules/*.{conf,data}, .portcullis/crs-tests/**.yaml
#   .portcullis/crs-4.22.0/ with the same, laid out as a release is: tests in tests/regression/tests
# They come as Go modules, whose hashes Go checks against those pinned here; this script compares them once
# more. Safe to run again: nothing is done when the right versions are there.
set -euo pipefail

module=github.com/corazawaf/coraza-coreruleset/v4

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=$root/.portcullis

# fetch VERSION SUM MOD_SUM RULES TESTS: the folders are below .portcullis.
fetch() (
  version=$1 sum=$2 mod_sum=$3 rules=$target/$4 tests=$target/$5
  want="$module@$version $sum"
  if [ -f "$rules/.from" ] && [ "$(cat "$rules/.from")" = "$want" ] && [ -d "$tests" ]; then
    echo "CRS ${version#v} is in ${rules#"$PWD"/}"
    return
  fi
  command -v go >/dev/null || {
    echo "fetch-crs: go is needed to download $module@$version; install Go 1.21 or later" >&2
    exit 1
  }

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
  [ "$(field Sum)" = "$sum" ] || {
    echo "fetch-crs: $module@$version has sum '$(field Sum)', expected '$sum'" >&2
    exit 1
  }
  dir=$(field Dir)

  mkdir -p "$work/crs/rules"
  cp "$dir/rules/@crs-setup.conf.example" "$work/crs/crs-setup.conf"
  cp "$dir"/rules/@owasp_crs/*.conf "$dir"/rules/@owasp_crs/*.data "$work/crs/rules/"
  cp "$dir/rules/LICENSE" "$work/crs/"
  cp -r "$dir/tests" "$work/crs-tests"
  chmod -R u+w "$work"
  printf '%s\n' "$want" > "$work/crs/.from"

  rm -rf "${rules:?}" "${tests:?}"
  mv "$work/crs" "$rules"
  mkdir -p "$(dirname "$tests")"
  mv "$work/crs-tests" "$tests"
  count=$(cat "$rules"/rules/*.conf | grep -cE '^Sec(Rule|Action)\b')
  files=$(find "$tests" -name '*.yaml' | wc -l)
  echo "CRS ${version#v}: $count rules in ${rules#"$PWD"/}, $files test files in ${tests#"$PWD"/}"
)

fetch v4.25.0 'h1:tqFO1lfVpTiyWtlN618OXpZMfw+nnN0Q4///W5W+/HM=' \
  'h1:nRuGXITxOPvsLF2VxaTB7pYok8QB8BitX3ZenXcUryY=' crs crs-tests
fetch v4.22.0 'h1:rQhJ1+2+TZsoVBXlRWn+AVteECot3pIF8tSVDjjhkUc=' \
  'h1:tRjsdtj39+at47dLCpE8ChoDa2FK2IAwTWIpDT8Z62g=' crs-4.22.0 crs-4.22.0/tests/regression/tests
