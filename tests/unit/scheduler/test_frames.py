"""Clients are heard in order, and not while the machine forgets."""

from collections.abc import Sequence
from typing import Any, cast

import msgspec
import pytest

from shoal.ids import ClientId, ClientTaskId, Key
from shoal.protocol.detached import CancelKeys, DetachTasks
from shoal.protocol.framing import ProtocolError
from shoal.protocol.messages import (
    CancelTasks,
    ClientHeartbeat,
    Message,
    ReleaseTasks,
    SubmitTasks,
)
from shoal.scheduler.model.entities import Client
from shoal.scheduler.shell.frames import TASKS_MAX, ClientFrames

RELEASE = ReleaseTasks([ClientTaskId(1)])
CANCEL = CancelTasks([ClientTaskId(1)])
SUBMIT = SubmitTasks(ClientTaskId(1), [], [], [], [], [""], [])
BEAT = ClientHeartbeat()


class Listener:
    """Stands for the machine: forgets from a release on until it is told to be through."""

    def __init__(self) -> None:
        self.is_forgetting = False
        self.heard: list[tuple[str, list[Message]]] = []
        self.lost: list[Client] = []
        self.refused: list[Client] = []
        self.error: ProtocolError | None = None
        self.frames = ClientFrames(cast(Any, self), self.receive, self.lost.append, self.refuse)

    def receive(self, client: Client, messages: Sequence[Message]) -> None:
        if self.error is not None:
            raise self.error
        self.heard.append((client.name, list(messages)))
        self.is_forgetting = any(isinstance(said, ReleaseTasks) for said in messages)

    def refuse(self, client: Client, error: ProtocolError) -> None:
        assert error is self.error
        self.refused.append(client)


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def alice() -> Client:
    return Client(ClientId(1), "alice", 0.0)


@pytest.fixture
def bob() -> Client:
    return Client(ClientId(2), "bob", 0.0)


def test_what_is_said_in_quiet_is_heard_at_once(listener: Listener, alice: Client) -> None:
    listener.frames.take(alice, [SUBMIT, BEAT])
    assert listener.heard == [("alice", [SUBMIT, BEAT])]


def test_what_follows_a_release_waits_until_all_is_forgotten(
    listener: Listener, alice: Client
) -> None:
    listener.frames.take(alice, [BEAT, RELEASE, SUBMIT])
    listener.frames.go_on()
    assert listener.heard == [("alice", [BEAT, RELEASE])]
    assert not listener.frames.is_one_due

    listener.is_forgetting = False
    assert listener.frames.is_one_due
    listener.frames.go_on()
    assert listener.heard[1:] == [("alice", [SUBMIT])]
    assert not listener.frames.is_one_due


def test_all_clients_wait_and_are_heard_in_order(
    listener: Listener, alice: Client, bob: Client
) -> None:
    listener.frames.take(alice, [RELEASE])
    listener.frames.take(bob, [BEAT])
    listener.frames.take(alice, [SUBMIT])
    listener.is_forgetting = False
    listener.frames.take(bob, [SUBMIT])  # no overtaking, though nothing is being forgotten now
    assert listener.heard == [("alice", [RELEASE])]

    for _ in range(3):
        listener.frames.go_on()
    assert listener.heard[1:] == [("bob", [BEAT]), ("alice", [SUBMIT]), ("bob", [SUBMIT])]


def test_a_release_that_leaves_nothing_to_forget_holds_nobody_up(
    listener: Listener, alice: Client
) -> None:
    listener.frames.take(alice, [CANCEL, SUBMIT])
    assert listener.heard == [("alice", [CANCEL]), ("alice", [SUBMIT])]


def test_a_contradiction_that_had_to_wait_ends_its_clients_connection(
    listener: Listener, alice: Client, bob: Client
) -> None:
    listener.frames.take(alice, [RELEASE])
    listener.frames.take(bob, [SUBMIT])
    listener.frames.take(bob, [SUBMIT, BEAT])
    listener.is_forgetting, listener.error = False, ProtocolError("columns of different lengths")
    listener.frames.go_on()
    assert listener.refused == [bob]
    assert not listener.frames.is_one_due  # what else it said is not heard


def test_a_contradiction_that_is_heard_at_once_is_its_connections_matter(
    listener: Listener, alice: Client
) -> None:
    listener.error = ProtocolError("columns of different lengths")
    with pytest.raises(ProtocolError):
        listener.frames.take(alice, [SUBMIT])
    assert not listener.refused


