"""One run of execute_plan, answered from what the model has told it so far."""

import sys
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from sqlalchemy.exc import OperationalError

from tallystick.compensation.plan import PlanStale
from tallystick.executor import execute_plan
from tallystick.kafka_log.fetch import BrokerUnreachable

from .calls import Call
from .frames import Constants, standing


class Asks(BaseException):
    """A start has come to a call that nobody has answered yet."""

    def __init__(self, call: Call, stands: Any) -> None:
        self.call, self.stands = call, stands


@dataclass
class Start:
    """One run of execute_plan. answers: to its first calls. clock: in seconds; looks: at the topics that it settles.

    walls_files: whose frames hold nothing of the product.
    """

    answers: tuple[tuple[Any, str], ...]
    constants: Constants
    whole_history: bool
    walls_files: frozenset[str]
    asked: int = 0
    publishers: int = 0
    clock: float = 0.0
    looks: int = 0

    def ask(self, name: str, *arguments: Any) -> Any:
        """The answer, or the start's end."""
        if self.asked < len(self.answers):
            told, raises = self.answers[self.asked]
            self.asked += 1
            if raises:
                raise error_of(raises)
            return told
        call = Call(name, arguments)
        stands: Any = self.answers
        if not self.whole_history:
            stands = standing(sys._getframe(1), execute_plan.execute_plan.__code__, self.walls_files, self.constants)
        raise Asks(call, (stands, self.publishers, self.clock, self.looks))


def error_of(name: str) -> Exception:
    if name == "store":
        return OperationalError("", {}, Exception("the connection is lost"))
    if name == "broker":
        return BrokerUnreachable("the broker does not answer")
    if name == PlanStale.__name__:
        return PlanStale("another plan has it")
    if name == "fenced":
        return KafkaException(KafkaError(KafkaError._FENCED, "fenced"))
    if name == "fatal":
        return KafkaException(KafkaError(KafkaError._FATAL, "fatal", fatal=True))
    if name == "abortable":
        return KafkaException(KafkaError(KafkaError._TIMED_OUT, "the transaction failed", txn_requires_abort=True))
    if name == "retriable":
        return KafkaException(KafkaError(KafkaError._TIMED_OUT, "again", retriable=True))
    assert name == "final", name
    return KafkaException(KafkaError(KafkaError._TRANSPORT, "no answer"))
