# Named tasks; `make help` lists them. Everything Python lives in .venv, everything Rust in target.
# Needs only make, Python 3.11 or newer, a Rust toolchain and a C linker.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
BUILDER := $(VENV)/.build-installed
READY := $(VENV)/.checks-installed
EXTENSION := python/optpess/_core.abi3.so

# The build must see this project's environment and no other.
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
unexport CONDA_PREFIX PYTHONPATH PYTHONHOME

PYTEST := $(BIN)/python -m pytest
# A fresh environment each time: Sphinx repeats no warning of a page that it has kept.
SPHINX := $(BIN)/python -m sphinx -E -W --keep-going -q -b html docs docs/_build
PYTEST_ARGS ?=
BENCH_ARGS ?=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo build test test-rust test-python test-slow lint format wheel-test docs docs-test bench bench-rust bench-instructions bench-plots bench-rollout fingerprint billion experiments comparison mixing staged-rollout gymnasium stories trials transcript report-figures figures study-on-dask fuzz bench-planning kill interrupts endurance fuzz-rust clean tools peers module

help: ## list the tasks
	@echo "make <task>; the durations are for two cores, first run / later runs"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | awk -F'\t' '{ printf "  %-18s %s\n", $$1, $$2 }'
	@echo "Variables: PYTHON=python3.12 chooses the interpreter, PYTEST_ARGS='-k gate' narrows the Python tests,"
	@echo "BENCH_ARGS='--only sparse' goes to the script or bench of a bench task."

demo: build $(VENV)/.figures-installed ## twelve learners on a metered link, and a report (3 min / 1 min)
	$(BIN)/python examples/demo.py

# The sum tells the benches that what is installed is this build and no other.
build: $(BUILDER) ## compile the extension, optimised, into .venv (2 min / 3 s)
	@echo "Building the extension, optimised"
	@mkdir -p target
	@$(BIN)/maturin develop --release > target/build.log 2>&1 || { cat target/build.log >&2; exit 1; }
	@cksum < $(EXTENSION) > target/optimised-extension

# For tests: quick to compile, with assertions, from the same compiled core as `cargo test`.
module: $(BUILDER)
	@echo "Building the extension for tests"
	@mkdir -p target
	@$(BIN)/maturin develop > target/build.log 2>&1 || { cat target/build.log >&2; exit 1; }

test: test-rust test-python ## the quick tests, Rust then Python, but for those of docs-test (6 min / 2 min)

test-rust: $(BUILDER) ## unit, golden, property and doc tests of the core (2 min / 20 s)
	CARGO_PROFILE_TEST_OPT_LEVEL=0 cargo test --quiet -p optpess-core --lib
	cargo test --quiet --test '*'
	cargo test --quiet --doc

test-python: module $(READY) ## Python tests, without the slow statistical ones (3 min / 2 min)
	$(PYTEST) -n 2 -q -m "not slow" --ignore=tests/python/docs $(PYTEST_ARGS)

test-slow: build $(READY) ## only the slow statistical tests, at the paper's constants (5 min)
	$(PYTEST) -n 2 -q -m slow $(PYTEST_ARGS)

lint: module $(READY) ## formatting, clippy, ruff, mypy, stubs against the built module (3 min / 20 s)
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict python/optpess
	$(BIN)/python -m mypy.stubtest optpess._core --mypy-config-file pyproject.toml --allowlist tests/stubtest-allowlist.txt

format: $(READY) ## rewrite the sources in the house format (2 s)
	cargo fmt --all
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

wheel-test: $(BUILDER) ## build a wheel, test it alone in an empty environment (3 min / 1 min)
	scripts/wheel-test

docs: build $(VENV)/.docs-installed ## the site of docs and docstrings, into docs/_build (3 min / 20 s)
	$(SPHINX)
	@echo "docs/_build/index.html"

docs-test: module $(READY) $(VENV)/.docs-installed ## run the examples of README and docs, build the site (3 min / 1 min)
	$(PYTEST) -n 2 -q tests/python/docs
	$(SPHINX)

bench: build peers ## the table of ratios: learners against numba, NumPy, JAX, HiGHS (6 min / 3 min)
	$(BIN)/python benches/python/speed.py $(BENCH_ARGS)

bench-rust: build ## criterion: every inner loop and one episode of each algorithm, by size (10 min)
	cargo bench -p optpess-benches --bench loops --bench learner --bench known -- $(BENCH_ARGS)
	$(BIN)/python benches/python/criterion.py $(if $(BENCH_ARGS),--no-record)

bench-instructions: $(BUILDER) ## instructions an episode under callgrind; BENCH_ARGS=--check compares (1 min)
	scripts/callgrind $(BENCH_ARGS)

bench-plots: build peers ## cost an episode against S, A, H and successors, as a figure (3 min)
	$(BIN)/python benches/python/scaling.py $(BENCH_ARGS)
	$(BIN)/python benches/python/plots.py

bench-planning: build peers ## planning against Storm, QuantEcon and HiGHS, up to 10^6 states (20 min)
	$(BIN)/python benches/python/planning.py $(BENCH_ARGS)

