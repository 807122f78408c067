#!/usr/bin/env bash
# A build that knows which of its code is hot (profile-guided optimisation): an instrumented build, a load for it, the build
# with what it counted. The load is what the benchmarks send, plain and through a proxy in each mode, and the requests that portcullis
# evaluate is tested with. Loopback only; about twenty minutes on two cores.
#   scripts/profiled-build.sh [BIN]...     portcullis, and engine-bench if it is named; result: target/profiled/bench-quick/BIN
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bins=("${@:-portcullis}")
packages=() names=()
for bin in "${bins[@]}"; do
  case $bin in
    portcullis) packages+=(-p portcullis) ;;
    engine-bench) packages+=(-p portcullis-bench) ;;
    *) echo "profiled-build: no such program: $bin" >&2; exit 2 ;;
  esac
  names+=(--bin "$bin")
done
tool="$(rustc --print target-libdir)/../bin/llvm-profdata"
[[ -x $tool ]] || rustup component add llvm-tools
[[ -x $tool ]] || { echo "profiled-build: llvm-profdata of this compiler is needed: rustup component add llvm-tools" >&2; exit 1; }
source scripts/started.sh
target=$PWD/target/profiled

# Both builds have the same profile of cargo, for its name goes into the symbols by which counts are found; `bench-quick` is `release` with
# thin LTO, and takes a third of the time.
instrumented=$target/instrumented/bench-quick
# What build scripts count goes where nobody looks; a path that stays the same, or all would be built again.
CARGO_TARGET_DIR=$target/instrumented RUSTFLAGS="${RUSTFLAGS:-} -Cprofile-generate=$target/instrumented/unused" \
  cargo build --profile bench-quick --locked -p portcullis -p portcullis-bench -p portcullis-testkit \
  --bin portcullis --bin engine-bench --bin demo-upstream
export LLVM_PROFILE_FILE=/dev/null
counted=$work/counted
mkdir "$counted"

# One after the other, each with as much time for short messages as for long ones.
for mode in crs semantic both; do
  LLVM_PROFILE_FILE=$counted/engine-%p.profraw "$instrumented/engine-bench" --mode "$mode" --seconds 0.05 >/dev/null
done
LLVM_PROFILE_FILE=$counted/evaluate-%p.profraw "$instrumented/portcullis" evaluate --mode both --crs .portcullis/crs \
  crates/portcullis-evaluate/tests/held-out >/dev/null

app=$(port)
"$instrumented/demo-upstream" "127.0.0.1:$app" >/dev/null &
pids+=($!)
until_open "$app"
for mode in off semantic crs both; do
  listen=$(port)
  LLVM_PROFILE_FILE=$counted/proxy-%p.profraw "$instrumented/portcullis" run --listen "127.0.0.1:$listen" --upstream "http://127.0.0.1:$app" \
    --mode "$mode" $([ "$mode" = crs ] || [ "$mode" = both ] && echo --crs .portcullis/crs) >"$work/output" 2>&1 &
  proxy=$!
  pids+=("$proxy")
  until_open "$listen" || { cat "$work/output" >&2; exit 1; }
  for traffic in get browser json form mixed attack; do
    # Slow and late as an instrumented generator is, its figures say nothing, and so does its exit code.
    "$instrumented/portcullis" bench --targets-only --upstream "http://127.0.0.1:$app" --target "x=http://127.0.0.1:$listen" \
      --traffic "$traffic" --seconds 4 >"$work/bench" 2>&1 || true
    grep -q 'requests/s offered' "$work/bench" || { cat "$work/bench" >&2; exit 1; }
  done
  # It writes what it counted when it ends.
  kill -TERM "$proxy"
  wait "$proxy"
done

for kind in engine evaluate proxy; do
  ls "$counted/$kind"-*.profraw >/dev/null || { echo "profiled-build: nothing was counted by $kind" >&2; exit 1; }
done
"$tool" merge -o "$target/portcullis.profdata" "$counted"/*.profraw
unset LLVM_PROFILE_FILE
CARGO_TARGET_DIR=$target RUSTFLAGS="${RUSTFLAGS:-} -Cprofile-use=$target/portcullis.profdata" \
  cargo build --profile bench-quick --locked ${FEATURES:-} "${packages[@]}" "${names[@]}"
printf '%s\n' "${bins[@]/#/target/profiled/bench-quick/}"
