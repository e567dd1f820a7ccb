"""`tallystick compensation`: plan a repair, show it, and do what was approved, without Airflow."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from tallystick.connections import connections_from_environment, store_dsn
from tallystick.contract import load_contract
from tallystick.exit_code import exit_code_of

compensation_commands = typer.Typer(no_args_is_help=True, help="Compensation: repair what a run found missing, once.")

ContractFile = Annotated[Path, typer.Argument(metavar="CONTRACT_FILE", help="The contract's YAML file.")]


@compensation_commands.command("plan")
def plan_compensation(
    contract_file: ContractFile,
    by: Annotated[str, typer.Option(metavar="NAME", help="Who asks for it.")],
    cut: Annotated[int, typer.Option(metavar="N", min=0, help="Repair what runs up to this cut found.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document on stdout; its keys are stable.")] = False,
) -> None:
    """Draw up what a compensation would do, store it and show it. Touches neither side.

    Example: `tallystick compensation plan dags/contracts/billing_payouts.yaml --cut 12 --by "Ada Byron"`
    """
    from tallystick.cli_output import print_json
    from tallystick.compensation_plan import describe_plan
    from tallystick.compensation_source import draw_plan
    from tallystick.store.engine import open_store
    from tallystick.store.plan_store import save_plan

    contract, engine = load_contract(contract_file), open_store(store_dsn())
    connections = connections_from_environment(kafka_id=contract.kafka.connection, ledger_id=contract.ledger.connection)
    plan = draw_plan(engine, contract, connections, cut_n=cut, dry_run=False)
    save_plan(engine, plan, requested_by=by)
    if as_json:
        items = [{"action_id": str(item.action_id), "match_key": item.match_key} for item in plan.items]
        print_json({"plan_id": str(plan.plan_id), "plan_hash": plan.plan_hash, "items": items})
    else:
        typer.echo(f"{describe_plan(plan)}\n\nPlan id: `{plan.plan_id}`")


@compensation_commands.command("act")
def execute_compensation(
    contract_file: ContractFile,
    plan_id: Annotated[UUID, typer.Argument(metavar="PLAN_ID", help="The plan, as `compensation plan` showed it.")],
    approved_hash: Annotated[str, typer.Option("--hash", metavar="HASH", help="The plan hash that was approved.")],
    by: Annotated[str, typer.Option(metavar="NAME", help="Who approves it.")],
    as_json: Annotated[
        bool, typer.Option("--json", help="A JSON document a line: each step, and what came of it.")
    ] = False,
) -> None:
    """Do what was approved, then look whether each event stands exactly once. Safe to run again after any failure.

    Ends with 0 when each event of the plan stands once, with 1 when one does not, with 3 when that is not to be seen
    yet, with 2 when the plan is refused or something does not answer.

    Example: `tallystick compensation act dags/contracts/billing_payouts.yaml 0ed3c1f2-7f58-5d6a-9a53-0a7a7f0a1d11
    --hash 5f0c9d --by "Grace Hopper"`
    """
    from tallystick.cli_progress import Progress
    from tallystick.compensation import execute_plan, verify_plan
    from tallystick.compensation_plan import PlanStale
    from tallystick.plain_text import foreign_text
    from tallystick.store.engine import open_store
    from tallystick.store.plan_store import read_plan

    contract, engine = load_contract(contract_file), open_store(store_dsn())
    connections = connections_from_environment(kafka_id=contract.kafka.connection, ledger_id=contract.ledger.connection)
    plan = read_plan(engine, plan_id)
    if plan is None:
        raise PlanStale(f"{contract.contract}: plan {plan_id} was never stored; see: tallystick compensation plan")
    with Progress() as progress:
        tell = _print_step if as_json else progress.tell
        execution = execute_plan(
            engine,
            contract,
            connections,
            plan,
            approved_hash=approved_hash,
            approver=by,
            environment=os.environ.get("TALLYSTICK_ENVIRONMENT", "production"),
            tell=tell,
        )
        result = verify_plan(contract, plan, connections)
        tell("verified", {"verdict": result.verdict})
    if not as_json:
        for outcome in execution.outcomes:
            typer.echo(f"{foreign_text(outcome.match_key)}: {outcome.fate.replace('_', ' ')} {outcome.reason}".rstrip())
        typer.echo(str(result.verdict))
    raise typer.Exit(exit_code_of(result.verdict))


def _print_step(step: str, figures: Mapping[str, Any]) -> None:
    print(json.dumps({"step": step, **figures}), flush=True)
