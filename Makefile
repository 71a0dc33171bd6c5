# Everything here sets up what it needs. `make help` lists the targets.
PYTHON ?=
export PYTHON
RUN = .venv/bin/python -m

.DEFAULT_GOAL := help
.PHONY: help setup try clean-try test test-thorough check test-versions prove locks drift bench-ssm fuzz report

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

test: ## Run the tests, container included
	@sh tests/container/setup.sh python engine
	@sh tests/run.sh

test-thorough: ## Run every case on the container, the long ones too
	@sh tests/container/setup.sh python engine
	@$(RUN) pytest -m 'not versions' tests/container

check: setup ## Lint, types, templates, units and knobs: what CI checks before the tests
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy .
	@$(RUN) pytest -q tests/check

test-versions: setup ## Test patches, locks and proof on every supported version
	@$(RUN) pytest -m versions tests/versions tests/sm75

prove: setup ## Compile vLLM's attention for 7.5 with no GPU, stock and patched
	@$(RUN) upkeep.prove $(or $(VERSIONS),0.28.0 0.32.0 0.33.0)

locks: setup ## Resolve files/locks/ anew from the released sources
	@$(RUN) upkeep.locks $(VERSIONS)

drift: setup ## Say what has drifted on the hosts, and why: exit status 0, 2 drift, 1 error
	@$(RUN) drift $(or $(INVENTORY),inventory.py)

bench-ssm: setup ## Measure the SSM connector, one line a target
	@$(RUN) benchmarks.ssm

fuzz: setup ## Fuzz the decoders of the SSM connector for a minute
	.venv/bin/pip install --quiet atheris
	@$(RUN) tests.ssm.fuzz -max_total_time=60

report: setup ## Write the page of every kept benchmark run, and compare them
	@$(RUN) report page reports/*.json
	@$(RUN) report compare reports/*.json
