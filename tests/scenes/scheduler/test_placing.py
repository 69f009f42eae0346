"""Where tasks run, and how idle workers get something to do."""

from shoal.protocol.messages import TaskOptions, WorkerHeartbeat
from shoal.scheduler.machine.filling import SENDS_MAX
from tests.scenes.scheduler.scene import Scene


def test_work_is_spread_over_the_workers(scene: Scene) -> None:
    """Two tasks, two workers: one each, though each has two slots."""
    scene.workers("a", "b")
    scene.submit(x=[], y=[])
    assert scene.take() == ["a: run x #1", "b: run y #1"]


def test_a_task_runs_next_to_its_largest_input(scene: Scene) -> None:
    """x is small and y is large; z goes where y is."""
    scene.workers("a", "b")
    scene.submit(x=[], y=[], z=["x", "y"])
    scene.finish("x", nbytes=10_000)
    scene.finish("y", nbytes=100_000_000)
    assert scene.take()[-1] == "b: run z #1 (x from a)"


def test_a_table_that_all_need_pulls_no_task_away_from_its_large_input(scene: Scene) -> None:
    """Ten blocks on each of two workers, and the table on a: only the table moves."""
    scene.workers("a", "b")
    homes = {f"block{number}": "ab"[number % 2] for number in range(20)}
    for key, home in homes.items():
        scene.submit(**{key: []}, options=TaskOptions(workers=[home]))
        scene.finish(key, nbytes=4 << 20)
    scene.submit(table=[], options=TaskOptions(workers=["a"]))
    scene.finish("table", nbytes=4 << 20)
    scene.take()

    scene.submit(**{f"sum-{block}": [block, "table"] for block in homes})
    waiting = list(homes)
    while waiting:
        began = [block for block in waiting if scene.task(f"sum-{block}").run]
        assert began
        for block in began:
            assert scene.run(f"sum-{block}")[0].name == homes[block]
            scene.finish(f"sum-{block}")
            waiting.remove(block)


def test_a_busy_holder_loses_against_the_least_loaded(scene: Scene) -> None:
    """x is on a, where a second of work waits; it takes far less to bring it to b."""
    scene.workers("a", "b")
    scene.submit(x=[])
    scene.finish("x", nbytes=100_000)
    scene.submit(w1=[], w2=[], options=TaskOptions(workers=["a"]))
    scene.take()

    scene.submit(y=["x"])
    assert scene.take() == ["b: run y #1 (x from a)"]


def test_holders_on_the_same_host_are_asked_first(scene: Scene) -> None:
    """x is on a and b; d is on the host of b."""
    scene.join("a", host="one")
    scene.join("b", host="two")
    scene.submit(x=[], options=TaskOptions(workers=["a"]))
    scene.finish("x")
    scene.holds("b", "x")
    scene.take()

    scene.join("d", host="two")
    scene.submit(y=["x"], options=TaskOptions(workers=["d"]))
    assert scene.take() == ["d: run y #1 (x from b,a)"]


def test_no_more_than_a_few_holders_are_told(scene: Scene) -> None:
    """x is everywhere but on y and z; each needs one or two to ask, and begins with another one."""
    names = [f"a{i}" for i in range(20)]
    scene.workers(*names, "y", "z")
    scene.submit(x=[], options=TaskOptions(workers=["a0"]))
    scene.finish("x")
    for name in names[1:]:
        scene.holds(name, "x")
    scene.take()

    scene.submit(y=["x"], options=TaskOptions(workers=["y"]))
    scene.submit(z=["x"], options=TaskOptions(workers=["z"]))
    assert scene.take() == [
        f"y: run y #1 (x from {','.join(names[1:9])})",
        f"z: run z #1 (x from {','.join(names[2:10])})",
    ]


def test_an_idle_worker_takes_from_the_backlog_of_another(scene: Scene) -> None:
    """Six tasks were placed next to x on a, the only worker; b joins, and begins with the last."""
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x")
    scene.submit(**{f"y{i}": ["x"] for i in range(6)})
    assert scene.take()[2:] == ["a: run y0 #1", "a: run y1 #1"]

    scene.join("b")
    assert scene.take() == ["b: run y5 #1 (x from a)", "b: run y4 #1 (x from a)"]


