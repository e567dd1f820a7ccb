"""Names the extra of this package that brings a library which is not installed.

The core needs neither Airflow, nor Spark, nor Great Expectations; where one is missed, it is one sentence.
"""

from importlib.util import find_spec

from tallystick.model.errors import TallystickError

EXTRA_OF = {
    "adbc_driver_manager": "postgres",
    "adbc_driver_postgresql": "postgres",
    "apprise": "apprise",
    "authlib": "avro",
    "aws_msk_iam_sasl_signer": "msk",
    "botocore": "msk",
    "fastavro": "avro",
    "google": "protobuf",
    "great_expectations": "gx",
    "grpc_tools": "protobuf",
    "opentelemetry": "otel",
    "prometheus_client": "otel",
    "pyiceberg": "iceberg",
    "pymysql": "mysql",
    "pyspark": "spark",
}
"""Module that is imported without being in the core: the extra that installs it."""


class LibraryMissing(TallystickError):
    """A library of an extra is not installed."""


def is_installed(module: str) -> bool:
    """Return whether this top-level module can be imported; imports nothing."""
    return find_spec(module) is not None


def require(module: str) -> None:
    """Raise LibraryMissing unless this top-level module is installed."""
    if not is_installed(module):
        raise LibraryMissing(not_installed(module))


def missing_extra(error: ImportError) -> str | None:
    """Return the sentence for a library of an extra; None where an import failed that no extra cures."""
    name = error.name or ""
    return not_installed(name) if name.partition(".")[0] in EXTRA_OF else None


def not_installed(name: str) -> str:
    """Return the sentence for a module of an extra, which may be dotted."""
    extra = EXTRA_OF[name.partition(".")[0]]
    return f"{name}: not installed, or too old; expected it from `pip install 'tallystick[{extra}]'`"