def numbers(n: int) -> list[ClientTaskId]:
    return [ClientTaskId(number) for number in range(1, n + 1)]


def test_many_releases_are_heard_a_part_at_a_time_and_others_in_between(
    listener: Listener, alice: Client, bob: Client
) -> None:
    asked = numbers(2 * TASKS_MAX + 1)
    listener.frames.take(alice, [BEAT, ReleaseTasks(asked), SUBMIT])
    listener.frames.take(bob, [BEAT])
    assert listener.heard == [("alice", [BEAT, ReleaseTasks(asked[:TASKS_MAX])])]

    while listener.frames.is_one_due or listener.is_forgetting:
        listener.is_forgetting = False
        listener.frames.go_on()
    assert listener.heard[1:] == [
        ("alice", [ReleaseTasks(asked[TASKS_MAX:-1])]),
        ("alice", [ReleaseTasks(asked[-1:])]),
        ("alice", [SUBMIT]),
        ("bob", [BEAT]),
    ]


def test_many_small_releases_of_one_frame_are_heard_together_up_to_the_limit(
    listener: Listener, alice: Client
) -> None:
    half = CancelTasks(numbers(TASKS_MAX // 2), force=True)
    listener.frames.take(alice, [half, BEAT, half, half])
    assert listener.heard == [("alice", [half, BEAT, half]), ("alice", [half])]


def test_a_client_that_goes_is_lost_at_once_and_what_it_said_is_not_heard(
    listener: Listener, alice: Client, bob: Client
) -> None:
    listener.frames.take(bob, [RELEASE])
    listener.frames.take(alice, [SUBMIT])
    listener.frames.take(bob, [SUBMIT])
    listener.frames.leave(alice)
    assert listener.lost == [alice]

    listener.is_forgetting = False
    listener.frames.go_on()
    assert listener.heard == [("bob", [RELEASE]), ("bob", [SUBMIT])]
    assert not listener.frames.is_one_due


def test_a_client_that_goes_and_wants_much_is_lost_when_it_wants_nothing_any_more(
    listener: Listener, alice: Client
) -> None:
    task = cast(Any, None)
    alice.tasks.update(dict.fromkeys(numbers(TASKS_MAX + 1), task))
    listener.frames.leave(alice)
    assert listener.heard == [("alice", [ReleaseTasks(numbers(TASKS_MAX))])]
    listener.is_forgetting = False
    listener.frames.go_on()
    assert listener.heard[1:] == [("alice", [ReleaseTasks([ClientTaskId(TASKS_MAX + 1)])])]
    assert not listener.lost
    listener.is_forgetting = False
    listener.frames.go_on()
    assert listener.lost == [alice]


def test_many_tasks_of_one_frame_are_made_a_part_at_a_time(
    listener: Listener, alice: Client
) -> None:
    keys = [Key(f"x{n}") for n in range(TASKS_MAX)]
    much, little = (msgspec.structs.replace(SUBMIT, keys=some) for some in (keys, keys[:1]))
    listener.frames.take(alice, [BEAT, little, much, little, much, BEAT])
    assert listener.heard == [("alice", [BEAT, little, much])]
    listener.frames.go_on()
    listener.frames.go_on()
    assert listener.heard[1:] == [("alice", [little, much]), ("alice", [BEAT])]


@pytest.mark.parametrize(
    "said",
    [
        DetachTasks([ClientTaskId(n) for n in range(2 * TASKS_MAX + 1)]),
        CancelKeys([Key(f"x{n}") for n in range(2 * TASKS_MAX + 1)], True, "why"),
    ],
    ids=lambda said: type(said).__name__,
)
def test_messages_that_name_many_tasks_are_heard_a_part_at_a_time(
    listener: Listener, alice: Client, said: Any
) -> None:
    listener.frames.take(alice, [said])
    while listener.frames.is_one_due:
        listener.frames.go_on()
    parts = [part for _, heard in listener.heard for part in heard]
    column = msgspec.structs.fields(said)[0].name
    assert [len(getattr(part, column)) for part in parts] == [TASKS_MAX, TASKS_MAX, 1]
    joined = [number for part in parts for number in getattr(part, column)]
    assert msgspec.structs.replace(parts[0], **{column: joined}) == said
    assert all(len(heard) == 1 for _, heard in listener.heard)
