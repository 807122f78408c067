# make run    the demo: quick build, CRS, demo upstream, Portcullis in front of it
# make test   every check, as CI runs it
CARGO ?= cargo
# All tests of the pinned CRS; the suite fails if it read another number.
CRS_TESTS := 4674
# An older release that is still in use, beside the pinned one.
CRS_OLDER := .portcullis/crs-4.22.0
CRS_OLDER_TESTS := 4131

PAIRS ?= 20000
SEED ?= 1

.PHONY: help run profiled static archive install-test container container-test test test-stages check modsecurity2-tests modsecurity3-tests h2spec \
        websocket tls-scan bench bench-agent bench-ext-proc bench-spop bench-counts \
        bench-peers bench-proxy bench-scaling bench-worst reload-soak chaos chaos-quick soak smuggling paths evasions \
        differential libmodsecurity libmodsecurity-crs libmodsecurity-package libmodsecurity-package-test \
        libmodsecurity-memcheck libmodsecurity-connector-tests package-test console console-test crs crs-suite \
        crs-suite-strict go-ftw semantic-same kubernetes-test caddy-test client-test traefik-test node node-test python python-test corpus fuzz \
        api-fuzz dependencies clean-run

help:
	@echo 'make run               demo on 127.0.0.1:8080 until Ctrl-C (LISTEN=, UPSTREAM_LISTEN=, ADMIN=)'
	@echo 'make test              format, lints, docs, tests, CRS suite'
	@echo 'make check             while one works: lints and tests of what changed and of what uses it (ARGS="--since REVISION")'
	@echo 'make profiled          a build with profile-guided optimisation, for packages (BINS="portcullis engine-bench")'
	@echo 'make crs               fetch the pinned CRS to .portcullis/'
	@echo 'make crs-suite         the $(CRS_TESTS) CRS regression tests through the proxy, and those of 4.22.0 (ARGS=--filter 942)'
	@echo 'make crs-suite-strict  the same with the default, strict HTTP profile'
	@echo 'make modsecurity2-tests  ModSecurity 2.9.7: its own regression tests through Apache and us (TESTS=FOLDER of its source)'
	@echo 'make modsecurity3-tests  ModSecurity 3.0.9: its own regression cases through our C interface (TESTS=FOLDER of its source)'
	@echo 'make go-ftw            the same tests sent and judged by go-ftw, from our error log (ARGS=-only REGEX)'
	@echo 'make evasions          body and parser evasions through the proxy, judged form by form'
	@echo 'make corpus            benign and attack corpora through the proxy, release build (ARGS=--every 20)'
	@echo 'make semantic-same     compares every finding of the detectors over the corpora with those of the last run (ARGS="--every 20")'
	@echo 'make differential      generated rules and requests through us, ModSecurity 2 and 3 (PAIRS=20000 SEED=1 ARGS=)'
	@echo 'make bench             what inspecting a message costs, engine only (ARGS=--only json)'
	@echo 'make bench-counts      the same in instructions, and against the stored ones (CASES="get json_1k" BLESS=1)'
	@echo 'make bench-peers       the same messages through libmodsecurity and Coraza, too (CASES= SECONDS_EACH=1)'
	@echo 'make bench-proxy       CPU per request of ours and of other proxies and WAFs side by side (ARGS=--latency, --syscalls, --help)'
	@echo 'make bench-agent       what asking an inspection agent adds to a request (ARGS=--requests 20000)'
	@echo 'make bench-ext-proc    what serve ext-proc adds to a request of Envoy, beside a server that inspects nothing (ARGS="--mode crs")'
	@echo 'make bench-spop        CPU per request of serve spop behind HAProxy, beside coraza-spoa (ARGS="--coraza-spoa PROGRAM")'
	@echo 'make bench-scaling     what a second core and worker bring: requests a second (wrk)'
	@echo 'make reload-soak       1,000 reloads of the CRS under load: nothing lost, memory flat (ARGS=--reloads 100)'
	@echo 'make bench-worst       a search for the message that costs most per byte (SEARCH=120 seconds)'
	@echo 'make chaos             faults under load, all of them (ARGS="--only breaker"); chaos-quick: those of CI'
	@echo 'make soak              load with TLS, attacks and reloads for HOURS=1: nothing lost, nothing drifts (REPORT=FILE)'
	@echo 'make paths             paths that servers read differently, through routes to 15 real servers (ARGS=--count 20000)'
	@echo 'make smuggling         framing variants through us to nginx, Apache, HAProxy, Node, Go and Python (ARGS=--count 20000)'
	@echo 'make h2spec            the conformance tests for HTTP/2 against our listeners, over TLS and in clear text'
	@echo 'make dependencies      licences and sources (cargo-deny), unused ones (cargo-machete), an SBOM for each program (cargo-cyclonedx)'
	@echo 'make websocket         the WebSocket cases of Autobahn, through us and without us; needs Python 2.7 (PYTHON2=)'
	@echo 'make tls-scan          what sslyze and testssl.sh say of our TLS; fails if there are findings'
	@echo 'make fuzz              each fuzz target for MINUTES=10'
	@echo 'make api-fuzz          schemathesis against the admin API; fails if there is a finding (EXAMPLES=30 SEED=1)'
	@echo 'make console           build the web console that the program embeds; needs Node.js 18 or later'
	@echo 'make console-test      the console in Chromium against the real program (SHOTS=FOLDER keeps the screenshots)'
	@echo 'make libmodsecurity    target/release/libmodsecurity.so.3, a library in place of that of ModSecurity 3'
	@echo 'make libmodsecurity-crs  the CRS suite through nginx with it (LIBRARY=FOLDER of another one, ARGS=--filter 942)'
	@echo 'make static            target/static/portcullis, a program without shared libraries (PROFILE=release)'
	@echo 'make archive           what a release publishes of it: target/archive (URL=https://... of the release)'
	@echo 'make install-test      the archive and its install script, from a server on loopback (PORT=18390)'
	@echo 'make container         the container image of make static, by podman, buildah or docker (IMAGE=portcullis:0.1.0)'
	@echo 'make container-test    the image, served from by buildah (PORT=18394)'
	@echo 'make libmodsecurity-package  its Debian package; libmodsecurity-package-test: with nginx in a clean root (PORT=18390)'
	@echo 'make libmodsecurity-memcheck  it under valgrind: C programs and nginx, with hostile calls and requests (TRANSACTIONS=1000)'
	@echo 'make libmodsecurity-connector-tests  the cases of ModSecurity-nginx with it (TESTS=FOLDER NGINX_TESTS=FOLDER of their sources)'
	@echo 'make kubernetes-test   the manifests and the Helm chart, read as Kubernetes reads them, and their documents'
	@echo 'make caddy-test        serve check behind the real Caddy, which Go builds'
	@echo 'make client-test       boto3, awscli, rclone and Prometheus through the program; needs moto, rclone, prometheus'
	@echo 'make traefik-test      serve check behind the real Traefik, which Go builds: ten minutes'
	@echo 'make python            target/wheels/portcullis_waf-*.whl, the engine as a package of Python; needs Python 3.10'
	@echo 'make python-test       its tests with gunicorn, waitress, uvicorn and Starlette (WHEEL=FILE of make python)'
	@echo 'make node              bindings/node/portcullis.node, the engine as an addon of Node.js'
	@echo 'make node-test         its tests with the servers of Express and Fastify'
	@echo 'make package-test      the Debian package in a clean root: installed, served, upgraded, purged (PORT=18380)'
	@echo 'make clean-run         remove what make run and make crs left in .portcullis/'

