# Everything here needs Python 3.11 or newer, and make. The environment is made on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo reproduce test test-torch test-machines trust mutants audit dist lint types imports unit docs bench bench-full bench-kernels clean

help: ## the targets, and what they do
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

demo: $(STAMP) ## train on digits, compare with scikit-learn, write plots and a report
	$(BIN)/admm-softmax demo --out demo-output

reproduce: $(STAMP) ## the paper's experiments: about three hours; BUDGET=60 SEEDS=1 for a quick look (CIFAR-10: 100)
	$(BIN)/python -c 'import torch' 2>/dev/null || $(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/admm-softmax reproduce all --authors-split --budget $(or $(BUDGET),300) --seeds $(or $(SEEDS),3)

test: lint types imports unit ## lint, types, imports, and the suite: under ten minutes

# Tests that need torch have an environment of their own: torch is large, and pinned to a version
# that has a build without CUDA. Where it cannot be installed, they are left out, and that is said.
TORCH := .venv-torch
# What is said where torch is missing, and examples.
BESIDE_TORCH := src/admm_softmax/design/torch tests/features/test_alexnet.py tests/models/test_exports.py

test-torch: $(TORCH)/.installed ## the tests that need torch, with coverage; says so and passes where it cannot be installed
	@if test -s $(TORCH)/.installed; then cat $(TORCH)/.installed; else \
		export COVERAGE_FILE=.coverage-torch; \
		$(TORCH)/bin/pytest -n 2 -q -m torch tests --cov --cov-report= && \
		$(TORCH)/bin/pytest -q -m 'not torch' $(BESIDE_TORCH) --cov --cov-append --cov-report= && \
		$(TORCH)/bin/python -m tests.trust.coverage_report 95 90 .coverage-torch; fi

$(TORCH)/.installed: pyproject.toml constraints.txt
	@test -x $(TORCH)/bin/python || $(PYTHON) -m venv $(TORCH)
	@if $(TORCH)/bin/python -m pip install --quiet torch==2.13.0 numpy --constraint constraints.txt; then \
		$(TORCH)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]' && : > $@; \
	else echo 'torch==2.13.0 cannot be installed here: its tests are left out' > $@; fi

test-machines: $(STAMP) ## the suite as on other CPUs, with the oldest dependencies, on the newest Python: half an hour
	$(BIN)/python tests/machines.py $(ONLY)

lint: $(STAMP) ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP) ## mypy
	$(BIN)/mypy

imports: $(STAMP) ## the direction of imports
	$(BIN)/lint-imports

# COVERAGE=1 counts the lines and branches of src that run, which takes half as long again.
unit: $(STAMP) ## the suite; with COVERAGE=1 also how much of src it runs
	$(BIN)/pytest -n 2 -q $(if $(COVERAGE),--cov --cov-report=)
	$(if $(COVERAGE),$(BIN)/python -m tests.trust.coverage_report 95 90)

trust: $(STAMP) ## what happens when things go wrong, in full: at most 20 minutes; docs/testing.md
	TRUST=1 $(BIN)/pytest -n 2 -q tests/trust
	$(MAKE) mutants audit dist

mutants: $(STAMP) ## break the library in one place at a time; the tests must notice
	$(BIN)/python -m tests.trust.mutants

# The site has an environment of its own. sphinx-gallery runs the examples, once for each change
# of theirs; warnings are errors.
DOCS := .venv-docs

docs: $(DOCS)/.installed ## the site, in docs/_build/html: about two minutes; links within it are checked
	$(DOCS)/bin/sphinx-build -W --keep-going -n -q docs docs/_build/html
	$(DOCS)/bin/python docs/_site/check_links.py docs/_build/html
	@echo docs/_build/html/index.html

$(DOCS)/.installed: pyproject.toml constraints.txt
	test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --upgrade pip
	$(DOCS)/bin/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $@

# Building and auditing have an environment of their own.
RELEASE := .venv-release

audit: $(RELEASE)/.installed ## known vulnerabilities of the pinned dependencies; says so where it cannot ask
	$(RELEASE)/bin/python -m tests.trust.audit

