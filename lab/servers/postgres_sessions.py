"""What a process has open at a PostgreSQL server, told by its ends of the connections; commits without an answer."""

from collections.abc import Collection
from dataclasses import dataclass

from lab.servers import process
from lab.servers.postgres import PostgresServer

_STANDBY = "synchronous_standby_names"
_WAITS = """
SELECT EXISTS (SELECT FROM pg_stat_activity
               WHERE client_port = ANY(%s) AND wait_event_type || ' ' || wait_event LIKE %s)"""
_END_IDLE = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE client_port = ANY(%s) AND state LIKE 'idle in transaction%%'"""
_END_WAITING = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


@dataclass(frozen=True)
class Sessions:
    """Of one server."""

    server: PostgresServer

    def wait_for_lock(self, ports: Collection[int]) -> bool:
        """Does a session of these ports wait until another one's transaction ends?"""
        return self._are_waiting(ports, "Lock %")

    def end_idle(self, ports: Collection[int]) -> None:
        """End those that are idle in a transaction, as the server's own time-out would."""
        with self.server.connect() as admin:
            admin.execute(_END_IDLE, (list(ports),))

    def hold_commits(self) -> None:
        """From now on a commit is on the disk and gets no answer: it waits for a standby that never comes.

        The checkpointer tells the sessions; it has heard before it does what it is asked next.
        """
        with self.server.connect() as admin:
            admin.execute(f"ALTER SYSTEM SET {_STANDBY} = 'nobody'")
            admin.execute("SELECT pg_reload_conf()")
            process.wait_until(self._is_reloaded, what="a ledger that holds its commits")
            admin.execute("CHECKPOINT")

    def wait_held(self, ports: Collection[int]) -> None:
        """Return once a commit of these ports is on the disk and waits."""
        process.wait_until(
            lambda: self._are_waiting(ports, "IPC SyncRep"), what="a commit that is held", deadline_seconds=60
        )

    def lose_answers(self) -> None:
        """Cut off whoever waits for the answer to a commit."""
        with self.server.connect() as admin:
            admin.execute(_END_WAITING)

    def let_commits_go(self, *, reload: bool = True) -> None:
        """Answer again; without reload only once the server starts again."""
        with self.server.connect() as admin:
            admin.execute(f"ALTER SYSTEM RESET {_STANDBY}")
            if reload:
                admin.execute("SELECT pg_reload_conf()")

    def _are_waiting(self, ports: Collection[int], kind: str) -> bool:
        with self.server.connect() as admin:
            return admin.execute(_WAITS, (list(ports), kind)).fetchone() == (True,)

    def _is_reloaded(self) -> bool:
        with self.server.connect() as newcomer:
            return newcomer.execute(f"SHOW {_STANDBY}").fetchone() == ("nobody",)
