#!/usr/bin/env bash
# Builds the container image of a static program (make static): the program, what all packages carry, authorities of
# certificates, and a user without rights. Nothing is downloaded.
#   packaging/container.sh PROGRAM [NAME:TAG]
# BUILDER: podman, buildah or docker; the first that is there otherwise.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
program=$1
version=$("$program" --version | cut -d' ' -f2)
image=${2:-portcullis:$version}
authorities=/etc/ssl/certs/ca-certificates.crt
[[ -s $authorities ]] || { echo "container.sh: $authorities is missing; install ca-certificates" >&2; exit 1; }
if readelf --program-headers "$program" | grep -q INTERP; then
  echo "container.sh: $program needs libraries that the image does not have; build it by make static" >&2
  exit 1
fi
builder=${BUILDER:-}
for candidate in podman buildah docker; do
  if [ -z "$builder" ] && command -v "$candidate" >/dev/null; then builder=$candidate; fi
done
[ -n "$builder" ] || { echo "container.sh: install podman, buildah or docker" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
packaging/stage.sh "$program" "$root/usr"
install -D -m 644 "$authorities" "$root/etc/ssl/certs/ca-certificates.crt"
echo 'portcullis:x:65532:65532::/var/lib/portcullis:/nonexistent' >"$root/etc/passwd"
echo 'portcullis:x:65532:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
install -d -m 755 "$root/etc/portcullis" "$root/var/lib" "$root/var/log"
install -d -m 750 "$root/var/lib/portcullis" "$root/var/log/portcullis"
install -d -m 1777 "$root/tmp"
chmod -R go+rX "$root/etc" "$root/usr"
tar --create --file "$work/root.tar" --directory "$root" --owner=0 --group=0 --sort=name \
  --exclude=./var/lib/portcullis --exclude=./var/log/portcullis .
tar --append --file "$work/root.tar" --directory "$root" --owner=65532 --group=65532 \
  ./var/lib/portcullis ./var/log/portcullis
rm -r "$root"
"$builder" build --quiet --tag "$image" --file packaging/Containerfile "$work" >/dev/null
echo "$image"
