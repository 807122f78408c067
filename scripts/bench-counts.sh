#!/usr/bin/env bash
# Instructions for one exchange of each case (all, or those named), and for one load of the rules without and with a plan cache
# (plan_build, plan_cached), counted by callgrind: figures that do not depend on what else the machine does. Beside each the
# difference in percent to the one in bench/counts.txt, which BLESS=1 replaces. Of exchanges the difference of two runs counts, so
# that what is built on first use does not. MODE=semantic or MODE=both counts with the detector, alone or beside the rules; those
# figures are stored under CASE@MODE. SITE=fields or SITE=api counts with learned fields or a declared API
# (CASE@MODE+SITE).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v valgrind >/dev/null || { echo "bench-counts: valgrind is needed" >&2; exit 1; }
bench=${BENCH:-target/bench-quick/engine-bench}
stored=bench/counts.txt
mode=${MODE:-crs}
site=${SITE:-nothing}
work=$(mktemp -d "${TMPDIR:-/tmp}/bench-counts.XXXXXX")
trap 'rm -rf "$work"' EXIT

# collect FUNCTION ARGUMENT...: instructions in the functions of that pattern
collect() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="$1" "$bench" "${@:2}" 2>&1 | sed -n 's/.*Collected : //p'
}

count() {
  case $1 in
    plan_build) echo $(($(collect '*load_sharing*' --plan-builds 1) / 2)) ;;
    plan_cached)
      "$bench" --plan-builds 0 --plan-cache "$work/cache" >/dev/null
      echo $(($(collect '*load_cached*' --plan-builds 1 --plan-cache "$work/cache") / 2)) ;;
    *)
      local each
      each=$(exchanges "$1" 20)
      # What is built on first use is built late where values differ from one exchange to the next.
      if ((each < 500000)); then each=$(exchanges "$1" 200); fi
      echo "$each" ;;
  esac
}

# exchanges CASE N: instructions of one exchange, behind N others
exchanges() {
  echo $((($(collect '*Engine*exchange*' --mode "$mode" --site "$site" --only "$1" --iterations $(($2 * 2))) -
    $(collect '*Engine*exchange*' --mode "$mode" --site "$site" --only "$1" --iterations "$2")) / $2))
}

cases=("$@")
if ((${#cases[@]} == 0)); then
  mapfile -t cases < <("$bench" --mode "$mode" --list | grep -v '_1m$')
  if [ "$mode$site" = crsnothing ]; then cases+=(plan_build plan_cached); fi
fi
for name in "${cases[@]}"; do
  now=$(count "$name")
  if [ "$mode" != crs ]; then name+=@$mode; fi
  if [ "$site" != nothing ]; then name+=+$site; fi
  before=$(awk -v name="$name" '$1 == name { print $2 }' "$stored" 2>/dev/null || true)
  awk -v name="$name" -v now="$now" -v before="$before" 'BEGIN {
    printf "%-24s %13d", name, now
    if (before > 0) printf "  %+6.1f %%", (now - before) * 100 / before
    print ""
  }'
  if [ "${BLESS:-}" = 1 ]; then
    { grep -v "^$name " "$stored" 2>/dev/null || true; printf '%-24s %13d\n' "$name" "$now"; } >"$work/counts"
    sort -o "$stored" "$work/counts"
  fi
done
