"""SECURITY.md says what is so: what the sample leaves open, what is pinned, and commands and places that there are."""

import re
from itertools import takewhile
from typing import Any

import pytest
import typer.main
import yaml

from lab.servers.process import REPOSITORY
from tallystick.cli.app import app

PAGE = (REPOSITORY / "SECURITY.md").read_text()
SAID = " ".join(PAGE.split())
COMPOSE_TEXT = (REPOSITORY / "docker-compose.yml").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load(COMPOSE_TEXT)
AIRFLOW: dict[str, str] = COMPOSE["x-airflow"]["environment"]
KAFKA: dict[str, str] = COMPOSE["services"]["kafka"]["environment"]
PROTOCOLS = {one.partition(":")[2] for one in KAFKA["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(",")}


def section(title: str) -> str:
    (text,) = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE, flags=re.MULTILINE | re.DOTALL)
    return " ".join(str(text).split())


@pytest.mark.parametrize(
    ("words", "is_so"),
    [
        ("Kafka asks for no login and speaks plain text", not PROTOCOLS - {"PLAINTEXT"}),
        ("and so do both PostgreSQL servers", "ssl=on" not in COMPOSE_TEXT),
        (
            "every secret in its environment, the fernet key and the tokens' secret too",
            {"AIRFLOW__CORE__FERNET_KEY", "AIRFLOW__API_AUTH__JWT_SECRET"} <= set(AIRFLOW),
        ),
        ("tasks run beside the scheduler (LocalExecutor)", AIRFLOW["AIRFLOW__CORE__EXECUTOR"] == "LocalExecutor"),
        ("may read every table there (`pg_read_all_data`)", "pg_read_all_data" in COMPOSE_TEXT),
        ("SimpleAuthManager with two users", AIRFLOW["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"].count(",") == 1),
        ("one broker, replication factor 1", KAFKA["KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR"] == "1"),
    ],
)
def test_what_the_sample_leaves_open_is_said_while_it_is_so(words: str, is_so: bool) -> None:
    assert (words in section("The compose file is a sample")) is is_so


def test_an_image_that_its_tag_alone_names_is_told() -> None:
    base = re.findall(r"^FROM (\S+)", (REPOSITORY / "Dockerfile").read_text(), flags=re.MULTILINE)
    images = [one for one in base if "@sha256:" not in one]
    assert images == [] or "| the image of Airflow in `Dockerfile` | **its tag only**" in PAGE


def test_contracts_are_code_and_data_is_not_trusted() -> None:
    model = section("Trust model")
    assert model.startswith("**Code is trusted.** Contracts and the folder of DAGs are code:")
    assert "**Data is not trusted.**" in model
    assert "an SQL condition that run under the ledger's reader and poster" in model


def test_a_hole_is_reported_privately() -> None:
    assert section("Reporting a vulnerability").startswith("Privately, through GitHub:")
    assert "open no public issue for it" in section("Reporting a vulnerability")


def named_commands() -> list[list[str]]:
    """Of `tallystick ...`, the words before the first argument or option."""
    named = re.findall(r"`tallystick ([^`]+)`", SAID)
    return [list(takewhile(re.compile(r"[a-z]+(-[a-z]+)*$").match, words.split())) for words in named]


def test_every_command_that_is_named_is_there() -> None:
    assert ["grants"] in named_commands()
    for words in named_commands():
        command: Any = typer.main.get_command(app)
        for word in words:
            assert word in command.commands, words
            command = command.commands[word]


def test_every_make_target_and_every_page_that_is_named_is_there() -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    targets = set(re.findall(r"`make ([a-z-]+)", PAGE))
    assert {"audit", "sbom", "routes", "pin-images"} <= targets
    assert targets - set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE)) == set()
    links = re.findall(r"\]\(([^)#]+)\)", PAGE)
    assert links
    assert [link for link in links if not (REPOSITORY / link).exists()] == []


def test_every_hole_of_before_names_tests_that_are_there() -> None:
    sources = "\n".join(path.read_text() for path in (REPOSITORY / "tests").rglob("test_*.py"))
    there = set(re.findall(r"def (test_\w+)\(", sources))
    (table,) = re.findall(r"^\| 0\.1\.0 \|.*\n\|---\|---\|\n((?:\|.*\n)+)", PAGE, flags=re.MULTILINE)
    named = [set(re.findall(r"`(test_\w+)`", line)) for line in table.splitlines()]
    assert len(named) > 15
    assert all(named)
    assert set().union(*named) - there == set()
