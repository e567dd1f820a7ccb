"""`tallystick compensation`: plan repairs, execute a plan, stop repairs. The same rules as the DAG's."""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tallystick.cli.renamed import RenamingGroup
from tallystick.cli.shared_options import CUT_MAX, AsJson, ContractFile
from tallystick.connections.connections import Connections, connections_from_environment, store_dsn
from tallystick.model.verdict import exit_code_of

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tallystick.compensation.plan import Plan
    from tallystick.compensation.signed_approval import Reopening, SignedApproval
    from tallystick.contract.contract import Contract
    from tallystick.executor.effects.action_log import ItemCheck
    from tallystick.executor.execute_plan import Execution
    from tallystick.report.masking import Mask

compensation_commands = typer.Typer(
    cls=RenamingGroup,
    no_args_is_help=True,
    help="Plan repairs, execute a plan once, and stop all repairs.",
)

PlanHash = Annotated[str, typer.Argument(metavar="PLAN_HASH", help="Hash of the plan, as `plan` printed it.")]
WhichContract = Annotated[str | None, typer.Argument(metavar="CONTRACT", help="Name of one contract. Default: all.")]
By = Annotated[str, typer.Option(metavar="NAME", help="Who decided it.")]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why; the audit trail keeps it.")]


@compensation_commands.command("plan")
def show_plan(
    contract_file: ContractFile,
    cut: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, max=CUT_MAX, help="Plan for the breaks up to this cut. Default: the newest."),
    ] = None,
    by: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who requests the plan; stores it, so that it can be approved.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show which breaks would be repaired, and why others would not.

    Without --by this is a dry run, which changes and stores nothing.

    Example: `tallystick compensation plan dags/contracts/billing_payouts.yaml --by "Ada Byron"`
    """
    from tallystick.cli.output import print_json
    from tallystick.compensation.kill_switch import words_of
    from tallystick.compensation.plan_text import describe_plan
    from tallystick.contract.contract import load_contract
    from tallystick.documents.plan import plan_document
    from tallystick.executor.draw_plan import draw_plan
    from tallystick.host.terminal_user import this_terminal
    from tallystick.report.masking import Mask
    from tallystick.store.engine import open_store
    from tallystick.store.plans.plan_store import save_plan

    contract = load_contract(contract_file)
    requester = None if by is None else words_of("--by", by)
    engine = open_store(store_dsn())
    cut = _newest_cut(engine, contract) if cut is None else cut
    connections = connections_from_environment(kafka_id=contract.kafka.connection, ledger_id=contract.ledger.connection)
    plan = draw_plan(engine, contract, connections, cut_n=cut, dry_run=requester is None)
    if requester is not None and plan.actions:
        save_plan(engine, plan, requested_by=requester, terminal=this_terminal())
    if as_json:
        print_json(plan_document(plan))
        return
    typer.echo(describe_plan(plan, shown_key=Mask(contract).key, allowed=contract.compensation))
    if requester is not None and plan.actions:
        typer.echo(
            f"\nStored. To execute it: tallystick compensation execute {contract_file} {plan.plan_hash} --by NAME"
        )


def _newest_cut(engine: "Engine", contract: "Contract") -> int:
    """Return the cut of the newest run. Raises PlanRefused where there is none."""
    from tallystick.compensation.plan import PlanRefused
    from tallystick.store.runs.run_store import list_runs

    newest = list_runs(engine, contract.name, limit=1)
    if not newest:
        raise PlanRefused(f"{contract.name}: no run is stored yet; expected one whose breaks can be planned")
    return newest[0].cut_n


@compensation_commands.command("sheet")
def print_sheet(contract_file: ContractFile, plan_hash: PlanHash) -> None:
    """Print the sheet of a plan that a second person reads and signs.

    A plan needs one if it moves more than the contract's four_eyes_above_minor (not set: any amount), if it ends a
    transaction, or if the contract names approvers.

    Save the sheet to FILE. The second person signs it with an SSH key, which writes FILE.sig beside it:
    `ssh-keygen -Y sign -n tallystick-approval -f ~/.ssh/id_ed25519 FILE`. Then run `execute ... --approval FILE`.

    The file that TALLYSTICK_ALLOWED_SIGNERS names has one line `NAME ssh-ed25519 KEY` for each person. Use the names
    of Airflow and of the operating system, so that nobody counts as two people. A sheet is valid for the contract's
    approval_valid_seconds (default: 86400, a day).

    Example: `tallystick compensation sheet dags/contracts/billing_payouts.yaml 5a1d... > sheet.json`
    """
    from tallystick.compensation.signed_approval import SheetRules, approval_sheet
    from tallystick.contract.contract import load_contract
    from tallystick.report.masking import Mask
    from tallystick.store.clock import store_now
    from tallystick.store.engine import open_store

    contract, engine = load_contract(contract_file), open_store(store_dsn())
    plan = _kept_plan(engine, contract, plan_hash)
    rules = SheetRules(environment=_environment(), shown_key=Mask(contract).key, allowed=contract.compensation)
    typer.echo(approval_sheet(plan, rules, made_at_utc=store_now(engine)), nl=False)


@compensation_commands.command("execute")
def execute_kept_plan(
    contract_file: ContractFile,
    plan_hash: PlanHash,
    by: Annotated[str, typer.Option(metavar="NAME", help="Who executes it, and is responsible.")],
    approval: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A signed sheet, with FILE.sig beside it. Can be given twice."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document per line: each step and its result.")
    ] = False,
) -> None:
    """Execute a stored plan once, whatever crashed or ran before, and check whether each break is cleared.

    An approval in Airflow, or on a signed sheet, is needed if the plan moves more than the contract's
    four_eyes_above_minor (not set: any amount), if it ends a transaction, or if the contract names approvers: see
    `tallystick compensation sheet --help`. The audit trail also keeps the operating system's user and host.

    If the contract no longer allows an action of a plan that has begun, or has another compensation.reversal,
    compensation.post or compensation.trigger.connection by now, or other ledger.columns for what a repair writes, the
    action is refused once it is proven that it was not done.

    Exit code 0: each break is cleared. 1: a break is not cleared. 3: this cannot be seen yet. 2: the plan is refused,
    or a server does not answer.

    Example: `tallystick compensation execute dags/contracts/billing_payouts.yaml 5a1d... --by "Grace Hopper"`
    """
    from tallystick.cli.progress import Progress
    from tallystick.compensation.kill_switch import words_of
    from tallystick.contract.contract import load_contract
    from tallystick.executor.execute_plan import execute_plan
    from tallystick.executor.prove_repairs import contract_to_look_by
    from tallystick.executor.verify_plan import verify_and_keep
    from tallystick.host.terminal_user import this_terminal
    from tallystick.report.masking import Mask
    from tallystick.store.engine import open_store

    contract, approver = load_contract(contract_file), words_of("--by", by)
    engine = open_store(store_dsn())
    plan = _kept_plan(engine, contract, plan_hash)
    _keep_signed(engine, contract, plan, approval or [])
    connections = _acting_connections(contract_to_look_by(engine, contract, plan))
    with Progress() as progress:
        on_progress = _print_step if as_json else progress.on_progress
        execution = execute_plan(
            engine,
            contract,
            connections,
            plan,
            approved_hash=plan_hash,
            approver=approver,
            environment=_environment(),
            terminal=this_terminal(),
            on_progress=on_progress,
        )
        result = verify_and_keep(engine, contract, plan, connections, actor=approver)
        effects, reasons = [check.effect for check in result.checks], [check.reason for check in result.checks]
        on_progress("verified", {"verdict": result.verdict, "effects": effects, "reasons": reasons})
    if not as_json:
        _print_outcomes(execution, result.checks, mask=Mask(contract))
        typer.echo(str(result.verdict))
    raise typer.Exit(exit_code_of(result.verdict))


def _print_step(step: str, figures: Mapping[str, Any]) -> None:
    print(json.dumps({"step": step, **figures}), flush=True)


def _print_outcomes(execution: "Execution", checks: Iterable["ItemCheck"], *, mask: "Mask") -> None:
    """Print one line per action, in the plan's order, with why it was refused, or else why it cannot be seen."""
    from tallystick.text.plain import escape_untrusted, story_text

    for outcome, check in zip(execution.outcomes, checks, strict=True):
        words = f"{outcome.fate}, {check.effect}".replace("_", " ")
        why = story_text(outcome.reason or check.reason)
        typer.echo(f"{escape_untrusted(mask.key(outcome.match_key))}: {words}. {why}".rstrip())


