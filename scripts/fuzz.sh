#!/usr/bin/env bash
# Builds the fuzz targets of fuzz/ and runs each for MINUTES (default 10), JOBS (default 2) at a time.
#   MINUTES=1 scripts/fuzz.sh [TARGET...]
# Stable Rust is enough: the coverage flags below are what cargo-fuzz passes, less the sanitizers, which find
# little in code without `unsafe`. A C++ compiler is needed for libFuzzer. Inputs that break a target are kept
# in fuzz/artifacts/TARGET; the log of each in fuzz/artifacts/TARGET.log.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export MINUTES=${MINUTES:-10} root
cd "$root/fuzz"
[ $# -gt 0 ] || set -- $(basename -s .rs -a fuzz_targets/*.rs)

export host
host=$(rustc -vV | sed -n 's/^host: //p')
RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
-Cllvm-args=-sanitizer-coverage-trace-compares -Cdebug-assertions -Coverflow-checks" \
  cargo build --release --target "$host" --bins

mkdir -p artifacts
cat ./*.dict > artifacts/all.dict

one() {
  local target=$1 log=$root/fuzz/artifacts/$1.log
  mkdir -p "corpus/$target" "artifacts/$target"
  if "target/$host/release/$target" -max_total_time=$((MINUTES * 60)) -timeout=10 -rss_limit_mb=2048 -max_len=4096 \
    -print_final_stats=1 -dict=artifacts/all.dict "-artifact_prefix=artifacts/$target/" "corpus/$target" > "$log" 2>&1; then
    echo "ok   $target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") runs"
  else
    echo "FAIL $target: see $log"
  fi
}
export -f one
printf '%s\n' "$@" | xargs -P "${JOBS:-2}" -I{} bash -c 'one "$1"' one {} | tee artifacts-summary.tmp
failed=$(grep -c ^FAIL artifacts-summary.tmp || true)
rm -f artifacts-summary.tmp
echo "$(($# - failed)) passed, $failed failed"
[ "$failed" = 0 ]
