# The two commands: `make app` opens the workbench, `make test` runs everything that must pass.
# Both make their own environment in .venv first; nothing else has to be installed but Python 3.11 and git.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help app lab test test-long lint browser proxy coverage fire hall sbom bench demo claims docs site student figures views notebooks plateau clean

help: ## list these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

app: $(VENV)/.app ## open the workbench on the built-in demo (PORT=8600 chooses a port, HEADLESS=1 opens no browser)
	$(BIN)/workbench app $(if $(PORT),--port $(PORT)) $(if $(HEADLESS),--headless)

# In a container people often are root, which Jupyter refuses unless told.
AS_ROOT = $(if $(filter 0,$(shell id -u)),--allow-root)
lab: $(VENV)/.app ## open JupyterLab on the notebooks
	$(BIN)/jupyter lab --ip 127.0.0.1 $(AS_ROOT) $(if $(PORT),--port $(PORT)) $(if $(HEADLESS),--no-browser) notebooks

# Two processes, each with one half of the files: what the tests of a file share is made once, and whoever is done first
# takes from the other's end.
IN_TWO = -n 2 --dist worksteal
test: lint browser ## lint, types and the whole test suite, real-browser tests included
	$(BIN)/python -m pytest $(IN_TWO)

test-long: lint browser proxy ## the suite and the tests marked long
	$(BIN)/python -m pytest $(IN_TWO) -m ""

coverage: browser $(VENV)/.test ## which lines no test runs (the suite, with every line watched; slower)
	$(BIN)/python -m pytest -n 2 --cov --cov-report term

lint: $(VENV)/.test ## style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The browser tests drive the system's chromium. Where we may install it, we do; where we may not, we say so and go on.
browser:
	@if command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; then \
		:; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing chromium for the browser tests"; \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } \
			|| echo "SKIPPED: chromium could not be installed; the browser tests will be skipped"; \
	else \
		echo "SKIPPED: no chromium here and no right to install one; the browser tests will be skipped (install chromium and run again)"; \
	fi

# One long test opens the app through nginx.
proxy:
	@if command -v nginx >/dev/null || [ -x /usr/sbin/nginx ]; then :; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq nginx-light >/dev/null; } \
			|| echo "SKIPPED: nginx could not be installed; the test behind a proxy will be skipped"; \
	else \
		echo "SKIPPED: no nginx here and no right to install one; the test behind a proxy will be skipped"; \
	fi

hall: $(VENV)/.test ## fifty people in one app, beside an empty Streamlit page under the same load (40 minutes; SECONDS=60)
	$(BIN)/python benchmarks/hall/hall.py --seconds $(or $(SECONDS),600)

sbom: $(VENV)/.test ## the packages that are installed, with versions and licences, into dist/sbom.json
	@mkdir -p dist && $(BIN)/python docs/dependencies.py > dist/sbom.json

fire: $(VENV)/.test ## kills and damaged files over every reader, counted (an hour; FILES=20000)
	$(BIN)/python tests/fire/harness.py --files $(or $(FILES),20000)

bench: $(VENV)/.test ## run every benchmark; each prints ratios measured inside one run
	@set -e; for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script; done

demo: $(VENV)/.app ## train the demo runs, and what lessons 3 and 8 show, again and write them to the package
	$(BIN)/python -m workbench.training.demo_runs
	$(BIN)/python -m workbench.teaching.shipped_twins
	$(BIN)/python -m workbench.teaching.shipped_tail

claims: $(VENV)/.app ## try what the papers say and write docs/claims.md (DATA=folder with the files that some claims read)
	$(BIN)/workbench claims --page docs/claims.md $(if $(DATA),--data $(DATA))

docs: $(VENV)/.test ## build the user guide and the reference into docs/site; open docs/site/index.html
	cd docs && NO_MKDOCS_2_WARNING=1 ../$(BIN)/python -m mkdocs build -q

site: $(VENV)/.test ## write lessons, quiz, losses, the demo, guide and reference as a static site (FOLDER=dist/site)
	$(BIN)/workbench site $(or $(FOLDER),dist/site)

student: $(VENV)/.app ## the notebooks without solutions, with a gap and a check for each exercise (FOLDER=dist/student)
	$(BIN)/python notebooks/student.py $(or $(FOLDER),dist/student)

figures: $(VENV)/.app ## draw the published figures in docs/ again
	@set -e; for script in docs/contact_sheet.py docs/epsilon.py docs/figures.py docs/sinkhorn.py docs/glossary.py docs/guide_tables.py; do echo "== $$script"; $(BIN)/python $$script; done

views: browser $(VENV)/.test ## photograph every view of the app on four screens, by day and by night, and film it, into docs/
	$(BIN)/python docs/views.py
	$(BIN)/python docs/animation.py

# In a store of their own, so that what they show does not depend on the runs of whoever executes them, and without widgets,
# which need a kernel: a notebook that is only read has pictures. On a busy machine the prints of a cell come in parts; the
# second command joins them.
notebooks: $(VENV)/.app ## execute the notebooks again and keep what they show
	WORKBENCH_HOME=$$(mktemp -d) WORKBENCH_WITHOUT_WIDGETS=1 BROWSER=true $(BIN)/jupyter nbconvert --to notebook --execute --inplace \
		--ExecutePreprocessor.record_timing=False notebooks/*.ipynb
	$(BIN)/jupyter nbconvert --to notebook --inplace --coalesce-streams notebooks/*.ipynb

plateau: $(VENV)/.app ## train again what notebook 5 compares to the end (a quarter of an hour), into workbench/teaching/results
	$(BIN)/python notebooks/plateau.py

clean: ## remove the environment and what tools left behind
	rm -rf $(VENV) build dist docs/site .coverage* .mypy_cache .ruff_cache .hypothesis *.egg-info

$(BIN)/python:
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "the workbench needs Python 3.11 or newer; say which: make PYTHON=/path/to/python3.11"; exit 1; }
	"$(PYTHON)" -m venv $(VENV)

# An environment is as good as the files it was made from: when they change, install again.
$(VENV)/.app: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -q -c constraints.txt -e ".[all]"
	@touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install -q -c constraints.txt -e ".[all,test,bench,docs,vision]"
	@touch $@ $(VENV)/.app
