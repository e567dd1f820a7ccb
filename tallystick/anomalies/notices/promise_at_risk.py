"""Config check: settings as they stand do not keep what exactly-once needs. A notice: nothing of it is wrong yet.

Evidence: the settings that this run read, and what its census counted. Not to be mistaken for a setting that could not
be read (unknown, which is no finding), for what the contract itself declares (unfiltered_reader), nor for harm that was
done (a class of its own each).
On-call is told only where acknowledged records may be lost whatever the producers do: an unclean leader election
allowed on a topic that has replicas to elect. All else, a single broker without replicas among it, is for the report.
"""

from collections.abc import Iterator
from dataclasses import asdict

from tallystick.contract.contract import Contract
from tallystick.kafka_cluster.config_check import CONTRACT, CheckResult, config_check
from tallystick.kafka_cluster.state import ClusterState
from tallystick.model.census_values import PartitionCensus
from tallystick.model.finding_names import Notice
from tallystick.model.findings import NoticeFound


def promise_at_risk(
    contract: Contract, census: tuple[PartitionCensus, ...], cluster: ClusterState
) -> Iterator[NoticeFound]:
    """Yield one notice per run, with every line at risk."""
    lines = config_check(
        contract,
        topics=cluster.topic_settings,
        broker=cluster.broker_settings,
        census=census,
        server_proofs=cluster.server_proofs,
    )
    at_risk = [line for line in lines if line.standing is CheckResult.AT_RISK and line.scope != CONTRACT]
    if at_risk:
        settings = ", ".join(dict.fromkeys(line.setting for line in at_risk))
        yield NoticeFound(
            notice=Notice.PROMISE_AT_RISK,
            sentence=f"{_settings(len(at_risk))} not keep what exactly-once needs: {settings}.",
            count=len(at_risk),
            pages=any(line.loses for line in at_risk),
            details={"lines": [asdict(line) for line in at_risk]},
        )


def settings_unseen(contract: Contract, cluster: ClusterState) -> Iterator[str]:
    """Yield the topics whose settings this run could not read."""
    return (topic for topic in contract.topics if cluster.settings_of(topic) is None)


def _settings(count: int) -> str:
    return "1 setting does" if count == 1 else f"{count} settings do"
