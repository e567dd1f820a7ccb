"""`tallystick alert`: take an incident on, and test where pages go."""

import os
from datetime import UTC, datetime
from typing import Annotated

import typer

from tallystick.cli.shared_options import AsJson, ContractFile
from tallystick.connections.connections import artifacts_folder, store_dsn
from tallystick.contract.contract import load_contract
from tallystick.model.verdict import ExitCode

alert_commands = typer.Typer(no_args_is_help=True, help="Alerts: take an incident on, and test where pages go.")


@alert_commands.command("ack")
def acknowledge_alert(
    contract: Annotated[str, typer.Argument(metavar="CONTRACT", help="Name of the contract that pages.")],
    topic: Annotated[
        str, typer.Argument(metavar="CLASS", help="What it pages of, such as missing_in_ledger; the key's last part.")
    ],
    by: Annotated[str, typer.Option(metavar="NAME", help="Who takes it on.")],
    as_json: AsJson = False,
) -> None:
    """Take an incident on: it does not escalate until it is worse. Its sinks are told with the next delivery.

    It ends by itself once nothing of its class is outstanding.

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
        typer.echo(f"{story_text(alert.summary)}; the sinks are told with the next delivery")


@alert_commands.command("test")
def send_test_page(
    contract_file: ContractFile,
    as_json: AsJson = False,
) -> None:
    """Send a marked test page to each sink of a contract, and say what came back. Asks no store, and stores nothing.

    Close the incident that it opens by hand; Alertmanager's ends by itself. Ends with 2 when a sink does not take it.

    Example: `tallystick alert test dags/contracts/billing_payouts.yaml`
    """
    from tallystick.alerting.sample_alert import page_of_test
    from tallystick.alerting.sinks.registry import sinks_from_environment
    from tallystick.cli.output import print_attempts, print_json
    from tallystick.documents.run import attempt_document
    from tallystick.pipeline.deliver_alerts import send_unrecorded

    contract = load_contract(contract_file)
    page = page_of_test(contract, now_utc=datetime.now(UTC))
    sinks = sinks_from_environment(contract, artifacts_folder=artifacts_folder(), environment=os.environ)
    attempts = send_unrecorded(page, sinks)
    if as_json:
        print_json([attempt_document(name, attempt) for name, attempt in attempts])
    else:
        print_attempts(page, attempts)
    if not all(attempt.delivered for _, attempt in attempts):
        raise typer.Exit(ExitCode.REFUSED)
