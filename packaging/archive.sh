#!/usr/bin/env bash
# Makes what a release publishes of a program that is built already: an archive for Linux, SHA256SUMS, and the script
# that installs the archive, which has its checksum.
#   packaging/archive.sh PROGRAM FOLDER URL
# URL: the folder of the release on the web, in which people find the three files. Run once more with the program of
# another architecture, the archives of a folder come together in both lists. The same program and commit make the same
# bytes. Prints the path of the archive.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
program=$1 out=$2 url=$3
case $url in
  https://* | http://127.0.0.1:*) ;;
  *) echo "archive.sh: the release needs an https:// address, not $url" >&2; exit 1 ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

version=$("$program" --version | cut -d' ' -f2)
# e_machine of the ELF header: the file says what it runs on, wherever it was built.
case $(od -An -tx1 -j18 -N2 "$program" | tr -d ' ') in
  3e00) architecture=x86_64 ;;
  b700) architecture=aarch64 ;;
  *) echo "archive.sh: $program is for a machine without a name here" >&2; exit 1 ;;
esac
name=portcullis-$version
mkdir -p "$out"
packaging/stage.sh "$program" "$work/$name" "$work/portcullis.debug"
gzip -9n <"$work/portcullis.debug" >"$out/$name-linux-$architecture.debug.gz"
chmod -R u=rwX,go=rX "$work/$name"
archive=$name-linux-$architecture.tar.gz
tar --create --directory "$work" --sort=name --owner=0 --group=0 --numeric-owner \
  --mtime="@$(git log -1 --format=%ct)" "$name" | gzip -9n >"$out/$archive.new"
mv "$out/$archive.new" "$out/$archive"
(cd "$out" && sha256sum "$name"-linux-*.tar.gz >SHA256SUMS)
{
  sed -e "/^@SUMS@$/,\$d" -e "s|@VERSION@|$version|" -e "s|@URL@|$url|" packaging/install.sh.in
  cat "$out/SHA256SUMS"
  sed -e "1,/^@SUMS@$/d" packaging/install.sh.in
} >"$out/install.sh"
chmod 755 "$out/install.sh"
echo "$out/$archive"
