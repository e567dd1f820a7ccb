"""What a PostgreSQL address asks of the server is told to Spark's JDBC driver too, or the address is refused."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from psycopg.conninfo import conninfo_to_dict

from tallystick.connections.connections import ConnectionNotGiven
from tallystick.connections.postgres_address import as_asked, first_server, jdbc_options
from tallystick.ledger.jdbc_connection import jdbc_settings
from tallystick.ledger.postgres_connection import jdbc_scan_options, scan_address

PLAIN = "postgresql://reader:hunter2@db:5433/books"
OTHERS = "mysql+pymysql://reader:hunter2@db/books"


@pytest.fixture(autouse=True)
def without_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PGSSLMODE", "PGSSLROOTCERT", "PGSERVICE", "PGOPTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def told(parameters: str = "", address: str = PLAIN) -> dict[str, str]:
    return jdbc_options(as_asked(f"{address}?{parameters}" if parameters else address))


def test_an_address_without_parameters_is_told_as_it_is() -> None:
    assert told() == {"url": "jdbc:postgresql://db:5433/books", "user": "reader", "password": "hunter2"}


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ("sslmode=verify-full&sslrootcert=/ca%20of.pem", {"sslmode": "verify-full", "sslrootcert": "/ca of.pem"}),
        ("sslmode=verify-ca", {"sslmode": "verify-ca"}),
        ("sslmode=require", {"sslmode": "require"}),
        ("sslmode=require&sslrootcert=/ca.pem", {"sslmode": "verify-ca", "sslrootcert": "/ca.pem"}),
        ("sslmode=disable", {"sslmode": "disable"}),
        ("channel_binding=require", {"channelBinding": "require"}),
        ("require_auth=scram-sha-256", {"requireAuth": "scram-sha-256"}),
        ("sslmode=require&sslnegotiation=direct", {"sslmode": "require", "sslNegotiation": "direct"}),
        ("options=-c%20statement_timeout%3D9", {"options": "-c statement_timeout=9"}),
        ("gssencmode=disable", {}),
        ("connect_timeout=3&keepalives_idle=9&target_session_attrs=any&application_name=x", {}),
    ],
)
def test_a_parameter_is_told_in_the_drivers_words(parameters: str, expected: dict[str, str]) -> None:
    assert told(parameters) == told() | expected


def test_require_proves_the_server_where_a_file_of_cas_lies_where_libpq_looks(tmp_path: Path) -> None:
    (tmp_path / ".postgresql").mkdir()
    (tmp_path / ".postgresql" / "root.crt").touch()
    assert told("sslmode=require")["sslmode"] == "verify-ca"
    assert "sslmode" not in told()


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("postgresql://one:1,two:2/books", "jdbc:postgresql://one:1,two:2/books"),
        ("postgresql://one,two/books", "jdbc:postgresql://one:5432,two:5432/books"),
        ("host=one,two port=7 dbname=books", "jdbc:postgresql://one:7,two:7/books"),
        ("postgresql://[2001:db8::1]:7/books", "jdbc:postgresql://[2001:db8::1]:7/books"),
        ("postgresql://db/books%3Fsslmode%3Ddisable", "jdbc:postgresql://db:5432/books%3Fsslmode%3Ddisable"),
        ("postgresql://reader@db", "jdbc:postgresql://db:5432/reader"),
    ],
)
def test_a_place_is_the_same_for_both(address: str, url: str) -> None:
    assert told(address=address)["url"] == url


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ("sslcrl=/s3cret.crl", "sslcrl "),
        ("sslcrldir=/s3cret", "sslcrldir "),
        ("sslpassword=s3cret", "sslpassword "),
        ("sslcertmode=require", "sslcertmode "),
        ("ssl_min_protocol_version=TLSv1.3", "ssl_min_protocol_version "),
        ("gssencmode=require", "gssencmode "),
        ("service=s3cret", "service "),
        ("passfile=/s3cret", "passfile "),
        ("hostaddr=10.0.0.1", "hostaddr "),
        ("krbsrvname=s3cret", "krbsrvname "),
        ("requirepeer=s3cret", "requirepeer "),
        ("scram_client_key=s3cret", "scram_client_key "),
        ("sslrootcert=system&sslmode=verify-full", "sslrootcert=system "),
        ("host=/s3cret", "host "),
        ("host=one,two&port=1,2,3", "port "),
    ],
)
def test_what_the_driver_cannot_be_told_is_refused_by_its_name_and_without_its_value(
    parameters: str, named: str
) -> None:
    with pytest.raises(ConnectionNotGiven, match=f"address: {named}cannot be told to Spark's JDBC driver") as refused:
        told(parameters)
    assert not {"s3cret", "hunter2"} & set(str(refused.value).replace("/", " ").split())


@pytest.mark.parametrize("variable", [{"PGSSLMODE": "verify-full"}, {"PGSSLROOTCERT": "/ca.pem"}])
def test_what_the_environment_asks_is_asked_by_every_reader(
    monkeypatch: pytest.MonkeyPatch, variable: dict[str, str]
) -> None:
    ((name, value),) = variable.items()
    monkeypatch.setenv(name, value)
    parameter = name.removeprefix("PG").lower()
    assert told()[parameter] == value
    assert conninfo_to_dict(scan_address(PLAIN))[parameter] == value  # on an executor, whose environment is another
    assert told(f"{parameter}=disable")[parameter] == "disable"


def test_an_address_that_libpq_does_not_read_is_refused_without_its_text() -> None:
    for address in (f"{PLAIN}?nonsense=1", "hunter2"):
        with pytest.raises(ConnectionNotGiven, match="none that libpq reads") as refused:
            as_asked(address)
        assert "hunter2" not in str(refused.value)


FORMS = {
    "PKCS#8": (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    "traditional": (
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ),
    "encrypted": (
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"x"),
    ),
    "DER": (serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
}


def test_a_clients_key_is_told_with_its_algorithm(tmp_path: Path) -> None:
    for name, made in (("RSA", rsa.generate_private_key(65537, 2048)), ("EC", ec.generate_private_key(ec.SECP256R1()))):
        key = tmp_path / f"{name}.pk8"
        key.write_bytes(made.private_bytes(*FORMS["PKCS#8"]))
        asked = told(f"sslcert=/client.pem&sslkey={key}")
        assert (asked["pemKeyAlgorithm"], asked["sslkey"], asked["sslcert"]) == (name, str(key), "/client.pem")


def test_a_key_that_only_one_of_them_reads_is_refused(tmp_path: Path) -> None:
    key, curve = tmp_path / "client.key", ec.generate_private_key(ec.SECP256R1())
    texts = [curve.private_bytes(*form) for name, form in FORMS.items() if name != "PKCS#8"]
    texts += [ed25519.Ed25519PrivateKey.generate().private_bytes(*FORMS["PKCS#8"]), b"-----BEGIN PRIVATE KEY-----\nx"]
    for text in texts:
        key.write_bytes(text)
        with pytest.raises(ConnectionNotGiven, match=r"client\.key is no key that both .* openssl pkcs8 -topk8"):
            told(f"sslkey={key}")
    with pytest.raises(ConnectionNotGiven, match="sslkey: /nowhere: No such file"):
        told("sslkey=/nowhere")


def test_a_scan_sets_what_every_session_sets_behind_what_the_address_sets() -> None:
    options = jdbc_scan_options(f"{PLAIN}?options=-c%20row_security%3Don&target_session_attrs=any")
    assert options["options"] == "-c row_security=on -c row_security=off"
    assert (options["targetServerType"], options["readOnly"]) == ("primary", "true")
    asked = conninfo_to_dict(scan_address(f"{PLAIN}?target_session_attrs=read-write"))
    assert asked["options"] == "-c row_security=off -c default_transaction_read_only=on"
    assert asked["target_session_attrs"] == "primary"


def test_a_ledger_of_kind_jdbc_in_postgresql_is_read_as_its_url_asks() -> None:
    asked = jdbc_settings(f"{PLAIN}?sslmode=verify-full&sslrootcert=/ca.pem")
    assert asked.for_spark["sslmode"] == "verify-full"
    assert asked.for_spark["sslrootcert"] == "/ca.pem"
    assert jdbc_settings("postgresql+psycopg://reader@/books?host=one:1&host=two").jdbc_url == (
        "jdbc:postgresql://one:1,two:5432/books"
    )
    with pytest.raises(ConnectionNotGiven, match="sslcrl cannot be told"):
        jdbc_settings(f"{PLAIN}?sslcrl=/crl")


@pytest.mark.parametrize(
    ("url", "jdbc_url", "is_read"),
    [
        (f"{OTHERS}?ssl_ca=/ca.pem", "jdbc:mysql://db/books", False),
        (f"{OTHERS}?ssl_ca=/ca.pem", "jdbc:mysql://db/books?sslMode=VERIFY_IDENTITY", True),
        (f"{OTHERS}?charset=utf8mb4", "jdbc:mysql://db/books", True),
        ("mssql+pyodbc://db/books?Encrypt=yes", "jdbc:sqlserver://db", False),
        (f"{PLAIN}?sslmode=verify-full", "jdbc:postgresql://db/books", False),
        (f"{PLAIN}?sslmode=verify-full", "jdbc:postgresql://tls.db/ssl_books", False),
        (f"{PLAIN}?sslmode=verify-full", "jdbc:postgresql://db/books?sslmode=verify-full", True),
    ],
)
def test_a_jdbc_url_that_is_silent_about_tls_is_refused_where_the_url_asks_for_it(
    url: str, jdbc_url: str, is_read: bool
) -> None:
    text = f'{{"url": "{url}", "jdbc_url": "{jdbc_url}", "driver": "d"}}'
    if is_read:
        assert jdbc_settings(text).jdbc_url.startswith(jdbc_url)
        return
    with pytest.raises(ConnectionNotGiven, match="its jdbc_url says nothing of it"):
        jdbc_settings(text)


@pytest.mark.parametrize(("variable", "is_read"), [("PGSSLMODE", False), ("PGAPPNAME", True)])
def test_a_jdbc_url_is_held_to_what_the_environment_asks_too(
    monkeypatch: pytest.MonkeyPatch, variable: str, is_read: bool
) -> None:
    monkeypatch.setenv(variable, "verify-full")
    text = f'{{"url": "{PLAIN}", "jdbc_url": "jdbc:postgresql://db/books"}}'
    if is_read:
        assert jdbc_settings(text).jdbc_url == "jdbc:postgresql://db/books"
        return
    with pytest.raises(ConnectionNotGiven, match=r"asks for TLS \(sslmode\), and its jdbc_url says nothing of it"):
        jdbc_settings(text)


def test_of_several_hosts_the_first_names_the_server() -> None:
    assert str(first_server("postgresql://reader:hunter2@one:1,two:2/books")) == "postgresql://one:1/books"
    assert str(first_server("host=one dbname=books")) == "postgresql://one/books"
