"""Every command of the CLI, and how a test runs one."""

from typer.testing import CliRunner, Result

from tallystick.cli.app import app

COMMANDS = [
    ("contract", "check"),
    ("contract", "diff"),
    ("contract", "schema"),
    ("contract", "to-odcs"),
    ("contract", "from-odcs"),
    ("init",),
    ("jars", "fetch"),
    ("jars", "list"),
    ("spark", "start"),
    ("spark", "status"),
    ("spark", "stop"),
    ("store", "migrate"),
    ("store", "downgrade"),
    ("store", "prune"),
    ("run",),
    ("cut", "make"),
    ("cut", "close"),
    ("runs",),
    ("show",),
    ("report",),
    ("watch",),
    ("explain",),
    ("trace",),
    ("write-off",),
    ("compensation", "plan"),
    ("compensation", "sheet"),
    ("compensation", "execute"),
    ("compensation", "reopen"),
    ("compensation", "stop"),
    ("compensation", "allow"),
    ("alert", "ack"),
    ("alert", "test"),
    ("check-config",),
    ("grants",),
    ("census",),
    ("metrics", "show"),
    ("metrics", "serve"),
    ("metrics", "push"),
]


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)
