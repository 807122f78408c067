#!/usr/bin/env bash
# Lays out what every package carries below a folder: program, man pages, completions, documents, dashboards, alert
# rules and the pinned CRS.
#   packaging/stage.sh PROGRAM FOLDER [SYMBOLS]
# SYMBOLS: a file for the symbols that are taken out of the program, which names it; debuggers look for it beside the
# program, and in /usr/lib/debug below the program's path.
# Needs the pinned CRS (make crs), which is no part of the repository.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
program=$1 root=$2 symbols=${3:-}
crs=${PORTCULLIS_CRS:-.portcullis/crs}
[[ -f $crs/rules/REQUEST-901-INITIALIZATION.conf ]] || { echo "no CRS in $crs; run make crs" >&2; exit 1; }
[[ -x $program ]] || { echo "$program is missing; CARGO_PROFILE_RELEASE_STRIP=none cargo build --release --locked -p portcullis --no-default-features" >&2; exit 1; }

put() { install -D -m "$1" "$2" "$root/$3"; }
put 755 "$program" bin/portcullis
strip --strip-unneeded "$root/bin/portcullis"
if [[ -n $symbols ]]; then
  objcopy --only-keep-debug --compress-debug-sections "$program" "$symbols"
  chmod 644 "$symbols"
  objcopy --add-gnu-debuglink="$symbols" "$root/bin/portcullis"
fi
for file in docs/*.md docs/config.schema.json CHANGELOG.md README.md SECURITY.md NOTICE; do
  put 644 "$file" "share/doc/portcullis/$(basename "$file")"
done
put 644 docs/README.md share/doc/portcullis/index.md
put 644 LICENSE share/doc/portcullis/copyright

put 644 "$crs/crs-setup.conf" share/portcullis/crs/crs-setup.conf
put 644 "$crs/LICENSE" share/portcullis/crs/LICENSE
for file in "$crs"/rules/*.conf "$crs"/rules/*.data; do
  put 644 "$file" "share/portcullis/crs/rules/$(basename "$file")"
done
(cd deploy && find . -type f ! -name '*_test.yml') | while read -r file; do
  put 644 "deploy/$file" "share/portcullis/${file#./}"
done

"$program" generate man "$root/share/man/man1"
gzip -9n "$root"/share/man/man1/*.1
completions=$(mktemp -d "$root/completions.XXXXXX")
"$program" generate completions "$completions"
put 644 "$completions/portcullis.bash" share/bash-completion/completions/portcullis
put 644 "$completions/_portcullis" share/zsh/vendor-completions/_portcullis
put 644 "$completions/portcullis.fish" share/fish/vendor_completions.d/portcullis.fish
rm -r "$completions"
chmod -R u=rwX,go=rX "$root/share/man"
