# make train   FedSiKD on real handwritten digits, a minute or two on 2 cores; flags go into ARGS, as in
#              make train ARGS="--rounds=5 --seed=1"
# make test    lint, format check and tests; make test-slow for the longer ones
# All of them set up .venv first if need be. PYTHON=<path> names the Python 3.11 to make it with.

ARGS =
PYTHON =
RUN = .venv/bin/python -m

.PHONY: train test test-slow setup lock clean

train: setup
	@$(RUN) launch.train --algo=fedsikd $(ARGS)

test: setup
	@$(RUN) ruff check .
	@$(RUN) ruff format --check .
	@$(RUN) pytest -m "not slow" $(ARGS)

test-slow: setup
	@$(RUN) pytest -m slow $(ARGS)

setup:
	@PYTHON="$(PYTHON)" sh ./setup.sh

# Resolves setup.py anew into requirements.lock, which needs a network.
lock:
	@set -e; tools=$$(mktemp -d); trap 'rm -rf "$$tools"' EXIT; \
	$(or $(PYTHON),python3) -m venv "$$tools"; \
	"$$tools/bin/python" -m pip install --quiet uv; \
	"$$tools/bin/uv" pip compile --quiet --override overrides.txt --generate-hashes --python-version 3.11 \
	    --python-platform x86_64-manylinux_2_31 --extra dev --no-emit-index-url --no-header \
	    --output-file requirements.lock setup.py

# What can be made again in seconds; .venv and runs/ stay.
clean:
	@rm -rf build .pytest_cache .ruff_cache .hypothesis
	@find . -path ./.venv -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
