"""Events: who waits goes on once one is set, and what nobody has to do with is forgotten."""

import pytest

from shoal.protocol.coordination import AwaitEvent, EndWait, IsEventSet, SetEvent
from shoal.protocol.framing import ProtocolError
from tests.scenes.scheduler.scene import Scene


def wait(scene: Scene, claim: int, client: str = "c") -> None:
    """Wait for the event `x`."""
    scene.call(AwaitEvent, client, name="x", claim=claim)


def turn(scene: Scene, *, on: bool) -> None:
    """Set or clear it."""
    scene.call(SetEvent, name="x", is_set=on)


def test_setting_it_tells_all_who_wait_and_those_who_come_after(scene: Scene) -> None:
    """Until it is cleared; then the next one waits, and nothing is left of it once he stops."""
    wait(scene, 1)
    wait(scene, 1, "d")
    assert scene.take() == []
    turn(scene, on=True)
    assert scene.take() == ["c: answer True", "c: answer None", "d: answer True"]
    wait(scene, 2)
    turn(scene, on=False)
    assert scene.take() == ["c: answer True", "c: answer None"]
    assert scene.machine.state.events == {}
    wait(scene, 3)
    scene.from_client("c", EndWait("x", 3))
    scene.call(IsEventSet, name="x")
    assert scene.take() == ["c: answer False", "c: answer False"]
    assert scene.machine.state.events == {}


def test_what_a_client_has_set_stays_when_it_goes_and_its_waits_end(scene: Scene) -> None:
    """c sets one event and waits for another."""
    turn(scene, on=True)
    scene.call(AwaitEvent, name="y", claim=1)
    scene.take()
    scene.lose_client("c")
    assert list(scene.machine.state.events) == ["x"]
    wait(scene, 1, "d")
    assert scene.take() == ["d: answer True"]


def test_the_number_of_a_wait_is_not_used_for_another(scene: Scene) -> None:
    """Its end would not say which."""
    wait(scene, 1)
    with pytest.raises(ProtocolError, match="a claim that has not ended"):
        wait(scene, 1)
