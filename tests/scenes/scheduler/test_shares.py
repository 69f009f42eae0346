"""Several clients take turns, by their weights and by how long their tasks take."""

import pytest

from shoal.ids import Key
from shoal.protocol.messages import RegisterClient, TaskOptions
from shoal.scheduler.model.shares import STEP
from tests.scenes.scheduler.scene import Actor, Scene


def work_off(scene: Scene, ntasks: int, seconds: dict[str, float] | None = None) -> str:
    """Finish so many runs, the oldest first; the first letters of their keys."""
    done = []
    for _ in range(ntasks):
        processing = scene.worker("a").processing
        task = min((task for task in processing if task.run), key=lambda task: task.run)
        letter = task.key[0]
        scene.finish(task.key, value=b"1", seconds=(seconds or {}).get(letter, 1.0))
        done.append(letter)
    return "".join(done)


def many(letter: str, ntasks: int) -> dict[str, list[str]]:
    return {f"{letter}{i}": [] for i in range(ntasks)}


def join_as(scene: Scene, name: str, share: float = 1.0) -> None:
    """A client that asks for a weight."""
    joined = scene.machine.client_joined(RegisterClient(name, share=share), scene.now)
    scene.actors[name] = Actor(joined)
    scene._hear()


def test_one_task_does_not_wait_for_all_that_another_client_has_submitted(scene: Scene) -> None:
    """Case C079."""
    scene.workers("a", nthreads=1)
    scene.submit(**many("p", 50))
    work_off(scene, 10)
    scene.submit(q=[], client="d")
    assert "q" in work_off(scene, 3)


def test_two_clients_take_turns(scene: Scene) -> None:
    scene.workers("a", nthreads=1)
    scene.submit(**many("p", 20))
    scene.submit(**many("q", 20), client="d")
    done = work_off(scene, 20)
    assert 9 <= done.count("p") <= 11
    assert "ppp" not in done[2:]
    assert "qqq" not in done[2:]


def test_turns_are_taken_in_time_rather_than_in_tasks(scene: Scene) -> None:
    """One client's tasks take ten times as long as the other's, and both are known."""
    scene.workers("a", nthreads=1)
    scene.submit(**many("p", 1))
    scene.finish("p0", value=b"1", seconds=10.0)
    scene.submit(**many("q", 1), client="d")
    scene.finish("q0", value=b"1", seconds=1.0)
    scene.submit(**{f"p{i}": [] for i in range(1, 100)})
    scene.submit(**{f"q{i}": [] for i in range(1, 400)}, client="d")
    done = work_off(scene, 110, {"p": 10.0, "q": 1.0})
    assert 80 <= done.count("q") <= 103


def test_what_was_submitted_alone_is_weighed_by_how_long_it_takes(scene: Scene) -> None:
    """Nobody counts while there is one client; its tasks turn out to be long."""
    scene.workers("a", nthreads=1)
    scene.submit(**many("p", 100))
    work_off(scene, 10, {"p": 10.0})
    scene.submit(**many("q", 400), client="d")
    done = work_off(scene, 12, {"p": 10.0, "q": 1.0})
    assert "q" in done
    scene.submit(**{f"q{i}": [] for i in range(400, 600)}, client="e")
    done = work_off(scene, 60, {"p": 10.0, "q": 1.0})
    assert done.count("q") >= 40


def test_a_heavier_client_has_more_turns(scene: Scene) -> None:
    scene = Scene(shares={"d*": 3.0})
    scene.workers("a", nthreads=1)
    scene.submit(**many("p", 100))
    scene.submit(**many("q", 100), client="dora")
    done = work_off(scene, 40)
    assert 27 <= done.count("q") <= 32


def test_a_client_asks_for_a_weight_and_the_scheduler_may_know_better() -> None:
    scene = Scene(shares={"modest": 1.0})
    scene.workers("a", nthreads=1)
    join_as(scene, "modest", 100.0)
    join_as(scene, "small", 0.25)
    scene.submit(**many("p", 100), client="modest")
    scene.submit(**many("q", 100), client="small")
    done = work_off(scene, 50)
    assert 8 <= done.count("q") <= 12


@pytest.mark.parametrize("share", [0.0, -1.0, float("nan"), 1e-300])
def test_no_weight_is_so_small_that_a_client_never_comes(scene: Scene, share: float) -> None:
    scene.workers("a", nthreads=1)
    join_as(scene, "none", share)
    scene.submit(**many("p", 200))
    scene.submit(q=[], r=[], client="none")
    assert work_off(scene, 3).count("q") == 1
    done = work_off(scene, 110)
    assert "r" not in done[:50]
    assert "r" in done


def test_who_was_away_does_not_catch_up(scene: Scene) -> None:
    """A client that had nothing to do starts where the others are."""
    scene.workers("a", nthreads=1)
    scene.submit(**many("p", 200))
    scene.submit(q=[], client="d")
    work_off(scene, 100)
    scene.submit(**{f"q{i}": [] for i in range(1, 100)}, client="d")
    done = work_off(scene, 40)
    assert 18 <= done.count("q") <= 22


def test_what_is_run_again_does_not_put_others_before_all_that_waits(scene: Scene) -> None:
    scene.workers("a", nthreads=1)
    scene.submit(old=[], options=TaskOptions(retries=1))
    scene.submit(**many("p", 100))
    scene.submit(**many("q", 1), client="d")
    while scene.task("p40").state != "memory":
        run = min((t for t in scene.worker("a").processing if t.key != "old"), key=lambda t: t.run)
        scene.finish(run.key, value=b"1")
    scene.fail("old")
    scene.submit(**{f"r{i}": [] for i in range(50)}, client="d")
    scene.finish("old", value=b"1")
    done = work_off(scene, 30)
    assert 12 <= done.count("r") <= 18


