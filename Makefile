# `make repro` rebuilds every table and figure; `make test` runs the fast tests.
# VENV_READY=DIR uses an environment as it is and installs nothing (CI's temporary clones).
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?=
EXTRAS ?= dev
ifdef VENV_READY
VENV := $(abspath $(VENV_READY))
INSTALLED :=
else
VENV := $(CURDIR)/.venv
INSTALLED := $(VENV)/.installed-$(EXTRAS)
endif

export PATH := $(VENV)/bin:$(PATH)
export PYTHONPATH := $(CURDIR)$(if $(PYTHONPATH),:$(PYTHONPATH))
# Sums add up in one order: results are compared byte for byte.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
export NUMEXPR_NUM_THREADS := 1
export GDAL_NUM_THREADS := 1
export MPLBACKEND := agg

.PHONY: help install repro test test-slow lint format lab bench params clean

help:
	@echo 'make repro      rebuild every table and figure (installs first; PROFILE is in params.yaml)'
	@echo 'make test       fast tests, two processes'
	@echo 'make test-slow  the full-size tests'
	@echo 'make lint       ruff, mypy, import-linter'
	@echo 'make lab        open the notebooks in JupyterLab'
	@echo 'make bench      measure speeds'
	@echo 'make params     compose params.yaml from conf/ (PROFILE=smoke, small or paper)'
	@echo 'make clean      delete what can be rebuilt, but for data/ and .venv/'

install: $(INSTALLED)

$(VENV)/.installed-%: pyproject.toml constraints.txt
	@[ -x $(VENV)/bin/python ] || { \
	  for python in $(PYTHON) python3.11 python3.12 python3.13 python3; do \
	    if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
	      2>/dev/null; then "$$python" -m venv $(VENV); break; fi; \
	  done; }
	@[ -x $(VENV)/bin/python ] || { \
	  echo 'No Python >= 3.11 with venv was found; install one, or name it: make PYTHON=/path/to/python' >&2; \
	  exit 1; }
	@echo 'Installing eo_agent_lab[$*] into $(VENV) (about two minutes the first time) ...'
	@$(VENV)/bin/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[$*]'
	@touch $@

repro: install
	dvc repro

test: install
	pytest -n 2 -q -m 'not slow and not benchmark'

test-slow: install
	pytest -n 2 -q -m 'slow and not benchmark'

lint: install
	ruff check
	ruff format --check
	mypy
	lint-imports

format: install
	ruff check --fix
	ruff format

lab: install
	jupyter lab notebooks

bench: install
	pytest -q -m benchmark --benchmark-only --benchmark-sort=name

PROFILE ?= small
params: install
	python -m eo_agent_lab.conf profile=$(PROFILE) > params.yaml.tmp
	mv params.yaml.tmp params.yaml

clean:
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks .import_linter_cache
	rm -rf outputs build dist *.egg-info .coverage
	find . -path ./.venv -prune -o -path ./.git -prune -o -name __pycache__ -type d -exec rm -rf {} +
	find . -path ./.venv -prune -o -path ./.git -prune -o -name .ipynb_checkpoints -type d -exec rm -rf {} +