dist: $(RELEASE)/.installed ## wheel and source archive, checked as a user gets them, with a bill of materials
	$(RELEASE)/bin/python -m tests.trust.distribution

$(RELEASE)/.installed: pyproject.toml
	test -x $(RELEASE)/bin/python || $(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --upgrade pip
	$(RELEASE)/bin/python -m pip install --quiet 'build>=1.2' 'twine>=6' 'pip-audit>=2.8' 'cyclonedx-bom>=5'
	touch $@

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

# Benchmarks have an environment of their own, with the peers. Image sets are looked for in
# $ADMM_SOFTMAX_DATA (see benchmarks/datasets); without it they are left out.
BENCH := .venv-bench
BENCHOPT := $(BENCH)/bin/benchopt run benchmarks --no-cache --no-plot --no-display -r 1
ifdef ADMM_SOFTMAX_DATA
SMALL_IMAGES := -d "images[set=mnist,features=pixels,n_rows=20000]"
IMAGES := -d "images[set=mnist]"
endif

# All solvers run in the first round. In the others those that may be the fastest do, so that
# ours and the peers take turns; summarize.py takes the medians, and warns of a peer that is missing.
CONTENDERS := -s "admm-softmax[solver=auto]" -s "scikit-learn[solver=[lbfgs,newton-cg,saga]]" \
	-s scikit-learn-intelex -s "torch LBFGS" -s cyanure
SMALL := -d "simulated[shape=[small-linear-probe,small-tall,small-wide,small-sparse]]" \
	-d "embedding[shape=[small-embedding-50,small-embedding-300]]" \
	-d "text[shape=small-text]" $(SMALL_IMAGES)
FULL := -d "simulated[shape=[linear-probe,tall,wide,sparse]]" \
	-d "embedding[shape=[embedding-50,embedding-100,embedding-1000]]" \
	-d "text[shape=text]" $(IMAGES)
SECONDS_EACH ?= 4
OUTPUTS := benchmarks/outputs
SUMMARIZE := $(BENCH)/bin/python benchmarks/summarize.py --readme --rows 10

bench: $(BENCH)/.installed ## about 25 minutes: small shapes, all solvers
	rm -f $(OUTPUTS)/bench-*.parquet  # benchopt would write beside them, under another name
	$(BENCHOPT) -n 400 --timeout $(SECONDS_EACH)s --output $(OUTPUTS)/bench-1.parquet $(SMALL)
	$(BENCHOPT) -n 400 --timeout $(SECONDS_EACH)s --output $(OUTPUTS)/bench-2.parquet $(SMALL) $(CONTENDERS)
	$(BENCHOPT) -n 400 --timeout $(SECONDS_EACH)s --output $(OUTPUTS)/bench-3.parquet $(SMALL) $(CONTENDERS)
	$(SUMMARIZE) $(OUTPUTS)/bench-1.parquet $(OUTPUTS)/bench-2.parquet $(OUTPUTS)/bench-3.parquet

bench-full: $(BENCH)/.installed ## every shape, up to four minutes per solver: several hours
	rm -f $(OUTPUTS)/full*.parquet
	$(BENCHOPT) -n 1000 --timeout 240s --output $(OUTPUTS)/full.parquet $(FULL)
	$(SUMMARIZE) $(OUTPUTS)/full.parquet

bench-kernels: $(BENCH)/.installed ## passes, Gram matrix, ADMM iteration and z-step against NumPy
	$(BENCH)/bin/python benchmarks/kernels.py

$(BENCH)/.installed: pyproject.toml
	test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --upgrade pip
	$(BENCH)/bin/python -m pip install --quiet torch==2.13.0
	$(BENCH)/bin/python -m pip install --quiet --editable '.[bench]'
	touch $@

clean: ## remove environments and caches
	rm -rf $(VENV) .venv-oldest .venv-newest $(TORCH) $(BENCH) $(RELEASE) $(DOCS) docs/_build docs/api docs/gallery dist .coverage* demo-output benchmarks/outputs .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
