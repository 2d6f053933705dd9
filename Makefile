# The targets are documented by the "##" behind them: `make` lists them.
# Everything lives in VENV; PYTHON chooses the interpreter that it is made from (3.10 to 3.13).

VENV ?= .venv
PYTHON ?=
SECONDS ?= 300
PHASES ?=
PY := $(VENV)/bin/python
# The tested versions, where the package itself allows a range.
PIP := $(PY) -m pip install --quiet --disable-pip-version-check --use-pep517 --constraint .ci/constraints.txt
WITH_JAVA = JAVA_HOME="$$(.ci/java.sh)" && export JAVA_HOME &&

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help java venv demo test test-fast test-faults test-phases test-random test-soak test-hive bench bench-hive lint settings format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(VENV)/.dev ## the virtual environment with everything that a contributor needs

demo: java $(VENV)/.package ## two short stories: a table of our own, and one that Apache Hive wrote
	@$(WITH_JAVA) $(PY) -m acidsql.demo

test: java $(VENV)/.dev ## all tests
	@$(WITH_JAVA) $(PY) -m pytest

test-fast: $(VENV)/.dev ## the tests that need no Spark
	@$(PY) -m pytest --ignore=tests/spark --ignore=tests/faults --ignore=tests/hdfs

test-faults: java $(VENV)/.dev ## the tests that fail or kill statements at every step (the shorter ones are part of test, too)
	@$(WITH_JAVA) $(PY) -m pytest tests/faults -m ""

test-phases: java $(VENV)/.dev ## every pair of statements, the first stopped at each of its phases for the second (hours; PHASES="partitioned and update" a part)
	@$(WITH_JAVA) $(PY) -m pytest tests/phases -m "" --timeout 0 $(if $(PHASES),-k "$(PHASES)")

test-random: java $(VENV)/.dev ## many long random programs against an oracle (ACIDSQL_TEST_PROGRAMS of each kind of table)
	@$(WITH_JAVA) $(PY) -m pytest tests/spark/test_random_programs.py -m long --timeout 0

test-soak: java $(VENV)/.dev ## writers, readers, compactors and killed processes at once, SECONDS (300) for each layout
	@$(WITH_JAVA) ACIDSQL_TEST_SECONDS="$(SECONDS)" $(PY) -m pytest tests/soak -m long -s

test-hive: java $(VENV)/.dev ## beside a real Hive 4.0.1 and a metastore 3.1.3: downloaded if needed, started, stopped
	@$(WITH_JAVA) $(PY) -m tests.services.suite

bench: java $(VENV)/.dev ## time of single statements (see tests/benchmarks/README.md for the comparison with others)
	@$(WITH_JAVA) $(PY) -m tests.benchmarks.statements

bench-hive: java $(VENV)/.dev ## the same statements by a real Hive and by acidsql, in turn, on one table
	@$(WITH_JAVA) $(PY) -m tests.benchmarks.beside_hive

lint: $(VENV)/.dev ## ruff, mypy and the contract of the rooms
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy
	@$(VENV)/bin/lint-imports

settings: $(VENV)/.package ## write SETTINGS.md anew
	@$(PY) docs/settings_table.py

format: $(VENV)/.dev ## bring the code into the house's form
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

clean: ## remove the virtual environment and everything that can be made again
	rm -rf $(VENV) build dist *.egg-info warehouse spark-warehouse metastore_db derby.log
	rm -rf .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# First of all, since what follows may download a lot.
java:
	@.ci/java.sh > /dev/null

# --- the environment: a stamp for each step, so that a second run starts at once ---

$(VENV)/.made: .ci/venv.sh
	@.ci/venv.sh "$(VENV)" "$(PYTHON)"
	@touch $@

$(VENV)/.package: $(VENV)/.made pyproject.toml .ci/constraints.txt
	@echo "Installing acidsql and what it needs into $(VENV) (PySpark is some 450 MB) ..."
	@$(PIP) --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.package
	@echo "Installing the tools for tests into $(VENV) ..."
	@$(PIP) --editable '.[dev]'
	@touch $@
