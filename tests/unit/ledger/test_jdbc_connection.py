"""The JDBC side of a database follows from its address, or is given beside it."""

import pytest

from tallystick.connections.connections import ConnectionNotGiven
from tallystick.ledger.jdbc_connection import jdbc_settings


def test_the_jdbc_side_of_a_known_database_follows_from_its_address() -> None:
    known = jdbc_settings("postgresql://reader:hunter2@db/billing")
    assert known.for_spark == {
        "url": "jdbc:postgresql://db:5432/billing",
        "driver": "org.postgresql.Driver",
        "user": "reader",
        "password": "hunter2",
        "readOnly": "true",
        "readOnlyMode": "always",
    }
    assert "hunter2" not in repr(known)
    assert jdbc_settings("sqlite:////var/ledger.db").for_spark == {
        "url": "jdbc:sqlite:/var/ledger.db",
        "driver": "org.sqlite.JDBC",
        "sessionInitStatement": "PRAGMA query_only = ON",
    }


def test_the_jdbc_side_of_another_database_is_given_beside_its_address() -> None:
    other = (
        '{"url": "mysql://r:p@db/billing", "jdbc_url": "jdbc:mysql://db/billing", "driver": "com.mysql.jdbc.Driver"}'
    )
    assert jdbc_settings(other).for_spark["url"] == "jdbc:mysql://db/billing"
    for text_given in ("mysql://r:secret@db/billing", "secret", '{"uri": "secret"}', "{secret"):
        with pytest.raises(ConnectionNotGiven, match="of kind jdbc") as refused:
            jdbc_settings(text_given)
        assert "secret" not in str(refused.value)
