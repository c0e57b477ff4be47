# Needs only Python 3.11 to 3.13 and make. Everything is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := $(BIN)/viscoil

.PHONY: help install demo test lint validate bench studio gallery clean

help:
	@echo "make demo      install, simulate a small dam break, leave a picture, a film and a run folder in demo/"
	@echo "make test      install and run all tests and the quick validation"
	@echo "make studio    install what the live studio needs and open it"
	@echo "make gallery   simulate and render the picture of every shipped scene into docs/gallery"
	@echo "make lint      ruff and pyright"
	@echo "make validate  compare with known solutions, plots in build/plots"
	@echo "make bench     time per stage beside the paper's and a C++ yardstick"

# The stamp is newer than pyproject.toml when the environment is up to date.
$(VENV)/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v <= (3, 13) else f"viscoil needs Python 3.11 to 3.13, {sys.executable} is {v[0]}.{v[1]}; say e.g. make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[surface,film]"
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@

$(VENV)/installed-all: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[all]"
	@touch $@

install: $(VENV)/installed

demo: $(VENV)/installed
	$(RUN) demo

test: $(VENV)/installed-dev
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/python -m pytest -n 2 --dist loadgroup --durations 25

lint: $(VENV)/installed-dev
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/pyright

validate: $(VENV)/installed
	$(RUN) validate --plots build/plots

bench: $(VENV)/installed
	$(RUN) bench stages

studio: $(VENV)/installed-all
	$(RUN) studio

gallery: $(VENV)/installed-all
	$(RUN) gallery

clean:
	rm -rf $(VENV) build dist demo runs
