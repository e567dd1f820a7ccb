"""Steps that change the ledger's rows and its server, whoever does it and why."""

from dataclasses import replace

from tests.simulator.schedule.money_steps import Step
from tests.simulator.schedule.services import WHO, Services
from tests.simulator.world.truth import RowFact

NEWEST = 4
"""With this as the first number a step picks among the newest rows, which no cut may have read yet."""


def _row(services: Services, a: int, b: int) -> RowFact | None:
    standing = services.standing_rows()
    if not standing:
        return None
    return standing[-1 - b % len(standing)] if a == NEWEST else standing[b % len(standing)]


def touch(services: Services, a: int, b: int) -> None:
    """UPDATE ... SET leg = leg."""
    row = _row(services, a, b)
    if row is not None and services.world.database.update("somebody", row.row_id):
        services.world.tell(f"row {row.row_id} of {row.money.match_key} is touched by an UPDATE that changes nothing")
        services.world.database.commit("somebody")
        services.world.look()


def change(services: Services, a: int, b: int) -> None:
    """The amount of a row is changed."""
    row, database = _row(services, a, b), services.world.database
    amount = services.wrong(row.money, 1 + a).amount_minor if row else 0
    if row is not None and database.update("somebody", row.row_id, amount_minor=amount):
        services.world.tell(f"row {row.row_id} of {row.money.match_key} is changed to {amount}")
        database.commit("somebody")
        services.world.look()


def delete(services: Services, a: int, b: int) -> None:
    row = _row(services, a, b)
    if row is not None and services.world.database.delete("somebody", row.row_id):
        services.world.tell(f"row {row.row_id} of {row.money.match_key} is deleted")
        services.world.database.commit("somebody")
        services.world.look()


def replace_row(services: Services, a: int, b: int) -> None:
    """DELETE and INSERT of the key, with other money."""
    row = _row(services, a, b)
    if row is not None and services.world.database.delete("somebody", row.row_id):
        services.world.post("somebody", replace(row.money, amount_minor=5_000_000), by="replaced")
        services.world.tell(f"row {row.row_id} of {row.money.match_key} is replaced by one of 5000000")
        services.world.database.commit("somebody")
        services.world.look()


def archive(services: Services, a: int, b: int) -> None:
    """The owner deletes old rows."""
    standing = services.standing_rows()
    old = standing[: len(standing) // 2]
    if not old:
        return
    gone = [row.row_id for row in old if services.world.database.delete("archive", row.row_id)]
    services.world.tell(f"rows {gone} are archived")
    services.world.database.commit("archive")
    services.world.look()


def rewrite(services: Services, a: int, b: int) -> None:
    services.world.tell("the table is rewritten")
    services.world.database.rewrite()
    services.world.look()


def savepoint(services: Services, a: int, b: int) -> None:
    for side in ("app", "carrier"):
        services.world.database.savepoint(f"{side}-{a % WHO}")


def release(services: Services, a: int, b: int) -> None:
    for side in ("app", "carrier"):
        services.world.database.release(f"{side}-{a % WHO}")


def prepare(services: Services, a: int, b: int) -> None:
    for side in ("app", "carrier"):
        if f"{side}-{a % WHO}" in services.world.database.writers:
            services.world.tell(f"{side}-{a % WHO} prepares its database transaction")
            services.world.database.prepare(f"{side}-{a % WHO}")


def crash_ledger(services: Services, a: int, b: int) -> None:
    services.world.tell("the ledger's server crashes and starts again")
    services.world.database.crash()
    _sessions_are_gone(services)


def switch_over(services: Services, a: int, b: int) -> None:
    services.world.tell("the ledger is switched over to its standby")
    services.world.database.switch_over()
    _sessions_are_gone(services)


def back_up(services: Services, a: int, b: int) -> None:
    """Of a table; nothing is known of backups of files and topics."""
    if services.world.config.slice_by not in ("xmin", "written_xid", "jdbc"):
        return
    services.backup = services.world.database.copy_now()
    services.world.tell("the ledger is backed up")


def restore(services: Services, a: int, b: int) -> None:
    """The newest backup is put back, or its disk, for whatever reason. Ids of since are given out again."""
    if services.backup is None:
        return
    world = services.world
    what = "disk" if b % 2 else "backup"
    world.tell(f"the ledger's {what} is put back: what came since is gone")
    world.database.restore(services.backup, a_disk=bool(b % 2))
    gone = world.truth.restored(world.database, world.clock.now)
    services.forget_rows(gone)
    _sessions_are_gone(services)


def _sessions_are_gone(services: Services) -> None:
    """What an open transaction had written is not there; its carrier delivers again."""
    if services.world.config.topic_first:
        for who in list(services.pending):
            if f"carrier-{who}" not in services.world.database.writers:
                for origin, _ in services.pending.pop(who):
                    services.carried[origin].times -= 1
    services.world.look()


def odd_id(services: Services, a: int, b: int) -> None:
    """A row that names its own written_xid: none, an old one, or one of the far future."""
    if services.world.config.slice_by != "written_xid":
        return
    money = services.new_payment(b)[0]
    row_id = services.world.post("import", money, by="import", written_xid=(1, 3, 10**15)[a % 3])
    services.world.database.commit("import")
    services.world.look()
    services.world.truth.rows[row_id].odd_id = True
    services.world.tell(f"row {row_id} of {money.match_key} comes in with written_xid {(1, 3, 10**15)[a % 3]}")


LEDGER_STEPS: dict[str, Step] = {
    step.__name__: step
    for step in (
        touch,
        change,
        delete,
        replace_row,
        archive,
        rewrite,
        savepoint,
        release,
        prepare,
        crash_ledger,
        switch_over,
        back_up,
        restore,
        odd_id,
    )
}
