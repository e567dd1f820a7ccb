"""Both sides of each window in figures, and what came of the contract's own expectations about them."""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_SUMMARY = """
alter table tallystick.verdict add column summary jsonb;
comment on column tallystick.verdict.summary
    is 'both sides in figures, for expectations; null: nothing was read, or it is older';
"""

_OUTCOME = """
create table tallystick.expectations_outcome (
    outcome_id bigint generated always as identity,
    contract text not null,
    cut_n integer not null,
    body jsonb not null,
    recorded_at timestamptz default clock_timestamp() not null,
    constraint expectations_outcome_pk primary key (outcome_id),
    constraint expectations_outcome_contract_cut_n_fk foreign key (contract, cut_n)
        references tallystick.verdict (contract, cut_n)
);
create index expectations_outcome_contract_cut_n_outcome_id_ix
    on tallystick.expectations_outcome (contract, cut_n, outcome_id);
comment on table tallystick.expectations_outcome
    is 'the newest of a cut counts; after one in which everything was evaluated none follows';
create trigger append_only before update or delete or truncate on tallystick.expectations_outcome
    for each statement execute function tallystick.refuse_change();
"""


def upgrade() -> None:
    op.execute(_SUMMARY)
    op.execute(_OUTCOME)