def test_nothing_is_stolen_if_moving_the_inputs_takes_longer(scene: Scene) -> None:
    """x is 10 GB, a hundred seconds on the way; the backlog of a will be done before."""
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x", nbytes=10_000_000_000)
    scene.submit(**{f"y{i}": ["x"] for i in range(6)})
    scene.take()

    scene.join("b")
    assert scene.take() == []


def test_a_worker_that_is_stuck_loses_its_backlog_in_the_end(scene: Scene) -> None:
    """The tasks are expected to be short, but a says nothing at all; b is idle, and is asked."""
    scene.workers("a")
    scene.submit(x=[], y=[])
    scene.finish("x", nbytes=10_000_000)  # 0.1 s on the way
    scene.finish("y", seconds=1e-6)
    scene.submit(y0=["x"], **{f"y{i}": ["x"] for i in range(1, 400)})
    assert scene.state("y399") == "processing"
    scene.join("b")
    scene.take()

    scene.advance(0.05)
    assert all(" recall " in line for line in scene.take())
    scene.advance(1.0)
    assert [line for line in scene.take() if line.startswith("b: run")] != []


def test_runs_that_were_not_begun_are_recalled_for_an_idle_worker(scene: Scene) -> None:
    """a has x, which runs, and y, which was sent to wait there; b has nothing to do."""
    scene.workers("a")
    scene.submit(x=[], y=[])
    scene.join("b")
    assert scene.take() == ["a: run x #1", "a: run y #1"]

    scene.advance(0.004)
    assert scene.take() == []  # it may still be a matter of microseconds

    scene.advance(0.002)
    assert scene.take() == ["a: recall y #1"]

    scene.returned("y")
    assert scene.take() == ["b: run y #2"]


def test_a_run_is_recalled_once(scene: Scene) -> None:
    """If a does not give y back, it has begun; asking again would not help."""
    scene.workers("a")
    scene.submit(x=[], y=[])
    scene.join("b")
    scene.advance(10.0)
    assert scene.take() == ["a: run x #1", "a: run y #1", "a: recall y #1"]


def test_new_runs_are_no_reason_to_recall_old_ones_again() -> None:
    """a did not give y and w back; it gets v, which only a may run, and falls silent once more."""
    scene = Scene(worker_saturation=3.0)
    scene.workers("a")
    scene.submit(x=[], y=[], w=[])
    scene.join("b")
    scene.advance(0.01)
    assert scene.take()[3:] == ["a: recall y #1", "a: recall w #1"]  # b has one thread

    scene.finish("x")
    scene.submit(v=[], options=TaskOptions(workers=["a"]))
    assert scene.take() == ["c: x in memory at a", "a: run v #1"]
    scene.advance(10.0)
    assert scene.take() == []


def test_what_the_idle_worker_may_not_run_is_not_recalled(scene: Scene) -> None:
    """y is pinned to a."""
    scene.workers("a")
    scene.submit(x=[], y=[], options=TaskOptions(workers=["a"]))
    scene.join("b")
    scene.advance(10.0)
    assert scene.take() == ["a: run x #1", "a: run y #1"]


def test_a_pinned_task_waits_for_its_worker(scene: Scene) -> None:
    """x may run on b only, by its name; a is of no use to it."""
    scene.workers("a")
    scene.submit(x=[], options=TaskOptions(workers=["b"]))
    assert scene.take() == []
    assert scene.state("x") == "no-worker"

    scene.join("d")
    assert scene.take() == []

    scene.join("b")
    assert scene.take() == ["b: run x #1"]


def test_a_pinned_task_that_nobody_wants_is_forgotten(scene: Scene) -> None:
    """Though no worker for it ever came."""
    scene.submit(x=[], options=TaskOptions(workers=["b"]))
    scene.release("x")
    scene.join("b")
    assert scene.take() == []
    assert scene.state("x") == "forgotten"


