# make run    the main job on a simulated rig      make test   lint, types, tests
# make setup  only the virtual environment         make lint   ruff alone
# make test-vm  under a real kernel (README.md)   make soak   ten hours of a camera with faults, in minutes
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help setup run test test-rigs test-devices test-computing test-crashes test-vm soak heap lint types clean

help:
	@sed -n '1,3s/^# //p' Makefile

# The stamp carries the hash of what was installed, so that an edit of pyproject.toml installs again.
STAMP := $(VENV)/.installed-$(shell cksum pyproject.toml | cut -d' ' -f1)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; choose one with: make PYTHON=python3.x …"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' \
	  || { echo "The venv module is missing; on Debian: sudo apt-get install python3-venv"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench,dev]'
	@rm -f $(VENV)/.installed-*
	@touch $@

setup: $(STAMP)

run: $(STAMP)
	$(BIN)/edge-daemon bench

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

# Lint, types and four parts at the same time: two that mostly wait for real rigs, boards and sockets, one that computes,
# and one that plays crashes by the thousand and steps back for the others, whose rigs work in real time.
RIGS := tests/system
DEVICES := tests/devices tests/staff tests/upstream
CRASHES := tests/bench/test_bench_crash_random.py tests/bench/test_bench_crash_suite.py tests/ledger/test_ledger_disk_cuts.py

test: $(STAMP)
	@$(MAKE) --no-print-directory --jobs=6 --output-sync=target lint types test-rigs test-devices test-computing test-crashes

test-rigs: $(STAMP)
	$(BIN)/python -m pytest $(RIGS)

test-devices: $(STAMP)
	$(BIN)/python -m pytest $(DEVICES)

test-computing: $(STAMP)
	$(BIN)/python -m pytest tests $(RIGS:%=--ignore=%) $(DEVICES:%=--ignore=%) $(CRASHES:%=--ignore=%)

test-crashes: $(STAMP)
	nice -n 15 $(BIN)/python -m pytest $(CRASHES)

# Under a real kernel, in a virtual machine: EDGE_VM names the tool that boots one (README.md).
test-vm: $(STAMP)
	$(BIN)/python tests/vm/run_in_vm.py

# Ten virtual hours of capture with every fault, then real capture processes killed over and over: memory, descriptors.
soak: $(STAMP)
	$(BIN)/python -m edge_daemon.bench.camera.soak

# 10,000 commands on each kind of board in MicroPython: free bytes of the heap before and after.
heap: $(STAMP)
	$(BIN)/python tests/firmware/compile_firmware.py build/mpy
	for kind in hand hand-scara hand-linear hand-rotary; do \
	  echo "$$kind: $$($(BIN)/micropython -X heapsize=160k tests/firmware/heap_probe.py build/mpy $$kind 10000)" || exit 1; done
	for kind in hid hid-ios; do \
	  echo "$$kind: $$($(BIN)/micropython -X heapsize=160k tests/firmware/heap_probe.py . $$kind 10000)" || exit 1; done

clean:
	rm -rf $(VENV) build out .mypy_cache .pytest_cache .ruff_cache *.egg-info
