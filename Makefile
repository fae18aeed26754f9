# Every target first installs all requirements into .venv, unless this has been done.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FLOWER := .venv-flower
READY := $(VENV)/.ready

# The tests start many interpreters, which start faster with compiled files.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all test-extras test-flower peers docs links setup check gate-store gate product bench gpu figures figures-check claims fuzz clean

demo: $(READY)
	$(BIN)/python -m experiments.demo

SPHINX := $(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going
# The pages are read and their links resolved; the gallery is not executed, and nothing is written.
PAGES := $(SPHINX) -b dummy --tag short docs build/docs/read
CHECKS := $(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(PAGES)

# The checks run concurrently with the tests. Their output comes last; their failure fails the target.
# They are not a sub-make, which would run under `make -n`.
# Tests run with plain assertions, which load faster; those that fail run again to show all values.
# `test` runs a sample of the longest tests (tests/sampling.py), `test-all` all of them.
test: SAMPLE := --sample
test test-all: $(READY)
	@{ $(CHECKS); } >$(VENV)/checks.txt 2>&1 & checks=$$!; \
	$(BIN)/python -m pytest $(SAMPLE) --numprocesses auto --maxprocesses 4 --assert=plain \
		--dist loadfile --no-loadscope-reorder; tests=$$?; \
	if [ $$tests -eq 1 ]; then $(BIN)/python -m pytest --last-failed; fi; \
	wait $$checks; failed=$$?; cat $(VENV)/checks.txt; \
	exit $$((tests | failed))

# Comparisons with packages that the project itself does not need.
test-extras: $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[extras]'
	$(BIN)/python -m pytest -m extras
	$(MAKE) test-flower

# Flower accepts only older versions of some packages: it has an environment of its own.
$(FLOWER)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(FLOWER)
	sed 's/^rich==.*/rich==14.3.4/; s/^datasets==.*/datasets==4.1.1/; /^ray==/d' \
		constraints.txt >$(FLOWER)/constraints.txt
	$(FLOWER)/bin/python -m pip install --quiet --constraint $(FLOWER)/constraints.txt \
		--editable '.[peers]' pytest hypothesis
	touch $@

test-flower: $(FLOWER)/.ready
	$(FLOWER)/bin/python -m pytest -m flower tests/wirelessfl/bridges

# Whole commands beside programs of other packages.
peers: $(FLOWER)/.ready
	$(FLOWER)/bin/python -m pytest tests/benchmarks/test_peers.py
	$(FLOWER)/bin/wirelessfl bench command

# The site; with ONLINE=1 its types link to the pages of NumPy, PyTorch and others.
docs: $(READY)
	rm -rf build/docs/html
	$(SPHINX) $(if $(ONLINE),--tag online) --doctree-dir build/docs/doctrees docs build/docs/html

# Looks up every link to another site.
links: $(READY)
	$(SPHINX) -b linkcheck docs build/docs/links

setup: $(READY)

check: $(READY)
	$(CHECKS)

gate-store: $(READY)
	$(BIN)/python -m tests.gate store

gate: $(READY)
	$(BIN)/python -m tests.gate check

product: $(READY)
	$(BIN)/python -m tests.product

bench: $(READY)
	$(BIN)/wirelessfl bench

gpu: $(READY)
	$(BIN)/python -m experiments gpu

figures: $(READY)
	for paper in hist fadamgc fedast dynamic_clients ra_fed decided codesign; do \
		$(BIN)/python -m experiments.$$paper all || exit; done
	$(BIN)/python -m experiments.fadamgc seconds
	$(BIN)/python -m experiments.fedast timeline
	$(BIN)/python -m experiments.ra_fed frontier
	for name in oma crossover energy; do $(BIN)/python -m experiments.decided $$name || exit; done
	for name in predictions cells; do $(BIN)/python -m experiments.codesign $$name || exit; done
	$(BIN)/python -m experiments.allocation

figures-check: $(READY)
	$(BIN)/python -m experiments check

claims: $(READY)
	$(BIN)/python -m experiments claims

fuzz: $(READY)
	HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest -m "not realdata and not extras"
	$(BIN)/python -m tests.damaged_folders 500

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "wirelessfl needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + ": make PYTHON=/path/to/python3.11")'
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "$(PYTHON) has no venv module: install it (Debian: apt install python3-venv)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test]'
	@touch $(READY)

clean:
	rm -rf $(VENV) $(FLOWER) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
