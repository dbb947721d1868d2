# The targets of this repository. Each makes .venv first where it is missing, from nothing but Python >= 3.11 and make.
# PYTHON=python3.12 chooses the interpreter; docs/install.md says how to choose a CPU or CUDA build of torch.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs
BROWSER_STAMP := $(VENV)/.installed-browser
PRESET ?= quick
# Tests run in one process per core; a test process never uses more than one thread.
WORKERS ?= auto

export OMP_NUM_THREADS ?= 1
export HF_HUB_DISABLE_TELEMETRY := 1

.PHONY: help setup compare test test-all test-fuzz test-interop test-browser test-mutations gpu-check check docs clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/make \1:\2/p' $(MAKEFILE_LIST) | awk -F: '{ printf "%-20s %s\n", $$1, $$2 }'

setup: $(STAMP)  ## make .venv with the pinned versions (about 2 GB)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "marft-envs needs Python >= 3.11; got $$($(PYTHON) --version). Set PYTHON=..."; exit 1; }
	@test -x $(BIN)/python || { echo "making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing pinned dependencies into $(VENV) (about 2 GB; minutes the first time)"
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off -q -c constraints.txt -e '.[dev]'
	@touch $@
	@echo "done: . $(BIN)/activate, then make test or make compare"

compare: setup  ## compare MARFT and IPPO and write a report; PRESET=quick
	$(BIN)/python benchmarks/compare.py --preset $(PRESET) --resume

test: setup  ## the tests that take seconds; WORKERS=auto
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not slow and not interop and not browser"

test-all: setup  ## also the tests that take minutes
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not interop and not browser"

# Each property is tried on 2,500 random examples; `make test` tries 100.
test-fuzz: setup  ## the tests of random inputs, with many more of them
	$(BIN)/python -m pytest -n $(WORKERS) --hypothesis-profile thorough -m "not slow" \
	  $$(grep -rl --include='*.py' '^@given' tests)

test-interop: setup  ## play through other libraries, each in a venv of its own
	$(BIN)/python -m pytest -m interop tests/interop

test-browser: $(BROWSER_STAMP)  ## open the report's pages in headless Chromium; CHROMIUM=PATH
	@$(BIN)/python -c 'import os, shutil, sys; names = [os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"]; \
	  sys.exit(not any(shutil.which(name) for name in names if name))' || \
	  { echo "no Chromium found: apt-get install chromium (Debian), or CHROMIUM=PATH of Chromium or Chrome"; exit 1; }
	$(BIN)/python -m pytest -m browser tests/browser

$(BROWSER_STAMP): $(STAMP)
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off -q -c constraints.txt -e '.[browser]'
	@touch $@

test-mutations: setup  ## plausible faults, one at a time, must each make a test fail
	$(BIN)/python -m tests.mutations

# At most five minutes on a GPU; exit code 2 without one. The CPU's side of the comparison takes all cores.
gpu-check: setup  ## train on a GPU and compare it with the CPU
	env -u OMP_NUM_THREADS $(BIN)/python benchmarks/gpu_check.py

check: setup  ## ruff, mypy, import contracts and the tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not slow and not interop and not browser"

docs: $(DOCS_STAMP)  ## build the documentation as a site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The documentation is in site/index.html. To search it, serve it: python3 -m http.server -d site"

$(DOCS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off -q -c constraints.txt -e '.[docs]'
	@touch $@

clean:  ## delete .venv and what was built
	rm -rf $(VENV) build dist site *.egg-info
