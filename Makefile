# The targets are documented by the "##" behind them: `make` lists them.
# Everything lives in VENV; PYTHON chooses the interpreter that it is made from (3.10 to 3.13).

VENV ?= .venv
PYTHON ?=
SECONDS ?= 300
# Processes that the tests are dealt out to, each with a Spark of its own (some 3 GB of memory).
WORKERS ?= 2
# test-phases: a part of the pairs (pytest's -k)
PHASES ?=
# test-random: times the examples of the normal run, of these tests
EXAMPLES ?= 10
DRAWN := tests/metastore/test_random_histories.py tests/metastore/test_compaction_histories.py tests/unit/compactor/test_histories.py \
    tests/unit/compactor/test_ordering.py tests/unit/format tests/spark/test_bucketing.py
# bench-scale: the curves to draw, and their largest size
CURVES ?=
LIMIT ?=
# test-matrix: interpreters that are not on PATH, and the cells to run (all; see .ci/matrix.sh)
PYTHONS ?=
CELLS ?=
PY := $(VENV)/bin/python
# The tested versions, where the package itself allows a range.
PIP := $(PY) -m pip install --quiet --disable-pip-version-check --use-pep517 --constraint .ci/constraints.txt
WITH_JAVA = JAVA_HOME="$$(.ci/java.sh)" && export JAVA_HOME &&
# As a user's Spark works; make test spares the time.
AS_USERS = $(WITH_JAVA) ACIDSQL_TEST_CODEGEN=true

# Where it is set, each of the many Python processes of the tests compiles all modules anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help java venv demo test test-fast test-faults test-hdfs test-long test-oracle test-phases test-postgres test-random test-soak test-hive test-matrix bench bench-hive bench-scale lint settings format clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(VENV)/.dev ## the virtual environment with everything that a contributor needs

demo: java $(VENV)/.package ## two short stories: a table of our own, and one that Apache Hive wrote
	@$(WITH_JAVA) $(PY) -m acidsql.demo

test: java $(VENV)/.dev ## all tests but the long ones and those of the next targets
	@$(WITH_JAVA) $(PY) -m pytest -n $(WORKERS) --ignore=tests/hdfs --ignore=tests/smoke

test-fast: $(VENV)/.dev ## the tests that need no Spark
	@$(PY) -m pytest -n $(WORKERS) tests/unit tests/metastore tests/golden

test-hdfs: java $(VENV)/.dev ## tables on HDFS: two servers are started, and stopped
	@$(AS_USERS) $(PY) -m pytest tests/hdfs -m ""

test-long: java $(VENV)/.dev ## what test leaves out because it takes long and repeats much, without those below
	@$(AS_USERS) $(PY) -m pytest -n $(WORKERS) -m long tests/unit tests/metastore tests/spark --ignore=tests/spark/test_random_programs.py

test-faults: java $(VENV)/.dev ## the tests that fail or kill statements at every step (the shorter ones are part of test, too)
	@$(AS_USERS) $(PY) -m pytest -n $(WORKERS) tests/faults tests/isolation tests/unit/compactor/test_every_step.py -m ""

test-oracle: java $(VENV)/.dev ## Spark as the judge of queries, changes, settings and zones, all of it (ACIDSQL_TEST_QUERIES random ones of a kind)
	@$(WITH_JAVA) $(PY) -m pytest tests/oracle -m "" --timeout 0

test-phases: java $(VENV)/.dev ## every pair of statements, the first stopped at each of its phases for the second (hours; PHASES="partitioned and update" a part)
	@$(WITH_JAVA) $(PY) -m pytest tests/phases -m "" --timeout 0 $(if $(PHASES),-k "$(PHASES)")

test-postgres: java $(VENV)/.dev ## tests/spark and tests/faults with the store in a PostgreSQL, which is started and stopped
	@$(AS_USERS) ACIDSQL_TEST_STORE=postgres $(PY) -m pytest -n $(WORKERS) tests/spark tests/faults

test-random: java $(VENV)/.dev ## many long random programs against an oracle (ACIDSQL_TEST_PROGRAMS of each kind of table), and ten times the examples
	@$(AS_USERS) $(PY) -m pytest tests/spark/test_random_programs.py -m long --timeout 0
	@$(AS_USERS) ACIDSQL_TEST_EXAMPLES="$(EXAMPLES)" $(PY) -m pytest -n $(WORKERS) $(DRAWN) --timeout 0

test-soak: java $(VENV)/.dev ## writers, readers, compactors and killed processes at once, SECONDS (300) for each layout
	@$(AS_USERS) ACIDSQL_TEST_SECONDS="$(SECONDS)" $(PY) -m pytest tests/soak -m long -s

test-hive: java $(VENV)/.dev ## beside a real Hive 4.0.1 and a metastore 3.1.3: downloaded if needed, started, stopped
	@$(AS_USERS) $(PY) -m tests.services.suite

test-matrix: java ## all of tests/spark on every PySpark from 4.0 on, and on the oldest and the newest Python (CELLS: some of them)
	@$(AS_USERS) ACIDSQL_TEST_WAYS=all PYTHONS="$(PYTHONS)" WORKERS="$(WORKERS)" .ci/matrix.sh $(CELLS)

bench: java $(VENV)/.dev ## time of single statements (see tests/benchmarks/README.md for the comparison with others)
	@$(WITH_JAVA) $(PY) -m tests.benchmarks.statements

bench-hive: java $(VENV)/.dev ## the same statements by a real Hive and by acidsql, in turn, on one table
	@$(WITH_JAVA) $(PY) -m tests.benchmarks.beside_hive

bench-scale: java $(VENV)/.bench ## curves over deltas, partitions, deleted rows, rows and history (hours; CURVES="deltas,partitions" LIMIT=1000 some of it)
	@$(WITH_JAVA) $(PY) -m tests.benchmarks.scale $(if $(CURVES),--curves "$(CURVES)") $(if $(LIMIT),--limit "$(LIMIT)")

lint: $(VENV)/.dev ## ruff, mypy and the contract of the rooms
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy
	@$(VENV)/bin/lint-imports

settings: $(VENV)/.package ## write docs/settings.md anew
	@$(PY) docs/settings_table.py

format: $(VENV)/.dev ## bring the code into the house's form
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

clean: ## remove the virtual environment and everything that can be made again
	rm -rf $(VENV) .matrix build dist *.egg-info warehouse spark-warehouse metastore_db derby.log
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

$(VENV)/.bench: $(VENV)/.dev
	@$(PIP) --editable '.[notebook]'
	@touch $@
