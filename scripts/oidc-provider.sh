#!/usr/bin/env bash
# Installs npm's oidc-provider, a real OpenID Connect provider, and says where its program is. The tests of the login call this.
#   scripts/oidc-provider.sh
# The packages are pinned in scripts/oidc-provider/package-lock.json; node 18 or later runs them.
set -euo pipefail

folder=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/oidc-provider
cd "$folder"
for tool in node npm; do
  command -v "$tool" >/dev/null || { echo "oidc-provider: $tool is needed; install Node.js 18 or later" >&2; exit 1; }
done
# What npm writes at the end of an installation; the same lock file needs no second one.
installed=node_modules/.installed
if ! cmp -s package-lock.json "$installed"; then
  npm ci --no-audit --no-fund --ignore-scripts --silent >&2
  cp package-lock.json "$installed"
fi
echo "$folder/provider.mjs"
