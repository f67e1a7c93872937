# Every target bootstraps itself: only python3 (with venv) is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SYNCED := $(VENV)/.synced
PACKAGES := codehub activities workflows api proxy worker storage_job cli migrations benchmarks gameday testkit tests
# Tests start thousands of short-lived processes: compile each module once, even if the caller's shell turned that off.
unexport PYTHONDONTWRITEBYTECODE
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header

.DEFAULT_GOAL := help
.PHONY: help up test check unit fmt lint types contracts docs gameday histories lock env images clean

help: ## List the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(SYNCED): requirements/bootstrap.lock requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "CodeHub needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..."; exit 1; }
	@test -x $(BIN)/uv || { $(PYTHON) -m venv --clear $(VENV) \
	  || { echo "python3 has no venv module here; on Debian: apt-get install python3-venv"; exit 1; }; \
	  $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.lock; }
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements/bootstrap.lock requirements/dev.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true
	@touch $@

up: $(SYNCED) ## Start CodeHub on this machine
	@$(BIN)/codehub up

test: $(SYNCED) ## Run every test
	$(BIN)/coverage erase
	$(BIN)/python -m tests.parts
	$(BIN)/coverage report

check: $(SYNCED) lint types contracts unit ## Format check, lint, types, import contracts, unit tests

lint: $(SYNCED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(SYNCED)
	$(BIN)/mypy

contracts: $(SYNCED)
	$(BIN)/lint-imports

# Searching for what a broken rule leads to takes a while, so `make test` does that.
unit: $(SYNCED) ## Run the tests that need no server
	$(BIN)/pytest tests/unit tests/model --ignore=tests/model/test_model_can_fail.py

fmt: $(SYNCED) ## Format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(SYNCED) ## Write the generated pages anew
	$(BIN)/codehub settings --markdown > docs/configuration.md
	$(BIN)/python -m cli.reference > docs/cli.md
	$(BIN)/python -m api.dashboard.words > api/dashboard/assets/words.js

# One game that is the same every time, and one that never was before; both print their seed.
gameday: $(SYNCED) ## Break everything for three minutes, and check that nothing was lost
	$(BIN)/codehub gameday --minutes 1.5 --seed codehub
	$(BIN)/codehub gameday --minutes 1.5

histories: $(SYNCED) ## Record the workflow histories that the replay tests use
	$(BIN)/pytest tests/replay/record_histories.py

lock: $(SYNCED) ## Resolve the dependencies anew
	$(COMPILE) --upgrade -o requirements/bootstrap.lock requirements/bootstrap.in
	$(COMPILE) --upgrade --extra embedded -o requirements/runtime.lock pyproject.toml
	$(COMPILE) --upgrade -c requirements/runtime.lock -o requirements/control-plane.lock pyproject.toml
	$(COMPILE) --upgrade -c requirements/runtime.lock -o requirements/storage-job.lock requirements/storage-job.in
	$(COMPILE) --upgrade --no-annotate -o images/workspace/node.lock images/workspace/node.in
	$(COMPILE) --upgrade --extra embedded --extra ide --extra dev -c requirements/runtime.lock -c requirements/bootstrap.lock -o requirements/dev.lock pyproject.toml

env: ## Make up the passwords of the compose deployment
	@$(PYTHON) deploy/make_env.py

images: ## Build the Docker images
	@images/build

clean: ## Remove what the other targets made
	rm -rf $(VENV) build dist .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find $(PACKAGES) -name __pycache__ -type d -prune -exec rm -rf {} +
