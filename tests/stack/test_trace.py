"""One key through three contracts on real servers: a service's two topics, and two ledgers behind its output.

The service loses one event, the first ledger's consumer loses one and doubles one, the second ledger is not judged yet.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from tallystick.cli.app import app
from tallystick.connections.connections import artifacts_folder, environment_variable
from tallystick.contract.contract import Contract

from .live import NewBooks
from .live_books import _POSTING, KAFKA, LEDGER, Event, LiveBooks, payments

FINE, SERVICE_LOST, POSTING_LOST, DOUBLED, LATER, ABORTED = payments(
    "fine", "service lost", "posting lost", "doubled", "later", "aborted"
)


@dataclass(frozen=True)
class World:
    """The service's contract, and two whose topic is the service's output."""

    service: LiveBooks
    posting: LiveBooks
    lake: LiveBooks

    @property
    def names(self) -> list[str]:
        return [one.contract.name for one in (self.service, self.posting, self.lake)]


@pytest.fixture(scope="module")
def world(spark: SparkSession, new_books: NewBooks) -> Iterator[World]:
    """After the service and the first ledger were judged once, and the second ledger only began."""
    with new_books(direction="topic_to_topic") as service, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TALLYSTICK_STORE_DSN", service.store.url.set(drivername="postgresql").render_as_string(False))
        schema = service.contract.name
        service.ledger.execute(_POSTING.format(table=f"{schema}.lake"))
        world = World(service, _behind(service, "posting", "posting"), _behind(service, "lake", "lake"))
        for books in (world.service, world.posting, world.lake):
            books.take_cut()
        request(service, FINE, SERVICE_LOST, POSTING_LOST, DOUBLED)
        service.produce(FINE, POSTING_LOST, DOUBLED)
        world.posting.post(FINE, DOUBLED, DOUBLED)
        world.lake.post(FINE, POSTING_LOST, DOUBLED)
        service.next_run()
        world.posting.next_run()
        request(service, LATER)
        service.produce(LATER)
        service.produce(ABORTED, abort=True)
        service.wait_stable()
        yield world


def request(service: LiveBooks, *events: Event) -> None:
    """One producer transaction with these inputs."""
    producer, (topic,) = service.producer("client"), service.contract.input_topics
    producer.begin_transaction()
    for event in events:
        producer.produce(topic, key=event.payment_id, value=event.value, partition=event.partition)
    assert producer.flush(30) == 0
    producer.commit_transaction()


def _behind(service: LiveBooks, table: str, suffix: str) -> LiveBooks:
    """The contract of a consumer that posts the service's output into a table."""
    name = service.contract.name
    document = {
        **service.contract.model_dump(mode="json", include={"version", "owner", "schedule", "start_date", "legs"}),
        "contract": f"{name}_{suffix}",
        "direction": "topic_to_ledger",
        "kafka": {"connection": KAFKA},
        "ledger": {"connection": LEDGER, "table": f"{name}.{table}", "where": "side LIKE 'cr%'"},
        "partner_grace_seconds": 0,
    }
    return replace(service, contract=Contract.model_validate(document))


def trace(event: Event, *options: str) -> Result:
    """By the command, whose output never has the key."""
    done = CliRunner().invoke(app, ["trace", "-", *options], input=f"{event.event_id}\n")
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert event.event_id not in done.output
    return done


def chain(world: World, event: Event, *options: str) -> dict[str, Any]:
    """The one chain, of all three."""
    document = json.loads(trace(event, "--json", "--contract", world.names[2], *options).stdout)
    (found,) = document["chains"]
    assert [hop["contract"] for hop in found["hops"]] == [world.names[0], *sorted(world.names[1:])]
    return dict(found)


def states(world: World, event: Event, *options: str) -> list[str]:
    """At the service, the first ledger and the second."""
    by_name = {hop["contract"]: hop["state"] for hop in chain(world, event, *options)["hops"]}
    return [by_name[name] for name in world.names]


def statements(found: dict[str, Any], contract: str) -> list[dict[str, Any]]:
    return next(hop["statements"] for hop in found["hops"] if hop["contract"] == contract)


