# Every command a developer or CI needs. `make` alone lists them.
#
# Needs: CPython >= 3.11 with venv, a stable Rust toolchain. Everything else goes into .venv here.
# Nothing is rebuilt unless one of its inputs changed: stamps in .venv stand for "installed" and "built".

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# The first CPython >= 3.11 on the path; PYTHON=... overrides.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { command -v "$$p"; break; }; done)
VENV ?= .venv
BIN := $(VENV)/bin
# Overrides for the demo, e.g. make demo DEMO="--model path/to/model --turns 20"
DEMO ?=
# Overrides for pytest, e.g. make test PYTEST="-k parity -x", or PYTEST="-n0 --pdb" for one process
PYTEST ?=

RUST_INPUTS := Cargo.toml Cargo.lock pyproject.toml $(shell find src -name '*.rs')
RUN_STAMP := $(VENV)/.stamp-run
DEV_STAMP := $(VENV)/.stamp-dev
BUILT_STAMP := $(VENV)/.stamp-built

.PHONY: help python demo build test test-rust test-python lint format typecheck stubtest bench bench-encoding bench-verification wheel clean

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

python: # the interpreter that the environments are made with
	@test -n "$(PYTHON)" || { echo "error: no CPython >= 3.11 with venv found; set PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "$(PYTHON)"

demo: build ## build what is needed and replay a conversation through transformers and turntrie
	$(BIN)/turntrie demo $(DEMO)

build: $(BUILT_STAMP) ## the extension, release profile, editable install in .venv

test: test-rust test-python ## all tests, Rust and Python

test-rust: ## the core, without Python
	cargo test --locked

test-python: build $(DEV_STAMP) ## the Python tests against the editable install
	$(BIN)/python -m pytest -n auto $(PYTEST)

lint: $(DEV_STAMP) ## formatting and lints, Rust and Python; warnings are errors
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	cargo clippy --locked --all-targets --all-features -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	@if cargo tree --locked --edges normal --prefix none | grep -E '^pyo3'; then \
		echo "error: the core depends on pyo3 without the feature 'python'" >&2; exit 1; fi

format: $(DEV_STAMP) ## rewrite the sources in the house style
	cargo fmt
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

typecheck: $(DEV_STAMP) ## mypy, strict, on the package
	$(BIN)/mypy

stubtest: build $(DEV_STAMP) ## _native.pyi against the built module
	$(BIN)/python -m mypy.stubtest turntrie._native

bench: build $(DEV_STAMP) ## the figures of the README, and peers that are installed (about fifteen minutes)
	$(BIN)/python benches/run.py
	$(BIN)/python benches/peers.py turns
	$(BIN)/python benches/loop_stall.py
	$(BIN)/python -m pytest benches --benchmark-enable --benchmark-group-by=group --benchmark-columns=median,iqr,rounds

bench-encoding: build $(DEV_STAMP) ## encoding of new text, cold calls, worst cases, loading, encoders compared
	$(BIN)/python benches/encoding.py
	$(BIN)/python benches/peers.py encode

bench-verification: build $(DEV_STAMP) ## what verification adds to a call, in instructions (needs valgrind)
	$(BIN)/python benches/verification_cost.py

wheel: $(DEV_STAMP) ## the distributable wheel, in dist/
	$(BIN)/maturin build --release --out dist

clean: ## remove the environment and everything built
	rm -rf $(VENV) dist target python/turntrie/_native*.so

$(BIN)/python:
	"$$($(MAKE) --no-print-directory python)" -m venv $(VENV)

PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check

# What building and running need: the build tool, the dependencies, and the extra that the demo compares with.
$(RUN_STAMP): pyproject.toml .ci/requirements.py | $(BIN)/python
	$(BIN)/python .ci/requirements.py build run transformers | $(PIP_INSTALL) -r /dev/stdin
	@touch $@

# What testing and linting need on top.
$(DEV_STAMP): $(RUN_STAMP)
	$(BIN)/python .ci/requirements.py dev | $(PIP_INSTALL) -r /dev/stdin
	@touch $@

# In place: an editable install, so that only a change of the Rust sources or of the manifests rebuilds.
$(BUILT_STAMP): $(RUN_STAMP) $(RUST_INPUTS)
	@command -v cargo >/dev/null || { echo "error: no Rust toolchain found (cargo is not on the path)" >&2; exit 1; }
	VIRTUAL_ENV="$(abspath $(VENV))" $(BIN)/maturin develop --release
	@touch $@
