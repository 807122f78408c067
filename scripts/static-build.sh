#!/usr/bin/env bash
# Builds the program without a shared library, for containers and for Linux systems of any age: target/static/portcullis.
#   scripts/static-build.sh [PROFILE]
# With glibc, which reads /etc/hosts, /etc/resolv.conf and DNS without its plug-ins; names that only another plug-in of
# nsswitch.conf knows (mDNS, LDAP) are not found. PORTCULLIS_TARGET names another target that rustup has, such as
# x86_64-unknown-linux-musl or aarch64-unknown-linux-gnu; its C compiler and linker are Cargo's to know.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
profile=${1:-release}
target=${PORTCULLIS_TARGET:-$(rustc -vV | sed -n 's/^host: //p')}
# packaging/stage.sh takes the symbols off and puts them beside the program.
export CARGO_PROFILE_RELEASE_STRIP=none
# With --target the flag is for the program only, not for build scripts, which need plug-ins of the compiler.
RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static" ${CARGO:-cargo} build --locked --profile "$profile" \
  --target "$target" --target-dir target/static-build --no-default-features -p portcullis
folder=$profile
if [ "$folder" = dev ]; then folder=debug; fi
built=target/static-build/$target/$folder/portcullis
if readelf --program-headers "$built" | grep -q INTERP; then
  echo "static-build: $built needs shared libraries; the target $target cannot be linked without" >&2
  exit 1
fi
install -D -m 755 "$built" target/static/portcullis
echo target/static/portcullis
