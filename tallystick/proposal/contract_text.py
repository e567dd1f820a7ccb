"""Writes a proposal as the YAML of a contract, with why behind each line."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined

from tallystick.contract.sql_names import spelled
from tallystick.proposal.catalogue_choices import Choice
from tallystick.proposal.fields import Proposal
from tallystick.proposal.samples import ColumnKind, TableSample, TopicSample

_OVERLAP = {ColumnKind.INTEGER: 1000, ColumnKind.TIME: 300}
"""Values of an integer, seconds of a timestamp."""


def contract_text(
    proposal: Proposal,
    topics: Sequence[TopicSample],
    table: TableSample,
    *,
    name: str,
    connections: Mapping[str, str],
    now: datetime,
) -> str:
    """Return the YAML. connections: the ids of `kafka` and `ledger`. Only for a proposal that misses nothing."""
    environment = Environment(
        loader=PackageLoader("tallystick.proposal", "."),
        undefined=StrictUndefined,
        autoescape=False,  # YAML; names were held against the contract's patterns, other texts are quoted as JSON
        keep_trailing_newline=True,
    )
    environment.filters["as_yaml"] = _as_yaml
    environment.filters["as_column"] = lambda name: _as_yaml(spelled(name))
    return environment.get_template("contract.yaml.jinja2").render(
        proposal=proposal,
        table=table,
        name=name,
        owner=name,
        file=f"{name}.yaml",
        legs=_legs(proposal, topics),
        overlap=_overlap(proposal, table),
        start_date=now.astimezone(UTC).replace(minute=0, second=0, microsecond=0).strftime("%Y-%m-%dT%H:%M:%SZ"),
        why=_why,
        **connections,
    )


def _as_yaml(path: str) -> str:
    """Return a path as YAML reads it as this text: in single quotes where it has quotes, or would be another value."""
    doubled = path.replace("'", "''")
    return path if '"' not in path and yaml.safe_load(path) == path else f"'{doubled}'"


def _why(choice: Choice) -> str:
    return f"  # {choice.why}" if choice.why else ""


def _legs(proposal: Proposal, topics: Sequence[TopicSample]) -> dict[str, str]:
    """Each topic by the word that its events have for a leg; every event of a sample has the same one."""
    (leg,) = [pairing for pairing in proposal.pairings if pairing.role == "leg"]
    if leg.constant:
        return {leg.constant: topics[0].topic}
    key = leg.key
    return {str(next(event[key] for event in topic.events if key in event)): topic.topic for topic in topics}


def _overlap(proposal: Proposal, table: TableSample) -> int:
    kinds = {column.name: column.kind for column in table.columns}
    return _OVERLAP[kinds[proposal.order_by.value]] if proposal.order_by else 0
