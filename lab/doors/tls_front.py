"""TLS before a PostgreSQL, whose wheel is built without it."""

import asyncio
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from lab.doors.certificates import Certificates

SSL_REQUEST = struct.pack("!ii", 8, 80_877_103)
"""By which libpq asks for TLS. Source: PostgreSQL manual, message formats, SSLRequest."""


@contextmanager
def tls_in_front_of(port: int, certificates: Certificates, *, asks_clients: bool = False) -> Iterator[int]:
    """A port that leads to a PostgreSQL over TLS only, as 127.0.0.1: the wheel's own server is built without it.

    asks_clients: lets in only who shows a certificate of the CA.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.server)
    if asks_clients:
        context.load_verify_locations(certificates.ca)
        context.verify_mode = ssl.CERT_REQUIRED

    async def lead(client: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            if await client.readexactly(len(SSL_REQUEST)) == SSL_REQUEST:
                back.write(b"S")
                await back.start_tls(context)
                server, there = await asyncio.open_connection("127.0.0.1", port)
                await asyncio.gather(_pass_on(client, there), _pass_on(server, back))
        back.close()

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    listener = asyncio.run_coroutine_threadsafe(asyncio.start_server(lead, "127.0.0.1", 0), loop).result()
    try:
        yield listener.sockets[0].getsockname()[1]
    finally:
        loop.call_soon_threadsafe(listener.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _pass_on(one: asyncio.StreamReader, other: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await one.read(1 << 16):
            other.write(data)
            await other.drain()
    other.close()
