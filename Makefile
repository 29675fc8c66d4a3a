# make train   FedSiKD on real handwritten digits, a minute or two on 2 cores; flags go into ARGS, as in
#              make train ARGS="--rounds=5 --seed=1"
# make test    lint, format check and tests, a process a core (ARGS="-n 0" for one); make test-slow for the longer ones
# make test-tff   the tests of TFF's own worker, and those of rounds again, which it runs here
# make setup-tff  TFF's worker, for --runtime=tff: 72 MB to download, 301 MB on disk
# make test-litert   exports a run and checks the files with LiteRT, in .venv-litert, then those of all kinds of models
#              (ARGS="--only=char_lstm,attention" for some of these alone); RUN_DIR=<folder> checks that run alone
# make web     what --web_page of launch.export packs into a page, by npm into .web; nothing else needs npm
# make test-web    exports runs with their pages and drives these in Chromium, in .web-test; RUN_DIR=<folder> names one
# make test-ray   --runtime=ray on clusters of this machine, in .venv-ray; 10 to 30 minutes
# make docs    builds the site of docs/ into build/docs, in .venv-docs; a minute at first
# make setup-track   MLflow and W&B in .venv-track, for --track and launch.track; make test-track sends runs to both
# make test-tune  searches of launch.tune with Optuna, in .venv-tune; a minute or two
# make test-types   checks the types with mypy, in .venv-types: no error in what authors import, numbers for the rest
# make test-kotlin   compiles the Kotlin of docs/android.md and examples/android, in .venv-kotlin; needs Java
# make test-same-bytes REVISION=HEAD~1   runs small settings of every algorithm at that revision and here, and compares
#              the bytes of their tables; 20 to 30 minutes (ARGS="--only=fedcd*" for some). Where the packages differ, too,
#              ARGS="--before_environment=<other checkout>/.venv" runs that revision by an environment of its own
# make setup-pfl  pfl-research on PyTorch, a peer of launch.benchmark, in .venv-pfl
# make bench-gpu  launch.benchmark --device=gpu: a round on an NVIDIA GPU, beside the host's cores and pfl-research
#              (ARGS="--smoke" for a miniature on the CPU)
# All of them set up .venv first if need be. PYTHON=<path> names the Python 3.11 to make it with; where there is none,
# uv gets one.

ARGS =
PYTHON =
REVISION = HEAD
RUN_DIR ?=
RUN = .venv/bin/python -m
# A process a core takes a file at a time, so that what a file's tests share is made once. At most 4: each takes 2 GB.
SIDE_BY_SIDE = -n logical --maxprocesses=4 --dist loadfile

.PHONY: train test test-slow test-tff test-litert test-ray test-tune test-kotlin test-track test-types test-web \
    test-same-bytes bench-gpu docs web setup setup-pfl setup-tff setup-track lock clean

train: setup
	@$(RUN) launch.train --algo=fedsikd $(ARGS)

test: setup
	@$(RUN) ruff check .
	@$(RUN) ruff format --check .
	@$(RUN) pytest -m "not slow and not tff" $(SIDE_BY_SIDE) $(ARGS)

test-slow: setup-tff
	@$(RUN) pytest --worker -m slow $(ARGS)

test-tff: setup-tff
	@$(RUN) pytest --worker -m "tff and not slow" $(SIDE_BY_SIDE) $(ARGS)

test-litert: setup
	@sh ./tests/litert/check.sh "$(RUN_DIR)" $(ARGS)

test-ray: setup
	@sh ./tests/ray/check.sh $(ARGS)

test-track: setup setup-track
	@sh ./tests/track/check.sh $(ARGS)

test-tune: setup
	@sh ./tests/tune/check.sh $(ARGS)

test-types: setup
	@sh ./tests/types/check.sh

test-kotlin: setup
	@sh ./tests/kotlin/check.sh

test-web: setup web
	@sh ./tests/web/check.sh "$(RUN_DIR)"

test-same-bytes: setup
	@.venv/bin/python tests/same_bytes/compare_revisions.py --revision=$(REVISION) $(ARGS)

bench-gpu: setup
	@$(RUN) launch.benchmark --device=gpu $(ARGS)

docs: setup
	@sh ./docs/site/build.sh $(ARGS)

web:
	@sh ./launch/tflite/web/set_up.sh

setup-pfl: setup
	@sh ./launch/benchmarks/setup_pfl.sh

setup-track: setup
	@target=setup-track environment=.venv-track lock=requirements-track.lock disk="1 GB"; . ./extra_environment.sh; set_up

setup-tff: setup
	@sh ./launch/runtimes/setup_tff.sh

setup:
	@PYTHON="$(PYTHON)" sh ./setup.sh

# Resolves setup.py anew into requirements.lock, the same with CUDA into requirements-gpu.lock, the same versions for other
# platforms into locks of theirs (named one by one, since uv takes no TFF there), TFF's wheel by itself, and likewise the
# runtime of test-litert, the compiler of test-kotlin, Ray, Optuna and the site's builder, each on top of
# requirements.lock, the peer of setup-pfl, the trackers of setup-track, the uv of set-up and the completion of the
# shell. Needs a network.
lock:
	@set -e; tools=$$(mktemp -d); trap 'rm -rf "$$tools"' EXIT; \
	$(or $(PYTHON),python3) -m venv "$$tools"; \
	"$$tools/bin/python" -m pip install --quiet uv; \
	compile="$$tools/bin/uv pip compile --quiet --generate-hashes --python-version 3.11 --no-emit-index-url --no-header"; \
	here="$$compile --python-platform x86_64-manylinux_2_31"; \
	ours="--override overrides.txt --no-emit-package tensorflow-federated --extra dev"; \
	$$here $$ours --no-emit-package tensorflow --output-file requirements.lock setup.py; \
	$$here $$ours --no-emit-package tensorflow-cpu --constraint requirements.lock --extra gpu \
	    --output-file requirements-gpu.lock setup.py; \
	grep -o '^[a-z][^ ]*==[^ ]*' requirements.lock | sed 's/^tensorflow-cpu=/tensorflow=/' >"$$tools/same.in"; \
	elsewhere="$$compile --override overrides.txt --no-annotate"; \
	$$elsewhere --python-platform aarch64-manylinux_2_31 --output-file requirements-linux-aarch64.lock "$$tools/same.in"; \
	$$elsewhere --python-platform aarch64-apple-darwin --output-file requirements-macos-arm64.lock "$$tools/same.in"; \
	for name in completion docs litert pfl ray track tune types uv; do $$here --output-file requirements-$$name.lock requirements-$$name.in; done; \
	for name in kotlin tff; do $$here --no-deps --output-file requirements-$$name.lock requirements-$$name.in; done

# What can be made again in seconds; .venv and those beside it and runs/ stay.
clean:
	@rm -rf build .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -path './.venv*' -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
