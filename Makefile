# What a contributor and .ci/run call. GNU make 3.81 and sh are enough.

# Pinned tools. Here is the only place where their versions stand.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.7.0
GOPACKAGES  := golang.org/x/tools/go/packages/gopackages@v0.48.0
GORELEASER  ?= github.com/goreleaser/goreleaser/v2@v2.15.1

# What "make cross" checks the types of all modules for, and their tests; 386 is there for its
# 32-bit int. To compile all that the nested modules require takes a hundred times as long, so only
# the root module is compiled, and vetted, for two: those for which it has the most code of its own. On OTHERS the
# library should at least build.
PLATFORMS := linux/arm64 linux/386 darwin/arm64 windows/amd64 freebsd/amd64
SYSTEMS   := darwin/arm64 windows/amd64
OTHERS    := js/wasm aix/ppc64 plan9/amd64

# Nested modules that are never tagged, so never released.
UNRELEASED := benchmarks examples/queues interop/terminal worker/temporalworker/interop

# Those of them that only "make temporal" looks at, since it has to build a Temporal server.
BYHAND := worker/temporalworker/interop

# Every directory with a go.mod, the root first. A new module needs no edit here.
MODULES := $(shell git ls-files --cached --others --exclude-standard -- go.mod '*/go.mod' | \
	sed -e 's,/*go\.mod$$,,' -e 's,^$$,.,' | LC_ALL=C sort -u)
MODULES := $(filter-out $(BYHAND),$(foreach m,$(MODULES),$(if $(wildcard $(m)/go.mod),$(m))))
ifeq ($(MODULES),)
$(error no go.mod found; this Makefile works in a git clone)
endif

ROOT := $(shell sed -n 's/^module //p' go.mod)

# Each module is built from its own go.mod, as its users build it. The workspace is
# for editors and for "go run ./examples/..." from the root.
export GOWORK := off

# The race detector needs a C compiler on most systems; "go env CGO_ENABLED" is 0
# where there is none.
ifeq ($(shell go env CGO_ENABLED),1)
RACE := -race
endif
# What "make lint" vets need not be vetted again.
TESTFLAGS ?= $(RACE) -vet=off -shuffle=on -timeout=15m
PARTS     ?= 3
FUZZTIME  ?= 30s
SOAK      ?= 10m
VERSION   ?= v0.1.0

# $(call each,modules,command) runs the command in each module and stops at the first
# that fails, naming it.
define each
@for m in $(1); do \
	echo "--- $$m: $(strip $(2))"; \
	(cd "$$m" && $(2)) || { echo "make $@: FAIL in $$m: $(strip $(2))" >&2; exit 1; }; \
done
endef

# What "make wine" runs, and what for.
WINE     ?= $(firstword $(shell command -v wine64 || command -v wine) /usr/lib/wine/wine64)
MINGW    ?= x86_64-w64-mingw32-gcc
WINETEST ?= -v -timeout=10m

# What "make vm" boots, and with what; without KERNEL, Debian's own.
QEMU    ?= qemu-system-x86_64
BUSYBOX ?= busybox
KERNEL  ?=
VMTEST  ?=

.PHONY: help test lint cross wine vm fuzz soak bench interop hosts temporal queues record rehearse plan release dist distcheck check

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' Makefile

test: ## run the tests of every module
	@$(if $(findstring -race,$(TESTFLAGS)),:,echo "note: the race detector is off; it needs a C compiler")
	@# Most tests wait for much of their time, so PARTS parts at once, and those that take longest first. The adapters
	@# wait most, so they come beside the commands, which compute most, and before the examples and the programs. A part
	@# compiles or tests one package at a time: more at once is not faster on two processors, and what waits too long
	@# for one fails. What a test compiles has the race detector too, and is there already. By default a program with
	@# that detector sleeps for a second before it exits, and there are some 50 of them.
	@export GOFLAGS="$$(go env GOFLAGS) $(filter -race,$(TESTFLAGS))" GORACE="atexit_sleep_ms=0 $$GORACE"; \
	printf '%s\n' ./procgroup . $(foreach d,progress/% examples cmd/% worker/%,$(filter $(d),$(MODULES))) \
		$(filter-out . examples cmd/% progress/% worker/%,$(MODULES)) | xargs -P $(PARTS) -I PART sh -c 'cd PART && \
		all=$$(go list ./...) && if [ PART = . ]; then all=$$(echo "$$all" | grep -v /procgroup); fi && \
		out=$$(go test -p 1 $(TESTFLAGS) $$all 2>&1); rc=$$?; \
		echo "--- PART: go test -p 1 $(TESTFLAGS)"; echo "$$out"; \
		test $$rc = 0 || { echo "make $@: FAIL in PART" >&2; exit 1; }'

