"""Locks of clients: one holds, the others wait in their order, and nobody holds one for ever."""

import pytest

from shoal.protocol.coordination import AcquireLock, IsLocked, ReleaseLock
from shoal.protocol.framing import ProtocolError
from tests.scenes.scheduler.scene import Scene


def acquire(scene: Scene, claim: int, client: str = "c", *, waits: bool = True) -> None:
    """Claim the lock `x`."""
    scene.call(AcquireLock, client, name="x", claim=claim, waits=waits)


def release(scene: Scene, claim: int, client: str = "c") -> None:
    """End a claim to the lock `x`."""
    scene.from_client(client, ReleaseLock("x", claim))


def test_whoever_comes_first_has_the_lock_and_the_others_follow_in_their_order(
    scene: Scene,
) -> None:
    """Three claims, two of them by one client: each is served when the one before is released."""
    acquire(scene, 1)
    assert scene.take() == ["c: answer True"]
    acquire(scene, 2)
    acquire(scene, 1, "d")
    assert scene.take() == []

    release(scene, 1)
    assert scene.take() == ["c: answer True"]
    release(scene, 2)
    assert scene.take() == ["d: answer True"]
    release(scene, 1, "d")
    scene.call(IsLocked, name="x")
    assert scene.take() == ["c: answer False"]


def test_a_claim_that_does_not_wait_is_refused_while_the_lock_is_taken(scene: Scene) -> None:
    """Another name is another lock."""
    acquire(scene, 1)
    scene.call(IsLocked, name="x")
    acquire(scene, 2, waits=False)
    scene.call(AcquireLock, name="y", claim=3, waits=False)
    assert scene.take() == [f"c: answer {held}" for held in (True, True, False, True)]


def test_a_claim_that_is_given_up_while_it_waits_is_answered_and_passed_over(
    scene: Scene,
) -> None:
    """Two wait, and the first of them no longer wants to."""
    acquire(scene, 1)
    acquire(scene, 1, "d")
    acquire(scene, 1, "e")
    scene.take()

    release(scene, 1, "d")
    assert scene.take() == ["d: answer False"]
    release(scene, 1)
    assert scene.take() == ["e: answer True"]
    release(scene, 1, "d")  # known no more
    assert scene.take() == []


def test_a_client_that_goes_lets_go_of_its_locks_and_waits_no_more(scene: Scene) -> None:
    """c holds the lock and has another claim in the queue; d is next, not that."""
    acquire(scene, 1)
    acquire(scene, 2)
    acquire(scene, 1, "d")
    scene.take()

    scene.lose_client("c")
    assert scene.take() == ["d: answer True"]
    scene.lose_client("d")
    assert scene.machine.state.locks == {}


@pytest.mark.parametrize("claim", [1, 2], ids=["that holds", "that waits"])
def test_the_number_of_a_claim_is_not_used_for_another(scene: Scene, claim: int) -> None:
    """Its release would not say which of them it ends."""
    acquire(scene, 1)
    acquire(scene, 2)
    scene.take()
    with pytest.raises(ProtocolError, match="a claim that has not ended"):
        acquire(scene, claim)
    release(scene, 1)
    assert scene.take() == ["c: answer True"]


def test_a_release_that_comes_twice_does_not_end_the_next_claim(scene: Scene) -> None:
    """c's second release finds d as the holder."""
    acquire(scene, 1)
    acquire(scene, 1, "d")
    release(scene, 1)
    release(scene, 1)
    scene.call(IsLocked, name="x")
    assert scene.take() == ["c: answer True", "d: answer True", "c: answer True"]
