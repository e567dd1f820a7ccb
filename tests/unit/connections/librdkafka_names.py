"""The settings that the installed librdkafka has, by its own account: the table that its manual is made from, and all
that a configuration holds.
"""

import ctypes
from pathlib import Path

import confluent_kafka

_COLUMNS = 6


def names_of_installed_library(folder: Path) -> set[str]:
    """Return all names, aliases and hidden ones too. folder: for the table, which the library writes as a file."""
    packages = Path(confluent_kafka.__file__).parents[1]
    (library,) = packages.glob("confluent_kafka.libs/librdkafka*")
    rdkafka, table = ctypes.CDLL(str(library)), folder / "CONFIGURATION.md"
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    stream = ctypes.c_void_p(libc.fopen(str(table).encode(), b"w"))
    rdkafka.rd_kafka_conf_properties_show(stream)
    libc.fclose(stream)
    rows = [line.split("|") for line in table.read_text().splitlines()]
    shown = {row[0].strip() for row in rows if len(row) >= _COLUMNS and not row[0].startswith(("-", "Property"))}
    return shown | _held(rdkafka, "rd_kafka_conf") | _held(rdkafka, "rd_kafka_topic_conf")


def _held(rdkafka: ctypes.CDLL, kind: str) -> set[str]:
    new, dump = getattr(rdkafka, f"{kind}_new"), getattr(rdkafka, f"{kind}_dump")
    new.restype, dump.restype = ctypes.c_void_p, ctypes.POINTER(ctypes.c_char_p)
    count = ctypes.c_size_t()
    words = dump(ctypes.c_void_p(new()), ctypes.byref(count))
    return {words[place].decode() for place in range(0, count.value, 2)}
