"""Topics: what is told is kept within limits, sent on, and let go of with who wanted it."""

from typing import Any

import pytest

from shoal.protocol.holding import RebalanceTasks, ReplicateTasks
from shoal.protocol.keys import MARK
from shoal.protocol.logs import ForwardLogs
from shoal.protocol.membership import RetireWorkers
from shoal.protocol.messages import ReleaseTasks
from shoal.protocol.plain import Opaque, dump_plain, load_plain
from shoal.protocol.topics import (
    GetEvents,
    SubscribeTopics,
    TellTopics,
    TellTopicsOfWorker,
    UnsubscribeTopics,
)
from tests.scenes.scheduler.scene import Scene


def tell(scene: Scene, value: Any, *topics: str, client: str = "c") -> None:
    """A client tells something."""
    scene.call(TellTopics, client, topics=list(topics), value=dump_plain(value))


def told(scene: Scene, topic: str) -> list[Any]:
    """What is kept of a topic."""
    known = scene.machine.state.topics.get(topic)
    return [] if known is None else [load_plain(event.value) for event in known.events]


def test_what_is_told_is_kept_in_its_order_and_sent_on_to_who_subscribed_before(
    scene: Scene,
) -> None:
    """d hears the second of three, e nothing."""
    tell(scene, 1, "x")
    scene.from_client("d", SubscribeTopics(["x", "y"]))
    scene.actor("e")
    scene.take()

    tell(scene, {"two": (2,)}, "x", "z")
    assert scene.take() == ["d: x: {'two': (2,)}", "c: answer None"]
    scene.from_client("d", UnsubscribeTopics(["x"]))
    tell(scene, 3, "x")
    assert scene.take() == ["c: answer None"]
    assert told(scene, "x") == [1, {"two": (2,)}, 3]
    assert told(scene, "z") == [{"two": (2,)}]


def test_a_worker_tells_as_clients_do(scene: Scene) -> None:
    """And is not answered."""
    scene.workers("a")
    scene.from_client("c", SubscribeTopics(["print"]))
    scene.take()
    scene.from_worker("a", TellTopicsOfWorker(["print"], dump_plain("hello")))
    assert scene.take() == ["c: print: hello"]


def test_time_is_the_wall_clocks(scene: Scene) -> None:
    """By what the service has found it to be ahead of the machine's time."""
    scene.machine.about.wall_ahead_seconds = 5.0
    tell(scene, 1, "x")
    scene.take()
    scene.call(GetEvents, topic="x")
    assert scene.take() == [f"c: answer {{'x': [(1005.0, {dump_plain(1)!r})]}}"]


def test_a_topic_that_nobody_knows_has_no_events(scene: Scene) -> None:
    scene.call(GetEvents, topic="x")
    assert scene.take() == ["c: answer {}"]


def test_all_topics_are_those_that_have_events(scene: Scene) -> None:
    """One that is only subscribed to has none."""
    scene.from_client("c", SubscribeTopics(["y"]))
    tell(scene, 1, "x")
    scene.take()
    scene.call(GetEvents)
    (line,) = scene.take()
    assert "'x'" in line
    assert "'all'" in line
    assert "'y'" not in line


def test_a_topic_keeps_the_latest_events_by_number_and_by_bytes() -> None:
    """Three events at most, of 1000 bytes together; one too large is said and not kept."""
    scene = Scene(topic_events_max=3, topic_bytes_max=1000)
    scene.from_client("d", SubscribeTopics(["x"]))
    for number in range(5):
        tell(scene, number, "x")
    assert told(scene, "x") == [2, 3, 4]
    tell(scene, "y" * 600, "x")
    assert told(scene, "x") == [3, 4, "y" * 600]
    tell(scene, "z" * 600, "x")
    assert told(scene, "x") == ["z" * 600]
    scene.take()
    tell(scene, "w" * 2000, "x")
    assert told(scene, "x") == ["z" * 600]
    assert scene.take() == ["d: x: " + "w" * 2000, "c: answer None"]


