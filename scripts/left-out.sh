#!/usr/bin/env bash
# Says in one line how many checks were left out, by the file PORTCULLIS_LEFT_OUT, a line for each.
set -euo pipefail
file=${PORTCULLIS_LEFT_OUT:?names the file}
[[ -s $file ]] || { echo "all checks ran"; exit 0; }
count=$(sort -u "$file" | wc -l)
names=$(sort -u "$file" | sed 's/.*: //' | paste -sd , | sed 's/,/, /g')
echo "$count checks left out, since they need the corpora (folder ../shared/corpora, or PORTCULLIS_CORPORA): $names"
