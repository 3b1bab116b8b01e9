# Hearth's commands. `make help` lists them; README.md explains them.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Swift reads and writes UTF-8 names and keeps settings in HOME; bare machines lack a locale or a home.
export LC_ALL := C.UTF-8
export HOME := $(or $(HOME),$(CURDIR)/.build/home)
# Many tests start servers and wait for them: all at once, each would be too slow for its own patience.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH := 8

# What `make serve` listens on and loads, and the security rules, if any are to be in force:
# make serve PORT=9090 FIXTURE=fixtures/journeys.json RULES=rules/journeys.rules
PORT := 8080
PROJECT := demo
FIXTURE := fixtures/well-meing.json
RULES :=

# Browser builds of the Firebase web SDK, for `make conformance`.
WEBSDK :=

# The C libraries of Package.swift, and what finds them.
PACKAGES := pkg-config liblmdb-dev libuv1-dev libhttp-parser-dev libsimdjson-dev zlib1g-dev libxxhash-dev \
  libnghttp2-dev libssl-dev libsodium-dev libcrypt-dev libre2-dev

RELEASE := .build/release/hearth
SWIFT_FILES := Sources Tests Package.swift

.PHONY: help serve build test fuzz bench conformance known-differences dist format lint packages bench-packages

help: ## List these commands
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 20 | sed 's/^/  make /'

serve: build ## Build, then serve a sample tree in emulator mode on 127.0.0.1:8080 until Ctrl-C
	@.ci/what-to-try $(PORT) $(PROJECT) '$(RULES)'
	@exec $(RELEASE) serve --emulator --port $(PORT) --project $(PROJECT) --import $(FIXTURE) \
	  $(if $(RULES),--rules '$(RULES)')

build: packages ## Build the release binary, .build/release/hearth
	swift build -c release --product hearth

test: packages ## Build and run all tests, then each fuzz target for a few seconds
	@.ci/clients/install || true
	swift build --build-tests
	swift test --skip-build
	$(MAKE) --no-print-directory fuzz

fuzz: packages ## Run each fuzz target for a few seconds
	swift build --product Fuzzers
	.build/debug/Fuzzers smoke

bench: build bench-packages ## Measure against peers on this machine; takes minutes
	PATH="$(CURDIR)/.build/peers/usr/sbin:$$PATH:/usr/sbin" swift run -c release Benchmarks run

conformance: packages ## Compare with the official emulator, run client libraries' tests, and the web SDK of WEBSDK=DIR
	@WEBSDK="$(WEBSDK)" .ci/conformance

# A build of its own: what is linked statically is compiled otherwise.
dist: packages ## Make and check .build/dist: a tarball and a Debian package that need no Swift
	swift build -c release --product hearth --static-swift-stdlib --scratch-path .build/static
	@.ci/dist .build/static/release/hearth

known-differences: packages ## Write docs/reference/known-differences.md again from its entries, without a comparison
	swift build --build-tests
	KNOWN_DIFFERENCES=write swift test --skip-build --filter thePageSaysWhatTheEntriesSay

format: ## Format all Swift files in place
	swift format --in-place --recursive --parallel $(SWIFT_FILES)

lint: ## Check the format of all Swift files
	swift format lint --strict --recursive --parallel $(SWIFT_FILES)

# Installs what is missing; costs nothing and needs no network when nothing is.
packages:
	@mkdir -p "$$HOME"
	@.ci/packages $(PACKAGES)

bench-packages:
	@.ci/packages wrk nghttp2-client
	@.ci/unpacked-nginx .build/peers
