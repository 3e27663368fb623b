# Everything a contributor runs. `make help` lists the targets; each does its own set-up in .venv and
# needs nothing on the machine but Python >= 3.11 and make.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet --quiet

FLIGHTS ?= january
SEED ?= 1
WORKERS ?= 2
PYTEST_ARGS ?=
MUTANTS ?=
ROUNDS ?= 20
FAULT ?=
OPERATIONS ?= 100000
TASKS ?= 800
RUNS ?= 2000
KILLS ?= 200

TESTED := $(shell find src tests examples benchmarks docs/spec -name '*.py' -o -name '*.sql' -o -name '*.toml' -o -name '*.json' 2>/dev/null)

UV_COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	--no-emit-index-url --generate-hashes --no-header

.PHONY: orbit-docs help venv runtime demo oceanway-demo orbit-demo orbit-kills test test-pg test-pgbouncer check trace model fencing fencing-rivals rivals bench-quick bench-counters bench-baseline bench-orbit bench-oceanway bench-publish faults mutants bench test-size orbit-stress docs contracts manifest lock clean

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Set-up ---------------------------------------------------------------------------------------------

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Seapost needs Python 3.11 or newer; set PYTHON=python3.x")'
	@$(PYTHON) -m venv $(VENV)

# `make demo` needs only the runtime lock; the development lock holds the same pins and more.
$(VENV)/.runtime: requirements/runtime.txt requirements/demo.txt pyproject.toml | $(BIN)/python
	@echo "setting up $(VENV) (runtime)"
	@$(PIP) install --require-hashes --only-binary :all: -r requirements/runtime.txt
	@$(PIP) install --require-hashes --no-deps --no-build-isolation -r requirements/demo.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.runtime
	@echo "setting up $(VENV) (development)"
	@$(PIP) install --require-hashes --only-binary :all: -r requirements/dev.txt
	@touch $@

venv: $(VENV)/.dev ## Create or refresh .venv with everything for tests, checks and docs

runtime: $(VENV)/.runtime

# Work -----------------------------------------------------------------------------------------------

demo: runtime ## A month of real flights through two consumers under a chaos loop (FLIGHTS=all, SEED=n)
	@FLIGHTS=$(FLIGHTS) SEED=$(SEED) $(BIN)/python -m examples.flights

orbit-demo: runtime ## Flights as tasks, three subscribers under a chaos loop, about 50 s (TASKS=n, SEED=n)
	@$(BIN)/python -c 'from orbit.cli.main import main; main()' demo --flights $(TASKS) --seed $(SEED)

oceanway-demo: runtime ## A working day over five databases, thirteen processes killed meanwhile (RUNS=n, SEED=n)
	@$(BIN)/python -c 'from oceanway.cli.main import main; main()' demo --runs $(RUNS) --seed $(SEED)

bench-oceanway: venv ## What a run of OceanWay costs (RUNS=n)
	@$(BIN)/python -c 'from oceanway.cli.main import main; main()' bench --runs $(RUNS)

orbit-crash: venv ## Crash the server under confirmations, with and without the flush fence (ROUNDS=n)
	@ORBIT_CRASH_ROUNDS=$(or $(ROUNDS),200) $(BIN)/python -m pytest -n 0 $(PYTEST_ARGS) tests/orbit/fault/test_fence_crash.py

test: venv ## Run every test on an embedded PostgreSQL (WORKERS=n, PYTEST_ARGS=...)
	@mkdir -p build
	@$(BIN)/python -m pytest -n $(WORKERS) --trace-json build/trace.json $(PYTEST_ARGS)

test-pg: venv ## Run the database tests on the server named by SEAPOST_TEST_DSN
	@test -n "$${SEAPOST_TEST_DSN:-}" || { echo "set SEAPOST_TEST_DSN=postgresql://user@host:5432/postgres" >&2; exit 2; }
	@$(BIN)/python -m pytest -n $(WORKERS) $(PYTEST_ARGS) tests/db tests/race tests/oceanway/db tests/oceanway/race tests/orbit/db tests/orbit/race

test-pgbouncer: venv ## Run append, inbox and dispatcher through PgBouncer (Debian: apt-get install pgbouncer)
	@PATH="$$PATH:/usr/sbin" command -v pgbouncer >/dev/null || { echo "pgbouncer is not installed" >&2; exit 2; }
	@SEAPOST_TEST_PGBOUNCER=1 $(BIN)/python -m pytest -n $(WORKERS) $(PYTEST_ARGS) \
		-k "plain or prepared" tests/conformance tests/pgbouncer

check: venv ## Lint, format, types, import layers, sizes and SQL syntax
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/basedpyright
	@$(BIN)/lint-imports
	@$(BIN)/python -m pytest -p no:cacheprovider -q tests/contract/test_tidy.py tests/contract/test_sql_parses.py

