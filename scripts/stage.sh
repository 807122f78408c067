#!/usr/bin/env bash
# stage.sh NAME COMMAND...   runs COMMAND, and writes down how long it took where PORTCULLIS_STAGES names a file
# stage.sh --table           the table of the stages in that file
set -euo pipefail
file=${PORTCULLIS_STAGES:-}
if [[ $1 == --table ]]; then
  [[ -n $file && -s $file ]] || exit 0
  awk -F'\t' '
    BEGIN { printf "\n%-28s %9s\n", "stage", "min:s" }
    { printf "%-28s %6d:%02d%s\n", $1, $2 / 60, $2 % 60, $3 == 0 ? "" : "  failed"; all += $2 }
    END { printf "%-28s %6d:%02d\n", "all", all / 60, all % 60 }' "$file"
  exit 0
fi
name=$1
shift
SECONDS=0
code=0
"$@" || code=$?
[[ -z $file ]] || printf '%s\t%d\t%d\n' "$name" "$SECONDS" "$code" >>"$file"
exit "$code"
