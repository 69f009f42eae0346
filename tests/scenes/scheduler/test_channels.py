"""Channels: what is published reaches whoever has subscribed, and nobody else."""

from shoal.protocol.coordination import Publish, Subscribe, Unsubscribe
from tests.scenes.scheduler.scene import Scene


def test_subscribers_are_told_what_is_published_while_they_are(scene: Scene) -> None:
    """d twice, as it has two subscriptions, then once; e not, since it comes too late."""
    publish = Publish("x", [b"1"])
    scene.from_client("c", publish)
    scene.from_client("d", Subscribe("x", 1), Subscribe("x", 2))
    scene.from_client("c", publish)
    assert scene.take() == ["d: published [b'1'] for 1", "d: published [b'1'] for 2"]
    scene.from_client("d", Unsubscribe("x", 1), Unsubscribe("x", 1))
    scene.from_client("c", publish)
    scene.from_client("e", Subscribe("x", 1))
    assert scene.take() == ["d: published [b'1'] for 2"]


def test_a_channel_is_forgotten_with_its_last_subscriber(scene: Scene) -> None:
    """Whether it says so or goes."""
    scene.from_client("c", Subscribe("x", 1))
    scene.from_client("d", Subscribe("x", 1))
    scene.from_client("c", Unsubscribe("x", 1))
    scene.lose_client("d")
    assert scene.machine.state.channels == {}
