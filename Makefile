# Start
#   make train          FedSiKD on real handwritten digits, a minute or two; flags go into ARGS="--rounds=5 --seed=1"
#   make serve          a live run on the digits: waits for 5 clients; open each link in a browser (for which it calls
#                       `make web` where npm is there), or give it to launch/live/join.py
#   make setup          makes .venv, which all the others do first; PYTHON=<path> names the Python 3.11 to make it with
#   make web            what --web_page of launch.export packs into a page, by npm into .web; nothing else needs npm
#   make docs           the site of docs/ in build/docs, by .venv-docs; a minute at first
# Check
#   make test           lint, format and quick tests, a process a core; ARGS="-n 0 -k cohort" for some of them in one
#   make test-slow      the longer tests, an hour or more; ARGS="-n 2 --dist loadfile" in two processes
#   make test-tff       the tests of TFF's own worker, and those of rounds again, which it runs here
#   make test-same-bytes REVISION=HEAD~1
#                       small settings of every algorithm at that revision and here have the same bytes: 20 to 30
#                       minutes; ARGS="--only=fedcd*" for some; ARGS="--before_environment=<other checkout>/.venv" runs
#                       that revision by packages of its own
#   make test-types     types by mypy, in .venv-types: no error in what authors import, numbers for the rest
#   make test-litert    exports a run and checks the files with LiteRT, in .venv-litert, then those of all kinds of
#                       models (ARGS="--only=char_lstm,attention"); RUN_DIR=<folder> checks that run alone
#   make test-live      live rounds over sockets of this machine, with clients of LiteRT in .venv-live
#   make test-flower    exports a run as a Flower app and trains it with Flower's own processes on this machine, in
#                       .venv-flower; 5 minutes
#   make test-web       exports runs with their pages, and drives these in Chromium and Firefox, in .web-test;
#                       RUN_DIR=<folder> takes that run
#   make test-tune      searches with Optuna, in .venv-tune; a minute or two
#   make test-ray       --runtime=ray on clusters of this machine, in .venv-ray; 10 to 30 minutes
#   make test-track     sends runs to MLflow and W&B
#   make test-advise    what launch.advise says where the answer is known, half an hour a problem and draw, and which
#                       goals it reaches; ARGS="two_kinds shared --minutes=5 --kills=5" for some
#   make test-kotlin    compiles the Kotlin of docs/android.md and examples/android, in .venv-kotlin; needs Java
# Extras
#   make setup-tff      TFF's worker, for --runtime=tff: 72 MB to download, 301 MB on disk
#   make setup-track    MLflow and W&B in .venv-track, for --track and launch.track
#   make setup-pfl      pfl-research on PyTorch in .venv-pfl, a peer of launch.benchmark
#   make setup-flower   Flower's simulation on PyTorch in .venv-flower-simulation, likewise
#   make bench-gpu      a round on an NVIDIA GPU, on the host's cores and of pfl-research; ARGS="--smoke" for a miniature
#   make lock           resolves the packages anew; needs a network
#   make clean          removes what can be made again in seconds

ARGS =
PYTHON =
REVISION = HEAD
RUN_DIR ?=
RUN = .venv/bin/python -m
# A process a core takes a file at a time, so that what a file's tests share is made once. At most 4: each takes 2 GB.
SIDE_BY_SIDE = -n logical --maxprocesses=4 --dist loadfile

.PHONY: help train serve test test-slow test-tff test-litert test-live test-flower test-ray test-tune test-advise \
    test-kotlin test-track test-types test-web test-same-bytes bench-gpu docs web setup setup-flower setup-pfl setup-tff \
    setup-track lock clean

# The first target, so that `make` alone lists them: the comment at the top, without its #.
help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' $(firstword $(MAKEFILE_LIST))

train: setup
	@$(RUN) launch.train --algo=fedsikd $(ARGS)

serve: setup
	@! command -v npm >/dev/null || sh ./launch/tflite/web/set_up.sh || echo "serve: goes on without the page for browsers"
	@$(RUN) launch.serve --algo=fedavg --num_clients=5 $(ARGS)

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

test-live: setup
	@sh ./tests/live/check.sh $(ARGS)

test-flower: setup
	@sh ./tests/flower/check.sh

test-ray: setup
	@sh ./tests/ray/check.sh $(ARGS)

test-track: setup setup-track
	@sh ./tests/track/check.sh $(ARGS)

test-tune: setup
	@sh ./tests/tune/check.sh $(ARGS)

test-advise: setup
	@.venv/bin/python tests/advise/known_answers.py $(ARGS)

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
	@sh ./launch/benchmarks/setup_torch.sh pfl

setup-flower: setup
	@sh ./launch/benchmarks/setup_torch.sh flower

setup-track: setup
	@target=setup-track environment=.venv-track lock=requirements-track.lock disk="1 GB"; . ./extra_environment.sh; set_up

setup-tff: setup
	@sh ./launch/runtimes/setup_tff.sh

setup:
	@PYTHON="$(PYTHON)" sh ./setup.sh

# Resolves setup.py anew into requirements.lock, the same with CUDA into requirements-gpu.lock, the same versions for other
# platforms into locks of theirs (named one by one, since uv takes no TFF there), TFF's wheel by itself, and likewise the
# runtime of test-litert, the clients of test-live, Flower of test-flower, the compiler of test-kotlin, Ray, Optuna and
# the site's builder, each on top of requirements.lock, the peers of setup-pfl and setup-flower, the trackers of
# setup-track, the uv of set-up and the completion of the shell. Needs a network.
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
	for name in completion docs flower flower-simulation litert live pfl ray track tune types uv; do $$here --output-file requirements-$$name.lock requirements-$$name.in; done; \
	for name in kotlin tff; do $$here --no-deps --output-file requirements-$$name.lock requirements-$$name.in; done

# What can be made again in seconds; .venv and those beside it and runs/ stay.
clean:
	@rm -rf build .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -path './.venv*' -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