def test_of_too_many_topics_the_one_longest_silent_is_forgotten_unless_somebody_hears_it() -> None:
    """Topics of the scheduler's own are told last, by x."""
    scene = Scene(topics_max=4)
    scene.from_client("c", SubscribeTopics(["heard"]))
    for topic in ("heard", "old", "new", "x", "y"):
        tell(scene, 1, topic)
    assert list(scene.machine.state.topics) == ["heard", "new", "x", "y"]


def test_who_comes_and_goes_is_told_under_all_and_its_own_name(scene: Scene) -> None:
    scene.workers("a")
    scene.actor("c")
    scene.lose("a")
    scene.lose_client("c")
    assert [event["action"] for event in told(scene, "all")] == [
        "add-worker",
        "add-client",
        "remove-worker",
        "remove-client",
    ]
    assert [event["action"] for event in told(scene, "tcp://a:1")] == [
        "add-worker",
        "remove-worker",
    ]
    assert [event["action"] for event in told(scene, "c")] == ["add-client", "remove-client"]


def test_what_a_worker_takes_along_is_told_as_it_goes(scene: Scene) -> None:
    """x was computed there alone, s was scattered, z was being computed."""
    scene.workers("a")
    scene.submit(x=[], z=[])
    scene.finish("x")
    scene.scatter("s")
    scene.holds("a", "s")
    scene.take()
    scene.lose("a")
    (event,) = [event for event in told(scene, "all") if event["action"] == "remove-worker"]
    assert event == {
        "action": "remove-worker",
        "worker": "tcp://a:1",
        "processing-tasks": ["z"],
        "lost-computed-tasks": ["x"],
        "lost-scattered-tasks": ["s"],
        "expected": False,
    }


def test_a_worker_may_be_lost_with_a_task_whose_key_is_none(scene: Scene) -> None:
    """It is for the client to know what its key means; it is told as a text."""
    scene.workers("a")
    scene.submit(**{MARK + "(1,": []})
    scene.lose("a")
    assert told(scene, "all")[-1]["processing-tasks"] == ["(1,"]


def test_workers_that_are_let_go_of_are_told(scene: Scene) -> None:
    """The last one has what nobody else can take, and stays."""
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.finish("x")
    scene.call(RetireWorkers, workers=["a", "b"])
    (event,) = [event for event in told(scene, "all") if event["action"] == "retire-workers"]
    (kept,) = event["could-not-retire"]
    (gone,) = event["retired"]
    assert {kept, gone} == {"tcp://a:1", "tcp://b:1"}
    assert told(scene, kept)[-1]["action"] == "could-not-retire"
    assert told(scene, gone)[-1]["action"] == "retired"


