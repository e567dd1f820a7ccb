"""Steps that befall the log and its producers."""

from tallystick.kafka_log.batch_header import Marker
from tests.simulator.schedule.money_steps import Step
from tests.simulator.schedule.services import WHO, Services
from tests.simulator.world.broker import PartitionLog, Producer
from tests.simulator.world.truth import Money


def _log(services: Services, which: int) -> PartitionLog:
    logs = services.world.broker.logs_of(services.world.topics)
    return logs[which % len(logs)]


def _producers(services: Services) -> list[Producer]:
    return [one for name, one in sorted(services.world.broker.producers.items()) if name.startswith(("app", "carrier"))]


def mark_one(services: Services, a: int, b: int) -> None:
    """A marker that was due comes."""
    for producer in _producers(services):
        services.world.broker.mark_one(producer, now_ms=services.world.clock.now_ms)
    services.world.look()


def hang(services: Services, a: int, b: int) -> None:
    """The coordinators lose their log: what is open stays so."""
    for producer in _producers(services):
        if producer.wrote and not producer.forgotten:
            producer.forgotten = True
            services.world.tell(f"the coordinator has forgotten {producer.name}'s open transaction")


def come_back(services: Services, a: int, b: int) -> None:
    """A producer starts again under its id: its predecessor's transaction is aborted."""
    for side in ("app", "carrier"):
        name = f"{side}-{a % WHO}"
        producer = services.world.broker.producers.get(name)
        if producer is not None:
            services.world.tell(f"{name} starts again and fences what was before")
            was_open = bool(producer.wrote) and not producer.forgotten
            services.world.broker.init(name, now_ms=services.world.clock.now_ms)
            services.world.look()
            if side == "carrier" and was_open:
                for origin, _ in services.pending.pop(a % WHO, []):
                    services.carried[origin].times -= 1


def retain(services: Services, a: int, b: int) -> None:
    """Retention takes the older part of a partition, all of it at most up to the LSO."""
    log = _log(services, a)
    upper = min(log.lso, log.end)
    target = log.log_start + (upper - log.log_start) * (1 + b % 4) // 4
    if target > log.log_start:
        log.retain_from(target)
        services.world.tell(f"retention takes {log.place} up to {log.log_start}")
        services.world.truth.losses.append((services.world.clock.now, "retained", log.place, log.log_start))
        services.world.truth.retained(services.world.broker)


def retain_all(services: Services, a: int, b: int) -> None:
    for n in range(len(services.world.broker.logs_of(services.world.topics))):
        retain(services, n, 3)


def let_compact(services: Services) -> None:
    """The topics' owner changes their policy."""
    services.world.admin.compacted_topics |= set(services.world.contract.topics)


def compact(services: Services, a: int, b: int) -> None:
    """The cleaner has been there."""
    let_compact(services)
    world = services.world
    for log in world.broker.logs_of(world.contract.topics):
        if gone := log.compact():
            world.tell(f"compaction takes {log.place} at {', '.join(map(str, gone))}")
            world.truth.compacted(log, gone, world.clock.now)


def truncate(services: Services, a: int, b: int) -> None:
    """An unclean election: the last batches are gone."""
    log = _log(services, a)
    if len(log.batches) < 2:
        return
    before = dict(log.open_since)
    log.truncate_to(log.batches[-1 - b % 2].first)
    services.world.tell(f"an unclean election cuts {log.place} back to {log.end}")
    services.world.truth.log_cut(log.place, log.topic_id, log.end)
    services.world.truth.reopened(log.place, before, services.world.broker)
    services.world.truth.losses.append((services.world.clock.now, "truncated", log.place, log.end))
    for producer in _producers(services):
        if log.place in producer.wrote and producer.producer_id not in log.open_since:
            producer.wrote.remove(log.place)
    services.world.look()


