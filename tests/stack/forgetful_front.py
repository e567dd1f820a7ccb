"""A port that leads to a real broker and leaves requests out of what it says that it knows: so it looks like an older
one, and every client keeps to that.

Source: Kafka's protocol guide, ApiVersions; KIP-482 for its compact form.
"""

import asyncio
import struct
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

KIP_664 = (61, 65, 66)
"""DescribeProducers, DescribeTransactions, ListTransactions: in 2.8 and 3.0."""

_API_VERSIONS, _COMPACT_SINCE = 18, 3


@contextmanager
def forgetful_front(port: int, upstream_port: int, *, without: Collection[int]) -> Iterator[None]:
    """Listen on `port` while the block runs. without: keys of requests."""

    async def lead(client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        asked: dict[int, int] = {}
        with suppress(OSError, asyncio.IncompleteReadError):
            server, there = await asyncio.open_connection("127.0.0.1", upstream_port)
            await asyncio.gather(_requests(client, there, asked), _answers(server, back, asked, without))
        back.close()

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    listener = asyncio.run_coroutine_threadsafe(asyncio.start_server(lead, "127.0.0.1", port), loop).result()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(listener.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _requests(client: asyncio.StreamReader, there: asyncio.StreamWriter, asked: dict[int, int]) -> None:
    with suppress(OSError, asyncio.IncompleteReadError):
        while True:
            frame = await _frame(client)
            key, version, correlation = struct.unpack_from(">hhi", frame, 4)
            if key == _API_VERSIONS:
                asked[correlation] = version
            there.write(frame)
            await there.drain()
    there.close()


async def _answers(
    server: asyncio.StreamReader, back: asyncio.StreamWriter, asked: dict[int, int], without: Collection[int]
) -> None:
    with suppress(OSError, asyncio.IncompleteReadError):
        while True:
            frame = await _frame(server)
            (correlation,) = struct.unpack_from(">i", frame, 4)
            if correlation in asked:
                body = known_without(frame[8:], asked.pop(correlation), without)
                frame = struct.pack(">ii", len(body) + 4, correlation) + body
            back.write(frame)
            await back.drain()
    back.close()


def known_without(body: bytes, version: int, without: Collection[int]) -> bytes:
    """Return an answer to ApiVersions that lacks these keys; one that is an error as it is."""
    (error,) = struct.unpack_from(">h", body)
    if error:
        return body
    compact = version >= _COMPACT_SINCE
    head, size = (1, 7) if compact else (4, 6)  # of the count, below 128 where it is compact; of one entry and its tags
    count = body[2] - 1 if compact else struct.unpack_from(">i", body, 2)[0]
    begin = 2 + head
    entries = [body[begin + size * n : begin + size * (n + 1)] for n in range(count)]
    kept = [entry for entry in entries if struct.unpack_from(">h", entry)[0] not in without]
    counted = bytes([len(kept) + 1]) if compact else struct.pack(">i", len(kept))
    return body[:2] + counted + b"".join(kept) + body[begin + size * count :]


async def _frame(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(4)
    return head + await reader.readexactly(int.from_bytes(head, "big"))
