"""A bad input ends in a named error that stores nothing, or in a verdict that says why it proves nothing."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from confluent_kafka.admin import AdminClient
from kafka.admin import KafkaAdminClient

from lab.servers.ports import free_port
from tallystick.connections.connections import environment_variable
from tallystick.contract.contract import Contract
from tallystick.kafka_log import fetch
from tallystick.kafka_log.fetch import BrokerUnreachable, OffsetNotInLog
from tallystick.kafka_log.topic_snapshot import TopicNotFound
from tallystick.ledger.protocol import LedgerRefused, LedgerUnreachable
from tallystick.model.finding_names import Doubt
from tallystick.model.open_item import ItemState
from tallystick.model.stored_run import StoredRun
from tallystick.model.verdict import Verdict
from tallystick.store.runs.cut_store import last_cut, open_cut
from tallystick.store.runs.run_store import read_run
from tallystick_spark import reconcile_app
from tests.stack.live_books import (
    KAFKA,
    LEDGER,
    TWO_LEGS,
    Event,
    LiveBooks,
    both_legs,
    doubts,
    payment,
    payments,
    table_contents,
)

from .live import NewBooks

Break = Callable[[LiveBooks, pytest.MonkeyPatch], None]
"""Spoil something for the length of a test."""


def broker_that_does_not_answer(books: LiveBooks, patch: pytest.MonkeyPatch) -> None:
    def impatient(**settings: object) -> KafkaAdminClient:
        return KafkaAdminClient(**{**settings, "bootstrap_timeout_ms": 500})

    patch.setattr(fetch, "KafkaAdminClient", impatient)
    patch.setenv(environment_variable(KAFKA), json.dumps({"bootstrap.servers": f"127.0.0.1:{free_port()}"}))


def ledger_that_does_not_answer(books: LiveBooks, patch: pytest.MonkeyPatch) -> None:
    dsn = books.connections.ledger_dsn
    port = str(books.stack.ledger_server.port)
    patch.setenv(environment_variable(LEDGER), dsn.replace(f":{port}/", f":{free_port()}/"))


def wrong_password(books: LiveBooks, patch: pytest.MonkeyPatch) -> None:
    password = books.stack.ledger_server.passwords["tallystick_reader"]
    patch.setenv(environment_variable(LEDGER), books.connections.ledger_dsn.replace(password, "not-the-passw0rd"))


def _ledger(books: LiveBooks, **changes: object) -> LiveBooks:
    document = books.contract.model_dump(mode="json")
    document["ledger"] |= changes
    return replace(books, contract=Contract.model_validate(document))


def unknown_topic(books: LiveBooks) -> LiveBooks:
    document = books.contract.model_dump(mode="json")
    document["legs"]["payment"] += ".nowhere"
    return replace(books, contract=Contract.model_validate(document))


def view(books: LiveBooks) -> LiveBooks:
    books.ledger.execute(f"CREATE VIEW {books.table}_view AS SELECT * FROM {books.table}")
    return _ledger(books, table=f"{books.table}_view")


@pytest.mark.parametrize(
    ("spoil", "error", "says"),
    [
        (broker_that_does_not_answer, BrokerUnreachable, r"Kafka at 127\.0\.0\.1:\d+: "),
        (ledger_that_does_not_answer, LedgerUnreachable, r"ledger: .* port \d+ failed: Connection refused"),
        (wrong_password, LedgerUnreachable, 'ledger: .*password authentication failed for user "tallystick_reader"'),
    ],
)
def test_a_side_that_does_not_answer_is_a_named_error_and_no_cut(
    new_books: NewBooks, monkeypatch: pytest.MonkeyPatch, spoil: Break, error: type[Exception], says: str
) -> None:
    with new_books(direction="topic_to_ledger") as books:
        with monkeypatch.context() as patch:
            spoil(books, patch)
            with pytest.raises(error, match=says) as raised:
                books.take_cut(settled=False)
        assert "not-the-passw0rd" not in str(raised.value)
        assert last_cut(books.store, books.contract.name) is None
        assert books.take_cut().is_baseline


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        (unknown_topic, TopicNotFound, r"topic \w+\.payment\.nowhere: the cluster has no such topic"),
        (view, LedgerRefused, r"ledger table \w+\.posting_view: is no base table; .* have no transaction id"),
        (lambda books: _ledger(books, table="no.where"), LedgerRefused, r"ledger table no\.where: no such table"),
        (
            lambda books: _ledger(books, columns={"amount_minor": "amount_major"}),
            LedgerRefused,
            r'ledger table \w+\.posting: column "amount_major" does not exist',
        ),
        (lambda books: _ledger(books, columns={"leg": "nothing"}), LedgerRefused, 'column "nothing" does not exist'),
        (lambda books: _ledger(books, columns={"match_key": "no"}), LedgerRefused, 'column "no" does not exist'),
        (lambda books: _ledger(books, where="side ="), LedgerRefused, r"ledger table \w+\.posting: syntax error"),
        (
            lambda books: _ledger(books, columns={"amount_minor": "currency"}),
            LedgerRefused,
            r"ledger table \w+\.posting: .*bigint",
        ),
    ],
)  # fmt: skip
def test_a_contract_that_does_not_fit_is_refused_before_a_cut_is_stored(
    new_books: NewBooks, change: Callable[[LiveBooks], LiveBooks], error: type[Exception], says: str
) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.post(payment("a"))
        with pytest.raises(error, match=says):
            change(books).take_cut(settled=False)
        assert last_cut(books.store, books.contract.name) is None


@pytest.mark.usefixtures("spark")
def test_a_stored_cut_outlives_every_failed_attempt_and_is_judged_when_all_is_well(
    new_books: NewBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    with new_books(direction="topic_to_ledger", legs=TWO_LEGS) as books:
        books.take_cut()
        books.both(*both_legs("a", "b"))
        cut = books.take_cut()
        before = table_contents(books.store, leave_out=("attempt",))
        for spoil, error in (
            (broker_that_does_not_answer, BrokerUnreachable),
            (ledger_that_does_not_answer, LedgerUnreachable),
            (wrong_password, LedgerUnreachable),
            (_hide_table, LedgerRefused),
        ):
            with monkeypatch.context() as patch:
                spoil(books, patch)
                with pytest.raises(error):
                    books.judge(cut)
            books.ledger.execute(f"ALTER TABLE IF EXISTS {books.table}_hidden RENAME TO posting")
            assert read_run(books.store, cut.contract, cut.n) is None
            assert open_cut(books.store, cut.contract) == cut
            assert table_contents(books.store, leave_out=("attempt",)) == before
        run = books.judge(cut)
        assert (run.result.verdict, run.attempt) == (Verdict.MATCHED, 5)


def _hide_table(books: LiveBooks, _: pytest.MonkeyPatch) -> None:
    books.ledger.execute(f"ALTER TABLE {books.table} RENAME TO posting_hidden")


@pytest.mark.usefixtures("spark")
def test_events_that_expired_before_any_cut_are_a_doubt_and_their_rows_no_phantoms(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        lost, kept = _in_partition(0, 2), payments("kept", "also kept")
        books.produce(*lost)
        books.produce(*kept)
        books.post(*lost, *kept)
        books.wait_stable()
        books.delete_records("payment", 0, before=2)
        run = books.next_run()
        _assert_only_expired(run, offsets=2, undecidable=lost)
        assert run.result.figures.matched_rows == 2
        books.both(*payments("a", "b"))
        assert books.next_run().result.verdict is Verdict.MATCHED


@pytest.mark.usefixtures("spark")
def test_events_that_expire_after_their_cut_was_stored_close_it_and_are_not_called_missing(
    new_books: NewBooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First in the middle of an attempt, which fails and stores nothing; then before the next one begins."""
    with new_books(direction="ledger_to_topic") as books:
        books.take_cut()
        lost, kept = _in_partition(0, 3), _in_partition(1, 2)
        books.both(*lost, *kept)
        cut = books.take_cut()
        end = books.snapshot()[0].high_watermark
        books.delete_records("payment", 0, before=end)
        with monkeypatch.context() as patch:
            patch.setattr(reconcile_app, "without_expired", lambda cut, partitions: cut)
            with pytest.raises(Exception, match=r"(?i)offset") as raised:
                books.judge(cut)
        assert isinstance(raised.value, OffsetNotInLog) or "OffsetOutOfRange" in str(raised.value)
        assert read_run(books.store, cut.contract, cut.n) is None
        assert open_cut(books.store, cut.contract) == cut

        run = books.judge(cut)
        _assert_only_expired(run, offsets=end, undecidable=lost)
        assert run.result.figures.matched_rows == 2
        assert open_cut(books.store, cut.contract) is None
        books.both(*payments("a", "b"))
        assert books.next_run().result.verdict is Verdict.MATCHED


