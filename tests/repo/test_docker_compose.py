"""The containers run what the tests ran: versions, ports, variables and health checks are held against the code.

Does not prove that they start: there is no container engine here. `make compose-check` and `make image-check` go
further, and take minutes. compose-spec.json is Compose's own schema (compose-go, Apache License 2.0), unchanged.
"""

import base64
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from compose_env import filled
from cryptography.fernet import Fernet
from dockerfile import files_of_context, read_stages
from jars import read_locks

from tallystick.contract.contract import load_contract
from tests.repo.image_facts import CODE_FOLDERS, locked_version, variables_in

ROOT = Path(__file__).parents[2]
COMPOSE_TEXT = (ROOT / "docker-compose.yml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(COMPOSE_TEXT)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
AIRFLOW: dict[str, str] = COMPOSE["x-airflow"]["environment"]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
IGNORE = (ROOT / ".dockerignore").read_text()
SCHEMA: dict[str, Any] = json.loads((ROOT / "tests" / "repo" / "compose-spec.json").read_text())
SHOP = load_contract(ROOT / "docs" / "examples" / "compose" / "shop_orders.yaml")

TUNING = {  # variables with a default that suits the containers, or that only the command line asks for
    "TALLYSTICK_ALLOWED_SIGNERS",
    "TALLYSTICK_ARTIFACTS_CONN_ID",
    "TALLYSTICK_ARTIFACTS_SHARED_WITH",
    "TALLYSTICK_RUNBOOKS_URL",
    "TALLYSTICK_SCAN",
    "TALLYSTICK_SPARK_CONF",
    "TALLYSTICK_SPARK_MASTER",
    "TALLYSTICK_SPARK_POOL",
    "TALLYSTICK_TEAMS",
}


def broker_version() -> str:
    jars = read_locks()
    (version,) = {version for _, artifact, version in (jar.coordinates for jar in jars) if artifact == "kafka_2.13"}
    return version


def services_without_health(services: dict[str, dict[str, Any]]) -> list[str]:
    """Name the services that nothing checks: no health check, and nobody waits for their success either."""
    awaited = {
        name
        for service in services.values()
        for name, wait in service.get("depends_on", {}).items()
        if wait["condition"] == "service_completed_successfully"
    }
    return [name for name, service in services.items() if "healthcheck" not in service and name not in awaited]


def addresses_nobody_listens_on(text: str, services: dict[str, dict[str, Any]]) -> set[str]:
    """Find service:port in the text where the service does not listen on that port."""
    used = set(re.findall(rf"(?<![\w/-])({'|'.join(services)}):(\d+)", text))
    return {f"{name}:{port}" for name, port in used if int(port) not in listening_ports(services[name])}


def listening_ports(service: dict[str, Any]) -> set[int]:
    if service.get("image", "").startswith("postgres:"):
        return {5432}
    if "KAFKA_LISTENERS" in service.get("environment", {}):
        return {int(port) for port in re.findall(r"://:(\d+)", service["environment"]["KAFKA_LISTENERS"])}
    return {8080} if "api-server" in str(service.get("command")) else set()


def given_passwords(text: str) -> list[str]:
    """Find secrets whose value stands in the file instead of being demanded from the environment."""
    secret = r"^\s*(\w*(?:PASSWORD|SECRET|SECRET_KEY|FERNET_KEY)): *(?!\$\{\w+:\?)(\S.*)$"
    return [name for name, _ in re.findall(secret, text, flags=re.MULTILINE)]


def image_of(text: str) -> str:
    """Name and tag, without the digest and what follows."""
    return re.split(r"[@\s]", text, maxsplit=1)[0]


def test_the_image_starts_from_the_locked_airflow_and_python() -> None:
    base, *others = [stage.base for stage in read_stages(DOCKERFILE)]
    assert image_of(base) == f"apache/airflow:slim-{locked_version('apache-airflow')}-python3.11"
    assert others == ["base", "base"]
    assert COMPOSE["x-airflow"]["image"] == f"tallystick-airflow:{locked_version('apache-airflow')}"


def test_the_broker_is_the_one_of_the_lab() -> None:
    assert image_of(SERVICES["kafka"]["image"]) == f"apache/kafka:{broker_version()}"


def test_both_databases_are_the_major_of_the_lab() -> None:
    (major,) = set(re.findall(r"POSTGRES_VERSIONS\[(\d+)\]", (ROOT / "lab" / "servers" / "postgres.py").read_text()))
    assert SERVICES["ledger"]["image"] == SERVICES["airflow-db"]["image"]
    assert image_of(SERVICES["ledger"]["image"]).startswith(f"postgres:{major}.")


def test_images_are_pinned_where_their_digest_is_known() -> None:
    """Airflow's is not: `make pin-images` asks for it where a registry can be reached."""
    assert [
        service["image"] for service in (SERVICES["kafka"], SERVICES["ledger"]) if "@sha256:" not in service["image"]
    ] == []


def test_every_variable_of_the_code_is_set() -> None:
    assert variables_in(*CODE_FOLDERS)
    assert variables_in(*CODE_FOLDERS) - set(AIRFLOW) - TUNING == set()


def test_no_variable_is_set_that_neither_the_code_nor_the_lab_knows() -> None:
    ours = {name for name in AIRFLOW if re.match(r"TALLYSTICK_(?!CONN_)", name)}
    assert ours - variables_in(*CODE_FOLDERS, "lab") == set()


def test_airflow_and_the_command_line_know_the_same_connections() -> None:
    outside = {name.removeprefix("TALLYSTICK_CONN_") for name in AIRFLOW if name.startswith("TALLYSTICK_CONN_")}
    inside = {name.removeprefix("AIRFLOW_CONN_") for name in AIRFLOW if name.startswith("AIRFLOW_CONN_")}
    assert inside - outside == {"SPARK_DEFAULT", "TALLYSTICK_STORE"}
    assert outside - inside == set()


def test_the_folders_of_the_compose_file_are_those_of_the_image() -> None:
    folders = dict(re.findall(r"(TALLYSTICK_\w+_DIR)=(\S+)", DOCKERFILE))
    assert folders
    assert {name: AIRFLOW[name] for name in folders} == folders


def test_every_demanded_value_is_explained_and_no_other() -> None:
    explained = re.findall(r"^(\w+)=", (ROOT / ".env.example").read_text(), flags=re.MULTILINE)
    assert set(explained) == set(re.findall(r"(?<!\$)\$\{(\w+)", COMPOSE_TEXT))


def test_the_example_gives_no_values() -> None:
    assert re.findall(r"^\w+=.+$", (ROOT / ".env.example").read_text(), flags=re.MULTILINE) == []


def test_no_password_has_a_default() -> None:
    assert given_passwords(COMPOSE_TEXT) == []
    assert re.findall(r"(?<!\$)\$\{\w+(?!:\?|\w)", COMPOSE_TEXT) == []


@pytest.mark.parametrize("line", ["POSTGRES_PASSWORD: postgres", "  JWT_SECRET: ${JWT:-secret}"])
def test_a_given_password_is_found(line: str) -> None:
    assert given_passwords(line) != []


def services_that_know(secret: str) -> set[str]:
    return {name for name, service in SERVICES.items() if secret in str(service)}


def test_the_stores_owner_is_known_where_it_is_made_and_migrated_and_nowhere_else() -> None:
    assert services_that_know("TALLYSTICK_STORE_OWNER_PASSWORD") == {"airflow-db", "airflow-init"}
    assert services_that_know("TALLYSTICK_DB_ADMIN_PASSWORD") == {"airflow-db"}


def test_airflow_its_tasks_and_the_command_line_work_as_a_role_that_owns_nothing() -> None:
    made = COMPOSE["configs"]["airflow-and-store"]["content"]
    owners = dict(re.findall(r"CREATE DATABASE (\w+) OWNER (\w+);", made))
    (granted,) = re.findall(r"store migrate --grant-to (\w+)", str(SERVICES["airflow-init"]["command"]))
    stores = {AIRFLOW["TALLYSTICK_STORE_DSN"], AIRFLOW["AIRFLOW_CONN_TALLYSTICK_STORE"]}
    assert {re.findall(r"//(\w+):.*/(\w+)$", address)[0] for address in stores} == {(granted, "tallystick")}
    assert owners == {"airflow": "airflow", "tallystick": "tallystick_owner"}
    assert f"//{owners['tallystick']}:" in SERVICES["airflow-init"]["environment"]["STORE_OWNER_DSN"]


def test_every_address_is_one_that_a_service_listens_on() -> None:
    assert addresses_nobody_listens_on(COMPOSE_TEXT, SERVICES) == set()


def test_an_address_with_a_wrong_port_is_found() -> None:
    assert addresses_nobody_listens_on("dsn: u@ledger:5433/x", SERVICES) == {"ledger:5433"}


def test_every_service_is_checked() -> None:
    assert services_without_health(SERVICES) == []


def test_a_service_that_nobody_checks_is_found() -> None:
    assert services_without_health({"db": {"image": "postgres:18"}}) == ["db"]


def test_what_the_image_copies_reaches_the_builder_and_nothing_else() -> None:
    copies = [step for stage in read_stages(DOCKERFILE) for step in stage.named("COPY") if not step.copied_from]
    copied = {source.rstrip("/") for step in copies for source in step.sources}
    let_in = set(re.findall(r"^!(\S+)$", IGNORE, flags=re.MULTILINE))
    assert copied == let_in
    reaching = files_of_context(ROOT, IGNORE)
    assert [name for name in copied if not any(f"{file}/".startswith(f"{name}/") for file in reaching)] == []


def test_what_builds_the_package_reaches_the_builder() -> None:
    """The build's own module, and the lock and the manifest that it reads."""
    assert {"setup/build_backend.py", "requirements/runtime.lock", "MANIFEST.in"} <= set(files_of_context(ROOT, IGNORE))


def schema_faults(document: dict[str, Any]) -> list[str]:
    return [error.message for error in jsonschema.Draft7Validator(SCHEMA).iter_errors(document)]


def test_composes_own_schema_takes_the_file() -> None:
    assert schema_faults(COMPOSE) == []


@pytest.mark.parametrize(
    ("service", "fault"),
    [({"image": "a", "port": ["1:1"]}, "'port'"), ({"image": "a", "restart": 1}, "1 is not of type 'string'")],
)
def test_composes_own_schema_refuses_a_slip(service: dict[str, Any], fault: str) -> None:
    assert fault in "".join(schema_faults({"services": {"a": service}}))


def test_the_image_is_built_once_and_never_pulled() -> None:
    """Else Compose asks a registry for an image of that name first, which may be anybody's."""
    ours = {name: one for name, one in SERVICES.items() if one["image"] == COMPOSE["x-airflow"]["image"]}
    assert {name for name, one in ours.items() if "build" in one} == {"airflow-init"}
    assert {name: one["pull_policy"] for name, one in ours.items()} == {
        name: "build" if name == "airflow-init" else "never" for name in ours
    }


def test_the_only_contract_is_the_shops_and_airflow_has_its_connections() -> None:
    shop = SERVICES["shop"]
    assert shop["entrypoint"][-1] == AIRFLOW["TALLYSTICK_CONTRACTS_DIR"]
    for connection in (SHOP.kafka.connection, SHOP.ledger.connection):
        assert f"AIRFLOW_CONN_{connection.upper()}" in AIRFLOW
    assert SERVICES["airflow-dag-processor"]["depends_on"]["shop"] == {"condition": "service_healthy"}
    assert AIRFLOW["AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION"] == "False"


def test_the_folders_that_are_mounted_are_there() -> None:
    mounted = {volume.partition(":")[0] for one in SERVICES.values() for volume in one.get("volumes", ())}
    folders = {name for name in mounted if name.startswith("./")}
    assert folders == {"./dags", "./docs/examples/walk", "./docs/examples/compose"}
    assert [name for name in folders if not (ROOT / name).is_dir()] == []
    assert mounted - folders == set(COMPOSE["volumes"])


def test_the_environment_that_is_made_has_a_fresh_value_for_each_name() -> None:
    example = (ROOT / ".env.example").read_text()
    one, other = (dict(re.findall(r"^(\w+)=(.+)$", filled(example), flags=re.MULTILINE)) for _ in range(2))
    assert set(one) == set(re.findall(r"^(\w+)=", example, flags=re.MULTILINE))
    assert len({*one.values(), *other.values()}) == 2 * len(one)
    Fernet(one["TALLYSTICK_FERNET_KEY"])
    assert len(base64.urlsafe_b64decode(one["TALLYSTICK_KAFKA_CLUSTER_ID"] + "==")) == 16
    passwords = [value for name, value in one.items() if "PASSWORD" in name]
    assert [value for value in passwords if not re.fullmatch(r"[0-9a-f]{48}", value)] == []