def test_what_is_in_order_is_told_by_the_cut_that_read_it_and_what_no_cut_has_read_as_not_judged(world: World) -> None:
    service, posting, lake = world.names
    assert states(world, FINE) == ["matched", "matched", "not_judged"]
    found = chain(world, FINE)
    assert found["lost_at"] is None
    by_output = statements(found, posting)
    assert [one["run"] for one in by_output] == [f"{posting}/1"]
    assert by_output[0]["places"] == [statements(found, lake)[0]["places"][0]]
    assert by_output[0]["places"][0].startswith(f"topic:{world.posting.contract.topics[0]}:{FINE.partition}:")
    assert len(statements(found, service)) == 2
    assert {one["scheduler_run_id"].split("-")[0] for one in statements(found, service)} == {"run"}
    assert trace(FINE, "--contract", lake).exit_code == 0


@pytest.mark.parametrize(
    ("event", "at", "words", "expected", "break_class"),
    [
        (SERVICE_LOST, 0, "First lost at", ["broken", "not_seen", "not_judged"], "missing_in_topic_never_produced"),
        (POSTING_LOST, 1, "First lost at", ["matched", "broken", "not_judged"], "missing_in_ledger"),
        (DOUBLED, 1, "First doubled at", ["matched", "broken", "not_judged"], "duplicate_in_ledger"),
    ],
    ids=["service", "posting", "doubled"],
)
def test_the_contract_that_lost_or_doubled_it_first_is_named(
    world: World, event: Event, at: int, words: str, expected: list[str], break_class: str
) -> None:
    found = chain(world, event)
    assert states(world, event) == expected
    assert found["lost_at"] == world.names[at]
    assert found["sentence"].startswith(f"{words} {world.names[at]}: Cut 1 found a break, ")
    before = f" Before it, {world.names[0]} had it in order." if at else ""
    assert found["sentence"].endswith(f"; it is open.{before}")
    (told, *_) = statements(found, world.names[at])
    assert (told["break_class"], told["break_state"]) == (break_class, "open")
    assert told["places"] and told["run"] == f"{world.names[at]}/1"
    printed = trace(event, "--contract", world.names[2])
    assert printed.exit_code == 1
    assert f"tallystick explain {told['break_id'][:8]}" in printed.stdout


def test_what_no_cut_has_read_is_seen_on_the_broker_when_it_is_asked(world: World) -> None:
    assert states(world, LATER) == ["not_seen", "not_seen", "not_judged"]
    assert states(world, LATER, "--live") == ["not_judged"] * 3
    found = chain(world, LATER, "--live")
    assert "Seen by the broker now." in statements(found, world.names[1])[0]["sentence"]


def test_an_aborted_record_is_told_as_that_and_rows_are_found_with_their_cut(world: World) -> None:
    (told,) = statements(chain(world, ABORTED, "--live"), world.names[1])
    assert (told["state"], "aborted" in told["sentence"]) == ("not_seen", True)
    found = statements(chain(world, FINE, "--live"), world.names[1])
    assert {one["places"][0].partition(":")[0] for one in found} == {"topic", "ledger"}
    assert {one["run"] for one in found} == {f"{world.names[1]}/1"}


def test_a_ledger_that_does_not_answer_is_told_and_never_as_not_found(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(environment_variable(LEDGER), "postgresql://nobody@127.0.0.1:1/nowhere")
    told = statements(chain(world, LATER, "--live"), world.names[1])[-1]
    assert told["state"] == "not_asked"
    assert "could not be looked up: LedgerUnreachable" in told["sentence"]
    assert states(world, FINE, "--live") == ["matched", "matched", "not_judged"]
    assert trace(FINE, "--live", "--contract", world.names[2]).exit_code == 3


def test_without_its_index_of_keys_not_seen_is_not_said(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYSTICK_ARTIFACTS_DIR", str(artifacts_folder() / "elsewhere"))
    assert states(world, LATER) == ["not_asked", "not_asked", "not_judged"]
    assert trace(LATER, "--contract", world.names[2]).exit_code == 3
    assert states(world, POSTING_LOST)[1:] == ["broken", "not_judged"]


def test_a_chain_is_asked_by_the_name_of_any_of_its_contracts(world: World) -> None:
    refused = CliRunner().invoke(app, ["trace", "x", "--contract", "nowhere"])
    assert (refused.exit_code, "expected a contract that has books" in refused.output) == (2, True)
    assert CliRunner().invoke(app, ["trace", ""]).exit_code == 2
