#!/usr/bin/env bash
# The messages of engine-bench through our engine, libmodsecurity 3, Coraza 3 and zentinel-modsec, in turn for each case, in this run: CPU microseconds
# per exchange, and how often ours goes into theirs. The same CRS, paranoia level 1, bodies of requests and responses read.
#   scripts/bench-peers.sh [CASE...]     SECONDS_EACH=1; a peer that cannot be built is left out, and said to be
# What a peer refuses though the case is benign, or lets pass though it is an attack, is shown in brackets.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
bench=${BENCH:-target/release/engine-bench}
crs=${CRS:-.portcullis/crs}
seconds=${SECONDS_EACH:-1}
work=$(mktemp -d "${TMPDIR:-/tmp}/bench-peers.XXXXXX")
trap 'rm -rf "$work"' EXIT

peers=()
if cc -O2 -Wall -o "$work/modsecurity3" bench/peers/modsecurity3.c -lmodsecurity 2>"$work/why"; then
  peers+=(modsecurity3)
else
  echo "bench-peers: without libmodsecurity (Debian: libmodsecurity-dev): $(tail -1 "$work/why")" >&2
fi
if (cd bench/peers/coraza && GOWORK=off GOFLAGS=-mod=readonly go build -o "$work/coraza" .) 2>"$work/why"; then
  peers+=(coraza)
else
  echo "bench-peers: without Coraza (Go 1.25 or later): $(tail -1 "$work/why")" >&2
fi
# Built once: it takes minutes.
if cargo build --quiet --release --locked --manifest-path bench/peers/zentinel/Cargo.toml --target-dir target/peers 2>"$work/why"; then
  cp target/peers/release/portcullis-bench-zentinel "$work/zentinel"
  peers+=(zentinel)
else
  echo "bench-peers: without zentinel-modsec: $(tail -1 "$work/why")" >&2
fi

# libmodsecurity takes the directive behind a rule without actions for its actions, unless a blank line is between them.
mkdir -p "$work/crs/rules"
cp "$crs"/rules/*.data "$work/crs/rules/"
setup=$crs/crs-setup.conf
[ -f "$setup" ] || setup=$crs/crs-setup.conf.example
cp "$setup" "$work/crs/crs-setup.conf"
for file in "$crs"/rules/*.conf; do
  sed -E 's/^(SecRule|SecAction|SecMarker)\b/\n\1/' "$file" >"$work/crs/rules/$(basename "$file")"
done
cat >"$work/crs/engine.conf" <<'END'
SecRuleEngine On
SecRequestBodyAccess On
SecResponseBodyAccess On
SecResponseBodyMimeType text/plain text/html text/xml
SecRequestBodyLimit 13107200
SecRequestBodyJsonDepthLimit 512
SecAuditEngine Off
SecRule REQUEST_HEADERS:Content-Type "^application/json" "id:200001,phase:1,t:none,t:lowercase,pass,nolog,ctl:requestBodyProcessor=JSON"
END
cat >"$work/crs/modsecurity.conf" <<'END'
SecRequestBodyNoFilesLimit 13107200
SecPcreMatchLimit 100000
SecPcreMatchLimitRecursion 100000
END
entry() {
  local file
  for file in engine.conf "$@" crs-setup.conf; do echo "Include $work/crs/$file"; done
  for file in "$work"/crs/rules/*.conf; do echo "Include $file"; done
}
entry >"$work/coraza.conf"
cp "$work/coraza.conf" "$work/zentinel.conf"
entry modsecurity.conf >"$work/modsecurity3.conf"

"$bench" --export "$work/messages"
cases=("$@")
((${#cases[@]})) || mapfile -t cases < <("$bench" --list | grep -v '_1m$')
printf '%-18s %10s' case ours
((${#peers[@]} == 0)) || printf ' %14s %7s' $(for peer in "${peers[@]}"; do echo "$peer" times; done)
echo
for name in "${cases[@]}"; do
  ours=$("$bench" --crs "$crs" --only "$name" --seconds "$seconds" | awk -v name="$name" '$1 == name { print $3 }')
  printf '%-18s %10.1f' "$name" "$ours"
  notes=
  for peer in "${peers[@]}"; do
    read -r micros refused _ all _ < <("$work/$peer" "$work/$peer.conf" "$work/messages" "$name" "$seconds")
    printf ' %14.1f %7.1f' "$micros" "$(awk "BEGIN { print $micros / $ours }")"
    case $name in
      sqli_* | xss_* | rce_* | lfi_*) ((refused == all)) || notes+=" [$peer let $((all - refused)) of $all pass]" ;;
      *) ((refused == 0)) || notes+=" [$peer refused $refused of $all]" ;;
    esac
  done
  echo "$notes"
done
