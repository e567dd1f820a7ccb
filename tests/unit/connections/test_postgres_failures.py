"""What goes behind the words of libpq: one sentence each, by the first rule that fits."""

import pytest

from tallystick.connections.postgres_failures import what_to_do


@pytest.mark.parametrize(
    ("said", "to_do"),
    [
        ('FATAL:  password authentication failed for user "reader"', "correct user and password"),
        ("fe_sendauth: no password supplied", "the connection has none"),
        ("server does not support SSL, but SSL was required", "speaks no TLS"),
        ('no pg_hba.conf entry for host "h", user "u", database "d", no encryption', "without TLS"),
        ('no pg_hba.conf entry for host "h", user "u", database "d", SSL encryption', "from here"),
        ('root certificate file "/ca.pem" does not exist', "correct sslrootcert"),
        ('could not read root certificate file "/ca.pem": no certificate or crl found', "correct sslrootcert"),
        ("SSL error: certificate verify failed", "not proven by sslrootcert"),
        ('server certificate for "db" does not match host name "127.0.0.1"', "for another name"),
        ("Connection refused\n\tIs the server running on that host?", "nothing listens there"),
        ("failed to resolve host 'db': [Errno -2] Name or service not known", "no host of that name"),
        ("connection timeout expired", "nothing answers there"),
        ('FATAL:  database "books" does not exist', "correct the connection"),
        ("FATAL:  sorry, too many clients already", "takes no more connections"),
    ],
)
def test_each_word_of_libpq_has_its_own_advice(said: str, to_do: str) -> None:
    advice = what_to_do(said)
    assert advice.startswith("; ")
    assert to_do in advice


def test_words_that_nobody_knows_stand_alone() -> None:
    assert what_to_do("something new") == ""
