# Every target sets itself up; `make` alone lists them.
VENV := .venv
BIN := $(VENV)/bin
BASE := $(VENV)/.base
READY := $(VENV)/.ready
PEERS := .venv-peers
PEERS_READY := $(PEERS)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup run test watch mutants wheel soak lint lint-c fuzz docs reference bench peers clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-9s %s\n", $$1, $$2}' Makefile

setup: $(READY) ## make .venv and install everything into it: all extras and the tools, 2 GB

# The first Python of at least 3.11 that really starts (a shim on the path may name one that does not).
$(BIN)/python:
	@python=; for candidate in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
	  if "$$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then python=$$candidate; break; fi; \
	done; \
	if [ -z "$$python" ]; then echo "Sanderling needs Python 3.11 or newer with venv; none of python3, python3.11 … python3.14 is one. Install it, or say PYTHON=/path/to/python." >&2; exit 1; fi; \
	"$$python" -m venv $(VENV)

INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable
INSTALLED = pyproject.toml constraints.txt setup.py $(shell find src -name '*.[ch]')

# What an installation without extras has, 120 MB: all that `make run` needs. The other is this one and more.
$(BASE): $(INSTALLED) | $(BIN)/python
	$(INSTALL) .
	@touch $@

$(READY): $(INSTALLED) | $(BIN)/python
	$(INSTALL) '.[dev]'
	@touch $(BASE) $@

run: $(BASE) ## watch all five systems at work on simulated hosts, here and in a browser
	@$(BIN)/sanderling demo house

# More workers than cores, since tests wait: for processes, services and clocks. In the order of the folders: those that
# start processes come early, and not all at the end. Bytecode is kept whatever the environment says, for hundreds of
# processes are started; the first pytest compiles the tests, once for all workers.
test: export PYTHONDONTWRITEBYTECODE =
test: $(READY) ## run every test; says which suites it skipped and why
	@$(BIN)/python -m pytest --collect-only -qq >/dev/null || true
	$(BIN)/python -m pytest -n 8 --dist loadfile --no-loadscope-reorder

watch: $(READY) ## run the tests of what changes, as it changes, those that failed last first
	@$(BIN)/python tools/watch.py

NUMBER = 60
SEED = 1

mutants: $(READY) ## break what writes by NUMBER=60 small faults, drawn by SEED=1, and see which no test notices
	@$(BIN)/python tools/mutants.py --number $(NUMBER) --seed $(SEED) --json build/mutants.json

wheel: $(READY) ## install the wheel on every Python there is, without a compiler, and with each extra alone
	SANDERLING_WHEEL=1 $(BIN)/python -m pytest -n 2 tests/deploy/test_packaging.py tests/deploy/test_wheel_matrix.py

soak: $(READY) ## kill crawls and consumers twenty times, ten minutes for each store; then break parts and fleets in every way, three hours
	SANDERLING_SOAK=1 $(BIN)/python -m pytest --timeout 3600 tests/repos/test_kill_repos.py tests/cli/events/test_events_kills.py
	SANDERLING_SOAK=1 $(BIN)/python -m pytest -n 2 $$(grep -rl 'import seeds' tests)
	SANDERLING_SOAK=1 $(BIN)/python -m pytest tests/fleet

lint: $(READY) lint-c ## ruff and mypy, and lint-c
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# All the C there is: a new file is taken along. gcc follows the paths through each function; clang has no such flag.
C_FILES = $(shell find src fuzz -name '*.c' | LC_ALL=C sort)
ANALYZER = $(shell $(CC) -fanalyzer -fsyntax-only -x c /dev/null 2>/dev/null && echo -fanalyzer)
WARNINGS = -std=c11 -O2 $(ANALYZER) -Wall -Wextra -Wshadow -Wconversion -Werror

lint-c: $(READY) ## compile all C with every warning an error, and let gcc analyse it
	@command -v $(CC) >/dev/null || { echo 'No C compiler: the C was not looked at.'; exit 0; }; \
	include=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))'); \
	for file in $(C_FILES); do \
	  echo "$$file" && $(CC) $(WARNINGS) -isystem "$$include" -c "$$file" -o /dev/null || exit 1; \
	done

TARGET = parser complexity reader repo scan
SECONDS = 600
SHARE = $(shell expr $(SECONDS) / $(words $(TARGET)))

fuzz: $(addprefix fuzz-,$(TARGET)) ## look for input that breaks the C, for SECONDS=600; TARGET='parser complexity reader repo scan'

# The C of the parser that knows nothing of Python, by itself: fifteen times as many inputs as with Python around it.
PARSER = $(filter-out %/_repo.c,$(wildcard src/sanderling/formats/_repo*.c))
SANITIZE = -std=c11 -g -O1 -DREPO_FUZZ -fno-sanitize-recover=all

.PHONY: fuzz-parser fuzz-complexity fuzz-reader fuzz-repo fuzz-scan
fuzz-parser: $(READY)
	@mkdir -p build/fuzz/new
	@$(BIN)/python fuzz/corpus.py build/fuzz/corpus
	@if clang $(SANITIZE) -fsanitize=fuzzer,address,undefined fuzz/fuzz_repo.c $(PARSER) -o build/fuzz/guided 2>/dev/null; \
	then build/fuzz/guided -max_total_time=$(SHARE) -max_len=40000 -timeout=20 -artifact_prefix=build/fuzz/ build/fuzz/new build/fuzz/corpus; \
	else echo 'No clang with libFuzzer: changes are made blindly, by fuzz/driver.c.'; \
	  $(CC) $(SANITIZE) -fsanitize=address,undefined fuzz/*.c $(PARSER) -o build/fuzz/driver && cd build/fuzz && ./driver corpus $(SHARE); \
	fi

# The modules as Python has them, against their twins.
fuzz-complexity fuzz-reader fuzz-repo fuzz-scan: fuzz-%: $(READY)
	@mkdir -p build/fuzz
	@cd build/fuzz && $(CURDIR)/$(BIN)/python $(CURDIR)/fuzz/sanitized.py . $(CURDIR)/fuzz/twins.py $* --seconds $(SHARE)

docs: $(READY) ## build the documents as a site, in build/site; a broken link fails it
	@$(BIN)/python tools/build_site.py build && echo 'build/site/index.html'

reference: $(READY) ## write docs/reference from the commands and settings
	@$(BIN)/python tools/reference.py

bench: $(READY) ## run every benchmark and print one table
	@$(BIN)/python bench/all.py

peers: $(PEERS_READY) ## install the crawlers we are measured against, apart from ours

# They call our own extract, so that every side does the same work per page: the last line is what that imports.
$(PEERS_READY): Makefile constraints.txt | $(READY)
	$(BIN)/python -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt \
	  'scrapy==2.19.*' 'crawlee[all]==1.11.*' uvloop 'atproto==0.0.73' orjson \
	  aiohttp backports.zstd brotli chardetng-py idna msgspec publicsuffixlist webencodings
	@touch $@

clean: ## remove what the other targets made
	rm -rf $(VENV) $(PEERS) sanderling-demo sanderling-demo-* build .mypy_cache .ruff_cache .pytest_cache .hypothesis
