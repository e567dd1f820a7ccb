# Every target works as the first command on a fresh clone: it sets up what is missing first.
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup packages lock audit sbom adopt pin-images compose-check image-check helm-check routes demo lab lab-secured lab-formats lab-ledgers lab-long soak simulate replay backfill long-history crash model fuzz mutants natural relay cluster up down browser-setup mariadb-setup promtool-setup object-store-setup object-store postgres-setup registry-setup docs lint format test test-unit test-spark test-dags test-pages test-stack test-lab test-alert-rules test-browser test-newest test-oldest bench bench-shapes bench-scaling bench-exactly-once bench-cost bench-save bench-census bench-pages bench-window bench-compared bench-formats clean

PYTHON ?= python3
BIN := .venv/bin
# Hundreds of processes are started; without byte code on disk each of them compiles what it imports.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/python -m pytest
ON_SERVERS := $(PYTEST) -n 3 --dist loadfile --no-loadscope-reorder --durations 25 tests/soak tests/lab tests/browser tests/object_store tests/stack

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r name text; do \
		printf '  make %-18s %s\n' "$$name" "$$text"; done

setup: ## Make .venv and .jars from the locks; a second run does nothing
	@$(PYTHON) setup/bootstrap.py

packages: ## Make .venv alone, for what starts no Java
	@$(PYTHON) setup/bootstrap.py --packages

lock: setup ## Re-make the locks from requirements/*.in (UPGRADE=1: take the newest allowed)
	@$(BIN)/python setup/relock.py $(if $(UPGRADE),--upgrade)

audit: setup ## Ask OSV for vulnerabilities of the locked packages; error 3: OSV did not answer, so nothing is known
	@$(BIN)/python setup/audit.py

sbom: setup ## Write packages, jars and images as CycloneDX into build/sbom.cdx.json
	@$(BIN)/python setup/sbom.py

adopt: setup ## Install the wheel beside Airflow in fresh environments, and judge a contract in a DAG there, in build/adopt.json
	@$(BIN)/python setup/adopt.py $(if $(PYTHON_VERSION),--python $(PYTHON_VERSION)) $(if $(AIRFLOW),--airflow $(AIRFLOW)) \
		$(if $(RESUME),--resume)

pin-images: setup ## Ask a registry for the digests of the base images, and write them behind their tags (REGISTRY=https://HOST)
	@$(BIN)/python setup/pin_images.py $(REGISTRY)

compose-check: setup ## Read docker-compose.yml by Compose itself, built from its Go module; no daemon (minutes the first time)
	@$(BIN)/python setup/compose_check.py

image-check: setup ## Replay the Dockerfile's steps in fresh folders, without a container engine (about 5 minutes)
	@$(BIN)/python setup/image_check.py

helm-check: setup ## Render the Helm example by Airflow's chart (CHART=DIR: a copy of it); Helm is built from its Go module
	@$(BIN)/python setup/helm_check.py $(if $(CHART),--chart $(CHART))