def test_pinned_tasks_are_shared_among_their_workers(scene: Scene) -> None:
    """By host, by name, by address."""
    scene.join("a", host="one")
    scene.join("b", host="one")
    scene.join("d", host="two")
    scene.submit(x=[], y=[], options=TaskOptions(workers=["one"]))
    scene.submit(z=[], options=TaskOptions(workers=["tcp://d:1"]))
    assert scene.take() == ["a: run x #1", "b: run y #1", "d: run z #1"]


def test_a_pinned_task_is_not_stolen(scene: Scene) -> None:
    """a has a long backlog that only a may run."""
    scene.workers("a", "b")
    scene.submit(x0=[], x1=[], x2=[], x3=[], options=TaskOptions(workers=["a"]))
    assert scene.take() == ["a: run x0 #1", "a: run x1 #1"]
    scene.submit(y=[])
    scene.finish("y")
    assert scene.take() == ["b: run y #1", "c: y in memory at b"]


def test_a_preference_is_not_a_restriction(scene: Scene) -> None:
    """x would rather run on b, which isn't there; y prefers a, and waits there until b is idle."""
    options = TaskOptions(workers=["b"], allow_other_workers=True)
    scene.workers("a")
    scene.submit(x=[], options=options)
    assert scene.take() == ["a: run x #1"]

    scene.join("b")
    scene.submit(y=[], options=options)
    assert scene.take() == ["b: run y #1"]


def test_a_preference_waits_too_if_there_is_no_worker_at_all(scene: Scene) -> None:
    """And then takes whoever comes."""
    scene.submit(x=[], options=TaskOptions(workers=["b"], allow_other_workers=True))
    assert scene.state("x") == "no-worker"
    scene.join("a")
    assert scene.take() == ["a: run x #1"]


def test_a_task_whose_inputs_have_no_worker_left_waits_for_one(scene: Scene) -> None:
    """The only worker is leaving when y becomes ready: its input is there, but no place to run."""
    scene.workers("a")
    scene.submit(x=[], y=["x"])
    scene.leave("a")
    scene.finish("x")
    assert scene.take() == ["a: run x #1", "c: x in memory at a"]
    assert scene.state("y") == "no-worker"

    scene.join("b")
    assert scene.take() == ["b: run y #1 (x from a)"]


def test_a_task_that_waits_for_others_leaves_room_for_one_more(scene: Scene) -> None:
    """x waits for what it has submitted; a's thread has a substitute until x goes on."""
    scene.workers("a")
    scene.submit(x=[], y=[], z=[], w=[])
    assert scene.take() == ["a: run x #1", "a: run y #1"]

    scene.from_worker("a", WorkerHeartbeat(nwaiting=1))
    assert scene.take() == ["a: run z #1"]
    scene.from_worker("a", WorkerHeartbeat(nwaiting=0))
    scene.finish("y")
    assert scene.take() == ["c: y in memory at a"]  # what was out counts again
    scene.finish("z")
    assert scene.take() == ["c: z in memory at a", "a: run w #1"]


def test_very_many_tasks_are_sent_in_several_steps(scene: Scene) -> None:
    """As when a kind becomes known of which each worker had one."""
    keys = [f"x{number}" for number in range(SENDS_MAX + 100)]
    scene.join("a", nthreads=len(keys))
    scene.submit(**{key: [] for key in keys})
    assert scene.worker("a").nsent == SENDS_MAX
    scene.advance(0.0)
    assert scene.worker("a").nsent == len(keys)


def test_who_was_asked_for_work_in_vain_is_not_asked_next(scene: Scene) -> None:
    """Three have nothing that another may have; the fourth has something for it."""
    for name in "adeg":
        scene.join(name)
        pinned = [f"{name}{number}" for number in range(20)]
        scene.submit(**{key: [] for key in pinned}, options=TaskOptions(workers=[name]))
    scene.submit(x=[], options=TaskOptions(workers=["g"], priority=1))
    scene.finish("g0", nbytes=100)
    scene.finish("x", nbytes=100)
    scene.submit(y=["x"])
    assert scene.task("y").worker is scene.worker("g")
    scene.join("b")
    scene.take()
    scene.advance(0.1)
    assert scene.task("y").worker is scene.worker("b")
