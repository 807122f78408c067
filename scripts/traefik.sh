#!/usr/bin/env bash
# Builds Traefik, and says where it is. `make traefik-test` calls this.
#   scripts/traefik.sh
# Go fetches it, pinned in scripts/traefik/go.sum: some 900 MB of modules, and ten minutes on two cores. Without its
# dashboard, whose files are not in the module.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
command -v go >/dev/null || { echo "traefik: go is needed; install Go 1.26 or later" >&2; exit 1; }
mkdir -p .portcullis
(cd scripts/traefik && GOWORK=off GOFLAGS=-mod=readonly \
    go build -o "$root/.portcullis/traefik" github.com/traefik/traefik/v3/cmd/traefik)
echo "$root/.portcullis/traefik"