run:
	@scripts/run-demo.sh

crs:
	@scripts/fetch-crs.sh

console:
	cd console && npm ci --no-audit --no-fund && npm run build

console-test: console
	scripts/console-test.sh

profiled: crs console
	scripts/profiled-build.sh $(BINS)

# The same cases in each run; another number, or an empty one for chance, makes others.
test: export PROPTEST_RNG_SEED ?= 20261122
# Most of their time is waiting: for servers, for deadlines. Twice as many as cores take half of it.
test: export RUST_TEST_THREADS ?= $(shell expr 2 '*' $$(nproc))
# Checks that need what is not in the repository, and were left out for want of it: a line each.
test: export PORTCULLIS_LEFT_OUT = $(CURDIR)/.portcullis/left-out.txt
# How long each stage took; a table of it is printed at the end.
test: export PORTCULLIS_STAGES ?= $(CURDIR)/.portcullis/stages.txt
# HTTP/3 is tested with all the rest: one build of every program and every test. Without it the program is linted only.
FEATURES := --features portcullis/http3
# An example among the targets has cargo take the features of what tests need, too: all objects are there already.
BUILD_BINS = $(CARGO) build --workspace --bins --example access-cost --locked $(FEATURES)
STAGE := scripts/stage.sh
test:
	@mkdir -p .portcullis && rm -f $(PORTCULLIS_LEFT_OUT) $(PORTCULLIS_STAGES)
	@code=0; $(MAKE) --no-print-directory test-stages || code=$$?; $(STAGE) --table; exit $$code

