"""What a registry's answers mean, by a fake of one: known of the record, or of nobody."""

import json
from pathlib import Path

import pytest

from lab.doors.certificates import make_certificates
from tallystick.connections.schema_registry import RegistrySettings
from tallystick.formats.prefix import Undecodable
from tallystick.formats.schema_cache import REFUSED_MAX, RegistryReader, RegistryUnreachable, SchemaCache, SchemaText
from tests.fake_registry import fake_registry

FLAT = {"schema": '"string"'}


def reader(url: str, **settings: str) -> RegistryReader:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return RegistryReader(RegistrySettings(tuple(sorted({"url": url, **named}.items()))))


def test_a_schema_is_asked_for_once() -> None:
    with fake_registry(schemas={7: FLAT}) as registry:
        cache = SchemaCache(reader(registry.url))
        assert [cache.get("AVRO", 7, lambda schema: schema.text) for _ in range(3)] == ['"string"'] * 3
        assert len(registry.asked) == 1


def test_what_a_schema_refers_to_comes_before_it() -> None:
    def refers(*names: str) -> dict[str, object]:
        return {"schema": json.dumps(names), "references": [{"name": n, "subject": n, "version": 1} for n in names]}

    with fake_registry(schemas={7: refers("a", "b")}, subjects={"a": refers("c"), "b": refers("c"), "c": FLAT}) as one:
        found = reader(one.url)(7)
    assert [name for name, _ in found.imports] == ["c", "a", "b"]
    with fake_registry(schemas={7: refers("a")}, subjects={"a": refers("b"), "b": refers("a")}) as circle:
        assert [name for name, _ in reader(circle.url)(7).imports] == ["b", "a"]


def test_an_id_that_is_not_there_is_known_of_the_record_and_asked_for_once() -> None:
    with fake_registry() as registry:
        cache = SchemaCache(reader(registry.url))
        for _ in range(2):
            with pytest.raises(Undecodable, match=r"^its schema 9 is not in the schema registry$"):
                cache.get("AVRO", 9, SchemaText.__repr__)
        assert len(registry.asked) == 1


def test_a_writer_of_many_ids_does_not_make_us_ask_for_ever() -> None:
    asked = []

    def read(schema_id: int) -> SchemaText:
        asked.append(schema_id)
        if schema_id:
            raise Undecodable("absent")
        return SchemaText(0, "AVRO", "known")

    cache = SchemaCache(read)
    assert cache.get("AVRO", 0, lambda schema: schema.text) == "known"
    for schema_id in range(1, REFUSED_MAX + 1):
        with pytest.raises(Undecodable, match="absent"):
            cache.get("AVRO", schema_id, SchemaText.__repr__)
    with pytest.raises(Undecodable, match="was not asked for, behind 1,000 that are of no use"):
        cache.get("AVRO", REFUSED_MAX + 1, SchemaText.__repr__)
    assert len(asked) == REFUSED_MAX + 1
    assert cache.get("AVRO", 0, lambda schema: schema.text) == "known"


@pytest.mark.parametrize("status", [401, 403, 500, 503])
def test_a_registry_that_does_not_let_us_read_says_nothing_of_a_record(status: int) -> None:
    with fake_registry(schemas={7: FLAT}, status=status) as registry:
        cache = SchemaCache(reader(registry.url))
        with pytest.raises(RegistryUnreachable, match=f"at 127.0.0.1 did not give its schema 7: it answers {status}"):
            cache.get("AVRO", 7, SchemaText.__repr__)
        registry.status = 200
        assert cache.get("AVRO", 7, lambda schema: schema.kind) == "AVRO"


def test_an_address_where_no_registry_is_does_not_make_ids_unknown() -> None:
    with fake_registry(status=404) as registry, pytest.raises(RegistryUnreachable, match="it answers 404"):
        reader(registry.url)(7)


def test_nobody_at_the_address_is_told_without_the_address() -> None:
    with fake_registry() as registry:
        url = registry.url
    with pytest.raises(RegistryUnreachable, match="nobody answers") as caught:
        reader(url + "/path?token=secret")(7)
    assert "secret" not in str(caught.value)


def test_a_password_is_shown_and_another_one_is_refused() -> None:
    with fake_registry(schemas={7: FLAT}, user="reader:secret") as registry:
        assert reader(registry.url, basic_auth_user_info="reader:secret")(7).text == '"string"'
        with pytest.raises(RegistryUnreachable, match="it answers 401") as caught:
            reader(registry.url, basic_auth_user_info="reader:wrong")(7)
        assert "wrong" not in str(caught.value)


def test_a_certificate_is_checked_against_the_ca_that_is_named(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    with fake_registry(schemas={7: FLAT}, certificate=str(made.server)) as registry:
        assert reader(registry.url, ssl_ca_location=str(made.ca))(7).text == '"string"'
        with pytest.raises(RegistryUnreachable, match="nobody answers"):
            reader(registry.url)(7)
