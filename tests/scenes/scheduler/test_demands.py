"""Tasks that need resources of their worker."""

from typing import Any

from shoal.protocol.membership import ResourcesChanged, SetResources
from shoal.protocol.messages import TaskOptions
from shoal.scheduler.machine.invariants import check
from tests.scenes.scheduler.scene import Scene


def needs(**resources: float) -> TaskOptions:
    return TaskOptions(resources=resources)


def test_a_task_is_sent_where_so_much_is_left_and_waits_where_it_is_not(scene: Scene) -> None:
    scene.join("a", nthreads=4, resources={"gpu": 2.0})
    scene.join("b", nthreads=4)
    scene.submit(p=[], q=[], r=[], options=needs(gpu=1.0))
    assert scene.take() == ["a: run p #1", "a: run q #1"]
    assert scene.state("r") == "queued"
    scene.submit(other=[])
    assert scene.take() == ["b: run other #1"]
    scene.finish("p", value=b"1")
    assert scene.take() == ["c: p in memory inline", "a: run r #1"]


def test_fractions_add_up_and_several_resources_are_needed_together(scene: Scene) -> None:
    scene.join("a", nthreads=20, resources={"net": 0.3, "gpu": 1.0})
    for key in ("p", "q", "r", "s"):
        scene.submit(**{key: []}, options=needs(net=0.1))
    assert scene.take() == ["a: run p #1", "a: run q #1", "a: run r #1"]
    scene.submit(u=[], options=needs(net=0.2, gpu=0.5))
    scene.finish("p", value=b"1")
    assert scene.take() == ["c: p in memory inline", "a: run s #1"]
    scene.finish("q", value=b"1")
    scene.finish("r", value=b"1")
    assert scene.take()[-1] == "a: run u #1"


def test_what_no_worker_has_waits_for_one_that_has_it(scene: Scene) -> None:
    scene.join("a", resources={"gpu": 1.0})
    scene.submit(x=[], options=needs(gpu=2.0))
    scene.submit(y=[], options=needs(typo=1.0))
    assert [scene.state(key) for key in "xy"] == ["no-worker", "no-worker"]
    scene.join("b", resources={"gpu": 2.0})
    assert scene.take() == ["b: run x #1"]
    scene.from_worker("a", ResourcesChanged({"typo": 1.0}))
    assert scene.take() == ["a: run y #1"]


def test_a_run_that_was_given_up_keeps_what_it_has_until_it_really_ends(scene: Scene) -> None:
    """Case C022."""
    scene.join("a", nthreads=2, resources={"gpu": 1.0})
    scene.submit(x=[], options=needs(gpu=1.0))
    scene.release("x")
    scene.submit(y=[], options=needs(gpu=1.0))
    assert scene.take() == ["a: run x #1", "a: recall x #1"]
    assert scene.state("y") == "queued"
    scene.finish("x")
    assert scene.take() == ["a: free x", "a: run y #1"]


def test_a_run_gives_back_what_it_had_however_it_ends(scene: Scene) -> None:
    scene.join("a", resources={"gpu": 1.0})
    worker = scene.worker("a")
    scene.submit(x=[], options=TaskOptions(resources={"gpu": 1.0}, retries=1))
    scene.fail("x")
    scene.returned("x")
    assert worker.available == {"gpu": 0.0}
    scene.finish("x")
    assert worker.available == {"gpu": 1.0}


def test_the_most_urgent_goes_first_also_to_workers_that_join(scene: Scene) -> None:
    """Case C076."""
    scene.join("a", resources={"r": 1.0})
    for i in range(6):
        options = TaskOptions(priority=float(i), resources={"r": 1.0})
        scene.submit(**{f"t{i}": []}, options=options)
    scene.join("b", resources={"r": 1.0})
    scene.join("d", resources={"r": 1.0})
    assert scene.take() == ["a: run t0 #1", "b: run t5 #1", "d: run t4 #1"]
    scene.finish("t0", value=b"1")
    scene.finish("t5", value=b"1")
    scene.finish("t4", value=b"1")
    assert [line for line in scene.take() if "run" in line] == [
        "a: run t3 #1",
        "b: run t2 #1",
        "d: run t1 #1",
    ]


