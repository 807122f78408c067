#!/usr/bin/env bash
# Tests the Node.js addon, as cargo builds it for tests, with the servers of Express and Fastify.
#   scripts/node-test.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for tool in node npm; do
  command -v "$tool" >/dev/null || { echo "node-test: $tool is needed; install Node.js 18 or later" >&2; exit 1; }
done
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
CARGO_TARGET_DIR=$target cargo build --quiet --lib --locked --manifest-path bindings/node/Cargo.toml
cp -f "$target/debug/libportcullis_node.so" bindings/node/portcullis.node
cd bindings/node
npm ci --silent --no-audit --no-fund
node --test tests/
