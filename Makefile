# The commands of this repository. `make help` lists them.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Swift needs a UTF-8 locale for file names and a home directory for settings. Minimal systems may lack both.
export LC_ALL := C.UTF-8
export HOME := $(or $(HOME),$(CURDIR)/.build/home)
# Many tests start servers and wait for them. If all tests ran at once, they would exceed their timeouts.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH := 8

# The port, project, sample data and optional security rules of `make serve`:
# make serve PORT=9090 FIXTURE=fixtures/journeys.json RULES=rules/journeys.rules
PORT := 8080
PROJECT := demo
FIXTURE := fixtures/shop.json
RULES :=

# The duration of `make soak`.
MINUTES := 10

# The directory with browser builds of the Firebase web SDK, for `make conformance`.
WEBSDK :=

# Tests with several server processes and a PostgreSQL server each. They measure how long clients wait, so they run one
# after the other, and after all other tests.
CLUSTERS := HearthCLITests\.(Cluster|ReplicaDirectory)|GatewayTests\.SerializabilityTests

# The C libraries of Package.swift, and pkg-config, which finds them.
PACKAGES := pkg-config liblmdb-dev libuv1-dev libhttp-parser-dev libsimdjson-dev zlib1g-dev libzstd-dev \
  libxxhash-dev libnghttp2-dev libssl-dev libcurl4-openssl-dev libsodium-dev libcrypt-dev libre2-dev libstemmer0d \
  libicu-dev libpq-dev

RELEASE := .build/release/hearth
SWIFT_FILES := Sources Tests Package.swift

.PHONY: help serve cluster cluster-kill build test console-test upgrade-test soak cluster-soak power-cut fuzz bench \
  conformance known-differences reference dist image format lint packages bench-packages

help: ## List these commands
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 20 | sed 's/^/  make /'

serve: build ## Build, then serve sample data in emulator mode on 127.0.0.1:8080 until Ctrl-C
	@.ci/what-to-try $(PORT) $(PROJECT) '$(RULES)'
	@exec $(RELEASE) serve --emulator --port $(PORT) --project $(PROJECT) --import $(FIXTURE) \
	  $(if $(RULES),--rules '$(RULES)')

cluster: build ## Build, then run PostgreSQL and a cluster of three nodes on 127.0.0.1:8081 to 8083 until Ctrl-C
	@.ci/cluster $(RELEASE)

cluster-kill: ## Kill the node that owns the cluster of `make cluster`
	@.ci/cluster kill

build: packages ## Build the release binary, .build/release/hearth
	swift build -c release --product hearth

test: packages ## Build and run all tests, then each fuzz target for a few seconds; list what did not run
	@mkdir -p .build
	@{ .ci/clients/install || true; } | tee .build/test.log
	@.ci/unpacked .build/peers nginx caddy || echo "Skipped: nginx and Caddy cannot be downloaded." | tee -a .build/test.log
	swift build --build-tests
	@status=0; \
	swift test --skip-build --skip '$(CLUSTERS)' 2>&1 | tee -a .build/test.log || status=$$?; \
	swift test --skip-build --no-parallel --filter '$(CLUSTERS)' 2>&1 | tee -a .build/test.log || status=$$?; \
	exit $$status
	$(MAKE) --no-print-directory fuzz
	@.ci/skipped .build/test.log

console-test: packages ## Test the console in headless Chromium
	swift build --product hearth
	.ci/console/run

upgrade-test: packages ## Upgrade the nodes of a cluster under load from the build of commit FROM (HEAD~1), and go back
	swift build --build-tests
	.ci/upgrade $(or $(FROM),HEAD~1)

soak: packages ## Run a mixed load with faults for MINUTES (10) and check that nothing is lost; SOAK_SEED=N repeats it
	swift build --build-tests
	SOAK_MINUTES=$(MINUTES) SOAK_SEED=$(or $(SOAK_SEED),random) swift test --skip-build --filter SoakTests

cluster-soak: packages ## Break random parts of a cluster under load, FAULTS (100) times; SEED=N repeats it
	swift build --build-tests
	HEARTH_REQUIRE_ALL_TESTS=1 CLUSTER_FAULTS=$(or $(FAULTS),100) CLUSTER_SEED=$(or $(SEED),random) \
	  $(if $(FAULT),CLUSTER_FAULT=$(FAULT)) swift test --skip-build --no-parallel --filter ClusterSoakTests

power-cut: packages ## Record a server with strace, and check what CUTS (1000) power cuts could leave of its data
	swift build --product hearth
	@command -v strace >/dev/null || .ci/packages strace
	.ci/power-cut --cuts $(or $(CUTS),1000)

fuzz: packages ## Run each fuzz target for a few seconds
	swift build --product Fuzzers
	.build/debug/Fuzzers smoke

bench: build bench-packages ## Compare the speed with other servers on this machine; takes minutes
	PATH="$(CURDIR)/.build/peers/usr/sbin:$$PATH:/usr/sbin" swift run -c release Benchmarks run

conformance: packages ## Compare with the emulator, run the tests of client libraries and of the web SDK in WEBSDK=DIR
	@WEBSDK="$(WEBSDK)" .ci/conformance

# A separate build directory, because static linking needs different compiler options.
dist: packages ## Build and test .build/dist: a tarball and a Debian package that do not need Swift
	swift build -c release --product hearth --static-swift-stdlib --scratch-path .build/static
	@.ci/dist .build/static/release/hearth

image: packages ## Build and test an OCI image in .build/dist, which podman and docker can load
	swift build -c release --product hearth --static-swift-stdlib --scratch-path .build/static
	@.ci/packages libcurl4 libpq5 ca-certificates icu-devtools
	@.ci/unpacked .build/peers umoci runc || echo "Skipped: umoci and runc cannot be downloaded."
	@.ci/image .build/static/release/hearth

known-differences: packages ## Regenerate docs/reference/known-differences.md, without a new comparison
	swift build --build-tests
	KNOWN_DIFFERENCES=write swift test --skip-build --filter pageMatchesItsEntries

reference: packages ## Regenerate the pages cli, configuration, limits and routes in docs/reference
	swift build --build-tests
	REFERENCE_PAGES=write swift test --skip-build --filter 'ReferencePagesTests|LimitsPageTests|RouteTableTests'

format: ## Format all Swift files in place
	swift format --in-place --recursive --parallel $(SWIFT_FILES)

lint: ## Check the format of all Swift files
	swift format lint --strict --recursive --parallel $(SWIFT_FILES)

# Installs missing packages. If none is missing, does nothing and needs no network.
packages:
	@mkdir -p "$$HOME"
	@.ci/packages $(PACKAGES)

bench-packages:
	@.ci/packages wrk nghttp2-client
	@.ci/unpacked .build/peers nginx
