"""`tallystick alert`: acknowledge an alert, and send a test alert."""

import os
from datetime import UTC, datetime
from typing import Annotated

import typer

from tallystick.cli.shared_options import AsJson, ContractFile
from tallystick.connections.connections import store_dsn
from tallystick.host.artifacts import artifacts_place
from tallystick.model.verdict import ExitCode

alert_commands = typer.Typer(no_args_is_help=True, help="Acknowledge an alert, and send a test alert.")


@alert_commands.command("ack")
def acknowledge_alert(
    contract: Annotated[str, typer.Argument(metavar="CONTRACT", help="Name of the contract that sent the alert.")],
    topic: Annotated[
        str,
        typer.Argument(
            metavar="CLASS", help="Class of the alert, such as missing_in_ledger: the last part of its key."
        ),
    ],
    by: Annotated[str, typer.Option(metavar="NAME", help="Who acknowledges it.")],
    as_json: AsJson = False,
) -> None:
    """Acknowledge an alert, so that it does not escalate until it gets worse.

    Its sinks are notified with the next delivery. The acknowledgement ends when no break of the class is outstanding.

    Example: `tallystick alert ack billing_payouts missing_in_ledger --by "Ada Byron"`
    """
    from tallystick.cli.output import print_json
    from tallystick.documents.run import alert_document
    from tallystick.host.terminal_user import this_terminal
    from tallystick.store.alerts.acknowledgement_store import acknowledge
    from tallystick.store.engine import open_store
    from tallystick.text.plain import story_text

    alert = acknowledge(open_store(store_dsn()), contract, topic, by=by, terminal=this_terminal())
    if as_json:
        print_json(alert_document(alert))
    else:
        typer.echo(f"{story_text(alert.summary)}; the sinks are notified with the next delivery")


@alert_commands.command("test")
def send_test_page(
    contract_file: ContractFile,
    as_json: AsJson = False,
) -> None:
    """Send an alert that is marked as a test to each sink of a contract, and print the answers.

    Reads no store and stores nothing. Close the incident by hand afterwards; Alertmanager's ends by itself. Exit code
    2: a sink did not accept it.

    Example: `tallystick alert test dags/contracts/billing_payouts.yaml`
    """
    from tallystick.alerting.sample_alert import page_of_test
    from tallystick.alerting.sinks.registry import sinks_from_environment
    from tallystick.cli.output import print_attempts, print_json
    from tallystick.contract.contract import load_contract
    from tallystick.documents.run import attempt_document
    from tallystick.pipeline.deliver_alerts import send_unrecorded

    contract = load_contract(contract_file)
    page = page_of_test(contract, now_utc=datetime.now(UTC))
    sinks = sinks_from_environment(contract, artifacts=artifacts_place(), environment=os.environ)
    attempts = send_unrecorded(page, sinks)
    if as_json:
        print_json([attempt_document(name, attempt) for name, attempt in attempts])
    else:
        print_attempts(page, attempts)
    if not all(attempt.delivered for _, attempt in attempts):
        raise typer.Exit(ExitCode.REFUSED)
