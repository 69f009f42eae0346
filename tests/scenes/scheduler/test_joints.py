"""Several names at once: all or none, in the order of asking, and never a deadlock."""

import pytest

from shoal.protocol.coordination import AcquireJointly, ReleaseJointly
from shoal.protocol.framing import ProtocolError
from tests.scenes.scheduler.scene import Scene


def acquire(
    scene: Scene, names: str, claim: int, client: str = "c", *, waits: bool = True, count: int = 0
) -> None:
    """Claim names of one letter each, all of them unless `count` says how many."""
    scene.call(
        AcquireJointly,
        client,
        names=list(names),
        claim=claim,
        count=count or len(names),
        waits=waits,
    )


def release(scene: Scene, claim: int, client: str = "c") -> None:
    """End a claim."""
    scene.from_client(client, ReleaseJointly(claim))


def test_whoever_wants_several_holds_none_until_all_are_free(scene: Scene) -> None:
    """d wants what c has and what is free; e may have neither before d."""
    acquire(scene, "xy", 1)
    acquire(scene, "yz", 1, "d")
    acquire(scene, "z", 1, "e")
    acquire(scene, "w", 2)
    assert scene.take() == ["c: answer True", "c: answer True"]
    release(scene, 1)
    assert scene.take() == ["d: answer True"]
    release(scene, 1, "d")
    assert scene.take() == ["e: answer True"]
    release(scene, 1, "e")
    release(scene, 2)
    assert not scene.machine.state.joints
    assert scene.machine.state.joints.lines == {}


def test_claims_that_cross_do_not_wait_for_each_other(scene: Scene) -> None:
    """Each holds what the next one wants as well."""
    acquire(scene, "xy", 1)
    acquire(scene, "yz", 2)
    acquire(scene, "zx", 3)
    assert scene.take() == ["c: answer True"]
    for claim in (1, 2):
        release(scene, claim)
        assert scene.take() == ["c: answer True"]


def test_any_so_many_of_the_names_will_do_and_the_others_stay_free(scene: Scene) -> None:
    """d wants two of three, of which one is taken; it leaves no place in that line."""
    acquire(scene, "x", 1)
    acquire(scene, "xyz", 1, "d", count=2)
    acquire(scene, "yz", 1, "e", count=1)
    assert scene.take() == ["c: answer True", "d: answer True"]
    acquire(scene, "x", 2)
    release(scene, 1)
    assert scene.take() == ["c: answer True"]
    release(scene, 1, "d")
    assert scene.take() == ["e: answer True"]


class CountedName(str):
    """A name that counts how often it is compared with another."""

    ncompared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        CountedName.ncompared += 1
        return str.__eq__(self, other)


def test_a_claim_to_many_names_compares_few_of_them(scene: Scene) -> None:
    """Or the scheduler would be busy for a second with ten thousand."""
    names = [CountedName(number) for number in range(300)]
    scene.call(AcquireJointly, names=names, claim=1, count=299)
    assert scene.take() == ["c: answer True"]
    assert CountedName.ncompared < 10 * len(names)


def test_a_claim_that_does_not_wait_leaves_nothing_behind(scene: Scene) -> None:
    """It is refused, and its place in the line goes with it."""
    acquire(scene, "xy", 1)
    acquire(scene, "yz", 1, "d", waits=False)
    acquire(scene, "z", 1, "e")
    assert scene.take() == ["c: answer True", "d: answer False", "e: answer True"]


def test_a_claim_that_is_given_up_makes_way(scene: Scene) -> None:
    """e waits behind d for what nobody holds."""
    acquire(scene, "x", 1)
    acquire(scene, "xy", 1, "d")
    acquire(scene, "y", 1, "e")
    scene.take()
    release(scene, 1, "d")
    assert scene.take() == ["d: answer False", "e: answer True"]


def test_a_client_that_goes_lets_go_of_all_and_waits_for_none(scene: Scene) -> None:
    """c holds two and waits for one more claim."""
    acquire(scene, "xy", 1)
    acquire(scene, "y", 2)
    acquire(scene, "yz", 1, "d")
    scene.take()
    scene.lose_client("c")
    assert scene.take() == ["d: answer True"]


@pytest.mark.parametrize(("names", "count"), [("x", 2), ("xx", 2), ("xy", -1)])
def test_a_claim_that_can_never_be_met_is_a_mistake(scene: Scene, names: str, count: int) -> None:
    """So is a number that is in use."""
    with pytest.raises(ProtocolError, match="wants none of its names, or more"):
        acquire(scene, names, 1, count=count)
    acquire(scene, "x", 2)
    with pytest.raises(ProtocolError, match="a claim that has not ended"):
        acquire(scene, "y", 2)
