"""The data that a task read and wrote, for Airflow's OpenLineage provider, which asks for it where it is installed.

Nothing else calls this, and nothing of the provider is imported before.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import Dataset
    from openlineage.client.facet_v2 import RunFacet

    from tallystick.documents.lineage_names import DatasetName

    TaskLineage: TypeAlias = OperatorLineage[Dataset, RunFacet]


def lineage_of(*, read: "Iterable[DatasetName]", written: "Iterable[DatasetName]") -> "TaskLineage":
    """Return the lineage in the provider's form."""
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import Dataset

    return OperatorLineage(
        inputs=[Dataset(namespace=one.namespace, name=one.name) for one in read],
        outputs=[Dataset(namespace=one.namespace, name=one.name) for one in written],
    )