def test_small_demands_do_not_keep_out_a_large_one_that_came_first(scene: Scene) -> None:
    scene.join("a", nthreads=9, resources={"gpu": 2.0, "net": 1.0})
    scene.submit(p=[], q=[], options=needs(gpu=1.0))
    scene.submit(large=[], options=needs(gpu=2.0))
    scene.submit(r=[], options=needs(gpu=1.0))
    scene.submit(n=[], options=needs(net=1.0))
    assert scene.take() == ["a: run p #1", "a: run q #1", "a: run n #1"]
    scene.finish("p", value=b"1")
    assert scene.take() == ["c: p in memory inline"]
    scene.finish("q", value=b"1")
    assert scene.take() == ["c: q in memory inline", "a: run large #1"]
    scene.finish("large", value=b"1")
    assert scene.take()[-1] == "a: run r #1"


def test_restrictions_hold_beside_resources(scene: Scene) -> None:
    scene.join("a", resources={"gpu": 1.0})
    scene.join("b", resources={"gpu": 1.0})
    scene.submit(x=[], options=TaskOptions(workers=["b"], resources={"gpu": 1.0}))
    assert scene.take() == ["b: run x #1"]
    loose = TaskOptions(workers=["z"], allow_other_workers=True, resources={"gpu": 1.0})
    scene.submit(y=[], options=loose)
    assert scene.take() == ["a: run y #1"]


def test_as_the_last_worker_that_has_it_goes_its_tasks_wait_for_another(scene: Scene) -> None:
    scene.join("a", resources={"gpu": 1.0})
    scene.join("b")
    scene.submit(x=[], y=[], options=needs(gpu=1.0))
    scene.leave("a")
    assert [scene.state(key) for key in "xy"] == ["processing", "no-worker"]
    scene.lose("a")
    assert [scene.state(key) for key in "xy"] == ["no-worker", "no-worker"]


def test_a_lost_input_is_computed_before_a_queued_task_goes_on(scene: Scene) -> None:
    scene.join("a", resources={"gpu": 1.0})
    scene.join("b")
    scene.submit(x=[], options=TaskOptions(workers=["b", "a"]))
    scene.finish("x")
    scene.submit(p=[], options=needs(gpu=1.0))
    scene.submit(y=["x"], options=needs(gpu=1.0))
    assert scene.state("y") == "queued"
    holder = (scene.task("x").who_has or [])[0]
    scene.gone(holder.name, "x")
    assert scene.state("y") == "waiting"


def test_a_client_may_say_what_a_worker_has(scene: Scene) -> None:
    scene.join("a", resources={"gpu": 1.0})
    scene.submit(x=[], options=needs(net=1.0))
    scene.take()
    scene.call(SetResources, worker="a", resources={"net": 1.0})
    assert scene.take() == ["c: answer {'gpu': 1.0, 'net': 1.0}", "a: run x #1"]
    scene.call(SetResources, worker="nobody", resources={})
    assert scene.take() == ["c: answer {}"]


def two_with_a_large_one_that_waits(scene: Scene) -> None:
    """p is on a and q on b; a's amount would do for r, but is kept for large, which came first."""
    scene.join("a", nthreads=9, resources={"gpu": 2.0})
    scene.join("b", nthreads=9, resources={"gpu": 2.0})
    scene.submit(p=[], q=[], options=needs(gpu=1.0))
    scene.submit(large=[], options=needs(gpu=2.0))
    scene.submit(r=[], options=needs(gpu=1.0))
    scene.take()


def test_what_was_kept_for_a_task_is_there_for_others_once_it_is_sent_elsewhere(
    scene: Scene,
) -> None:
    two_with_a_large_one_that_waits(scene)
    scene.finish("p", value=b"1")
    assert scene.take() == ["c: p in memory inline", "a: run large #1", "b: run r #1"]


def test_what_was_kept_for_a_task_is_there_for_others_once_it_is_let_go_of(scene: Scene) -> None:
    scene.join("a", nthreads=9, resources={"gpu": 2.0})
    scene.submit(p=[], options=needs(gpu=1.0))
    scene.submit(large=[], options=needs(gpu=2.0))
    scene.submit(r=[], options=needs(gpu=1.0))
    assert scene.take() == ["a: run p #1"]
    scene.release("large")
    assert scene.take() == ["a: run r #1"]


