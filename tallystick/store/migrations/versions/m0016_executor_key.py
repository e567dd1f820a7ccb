"""Progress records are sealed by a secret of the store's executors, drawn by the server, which no log shows. An action
may wait for a person, who may reopen it.
"""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_KEY = """
create table tallystick.executor_key (
    only_one boolean default true not null,
    secret bytea not null,
    recorded_at timestamptz default clock_timestamp() not null,
    constraint executor_key_pk primary key (only_one),
    constraint executor_key_only_one_ck check (only_one),
    constraint executor_key_secret_ck check (octet_length(secret) >= 32)
);
comment on table tallystick.executor_key is 'by which executors know their own progress records; nobody else reads it';
insert into tallystick.executor_key (secret)
values (sha256(convert_to(concat(gen_random_uuid(), gen_random_uuid(), gen_random_uuid()), 'UTF8')));
"""
"""Three random UUIDs have 366 bits that nobody can foresee: PostgreSQL draws them by pg_strong_random."""

_ACTIONS = """
alter table tallystick.compensation_action drop constraint compensation_action_state_ck;
alter table tallystick.compensation_action add constraint compensation_action_state_ck
    check (state in ('executing', 'done', 'refused', 'waiting'));
alter table tallystick.compensation_action add column reopened integer default 0 not null;
alter table tallystick.compensation_action add column void_progress jsonb;
comment on column tallystick.compensation_action.reopened is 'how often a person has reopened it';
comment on column tallystick.compensation_action.void_progress
    is 'progress topic, and up to which offset its records prove nothing of this action any more';
"""


def upgrade() -> None:
    op.execute(_KEY)
    op.execute(_ACTIONS)
