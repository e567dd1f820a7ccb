# One image for Airflow's four processes: Airflow, Java, the locked packages, Spark's jars, and our wheel.
# There was no container engine where this was written: a test parses this file and holds it against the locks
# (tests/repo/test_docker_compose.py), but nobody has built it yet.
FROM apache/airflow:3.3.2-python3.11

USER root
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/*

USER airflow
WORKDIR /opt/tallystick
COPY --chown=airflow:0 requirements/ requirements/
RUN pip install --no-cache-dir --require-hashes -r requirements/uv.lock \
    && pip install --no-cache-dir --require-hashes --no-build-isolation -r requirements/runtime.lock

COPY --chown=airflow:0 pyproject.toml LICENSE README.md ./
COPY --chown=airflow:0 tallystick/ tallystick/
COPY --chown=airflow:0 spark_apps/ spark_apps/
COPY --chown=airflow:0 expectations/ expectations/
COPY --chown=airflow:0 plugins/ plugins/
RUN pip install --no-cache-dir --no-deps --no-build-isolation . \
    && tallystick jars fetch /opt/tallystick/jars

COPY --chown=airflow:0 dags/ dags/
ENV AIRFLOW__CORE__DAGS_FOLDER=/opt/tallystick/dags \
    AIRFLOW__CORE__PLUGINS_FOLDER=/opt/tallystick/plugins \
    TALLYSTICK_CONTRACTS_DIR=/opt/tallystick/dags/contracts \
    TALLYSTICK_JARS_DIR=/opt/tallystick/jars \
    TALLYSTICK_ARTIFACTS_DIR=/opt/tallystick/artifacts
RUN mkdir -p /opt/tallystick/artifacts
WORKDIR /opt/airflow