def test_copies_and_moves_are_told(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.finish("x")
    scene.call(ReplicateTasks, keys=["x"], ncopies=2)
    scene.call(RebalanceTasks)
    assert told(scene, "all")[-2:] == [
        {"action": "replicate", "key-count": 1, "branching-factor": 2},
        {"action": "rebalance", "moved-keys": 0},
    ]


def test_a_worker_that_is_about_to_close_says_why(scene: Scene) -> None:
    scene.workers("a")
    scene.leave("a")
    assert told(scene, "tcp://a:1")[-1] == {"action": "closing-worker", "reason": ""}


def test_a_single_task_is_not_worth_a_word(scene: Scene) -> None:
    """Nothing is told for each task; graphs are."""
    scene.submit(x=[])
    assert told(scene, "scheduler") == []
    scene.submit(**{f"x{i}": [] for i in range(100)})
    (event,) = told(scene, "scheduler")
    assert (event["action"], event["status"]) == ("update-graph", "OK")
    assert event["metrics"] == {"tasks": 100, "start_timestamp_seconds": 1000.0}
    assert told(scene, "c")[-1] == event


def test_a_graph_is_told_of_when_all_of_it_has_come(scene: Scene) -> None:
    """However small; it counts the tasks of all slices."""
    scene.submit(a=[], b=[], ahead=1, held=["b"])
    assert told(scene, "scheduler") == []
    scene.submit(c=["b"], ahead=0, let_go=["b"])
    assert told(scene, "scheduler")[0]["metrics"]["tasks"] == 3


def test_topics_of_who_left_are_forgotten_after_a_while() -> None:
    """As the next one leaves, or somebody asks."""
    scene = Scene(departed_topic_seconds=60.0, worker_ttl_seconds=1e9)
    scene.workers("a", "b")
    scene.lose("a")
    scene.advance(30)
    scene.lose("b")
    assert told(scene, "tcp://a:1")
    assert told(scene, "tcp://b:1")
    scene.advance(31)
    scene.call(GetEvents, topic="all")
    assert not told(scene, "tcp://a:1")
    assert told(scene, "tcp://b:1")


def test_topics_of_many_who_left_are_not_kept() -> None:
    scene = Scene(departed_topics_max=2)
    for name in "abcd":
        scene.workers(name)
        scene.lose(name)
    kept = [topic for topic in scene.machine.state.topics if topic.startswith("tcp:")]
    assert kept == ["tcp://c:1", "tcp://d:1"]


def test_topics_of_the_scheduler_stay_when_somebody_of_that_name_leaves() -> None:
    """A client is called like the topic of graphs."""
    scene = Scene(departed_topic_seconds=60.0, worker_ttl_seconds=1e9)
    scene.submit(**{f"x{i}": [] for i in range(100)})
    scene.actor("scheduler")
    scene.lose_client("scheduler")
    scene.advance(61)
    scene.call(GetEvents, topic="all")
    actions = [event["action"] for event in told(scene, "scheduler")]
    assert actions == ["update-graph", "add-client", "remove-client"]


def test_who_comes_back_has_its_topic_still(scene: Scene) -> None:
    """A new connection of the same worker."""
    scene.workers("a")
    scene.lose("a")
    scene.workers("a")
    assert scene.machine.state.departed == {}
    assert len(told(scene, "tcp://a:1")) == 3


def test_nothing_is_sent_on_to_who_has_gone(scene: Scene) -> None:
    scene.from_client("d", SubscribeTopics(["x", "all"]))
    scene.actor("c")
    scene.take()
    scene.lose_client("d")
    tell(scene, 1, "x")
    assert scene.take() == ["c: answer None"]
    assert not any(topic.subscribers for topic in scene.machine.state.topics.values())


def test_workers_tell_records_from_the_lowest_level_that_anybody_wants(scene: Scene) -> None:
    """Also those that join later; the last client ends it, by a word or by going."""
    scene.workers("a")
    scene.take()

    def forward(level: int | None, client: str) -> None:
        scene.call(ForwardLogs, client, topic="t", logger="my", level=level)

    forward(30, "c")
    assert scene.take() == ["a: forward my from 30 as t", "c: answer None"]
    forward(20, "d")
    assert scene.take() == ["a: forward my from 20 as t", "d: answer None"]
    forward(10, "e")
    scene.take()
    scene.lose_client("e")
    assert scene.take() == ["a: forward my from 20 as t"]
    scene.workers("b")
    assert scene.take() == ["b: forward my from 20 as t"]
    forward(None, "d")
    assert scene.take() == [
        "a: forward my from 30 as t",
        "b: forward my from 30 as t",
        "d: answer None",
    ]
    scene.lose_client("c")
    assert scene.take() == ["a: forward my from None as t", "b: forward my from None as t"]
    assert scene.machine.state.forwarding == {}


def test_code_beside_the_scheduler_tells_as_well(scene: Scene) -> None:
    scene.from_client("c", SubscribeTopics(["x"]))
    scene.machine.tell(["x"], dump_plain(7), scene.now)
    scene.from_client("c", ReleaseTasks([]))
    assert scene.take() == ["c: x: 7"]


class Mine:
    """A class that only its owner knows."""


@pytest.mark.parametrize("value", [Mine, Mine(), [Mine()], {"x": print}, 1j])
def test_what_is_not_plain_stays_closed(value: Any) -> None:
    """No code of anybody is run to look at it."""
    import pickle

    assert isinstance(load_plain(pickle.dumps(value)), Opaque)


@pytest.mark.parametrize(
    "value", [None, True, 5, 2.5, "x", b"y", [1], (2,), {3}, {"k": [(4, {5})]}, 1 << 70]
)
def test_what_is_plain_can_be_read(value: Any) -> None:
    assert load_plain(dump_plain(value)) == value


def test_bytes_that_are_no_pickle_stay_closed() -> None:
    assert isinstance(load_plain(b"nonsense"), Opaque)