test-stages:
	@$(STAGE) 'CRS' $(MAKE) --no-print-directory crs
	@$(STAGE) 'packages' scripts/test-tools.sh
	$(STAGE) 'console build' $(MAKE) --no-print-directory console
	$(STAGE) 'documents' scripts/check-docs.py
	$(STAGE) 'format' $(CARGO) fmt --all --check
	$(STAGE) 'lints' $(CARGO) clippy --workspace --all-targets --locked $(FEATURES) -- -D warnings
	$(STAGE) 'lints without HTTP/3' $(CARGO) clippy --workspace --lib --bins --locked -- -D warnings
	RUSTDOCFLAGS=-Dwarnings $(STAGE) 'rustdoc' $(CARGO) doc --workspace --no-deps --locked --quiet $(FEATURES)
	$(STAGE) 'build of tests' $(CARGO) test --workspace --locked $(FEATURES) --no-run --quiet
	$(STAGE) 'tests' $(CARGO) test --workspace --locked $(FEATURES)
	$(STAGE) 'build of programs' $(BUILD_BINS)
	$(STAGE) 'console in Chromium' scripts/console-test.sh
	$(STAGE) 'install' scripts/install-test.sh
	promtool check rules deploy/prometheus/alerts.yml
	promtool test rules deploy/prometheus/alerts_test.yml
	$(STAGE) 'Kubernetes' $(MAKE) --no-print-directory kubernetes-test
	$(STAGE) 'CRS suites' $(MAKE) --no-print-directory crs-suite
	$(STAGE) 'evasions' scripts/with-corpora.sh evasions $(MAKE) --no-print-directory evasions
	$(STAGE) 'evasions, ModSecurity 3' scripts/with-corpora.sh 'evasions of ModSecurity 3' $(MAKE) --no-print-directory evasions ARGS='--compat modsecurity3'
	$(STAGE) 'chaos' $(MAKE) --no-print-directory chaos-quick
	$(STAGE) 'paths' target/debug/smuggling --paths --servers 8 --count 150
	@scripts/left-out.sh

check:
	scripts/check-changed.py $(ARGS)

crs-suite: crs
	$(BUILD_BINS)
	target/debug/crs-suite --profile apache --count $(CRS_TESTS) --expected-failures tests/crs-known-misses.txt $(ARGS)
	target/debug/crs-suite --crs $(CRS_OLDER) --profile apache --count $(CRS_OLDER_TESTS) --expected-failures tests/crs-known-misses.txt $(ARGS)

crs-suite-strict: crs
	$(BUILD_BINS)
	target/debug/crs-suite --profile strict --count $(CRS_TESTS) --expected-failures tests/crs-known-misses-strict.txt $(ARGS)

go-ftw: crs
	$(BUILD_BINS)
	CRS_TESTS=$(if $(ARGS),0,$(CRS_TESTS)) scripts/go-ftw.sh $(ARGS)

kubernetes-test:
	$(BUILD_BINS)
	scripts/kubernetes-test.sh

