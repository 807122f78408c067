#!/usr/bin/env bash
# Builds the Node.js addon and tests it with the servers of Express and Fastify.
#   scripts/node-test.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for tool in node npm; do
  command -v "$tool" >/dev/null || { echo "node-test: $tool is needed; install Node.js 18 or later" >&2; exit 1; }
done
# By the profile of the program's tests, for the crates that are built already.
cargo build --quiet --locked -p portcullis-node
cp -f "${CARGO_TARGET_DIR:-target}/debug/libportcullis_node.so" bindings/node/portcullis.node
cd bindings/node
npm ci --silent --no-audit --no-fund
node --test tests/