routes: setup ## Measure who may call each route, on a live Airflow under SimpleAuthManager and under FAB
	@$(PYTEST) -q tests/browser/test_routes.py && cat build/routes/*.md

demo: setup ## Start everything, break it on purpose, and watch Tallystick find it (FOLLOW=1: you approve the repair)
	$(BIN)/python -m lab.demo.main $(if $(FOLLOW),--follow)

lab: setup ## Score one round of real faults, mixed by a seed (SEED=1; SECURITY=scram, mtls or oauth: over TLS, with least rights)
	$(BIN)/python -m lab.rounds.main --seeds $(or $(SEED),1) $(if $(SECURITY),--security $(SECURITY))

lab-secured: setup ## Score such a round behind each of these doors, and judge a book in an Airflow under FAB (SEED=1)
	for security in scram mtls oauth; do \
		$(BIN)/python -m lab.rounds.main --seeds $(or $(SEED),1) --security $$security --folder build/lab-$$security || exit 1; \
	done

lab-formats: setup registry-setup ## Score such a round with events in each of these formats and places, its last window by DAGs (SEED=1)
	for format in avro protobuf json_schema debezium envelope; do \
		$(BIN)/python -m lab.rounds.main --seeds $(or $(SEED),1) --format $$format --dag --folder build/lab-$$format || exit 1; \
	done

lab-ledgers: setup mariadb-setup postgres-setup ## Score such a round with each of these ledgers, its last window by DAGs (SEED=1)
	for ledger in postgres_13 standby jdbc mariadb parquet iceberg; do \
		$(BIN)/python -m lab.rounds.main --seeds $(or $(SEED),1) --ledger $$ledger --dag --folder build/lab-$$ledger || exit 1; \
	done

lab-long: setup ## Score twenty such rounds (SEEDS=1-20)
	$(BIN)/python -m lab.rounds.main --seeds $(or $(SEEDS),1-20)

soak: setup ## Run many windows with faults and kills; the sum must equal the truth (WINDOWS=200 SEED=1)
	$(BIN)/python -m lab.soak.main --windows $(or $(WINDOWS),200) --seed $(or $(SEED),1)

backfill: setup ## Stop for thirty windows, then run Airflow's own backfill (WINDOWS=30 SEED=1)
	$(BIN)/python -m lab.soak.backfill --windows $(or $(WINDOWS),30) --seed $(or $(SEED),1)

long-history: setup ## Compare run 10 with the last run of a year of windows (WINDOWS=365 BOOK=payouts)
	$(BIN)/python -m lab.soak.history --windows $(or $(WINDOWS),365) --book $(or $(BOOK),payouts)

simulate: setup ## Play schedules in a simulated world around the real code, figures in build/simulate.json (SCHEDULES=1000 SEED=1 LIMIT=seconds)
	$(BIN)/python -m tests.simulator.simulate --schedules $(or $(SCHEDULES),1000) --seed $(or $(SEED),1) $(if $(LIMIT),--seconds $(LIMIT))

replay: setup ## Play a sample of these schedules again on real servers, which must say the same (SCHEDULES=20 SEED=1 LIMIT=seconds)
	$(BIN)/python -m tests.simulator.replay.replay --schedules $(or $(SCHEDULES),20) --seed $(or $(SEED),1) $(if $(LIMIT),--seconds $(LIMIT))

crash: setup ## Stop the compensating job at every step; each repair must take effect once (ROUNDS=200 SEED=1, or SEED=1.17)
	$(BIN)/python -m lab.crash.main --rounds $(or $(ROUNDS),200) --seed $(or $(SEED),1)

model: setup ## Explore every state that crashes and others can bring a repair to, each once (build/model.json)
	$(BIN)/python -m tests.protocol_model.main

fuzz: setup ## Fuzz what others write: batches, events, headers, progress, files, rows (SECONDS=600 for each)
	@$(BIN)/python setup/fuzzer.py
	$(BIN)/python -m tests.fuzz.main --seconds $(or $(SECONDS),600)

natural: setup ## Let old Kafkas make the faults that nobody plants, and have each judged, table in build/natural.json (SEED=1)
	@$(BIN)/python setup/old_jars.py
	$(BIN)/python -m lab.natural.main --seed $(or $(SEED),1)

mutants: setup ## Change the rules one by one; a test must notice each change, figures in build/mutants.json (MODULES=compensation SECONDS=600 SEED=1 GO_ON=1)
	@$(BIN)/python setup/mutator.py
	$(BIN)/python -m tests.mutants.main --seed $(or $(SEED),1) $(if $(MODULES),--modules $(MODULES)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(GO_ON),--go-on)

relay: setup ## Update rows while they are read; no window may break or be tried again (WINDOWS=50)
	RELAY_WINDOWS=$(or $(WINDOWS),50) $(PYTEST) tests/stack/test_relay.py

cluster: setup ## Start a Spark master and two workers here until Ctrl-C, and print the master's address (WORKERS=2)
	$(BIN)/python -m lab.servers.spark_cluster --workers $(or $(WORKERS),2)

up: setup ## Start broker, ledger and Airflow here, without Docker, with every contract of dags/contracts
	$(BIN)/python -m lab.demo.up

down: setup ## Stop what `make up` started
	$(BIN)/python -m lab.demo.down

docs: setup ## Build docs/ as a site into build/site; a broken link fails it
	@$(BIN)/python setup/docs_site.py

lint: packages ## Run Ruff and mypy, and look for what no committed file may hold
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST) -q tests/repo/test_committed_files.py tests/repo/test_import_direction.py

format: packages ## Sort imports and format
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

test: test-unit test-alert-rules test-spark test-dags test-pages test-stack ## Test the product, the quick tests first; a skipped test fails the run

test-unit: setup ## Test the rules: no Spark, no Airflow, no broker
	$(PYTEST) -n 2 tests/repo tests/protocol_model tests/mutants tests/laws tests/fuzz tests/simulator tests/unit

test-alert-rules: setup promtool-setup ## Test the sample alert rules and dashboard with Prometheus's own engine, on metrics of a real run
	$(PYTEST) -n 2 tests/prometheus

test-spark: setup ## Test the Spark apps on literal rows, in two processes with a session each
	$(PYTEST) -n 2 --dist loadfile tests/spark

test-dags: setup ## Test the DAGs in Airflow, without a scheduler
	$(PYTEST) -n 2 --dist worksteal tests/dags

test-pages: setup object-store-setup ## Test the pages against a real store, with Airflow's own authentication
	$(PYTEST) -n 2 --dist loadfile tests/pages

test-stack: setup browser-setup mariadb-setup object-store-setup postgres-setup registry-setup ## Test the product on real servers, in three processes with a stack each: the longest first, one Airflow at a time
	$(ON_SERVERS) -m "not lab"

test-lab: setup browser-setup mariadb-setup object-store-setup postgres-setup registry-setup ## Test what tries the product: the lab's servers, faults and truth, soak, replay, benchmarks, rules broken on purpose
	$(ON_SERVERS) -m lab

object-store: setup object-store-setup ## Store artifacts in a real server of S3's interface: runs, pages of another process, the store gone
	$(PYTEST) tests/object_store tests/stack/test_object_store_runs.py tests/pages/test_pages_object_store.py

object-store-setup: packages ## Build that server out of its Go module, into .tools/, where it is missing
	@$(BIN)/python setup/object_store.py

test-browser: setup browser-setup ## Test the pages in a real Airflow, with Chromium; pictures in build/screens/
	$(PYTEST) tests/browser

browser-setup: packages ## Install Debian's Chromium where it is missing
	@test -x /usr/bin/chromium || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; }

mariadb-setup: packages ## Install Debian's MariaDB server where it is missing; nothing starts it but tests
	@test -x /usr/sbin/mariadbd && test -x /usr/bin/my_print_defaults || { apt-get update -qq && \
		apt-get install -y -qq --no-install-recommends mariadb-server-core mariadb-client-core; }

test-newest: setup ## Run the tests of rules and DAGs with the newest versions that the package allows, on the newest Python here
	@$(BIN)/python setup/range_ends.py newest

test-oldest: setup ## Run them with the oldest versions that it allows, on the oldest Python here
	@$(BIN)/python setup/range_ends.py oldest

bench: setup ## Compare a whole reconciliation with reading both sides once, and with what people use (EVENTS=3000000 TIMES=4)
	$(BIN)/python -m bench.side_by_side --events $(or $(EVENTS),3000000) --times $(or $(TIMES),4)

promtool-setup: packages ## Fetch promtool from Debian's package of Prometheus where it is missing
	@$(BIN)/python setup/promtool.py

postgres-setup: packages ## Fetch the oldest PostgreSQL that a ledger may be, where it is missing
	@$(BIN)/python setup/old_postgres.py

registry-setup: packages ## Fetch the schema registry of the tests, Apicurio, where it is missing (142 MB)
	@$(BIN)/python setup/schema_registry.py

bench-census: setup ## Classify ten million batch headers in bounded memory
	$(BIN)/python -m bench.census_headers

bench-shapes: setup ## Run bench on large payloads, a hot partition, many partitions and a hot key (EVENTS=300000 TIMES=3)
	$(BIN)/python -m bench.shapes --events $(or $(EVENTS),300000) --times $(or $(TIMES),3)

bench-scaling: setup ## Measure the floor and Tallystick on one data set, and on one ten times as large (EVENTS=3000000 FACTOR=10)
	$(BIN)/python -m bench.growth --events $(or $(EVENTS),3000000) --factor $(or $(FACTOR),10)

bench-exactly-once: setup ## Measure what exactly-once costs a producer, beside the figures of Kafka's authors (ROUNDS=4 MIB=400)
	$(BIN)/python -m bench.exactly_once --rounds $(or $(ROUNDS),4) --mib $(or $(MIB),400)

bench-cost: setup ## Count the bytes, rows, jobs and shuffles of a reconciliation; needs no clock (EVENTS=60000)
	$(BIN)/python -m bench.cost --events $(or $(EVENTS),60000)

bench-compared: setup ## Measure what a column costs that is compared besides money (EVENTS=1000000 TIMES=4)
	$(BIN)/python -m bench.compared --events $(or $(EVENTS),1000000) --times $(or $(TIMES),4)

bench-formats: setup registry-setup ## Measure a window in Avro and in Protobuf beside the same in JSON (EVENTS=3000000 TIMES=4)
	$(BIN)/python -m bench.formats --events $(or $(EVENTS),3000000) --times $(or $(TIMES),4)

bench-save: setup ## Save the last measurements as those of this release, in bench/results/
	$(BIN)/python -m bench.keep

bench-pages: setup ## Measure the pages with twenty readers, over a year of windows and a million breaks
	$(BIN)/python -m bench.pages

bench-window: setup ## Measure a window of a thousand events on a warm Airflow and Spark, beside an empty task (EVENTS=1000 TIMES=5 SEED=1)
	$(BIN)/python -m bench.window --events $(or $(EVENTS),1000) --times $(or $(TIMES),5) --seed $(or $(SEED),1)

clean: setup ## Delete what runs leave behind; keeps .venv and .jars
	rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis spark-warehouse metastore_db derby.log

# Targets by the names of older versions: refused with the name of today.
RENAMED := test-rules=test-alert-rules bench-keep=bench-save bench-growth=bench-scaling bench-eos=bench-exactly-once history=long-history
RENAMED_TARGETS := $(foreach pair,$(RENAMED),$(firstword $(subst =, ,$(pair))))
.PHONY: $(RENAMED_TARGETS)
$(RENAMED_TARGETS):
	@echo "make $@ has a new name: use make $(patsubst $@=%,%,$(filter $@=%,$(RENAMED)))" >&2; exit 2
