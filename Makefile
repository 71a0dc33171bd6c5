# Everything here sets up what it needs. `make help` lists the targets.
PYTHON ?=
export PYTHON
RUN = .venv/bin/python -m
# Programs that are sent to a host and run there by whatever python3 it has; data; and tests.
UNTYPED = ^(tests|group_data|files/(actions|build|facts|jobs|model|python|source))/

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

clean-try: setup ## Remove what `make try` left: its container and .try
	@$(RUN) tests.container.rehearsal --remove

test: ## Run every test
	@sh tests/container/setup.sh python engine
	@$(RUN) pytest

check: setup ## Lint, types, templates, units and knobs: what CI checks before the tests
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy --exclude '$(UNTYPED)' .
	@$(RUN) pytest -q tests/check
