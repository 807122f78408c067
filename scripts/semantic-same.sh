#!/usr/bin/env bash
# scripts/semantic-same.sh [ARGUMENTS OF THE EXAMPLE]: the findings of the detectors in every sample of the corpora, compared
# with those of the last run, for changes that must change none. The first run keeps them in .portcullis/semantic-findings;
# BLESS=1 replaces what is kept.
set -euo pipefail
cd "$(dirname "$0")/.."
corpora=${PORTCULLIS_CORPORA:-../shared/corpora}
kept=.portcullis/semantic-findings
sets=()
for set in attack benign lifelike review2; do [[ -d $corpora/$set ]] && sets+=("$corpora/$set"); done
[[ ${#sets[@]} -gt 0 ]] || { echo "semantic-same: no corpora in $corpora (PORTCULLIS_CORPORA)" >&2; exit 1; }
mkdir -p .portcullis
${CARGO:-cargo} run --quiet --locked -p portcullis-evaluate --example findings -- --label attack "$@" "${sets[@]}" > "$kept.new"
if [[ ! -e $kept || -n ${BLESS:-} ]]; then
  mv "$kept.new" "$kept"
  echo "semantic-same: kept $(wc -l < "$kept") findings"
elif cmp --silent "$kept" "$kept.new"; then
  rm "$kept.new"
  echo "semantic-same: $(wc -l < "$kept") findings, all the same"
else
  diff "$kept" "$kept.new" | head -n 40
  echo "semantic-same: differences, see $kept and $kept.new" >&2
  exit 1
fi
