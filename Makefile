# Each target sets up .venv by itself. `make test` and `make reproduce` are all a new user needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export MPLBACKEND := Agg

# Continuous integration also installs the other array libraries, so that no backend test is skipped there.
ifdef CI
TEST_SETUP := $(VENV)/.backends
else
TEST_SETUP := $(VENV)/.test
endif

# Trials of `make reproduce` at a time; each has one thread and is measured by its CPU time.
JOBS ?= 2

.PHONY: test test-backends reproduce results bench fuzz docs lint format clean

test: $(TEST_SETUP) lint
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n logical src tests README.md

test-backends: $(VENV)/.backends
	$(BIN)/python -m pytest tests/backend/test_arrays.py

reproduce: $(VENV)/.reproduce
	$(BIN)/ell12 reproduce --jobs $(JOBS) --resume

# The run's verdicts and tables as pages of the documentation.
results: reproduce
	cp reproduction/tables.md docs/results/quick.md

bench: $(VENV)/.test
	$(BIN)/python benchmarks/run.py

# 20,000 random hostile calls; the table goes to benchmarks/results/fuzz.md.
fuzz: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -W ignore benchmarks/fuzz.py

docs: $(VENV)/.docs
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going --quiet -b html docs docs/_build/html
	$(BIN)/python docs/_ext/check.py docs/_build/html
	@echo "open docs/_build/html/index.html"

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(BIN)/python:
	@$(PYTHON) -c "import sys; sys.exit('ell12 needs Python 3.11 or newer, found ' + sys.version.split()[0] + '; try: make PYTHON=python3.12 ...' if sys.version_info < (3, 11) else 0)"
	$(PYTHON) -m venv $(VENV)

$(VENV)/.reproduce: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[all]'
	touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

$(VENV)/.backends: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[test,backends]'
	touch $@ $(VENV)/.test

clean:
	rm -rf $(VENV) reproduction docs/_build docs/generated docs/gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis
