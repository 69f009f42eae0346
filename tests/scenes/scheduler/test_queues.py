"""Queues: each value is taken once, in its order, by somebody who got it."""

import pytest

from shoal.protocol.coordination import (
    CloseQueue,
    EndPut,
    EndTake,
    PutInQueue,
    QueueSize,
    SharedValue,
    TakeFromQueue,
)
from shoal.protocol.framing import ProtocolError
from tests.scenes.scheduler.scene import Scene


def put(scene: Scene, value: str, claim: int, client: str = "c", **fields: object) -> None:
    """Put a text in the queue `x`."""
    scene.call(PutInQueue, client, name="x", claim=claim, value=[value.encode()], **fields)


def take(scene: Scene, claim: int, client: str = "c", count: int = 1) -> None:
    """Take from the queue `x`."""
    scene.call(TakeFromQueue, client, name="x", claim=claim, count=count)


def end(scene: Scene, claim: int, client: str = "c", *, received: bool) -> None:
    """What was taken is here, or not wanted any more."""
    scene.from_client(client, EndTake("x", claim, received))


def got(*values: str) -> str:
    """The answer to `take`."""
    return f"answer {[SharedValue([value.encode()]) for value in values]}"


def test_values_come_out_in_the_order_in_which_they_went_in(scene: Scene) -> None:
    """Two takers wait, and each gets one; the third value stays."""
    take(scene, 1, "d")
    take(scene, 1, "e")
    for claim, value in enumerate("123"):
        put(scene, value, claim)
    true = "c: answer True"
    assert scene.take() == [true, f"d: {got('1')}", true, f"e: {got('2')}", true]
    scene.call(QueueSize, name="x")
    assert scene.take() == ["c: answer 1"]


def test_a_full_queue_makes_the_next_wait_who_may_give_up(scene: Scene) -> None:
    """Of two that wait one gives up; the other's value goes in as soon as there is room."""
    for claim in (1, 2, 3):
        put(scene, str(claim), claim, size_max=1)
    assert scene.take() == ["c: answer True"]
    scene.from_client("c", EndPut("x", 2))
    assert scene.take() == ["c: answer False"]
    take(scene, 4, "d")
    assert scene.take() == [f"d: {got('1')}", "c: answer True"]
    take(scene, 5, "d")
    assert scene.take() == [f"d: {got('3')}"]


def test_what_was_not_received_is_back_at_the_front_for_the_next(scene: Scene) -> None:
    """d takes two values and dies, or loses patience; e gets the same in the same order."""
    for claim, value in enumerate("123", 1):
        put(scene, value, claim)
    take(scene, 1, "d", count=2)
    take(scene, 1, "e", count=2)
    scene.take()
    scene.lose_client("d")
    assert scene.take() == [f"e: {got('1', '2')}"]
    end(scene, 1, "e", received=False)
    take(scene, 1, "f")
    assert scene.take() == [f"f: {got('1')}"]


def test_what_was_received_is_gone_for_good(scene: Scene) -> None:
    """The taker may die then."""
    put(scene, "1", 1)
    take(scene, 1, "d")
    end(scene, 1, "d", received=True)
    scene.lose_client("d")
    scene.call(QueueSize, name="x")
    assert scene.take()[-1] == "c: answer 0"


def test_a_wait_that_is_given_up_takes_nothing(scene: Scene) -> None:
    """The value that comes then is there for others."""
    take(scene, 1)
    end(scene, 1, received=False)
    put(scene, "1", 2)
    take(scene, 3)
    assert scene.take() == [f"c: {got()}", "c: answer True", f"c: {got('1')}"]


def test_many_are_taken_together_or_not_at_all(scene: Scene) -> None:
    """All that are there, at once; or as many as are wanted, even if fewer had room."""
    take(scene, 1, count=0)
    put(scene, "1", 2, size_max=1)
    take(scene, 3, count=2)
    assert scene.take() == [f"c: {got()}", "c: answer True"]
    put(scene, "2", 4)
    assert scene.take() == ["c: answer True", f"c: {got('1', '2')}"]
    put(scene, "3", 5)
    take(scene, 6, count=0)
    assert scene.take() == ["c: answer True", f"c: {got('3')}"]


def test_futures_in_a_queue_are_kept_until_whoever_takes_them_wants_them(scene: Scene) -> None:
    """The client that made one lets go of it; the taker wants it, and then says so."""
    scene.workers("a")
    scene.submit(t=[])
    scene.finish("t")
    put(scene, "future of t", 1, keys=["t"])
    scene.release("t")
    assert [client.name for client, _ in scene.task("t").wants] == ["queue-x"]
    take(scene, 1, "d")
    scene.want("t", "d")
    end(scene, 1, "d", received=True)
    assert [client.name for client, _ in scene.task("t").wants] == ["d"]
    assert scene.machine.state.keepers == {}
    scene.release("t", client="d")
    assert scene.state("t") == "forgotten"


