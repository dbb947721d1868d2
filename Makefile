# make compare: the main job. make test: the tests. Both make .venv first, from nothing but Python >= 3.11.
# PYTHON=python3.12 chooses the interpreter; see README.md for a CPU or CUDA build of torch.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PRESET ?= quick

export OMP_NUM_THREADS ?= 1
export HF_HUB_DISABLE_TELEMETRY := 1

.PHONY: setup compare test test-all test-interop check clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "marft-envs needs Python >= 3.11; got $$($(PYTHON) --version). Set PYTHON=..."; exit 1; }
	@test -x $(BIN)/python || { echo "making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@echo "installing pinned dependencies into $(VENV) (about 2 GB; minutes the first time)"
	$(BIN)/python -m pip install --disable-pip-version-check --progress-bar off -q -c constraints.txt -e '.[dev]'
	@touch $@

compare: setup
	$(BIN)/python benchmarks/compare.py --preset $(PRESET) --resume

test: setup
	$(BIN)/python -m pytest -m "not slow"

test-all: setup
	$(BIN)/python -m pytest -m "not interop"

test-interop: setup
	$(BIN)/python -m pytest -m interop tests/interop

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -m "not slow"

clean:
	rm -rf $(VENV) build dist *.egg-info
