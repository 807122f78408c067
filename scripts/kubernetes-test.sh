#!/usr/bin/env bash
# Reads the manifests and the chart as a Kubernetes API server reads objects, and the documents in their ConfigMaps
# as `portcullis check` does (PORTCULLIS names the program; without it target/debug/portcullis).
#   scripts/kubernetes-test.sh
# Helm's template engine and the types of Kubernetes come by the Go client, pinned in scripts/kubernetes/go.sum.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
command -v go >/dev/null || { echo "kubernetes-test: go is needed; install Go 1.26 or later" >&2; exit 1; }
program=${PORTCULLIS:-target/debug/portcullis}
[[ -x $program ]] || { echo "kubernetes-test: there is no $program; build it: cargo build -p portcullis" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p .portcullis "$work/documents"
(cd scripts/kubernetes && GOWORK=off GOFLAGS=-mod=readonly go build -o "$root/.portcullis/kubernetes" .)

read_all() { .portcullis/kubernetes -documents "$work/documents" "$@"; }
read_all deploy/kubernetes/gateway deploy/kubernetes/sidecar deploy/helm/portcullis
read_all -values deploy/helm/portcullis/ci/all-values.yaml deploy/helm/portcullis

# What is wrong has to be found: a misspelt field, and a container that could write to its root.
for change in 's/readinessProbe:/readynessProbe:/' 's/readOnlyRootFilesystem: true/readOnlyRootFilesystem: false/' \
  's/replicas: 2/replicas: two/'; do
  sed "$change" deploy/kubernetes/gateway/deployment.yaml > "$work/wrong.yaml"
  if read_all "$work/wrong.yaml" > "$work/said" 2>&1; then
    echo "kubernetes-test: $change was not found" >&2
    exit 1
  fi
done

count=0
for document in "$work"/documents/*.toml; do
  # What they name is in the container.
  sed -i "s|/var/lib/portcullis|$work|g" "$document"
  "$program" check "$document" > "$work/said" 2>&1 || { cat "$work/said" >&2; exit 1; }
  count=$((count + 1))
done
((count >= 3)) || { echo "kubernetes-test: only $count documents were found" >&2; exit 1; }
echo "$count documents in ConfigMaps pass the check"