def _kept_plan(engine: "Engine", contract: "Contract", plan_hash: str) -> "Plan":
    from tallystick.compensation.plan import PlanStale, plan_id_of
    from tallystick.store.plans.plan_store import read_plan
    from tallystick.text.plain import escape_untrusted

    plan = read_plan(engine, plan_id_of(plan_hash))
    if plan is None:
        raise PlanStale(
            f"{contract.name}: a plan of hash {escape_untrusted(plan_hash)} was never kept; expected the plan_hash of "
            "one that `tallystick compensation plan` made with --by"
        )
    return plan


def _keep_signed(engine: "Engine", contract: "Contract", plan: "Plan", sheets: Sequence[Path]) -> None:
    """Check each sheet's signature, and record the approval in the audit trail. Raises ApprovalRefused."""
    if not sheets:
        return
    from tallystick.compensation.signed_approval import SheetRules, approval_sheet, read_signed, read_signers
    from tallystick.host.terminal_user import this_terminal
    from tallystick.report.masking import Mask
    from tallystick.store.clock import store_now
    from tallystick.store.plans.approval_store import keep_signed

    rules = SheetRules(environment=_environment(), shown_key=Mask(contract).key, allowed=contract.compensation)

    def sheet_of(made_at_utc: datetime) -> str:
        return approval_sheet(plan, rules, made_at_utc=made_at_utc)

    signers, now_utc = read_signers(), store_now(engine)
    for signed in [read_signed(sheet, sheet_of, signers=signers, now_utc=now_utc) for sheet in sheets]:
        keep_signed(engine, plan, signed, terminal=this_terminal())


