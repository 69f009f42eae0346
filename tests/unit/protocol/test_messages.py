"""Messages keep their bytes, and each side reads what the other says."""

from typing import Any

import msgspec
import pytest

from shoal.protocol import directions, membership
from shoal.protocol.answers import Answer, answer
from shoal.protocol.codec import Decoder, encode
from shoal.protocol.directions import ANSWERS, answered
from shoal.protocol.messages import Message, RunTask
from shoal.protocol.streams import STREAM_WORDS
from tests.unit.protocol import golden

UNIONS = {
    name: getattr(directions, name)
    for name in (
        "ClientToScheduler",
        "SchedulerToClient",
        "WorkerToScheduler",
        "SchedulerToWorker",
        "ToWorkerFromPeer",
        "FromWorkerToPeer",
    )
} | {"streams": STREAM_WORDS}


@pytest.mark.parametrize(("name", "said"), list(golden.lines()))
def test_a_message_has_the_bytes_that_it_always_had(name: str, said: str) -> None:
    """Otherwise a peer of another version misunderstands it: see golden.py."""
    assert golden.read().get(name) == said


def test_no_message_that_was_ever_said_is_gone() -> None:
    """Tags are never used for something else, and fields never removed."""
    assert golden.read().keys() == dict(golden.lines()).keys()


@pytest.mark.parametrize("kind", list(golden.classes().values()))
def test_whoever_may_hear_a_message_reads_what_was_said(kind: type[Message]) -> None:
    """By the decoder of each direction in which it is said."""
    hearers = [union for union in UNIONS.values() if kind in getattr(union, "__args__", (union,))]
    assert hearers
    for union in hearers:
        for said in (golden.least(kind), golden.full(kind)):
            assert Decoder(union).decode(encode([said])) == [said]


def test_full_samples_set_every_field_to_something_else() -> None:
    """So that two fields changing places would show."""
    for kind in golden.classes().values():
        for field in msgspec.structs.fields(kind):
            assert getattr(golden.full(kind), field.name) != field.default


def test_an_input_is_a_number_or_says_where_it_is() -> None:
    """Both in one list, told apart by what they are."""
    said = golden.full(RunTask)
    assert [type(item).__name__ for item in said.inputs] == ["int", "Input"]
    assert Decoder(RunTask).decode(encode([said])) == [said]


@pytest.mark.parametrize("call", list(ANSWERS))
def test_an_answer_is_read_as_its_call_declares(call: type[Message]) -> None:
    """Whatever type that is."""
    kind = ANSWERS[call]
    value: Any = None if kind is None else golden.sample(kind, "value")
    assert answered(call, answer(5, value)) == value


def test_an_answer_of_another_type_is_refused() -> None:
    """The two ends are of different versions, and should say so rather than go on."""
    with pytest.raises(msgspec.ValidationError, match="Expected `int`, got `str`"):
        answered(membership.AwaitWorkers, answer(5, "two"))


def test_an_answer_without_a_value_is_none() -> None:
    """What is asked for its effect only is answered so."""
    assert answered(membership.TerminateCluster, Answer(5)) is None
