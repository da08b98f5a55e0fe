# Everything here works from a fresh clone on a bare Debian 12; `make help` lists the targets.
PYTHON ?= python3
WORKERS ?= 3
LAUNCHER = $(PYTHON) -m deploy.local
BIN = .venv/bin
COMPILE = $(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --quiet \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

.DEFAULT_GOAL := help
.PHONY: help run stop demo status logs env setup venv check test bench redrives figures long-scan soak eval docs lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## install what is missing, start Docstage here, send the samples through (DOCKER=1: by Compose)
	@$(LAUNCHER) $(if $(DOCKER),compose up,up)

stop: ## end everything that make run started; data is kept
	@$(LAUNCHER) $(if $(DOCKER),compose down,down)

demo: ## send the sample documents through the running Docstage again
	@$(LAUNCHER) demo

status: ## list what runs
	@$(LAUNCHER) status

logs: ## follow the logs of all processes
	@$(LAUNCHER) logs

env: ## print URLs, key and logins of the running Docstage
	@$(LAUNCHER) env

setup: ## install system packages and .venv, start nothing
	@$(LAUNCHER) setup

venv:
	@$(LAUNCHER) venv

check: setup ## format, lint, types, import rules, dependencies, unit tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/pytest tests/unit

test: setup ## all tests: unit, integration, faults, e2e; WORKERS=n files at once, each with services of its own
	$(BIN)/pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

bench: setup ## measure throughput and latency
	$(BIN)/python -m tests.bench

redrives: setup ## measure ten thousand dead letters: how soon listed, and what bringing them back costs fresh jobs
	$(BIN)/python -m tests.redrive_bench $(if $(LETTERS),--letters $(LETTERS)) $(if $(RATE),--rate $(RATE))

figures: setup ## [ONLY="name"]: measure how long jobs wait when something dies, parsers outlive a cancel, retries spread
	$(BIN)/python -m tests.figures $(if $(ONLY),--only "$(ONLY)")

long-scan: setup ## [PAGES=n]: read a scan of 600 pages, and see whether memory stays flat
	$(BIN)/python -m tests.long_scan $(if $(PAGES),--pages $(PAGES))

soak: setup ## MINUTES=n [SEED=n] [CLIENTS=n] [OUT=FILE]: break everything under load, then account for every job
	$(BIN)/python -m tests.soak $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) \
		$(if $(CLIENTS),--clients $(CLIENTS)) $(if $(OUT),--out $(OUT))

eval: setup ## CORPUS=DIR [OUT=FILE] [COMPARE=FILE]: send a corpus through the running Docstage, score results
	$(BIN)/python -m tests.evaluation $(CORPUS) $(if $(OUT),--out $(OUT)) $(if $(COMPARE),--compare $(COMPARE)) \
		$(if $(ONLY),--only "$(ONLY)") $(if $(JOBS),--jobs $(JOBS)) $(foreach each,$(FIELDS),--field $(each))

docs: venv ## write docs/settings.md from the settings in the code
	$(BIN)/python -m docs.settings_page

lock: venv ## resolve the dependencies of pyproject.toml anew into deploy/requirements*.txt
	echo 'setuptools>=77' | $(COMPILE) - --output-file deploy/requirements-build.txt
	echo 'uv' | $(COMPILE) - --output-file deploy/requirements-uv.txt
	$(COMPILE) pyproject.toml --output-file deploy/requirements.txt
	$(COMPILE) pyproject.toml --group dev --constraint deploy/requirements.txt --constraint deploy/requirements-uv.txt --output-file deploy/requirements-dev.txt

clean: ## end everything and remove .local (with its data) and .venv
	@$(LAUNCHER) clean
