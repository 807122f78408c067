#!/usr/bin/env bash
# Builds pebble, the ACME test authority of Let's Encrypt, and says where it is. The tests of ACME call this.
#   scripts/pebble.sh
# pebble is fetched by the Go client, pinned in scripts/pebble/go.sum.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
command -v go >/dev/null || { echo "pebble: go is needed; install Go 1.25 or later" >&2; exit 1; }
mkdir -p .portcullis
(cd scripts/pebble && GOWORK=off GOFLAGS=-mod=readonly go build -o "$root/.portcullis/pebble" \
  github.com/letsencrypt/pebble/v2/cmd/pebble)
echo "$root/.portcullis/pebble"
