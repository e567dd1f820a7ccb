"""What a run saw of the cluster, from one run to the next: through JSON in one run of THROUGH_JSON_IN, as it is in the
others, since making the text and reading it again takes longer than most rules.
"""

from typing import Any

from tallystick.kafka_cluster.state import CLUSTER_STATE, ClusterState

THROUGH_JSON_IN = 50


class Kept(dict[str, Any]):
    """Stands for the document that a state is stored as: its one field is the state."""

    def __init__(self, state: ClusterState) -> None:
        super().__init__(state=state)


class StateChanged(AssertionError):
    """A state is not what it was once it has been stored and read."""


class KeptClusterState:
    """Stands for CLUSTER_STATE."""

    dumped = 0

    @classmethod
    def dump_python(cls, state: ClusterState, *, mode: str, by_alias: bool) -> dict[str, Any]:
        cls.dumped += 1
        if cls.dumped % THROUGH_JSON_IN != 1:
            return Kept(state)
        document: dict[str, Any] = CLUSTER_STATE.dump_python(state, mode="json", by_alias=by_alias)
        if CLUSTER_STATE.validate_python(document) != state:
            raise StateChanged(f"{state}: {document}")
        return document

    @staticmethod
    def validate_python(document: dict[str, Any]) -> ClusterState:
        if isinstance(document, Kept):
            kept: ClusterState = document["state"]
            return kept
        return CLUSTER_STATE.validate_python(document)
