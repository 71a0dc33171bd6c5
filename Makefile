# Everything here sets up what it needs. `make help` lists the targets.
PYTHON ?=
export PYTHON
RUN = .venv/bin/python -m

.DEFAULT_GOAL := help
.PHONY: help setup try clean-try test check

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | \
	    while IFS='|' read -r target what; do printf '  make %-14s %s\n' "$$target" "$$what"; done

setup: ## Make .venv from requirements.lock
	@sh tests/container/setup.sh python

try: ## Converge a container on this machine, twice, and ask the served model a question
	@sh tests/container/setup.sh python engine
	@$(RUN) tests.container.rehearsal $(if $(PORT),--port $(PORT))

clean-try: ## Remove what `make try` left: its container and .try
	@$(RUN) tests.container.rehearsal --remove

test: ## Run every test
	@sh tests/container/setup.sh python engine
	@$(RUN) pytest

check: setup ## Lint, types, templates, units and knobs: what CI checks before the tests
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy .
	@$(RUN) pytest -q tests/check