def rewrite_tail(services: Services, a: int, b: int) -> None:
    """The same, and as much is written again before anybody looks: no count tells."""
    log = _log(services, a)
    before, legs = log.end, services.world.contract.legs
    if log.place.topic not in legs.values():
        return
    truncate(services, a, b)
    while log.end < before:
        money = next(one for one in services.new_payment(b) if legs[one.leg] == log.place.topic)
        services.world.tell(f"somebody publishes {money.match_key} where others stood")
        services.world.publish(None, log.place, money, by="service", session="x")


def recreate(services: Services, a: int, b: int) -> None:
    topic = ((services.world.contract.input_topics if b % 2 else ()) or services.world.contract.topics)[0]
    if services.world.truth.baseline_at is None:
        return
    services.world.tell(f"topic {topic} is deleted and created again")
    services.world.broker.create_topic(topic, services.world.config.partitions)
    services.world.truth.losses.append((services.world.clock.now, "recreated", None, 0))
    services.world.look()
    for fact in services.world.truth.events:
        if fact.place.topic == topic and fact.outcome == "open":
            fact.outcome = "lost"


def fall_behind(services: Services, a: int, b: int) -> None:
    """Too few replicas: the high watermark stands still."""
    log = _log(services, a)
    if log.replicated is None:
        log.replicated = log.end
        services.world.tell(f"the replicas of {log.place} fall behind at {log.end}")


def catch_up(services: Services, a: int, b: int) -> None:
    for log in services.world.broker.logs_of(services.world.topics):
        log.replicated = None


def lead(services: Services, a: int, b: int) -> None:
    """Another leader, in good order."""
    _log(services, a).leader_epoch += 1


def _poisoned(number: int) -> bytes:
    """Values that are no event of anybody's, each for another reason."""
    event = b'{"event_id": "x", "payment_id": "y", "leg": "payout", "amount_minor": 5, "currency": "EUR"'
    return (
        b"no JSON",
        b"{}",
        b'{"event_id": 5}',
        event + b', "note": ' + b"[" * 3_000 + b"]" * 3_000 + b"}",
        event.replace(b'"x"', b'"\\u0000"') + b"}",
        event.replace(b'"x"', b'"' + b"k" * 6_000 + b'"') + b"}",
        event.replace(b'"y"', b'""') + b"}",
        event.replace(b": 5", b": 1e400") + b"}",
    )[number]


def poison(services: Services, a: int, b: int) -> None:
    """A record that nobody can read as an event. Where a contract has one leg, a transaction key may be empty."""
    world, log = services.world, _log(services, a)
    number = b % 8 if len(world.contract.legs) > 1 else b % 6
    money = Money("", "", "", 0, "")
    world.publish(None, log.place, money, by="poison", session="x", value=_poisoned(number), readable=False)
    world.tell(f"somebody writes a record into {log.place} that is no event (kind {number})")


def end_on_one_partition(services: Services, a: int, b: int) -> None:
    """An administrator aborts one partition's part of a transaction that its producer commits."""
    for producer in _producers(services):
        if len(producer.wrote) > 1 and producer.decided is None:
            place = producer.wrote[0]
            log = services.world.broker.partitions[place]
            log.end_transaction(
                producer.producer_id, Marker.ABORT, epoch=producer.epoch, timestamp_ms=services.world.clock.now_ms
            )
            services.world.tell(f"somebody aborts {producer.name}'s transaction on {place} alone")
            services.world.look()
            return


def cluster_down(services: Services, a: int, b: int) -> None:
    services.world.admin.down = not services.world.admin.down
    services.world.tell(f"the cluster {'does not answer' if services.world.admin.down else 'answers again'}")


LOG_STEPS: dict[str, Step] = {
    step.__name__: step
    for step in (
        mark_one,
        hang,
        come_back,
        retain,
        retain_all,
        compact,
        truncate,
        rewrite_tail,
        recreate,
        fall_behind,
        catch_up,
        lead,
        poison,
        end_on_one_partition,
        cluster_down,
    )
}
