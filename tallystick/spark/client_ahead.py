"""The client of a Spark Connect server, started before its cuts are made.

To load what it needs takes it longer than a small cut takes Spark, and can be done on another core while the sides
settle. It is told its cuts by its standard input, so nothing of them is in its argv.
"""

import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from tallystick.host.private_files import private_file, private_folder
from tallystick.spark.spark_job import REMOTE_VARIABLE, Observer, child, client_argv, listen

_ORDERS = "/dev/stdin"


class ClientAhead:
    """A client that waits for its cuts and judges once. log: where its words are until it is known whose they are."""

    def __init__(self, job: subprocess.Popen[str], errors: IO[str], log: Path) -> None:
        self.is_free = True
        self._job, self._errors, self._log = job, errors, log

    def judge(self, cuts: Iterable[tuple[Path, int]], *, log: Path, observe: Observer) -> None:
        """Hand it the cuts, each a contract's file and a number, and listen to its end; its log is `log` from now on.

        Raises SparkAppFailed, also where it had ended before.
        """
        self.is_free = False
        private_folder(log.parent)
        self._log.replace(log)
        orders = [json.dumps({"contract": str(contract_file), "cut": n}) + "\n" for contract_file, n in cuts]
        assert self._job.stdin is not None
        with suppress(BrokenPipeError), self._job.stdin as stdin:
            stdin.writelines(orders)
        listen(self._job, self._errors, log=log, observe=observe)


@contextmanager
def client_ahead(environment: Mapping[str, str], folder: Path) -> Iterator[ClientAhead | None]:
    """Start it, where the environment names a server: None otherwise. It has ended once the block has, used or not.

    folder: of this machine, where logs are written.
    """
    if not environment.get(REMOTE_VARIABLE):
        yield None
        return
    log = folder / "logs" / f"client_{os.getpid()}.log"
    private_folder(log.parent)
    try:
        with (
            private_file(log).open("w", encoding="utf-8") as errors,
            child(client_argv("--follow", _ORDERS), environment, errors, stdin=subprocess.PIPE) as job,
        ):
            ahead = ClientAhead(job, errors, log)
            yield ahead
    finally:
        log.unlink(missing_ok=True)
