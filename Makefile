# `make demo` shows it, `make quick` checks an edit, `make test` checks everything, `make docs` builds the documentation.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
export LIVE
# Test processes at once.
JOBS ?= 2
PYTEST := $(BIN)/python -m pytest -q
PARALLEL := -n $(JOBS) --dist loadscope

.PHONY: demo test quick docs api lab install lint notebooks unit clean

demo: $(VENV)/.demo
	$(BIN)/python notebooks/demo.py

lab: $(VENV)/.demo
	$(BIN)/harnesslab models get smollm2-135m
	$(BIN)/jupyter lab --LabApp.news_url=None notebooks/01_train_a_harness.ipynb

test: lint docs notebooks unit

quick: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(PYTEST) $(PARALLEL) -m "not slow" tests

# The pages of the tutorials are the notebooks as they were executed; nothing is executed here.
docs: $(VENV)/.test
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

# What is generated from the server's models: its OpenAPI document, and the sidebar's types (needs node).
api: $(VENV)/.test
	$(BIN)/python -m harnesslab.server.openapi
	cd extension && PATH="$(abspath $(BIN)):$$PATH" jlpm types

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

notebooks: $(VENV)/.test
	$(BIN)/harnesslab models get smollm2-135m --quiet
	$(BIN)/python -m pytest --nbval-lax --nbval-current-env --nbval-cell-timeout=180 -p no:randomly -q notebooks

# Environments whose packages come in seconds; a test skips, and says why, where one could not be had.
CHECKED := babyai gymtext bfcl tau2 agentdojo terminal webshop
HARNESSLAB_ENVS ?= $(abspath $(VENV))/envs

$(VENV)/.envs: $(VENV)/.test $(wildcard envs/harnesslab_envs/*/env.toml envs/harnesslab_envs/*/requirements.txt)
	@for name in $(CHECKED); do \
	  echo "installing the environment $$name ..."; \
	  HARNESSLAB_ENVS=$(HARNESSLAB_ENVS) $(BIN)/harnesslab envs install $$name || echo "$$name could not be installed; its tests will be skipped"; \
	done
	@touch $@

# The browser has a process of its own: it keeps an event loop, and what it leaves behind must not meet other tests.
unit: $(VENV)/.test $(VENV)/.envs
	$(PYTEST) tests/browser
	HARNESSLAB_ENVS=$(HARNESSLAB_ENVS) $(PYTEST) $(PARALLEL) tests docs --ignore=tests/browser

install: $(VENV)/.test

# uv where it is there, since it is many times quicker; else venv and pip.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "harnesslab needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	@if command -v uv >/dev/null 2>&1; then uv venv --quiet --seed --python $(PYTHON) $(VENV); else $(PYTHON) -m venv $(VENV); fi

comma := ,
define pip_install
	@echo "installing [$(1)] into $(VENV) ..."
	@if command -v uv >/dev/null 2>&1; then uv pip install --quiet --python $(BIN)/python -e '.[$(1)]'; \
	else $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$(1)]'; fi
endef

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml
	$(call pip_install,lab$(comma)local)
	@touch $@

$(VENV)/.test: $(VENV)/bin/python pyproject.toml
	$(call pip_install,lab$(comma)local$(comma)dask$(comma)test$(comma)docs)
	@touch $@ $(VENV)/.demo

clean:
	rm -rf $(VENV) docs/_build docs/tutorials docs/reference/generated labs notebooks/labs .pytest_cache .mypy_cache .ruff_cache .hypothesis
