"""Clients are heard in order, and not while the machine forgets."""

from collections.abc import Sequence
from typing import Any, cast

import pytest

from shoal.ids import ClientId, ClientTaskId
from shoal.protocol.framing import ProtocolError
from shoal.protocol.messages import (
    CancelTasks,
    ClientHeartbeat,
    Message,
    ReleaseTasks,
    SubmitTasks,
)
from shoal.scheduler.model.entities import Client
from shoal.scheduler.shell.frames import ClientFrames

RELEASE = ReleaseTasks([ClientTaskId(1)])
CANCEL = CancelTasks([ClientTaskId(1)])
SUBMIT = SubmitTasks(ClientTaskId(1), [], [], [], [], [""], [])
BEAT = ClientHeartbeat()


class Listener:
    """Stands for the machine: forgets from a release on until it is told to be through."""

    def __init__(self) -> None:
        self.is_forgetting = False
        self.heard: list[tuple[str, list[Message]]] = []
        self.refused: list[Client] = []
        self.error: ProtocolError | None = None
        self.frames = ClientFrames(cast(Any, self), self.receive, self.refuse)

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
    listener.is_forgetting, listener.error = False, ProtocolError("columns of different lengths")
    listener.frames.go_on()
    assert listener.refused == [bob]


def test_a_contradiction_that_is_heard_at_once_is_its_connections_matter(
    listener: Listener, alice: Client
) -> None:
    listener.error = ProtocolError("columns of different lengths")
    with pytest.raises(ProtocolError):
        listener.frames.take(alice, [SUBMIT])
    assert not listener.refused