# A result is the last word only as long as nothing that it tested has changed since.
build/trace.json: $(TESTED) | venv
	@$(MAKE) --no-print-directory test

trace: build/trace.json ## Write docs/reference/trace.md from a complete test run; fail on an unproved requirement
	@$(BIN)/python -m tests.kit.trace build/trace.json

model: venv ## Explore every state of the delivery model, and catch every broken twin of it
	@$(BIN)/python -m tests.model

fencing: venv ## Say stale words through every verb and driver; fail if one is believed (OPERATIONS=100000)
	@OPERATIONS=$(OPERATIONS) $(BIN)/python -m tests.fencing

fencing-rivals: venv rivals ## Put the same stale success to Seapost and its rivals, side by side
	@$(BIN)/python -m benchmarks.fencing

faults: venv ## Every fault with many seeds, judged by an oracle; about a quarter of an hour (SEED=n ROUNDS=n FAULT=name)
	@$(BIN)/python -m tests.fault.matrix --seed $(SEED) --rounds $(ROUNDS) $(addprefix --fault ,$(FAULT))

orbit-kills: venv ## kill -9 the receiver example 200 times, all points, SQLite and PostgreSQL; 2 to 3 min (KILLS=n, SEED=n)
	@$(BIN)/python -m tests.orbit.fault.kills --kills $(KILLS) --seed $(SEED)

mutants: venv ## Plant known protocol bugs one by one; fail unless a named test kills each (MUTANTS=a,b)
	@$(BIN)/python -m tests.mutants --jobs $(WORKERS) --only "$(MUTANTS)"

build/.rivals: requirements/bench.txt benchmarks/systems/node/package.json benchmarks/systems/install
	@echo "setting up the rivals of the benchmarks"
	@benchmarks/systems/install
	@touch $@

rivals: build/.rivals

bench: venv rivals ## Measure everything beside the rivals; half an hour (BENCH_ROWS=10000000, BENCH_DSN=...)
	@$(BIN)/python -m benchmarks

bench-quick: venv rivals ## The same in about three minutes; ratios are rough
	@$(BIN)/python -m benchmarks --quick

bench-orbit: venv ## Only Orbit's chapter of it, into build/bench/orbit.md; about eight minutes (BENCH_DSN=...)
	@$(BIN)/python -m benchmarks.orbit

bench-publish: venv ## Put the last full run's report and chart into docs/
	@$(BIN)/python -m benchmarks.publish

bench-counters: venv ## Compare what a delivery costs with benchmarks/baseline.json; fail on 10 % more
	@$(BIN)/python -m benchmarks.gate

bench-baseline: venv ## Make what a delivery costs now the baseline
	@$(BIN)/python -m benchmarks.gate --write

test-size: venv ## The plans of the hot functions behind a backlog of a million deliveries
	@SEAPOST_PLAN_ROWS=1000000 $(BIN)/python -m pytest -n 0 tests/db/test_plans_at_size.py

orbit-stress: venv ## Sixty seconds of everything at once on one Orbit namespace, then its invariants (SECONDS=n)
	@ORBIT_STRESS_SECONDS=$(or $(SECONDS),60) $(BIN)/python -m pytest -n 0 tests/orbit/race/test_subscription_stress.py

docs: venv ## Build the documentation strictly into build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

orbit-docs: venv ## Write Orbit's published documents: OpenAPI, AsyncAPI, JSON Schema and their reference pages
	@$(BIN)/python -m orbit.server.http.publish docs
	@$(BIN)/python -m orbit.wire.publish docs

contracts: venv ## Verify the goldens, compile the exported TypeScript, reproduce the digests in Node
	@bash .ci/contracts

manifest: venv ## Write src/seapost/sql/manifest.json, what `seapost doctor` compares a database with
	@$(BIN)/python -m tests.kit.manifest

lock: venv ## Make the pinned, hashed requirement files again from pyproject.toml (UPGRADE=--upgrade)
	@$(PIP) install uv
	@$(UV_COMPILE) $(UPGRADE) --extra dev --group build pyproject.toml -o requirements/dev.txt
	@$(UV_COMPILE) $(UPGRADE) --extra server --extra embedded --extra otel --group build \
		--constraint requirements/dev.txt pyproject.toml -o requirements/runtime.txt
	@$(UV_COMPILE) $(UPGRADE) --no-deps requirements/demo.in -o requirements/demo.txt
	@$(UV_COMPILE) $(UPGRADE) requirements/bench.in -o requirements/bench.txt

clean: ## Remove everything that was generated
	@rm -rf $(VENV) build dist .basedpyright .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
