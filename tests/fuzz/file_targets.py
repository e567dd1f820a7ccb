"""What stands in files and in a ledger's rows: contracts, key indexes, and values."""

import tempfile
from decimal import Decimal
from functools import cache
from pathlib import Path
from unicodedata import category

import numpy as np
import pyarrow as pa
from sqlalchemy import types

from tallystick.contract.compare import CompareRule, Kind, compared_columns, text_of_json
from tallystick.contract.contract import ContractRefused, load_contract
from tallystick.contract.equality import LONG_MAX, LONG_MIN, whole_minor
from tallystick.kafka_log.event_decoder import minor_units, unfit
from tallystick.ledger.jdbc import key_value
from tallystick.ledger.key_index import (
    IndexIncomplete,
    IndexUnreadable,
    ReadableIndexes,
    commit_index,
    key_hash,
    readable_indexes,
)
from tallystick.matching.row_identity import row_item_id
from tallystick.matching.scan_result import ledger_item_id
from tallystick.text.money import format_minor, is_known_currency, minor_unit_digits
from tallystick.text.plain import escape_untrusted, printed_text, story_text
from tallystick_spark.readers.compared_text import texts_of_json, with_compared_text
from tallystick_spark.readers.key_index_files import IndexWriter

from .pieces import Pieces


@cache
def _folder() -> Path:
    """One for all inputs of a process: a file each would cost more than the target."""
    made = tempfile.TemporaryDirectory(prefix="fuzz-")
    _KEPT.append(made)
    return Path(made.name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def contracts(data: bytes) -> None:
    """A contract's file: a contract, or each fault in words."""
    path = _folder() / "contract.yaml"
    path.write_bytes(data)
    try:
        contract = load_contract(path)
    except ContractRefused:
        return
    assert len(contract.fingerprint) == 64


SEED, KEYS = 7, ("ev-0", "ev-1", "ev-2", "ev-3")


@cache
def index_file() -> bytes:
    """An index as a task writes it."""
    folder = _folder() / "written"
    writer = IndexWriter(folder, SEED)
    writer.add("payouts", 0, [key.encode() for key in KEYS], np.arange(len(KEYS), dtype=np.int64))
    writer.close()
    (path,) = folder.glob("*.parquet")
    return path.read_bytes()


def key_indexes(data: bytes) -> None:
    """Bytes that are laid over an index's file. As a verdict names it, it is whole or lost, and nothing is made up.

    The first byte says whether they are put before the verdict names the file, as who writes there at that time can.
    """
    pieces = Pieces(data)
    named_first, at = pieces.byte() % 2, pieces.number(">H")
    artifacts = _folder() / "artifacts"
    path = artifacts / "index" / "0.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    whole, over = index_file(), pieces.rest()
    laid = over if at > len(whole) else whole[:at] + over + whole[at + len(over) :]
    path.write_bytes(whole if named_first else laid)
    try:
        sealed = commit_index(artifacts, path.parent, copies=len(KEYS), kept_from=0, seed=SEED)
    except IndexIncomplete:
        return
    if named_first:
        path.write_bytes(laid)
    indexes = readable_indexes(artifacts, {3: sealed})
    assert (3 in indexes.by_cut) is (laid == whole or not named_first)
    _ask(indexes, is_ours=laid == whole)


def _ask(indexes: ReadableIndexes, *, is_ours: bool) -> None:
    try:
        found = indexes.look_up(KEYS)
    except IndexUnreadable:
        assert not is_ours
        return
    assert found.keys() <= set(KEYS)
    if is_ours:
        assert {key: [copy.item_id for copy in copies] for key, copies in found.items()} == {
            key: [f"topic:payouts:0:{n}"] for n, key in enumerate(KEYS)
        }


def rows(data: bytes) -> None:
    """Texts of a ledger's row: an amount, a currency, and what names it."""
    pieces = Pieces(data)
    amount, currency, name = (_text(pieces.sized()) for _ in range(3))
    _money(amount, currency)
    unfit(name, "name")
    assert row_item_id(ledger_item_id(name)) == ledger_item_id(name) or "#" in name
    for shown in (escape_untrusted(name), story_text(name), printed_text(name)):
        shown.encode()  # no lone surrogate is left, nor anything that acts
        assert not any(category(one) in ("Cc", "Cf") for one in shown.replace("\n", ""))
    assert len(escape_untrusted(name)) < 3_000
    for column in (types.Integer(), types.BigInteger(), types.Numeric(), types.Uuid(), types.Text()):
        for dialect in ("postgresql", "sqlite", "mysql"):
            key_value(column, name, dialect=dialect)
    key_hash(name.encode("utf-8", "replace").decode(), SEED)


_KINDS: tuple[Kind, ...] = ("text", "number", "time")


def compared_texts(data: bytes) -> None:
    """The first byte picks a kind, the rest are values of one column, as JSON and as a ledger's: each is written so."""
    pieces = Pieces(data)
    columns = compared_columns({"it": CompareRule(exact=_KINDS[pieces.byte() % len(_KINDS)])})
    values = []
    while pieces:
        values.append(pieces.sized())
    in_topic = texts_of_json([pa.array([value or b"" for value in values], pa.binary())], columns)
    assert in_topic.to_pylist() == [columns.text_of([text_of_json(value or b"")]) for value in values]
    said = [None if value is None else value.decode(errors="backslashreplace") for value in values]
    rows = pa.record_batch({"compared_0": pa.array(values, pa.binary()).view(pa.string())})
    in_ledger = with_compared_text(rows, columns)["compared_text"]
    assert in_ledger.to_pylist() == [columns.text_of([one]) for one in said]


def _money(amount: str, currency: str) -> None:
    whole = whole_minor(amount)
    assert whole is None or LONG_MIN <= whole <= LONG_MAX
    minor = minor_units(amount, currency)
    if minor is not None:
        assert Decimal(amount).scaleb(minor_unit_digits(currency.upper())) == minor
        assert LONG_MIN <= minor <= LONG_MAX
        format_minor(minor, currency.upper())
    is_known_currency(currency)
    if whole is not None:
        format_minor(whole, currency)


def _text(written: bytes | None) -> str:
    """As a database gives one: any characters, a lone surrogate too where it does not look."""
    try:
        return (written or b"").decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return (written or b"").decode("latin-1")
