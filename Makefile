# Each target sets up .venv by itself. `make test` and `make reproduce` are all a new user needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOWEST := .venv-lowest
LOWEST_TESTS ?= src paper tests README.md
export MPLBACKEND := Agg

# Versions of the tools, so that a check says today what it said yesterday. Users of the package are not bound by them.
PIP := $(BIN)/python -m pip install --quiet --constraint constraints.txt

# Trials of `make reproduce` at a time; each has one thread and is measured by its CPU time.
JOBS ?= 2

.PHONY: test quick test-backends test-lowest reproduce results bench fuzz docs dist review lint format clean

test: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n logical src paper tests README.md

# What a contributor runs while working: proximal operators, penalties and losses against their oracles, the loop, the
# public names and the imports.
QUICK := tests/prox tests/penalties tests/losses tests/minimization/test_loop.py tests/test_layers.py tests/test_public_names.py

quick: $(VENV)/.test
	$(BIN)/ruff check .
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n logical $(QUICK)

# With PyTorch and JAX installed too.
test-backends: $(VENV)/.backends
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n logical tests

# The oldest versions that pyproject.toml admits, in an environment of their own. Their own warnings about what will
# change one day are not ours to mend.
test-lowest: $(LOWEST)/.installed
	OPENBLAS_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -n logical -W ignore::DeprecationWarning \
	  -W ignore::PendingDeprecationWarning $(LOWEST_TESTS)

reproduce: $(VENV)/.reproduce
	$(BIN)/ell12-paper run --jobs $(JOBS) --resume

# The rows of a fresh run, stored, and the pages of the documentation that are written from stored rows.
results: reproduce
	$(BIN)/python docs/reproduction.py reproduction

bench: $(VENV)/.test
	$(BIN)/python benchmarks/run.py

# 20,000 random hostile calls; the table goes to benchmarks/results/fuzz.md.
fuzz: $(VENV)/.test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -W ignore benchmarks/fuzz.py

# Wheel and sdist into dist/, checked: their files, their metadata, the quickstart from the wheel alone, tests from the sdist.
dist: $(VENV)/.dist
	rm -rf dist
	$(BIN)/python -m build --quiet --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m check_wheel_contents dist/*.whl
	$(BIN)/python -m tests.distribution dist $(QUICK)

# The checks of the Scientific Python community; those that we do not follow are explained in pyproject.toml.
review: $(VENV)/.dist
	$(BIN)/repo-review .

docs: $(VENV)/.docs
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going --quiet -b html docs docs/_build/html
	$(BIN)/python docs/check.py docs/_build/html
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

$(VENV)/.reproduce: pyproject.toml paper/pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[all]' --editable ./paper
	touch $@

$(VENV)/.test: pyproject.toml paper/pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[test]' --editable ./paper
	touch $@

$(VENV)/.docs: pyproject.toml paper/pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[docs]' --editable ./paper
	touch $@

$(VENV)/.backends: pyproject.toml paper/pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) --editable '.[test,backends]' --editable ./paper
	touch $@ $(VENV)/.test

$(VENV)/.dist: pyproject.toml $(VENV)/.test | $(BIN)/python
	$(PIP) build twine check-wheel-contents 'sp-repo-review[cli]'
	touch $@

$(LOWEST)/.installed: pyproject.toml
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet uv
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable '.[test]' --editable ./paper
	touch $@

clean:
	rm -rf $(VENV) $(LOWEST) dist reproduction docs/_build docs/generated docs/gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis
