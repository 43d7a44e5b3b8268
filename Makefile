# Two commands: `make demo` trains on the embedded data set, `make test` checks everything that must hold.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt README.md $(shell find core src -type f -not -name '*.pyc' -not -name '*.so' -not -name '_core.pyi')
BUILD_TOOLS := scikit-build-core nanobind cmake ninja
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
INSTALL := $(PIP) --no-build-isolation $(PIP_FLAGS)

.PHONY: demo test lint gpu-test nightly lowest hostile benchmark asan tsan clang aarch64 release-check clean help

help: ## show this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

demo: $(VENV)/.installed ## install into .venv, train LaRank on LETTER, write demo/model.larank and demo/report.html
	$(BIN)/larank demo --output demo

test: lint ## install, then lint, types, layers and tests
	OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

lint: $(VENV)/.tested ## the checks of `make test` that run no code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror $(shell find core tests -name "*.?pp")

gpu-test: ## the tests of block steps, on whatever device and array libraries PYTHON has; installs nothing
	$(PYTHON) -m pytest -p no:cacheprovider tests/kernel/test_blockwise.py

# The suite with more and random examples, in random order, with the rivals, the newest scikit-learn and two BLAS threads.
nightly: $(VENV)/.nightly ## everything that takes too long for `make test`: random order, hostile files, studies of limits
	rm -rf build/wheels && $(BIN)/pip wheel --quiet --no-deps --no-build-isolation -w build/wheels .
	LARANK_WHEELS=build/wheels LARANK_WHOLE_STUDIES=1 OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=2 $(BIN)/python -m pytest -p randomly --hypothesis-profile=nightly -n auto --dist worksteal
	OMP_WAIT_POLICY=passive $(BIN)/python -m studies agreement
	$(BIN)/python -m tools.hostile --seconds 600
	$(BIN)/python -m tools.mutants
	for study in timelimits memorylimits faults; do OMP_WAIT_POLICY=passive $(BIN)/python -m studies $$study || exit 1; done
	$(MAKE) lowest

# scikit-learn's own tests differ from release to release; the gate runs those of the pinned one.
lowest: ## the tests with the oldest release of every dependency that pyproject.toml admits, in .venv-lowest
	$(MAKE) VENV=.venv-lowest .venv-lowest/.lowest
	OMP_WAIT_POLICY=passive OPENBLAS_NUM_THREADS=1 .venv-lowest/bin/python -m pytest -p no:cacheprovider -n auto --dist worksteal \
	  --ignore tests/kernel/test_sklearn_svm.py --ignore tests/test_check_estimator.py

SECONDS ?= 60
hostile: $(VENV)/.tested ## damaged files, extreme numbers and limits, for SECONDS; what fails leaves a reproducer in build/hostile
	$(BIN)/python -m tools.hostile --seconds $(SECONDS)

benchmark: $(VENV)/.benchmarked ## the comparisons with other libraries: linear, primal, sgd, kernel, binary and sequence (slow)
	for study in linear primal-rivals sgd kernel binary sequence; do OMP_WAIT_POLICY=passive $(BIN)/python -m studies $$study || exit 1; done

asan: ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer, in .venv-asan
	$(MAKE) VENV=.venv-asan PIP_FLAGS="-Ccmake.define.LARANK_SANITIZE=address,undefined" .venv-asan/.tested
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" ASAN_OPTIONS=detect_leaks=0 \
	  .venv-asan/bin/python -m pytest -p no:cacheprovider -n auto --dist worksteal

tsan: $(VENV)/.tools ## what threads do in the core, without Python, under ThreadSanitizer
	$(BIN)/cmake -S . -B build/tsan -G Ninja -DCMAKE_MAKE_PROGRAM=$(CURDIR)/$(BIN)/ninja -DPython_EXECUTABLE=$(CURDIR)/$(BIN)/python \
	  -DLARANK_SANITIZE=thread -DLARANK_WERROR=ON
	$(BIN)/cmake --build build/tsan --target core_threads
	setarch -R build/tsan/core_threads

clang: ## the tests of a core built by Clang, in .venv-clang
	CXX=clang++ $(MAKE) VENV=.venv-clang .venv-clang/.tested
	.venv-clang/bin/python -m pytest -p no:cacheprovider -n auto --dist worksteal

aarch64: $(VENV)/.tested ## the tests of the core, cross-compiled, on an emulated aarch64 (g++-aarch64-linux-gnu, qemu-user)
	tests/aarch64.sh $(BIN)/python

release-check: test asan tsan clang aarch64 ## everything slow that must hold before a release; hours
	$(MAKE) hostile SECONDS=3600

clean: ## remove the environment and everything built
	rm -rf .venv .venv-asan .venv-clang .venv-lowest build demo .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/bin/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "larank needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Set PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.tools: $(VENV)/bin/pip
	$(PIP) $(BUILD_TOOLS)
	@touch $@

$(VENV)/.installed: $(VENV)/.tools $(SOURCES)
	$(INSTALL) ".[plot]"
	@rm -f $(VENV)/.tested
	@touch $@

$(VENV)/.tested: $(VENV)/.tools $(SOURCES)
	$(INSTALL) -Cbuild-dir=build/$(VENV) -Ccmake.define.LARANK_WERROR=ON -Ccmake.define.LARANK_TEST_HOOKS=ON --editable ".[test]"
	@touch $@

$(VENV)/.nightly: $(VENV)/.tested $(VENV)/.benchmarked
	$(INSTALL) -Cbuild-dir=build/$(VENV) -Ccmake.define.LARANK_WERROR=ON -Ccmake.define.LARANK_TEST_HOOKS=ON --editable ".[test]"
	$(PIP) pytest-randomly
	$(PIP) --upgrade scikit-learn
	@rm -f $(VENV)/.tested
	@touch $@

$(VENV)/.lowest: $(VENV)/.tools $(SOURCES) tools/lowest.py
	$(BIN)/python -m tools.lowest > $(VENV)/lowest.txt
	$(INSTALL) -Cbuild-dir=build/$(VENV) -Ccmake.define.LARANK_TEST_HOOKS=ON -c $(VENV)/lowest.txt --editable ".[dask,plot,tables]" \
	  array-api-strict hypothesis pandas pytest pytest-timeout pytest-xdist
	@touch $@

# Without build isolation, rivals that come as source need the tools they would have fetched themselves.
$(VENV)/.benchmarked: $(VENV)/.installed
	$(PIP) setuptools wheel
	$(INSTALL) ".[benchmark]"
	@touch $@
