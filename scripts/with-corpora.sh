#!/usr/bin/env bash
# with-corpora.sh NAME COMMAND...: runs COMMAND, which needs the corpora. They are no part of the repository: on a machine without them NAME
# is left out, which is said and counted (scripts/left-out.sh). Where PORTCULLIS_CORPORA names them, and on CI, COMMAND runs in any case, and
# says itself what is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
name=$1
shift
if [[ -n ${PORTCULLIS_CORPORA:-} || -d ../shared/corpora || ( -n ${CI:-} && ${CI:-} != false ) ]]; then
  exec "$@"
fi
line="left out, since it needs the corpora: $name"
echo "$line" >&2
[[ -z ${PORTCULLIS_LEFT_OUT:-} ]] || echo "$line" >> "$PORTCULLIS_LEFT_OUT"
