"""Samples: how far both sides were at one moment. Appended by the settle trigger and by each cut."""

from datetime import datetime

from sqlalchemy import Engine, select
from sqlalchemy.dialects.postgresql import insert

from tallystick.model.cut import Sample
from tallystick.model.offsets import TopicPartition
from tallystick.store.schema import sample as sample_table


def append_sample(engine: Engine, contract_name: str, sample: Sample) -> None:
    """Keep a sample. One of the same moment that is there already stays as it is."""
    statement = insert(sample_table).on_conflict_do_nothing()
    with engine.begin() as connection:
        connection.execute(
            statement,
            {
                "contract": contract_name,
                "at_utc": sample.at_utc,
                "ledger_xmin": sample.ledger_low_mark,
                "ledger_xmax": sample.ledger_high_mark,
                "high_watermarks": [[part.topic, part.partition, mark] for part, mark in sample.high_watermarks],
            },
        )


def read_samples(engine: Engine, contract_name: str, *, since_utc: datetime) -> tuple[Sample, ...]:
    """Samples at or after since_utc, oldest first."""
    statement = (
        select(sample_table)
        .where(sample_table.c.contract == contract_name, sample_table.c.at_utc >= since_utc)
        .order_by(sample_table.c.at_utc)
    )
    with engine.connect() as connection:
        return tuple(
            Sample(
                at_utc=row.at_utc,
                high_watermarks=tuple(
                    (TopicPartition(topic=topic, partition=partition), mark)
                    for topic, partition, mark in row.high_watermarks
                ),
                ledger_low_mark=row.ledger_xmin,
                ledger_high_mark=row.ledger_xmax,
            )
            for row in connection.execute(statement)
        )
