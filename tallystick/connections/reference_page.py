"""Writes docs/kafka-settings.md from the tables of settings.

`python -m tallystick.connections.reference_page > docs/kafka-settings.md`
"""

from collections.abc import Iterator, Mapping

from tallystick.connections.kafka_setting_names import ALIASES, IGNORED, INSTEAD, ONLY, REFUSED, TAKEN

_HEAD = """# Kafka settings

Generated from the code: `python -m tallystick.connections.reference_page > docs/kafka-settings.md`.
[kafka-connections.md](kafka-connections.md) has connections to copy.

A Kafka connection is a JSON object of librdkafka's settings. Three clients read it: kafka-python, librdkafka and
Spark's Kafka client. Each setting of librdkafka is taken, ignored or refused.

"""


def settings_reference() -> str:
    """Return the page: every setting of librdkafka, and what becomes of it."""
    return "".join([_HEAD, *_taken(), *_ignored(), *_refused(), *_aliases()])


def _taken() -> Iterator[str]:
    yield "## Taken\nAll are passed to librdkafka. The other clients get those that they have a setting for.\n\n"
    yield "| setting | kafka-python | Spark's client |\n|---|---|---|\n"
    security = ("ssl.", "sasl.", "https.")
    for name, told in TAKEN.items():
        own = "passed in that client's own form" if name.startswith(security) else "not passed"
        python, java = (f"`{word}`" if word else own for word in told)
        yield f"| `{name}` | {python} | {java} |\n"


def _ignored() -> Iterator[str]:
    yield "\n## Ignored\nSettings of other programs that share the connection. The log names them once.\n\n"
    yield from _by_reason(IGNORED)


def _refused() -> Iterator[str]:
    yield "\n## Refused\nA connection with one of these is refused by its name, and nothing is read.\n\n"
    yield from _by_reason(REFUSED)
    yield "\nThese may only have one value:\n\n| setting | value | because |\n|---|---|---|\n"
    for name, wanted in ONLY.items():
        yield f"| `{name}` | `{wanted.values[0]}` | {wanted.why} |\n"
    yield "\nSettings of other clients are refused with librdkafka's word for them:\n\n"
    yield "| setting | instead |\n|---|---|\n"
    for name, instead in INSTEAD.items():
        yield f"| `{name}` | {instead} |\n"


def _aliases() -> Iterator[str]:
    yield "\n## Other names\n| name | setting |\n|---|---|\n"
    for name, known in ALIASES.items():
        yield f"| `{name}` | `{known}` |\n"


def _by_reason(reasons: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    yield "| settings | because |\n|---|---|\n"
    for why, names in reasons.items():
        yield f"| {', '.join(f'`{name}`' for name in names)} | {why} |\n"


if __name__ == "__main__":
    print(settings_reference(), end="")
