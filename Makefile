# Everything a developer runs. Each target also works with other packages or
# flags, for example: make test PKGS=./pgclaim/ , make quickstart ARGS='-workers 5'

CACHE   := $(or $(DUECLAIM_CACHE),$(HOME)/.cache/dueclaim)
# All, the longest first, so that none of these runs alone at the end.
PKGS    ?= ./pgclaim ./conformance ./internal/acceptance ./internal/chaos ./mysqlclaim ./sqliteclaim ./redisindex ./...
# Packages tested at a time. Much of the tests' time is waiting, so one more than the
# cores of a small machine; those that measure lateness suffer from more.
P       ?= 3
TIMEOUT ?= 12m
ARGS    ?=
# The events of the last make test.
LASTRUN := $(CACHE)/last-test.jsonl
# The race detector needs a C compiler. SQLite itself, C code translated to Go, is
# left out: it has locks of its own, and watching each of its accesses makes its
# tests four times as long.
RACE    := $(if $(shell command -v gcc || command -v clang || command -v cc),-race \
	-gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc=-race=false)
GOTEST  := go test $(RACE) -count=1 -p $(P)

LINT_VERSION := v2.15.0
LINT    := $(CACHE)/bin/golangci-lint-$(LINT_VERSION)
VULN_VERSION := v1.9.0
VULN    := $(CACHE)/bin/govulncheck-$(VULN_VERSION)
# How long make fuzz gives to each target.
FUZZTIME ?= 20s

.PHONY: help quickstart orders setup test stress conformance conformance-check bench bench-check microbench fuzz lint vuln
.DEFAULT_GOAL := help

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 26

quickstart: ## three workers, one of them killed, on one SQLite file; no server needed
	go run ./examples/quickstart $(ARGS)

orders: ## a shop's orders: unpaid ones are cancelled when their time is up
	go run ./examples/orders $(ARGS)

setup: ## find the database servers for the tests, install what is missing (root on Debian/Ubuntu)
	@mkdir -p bin $(CACHE)
	@go build -o bin/setup ./internal/testserver/setup
	@bin/setup

test: ## all tests with the race detector; the last lines say which backends were NOT tested
	@$(MAKE) --no-print-directory setup || echo "setup: going on without"
	@$(if $(RACE),,$(if $(filter file,$(origin RACE)),echo "test: no C compiler here: going on without the race detector",:))
	@go build -o bin/testreport ./internal/testreport
	@bin/testreport -raw $(LASTRUN) $(GOTEST) -json -timeout $(TIMEOUT) $(PKGS)

# Without the race detector, which make test has: here it is the numbers that count.
# What measures how late tasks are goes first, one package at a time.
TIMED := ./internal/scenarios ./internal/chaos ./internal/acceptance
stress: export DUECLAIM_STRESS = 1
stress: ## the tests with larger numbers and longer runs: about an hour
	@$(MAKE) --no-print-directory test RACE= P=1 TIMEOUT=60m PKGS="$(TIMED)" LASTRUN=$(CACHE)/last-stress-timed.jsonl; timed=$$?; \
	$(MAKE) --no-print-directory test RACE= TIMEOUT=60m LASTRUN=$(CACHE)/last-stress.jsonl \
		PKGS="./mysqlclaim ./examples/orders ./internal/seededbugs ./pgclaim $$(go list ./... | grep -vE '/internal/(scenarios|chaos|acceptance)$$' | tr '\n' ' ')" && exit $$timed

conformance: bin/conformancetable ## write docs/conformance.md and its picture, from the last full make test or a new one
	@bin/conformancetable usable $(LASTRUN) || $(MAKE) --no-print-directory test || echo "conformance: tests failed; going on where none of the table's did"
	@bin/conformancetable write $(LASTRUN)

conformance-check: bin/conformancetable ## fail where docs/conformance.md isn't what the last full make test gives
	@bin/conformancetable check $(LASTRUN)

.PHONY: bin/conformancetable # go knows whether it is up to date
bin/conformancetable:
	@go build -o $@ ./internal/conformancetable

# A module of its own. ARGS come last and so win: make bench ARGS='-run drain -rounds 5'
bench: setup ## dueclaim beside its peers, about 35 minutes; writes docs/benchmarks.md and its pictures
	@cd bench && go build -o ../bin/bench . && ../bin/bench -run all -write ../docs $(ARGS)

bench-check: setup ## each workload of make bench once, with few tasks: nothing lost, nothing run twice
	@cd bench && go vet ./... && go test -count=1 ./... && go build -o ../bin/bench . && ../bin/bench -quick $(ARGS)

microbench: setup ## the packages' own benchmarks
	go test -run '^$$' -bench . -benchmem -p 1 -timeout 40m $(PKGS)

# One target after the other, as go test wants it. What one finds lies in its
# package's testdata/fuzz, for a commit, and is tried first from then on.
fuzz: ## each fuzz target for FUZZTIME (20s); PKGS=./core for those of one package
	@n=0; failed=; \
	for x in $$(grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed -E 's|/[^/]*:func |:|' | sort -u); do \
		pkg=$${x%:*}; target=$${x#*:}; \
		case ' $(if $(filter file,$(origin PKGS)),./...,$(patsubst %/,%,$(PKGS))) ' in *" $$pkg "* | *' ./... '*) ;; *) continue ;; esac; \
		n=$$((n+1)); echo "== $$n: $$pkg $$target"; \
		go test $$pkg -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s || failed="$$failed $$x"; \
	done; \
	if [ -n "$$failed" ]; then echo "fuzz: found something:$$failed"; exit 1; fi; echo "fuzz: $$n targets, nothing found"

vuln: $(VULN) ## known vulnerabilities in what is called here; needs the vulnerability database
	@out=$$(mktemp); $(VULN) ./... >$$out 2>&1; status=$$?; cat $$out; \
	unreachable=$$(grep -cE '^govulncheck: fetching vulnerabilities: ' $$out); rm -f $$out; \
	if [ $$status -eq 0 ]; then echo "vuln: nothing known"; \
	elif [ $$unreachable -gt 0 ]; then echo "vuln: vulnerability database not reachable: NOT checked"; \
	else exit $$status; fi

$(VULN):
	@mkdir -p $(CACHE)/bin $(CACHE)/build.vuln-$(VULN_VERSION)
	@echo "vuln: building govulncheck $(VULN_VERSION), once …"
	@GOBIN=$(CACHE)/build.vuln-$(VULN_VERSION) go install golang.org/x/vuln/cmd/govulncheck@$(VULN_VERSION)
	@mv $(CACHE)/build.vuln-$(VULN_VERSION)/govulncheck $@
	@rmdir $(CACHE)/build.vuln-$(VULN_VERSION)

lint: $(LINT) ## golangci-lint with the list in .golangci.yaml
	$(LINT) run ./...
	cd bench && $(LINT) run -c ../.golangci.yaml ./...

# Built from source, once a machine: 2 to 4 minutes on two cores.
$(LINT):
	@mkdir -p $(CACHE)/bin $(CACHE)/build.$(LINT_VERSION)
	@echo "lint: building golangci-lint $(LINT_VERSION), once (minutes) …"
	@GOBIN=$(CACHE)/build.$(LINT_VERSION) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION) & pid=$$!; n=0; \
	while kill -0 $$pid 2>/dev/null; do sleep 1; n=$$((n+1)); [ $$((n % 20)) -ne 0 ] || echo "lint: still building … $$n s"; done; wait $$pid
	@mv $(CACHE)/build.$(LINT_VERSION)/golangci-lint $@
	@rmdir $(CACHE)/build.$(LINT_VERSION)