@pytest.mark.usefixtures("spark")
def test_a_topic_that_was_made_again_after_its_cut_is_not_read_in_its_place(new_books: NewBooks) -> None:
    with new_books(direction="ledger_to_topic") as books:
        books.take_cut()
        books.both(*payments("a", "b"))
        cut = books.take_cut()
        topic = books.contract.legs["payment"]
        admin = AdminClient({"bootstrap.servers": books.stack.bootstrap_servers})
        admin.delete_topics([topic])[topic].result(30)
        books.make_topics()
        books.produce(*payments("a", "b"), writer="another")
        run = books.judge(cut)
        assert (run.result.verdict, run.result.breaks) == (Verdict.INCONCLUSIVE, ())
        assert set(doubts(run)) == {Doubt.PARTNER_NOT_SETTLED, Doubt.TOPIC_RECREATED, Doubt.VACUOUS_RUN}
        assert run.result.figures.topic_rows == 0


@pytest.mark.usefixtures("spark")
def test_payloads_that_do_not_parse_are_counted_and_placed_and_shown_nowhere(
    new_books: NewBooks, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = "4111-1111-1111-1111"
    no_amount = json.loads(payment("no amount").value) | {"amount_minor": None}
    fraction = json.loads(payment("a fraction").value) | {"amount_minor": 10.5}
    values = (
        f"not json {secret}".encode(),
        json.dumps([secret]).encode(),
        json.dumps(no_amount | {"leg": secret}).encode(),
        json.dumps(fraction | {"leg": secret}).encode(),
        b"\xff\xfe" + secret.encode(),
        None,
    )
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        books.both(*payments("a", "b"))
        for value in values:
            books.produce_raw(value, partition=1)
        run = books.next_run()
        assert (run.result.verdict, run.result.breaks) == (Verdict.INCONCLUSIVE, ())
        assert doubts(run) == [Doubt.UNREADABLE_PAYLOAD]
        assert (run.result.figures.unreadable_records, run.result.figures.matched_rows) == (6, 2)
        assert f"{books.contract.legs['payment']}[1] at " in run.result.doubts[0].sentence
        assert secret not in str(table_contents(books.store))
        assert secret not in capsys.readouterr().out
        assert all(not part.unexplained for part in run.result.figures.census)


@pytest.mark.usefixtures("spark")
def test_a_side_without_anything_proves_nothing(new_books: NewBooks) -> None:
    with new_books(direction="topic_to_ledger") as books:
        books.take_cut()
        both_empty = books.next_run().result
        assert both_empty.verdict is Verdict.INCONCLUSIVE
        assert [found.doubt for found in both_empty.doubts] == [Doubt.VACUOUS_RUN]
        books.produce(payment("a"))
        empty_ledger = books.next_run().result
        assert empty_ledger.verdict is Verdict.BROKEN
        assert Doubt.VACUOUS_RUN in [found.doubt for found in empty_ledger.doubts]
    with new_books(direction="topic_to_ledger", empty="allowed") as books:
        books.take_cut()
        assert books.next_run().result.verdict is Verdict.MATCHED
        books.post(payment("a"))
        empty_topic = books.next_run().result
        assert empty_topic.verdict is Verdict.BROKEN
        assert Doubt.VACUOUS_RUN in [found.doubt for found in empty_topic.doubts]


def _in_partition(partition: int, count: int) -> tuple[Event, ...]:
    names = (f"{partition}-{number}" for number in range(100))
    return tuple(one for one in payments(*names) if one.partition == partition)[:count]


def _assert_only_expired(run: StoredRun, *, offsets: int, undecidable: tuple[Event, ...]) -> None:
    assert (run.result.verdict, run.result.breaks) == (Verdict.INCONCLUSIVE, ())
    assert doubts(run) == [Doubt.PARTNER_NOT_SETTLED, Doubt.LOG_EXPIRED]
    assert f"[0]: {offsets} offsets, 0 to {offsets}, had left the log" in run.result.doubts[1].sentence
    states = {item.match_key: item.state for item in run.result.items}
    assert states == {event.event_id: ItemState.UNDECIDABLE for event in undecidable}
