#!/usr/bin/env bash
# Builds the Debian package of a program that is built already.
#   packaging/debian/build.sh [target/release/portcullis] [target/debian]
# Needs dpkg-deb and the pinned CRS (make crs). Prints the path of the package; portcullis.debug beside it has the symbols
# of the program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
program=${1:-target/release/portcullis} out=${2:-target/debian}
version=$("$program" --version | cut -d' ' -f2)
architecture=$(dpkg --print-architecture)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"

mkdir -p "$out"
packaging/stage.sh "$program" "$root/usr" "$out/portcullis.debug"
put() { install -D -m 644 "$1" "$root/$2"; }
put packaging/systemd/portcullis.service usr/lib/systemd/system/portcullis.service
put packaging/systemd/portcullis.socket usr/lib/systemd/system/portcullis.socket
put packaging/portcullis.sysusers usr/lib/sysusers.d/portcullis.conf
# Not a conffile: the program changes it, too. The first installation makes the document of it.
put packaging/portcullis.toml usr/share/portcullis/portcullis.toml
put packaging/portcullis.logrotate etc/logrotate.d/portcullis

size=$(du -sk "$root" | cut -f1)
mkdir -p "$root/DEBIAN"
sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$architecture/" -e "s/@SIZE@/$size/" \
  packaging/debian/control.in > "$root/DEBIAN/control"
install -m 644 packaging/debian/conffiles "$root/DEBIAN/conffiles"
for script in postinst prerm postrm; do
  install -m 755 "packaging/debian/$script" "$root/DEBIAN/$script"
done
package="$out/portcullis_${version}_$architecture.deb"
dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null
echo "$package"
