"""Values that come from clients: where they go, and what happens when they are lost."""

from shoal.ids import Key
from shoal.protocol.transfers import PlaceScatter
from tests.scenes.scheduler.scene import Scene

AGAIN = {"keys": [Key("x")], "nbytes": [8], "again": True}
GONE = "DataLost: The scattered value 'x' is go"


def test_scattered_values_go_to_the_workers_in_turn_by_threads(scene: Scene) -> None:
    """b has two threads, so it gets two of three; the next call goes on from there."""
    scene.join("a", nthreads=1)
    scene.join("b", nthreads=2)
    scene.scatter("v", "w", "x", "y")
    assert scene.take() == ["c: answer {'v': ['a'], 'w': ['b'], 'x': ['b'], 'y': ['a']}"]

    scene.scatter("z")
    assert scene.take() == ["c: answer {'z': ['b']}"]


def test_a_scattered_value_is_a_result_once_a_worker_has_it(scene: Scene) -> None:
    """y was submitted with it before it arrived."""
    scene.workers("a")
    scene.scatter("x")
    scene.submit(y=["x"])
    assert scene.take() == ["c: answer {'x': ['a']}"]
    assert scene.state("y") == "waiting"

    scene.holds("a", "x")
    assert scene.take() == ["c: x in memory at a", "a: run y #1"]


def test_a_scattered_value_that_nobody_wants_any_more_is_dropped_on_arrival(scene: Scene) -> None:
    """Its future was gone before the value arrived."""
    scene.workers("a")
    scene.scatter("x")
    number = scene.number("x")
    scene.release("x")
    scene.take()

    assert scene.state("x") == "forgotten"
    scene.holds("a", "x")
    assert scene.take() == ["a: free x"]
    assert scene.number("x") == number


def test_a_scattered_value_that_is_lost_takes_its_dependents_along(scene: Scene) -> None:
    """Nothing can compute x again.  y needs it, z doesn't."""
    scene.workers("a")
    scene.scatter("x")
    scene.submit(w=[], y=["x", "w"], z=["w"])
    scene.holds("a", "x")
    scene.take()

    scene.join("b")
    scene.lose("a")
    why = "DataLost: The scattered value 'x' was lost with worker tcp://a:1, its last holder;"
    lines = scene.take()
    assert [line[: 12 + len(why)] for line in lines] == [
        "c: x lost",
        f"c: x erred: {why}",
        f"c: y erred: {why}",
        "b: run w #2",
    ]
    assert lines[2].endswith("(of x)")


def test_a_second_copy_saves_a_scattered_value(scene: Scene) -> None:
    """Two copies were asked for."""
    scene.workers("a", "b")
    scene.scatter("x", ncopies=2)
    assert scene.take() == ["c: answer {'x': ['a', 'b']}"]
    scene.holds("a", "x")
    scene.holds("b", "x")
    scene.lose("a")
    assert scene.take() == ["c: x in memory at a"]


def test_more_copies_than_workers_are_as_many_as_workers(scene: Scene) -> None:
    """And a broadcast is one on each."""
    scene.workers("a", "b")
    scene.scatter("x", ncopies=5)
    scene.scatter("y", ncopies=0)
    assert scene.take() == ["c: answer {'x': ['a', 'b']}", "c: answer {'y': ['a', 'b']}"]


def test_scatter_may_be_limited_to_some_workers(scene: Scene) -> None:
    """By name, and never to one that leaves."""
    scene.workers("a", "b", "d")
    scene.leave("d")
    scene.scatter("x", "y", workers=["b", "d"])
    assert scene.take() == ["c: answer {'x': ['b'], 'y': ['b']}"]


def test_scatter_waits_for_a_worker(scene: Scene) -> None:
    """There is none yet; b is not the one that was asked for."""
    scene.scatter("x")
    scene.scatter("y", workers=["a"])
    assert scene.take() == []

    scene.join("b")
    assert scene.take() == ["c: answer {'x': ['b']}"]

    scene.join("a")
    assert scene.take() == ["c: answer {'y': ['a']}"]


def test_a_value_that_its_client_never_brought_is_lost(scene: Scene) -> None:
    """c went away as it waited for a worker; d asked for x by name, and would wait for ever."""
    scene.scatter("x")
    scene.want("x", client="d")
    assert scene.take() == []

    scene.lose_client("c")
    assert [line[:51] for line in scene.take()] == [f"d: x erred: {GONE}"]
    scene.join("a")
    assert scene.take() == []


def test_a_value_that_was_let_go_of_can_not_be_had_again(scene: Scene) -> None:
    """y was made from x, whose last future is gone; then y is lost, and d asks for x by name."""
    scene.workers("a")
    scene.scatter("x")
    scene.submit(y=["x"])
    scene.holds("a", "x")
    scene.release("x")
    scene.finish("y")
    assert scene.take()[-2:] == ["c: y in memory at a", "a: free x"]

    scene.gone("a", "y")
    assert [line[:51] for line in scene.take()] == ["c: y lost", f"c: y erred: {GONE}"]

    scene.want("x", client="d")
    assert [line[:51] for line in scene.take()] == [f"d: x erred: {GONE}"]


