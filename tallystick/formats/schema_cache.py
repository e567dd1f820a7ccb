"""Schemas of a registry, each asked for once in a process: what an id names never changes.

Decides what an answer means: that there is no such schema is known of the record, and kept; that nobody answers, or
that we may not ask, ends the attempt, since it says nothing about any record.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from operator import methodcaller
from typing import Any, TypeVar, cast

from tallystick.connections.schema_registry import RegistrySettings, registry_of
from tallystick.contract.event import EventFields
from tallystick.formats.prefix import Undecodable
from tallystick.host.extras import require
from tallystick.model.errors import TallystickError

_TIMEOUT_SECONDS, _RETRIES, _WAIT_MS = 10, 2, 200
_NOT_FOUND = 404
_NO_SUCH_SCHEMA = (40401, 40402, 40403)
"""Confluent's numbers for no such subject, version and schema: another 404 is none of a registry's."""
_REFERENCES_MAX = 100
REFUSED_MAX = 1_000
"""Ids in one process that gave no schema. Who writes to the topic chooses them, and each costs a question."""
_Made = TypeVar("_Made")


class RegistryUnreachable(TallystickError, ConnectionError):
    """The schema registry did not answer, or does not let us ask. It leaves no verdict: no record was read."""

    retryable = True


@dataclass(frozen=True)
class SchemaText:
    """A schema as its author wrote it. kind: AVRO, PROTOBUF or JSON. imports: by name, what it refers to."""

    schema_id: int
    kind: str
    text: str
    imports: tuple[tuple[str, str], ...] = ()
    """Of these each comes before what refers to it."""


@dataclass
class SchemaCache:
    """The schemas of one registry, and what was made of them. Kept as long as the process lives.

    read: gives the schema of an id. Raises Undecodable, RegistryUnreachable.
    """

    read: Callable[[int], SchemaText]
    _made: dict[tuple[str, int], Any] = field(default_factory=dict)
    _refused: int = 0

    def get(self, kind: str, schema_id: int, make: Callable[[SchemaText], _Made]) -> _Made:
        """Return what `make` makes of a schema of this kind; an Undecodable is raised again for each record.

        Raises Undecodable, RegistryUnreachable.
        """
        made = self._made.get((kind, schema_id))
        if made is None:
            if self._refused >= REFUSED_MAX:
                raise Undecodable(
                    f"its schema {schema_id} was not asked for, behind {REFUSED_MAX:,} that are of no use"
                )
            try:
                schema = self.read(schema_id)
                if schema.kind != kind:
                    raise Undecodable(f"its schema {schema_id} is of type {schema.kind}; expected {kind}")
                made = make(schema)
            except Undecodable as error:
                made = error
                self._refused += 1
            self._made[kind, schema_id] = made
        if isinstance(made, Undecodable):
            raise Undecodable(str(made))
        return cast("_Made", made)


class RegistryReader:
    """Asks a registry, by Confluent's client. It is opened with the first question."""

    def __init__(self, settings: RegistrySettings) -> None:
        self._settings = settings

    def __call__(self, schema_id: int) -> SchemaText:
        """Return a schema, and all that it refers to. Raises Undecodable, RegistryUnreachable."""
        found = self._ask(lambda client: client.get_schema(schema_id), f"its schema {schema_id}")
        imports: dict[str, str] = {}
        self._collect(found, imports, schema_id)
        return SchemaText(schema_id, found.schema_type or "AVRO", found.schema_str or "", tuple(imports.items()))

    def _collect(self, schema: Any, imports: dict[str, str], schema_id: int) -> None:
        for one in schema.references or ():
            if one.name in imports:
                continue
            if len(imports) >= _REFERENCES_MAX:
                raise Undecodable(f"its schema {schema_id} refers to more than {_REFERENCES_MAX} others")
            imports[one.name] = ""  # one that refers back to this one ends here
            referred = self._ask(
                methodcaller("get_version", one.subject, one.version),
                f"a schema that its schema {schema_id} refers to",
            )
            self._collect(referred.schema, imports, schema_id)
            del imports[one.name]  # behind those that it refers to itself
            imports[one.name] = referred.schema.schema_str

    def _ask(self, question: Callable[[Any], Any], what: str) -> Any:
        from confluent_kafka.schema_registry.error import SchemaRegistryError

        try:
            return question(self._client)
        except SchemaRegistryError as error:
            if error.http_status_code == _NOT_FOUND and error.error_code in _NO_SUCH_SCHEMA:
                raise Undecodable(f"{what} is not in the schema registry") from None
            answer = f"it answers {error.http_status_code}"
        except Exception as error:  # the library lets those of its HTTP client pass, which has no name of its own
            answer = f"nobody answers ({type(error).__name__})"
        raise RegistryUnreachable(
            f"the schema registry at {self._settings.host} did not give {what}: {answer}; expected one that answers, "
            "since without the schema no record can be read"
        )

    @cached_property
    def _client(self) -> Any:
        from confluent_kafka.schema_registry import SchemaRegistryClient

        own = {"timeout": _TIMEOUT_SECONDS, "max.retries": _RETRIES, "retries.wait.ms": _WAIT_MS}
        return SchemaRegistryClient({**dict(self._settings.settings), **own})


def schemas_of(connection_id: str) -> SchemaCache:
    """Return the schemas of the registry that a connection id means. Raises LibraryMissing, ConnectionNotGiven."""
    require("authlib")  # of confluent-kafka's own extra, which the client of registries needs
    return _cache_of(registry_of(connection_id))


def registries_of(fields: EventFields) -> dict[str, RegistrySettings]:
    """Return the registry that some fields ask, by its connection id, for a process that has no environment.

    Raises ConnectionNotGiven.
    """
    return {fields.registry: registry_of(fields.registry)} if fields.registry else {}


@cache
def _cache_of(settings: RegistrySettings) -> SchemaCache:
    return SchemaCache(RegistryReader(settings))
