# run       install into .venv and start: on this node's devices, or a simulated node
# test      all checks and tests, against the built wheel; ARGS="tests/x -k y" for some
# lint      the static checks alone
# bench     the measurements behind docs/benchmarks.md
# bench-detect  how well faults are detected, for docs/benchmarks.md; ARGS="--quick"
# soak      an hour of a real agent, then hours of simulated storm: does it grow?
# campaign  every fault against a real agent, as a table; ARGS="--mutate 10 --seed 1"
# generate  rewrite the committed files that are made from tables in the package
# package   wheel, source archive and .deb, in build/dist
# release   packages, audited, with bills of materials and checksums, in build/dist
# lock      choose anew the versions that packages and the image carry
# dev       make .venv complete for development, with the working tree installed
# clean     remove everything that the other targets made

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

BIN := build/venv/bin
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
# The tests of servers wait more than they compute: where processors are few, there is
# one process more than those. Each has to collect the tests, so that many cost more.
WORKERS ?= $(shell n=$$(nproc); echo $$((n < 4 ? n + 1 : n)))
ARGS ?=

# As of when packages are built, so that everyone builds the same bytes.
EPOCH = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null \
  || stat -c %Y pyproject.toml))
# Python files that rewrite committed files; tests prove those files fresh.
GENERATORS := fabricmon/documentation.py fabricmon/fleet/documents.py tools/demo_trace.py dashboards/build.py \
  tools/chart.py
# Python files that measure; each prints its result, and the last one writes all bars
# to docs/benchmarks.md. Those that take hours are called by themselves.
BENCHMARKS := $(sort $(filter-out bench/bench_bars.py bench/bench_detect.py \
  bench/bench_healthy.py bench/bench_soak.py, $(wildcard bench/bench_*.py))) \
  bench/bench_bars.py

.PHONY: help run test lint bench bench-detect soak campaign generate package release \
  lock dev clean programs FORCE

help:
	@sed -n 's/^# \([a-z-]*  .*\)/\1/p' Makefile

run: .venv/.installed
	@exec .venv/bin/fabricmon run --or-demo $(ARGS)

# Some tests or all: a developer who names tests wants these alone, and soon. The
# static checks run meanwhile, and what they say comes last. Real servers and bars of
# seconds share few processors: a test that fails beside others is run once more alone,
# which is said, and decides.
test: programs build/wheel.stamp
	@status=0 lint=; \
	if [[ -z "$(ARGS)" ]]; then $(MAKE) lint >build/lint.log 2>&1 & lint=$$!; fi; \
	TESTS_NEED_WHEEL=1 $(BIN)/pytest -n $(WORKERS) --dist worksteal $(ARGS) \
	  || status=$$?; \
	if ((status == 1)) && [[ -n $$lint ]]; then \
	  echo "FAILED BESIDE OTHERS (see above): ONCE MORE, ALONE" >&2; \
	  TESTS_NEED_WHEEL=1 $(BIN)/pytest -x --last-failed \
	    --last-failed-no-failures none && status=0; \
	fi; \
	if [[ -n $$lint ]]; then \
	  wait $$lint || { status=1; echo "LINT FAILED (see below)" >&2; }; \
	  cat build/lint.log; \
	fi; \
	exit $$status

# All checks, also after one has failed: one run tells everything.
lint: build/venv.stamp
	@status=0; \
	for check in "ruff check --quiet ." "ruff format --check --quiet ." mypy \
	  lint-imports "deptry fabricmon" codespell; do \
	  echo "== $$check"; $(BIN)/$$check || status=1; \
	done; exit $$status

bench: programs build/wheel.stamp
	@status=0; \
	for file in $(BENCHMARKS); do \
	  echo "== $$file"; $(BIN)/python "$$file" || status=1; \
	done; exit $$status

bench-detect: .venv/.dev
	@.venv/bin/python $(PIP_INSTALL) --group bench
	@.venv/bin/python bench/bench_detect.py --out docs/benchmarks.md $(ARGS)

soak: programs build/wheel.stamp
	@$(BIN)/python bench/bench_soak.py

campaign: programs .venv/.dev
	@.venv/bin/python -m tests.campaign $(ARGS)

generate: .venv/.dev
	@for file in $(GENERATORS); do echo "== $$file"; .venv/bin/python "$$file"; done

package: programs build/wheel.stamp
	@SOURCE_DATE_EPOCH=$(EPOCH) $(BIN)/hatchling build -t sdist -d build/dist >/dev/null
	@$(BIN)/twine check --strict build/dist/*.whl build/dist/*.tar.gz
	@SOURCE_DATE_EPOCH=$(EPOCH) $(BIN)/python -m tools.package deb \
	  --wheel build/dist/*.whl --out build/dist $(ARGS)

# Fails where a dependency has a known hole, or where nobody can be asked.
release: package
	@rm -f build/dist/*.cdx.json build/dist/SHA256SUMS
	@SOURCE_DATE_EPOCH=$(EPOCH) $(BIN)/python -m tools.release --dist build/dist

# The index of a site is nobody else's business.
lock: build/venv.stamp
	@PIP_CONFIG_FILE=/dev/null $(BIN)/pip-compile --quiet --upgrade --generate-hashes \
	  --strip-extras --no-header --no-annotate --no-emit-index-url \
	  --no-emit-find-links --no-emit-trusted-host \
	  --extra kubernetes --output-file deploy/container/requirements.lock pyproject.toml

dev: .venv/.dev

clean:
	rm -rf .venv build .coverage* htmlcov .hypothesis .*_cache
	find fabricmon tests -name __pycache__ -type d -prune -exec rm -rf {} +

programs:
	@tests/setup/install.sh

.venv/.installed: pyproject.toml fabricmon/__init__.py
	@echo "installing fabricmon into .venv"
	@tests/setup/venv.sh .venv
	@.venv/bin/python $(PIP_INSTALL) --editable .
	@touch $@

.venv/.dev: .venv/.installed
	@echo "installing the tools of development into .venv"
	@.venv/bin/python $(PIP_INSTALL) --group dev --group charts --group release
	@.venv/bin/python $(PIP_INSTALL) --group chart \
	  || echo "MISSING the group chart: the chart and its sink cannot be tested" >&2
	@touch $@

build/venv.stamp: pyproject.toml tests/setup/venv.sh | programs
	@echo "installing the test environment into build/venv"
	@tests/setup/venv.sh build/venv
	@build/venv/bin/python $(PIP_INSTALL) --group test --group lint --group charts \
	  --group release
	@build/venv/bin/python $(PIP_INSTALL) --group chart \
	  || echo "MISSING the group chart: the chart and its sink are not tested" >&2
	@touch $@

# The list of files is a prerequisite of its own, because a deleted file has no time.
build/sources: FORCE
	@mkdir -p build
	@find fabricmon -type f -not -name '*.pyc' | sort >$@.new
	@cmp --silent $@.new $@ && rm $@.new || mv $@.new $@

build/wheel.stamp: build/venv.stamp build/sources pyproject.toml README.md LICENSE \
  $(shell find fabricmon -type f -not -name '*.pyc')
	@rm -rf build/dist
	@touch $@.new # what changes from here on is newer
	@SOURCE_DATE_EPOCH=$(EPOCH) $(BIN)/hatchling build -t wheel -d build/dist >/dev/null
	@$(BIN)/python -m pip uninstall --quiet --yes fabricmon 2>/dev/null
	@$(BIN)/python $(PIP_INSTALL) build/dist/*.whl
	@mv $@.new $@
