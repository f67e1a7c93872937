# Every target creates the virtual environment that it needs; only python3 with venv has to be installed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SYNCED := $(VENV)/.synced
PACKAGES_SYNCED := node_modules/.synced
PACKAGES := codehub activities workflows api proxy worker egress storage_job workspace_agent cli migrations benchmarks gameday testkit tests
# Tests start thousands of processes: cache the bytecode of their modules even if the caller's shell turns that off.
unexport PYTHONDONTWRITEBYTECODE
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header

.DEFAULT_GOAL := help
.PHONY: help up test t check static unit fmt lint types contracts js scripts screenshots docs gameday fixed-game new-game search histories lock env images cluster clean

help: ## List the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(SYNCED): requirements/bootstrap.lock requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "CodeHub needs Python 3.11 or newer; choose one: make PYTHON=python3.12 ..."; exit 1; }
	@# Without pyvenv.cfg, which an interrupted run can leave behind, uv would change the Python of the machine.
	@test -x $(BIN)/uv -a -f $(VENV)/pyvenv.cfg || { $(PYTHON) -m venv --clear $(VENV) \
	  || { echo "python3 has no venv module; on Debian: apt-get install python3-venv"; exit 1; }; \
	  $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.lock; }
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements/bootstrap.lock requirements/dev.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@# Some packages ship templates that are not valid Python; compileall fails on those and goes on.
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true
	@touch $@

up: $(SYNCED) ## Start CodeHub on this machine
	@$(BIN)/codehub up

test: $(SYNCED) ## Run every test
	@# The tests in a browser use these packages and cannot fetch them: their network ends at the loopback.
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory $(PACKAGES_SYNCED); fi
	$(BIN)/coverage erase
	$(BIN)/python -m tests.run
	$(BIN)/coverage report

t: $(SYNCED) ## Run the tests of one area: make t AREA=proxy ARGS=-x
	@$(BIN)/python -m tests.run "$(AREA)" $(ARGS)

check: static unit ## Check format, lint, types and import contracts, and run the unit tests

static: js lint types contracts

lint: $(SYNCED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(SYNCED)
	$(BIN)/mypy

contracts: $(SYNCED)
	$(BIN)/lint-imports

$(PACKAGES_SYNCED): package.json package-lock.json .npmrc
	@npm ci --silent
	@touch $@

js: ## Check types and lint of the scripts for the browser, and run their tests (needs npm)
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory scripts; \
	elif [ "$$CI" = true ]; then echo "make js needs npm (Debian: apt-get install npm)"; exit 1; \
	else echo "Skipped make js: it needs npm (Debian: apt-get install npm)"; fi

scripts: $(PACKAGES_SYNCED)
	node_modules/.bin/tsc
	node_modules/.bin/eslint .
	node --test tests/dashboard/*.test.mjs

screenshots: $(SYNCED) ## Take the screenshots of the documentation (needs chromium)
	$(BIN)/python -m tests.e2e.screenshots

# test_model_can_fail.py breaks one rule after another and takes minutes, so only `make test` runs it.
unit: $(SYNCED) ## Run the tests that need no server
	$(BIN)/pytest tests/unit tests/model --ignore=tests/model/test_model_can_fail.py

fmt: $(SYNCED) ## Format the code and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(SYNCED) ## Write the generated pages
	$(BIN)/codehub settings --markdown > docs/configuration.md
	$(BIN)/python -m cli.reference > docs/cli.md
	$(BIN)/python -m api.dashboard.generate

# Two games at once: one with the same faults every time, one with new ones. Both print their seed.
gameday: $(SYNCED) ## Break everything for a minute and a half, twice, and check that nothing was lost
	@$(MAKE) --jobs 2 --output-sync=target fixed-game new-game

fixed-game: $(SYNCED)
	$(BIN)/codehub gameday --minutes 1.5 --seed codehub

new-game: $(SYNCED)
	$(BIN)/codehub gameday --minutes 1.5

search: $(SYNCED) ## Run the lifecycle model with random seeds: MINUTES=10, or SEED=n to shrink a counterexample
	$(BIN)/python -m tests.model.search --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))

histories: $(SYNCED) ## Record the workflow histories that the replay tests use
	$(BIN)/pytest tests/replay/record_histories.py

lock: $(SYNCED) ## Resolve the dependencies
	$(COMPILE) --upgrade -o requirements/bootstrap.lock requirements/bootstrap.in
	$(COMPILE) --upgrade --extra embedded -o requirements/runtime.lock pyproject.toml
	$(COMPILE) --upgrade -c requirements/runtime.lock -o requirements/control-plane.lock pyproject.toml
	$(COMPILE) --upgrade -c requirements/runtime.lock -o requirements/storage-job.lock requirements/storage-job.in
	$(COMPILE) --upgrade --no-annotate -o images/workspace/node.lock images/workspace/node.in
	$(COMPILE) --upgrade --extra embedded --extra ide --extra dev -c requirements/runtime.lock -c requirements/bootstrap.lock -o requirements/dev.lock pyproject.toml

env: ## Generate the passwords for the compose deployment
	@$(PYTHON) deploy/make_env.py

images: ## Build the Docker images
	@images/build

cluster: ## Build the servers of the Kubernetes test cluster (needs Go)
	@testkit/kubernetes/build

clean: ## Remove what the other targets created
	rm -rf $(VENV) node_modules build dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find $(PACKAGES) -name __pycache__ -type d -prune -exec rm -rf {} +