def test_a_queue_lets_go_of_its_futures_when_it_is_closed_by_the_last(scene: Scene) -> None:
    """c closes it, but d uses it too."""
    scene.workers("a")
    scene.submit(t=[])
    scene.finish("t")
    put(scene, "future of t", 1, keys=["t"])
    put(scene, "1", 1, "d")
    scene.release("t")
    scene.from_client("c", CloseQueue("x"))
    assert scene.state("t") == "memory"
    scene.from_client("d", CloseQueue("x"))
    assert scene.state("t") == "forgotten"
    assert scene.machine.state.queues == {}


def test_several_that_were_not_received_are_back_in_their_order(scene: Scene) -> None:
    """d has taken one after another and waits for more; f, who waits too, gets the first."""
    for claim, value in enumerate("123", 1):
        put(scene, value, claim)
    for claim in (1, 2):
        take(scene, claim, "d")
    take(scene, 3, "d", count=2)
    take(scene, 1, "f", count=2)
    scene.take()
    scene.lose_client("d")
    assert scene.take() == [f"f: {got('1', '2')}"]
    take(scene, 2, "f", count=0)
    assert scene.take() == [f"f: {got('3')}"]


def test_a_closed_queue_keeps_no_more_than_what_is_on_its_way(scene: Scene) -> None:
    """c closes it before it has received what it took, and while it waits for more and for room."""
    scene.workers("a")
    scene.submit(t=[], u=[])
    scene.finish("t")
    scene.finish("u")
    put(scene, "future of t", 1, keys=["t"], size_max=2)
    put(scene, "future of u", 2, keys=["u"])
    take(scene, 3)
    put(scene, "3", 4)
    put(scene, "4", 5)
    take(scene, 6, count=4)
    scene.take()
    scene.from_client("c", CloseQueue("x"))
    assert scene.take() == [f"c: {got()}"]
    scene.release("t")
    scene.release("u")
    assert (scene.state("t"), scene.state("u")) == ("memory", "forgotten")
    end(scene, 3, received=True)
    assert scene.state("t") == "forgotten"
    assert scene.machine.state.queues == {}


def test_a_value_that_never_got_in_keeps_nothing(scene: Scene) -> None:
    """d waits for room with a future, and goes."""
    scene.workers("a")
    scene.submit(t=[])
    scene.finish("t")
    put(scene, "1", 1, size_max=1)
    put(scene, "future of t", 1, "d", keys=["t"])
    scene.release("t")
    assert scene.state("t") == "memory"
    scene.lose_client("d")
    assert scene.state("t") == "forgotten"


def test_what_is_in_a_queue_outlives_its_clients_and_an_empty_one_does_not(scene: Scene) -> None:
    """A producer may end before the consumer begins."""
    put(scene, "1", 1)
    scene.call(TakeFromQueue, name="y", claim=2, count=1)
    scene.lose_client("c")
    assert list(scene.machine.state.queues) == ["x"]
    scene.take()
    take(scene, 1, "d")
    assert scene.take() == [f"d: {got('1')}"]


def test_the_number_of_a_claim_is_not_used_for_another(scene: Scene) -> None:
    """Neither to put nor to take, not even while what was taken is on its way."""
    put(scene, "1", 1, size_max=1)
    put(scene, "2", 2)
    with pytest.raises(ProtocolError, match="a claim that has not ended"):
        put(scene, "3", 2)
    take(scene, 3)
    with pytest.raises(ProtocolError, match="a claim that has not ended"):
        take(scene, 3)
    with pytest.raises(ProtocolError, match="less than nothing"):
        take(scene, 4, count=-1)


def test_a_result_that_is_put_many_times_is_wanted_once_until_all_are_taken(scene: Scene) -> None:
    """A future is put in three times, and its owner goes."""
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x")
    for claim in range(3):
        put(scene, str(claim), claim, keys=["x"])
    assert len(scene.task("x").wants) == 2  # c's, and the queue's
    scene.release("x")
    for claim in range(3):
        assert scene.state("x") == "memory"
        take(scene, claim, "d")
        end(scene, claim, "d", received=True)
    assert scene.state("x") == "forgotten"
    assert not scene.machine.state.keepers


def test_a_result_that_was_put_twice_and_is_cancelled_can_be_put_again(scene: Scene) -> None:
    """What is left of the first wants ends nothing of the new one."""
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x")
    for claim in range(2):
        put(scene, str(claim), claim, keys=["x"])
    scene.cancel("x", force=True)
    scene.submit(x=[])
    scene.finish("x")
    put(scene, "2", 2, keys=["x"])
    scene.release("x")
    for claim in range(2):
        take(scene, claim, "d")
        end(scene, claim, "d", received=True)
    assert scene.state("x") == "memory"
    take(scene, 2, "d")
    end(scene, 2, "d", received=True)
    assert scene.state("x") == "forgotten"
