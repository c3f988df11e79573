# Every target sets up what it needs: only Python 3.11+ and make are asked of the machine.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test test-all check reference docs bench bench-large lock sbom clean help

demo: $(READY)  ## the main job: three organisations, one model of real flight delays
	$(BIN)/colonnade demo

test: $(READY)  ## the tests, with a sample of the slow ones; those of the docs are in check
	$(BIN)/pytest --ignore=tests/docs

test-all: $(READY)  ## the tests, with all of the slow ones
	$(BIN)/pytest --slow=all

check: $(READY)  ## lint, format, types, layers, docs snippets, the documentation site
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q tests/docs
	$(MAKE) docs

reference: $(READY)  ## write the reference pages that are made of the code
	$(BIN)/python scripts/reference.py

docs: $(READY)  ## build the documentation site into docs/_build
	$(BIN)/sphinx-build --fail-on-warning --keep-going --fresh-env --quiet docs docs/_build

bench: $(READY)  ## what verbs cost beside their arithmetic, files beside reading them, and how all grows
	$(BIN)/python benchmarks/scale.py

bench-large: $(READY)  ## the same with tables of up to 1e8 rows and 100 parties; takes hours
	$(BIN)/python benchmarks/scale.py --large

LOCK := uv pip compile pyproject.toml --universal --python-version 3.11 \
	--no-emit-index-url --generate-hashes --no-header --no-annotate
lock: $(READY)  ## refresh requirements.lock, and requirements-runtime.lock with the same versions (needs uv)
	$(LOCK) --all-extras --group dev --upgrade -o requirements.lock
	$(LOCK) --extra grpc --extra align --constraint requirements.lock -o requirements-runtime.lock

sbom: $(READY)  ## list what a server or a party runs on, as CycloneDX, in sbom.json
	$(BIN)/python scripts/sbom.py requirements-runtime.lock > sbom.json

clean:  ## remove what the targets built
	rm -rf .venv demo-output bench-output docs/_build sbom.json

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Colonnade needs Python 3.11 or newer; set PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --require-hashes --requirement requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	touch $(READY)
