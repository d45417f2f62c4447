# Two commands matter: `make run` and `make test`. Both work from a bare clone and do their set-up
# only where something has changed. MIRA_* in the environment reaches the program as it is.

PYTHON ?= python3
BIN    := .venv/bin
ARGS   ?=

.PHONY: run test check bench lock clean

run:                       # everything set up and started; serves on 127.0.0.1:1993
	@$(PYTHON) scripts/setup.py
	@exec $(BIN)/mira serve $(ARGS)

test:                      # all gates, then all tests; stops at the first that fails
	@$(PYTHON) scripts/setup.py --dev --browser
	$(gates)
	@echo "== tests"
	@$(BIN)/pytest --numprocesses 2 --dist loadfile $(ARGS)

check:                     # the gates alone: lint, format, types, import contracts, dependencies
	@$(PYTHON) scripts/setup.py --dev
	$(gates)

bench:                     # both benchmarks; tables here, JSON and plots in .cache/bench
	@$(PYTHON) scripts/setup.py --dev
	@mkdir -p .cache/bench
	@$(BIN)/mira bench engine --json .cache/bench/engine.json
	@$(BIN)/mira bench turn --json .cache/bench/turn.json

lock:                      # write the locks anew from pyproject.toml (ARGS=--upgrade: newest pins)
	@$(PYTHON) scripts/lock.py $(ARGS)

clean:                     # remove what set-up and checks have made; MIRA_HOME is not touched
	rm -rf .venv .venv.lock .cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf build dist ./*.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

define gates
@echo "== lint";           $(BIN)/ruff check --quiet .
@echo "== format";         $(BIN)/ruff format --check --quiet .
@echo "== types";          $(BIN)/mypy --no-error-summary
@echo "== contracts";      $(BIN)/lint-imports
@echo "== dependencies";   $(BIN)/deptry --no-ansi .
endef
