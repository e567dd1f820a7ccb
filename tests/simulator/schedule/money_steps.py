"""Steps that write, carry and lose money."""

from collections.abc import Callable

from tests.simulator.schedule.services import Services
from tests.simulator.world.truth import Money

Step = Callable[[Services, int, int], None]


def pay(services: Services, a: int, b: int) -> None:
    """All legs of a new payment on the first side, in a transaction that stays open."""
    for n, money in enumerate(services.new_payment(b)):
        services.write(True, a, money, partition=a + b + n)


def pay_one_leg(services: Services, a: int, b: int) -> None:
    """Only one leg: the business transaction is torn."""
    money = services.new_payment(b)[0]
    services.write(True, a, money, partition=b)


def commit_first(services: Services, a: int, b: int) -> None:
    services.end(True, services.open_one(True, a), commit=True)


def commit_first_slowly(services: Services, a: int, b: int) -> None:
    """The end is decided, and one partition gets its marker; the others later."""
    services.end(True, a, commit=True, markers=b % 2)


def abort_first(services: Services, a: int, b: int) -> None:
    services.end(True, a, commit=False)


def carry(services: Services, a: int, b: int) -> None:
    services.carry(a, 0, b)


def carry_out_of_turn(services: Services, a: int, b: int) -> None:
    services.carry(a, b, b)


def commit_second(services: Services, a: int, b: int) -> None:
    services.end_carrying(services.open_one(False, a), commit=True)


def abort_second(services: Services, a: int, b: int) -> None:
    services.end_carrying(a, commit=False)


def trade(services: Services, a: int, b: int) -> None:
    """A payment from beginning to end, as it mostly goes."""
    pay(services, a, b)
    commit_first(services, a, b)
    for _ in services.world.contract.legs:
        services.carry(a, 0, b)
    commit_second(services, a, b)


def half_trade(services: Services, a: int, b: int) -> None:
    """Committed on the first side; the carrier comes later."""
    pay(services, a, b)
    commit_first(services, a, b)


def redeliver(services: Services, a: int, b: int) -> None:
    services.redeliver(a, b, a + b)
    commit_second(services, a, b)


def lose(services: Services, a: int, b: int) -> None:
    services.lose(b)


def carry_wrong(services: Services, a: int, b: int) -> None:
    """The carrier writes other money than was meant."""
    due = services.due()
    if due:
        services.carry(a, 0, b, changed=services.wrong(due[0][1], b))
        commit_second(services, a, b)


def carry_unread(services: Services, a: int, b: int) -> None:
    """A carrier that reads what is not committed: an event whose transaction is open, or was aborted."""
    services.carry_unread(a, b, b)
    commit_second(services, a, b)


def phantom(services: Services, a: int, b: int) -> None:
    """The second side gets what the first never had."""
    services.payments += 1
    leg = sorted(services.world.contract.legs)[0]
    money = Money(f"ph-{services.payments}", f"pay-ph-{services.payments}", leg, 5_000 + b, "EUR")
    services.write(False, a, money, partition=b, by="phantom")
    commit_second(services, a, b)


def first_again(services: Services, a: int, b: int) -> None:
    """The origin is written a second time, by a process that does not know of the first."""
    known = [one.money for one in services.carried.values()]
    if not known or (not services.world.config.topic_first and services.world.config.key_is_unique):
        return
    money = known[b % len(known)]
    services.world.tell(f"{money.match_key} is written again on the first side")
    services.write(True, a + 1, money, partition=b)
    services.end(True, a + 1, commit=True)


def both_again(services: Services, a: int, b: int) -> None:
    """A payment is made a second time on both sides: its first row was archived, or nobody looks."""
    known = [(origin, one.money) for origin, one in services.carried.items() if one.times]
    if not known or (
        services.world.config.key_is_unique
        and any(row.stands for row in services.world.truth.rows_of(known[b % len(known)][1].match_key))
    ):
        return
    money = known[b % len(known)][1]
    services.world.tell(f"{money.match_key} is paid again, on both sides")
    services.write(True, a, money, partition=b)
    services.end(True, a, commit=True)
    services.write(False, a, money, partition=b)
    services.end(False, a, commit=True)


def canary_key(services: Services, a: int, b: int) -> None:
    """A payment of somebody whose keys begin as those of planted copies do: on one side, or on both."""
    services.payments += 1
    n = services.payments
    for leg in sorted(services.world.contract.legs):
        money = Money(f"tallystick-canary-{n}-{leg}", f"pay-c-{n}", leg, 99_999, "EUR")
        services.write(True, a, money, partition=b)
    services.end(True, a, commit=True)


def keyless_legs(services: Services, a: int, b: int) -> None:
    """Two legs of two business transactions, neither of which says which one it is of."""
    legs = sorted(services.world.contract.legs)
    if len(legs) < 2:
        return
    for n, leg in enumerate(legs):
        services.payments += 1
        money = Money(f"ev-{services.payments}-{leg}", "", leg, 500 + b, "EUR")
        services.write(services.world.config.topic_first, a, money, partition=b + n)
    services.end(services.world.config.topic_first, a, commit=True)


def wait(services: Services, a: int, b: int) -> None:
    """Some minutes; or until a few before the hour is full, so that what comes next is young when it is judged."""
    clock = services.world.clock
    if b % 4 == 3:
        clock.go_to(clock.now.replace(minute=57, second=0, microsecond=0))
    else:
        clock.go(30 + 10 * (a * b % 60))


MONEY_STEPS: dict[str, Step] = {
    step.__name__: step
    for step in (
        pay,
        pay_one_leg,
        commit_first,
        commit_first_slowly,
        abort_first,
        carry,
        carry_out_of_turn,
        commit_second,
        abort_second,
        trade,
        half_trade,
        redeliver,
        lose,
        carry_wrong,
        carry_unread,
        phantom,
        first_again,
        both_again,
        canary_key,
        keyless_legs,
        wait,
    )
}