def _environment() -> str:
    return os.environ.get("TALLYSTICK_ENVIRONMENT", "production")


def _acting_connections(contract: "Contract") -> Connections:
    rules = contract.compensation
    post, trigger = (rules.post, rules.trigger) if rules else (None, None)
    return connections_from_environment(
        kafka_id=contract.kafka.connection,
        ledger_id=contract.ledger.connection,
        poster_id=post.connection if post else None,
        airflow_id=trigger.connection if trigger else None,
    )


@compensation_commands.command("reopen")
def reopen(
    contract_file: ContractFile,
    action: Annotated[str, typer.Argument(metavar="ACTION", help="Id of the action, as in the audit trail.")],
    by: Annotated[str, typer.Option(metavar="NAME", help="Who checked it, and is responsible.")],
    reason: Annotated[str, typer.Option(metavar="TEXT", help="What was found; the audit trail keeps it.")],
    approval: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The sheet that a second person signed, with FILE.sig beside it."),
    ] = None,
) -> None:
    """Let the next plan repair a break again whose action is done or waits for a person. This needs two people.

    First check that the repair does not exist: no event and no row of this action. If a DAG repairs it: no run of this
    id in Airflow that did anything or may still; delete a run of this id there, or the DAG is not started again.

    Without --approval the command prints a sheet, which a second person reads and signs: see
    `tallystick compensation sheet --help`. With --approval, and the same --by and --reason, it reopens the action. The
    next plan proves again that neither the topic nor the ledger has the repair before it writes anything. Of what a
    DAG does it proves nothing.

    Example: `tallystick compensation reopen payouts.yaml 8f0c... --by "Ada Byron" --reason "its record was forged"`
    """
    from tallystick.compensation.kill_switch import words_of
    from tallystick.compensation.signed_approval import reopening_sheet
    from tallystick.contract.contract import load_contract
    from tallystick.host.terminal_user import at_terminal, this_terminal
    from tallystick.store.clock import store_now
    from tallystick.store.engine import open_store
    from tallystick.store.plans.reopen_store import reopen_action

    contract, who, why = load_contract(contract_file), words_of("--by", by), words_of("--reason", reason)
    engine, terminal = open_store(store_dsn()), this_terminal()
    reopening = _reopening_of(engine, contract, action, by=who, reason=why)
    now_utc = store_now(engine)
    if approval is None:
        typer.echo(reopening_sheet(reopening, made_at_utc=now_utc), nl=False)
        return
    signed = _second_person(contract, reopening, approval, asked=(who, terminal.os_user), now_utc=now_utc)
    proof = {"agreed": signed.signer, "key": signed.key_fingerprint, "document_sha256": signed.document_sha256}
    done = reopen_action(
        engine,
        contract.name,
        reopening.action_id,
        by=who,
        reason=why,
        proof=proof | at_terminal(terminal),
        before=reopening.before,
    )
    typer.echo(f"action {done.action_id}: reopened, was {done.was}; the next plan may repair break {done.break_id}")


