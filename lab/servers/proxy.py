"""A TCP proxy in front of the brokers that loses one acknowledgement or one request, or stalls, on request.

Armed for a client id, it lets that client's next request of a kind (a Produce, unless told otherwise) through, waits
for the broker's answer, swallows the answer and cuts both connections: the write really happened, and its writer cannot
know. Or it swallows the request, and cuts once the one behind it was answered: what was sent first, and is sent again,
comes second. Or the connection stalls with the request in it: the rest stays unread, as in a network that stands still,
until it is told how the stall ends. All else passes unchanged.
Runs as a process of its own (`python -m lab.servers.proxy`); any process steers it through `ProxyControl`.

Does not look into records. A request with acks=0 has no answer, so arming does nothing for it.
"""

import argparse
import asyncio
import json
import socket
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from lab.servers import process
from lab.servers.ports import free_port

_LOCALHOST = "127.0.0.1"


class Request(IntEnum):
    """The api keys of what a producer asks for, or who ends its transaction. Source: Kafka protocol guide."""

    PRODUCE = 0
    INIT_PRODUCER_ID = 22
    ADD_PARTITIONS_TO_TXN = 24  # may stall, and is never lost
    END_TXN = 26
    WRITE_TXN_MARKERS = 27


_MAY_BE_LOST = (Request.PRODUCE, Request.INIT_PRODUCER_ID, Request.END_TXN, Request.WRITE_TXN_MARKERS)


class Loss(StrEnum):
    """What of a request is lost on the way; stall: its time."""

    ANSWER = "answer"
    REQUEST = "request"
    STALL = "stall"


class StallEnd(StrEnum):
    """How a connection that stood still goes on. last: with this request, and what stands behind it is lost."""

    PASS = "pass"
    LAST = "last"
    CUT = "cut"


@dataclass(frozen=True)
class ProxyControl:
    """Steers a running proxy over its control port."""

    control_port: int

    def arm(
        self, client_id: str, *, times: int = 1, loss: Loss = Loss.ANSWER, request: Request = Request.PRODUCE
    ) -> None:
        """Lose that of the next `times` requests of this kind and client id."""
        self._ask({"arm": client_id, "times": times, "loss": loss, "request": request})

    def fired(self, client_id: str, *, loss: Loss = Loss.ANSWER, request: Request = Request.PRODUCE) -> int:
        """Count what this client id has lost so far."""
        return int(self._ask({"fired": client_id, "loss": loss, "request": request})["fired"])

    def wait_fired(
        self,
        client_id: str,
        count: int,
        *,
        loss: Loss = Loss.ANSWER,
        request: Request = Request.PRODUCE,
        deadline_seconds: float = 20.0,
    ) -> None:
        """Return once this client id has lost `count`. Raises NotReadyInTime."""
        process.wait_until(
            lambda: self.fired(client_id, loss=loss, request=request) >= count,
            what=f"lost {loss} to a {request.name} of {client_id}",
            deadline_seconds=deadline_seconds,
        )

    def end_stall(self, client_id: str, end: StallEnd) -> None:
        """Let the connection of this client id that stands still go on, or cut it. One of them stalls at a time."""
        self._ask({"end_stall": client_id, "end": end})

    def _ask(self, question: dict[str, object]) -> dict[str, int]:
        place = (_LOCALHOST, self.control_port)
        with socket.create_connection(place, timeout=5) as connection, connection.makefile("rw") as lines:
            lines.write(json.dumps(question) + "\n")
            lines.flush()
            answer: dict[str, int] = json.loads(lines.readline())
            return answer


@dataclass
class Proxy:
    """The proxy's process, seen from the lab."""

    log: Path
    ways: Mapping[int, int]  # from the port it listens on to the broker's
    control_port: int = field(default_factory=free_port)
    child: subprocess.Popen[bytes] | None = None

    @property
    def control(self) -> ProxyControl:
        return ProxyControl(self.control_port)

    def start(self) -> None:
        """Start the proxy and return once it listens."""
        ways = [f"{port}:{upstream_port}" for port, upstream_port in self.ways.items()]
        argv = [sys.executable, "-m", "lab.servers.proxy", str(self.control_port), *ways]
        self.child = process.spawn(argv, log=self.log)
        process.wait_until(lambda: process.port_answers(self.control_port), what="the proxy")

    def stop(self) -> None:
        """End the proxy and all connections through it; safe to call again."""
        process.stop(self.child)


_Target = tuple[Loss, int, str]  # api key, client id


@dataclass
class _Losses:
    """What is to be lost, and what was; per kind of request and client id."""

    armed: Counter[_Target] = field(default_factory=Counter)
    fired: Counter[_Target] = field(default_factory=Counter)
    stalls: dict[str, asyncio.Future[StallEnd]] = field(default_factory=dict)  # by client id

    def take(self, target: _Target) -> bool:
        if self.armed[target] == 0:
            return False
        self.armed[target] -= 1
        return True

    async def stand_still(self, api_key: int, client_id: str) -> StallEnd:
        """Return at once, or, where a stall is due, once somebody has said how it ends."""
        if not self.take((Loss.STALL, api_key, client_id)):
            return StallEnd.PASS
        self.stalls[client_id] = asyncio.get_running_loop().create_future()
        self.fired[Loss.STALL, api_key, client_id] += 1
        return await self.stalls[client_id]


