"""Each target takes its corpus, which has what once broke the product, and some thousand inputs made of it."""

import random
import threading
import time
from collections.abc import Iterator

import pytest

from tallystick.contract.event import EventFields
from tallystick.kafka_log import event_decoder
from tallystick.kafka_log.event_decoder import EventDecoder

from .pieces import Pieces, sized
from .targets import CORPUS, TARGETS, TooSlow, corpus_of, within_cpu_seconds

CORPUS_BYTES_MAX = 64 << 10
INPUT_SECONDS_MAX = 5
MADE = 300


@pytest.mark.parametrize("name", TARGETS)
def test_the_corpus_breaks_nothing(name: str) -> None:
    inputs = corpus_of(name)
    assert inputs
    for path in inputs:
        begun = time.process_time()
        TARGETS[name](path.read_bytes())
        assert time.process_time() - begun < INPUT_SECONDS_MAX, path.name


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_made_of_the_corpus_breaks_nothing(name: str) -> None:
    for data in made_of([path.read_bytes() for path in corpus_of(name)], random.Random(name)):
        TARGETS[name](data)


def made_of(inputs: list[bytes], dice: random.Random) -> Iterator[bytes]:
    """Bytes changed, cut out, said twice, or taken from another input."""
    for _ in range(MADE):
        data = bytearray(dice.choice(inputs))
        for _ in range(dice.randint(1, 4)):
            at, end = sorted(dice.randrange(len(data) + 1) for _ in range(2))
            other = dice.choice(inputs)
            match dice.randrange(4):
                case 0:
                    data[at : at + 1] = dice.randbytes(1)
                case 1:
                    del data[at:end]
                case 2:
                    data[at:at] = data[at:end]
                case _:
                    data[at:end] = other[dice.randrange(len(other) + 1) :]
        yield bytes(data)


def test_the_corpus_is_small_and_of_these_targets() -> None:
    assert {folder.name for folder in CORPUS.iterdir()} == set(TARGETS)
    assert sum(path.stat().st_size for path in CORPUS.glob("*/*")) < CORPUS_BYTES_MAX


def test_a_way_that_reads_otherwise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder that takes what the reader calls too deep."""
    deep = b'\x00{"event_id":"a","payment_id":"b","leg":"c","amount_minor":1,"currency":"EUR","x":%b%b}'
    data = deep % (b"[" * 101, b"]" * 101)
    TARGETS["events"](data)
    monkeypatch.setattr(event_decoder, "_are_sound", lambda _: True)
    with pytest.raises(AssertionError, match="columns say True, the reader 'it is nested more than 100 deep'"):
        TARGETS["events"](data)


def test_a_text_that_no_side_can_keep_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b'\x00{"event_id":"a\\u0000","payment_id":"b","leg":"c","amount_minor":1,"currency":"EUR"}'
    TARGETS["events"](data)
    monkeypatch.setattr(event_decoder, "unfit", lambda *_: "")
    assert not EventDecoder(EventFields()).read(data[1:]).problem
    with pytest.raises(AssertionError):
        TARGETS["events"](data)


def test_pieces_say_what_was_put_into_them_and_nothing_behind_their_end() -> None:
    pieces = Pieces(b"\x07" + sized(b"abc", None, b""))
    assert (pieces.byte(), pieces.sized(), pieces.sized(), pieces.sized()) == (7, b"abc", None, b"")
    assert not pieces
    assert (pieces.byte(), pieces.number(">i"), pieces.sized(), pieces.rest()) == (0, 0, b"", b"")


def test_an_input_over_which_the_process_computes_too_long_is_found() -> None:
    def computes(data: bytes) -> None:
        while data:
            pass

    timed = within_cpu_seconds(0.05, computes)
    timed(b"")
    with pytest.raises(TooSlow, match=r"expected an input to take 0\.05 CPU seconds at most"):
        timed(b"for ever")


def test_an_input_over_which_the_machine_does_other_things_is_not() -> None:
    def waits(data: bytes) -> None:
        assert other.wait(10)

    other = threading.Event()
    threading.Timer(0.2, other.set).start()
    within_cpu_seconds(0.05, waits)(b"")
