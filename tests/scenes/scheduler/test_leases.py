"""Semaphores: so many hold one at once, all mean the same number, and closing it is an end."""

import re

import pytest

from shoal.protocol.coordination import (
    AcquireLease,
    CloseLock,
    CountLeases,
    DescribeCoordination,
    RegisterLock,
    ReleaseLock,
    SetEvent,
)
from shoal.protocol.framing import ProtocolError
from tests.scenes.scheduler.scene import Scene


def acquire(scene: Scene, claim: int, client: str = "c", **fields: object) -> None:
    """Claim one of the two leases of `x`."""
    fields = {"leases_max": 2, "registers": True, **fields}
    scene.call(AcquireLease, client, name="x", claim=claim, **fields)


def test_as_many_hold_it_as_there_are_leases_and_the_next_is_granted_as_one_ends(
    scene: Scene,
) -> None:
    """Of four, two wait; they follow in their order."""
    for claim in (1, 2, 3):
        acquire(scene, claim)
    acquire(scene, 1, "d")
    scene.call(CountLeases, name="x")
    assert scene.take() == ["c: answer True", "c: answer True", "c: answer 2"]
    scene.from_client("c", ReleaseLock("x", 2))
    assert scene.take() == ["c: answer True"]
    scene.lose_client("c")
    assert scene.take() == ["d: answer True"]


def test_another_number_of_leases_is_refused_while_anybody_knows_the_first(scene: Scene) -> None:
    """Held or not; once all who registered it have gone, the number is free."""
    scene.call(RegisterLock, name="x", leases_max=2)
    acquire(scene, 1, "d", leases_max=3)
    scene.call(RegisterLock, "d", name="x", leases_max=1)
    told = scene.take()
    assert told[0] == "c: answer None"
    assert [line.startswith("d: refused InconsistentLeases") for line in told[1:]] == [True] * 2
    scene.lose_client("c")
    acquire(scene, 1, "d", leases_max=3)
    assert scene.take() == ["d: answer True"]


def test_what_was_closed_is_not_known_to_whoever_waited_or_comes_later(scene: Scene) -> None:
    """The leases end, with how many there were; a late release is no error."""
    acquire(scene, 1)
    acquire(scene, 2)
    acquire(scene, 1, "d")
    scene.take()
    scene.call(CloseLock, name="x")
    refused, closed = scene.take()
    assert refused.startswith("d: refused LockNotKnown")
    assert closed == "c: answer 2"
    acquire(scene, 3, must_exist=True)
    assert scene.take()[0].startswith("c: refused LockNotKnown")
    scene.from_client("c", ReleaseLock("x", 1))
    assert scene.machine.state.locks == {}


@pytest.mark.parametrize("leases_max", [0, -1])
def test_a_lock_that_nobody_may_hold_is_a_mistake(scene: Scene, leases_max: int) -> None:
    """It would stay known, and whoever waits would wait forever."""
    with pytest.raises(ProtocolError, match="that nobody may hold"):
        acquire(scene, 1, leases_max=leases_max)
    with pytest.raises(ProtocolError, match="that nobody may hold"):
        scene.call(RegisterLock, name="x", leases_max=leases_max)
    assert scene.machine.state.locks == {}


def test_one_kind_or_one_name_can_be_asked_about(scene: Scene) -> None:
    """Of a name that is not known, or a kind that there is not, nothing is told."""
    acquire(scene, 1)
    scene.call(AcquireLease, name="y", claim=2)
    scene.call(SetEvent, name="x", is_set=True)
    scene.take()
    asked = {
        ("", ""): ["lock x", "lock y", "event x"],
        ("lock", ""): ["lock x", "lock y"],
        ("", "x"): ["lock x", "event x"],
        ("lock", "y"): ["lock y"],
        ("event", "y"): [],
        ("spoon", ""): [],
    }
    for request, ((kind, name), found) in enumerate(asked.items(), 100):
        scene.names.calls[request] = DescribeCoordination
        scene.from_client("c", DescribeCoordination(request, kind, name))
        (line,) = scene.take()
        told = re.findall(r"Description\(kind='(\w+)', name='(\w)'", line)
        assert [" ".join(words) for words in told] == found


def test_who_holds_it_and_who_waits_can_be_asked(scene: Scene) -> None:
    """The task that took it, on its worker, and since when."""
    scene.workers("a")
    scene.submit(t=[])
    acquire(scene, 1, by="t", leases_max=1)
    scene.advance(2.0)
    acquire(scene, 1, "d", leases_max=1)
    scene.take()
    scene.call(DescribeCoordination)
    (line,) = scene.take()
    assert "Description(kind='lock', name='x'" in line
    assert "holders=[Claimant(client='c', task='t', worker='a', seconds=2.0)]" in line
    assert "waiting=[Claimant(client='d', task='', worker='', seconds=0.0)]" in line
