"""The archives of classes that `make setup` leaves, of Spark (setup/class_archive.py) and of Kafka
(lab/servers/broker_class_archive.py), for JVMs that are to start soon.
"""

from pathlib import Path

from lab.servers.process import REPOSITORY

ARCHIVE = REPOSITORY / ".jars" / "spark.jsa"


def archive_options(archive: Path = ARCHIVE) -> str:
    """Java's options that use it; none where there is none, since to name a missing one turns Java's own off.

    One that does not fit (any more) is left aside without a word: by itself Java warns on the standard output.
    """
    return f'"-XX:SharedArchiveFile={archive}" -Xlog:cds=off,cds+dynamic=off' if archive.is_file() else ""


SMALL_JVM = f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m {archive_options()}".rstrip()
"""For a few thousand rows in a JVM of minutes: small collector, quick compiler and archive start soonest.

With that compiler alone Java keeps 48 MB for compiled code. Spark fills them within minutes, and code is then thrown
away and compiled again, which was a fifth of its CPU time.
"""
