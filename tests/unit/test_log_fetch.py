"""Our way to read a connection gives kafka-python what its own would, and is the one that it takes."""

import socket
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from kafka.errors import KafkaConnectionError
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

from tallystick.log_fetch import RECEIVE_BYTES, receive


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The broker's end of a connection, and ours, which does not block."""
    theirs, ours = socket.socketpair()
    ours.setblocking(False)
    with theirs, ours:
        yield theirs, ours


def test_all_that_has_come_in_is_received_at_once(ends: tuple[socket.socket, socket.socket]) -> None:
    theirs, ours = ends
    theirs.sendall(b"first")
    theirs.sendall(b"second")
    assert receive(SimpleNamespace(_sock=ours)) == (b"firstsecond", None)
    assert receive(SimpleNamespace(_sock=ours)) == (b"", None)


def test_what_comes_by_more_pieces_than_one_is_received_whole() -> None:
    pieces = [b"a" * RECEIVE_BYTES, b"b", BlockingIOError()]
    assert receive(SimpleNamespace(_sock=_Scripted(pieces))) == (b"a" * RECEIVE_BYTES + b"b", None)


def test_a_connection_that_we_have_closed_is_an_error_and_no_crash() -> None:
    received, error = receive(SimpleNamespace(_sock=None))
    assert (received, type(error)) == (b"", KafkaConnectionError)


def test_a_connection_that_was_closed_or_reset_is_an_error_behind_what_it_still_gave(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    theirs, ours = ends
    theirs.sendall(b"last")
    theirs.close()
    received, error = receive(SimpleNamespace(_sock=ours))
    assert (received, type(error)) == (b"last", KafkaConnectionError)
    received, error = receive(SimpleNamespace(_sock=_Scripted([b"last", ConnectionResetError()])))
    assert (received, type(error)) == (b"last", KafkaConnectionError)


@pytest.mark.parametrize("transport", [KafkaTCPTransport, KafkaSSLTransport])
def test_the_client_receives_by_it(transport: type[KafkaTCPTransport]) -> None:
    assert transport._sock_recv is receive
    assert "_sock_recv" in transport._read_from_sock.__code__.co_names


class _Scripted:
    """A socket that answers what it was told to."""

    def __init__(self, answers: list[bytes | Exception]) -> None:
        self._answers = iter(answers)

    def recv(self, size: int) -> bytes:
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer
