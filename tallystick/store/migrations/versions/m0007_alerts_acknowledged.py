"""Alerts that a person acknowledged, and how long a receiver asked to be left alone."""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_ACKNOWLEDGED = """
alter table tallystick.alert
    drop constraint alert_action_ck,
    add constraint alert_action_ck check (action in ('trigger', 'resolve', 'acknowledge'));
create index alert_contract_dedup_key_alert_id_ix on tallystick.alert (contract, dedup_key, alert_id);
alter table tallystick.alert_delivery add column retry_after_seconds integer;
comment on column tallystick.alert_delivery.retry_after_seconds
    is 'until then this sink is not asked again, for whatever contract; null: it did not say';
create index alert_delivery_asked_to_wait_ix on tallystick.alert_delivery (sink, recorded_at)
    where retry_after_seconds is not null;
"""


def upgrade() -> None:
    op.execute(_ACKNOWLEDGED)
