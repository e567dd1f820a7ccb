# One image for Airflow's processes: Airflow, Java, the locked packages, Spark's jars, and our wheel. It holds no DAGs:
# docker-compose.yml mounts those of dags/, and an Airflow of one's own brings its own.
# No container engine was there where this was written. `make image-check` replays these steps without one, and
# tests/repo/test_docker_compose.py holds them against the locks.
FROM apache/airflow:slim-3.3.2-python3.11 AS base
USER root
# Made here, since WORKDIR makes a folder that is root's in some builders.
RUN install --directory --owner airflow --group 0 /opt/tallystick /opt/wheel

FROM base AS wheel
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
USER airflow
WORKDIR /opt/wheel
COPY --chown=airflow:0 requirements/ requirements/
RUN pip install --no-cache-dir --require-hashes -r requirements/uv.lock
COPY --chown=airflow:0 pyproject.toml MANIFEST.in LICENSE README.md ./
COPY --chown=airflow:0 setup/build_backend.py setup/
COPY --chown=airflow:0 tallystick/ tallystick/
COPY --chown=airflow:0 spark_apps/ spark_apps/
COPY --chown=airflow:0 expectations/ expectations/
COPY --chown=airflow:0 plugins/ plugins/
RUN pip wheel --no-deps --no-build-isolation --wheel-dir dist .

FROM base
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*
USER airflow
WORKDIR /opt/tallystick
COPY --chown=airflow:0 requirements/ requirements/
RUN pip install --no-cache-dir --require-hashes -r requirements/uv.lock \
    && pip install --no-cache-dir --require-hashes --no-build-isolation -r requirements/runtime.lock
COPY --from=wheel --chown=airflow:0 /opt/wheel/dist/ dist/
RUN pip install --no-cache-dir --no-deps dist/*.whl \
    && tallystick jars fetch /opt/tallystick/jars \
    && mkdir artifacts contracts
ENV TALLYSTICK_JARS_DIR=/opt/tallystick/jars \
    TALLYSTICK_ARTIFACTS_DIR=/opt/tallystick/artifacts
WORKDIR /opt/airflow