# The imports of a module's packages, one per line. Its tests run in a clone only, so they may import more.
IMPORTS := go list -f '{{range .Imports}}{{println .}}{{end}}' ./...

lint: ## commit subjects, gofmt, go vet, staticcheck, go mod tidy, go.work, no foreign internal/
	@scripts/subjects || { echo "make $@: FAIL: commit subjects" >&2; exit 1; }
	@bad=$$("$$(go env GOROOT)/bin/gofmt" -l .) || exit 1; \
	test -z "$$bad" || { echo "make $@: FAIL: gofmt would change:" >&2; echo "$$bad" >&2; exit 1; }
	@# With the flags of the tests, what these have compiled need not be compiled again.
	$(call each,$(MODULES),go vet $(RACE) ./...)
	@tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && GOBIN=$$tmp go install $(STATICCHECK) || exit 1; \
	export GOFLAGS="$$(go env GOFLAGS) $(RACE)"; \
	for m in $(MODULES); do \
		echo "--- $$m: staticcheck ./..."; \
		(cd "$$m" && "$$tmp/staticcheck" ./...) || { echo "make $@: FAIL in $$m: staticcheck ./..." >&2; exit 1; }; \
	done
	$(call each,$(MODULES),go mod tidy -diff)
	$(call each,$(MODULES),GOWORK= go list ./... >/dev/null)
	@# A released module is versioned by itself, and internal/ packages promise nothing from one
	@# version to the next.
	@for m in $(filter-out . $(UNRELEASED),$(MODULES)); do \
		echo "--- $$m: no internal/ package of another module"; \
		all=$$(cd "$$m" && $(IMPORTS)) && own=$$(cd "$$m" && go list -m) || exit 1; \
		bad=$$(echo "$$all" | sort -u | grep '^$(ROOT)/.*internal' | grep -v "^$$own/"); \
		test -z "$$bad" || { echo "make $@: FAIL: $$m imports" >&2; echo "$$bad" >&2; exit 1; }; \
	done

cross: ## check every module for other systems
	@tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && GOBIN=$$tmp go install $(GOPACKAGES) || exit 1; \
	export CGO_ENABLED=0; \
	check() { \
		GOWORK= "$$tmp/gopackages" -mode=allsyntax "$$@" >"$$tmp/out" || exit 1; \
		if grep -E '^	(-|[^ ]+:[0-9]+(:[0-9]+)?): |^	has (no|incomplete|an error)' "$$tmp/out"; then \
			echo "make $@: FAIL for $$p" >&2; exit 1; \
		fi; \
	}; \
	for p in $(PLATFORMS); do \
		export GOOS=$${p%/*} GOARCH=$${p#*/}; \
		echo "--- all modules for $$p"; \
		check -test $(patsubst %,./%/...,$(MODULES)); \
	done; \
	for p in $(OTHERS); do \
		export GOOS=$${p%/*} GOARCH=$${p#*/}; \
		echo "--- the public packages of . for $$p"; \
		check $$(go list ./... | grep -v -e internal -e '/docs$$' -e '/scripts$$'); \
	done; \
	for p in $(SYSTEMS); do \
		export GOOS=$${p%/*} GOARCH=$${p#*/}; \
		echo "--- . for $$p"; \
		go build ./... && go vet ./... || { echo "make $@: FAIL for $$p" >&2; exit 1; }; \
	done

wine: ## run the Windows tests of procgroup under Wine
	@scripts/wine "$(WINE)" "$(MINGW)" $(WINETEST)

vm: ## by hand: run the tests of resource limits and of ptrace_scope on a stock kernel under emulation; takes minutes
	@scripts/vm "$(QEMU)" "$(BUSYBOX)" "$(KERNEL)" $(VMTEST)

