# The chores; .ci/run calls `make test`, the same as a person does.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: run test slow lint format site clean

run: $(STAMP)  ## The main job: three methods on the default track, a table, plots and a page.
	$(BIN)/bench run --methods bct,fct,mixbct --protocol open-class

test: lint  ## Lint, types and tests.
	$(BIN)/mypy
	$(BIN)/pytest -n 2 --dist loadfile -m "not slow and not gpu"

slow: $(STAMP)  ## The tests that take minutes; run before a release.
	$(BIN)/pytest -m "slow"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

site: $(STAMP)  ## The static leaderboard of the committed records.
	$(BIN)/python -c "import leaderboard; from pathlib import Path; from benchmark.record import read_records; print(leaderboard.build(read_records(Path('results/measured')), Path('site')))"

clean:
	rm -rf $(VENV) runs site

# uv installs in seconds and takes torch and torchvision that match from the same registry.
$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "uv>=0.5"
	$(BIN)/uv pip install --quiet --python $(BIN)/python --editable ".[dev]"
	touch $(STAMP)