bench-rollout: build $(READY) ## what a rollout adds to an environment and a learner (2 min)
	$(BIN)/python benches/python/rollout.py $(BENCH_ARGS)

fuzz-rust: ## fuzz the core with AFL++; BENCH_ARGS='--minutes 60 --only learner' (12 min / 10 min)
	scripts/fuzz-rust $(BENCH_ARGS)

fingerprint: ## a hash of every bit of some 60 cases, to compare two commits (1 min / 10 s)
	@scripts/fingerprint

billion: build $(VENV)/.figures-installed ## 10^9 episodes of OptPess-PrimalDual on the pair (2 min)
	$(BIN)/python experiments/billion.py $(BENCH_ARGS)

experiments: build $(VENV)/.figures-installed ## the runs of docs/learning.md at the paper's constants (10 min)
	$(BIN)/python experiments/theorem_constants.py $(BENCH_ARGS)

comparison: build $(VENV)/.figures-installed ## the tables and pictures of docs/comparison.md (20 min)
	$(BIN)/python experiments/comparison.py $(BENCH_ARGS)

mixing: build $(READY) $(VENV)/.figures-installed ## the tables and pictures of docs/mixing-results.md (15 min)
	$(BIN)/python experiments/mixing.py $(BENCH_ARGS)

staged-rollout: build $(READY) ## the tables of docs/staged-rollout.md: simulated deployments (3 min)
	$(BIN)/python experiments/staged_rollout.py

gymnasium: build $(READY) ## the tables and the picture of docs/gymnasium.md: real environments (6 min)
	$(BIN)/python experiments/gymnasium_grids.py $(BENCH_ARGS)

figures: build $(READY) $(VENV)/.figures-installed ## the figures of runs and of speed, again from their records (3 min / 1 min)
	for script in comparison mixing theorem_constants billion gymnasium_grids; do $(BIN)/python experiments/$$script.py --draw || exit 1; done
	$(BIN)/python benches/python/plots.py

stories: build $(READY) ## the three stories of docs/stories.md, their pictures and that of the README (3 min / 1 min)
	for story in metered_video inventory gymnasium_grid; do $(BIN)/python examples/$$story.py --output docs/figures || exit 1; done
	$(BIN)/python experiments/problem_picture.py

kill: build ## kill -9 of simulations and rollouts at random moments, then resume and compare (6 min)
	$(BIN)/python experiments/kill.py $(BENCH_ARGS)

interrupts: build $(READY) ## how soon each long call stops after Ctrl-C and SIGTERM (15 min)
	$(BIN)/python experiments/interrupts.py $(BENCH_ARGS)

endurance: build ## ten simulations in ten threads; the memory of 10^8 episodes (2 min)
	$(BIN)/python experiments/endurance.py $(BENCH_ARGS)

trials: $(BUILDER) ## the eight trials of a new user: wheel, empty environment, empty folder (5 min / 3 min)
	rm -rf target/trials
	$(BIN)/maturin build --release --interpreter $(BIN)/python --out target/trials
	$(BIN)/python experiments/trials/run.py --wheel target/trials/optpess-*.whl $(BENCH_ARGS)

transcript: $(BUILDER) ## the tutorial, followed with the wheel in an empty folder and environment (3 min / 1 min)
	rm -rf target/transcript
	$(BIN)/maturin build --release --interpreter $(BIN)/python --out target/transcript
	$(BIN)/python experiments/transcript.py --wheel target/transcript/optpess-*.whl

report-figures: build $(READY) ## the pictures of docs/report.md: a report in Chromium (3 min / 30 s)
	$(BIN)/python experiments/report.py

fuzz: build $(READY) ## public functions with arguments that do not belong there; BENCH_ARGS='--minutes 10' (1 min)
	$(BIN)/python experiments/fuzz.py $(BENCH_ARGS)

study-on-dask: build $(VENV)/.cluster-installed ## a study on a cluster whose workers are killed (3 min)
	$(BIN)/python experiments/study_on_dask.py

clean: ## remove everything the tasks produced (1 s)
	rm -rf target $(VENV) build dist demo-output docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find python tests examples benches -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
	rm -f python/optpess/*.so

tools:
	@scripts/check-tools "$(PYTHON)"

# What the benches compare with; without JAX a column stays empty.
peers: $(BUILDER)
	@$(PIP) install --quiet --group bench
	@$(PIP) install --quiet --group bench-jax 2>/dev/null || echo "JAX could not be installed"

# The environment is renewed when the list of dependencies changes. Each task installs the group it needs.
$(BUILDER): pyproject.toml | tools
	@echo "Preparing $(VENV)"
	@test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV)
	@$(PIP) install --quiet --upgrade pip
	@$(PIP) install --quiet --group build
	@touch $@

$(VENV)/.%-installed: pyproject.toml | $(BUILDER)
	@echo "Installing what '$*' needs into $(VENV)"
	@$(PIP) install --quiet --group $*
	@touch $@
