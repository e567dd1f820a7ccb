"""The data that a task read and wrote, and what it found there, for Airflow's OpenLineage provider, which asks for it.

Nothing else calls this, and nothing of the provider is imported before.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import Dataset
    from openlineage.client.facet_v2 import RunFacet

    from tallystick.documents.lineage_assertions import LineageAssertion
    from tallystick.documents.lineage_names import DatasetName

    TaskLineage: TypeAlias = OperatorLineage[Dataset, RunFacet]


def lineage_of(
    *,
    read: "Iterable[DatasetName]",
    written: "Iterable[DatasetName]",
    asserted: "Iterable[LineageAssertion]" = (),
) -> "TaskLineage":
    """Return the lineage in the provider's form. asserted: of each dataset that was read."""
    from airflow.providers.openlineage.extractors import OperatorLineage
    from openlineage.client.event_v2 import Dataset, InputDataset
    from openlineage.client.facet_v2 import data_quality_assertions_dataset as quality

    assertions = [
        quality.Assertion(
            assertion="tallystick",
            success=one.success,
            name=one.name,
            severity="error",
            description=one.description,
            expected=one.expected,
            actual=one.actual,
        )
        for one in asserted
    ]
    facets = (
        {"dataQualityAssertions": quality.DataQualityAssertionsDatasetFacet(assertions=assertions)}
        if assertions
        else {}
    )
    return OperatorLineage(
        inputs=[InputDataset(namespace=one.namespace, name=one.name, inputFacets={**facets}) for one in read],
        outputs=[Dataset(namespace=one.namespace, name=one.name) for one in written],
    )
