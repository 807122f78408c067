#!/usr/bin/env bash
# Builds Caddy with the modules of examples/integrations/Caddyfile, and says where it is. `make caddy-test` calls this.
#   scripts/caddy.sh
# Caddy is fetched by the Go client, pinned in scripts/caddy/go.sum.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
command -v go >/dev/null || { echo "caddy: go is needed; install Go 1.26 or later" >&2; exit 1; }
mkdir -p .portcullis
(cd scripts/caddy && GOWORK=off GOFLAGS=-mod=readonly go build -o "$root/.portcullis/caddy" .)
echo "$root/.portcullis/caddy"
