#!/usr/bin/env bash
# Instructions for one exchange of each case (all, or those named), counted by callgrind: figures that do not depend on what else the
# machine does. The difference of two runs, so that what is built on first use does not count.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v valgrind >/dev/null || { echo "bench-counts: valgrind is needed" >&2; exit 1; }
bench=${BENCH:-target/release/engine-bench}
count() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='*Engine*exchange*' \
    "$bench" --only "$1" --iterations "$2" 2>&1 | sed -n 's/.*Collected : //p'
}
cases=("$@")
if ((${#cases[@]} == 0)); then
  mapfile -t cases < <("$bench" --list)
fi
for name in "${cases[@]}"; do
  few=$(count "$name" 20)
  more=$(count "$name" 40)
  printf '%-18s %12d\n' "$name" $(((more - few) / 20))
done
