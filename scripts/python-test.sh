#!/usr/bin/env bash
# Builds the wheel of the Python binding and tests it with gunicorn, waitress, uvicorn and Starlette.
#   scripts/python-test.sh
# maturin and the servers come from PyPI, into an environment below the target folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command -v python3 >/dev/null || { echo "python-test: python3 is needed; install Python 3.10 or later" >&2; exit 1; }
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
venv=$target/python-venv
[[ -x $venv/bin/pip ]] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check -r bindings/python/tests/requirements.txt
rm -rf "$target/test-wheels"
# By the profile of the program's tests, for the crates that are built already.
PATH="$venv/bin:$PATH" "$venv/bin/maturin" build --quiet --locked --profile dev \
  --manifest-path bindings/python/Cargo.toml --out "$target/test-wheels"
"$venv/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps \
  "$target"/test-wheels/portcullis_waf-*.whl
cd bindings/python/tests
PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" -W error::ResourceWarning -m unittest test_module test_wsgi test_asgi