def _reopening_of(engine: "Engine", contract: "Contract", action: str, *, by: str, reason: str) -> "Reopening":
    """Describe what a second person signs. Raises ReopenRefused if no such action is done or waits, so that nobody
    signs in vain.
    """
    from tallystick.compensation.signed_approval import Reopening
    from tallystick.store.plans.plan_store import open_actions
    from tallystick.store.plans.reopen_store import ReopenRefused, why_not_reopened
    from tallystick.text.plain import escape_untrusted

    stored = {str(action_id): one for action_id, one in open_actions(engine, contract.name).items()}.get(action)
    if stored is None:
        raise ReopenRefused(
            f"{contract.name}: {escape_untrusted(action)} is no action that is done or waits; expected the id of one"
        )
    if reason_against := why_not_reopened(stored.state, stored.break_id):
        raise ReopenRefused(f"{contract.name}: action {stored.action_id} {reason_against}")
    return Reopening(
        contract=contract.name,
        environment=_environment(),
        action_id=stored.action_id,
        by=by,
        reason=reason,
        before=stored.reopened,
        state=stored.state,
        outcome=stored.outcome,
    )


def _second_person(
    contract: "Contract", reopening: "Reopening", sheet: Path, *, asked: tuple[str, str], now_utc: datetime
) -> "SignedApproval":
    """Check the signed sheet. Raises ApprovalRefused, ApprovalTooOld."""
    from tallystick.compensation.approval_rules import approval_holds, refuse_one_reopener
    from tallystick.compensation.plan import ApprovalTooOld
    from tallystick.compensation.signed_approval import read_signed, read_signers, reopening_sheet

    def sheet_of(made_at_utc: datetime) -> str:
        return reopening_sheet(reopening, made_at_utc=made_at_utc)

    signed = read_signed(sheet, sheet_of, signers=read_signers(), now_utc=now_utc)
    refuse_one_reopener(contract, asked=asked, agreed=signed.signer)
    if not approval_holds(contract, now_utc - signed.made_at_utc):
        raise ApprovalTooOld(
            f"{sheet}: older than the contract's approval_valid_seconds; expected a sheet that was made since"
        )
    return signed


@compensation_commands.command("stop")
def stop_acting(by: By, reason: Reason, contract: WhichContract = None) -> None:
    """Stop the compensations of one contract, or of all, at once. A plan that is executing stops before its next step.

    Example: `tallystick compensation stop --by "Ada Byron" --reason "the relay is being repaired"`
    """
    _turn(contract, stopped=True, by=by, reason=reason)


@compensation_commands.command("allow")
def allow_acting(by: By, reason: Reason, contract: WhichContract = None) -> None:
    """Allow compensations again after `stop`. A contract that was stopped by its name must be allowed by its name.

    Example: `tallystick compensation allow --by "Ada Byron" --reason "repaired, case 4711"`
    """
    _turn(contract, stopped=False, by=by, reason=reason)


def _turn(contract: str | None, *, stopped: bool, by: str, reason: str) -> None:
    from tallystick.compensation.kill_switch import SwitchSetting, words_of
    from tallystick.host.terminal_user import this_terminal
    from tallystick.store.clock import store_now
    from tallystick.store.engine import open_store
    from tallystick.store.plans.switch_store import set_switch

    who, why = words_of("--by", by), words_of("--reason", reason)
    engine = open_store(store_dsn())
    _require_cut(engine, contract)
    setting = SwitchSetting(
        contract=contract, stopped=stopped, by=who, because=why, at_utc=store_now(engine), terminal=this_terminal()
    )
    set_switch(engine, setting)
    whose = f"compensations of {contract}" if contract else "all compensations"
    typer.echo(f"{whose}: {'stopped' if stopped else 'allowed'}")


def _require_cut(engine: "Engine", contract: str | None) -> None:
    """Refuse a mistyped name: it must not look like a contract that was stopped. Raises SwitchRefused."""
    from tallystick.compensation.kill_switch import SwitchRefused
    from tallystick.store.runs.contract_store import newest_contract
    from tallystick.text.plain import escape_untrusted

    if contract is not None and newest_contract(engine, contract) is None:
        raise SwitchRefused(
            f"{escape_untrusted(contract)}: no cut of it is stored; expected a contract's name, or none"
        )