evasions: crs
	$(BUILD_BINS)
	target/debug/corpus-run --evasions --count 658 --at-least 97 $(ARGS)

corpus: crs
	$(CARGO) build --release --locked -p portcullis -p portcullis-testkit --bins
	target/release/corpus-run $(ARGS)

semantic-same:
	CARGO="$(CARGO)" scripts/semantic-same.sh $(ARGS)

differential:
	$(CARGO) build --locked -p portcullis-differential
	target/debug/differential --pairs $(PAIRS) --seed $(SEED) $(ARGS)

bench: crs
	$(CARGO) build --release --locked -p portcullis-bench
	target/release/engine-bench $(ARGS)

bench-counts: crs
	$(CARGO) build --profile bench-quick --locked -p portcullis-bench
	BLESS=$(BLESS) scripts/bench-counts.sh $(CASES)

bench-peers: crs
	$(CARGO) build --release --locked -p portcullis-bench
	scripts/bench-peers.sh $(CASES)

bench-proxy: crs
	$(CARGO) build --release --locked -p portcullis
	bench/proxy/bench-proxy.py $(ARGS)

bench-agent:
	$(CARGO) build --profile bench-quick --locked -p portcullis -p portcullis-testkit -p portcullis-bench --bins
	target/bench-quick/agent-bench $(ARGS)

# Envoy is the one that scripts/test-tools.sh installs, or ARGS="--envoy PROGRAM".
bench-ext-proc: crs
	$(CARGO) build --profile bench-quick --locked -p portcullis -p portcullis-testkit --bins
	target/bench-quick/ext-proc-bench $(ARGS)

bench-spop: crs
	$(CARGO) build --release --locked -p portcullis
	bench/proxy/bench-spop.py $(ARGS)

bench-scaling: crs
	$(CARGO) build --release --locked -p portcullis
	bench/proxy/bench-scaling.py $(ARGS)

reload-soak: crs
	$(CARGO) build --release --locked -p portcullis -p portcullis-testkit --bins
	target/release/reload-soak $(ARGS)

bench-worst: crs
	$(CARGO) build --release --locked -p portcullis-bench
	target/release/engine-bench --worst $(or $(SEARCH),120) $(ARGS)

chaos:
	$(CARGO) build --release --locked -p portcullis -p portcullis-proof -p portcullis-testkit --bins
	target/release/chaos $(ARGS)

# TESTS=FOLDER: tests/regression of ModSecurity 2.9.7; Debian: apt-get source modsecurity-apache, where it is served.
modsecurity2-tests:
	$(CARGO) build --locked -p portcullis
	scripts/modsecurity2-tests.pl --tests "$(TESTS)" --engine apache --known tests/modsecurity2-known-apache.txt --count 254
	scripts/modsecurity2-tests.pl --tests "$(TESTS)" --engine portcullis --known tests/modsecurity2-known.txt --count 254

# TESTS=FOLDER: test/test-cases/regression of ModSecurity's source, tag v3.0.9.
modsecurity3-tests:
	$(CARGO) build --locked -p portcullis-libmodsecurity
	scripts/modsecurity3-tests.py "$(TESTS)" --known tests/modsecurity3-known.txt

chaos-quick:
	$(BUILD_BINS)
	target/debug/chaos --quick

soak: crs
	$(CARGO) build --release --locked -p portcullis -p portcullis-proof --bins
	target/release/soak --hours $(or $(HOURS),1) $(if $(REPORT),--report $(REPORT)) $(ARGS)

smuggling:
	$(BUILD_BINS)
	target/debug/smuggling $(ARGS)

paths:
	$(BUILD_BINS)
	target/debug/smuggling --paths --servers 8 $(ARGS)

h2spec:
	$(CARGO) build --locked -p portcullis -p portcullis-testkit --bin portcullis --bin demo-upstream
	scripts/h2spec.sh

