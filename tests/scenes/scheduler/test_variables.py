"""Variables: one value each, which outlives whoever set it, and keeps the futures in it."""

import pytest

from shoal.protocol.coordination import DeleteVariable, EndGet, GetVariable, SetVariable
from shoal.protocol.framing import ProtocolError
from tests.scenes.scheduler.scene import Scene


def put(scene: Scene, value: str, client: str = "c", **fields: object) -> None:
    """Set the variable `x`."""
    scene.call(SetVariable, client, name="x", value=[value.encode()], **fields)


def look(scene: Scene, claim: int, client: str = "c") -> None:
    """Get it."""
    scene.call(GetVariable, client, name="x", claim=claim)


def wanters(scene: Scene, key: str) -> list[str]:
    """Who wants a task's result."""
    return [client.name for client, _ in scene.task(key).wants]


def test_whoever_looks_waits_for_the_first_value_and_then_has_the_latest(scene: Scene) -> None:
    """It stays when the client that set it has gone."""
    look(scene, 1, "d")
    put(scene, "1")
    put(scene, "2")
    scene.lose_client("c")
    look(scene, 2, "d")
    assert scene.take() == [
        "d: answer SharedValue(value=[b'1'], has_futures=False)",
        "c: answer None",
        "c: answer None",
        "d: answer SharedValue(value=[b'2'], has_futures=False)",
    ]


def test_a_variable_without_a_value_is_known_while_somebody_waits(scene: Scene) -> None:
    """Who gives up, or goes, or whose value was deleted."""
    look(scene, 1)
    scene.from_client("c", EndGet("x", 1))
    assert scene.machine.state.variables == {}
    look(scene, 2)
    scene.lose_client("c")
    assert scene.machine.state.variables == {}
    put(scene, "1", "d")
    scene.from_client("d", DeleteVariable("x"))
    assert scene.machine.state.variables == {}


def test_a_future_is_kept_while_it_is_the_value(scene: Scene) -> None:
    """Another value takes its place, or it is deleted."""
    scene.workers("a")
    scene.submit(t=[], u=[])
    scene.finish("t")
    put(scene, "t", keys=["t"])
    put(scene, "t again", keys=["t"])
    scene.release("t")
    assert wanters(scene, "t") == ["variable-x"]
    put(scene, "u", keys=["u"])
    assert scene.state("t") == "forgotten"
    scene.release("u")
    scene.from_client("c", DeleteVariable("x"))
    assert scene.state("u") == "forgotten"
    assert scene.machine.state.keepers == {}


def test_a_future_on_its_way_is_kept_though_the_value_changes(scene: Scene) -> None:
    """Until whoever got it wants it, or has gone."""
    scene.workers("a")
    scene.submit(t=[])
    scene.finish("t")
    put(scene, "t", keys=["t"])
    scene.release("t")
    look(scene, 1, "d")
    look(scene, 1, "e")
    put(scene, "1")
    assert scene.state("t") == "memory"
    scene.want("t", "d")
    scene.from_client("d", EndGet("x", 1))
    scene.lose_client("e")
    assert wanters(scene, "t") == ["d"]


def test_the_number_of_a_claim_is_not_used_for_another(scene: Scene) -> None:
    """It waits already."""
    look(scene, 1)
    with pytest.raises(ProtocolError, match="a claim that has not ended"):
        look(scene, 1)