def test_what_may_run_elsewhere_does_as_those_it_names_leave(scene: Scene) -> None:
    scene.join("a", resources={"gpu": 1.0})
    scene.join("z", resources={"gpu": 1.0})
    loose = TaskOptions(workers=["z"], allow_other_workers=True, resources={"gpu": 1.0})
    scene.submit(x=[], y=[], options=loose)
    assert scene.take() == ["z: run x #1"]
    scene.leave("z")
    assert scene.take() == ["a: run y #1"]


def test_amounts_that_lie_idle_while_a_task_waits_for_them_are_told_of(scene: Scene) -> None:
    two_with_a_large_one_that_waits(scene)
    scene.worker("a").available = {"gpu": 2.0}
    scene.worker("a").claims.clear()
    broken = list(check(scene.machine.state))
    assert len(broken) == 1
    assert "large" in broken[0]
    assert "{'gpu': 2.0}" in broken[0]


def test_many_tasks_of_one_unmet_demand_cost_one_look_at_the_workers(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(**{f"t{i}": [] for i in range(50)}, options=needs(gpu=1.0))
    looks = Looks()
    worker = scene.worker("a")
    worker.resources = looks
    scene.join("d")
    assert looks.n <= 2  # in the step, and as the scene asks for what is broken
    assert scene.state("t49") == "no-worker"


class Looks(dict[str, float]):
    """Amounts of a worker that count how often they are asked for."""

    n = 0

    def get(self, key: str, default: Any = None) -> Any:
        self.n += 1
        return super().get(key, default)


def test_a_more_urgent_demand_goes_before_what_is_placed_on_the_same_worker(scene: Scene) -> None:
    """Case C076."""
    scene.join("a", resources={"r": 1.0})
    scene.submit(**{f"x{i}": [] for i in range(4)}, options=TaskOptions(workers=["a"]))
    scene.submit(y=[], options=TaskOptions(priority=1.0, resources={"r": 1.0}))
    assert scene.take() == ["a: run x0 #1", "a: run x1 #1"]
    scene.finish("x0", value=b"1")
    assert scene.take() == ["c: x0 in memory inline", "a: run y #1"]


def test_a_more_urgent_demand_that_can_not_be_met_here_holds_up_nothing(scene: Scene) -> None:
    scene.join("a", resources={"r": 1.0})
    scene.submit(**{f"x{i}": [] for i in range(4)}, options=TaskOptions(workers=["a"]))
    scene.submit(y=[], z=[], options=TaskOptions(priority=1.0, resources={"r": 1.0}))
    scene.finish("x0", value=b"1")
    scene.take()
    scene.finish("x1", value=b"1")
    assert scene.take() == ["c: x1 in memory inline", "a: run x2 #1"]


def test_what_was_kept_for_one_is_had_by_others_once_that_has_gone_elsewhere(scene: Scene) -> None:
    """Nothing happens on a meanwhile, and there is another line that asks for the same."""
    scene.join("a", nthreads=4, resources={"mem": 3.0, "gpu": 1.0})
    scene.join("b", nthreads=4, resources={"mem": 3.0})
    scene.submit(t=[], u=[], options=TaskOptions(resources={"mem": 2.0}))
    scene.submit(z=[], options=TaskOptions(resources={"mem": 3.0}))
    scene.submit(s=[], options=TaskOptions(resources={"mem": 1.0}))
    scene.submit(g=[], options=TaskOptions(resources={"mem": 0.5, "gpu": 1.0}, workers=["a"]))
    assert [scene.state(key) for key in "zsg"] == ["queued"] * 3
    on_b = next(key for key in "tu" if scene.task(key).worker is scene.worker("b"))
    scene.take()
    scene.finish(on_b, value=b"1")
    assert [line for line in scene.take() if ": run " in line] == ["b: run z #1", "a: run s #1"]
    scene.finish("s", value=b"1")
    assert scene.state("g") == "processing"