# Needs cargo-deny, cargo-machete and cargo-cyclonedx (`cargo install`). The program's SBOM:
# target/portcullis.cdx.json.
dependencies:
	$(CARGO) deny --locked check licenses bans sources
	$(CARGO) machete
	$(CARGO) cyclonedx --manifest-path crates/portcullis/Cargo.toml --format json --describe binaries --spec-version 1.5
	mv crates/portcullis/portcullis_bin.cdx.json target/portcullis.cdx.json
	find bench bindings crates -name '*.cdx.json' -delete

websocket:
	$(CARGO) build --locked -p portcullis
	scripts/websocket.sh

tls-scan:
	$(CARGO) build --locked -p portcullis
	scripts/tls-scan.sh

fuzz:
	MINUTES=$(or $(MINUTES),10) scripts/fuzz.sh $(ARGS)

clean-run:
	rm -rf .portcullis

libmodsecurity:
	$(CARGO) build --release --locked -p portcullis-libmodsecurity
	cp -f target/release/libmodsecurity.so target/release/libmodsecurity.so.3

# Debian's nginx with its module, which scripts/test-tools.sh installs.
libmodsecurity-crs: crs
	$(CARGO) build --locked -p portcullis-libmodsecurity -p portcullis-testkit
	CRS_TESTS=$(CRS_TESTS) LIBRARY=$(LIBRARY) scripts/libmodsecurity-crs.sh $(ARGS)

static: console
	scripts/static-build.sh $(PROFILE)

archive: crs static
	packaging/archive.sh target/static/portcullis target/archive $(URL)

install-test: crs
	scripts/install-test.sh

container: crs static
	packaging/container.sh target/static/portcullis $(IMAGE)

container-test: crs console
	scripts/static-build.sh dev
	$(CARGO) build --locked -p portcullis-testkit --bin demo-upstream
	scripts/container-test.sh

libmodsecurity-package: libmodsecurity
	packaging/debian/libmodsecurity/build.sh

libmodsecurity-memcheck:
	$(CARGO) build --locked -p portcullis-libmodsecurity
	scripts/libmodsecurity-memcheck.sh $(TRANSACTIONS)

# TESTS: the folder `tests` of ModSecurity-nginx; NGINX_TESTS: nginx-tests.
libmodsecurity-connector-tests:
	$(CARGO) build --locked -p portcullis-libmodsecurity
	scripts/libmodsecurity-connector-tests.sh "$(TESTS)" "$(NGINX_TESTS)"

# As root, on Debian with debootstrap.
libmodsecurity-package-test:
	$(CARGO) build --locked -p portcullis-libmodsecurity
	scripts/libmodsecurity-package-test.sh

# maturin comes from PyPI, into an environment of its own.
python:
	python3 -m venv target/python-venv
	target/python-venv/bin/pip install --quiet -r bindings/python/tests/requirements.txt
	PATH="$(CURDIR)/target/python-venv/bin:$$PATH" CARGO_TARGET_DIR=$(CURDIR)/target maturin build --release --locked \
	  --manifest-path bindings/python/Cargo.toml --out target/wheels

python-test:
	scripts/python-test.sh $(WHEEL)

node:
	CARGO_TARGET_DIR=$(CURDIR)/target $(CARGO) build --release --locked --manifest-path bindings/node/Cargo.toml
	cp -f target/release/libportcullis_node.so bindings/node/portcullis.node

node-test:
	scripts/node-test.sh

# Not in `make test`: it takes packages of Python and a minute.
client-test: crs
	$(CARGO) build --locked -p portcullis
	scripts/clients.sh target/debug/portcullis

# Not in `make test`: Go fetches and builds Caddy.
caddy-test:
	scripts/caddy.sh
	$(CARGO) test --locked -p portcullis --test it serve::caddy

# Not in `make test` for the same reason.
traefik-test:
	scripts/traefik.sh
	$(CARGO) test --locked -p portcullis --test it serve::traefik

# As root, on Debian with debootstrap.
package-test: crs console
	$(CARGO) build --locked -p portcullis -p portcullis-testkit --bin portcullis --bin demo-upstream
	scripts/package-test.sh

api-fuzz:
	$(CARGO) build --locked -p portcullis
	EXAMPLES=$(EXAMPLES) SEED=$(SEED) scripts/api-fuzz.sh
