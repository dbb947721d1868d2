# The targets of this repository. Each makes .venv first where it is missing, from nothing but Python >= 3.11 and make.
# PYTHON=python3.12 chooses the interpreter; docs/install.md says how to choose a CPU or CUDA build of torch.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.installed-docs
PRESET ?= quick
# Tests run in one process per core; a test process never uses more than one thread.
WORKERS ?= auto

export OMP_NUM_THREADS ?= 1
export HF_HUB_DISABLE_TELEMETRY := 1

.PHONY: setup compare test test-all test-interop test-mutations gpu-check check docs clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "marft-envs needs Python >= 3.11; got $$($(PYTHON) --version). Set PYTHON=..."; exit 1; }
	@test -x $(BIN)/python || { echo "making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing pinned dependencies into $(VENV) (about 2 GB; minutes the first time)"
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off -q -c constraints.txt -e '.[dev]'
	@touch $@
	@echo "done: . $(BIN)/activate, then make test or make compare"

compare: setup
	$(BIN)/python benchmarks/compare.py --preset $(PRESET) --resume

test: setup
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not slow and not interop"

test-all: setup
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not interop"

test-interop: setup
	$(BIN)/python -m pytest -m interop tests/interop

test-mutations: setup
	$(BIN)/python -m tests.mutations

# At most five minutes on a GPU; exit code 2 without one. The CPU's side of the comparison takes all cores.
gpu-check: setup
	env -u OMP_NUM_THREADS $(BIN)/python benchmarks/gpu_check.py

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not slow and not interop"

docs: $(DOCS_STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The documentation is in site/index.html. To search it, serve it: python3 -m http.server -d site"

$(DOCS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off -q -c constraints.txt -e '.[docs]'
	@touch $@

clean:
	rm -rf $(VENV) build dist site *.egg-info
