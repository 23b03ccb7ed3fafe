# One command for people and CI alike.  `make help` lists the targets.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
TORCH_STAMP := $(if $(filter 1,$(HEADRACE_TEST_TORCH)),$(VENV)/.stamp-torch)
READY := $(STAMP) $(TORCH_STAMP)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
CODE := src tests examples benchmarks

export RAY_USAGE_STATS_ENABLED := 0
export DO_NOT_TRACK := 1
export PREFECT_SERVER_ANALYTICS_ENABLED := false

.DEFAULT_GOAL := help
.PHONY: help setup fmt check lint types floors test soak bench demo clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

setup: $(READY) ## make .venv with Headrace and all that its checks need (HEADRACE_TEST_TORCH=1 adds torch)

# The stamp makes a second call free: nothing is installed again until one of these two files changes.
$(STAMP): pyproject.toml constraints.txt
	@echo "setup: environment in $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --constraint constraints.txt --editable '.[dev]'
	@touch $@

$(VENV)/.stamp-torch: $(STAMP)
	@echo "setup: torch"
	@$(PIP) install --constraint constraints.txt torch
	@touch $@

fmt: $(READY) ## format and sort, in place
	@echo "fmt: ruff"
	@$(BIN)/ruff format $(CODE)
	@$(BIN)/ruff check --fix $(CODE)

check: lint types floors test ## all that must be green: format, lint, types, floors, tests

lint: $(READY) ## format (checked only) and lint
	@echo "lint: ruff"
	@$(BIN)/ruff format --check $(CODE)
	@$(BIN)/ruff check $(CODE)

types: $(READY) ## mypy, strict
	@echo "types: mypy"
	@$(BIN)/mypy

floors: $(READY) ## who may import whom
	@echo "floors: import-linter"
	@$(BIN)/lint-imports

test: $(READY) ## the whole test suite
	@echo "test: pytest"
	@$(BIN)/python -m pytest

soak: $(READY) ## long runs with kills
	@echo "soak: pytest -m soak"
	@$(BIN)/python -m pytest -m soak

bench: $(READY) ## measure a pipeline against plain Ray Data: make bench INPUT=folder-of-jsonl
	@test -n "$(INPUT)" || { echo "bench: name documents to measure on: make bench INPUT=FOLDER (.jsonl, .jsonl.zst)"; exit 2; }
	@for engine in local ray; do \
		echo "bench: benchmarks/pipeline.py --engine $$engine"; \
		$(BIN)/python benchmarks/pipeline.py --input "$(INPUT)" --output benchmarks/out/$$engine --engine $$engine || exit 1; \
	done
	@echo "bench: benchmarks/pipeline_peer.py"
	@$(BIN)/python benchmarks/pipeline_peer.py --input "$(INPUT)" --output benchmarks/out/peer

demo: $(READY) ## run the example pipeline with Ray, then stream its dataset twice
	@echo "demo: examples/python_docs.yaml"
	@$(BIN)/headrace run examples/python_docs.yaml --engine ray
	@echo "demo: why was a document dropped?"
	@$(BIN)/headrace dataset why docs/python@prod
	@echo "demo: examples/stream_twice.py"
	@$(BIN)/python examples/stream_twice.py

clean: ## remove the environment, caches and build output; datasets stay
	@echo "clean: $(VENV), caches, build output"
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis src/headrace.egg-info
	@find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
