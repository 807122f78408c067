#!/usr/bin/env bash
# Builds the Debian package of libmodsecurity.so.3, of a library that is built already.
#   packaging/debian/libmodsecurity/build.sh [target/release/libmodsecurity.so] [target/debian]
# Needs dpkg-deb and binutils. Prints the path of the package.
#
# The library lies in a folder of its own, which ld.so.conf.d puts before those of the system. dpkg-divert would put it
# over Debian's file, but the name of that file has its version in it (libmodsecurity.so.3.0.9), so each upgrade of
# libmodsecurity3 would need another diversion; and ldconfig complains of a second library with the same soname there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
library=${1:-target/release/libmodsecurity.so} out=${2:-target/debian}
[[ -f $library ]] || { echo "$library is missing; make libmodsecurity" >&2; exit 1; }
control=packaging/debian/libmodsecurity

version=$(sed -n '/^\[workspace\.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
architecture=$(dpkg --print-architecture)
# The newest version of glibc that a symbol is from.
libc=$(objdump -T "$library" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -V | tail -1)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"

put() { install -D -m "$1" "$2" "$root/$3"; }
put 644 "$library" usr/lib/portcullis/libmodsecurity/libmodsecurity.so.3
strip --strip-unneeded "$root/usr/lib/portcullis/libmodsecurity/libmodsecurity.so.3"
put 644 $control/ld.so.conf etc/ld.so.conf.d/00-portcullis-libmodsecurity.conf
for file in docs/libmodsecurity.md docs/seclang.md docs/compatibility.md CHANGELOG.md NOTICE; do
  put 644 "$file" "usr/share/doc/portcullis-libmodsecurity/$(basename "$file")"
done
put 644 LICENSE usr/share/doc/portcullis-libmodsecurity/copyright

mkdir -p "$root/DEBIAN"
sed -e "s/@VERSION@/$version/" -e "s/@ARCHITECTURE@/$architecture/" -e "s/@LIBC@/$libc/" \
  -e "s/@SIZE@/$(du -sk "$root" | cut -f1)/" $control/control.in > "$root/DEBIAN/control"
install -m 644 $control/conffiles $control/triggers "$root/DEBIAN/"
install -m 755 $control/postinst $control/postrm "$root/DEBIAN/"
mkdir -p "$out"
package="$out/portcullis-libmodsecurity_${version}_$architecture.deb"
dpkg-deb --root-owner-group --build "$root" "$package" >/dev/null
echo "$package"