@dataclass
class _Relay:
    """One client connection and its twin to the broker."""

    client: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    broker: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    losses: _Losses
    doomed: dict[int, _Target] = field(default_factory=dict)  # by correlation id
    overtaking: bool = False  # a request was swallowed, and the next one goes before it
    overtaker: int | None = None  # its correlation id

    async def run(self) -> None:
        """Pass frames both ways until either side ends or a loss is complete; then cut both."""
        ways = [asyncio.create_task(self._requests()), asyncio.create_task(self._answers())]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        self.client[1].close()
        self.broker[1].close()

    async def _requests(self) -> None:
        while True:
            head = await _read_head(self.client[0])
            api_key, _, correlation_id, length = struct.unpack_from(">hhih", head, 4)
            client_id = head[14 : 14 + length].decode() if length > 0 else ""
            end = await self.losses.stand_still(api_key, client_id)
            if end is StallEnd.CUT:
                return
            frame = head + await self.client[0].readexactly(4 + int.from_bytes(head[:4], "big") - len(head))
            if self._is_lost(api_key, client_id, correlation_id):
                continue
            self.broker[1].write(frame)
            await self.broker[1].drain()
            if end is StallEnd.LAST:
                self.overtaker = correlation_id
                await asyncio.get_running_loop().create_future()  # until its answer ends this relay

    def _is_lost(self, api_key: int, client_id: str, correlation_id: int) -> bool:
        """Whether this request is swallowed; notes it where its answer will be."""
        if api_key not in _MAY_BE_LOST or not client_id:
            return False
        if self.overtaking and self.overtaker is None:
            self.overtaker = correlation_id
        elif self.losses.take((Loss.REQUEST, api_key, client_id)):
            self.overtaking = True
            self.losses.fired[Loss.REQUEST, api_key, client_id] += 1
            return True
        elif self.losses.take((Loss.ANSWER, api_key, client_id)):
            self.doomed[correlation_id] = (Loss.ANSWER, api_key, client_id)
        return False

    async def _answers(self) -> None:
        while True:
            frame = await _read_frame(self.broker[0])
            (correlation_id,) = struct.unpack_from(">i", frame, 4)
            if correlation_id in self.doomed:
                self.losses.fired[self.doomed[correlation_id]] += 1
                return
            self.client[1].write(frame)
            await self.client[1].drain()
            if correlation_id == self.overtaker:
                return


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    """Read one Kafka frame: four bytes of length, then that many bytes."""
    head = await reader.readexactly(4)
    return head + await reader.readexactly(int.from_bytes(head, "big"))


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    """Read a request's frame up to the end of its client id; the rest stays where it is."""
    head = await reader.readexactly(14)
    length = int.from_bytes(head[12:], "big", signed=True)
    return head + await reader.readexactly(max(length, 0))


async def _serve(control_port: int, ways: Sequence[tuple[int, int]]) -> None:
    losses = _Losses()

    async def pass_on(upstream_port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            broker = await asyncio.open_connection(_LOCALHOST, upstream_port)
        except OSError:  # the broker is down: the client sees its connection refused
            writer.close()
            return
        await _Relay((reader, writer), broker, losses).run()

    async def steer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = await reader.readline()
        if line:
            writer.write(json.dumps(_answer(json.loads(line), losses)).encode() + b"\n")
            await writer.drain()
        writer.close()

    async with AsyncExitStack() as servers:
        for port, upstream_port in ways:
            await servers.enter_async_context(
                await asyncio.start_server(partial(pass_on, upstream_port), _LOCALHOST, port)
            )
        control = await asyncio.start_server(steer, _LOCALHOST, control_port)
        async with control:
            await control.serve_forever()


def _answer(question: dict[str, Any], losses: _Losses) -> dict[str, int]:
    if "end_stall" in question:
        losses.stalls.pop(question["end_stall"]).set_result(StallEnd(question["end"]))
        return {}
    loss, request = Loss(question["loss"]), int(question["request"])
    if "arm" in question:
        target = (loss, request, question["arm"])
        losses.armed[target] += int(question["times"])
        return {"armed": losses.armed[target]}
    return {"fired": losses.fired[loss, request, question["fired"]]}


def _way(text: str) -> tuple[int, int]:
    port, upstream_port = text.split(":")
    return int(port), int(upstream_port)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("control_port", type=int)
    parser.add_argument("ways", type=_way, nargs="+", metavar="port:upstream_port")
    asyncio.run(_serve(**vars(parser.parse_args())))


if __name__ == "__main__":
    main()
