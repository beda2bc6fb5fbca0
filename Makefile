# Everything here needs Python 3.11 or newer, and make. The environment is made on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo reproduce test lint types imports unit bench bench-full bench-kernels clean

demo: $(STAMP) ## train on digits, compare with scikit-learn, write plots and a report
	$(BIN)/admm-softmax demo --out demo-output

reproduce: $(STAMP) ## the paper's experiments: about three hours; BUDGET=60 SEEDS=1 for a quick look (CIFAR-10: 100)
	$(BIN)/python -c 'import torch' 2>/dev/null || $(BIN)/python -m pip install --quiet torch==2.13.0
	$(BIN)/admm-softmax reproduce all --authors-split --budget $(or $(BUDGET),300) --seeds $(or $(SEEDS),3)

test: lint types imports unit ## everything that CI checks

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports

unit: $(STAMP)
	$(BIN)/pytest -n 2 -q

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

bench: $(BENCH)/.installed ## at most a quarter of an hour: small shapes, all solvers
	$(BENCHOPT) -n 400 --timeout 8s --output benchmarks/outputs/bench.parquet \
		-d "simulated[shape=[small-linear-probe,small-tall,small-wide,small-sparse]]" \
		$(SMALL_IMAGES)
	$(BENCH)/bin/python benchmarks/summarize.py benchmarks/outputs/bench.parquet --readme

bench-full: $(BENCH)/.installed ## every shape, up to four minutes a solver: several hours
	$(BENCHOPT) -n 1000 --timeout 240s --output benchmarks/outputs/full.parquet \
		-d "simulated[shape=[linear-probe,tall,wide,sparse]]" \
		$(IMAGES)
	$(BENCH)/bin/python benchmarks/summarize.py benchmarks/outputs/full.parquet --readme

bench-kernels: $(BENCH)/.installed ## passes, Gram matrix, ADMM iteration and z-step against NumPy
	$(BENCH)/bin/python benchmarks/kernels.py

$(BENCH)/.installed: pyproject.toml
	test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --upgrade pip
	$(BENCH)/bin/python -m pip install --quiet torch==2.13.0
	$(BENCH)/bin/python -m pip install --quiet --editable '.[bench]'
	touch $@

clean:
	rm -rf $(VENV) $(BENCH) demo-output benchmarks/outputs .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