def test_a_value_that_another_client_brings_too_is_not_lost(scene: Scene) -> None:
    """c goes away after both have asked where to put x; d puts it there."""
    scene.workers("a")
    scene.scatter("x")
    scene.scatter("x", client="d")
    scene.take()
    scene.lose_client("c")
    assert scene.take() == []
    scene.holds("a", "x")
    assert scene.take() == ["d: x in memory at a"]


def test_nothing_is_sent_for_a_value_that_is_there(scene: Scene) -> None:
    """x has been scattered by c, y is to be computed: d gets both by their names."""
    scene.workers("a")
    scene.scatter("x")
    scene.holds("a", "x")
    scene.submit(y=[])
    scene.take()

    scene.scatter("x", "y", client="d")
    assert scene.take() == ["d: x in memory at a", "d: answer {'x': [], 'y': []}"]


def test_a_value_under_way_to_two_workers_survives_the_loss_of_one(scene: Scene) -> None:
    """b has not said yet that it has it, but it may."""
    scene.workers("a", "b")
    scene.scatter("x", ncopies=2)
    scene.lose("a")
    assert scene.take() == ["c: answer {'x': ['a', 'b']}"]
    scene.holds("b", "x")
    assert scene.take() == ["c: x in memory at b"]


def test_a_place_for_a_value_that_is_not_wanted_any_more_is_none(scene: Scene) -> None:
    """The future was gone before a worker came: the answer says that there is nothing to send."""
    scene.scatter("x", "y")
    scene.release("x")
    scene.join("a")
    assert scene.take() == ["c: answer {'let go': [], 'y': ['a']}"]


def test_who_let_go_of_a_value_brings_it_no_more_though_others_do(scene: Scene) -> None:
    """c and d wait for a worker for x; c lets go of x.  So x is lost with d, whatever c does."""
    scene.scatter("x")
    scene.scatter("x", client="d")
    scene.want("x", client="e")
    scene.release("x", client="c")
    scene.join("a")
    assert scene.take() == ["c: answer {'let go': []}", "d: answer {'x': ['a']}"]

    scene.lose_client("d")
    assert [line[:51] for line in scene.take()] == [f"e: x erred: {GONE}"]


def test_a_client_may_ask_again_for_a_place(scene: Scene) -> None:
    """The worker that was named died before the value arrived; it is the same future."""
    scene.workers("a", "b")
    scene.scatter("x")
    assert scene.take() == ["c: answer {'x': ['a']}"]
    scene.lose("a")
    [line] = scene.take()
    assert line.startswith("c: x erred: DataLost: The scattered value 'x' was lost")

    first = scene.actor("c").number("x")
    scene.call(PlaceScatter, first=first, keys=["x"], nbytes=[8])
    assert scene.take() == ["c: answer {'x': ['b']}"]
    assert len(scene.task("x").wants) == 1

    scene.holds("b", "x")
    assert scene.take() == ["c: x in memory at b"]


def test_a_value_that_is_placed_again_is_expected_from_the_new_worker_only(scene: Scene) -> None:
    """a refused x, so c asks again and is sent to b.  Then b goes: x is lost, though a lives."""
    scene.workers("a", "b")
    scene.scatter("x")
    assert scene.take() == ["c: answer {'x': ['a']}"]
    scene.call(
        PlaceScatter, first=scene.actor("c").number("x"), keys=[Key("x")], nbytes=[8], again=True
    )
    assert scene.take() == ["c: answer {'x': ['b']}"]
    scene.lose("b")
    (line,) = scene.take()
    assert line.startswith("c: x erred: DataLost")


def test_a_value_let_go_of_meanwhile_is_not_wanted_anew_when_its_place_is_asked_again(
    scene: Scene,
) -> None:
    """The future was cancelled as its value was on its way to a worker that did not take it."""
    scene.workers("a")
    scene.scatter("x")
    number = scene.actor("c").number("x")
    scene.release("x")
    scene.take()
    scene.call(PlaceScatter, first=number, keys=[Key("x")], nbytes=[8], again=True)
    assert scene.take() == ["c: answer {'let go': []}"]
    assert scene.state("x") == "forgotten"


def test_a_lost_value_whose_place_was_asked_again_before_is_awaited_once_a_worker_joins(
    scene: Scene,
) -> None:
    """The only worker leaves and goes as c asks again; the next one gets the value after all."""
    scene.workers("a")
    scene.scatter("x")
    scene.leave("a")
    scene.call(
        PlaceScatter, first=scene.actor("c").number("x"), keys=[Key("x")], nbytes=[8], again=True
    )
    scene.lose("a")
    scene.take()
    scene.join("b")
    assert scene.take() == ["c: answer {'x': ['b']}"]
    assert scene.state("x") == "waiting"


def test_a_value_goes_to_the_worker_that_is_nearby_unless_that_leaves(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.scatter("x", nearby="tcp://b:1")
    scene.scatter("y", nearby="tcp://b:1", workers=["a"])
    scene.leave("b")
    scene.scatter("z", nearby="tcp://b:1")
    assert scene.take() == [
        "c: answer {'x': ['b']}",
        "c: answer {'y': ['a']}",
        "c: answer {'z': ['a']}",
    ]
