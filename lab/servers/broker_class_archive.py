"""Makes the archive of classes with which Kafka's own programs start sooner (Java's class data sharing).

    python -m lab.servers.broker_class_archive

What `make setup` runs. It is speed and nothing else: a JVM takes it where Java and Kafka's jars are those that it was
made from. The file .jars/broker.jsa appears whole or not at all.
"""

import os
import signal
import tempfile
from pathlib import Path

from lab.servers.broker import DEFAULT_JARS, Broker
from lab.servers.ports import free_port

_WRITTEN_WITHIN_SECONDS = 120.0


def make_archive(jars: Path) -> None:
    """Make the archive beside the folder of Kafka's jars; one that is there is no use to its own making, and goes."""
    archive = jars.with_suffix(".jsa")
    archive.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix=".archive-", dir=jars.parent) as work:
        made = Path(work, archive.name)
        broker = Broker(Path(work, "broker"), proxied_port=free_port(), jars=jars)
        try:
            broker.initialise()
            broker.java_options = (f"-XX:ArchiveClassesAtExit={made}",)
            broker.start()
            assert broker.child is not None
            broker.child.send_signal(signal.SIGTERM)
            broker.child.wait(_WRITTEN_WITHIN_SECONDS)
        finally:
            broker.kill()
        os.replace(made, archive)


if __name__ == "__main__":
    make_archive(DEFAULT_JARS)
