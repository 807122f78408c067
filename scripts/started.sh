# For scripts that start servers, by `source`: what is in `pids` is stopped at the end, the last one first, and the folder `work` goes.
# shellcheck shell=bash

work=$(mktemp -d "${TMPDIR:-/tmp}/portcullis-${0##*/}.XXXXXX")
pids=()

stop_started() {
  for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
    kill -TERM "${pids[i]}" 2>/dev/null || true
    wait "${pids[i]}" 2>/dev/null || true
  done
  rm -rf "$work"
}
trap stop_started EXIT

# addresses FILE PID PATTERN COUNT: what PATTERN's group finds in FILE, once it is there so many times
addresses() {
  for _ in $(seq 600); do
    found=$(sed -n "s/.*$3.*/\1/p" "$1")
    [[ $(grep -c . <<< "$found") -lt $4 ]] || { echo "$found"; return; }
    kill -0 "$2" 2>/dev/null || break
    sleep 0.1
  done
  echo "${0##*/}: no address in $1:" >&2
  cat "$1" >&2
  return 1
}

# A port that is free now.
port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# until_open PORT: waits until somebody listens there
until_open() { for _ in $(seq 600); do (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return; sleep 0.05; done; return 1; }