def test_who_gave_up_much_is_not_made_to_pay_for_it(scene: Scene) -> None:
    scene.workers("a", nthreads=1)
    scene.submit(**many("q", 1), client="d")
    scene.submit(**many("p", 500))
    scene.submit(**{f"q{i}": [] for i in range(1, 100)}, client="d")
    scene.cancel(*many("p", 500))
    for number, key in list(scene.names.keys.items()):
        if key.startswith("p") and any(r[1] == number for r in scene.runs):
            scene.returned(key)
    scene.take()
    scene.submit(s=[])
    assert "s" in work_off(scene, 4)


def test_urgency_is_above_all_shares(scene: Scene) -> None:
    scene.workers("a", nthreads=1)
    scene.submit(**many("p", 10))
    scene.submit(**many("q", 10), client="d", options=TaskOptions(priority=1.0))
    assert work_off(scene, 12)[2:] == "q" * 10


def test_each_urgency_has_turns_of_its_own(scene: Scene) -> None:
    """Much that was done at another one does not count against anybody here."""
    scene.workers("a", nthreads=1)
    scene.submit(**many("p", 20), options=TaskOptions(priority=-1.0))
    scene.submit(**many("u", 100))
    scene.submit(**many("q", 1), client="d")
    work_off(scene, 60)
    scene.submit(**many("r", 20), client="d", options=TaskOptions(priority=-1.0))
    work_off(scene, 43)
    done = work_off(scene, 16)
    assert 6 <= done.count("r") <= 10
    assert 6 <= done.count("p") <= 10


def test_slices_of_a_graph_mesh_with_others_and_keep_their_order(scene: Scene) -> None:
    scene.submit(**many("p", 10), ahead=10)
    scene.submit(**many("q", 20), client="d")
    scene.submit(**{f"p{i}": [] for i in range(10, 20)}, ahead=0)
    places = [scene.task(f"p{i}").priority for i in range(20)]
    assert places == sorted(places)
    scene.workers("a", nthreads=1)
    done = work_off(scene, 40)
    assert 8 <= done[:20].count("p") <= 12


def test_a_graph_goes_on_in_its_order_as_others_come_and_go(scene: Scene) -> None:
    scene.submit(**many("p", 3), ahead=9)
    scene.submit(**many("q", 3), client="d")
    scene.submit(**{f"p{i}": [] for i in range(3, 6)}, ahead=6)
    scene.lose_client("d")
    scene.submit(**{f"p{i}": [] for i in range(6, 9)}, ahead=3)
    scene.submit(s=[])
    scene.submit(**many("r", 3), client="e")
    scene.submit(**{f"p{i}": [] for i in range(9, 12)}, ahead=0)
    places = [scene.task(f"p{i}").priority for i in range(12)]
    assert places == sorted(places)
    assert scene.actors["c"].client.sequences == {}


def test_what_tasks_submit_is_at_the_expense_of_their_client(scene: Scene) -> None:
    """Though it comes from the client of a worker, and goes before others."""
    scene.workers("a", nthreads=1)
    scene.submit(**many("p", 3))
    inner = scene.actor("w").client
    scene.machine.state.serving[inner] = None
    scene.submit(x=[], client="w", options=TaskOptions(inside=Key("p0")))
    shares = scene.machine.state.shares
    assert list(shares.flows) == [scene.actor("c").client]


def test_alone_again_nothing_is_counted(scene: Scene) -> None:
    scene.workers("a", nthreads=1)
    scene.submit(**many("p", 3))
    scene.submit(**many("q", 3), client="d")
    assert scene.machine.state.shares.levels
    scene.lose_client("d")
    assert not scene.machine.state.shares.levels
    scene.submit(**{f"p{i}": [] for i in range(3, 6)})
    places = [scene.task(f"p{i}").priority for i in range(6)]
    assert places == sorted(places)
    assert places[-1] - places[-2] == STEP


def test_very_many_urgencies_are_in_order_all_the_same(scene: Scene) -> None:
    """Beyond some of them, what comes goes after all that came."""
    scene.workers("a", nthreads=1)
    scene.submit(p=[])
    for i in range(400):
        scene.submit(**{f"q{i}": []}, client="d", options=TaskOptions(priority=float(i)))
    assert len(scene.machine.state.shares.levels) <= 256
    scene.submit(r=[], client="d", options=TaskOptions(priority=399.0))
    assert scene.task("q399").priority < scene.task("r").priority


def test_who_asked_again_for_what_is_known_owns_none_of_the_tasks_of_others(scene: Scene) -> None:
    """The places that c gave up are nobody's debt, whatever d has submitted meanwhile."""
    scene.workers("a", nthreads=1)
    scene.submit(**many("p", 300))
    scene.submit(**many("p", 300))
    scene.submit(**many("q", 400), client="d")
    scene.cancel(*many("p", 300))
    scene.cancel(*many("p", 300))
    for number, key in list(scene.names.keys.items()):
        if key.startswith("p") and any(r[1] == number for r in scene.runs):
            scene.returned(key)
    scene.submit(s=[])
    assert "s" in work_off(scene, 5)
