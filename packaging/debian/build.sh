#!/usr/bin/env bash
# Builds the Debian package of a program that is built already.
#   packaging/debian/build.sh [target/release/portcullis] [target/debian]
# Needs dpkg-deb, and the pinned CRS (make crs), which is no part of the repository. Prints the path of the package.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
program=${1:-target/release/portcullis} out=${2:-target/debian}
crs=${PORTCULLIS_CRS:-.portcullis/crs}
[[ -f $crs/rules/REQUEST-901-INITIALIZATION.conf ]] || { echo "no CRS in $crs; run make crs" >&2; exit 1; }
[[ -x $program ]] || { echo "$program is missing; cargo build --release --locked -p portcullis --no-default-features" >&2; exit 1; }

version=$("$program" --version | cut -d' ' -f2)
architecture=$(dpkg --print-architecture)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"

put() { install -D -m "$1" "$2" "$root/$3"; }
put 755 "$program" usr/bin/portcullis
strip --strip-unneeded "$root/usr/bin/portcullis"
put 644 packaging/systemd/portcullis.service usr/lib/systemd/system/portcullis.service
put 644 packaging/systemd/portcullis.socket usr/lib/systemd/system/portcullis.socket
put 644 packaging/portcullis.sysusers usr/lib/sysusers.d/portcullis.conf
put 644 packaging/portcullis.toml etc/portcullis/portcullis.toml
put 644 packaging/portcullis.logrotate etc/logrotate.d/portcullis
for file in docs/*.md docs/config.schema.json CHANGELOG.md README.md SECURITY.md NOTICE; do
  put 644 "$file" "usr/share/doc/portcullis/$(basename "$file")"
done
put 644 docs/README.md usr/share/doc/portcullis/index.md
put 644 LICENSE usr/share/doc/portcullis/copyright

put 644 "$crs/crs-setup.conf" usr/share/portcullis/crs/crs-setup.conf
put 644 "$crs/LICENSE" usr/share/portcullis/crs/LICENSE
for file in "$crs"/rules/*.conf "$crs"/rules/*.data; do
  put 644 "$file" "usr/share/portcullis/crs/rules/$(basename "$file")"
done
(cd deploy && find . -type f ! -name '*_test.yml') | while read -r file; do
  put 644 "deploy/$file" "usr/share/portcullis/${file#./}"
done

"$program" generate man "$root/usr/share/man/man1"
gzip -9n "$root"/usr/share/man/man1/*.1
completions=$(mktemp -d "$root/completions.XXXXXX")
"$program" generate completions "$completions"
put 644 "$completions/portcullis.bash" usr/share/bash-completion/completions/portcullis
put 644 "$completions/_portcullis" usr/share/zsh/vendor-completions/_portcullis
put 644 "$completions/portcullis.fish" usr/share/fish/vendor_completions.d/portcullis.fish
rm -r "$completions"
chmod -R u=rwX,go=rX "$root/usr/share/man"

size=$(du -sk "$root" | cut -f1)
mkdir -p "$root/DEBIAN"
sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$architecture/" -e "s/@SIZE@/$size/" \
  packaging/debian/control.in > "$root/DEBIAN/control"
install -m 644 packaging/debian/conffiles "$root/DEBIAN/conffiles"
for script in postinst prerm postrm; do
  install -m 755 "packaging/debian/$script" "$root/DEBIAN/$script"
done
mkdir -p "$out"
package="$out/portcullis_${version}_$architecture.deb"
dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null
echo "$package"