fuzz: ## run each fuzz target for FUZZTIME
	@for m in $(MODULES); do \
		pkgs=$$(cd "$$m" && go list ./...) || exit 1; \
		for p in $$pkgs; do \
			targets=$$(cd "$$m" && go test -list '^Fuzz' "$$p") || { echo "$$targets"; exit 1; }; \
			for t in $$(echo "$$targets" | sed -n '/^Fuzz/p'); do \
				echo "--- $$p: $$t for $(FUZZTIME)"; \
				(cd "$$m" && go test -run '^$$' -fuzz "^$$t\$$" -fuzztime $(FUZZTIME) "$$p") || \
					{ echo "make $@: FAIL: $$t in $$p" >&2; exit 1; }; \
			done; \
		done; \
	done

# What "make soak" runs at the same time, each a folder and its tests.
SOAKS := timeout,TestSimulation procgroup/internal/simulate,TestSimulation procgroup/internal/simulate,TestJobs \
	progress/adapter,TestSimulation \
	progress/toolcall,TestSimulation progress/mcpgo,TestSDK/Random progress/mcpsdk,TestSDK/Random \
	progress/task/natstasks,TestSimulation worker/natsworker,TestSimulation worker/natsworker,TestReal \
	worker/lease,TestSimulation \
	cmd/mcpdeadline,TestSimulation

soak: ## by hand: random runs in simulated time, with new seeds, and of real processes, for SOAK
	@printf '%s\n' $(SOAKS) | xargs -P 0 -I SOME sh -c 'cd "$${0%,*}" && out=$$(go test $(RACE) -vet=off -timeout=0 \
		-run="^$${0#*,}\$$" . -simulate.seed=0 -simulate.for=$(SOAK) 2>&1); rc=$$?; \
		echo "--- $$0"; echo "$$out"; exit $$rc' SOME
	go test $(RACE) -vet=off -timeout=0 ./procgroup -procgroup.soak

record: ## by hand: run the programs that wait for input, RECORD=regexp, and keep what is seen of them
	go test -vet=off -timeout=0 -run='^TestRecord$$' -v ./procgroup/internal/waits -waits.record='$(or $(RECORD),.)'

bench: ## run the benchmarks and compare
	cd benchmarks && go run ./cmd/compare

interop: ## have the TypeScript MCP clients and the conformance runner drive our servers
	@scripts/interop

hosts: ## by hand: install a host, run it before servers that misbehave, HOST=codex; takes 15 minutes
	@scripts/hosts $(HOST) $(CASES)

# Where a server is, TEMPORAL_ADDRESS, none is built. There is no vet: it goes through the whole server, for 17 minutes.
temporal: ## by hand: a Temporal server, in memory or at TEMPORAL_ADDRESS, drives worker/temporalworker; it takes long to build
	cd worker/temporalworker/interop && \
		go test $(if $(TEMPORAL_ADDRESS),-tags=external) -vet=off -count=1 -v -timeout=10m .

queues: ## by hand: PostgreSQL and Redis, installed with apt-get, drive examples/queues; QUEUES=-run=Faults
	@scripts/queues $(QUEUES)

rehearse: ## go through a release in a scratch clone, VERSION=v0.1.0
	@UNRELEASED="$(UNRELEASED)" scripts/rehearse "$(VERSION)"

plan: ## the same, but nothing is compiled
	@UNRELEASED="$(UNRELEASED)" scripts/rehearse -n "$(VERSION)"

release: ## rehearse VERSION, then keep its tags in this clone
	@test "$(origin VERSION)" != file || { echo "make $@: which version? VERSION=v1.2.3" >&2; exit 1; }
	@UNRELEASED="$(UNRELEASED)" scripts/rehearse -keep "$(VERSION)"

dist: ## build archives, packages and checksums of the two programs, VERSION=v0.1.0; needs npm
	@scripts/dist "$(GORELEASER)" "$(VERSION)"

distcheck: ## by hand: build them twice in different places, compare, install and run them; takes minutes
	@scripts/distcheck "$(GORELEASER)" "$(VERSION)"

check: ## all that a merge needs
	@.ci/run
