"""Memory is a resource that nobody has to name: it is learnt what runs take, and added up."""

import pytest

from shoal.errors import KilledWorker
from shoal.ids import Key
from shoal.protocol.exceptions import from_failure
from shoal.protocol.memory import RunsGauged
from shoal.protocol.messages import TaskOptions, WorkerHeartbeat
from shoal.protocol.transfers import PlaceScatter
from shoal.scheduler.machine.admitting import OFFERS_MAX
from tests.scenes.scheduler.scene import Scene

GIB = 1 << 30
SMALL = b"1"


def gauge(scene: Scene, *keys: str, nbytes: float) -> None:
    """Runs have made their worker grow by so much so far."""
    found = [scene.run(key) for key in keys]
    message = RunsGauged(
        [task for _, task, _ in found], [run for _, _, run in found], [int(nbytes)] * len(keys)
    )
    scene.from_worker(found[0][0].name, message)


def finish(scene: Scene, key: str, *, peak: float = 0.0, nbytes: int = 10) -> None:
    """A run ends whose worker has grown by `peak` bytes for it; the result is small."""
    if peak:
        gauge(scene, key, nbytes=peak)
    scene.finish(key, nbytes=nbytes, value=SMALL if nbytes <= 10 else None)


def runs(scene: Scene) -> list[str]:
    """What was said to workers."""
    return [line for line in scene.take() if not line.startswith("c:")]


def test_of_an_unknown_kind_one_goes_first_and_then_as_many_as_fit(scene: Scene) -> None:
    scene.join("a", nthreads=4, memory_limit=2 * GIB)
    scene.submit(**{f"x{i}": [] for i in range(8)})
    assert runs(scene) == ["a: run x0 #1"]
    assert scene.state("x1") == "queued"
    finish(scene, "x0", peak=0.7 * GIB)
    assert runs(scene) == ["a: run x1 #1", "a: run x2 #1"]  # 1.4 of 1.6 GiB
    finish(scene, "x1", peak=0.7 * GIB)
    assert runs(scene) == ["a: run x3 #1"]


def test_what_takes_little_is_held_up_by_its_first_run_only(scene: Scene) -> None:
    scene.join("a", nthreads=4, memory_limit=2 * GIB)
    scene.submit(**{f"x{i}": [] for i in range(8)})
    assert runs(scene) == ["a: run x0 #1"]
    finish(scene, "x0")
    assert len(runs(scene)) == 5
    assert not scene.task("x5").prefix.weighs


def test_each_worker_has_a_first_one(scene: Scene) -> None:
    for name in ("a", "b"):
        scene.join(name, nthreads=4, memory_limit=2 * GIB)
    scene.submit(**{f"x{i}": [] for i in range(8)})
    assert runs(scene) == ["a: run x0 #1", "b: run x1 #1"]
    finish(scene, "x0", peak=1.2 * GIB)
    assert runs(scene) == ["a: run x2 #1"]  # and b has all that it can take: x1 is as large


def test_a_long_first_run_does_not_keep_the_other_threads_waiting_for_its_end(
    scene: Scene,
) -> None:
    """It has stopped growing, and there is room for more: as many again, each half second."""
    scene.join("a", nthreads=4, memory_limit=2 * GIB)
    scene.submit(**{f"x{i}": [] for i in range(8)})
    gauge(scene, "x0", nbytes=0.1 * GIB)
    assert runs(scene) == ["a: run x0 #1"]
    scene.advance(0.49)
    assert runs(scene) == []
    scene.advance(0.02)
    assert runs(scene) == ["a: run x1 #1"]
    scene.advance(0.6)
    assert runs(scene) == ["a: run x2 #1", "a: run x3 #1"]
    scene.advance(0.6)
    assert runs(scene) == ["a: run x4 #1"]  # the slots are full


def test_several_of_an_unknown_kind_run_on_one_worker_before_they_do_on_two(scene: Scene) -> None:
    """So that no more than one worker is lost if they all take much in the end."""
    for name in ("a", "b"):
        scene.join(name, nthreads=2, memory_limit=2 * GIB)
    scene.submit(**{f"x{i}": [] for i in range(8)})
    assert runs(scene) == ["a: run x0 #1", "b: run x1 #1"]
    scene.advance(0.51)
    assert runs(scene) == ["a: run x2 #1"]
    scene.advance(0.51)
    assert runs(scene) == ["b: run x3 #1", "a: run x4 #1"]
    scene.advance(0.51)
    assert runs(scene) == ["b: run x5 #1"]


def test_a_first_run_that_grows_on_stays_alone(scene: Scene) -> None:
    scene.join("a", nthreads=4, memory_limit=2 * GIB)
    scene.submit(x0=[], x1=[])
    for step in range(1, 6):
        gauge(scene, "x0", nbytes=step * 0.2 * GIB)
        scene.advance(0.45)
    assert runs(scene) == ["a: run x0 #1"]
    scene.advance(1.0)  # it has stopped, but 1 GiB, and half as much again, is too much for two
    assert runs(scene) == []
    finish(scene, "x0", peak=1.0 * GIB)
    assert runs(scene) == ["a: run x1 #1"]


def test_lighter_tasks_pass_what_there_is_no_memory_for(scene: Scene) -> None:
    scene.join("a", nthreads=4, memory_limit=2 * GIB)
    scene.submit(light0=[])
    finish(scene, "light0")
    scene.submit(x0=[])
    finish(scene, "x0", peak=1.2 * GIB)
    scene.take()
    scene.submit(x1=[], x2=[], x3=[])
    scene.submit("d", light1=[], light2=[])
    assert runs(scene) == ["a: run x1 #1", "a: run light1 #1", "a: run light2 #1"]


def test_a_heavy_task_is_not_passed_for_ever(scene: Scene) -> None:
    """Each mid takes half the room; a big one needs nearly all: it gets its turn."""
    scene.join("a", nthreads=4, memory_limit=2 * GIB)
    scene.submit(mid0=[])
    finish(scene, "mid0", peak=0.7 * GIB)
    scene.submit(big0=[])
    finish(scene, "big0", peak=1.5 * GIB)
    scene.take()
    scene.submit(**{f"mid{i}": [] for i in range(1, 9)})
    scene.submit(big1=[], options=TaskOptions(priority=1))
    assert runs(scene) == ["a: run mid1 #1", "a: run mid2 #1"]
    finish(scene, "mid1", peak=0.7 * GIB)
    assert runs(scene) == ["a: run mid3 #1"]  # it is passed for a while
    scene.advance(1.1)
    finish(scene, "mid2", peak=0.7 * GIB)
    assert runs(scene) == []
    finish(scene, "mid3", peak=0.7 * GIB)
    assert runs(scene) == ["a: run big1 #1"]
    finish(scene, "big1", peak=1.5 * GIB)
    assert runs(scene) == ["a: run mid4 #1", "a: run mid5 #1"]


def test_what_needs_a_worker_for_itself_gets_one_though_light_tasks_flow(scene: Scene) -> None:
    """No worker has so much memory at all: it runs alone."""
    scene.join("a", nthreads=2, memory_limit=2 * GIB)
    scene.submit(light0=[])
    finish(scene, "light0", peak=0.0)
    scene.submit(big0=[])
    finish(scene, "big0", peak=1.8 * GIB)
    scene.submit(**{f"light{i}": [] for i in range(1, 20)})
    scene.submit(big1=[], options=TaskOptions(priority=1))
    scene.take()
    done = 0
    for i in range(1, 20):
        finish(scene, f"light{i}")
        scene.advance(0.4)
        done += 1
        if "a: run big1 #1" in (said := runs(scene)):
            break
    assert done <= 6
    assert said[0] == "a: run big1 #1"


def test_a_worker_that_runs_nothing_takes_what_nobody_has_memory_for(scene: Scene) -> None:
    scene.join("a", nthreads=2, memory_limit=2 * GIB)
    scene.submit(x0=[], x1=[])
    finish(scene, "x0", peak=5 * GIB)
    assert runs(scene) == ["a: run x0 #1", "a: run x1 #1"]


def test_a_heavy_task_goes_to_a_worker_that_can_hold_it(scene: Scene) -> None:
    """Though a smaller one has nothing to do."""
    scene.join("big", nthreads=2, memory_limit=4 * GIB)
    scene.join("small", nthreads=2, memory_limit=1 * GIB)
    scene.submit(x0=[], options=TaskOptions(workers=["big"]))
    finish(scene, "x0", peak=2 * GIB)
    scene.take()
    scene.submit(x1=[], x2=[], x3=[])
    assert runs(scene) == ["big: run x1 #1"]
    finish(scene, "x1", peak=2 * GIB)
    assert runs(scene) == ["big: run x2 #1"]


def test_a_hint_says_it_beforehand(scene: Scene) -> None:
    scene.join("a", nthreads=4, memory_limit=2 * GIB)
    options = TaskOptions(memory=int(0.7 * GIB))
    scene.submit(**{f"x{i}": [] for i in range(4)}, options=options)
    assert runs(scene) == ["a: run x0 #1", "a: run x1 #1"]


def test_a_setting_says_it_for_a_prefix() -> None:
    scene = Scene(known_bytes={"x": int(0.7 * GIB)})
    scene.join("a", nthreads=4, memory_limit=2 * GIB)
    scene.submit(**{f"x{i}": [] for i in range(4)})
    assert runs(scene) == ["a: run x0 #1", "a: run x1 #1"]


def test_what_is_kept_and_what_is_there_at_rest_leaves_less_room(scene: Scene) -> None:
    scene.join("a", nthreads=4, memory_limit=2 * GIB)
    scene.from_worker("a", WorkerHeartbeat(memory_bytes=int(0.4 * GIB)))
    options = TaskOptions(memory=int(0.5 * GIB))
    scene.submit(kept=[])
    finish(scene, "kept", nbytes=int(0.5 * GIB))
    scene.take()
    scene.submit(**{f"x{i}": [] for i in range(4)}, options=options)
    assert runs(scene) == ["a: run x0 #1"]  # 0.7 GiB are left of 1.6


def test_a_run_that_was_given_up_keeps_its_memory_until_it_has_ended(scene: Scene) -> None:
    scene.join("a", nthreads=4, memory_limit=2 * GIB)
    options = TaskOptions(memory=1 * GIB)
    scene.submit(x=[], options=options)
    scene.release("x")
    scene.submit(y=[], options=options)
    assert runs(scene) == ["a: run x #1", "a: recall x #1"]
    scene.finish("x")
    assert runs(scene) == ["a: free x", "a: run y #1"]


def test_estimates_come_down_slowly_and_go_up_at_once(scene: Scene) -> None:
    scene.join("a", nthreads=4, memory_limit=2 * GIB)
    peaks = [1.0, 0.2, 0.2, 1.2]
    seen: list[float] = []
    for i, peak in enumerate(peaks):
        scene.submit(**{f"x{i}": []})
        finish(scene, f"x{i}", peak=peak * GIB)
        seen.append(round(scene.task(f"x{i}").prefix.peak_bytes / GIB, 2))
    assert seen == [1.0, 0.9, 0.81, 1.2]


def test_what_always_fails_is_not_kept_to_one_run_at_a_time(scene: Scene) -> None:
    """The first few failures say nothing of runs that will go well."""
    scene.join("a", nthreads=4, memory_limit=2 * GIB)
    scene.submit(**{f"x{i}": [] for i in range(20)})
    for i in range(7):
        scene.fail(f"x{i}")
    assert runs(scene) == [f"a: run x{i} #1" for i in range(8)]
    scene.fail("x7")
    assert len(runs(scene)) > 1


def test_what_is_there_at_rest_is_no_more_than_what_is_there_as_runs_go_on(scene: Scene) -> None:
    """Something was let go of since a heartbeat that came while nothing ran."""
    scene.join("a", nthreads=4, memory_limit=2 * GIB)
    scene.from_worker("a", WorkerHeartbeat(memory_bytes=int(1.5 * GIB)))
    options = TaskOptions(memory=int(0.29 * GIB))
    scene.submit(**{f"x{i}": [] for i in range(8)}, options=options)
    assert runs(scene) == ["a: run x0 #1"]
    scene.from_worker("a", WorkerHeartbeat(memory_bytes=int(1.9 * GIB)))
    finish(scene, "x0")
    assert runs(scene) == ["a: run x1 #1"]
    scene.from_worker("a", WorkerHeartbeat(memory_bytes=int(0.4 * GIB)))
    finish(scene, "x1")
    assert len(runs(scene)) == 4


def test_a_worker_is_kept_for_a_task_no_longer_than_that_waits(scene: Scene) -> None:
    """x1 needs a worker for itself; it is let go of while a's long runs go on."""
    for name in ("a", "b"):
        scene.join(name, nthreads=2, memory_limit=2 * GIB)
    scene.submit(light0=[])
    finish(scene, "light0")
    scene.submit(x0=[])
    finish(scene, "x0", peak=1.8 * GIB)
    scene.submit(**{f"light{i}": [] for i in range(1, 7)})
    scene.submit(x1=[])
    finish(scene, "light1")
    scene.advance(1.1)
    finish(scene, "light2")
    [kept] = [w for w in scene.machine.state.workers.values() if w.runs_suspect]
    scene.take()
    scene.release("x1")
    scene.submit(**{f"light{i}": [] for i in range(10, 20)})
    scene.advance(0.0)
    assert any(line.startswith(f"{kept.name}: run light1") for line in runs(scene))


def test_a_worker_that_is_kept_for_a_task_takes_nothing_that_weighs_from_others(
    scene: Scene,
) -> None:
    """b could have had the mids of a's backlog for ever, one after the other."""
    for name in ("a", "b"):
        scene.join(name, nthreads=4, memory_limit=2 * GIB)
    scene.submit(i=[], options=TaskOptions(workers=["a"]))
    finish(scene, "i", nbytes=10_000)
    options = TaskOptions(memory=int(0.7 * GIB))
    scene.submit(**{f"mid{n}": ["i"] for n in range(30)}, options=options)
    scene.submit(big=[], options=TaskOptions(memory=int(1.5 * GIB), priority=1))
    nended = 0
    while scene.state("big") == "queued" and nended < 12:
        workers = scene.machine.state.workers.values()
        out = [t for w in workers for t in w.processing if t.run and t.key.startswith("mid")]
        scene.advance(0.3)
        finish(scene, out[-(nended % 2)].key)
        nended += 1
    assert scene.state("big") == "processing"


def test_many_workers_are_offered_many_kinds_in_several_steps(scene: Scene) -> None:
    """As many offers as one step makes, and the others after them, for every thread."""
    nworkers = OFFERS_MAX // 2 + 10
    for number in range(nworkers):
        scene.join(f"w{number}", nthreads=2, memory_limit=2 * GIB)
    for kind in ("x", "y", "z"):
        scene.submit(**{f"{kind}{i}": [] for i in range(nworkers)}, prefix=kind)
    scene.advance(0.0)
    nidle = sum(worker.nsent < worker.nthreads for worker in scene.machine.state.workers.values())
    assert nidle == 0
    assert not scene.machine.state.footprints.unasked


def test_eight_tasks_of_unknown_size_never_share_a_worker(scene: Scene) -> None:
    """1.2 GiB each, two workers of 2 GiB and four threads, nothing annotated."""
    for name in ("a", "b"):
        scene.join(name, nthreads=4, memory_limit=2 * GIB)
    keys = [f"x{i}" for i in range(8)]
    scene.submit(**{key: [] for key in keys})
    out: dict[str, str] = {}
    nended = 0
    while nended < 8:
        for line in runs(scene):
            name, _, rest = line.partition(": run ")
            assert name not in out.values(), "two at once"
            out[rest.split()[0]] = name
        key = next(iter(out))
        finish(scene, key, peak=1.2 * GIB)
        del out[key]
        nended += 1


def test_what_needs_resources_needs_memory_beside_them(scene: Scene) -> None:
    scene.join("a", nthreads=4, memory_limit=2 * GIB, resources={"gpu": 4.0})
    options = TaskOptions(resources={"gpu": 1.0}, memory=int(0.7 * GIB))
    scene.submit(**{f"x{i}": [] for i in range(4)}, options=options)
    assert runs(scene) == ["a: run x0 #1", "a: run x1 #1"]
    finish(scene, "x0")
    assert runs(scene) == ["a: run x2 #1"]


def test_what_is_limited_in_number_needs_memory_beside_that(scene: Scene) -> None:
    scene.join("a", nthreads=4, memory_limit=2 * GIB)
    options = TaskOptions(limits={"db": 3}, memory=int(0.7 * GIB))
    scene.submit(**{f"x{i}": [] for i in range(4)}, options=options)
    assert runs(scene) == ["a: run x0 #1", "a: run x1 #1"]
    finish(scene, "x0")
    assert runs(scene) == ["a: run x2 #1"]


def test_what_is_placed_for_its_inputs_waits_there_for_memory_and_others_pass(
    scene: Scene,
) -> None:
    scene.join("a", nthreads=4, memory_limit=2 * GIB)
    scene.submit(i=[], l0=[])
    finish(scene, "i", nbytes=1000)
    finish(scene, "l0")
    scene.take()
    names = [f"x{i}" for i in range(4)]
    scene.submit(**{name: ["i"] for name in names}, options=TaskOptions(memory=1 * GIB))
    scene.submit(l1=["i"], prefix="l")
    assert runs(scene) == ["a: run x0 #1", "a: run l1 #1"]
    finish(scene, "x0")
    assert runs(scene) == ["a: run x1 #1"]


@pytest.mark.parametrize(
    ("nbytes", "goes_first"), [(int(0.9 * GIB), "use"), (int(0.1 * GIB), "load1")]
)
def test_where_memory_is_short_what_frees_some_goes_before_what_takes_more(
    scene: Scene, nbytes: int, goes_first: str
) -> None:
    """All loads were submitted before the use of the first one, as `map` and `map` do."""
    scene.join("a", nthreads=1, memory_limit=2 * GIB)
    scene.submit(small=[])
    finish(scene, "small", nbytes=1000)
    scene.submit(load0=[])
    finish(scene, "load0", nbytes=nbytes)
    scene.submit(**{f"busy{i}": [] for i in range(2)})
    scene.submit(**{f"load{i}": [] for i in range(1, 5)}, prefix="other")
    scene.submit(use=["load0"])
    scene.take()
    finish(scene, "busy0")
    assert runs(scene) == [f"a: run {goes_first} #1"]


# --- workers die as their memory is full -----------------------------------------------------


def test_what_ran_as_memory_filled_runs_alone_next_and_its_kind_is_known_from_then_on(
    scene: Scene,
) -> None:
    """Two at once, as the first was quick to stop growing; six more of the kind wait."""
    for name in ("a", "b"):
        scene.join(name, nthreads=4, memory_limit=2 * GIB)
    scene.submit(**{f"x{i}": [] for i in range(8)}, options=TaskOptions(workers=["a"]))
    scene.advance(0.6)
    assert runs(scene) == ["a: run x0 #1", "a: run x1 #1"]
    gauge(scene, "x0", "x1", nbytes=0.8 * GIB)
    scene.lose("a")
    scene.join("a", nthreads=4, memory_limit=2 * GIB)
    assert runs(scene) == ["a: run x0 #2"]
    finish(scene, "x0", peak=1.2 * GIB)
    assert runs(scene) == ["a: run x1 #2"]
    finish(scene, "x1", peak=1.2 * GIB)
    assert runs(scene) == ["a: run x2 #1"]


def test_a_task_that_fills_every_worker_fails_with_numbers(scene: Scene) -> None:
    """Twice by itself, the second time where there is most."""
    scene.join("a", nthreads=2, memory_limit=2 * GIB)
    scene.join("b", nthreads=2, memory_limit=3 * GIB)
    scene.submit(x=[], options=TaskOptions(priority=1))
    gauge(scene, "x", nbytes=1.9 * GIB)
    scene.lose("a", "signal 9")
    scene.join("a2", nthreads=2, memory_limit=2 * GIB)
    assert runs(scene) == ["a: run x #1", "b: run x #2"]
    gauge(scene, "x", nbytes=2.8 * GIB)
    scene.lose("b", "signal 9")
    [line] = scene.take()
    assert line.startswith("c: x erred: KilledByMemory: Task 'x' takes more memory than its")
    failure = scene.task("x").failure
    assert failure is not None
    error = from_failure(failure)
    assert isinstance(error, KilledWorker)
    assert isinstance(error, MemoryError)
    assert "2 died as they ran it; the last was tcp://b:1 (signal 9).\n" in str(error)
    assert "Their memory was full, and nothing else ran there:\n" in str(error)
    assert "tcp://b:1, at 2.80 GiB or more of its 3.00 GiB" in str(error)
    assert scene.machine.state.footprints.overfilled
    scene.release("x")
    assert not scene.machine.state.footprints.overfilled


def test_a_task_that_filled_a_worker_may_do_on_a_larger_one(scene: Scene) -> None:
    scene.join("a", nthreads=2, memory_limit=1 * GIB)
    scene.submit(x=[])
    gauge(scene, "x", nbytes=0.9 * GIB)
    scene.join("b", nthreads=2, memory_limit=2 * GIB)
    scene.join("d", nthreads=2, memory_limit=8 * GIB)
    scene.lose("a")
    assert runs(scene) == ["a: run x #1", "d: run x #2"]


def test_a_worker_that_had_memory_left_did_not_die_of_it(scene: Scene) -> None:
    scene.join("a", nthreads=2, memory_limit=2 * GIB)
    scene.submit(x=[])
    gauge(scene, "x", nbytes=0.2 * GIB)
    scene.lose("a")
    assert not scene.machine.state.footprints.overfilled


# --- larger than any worker ------------------------------------------------------------------


def test_inputs_that_no_worker_can_hold_together_are_an_error(scene: Scene) -> None:
    scene.join("a", nthreads=2, memory_limit=2 * GIB)
    scene.submit(x=[], y=[], z=["x", "y"], after=["z"])
    finish(scene, "x", nbytes=int(1.2 * GIB))
    finish(scene, "y", nbytes=int(1.2 * GIB))
    failure = scene.task("z").failure
    assert failure is not None
    error = from_failure(failure)
    assert isinstance(error, MemoryError)
    assert "needs 2 results of 2.40 GiB together, and no worker has more than 2.00 GiB" in str(
        error
    )
    assert scene.state("after") == "erred"


def test_a_lone_input_that_claims_more_than_any_worker_has_is_used_where_it_is(
    scene: Scene,
) -> None:
    scene.join("a", nthreads=2, memory_limit=2 * GIB)
    scene.submit(x=[], y=["x"])
    finish(scene, "x", nbytes=1024 * GIB)
    assert scene.state("y") == "processing"


def test_a_worker_without_a_limit_may_hold_anything(scene: Scene) -> None:
    scene.join("a", nthreads=2, memory_limit=2 * GIB)
    scene.join("b", nthreads=2)
    scene.submit(x=[], y=[], z=["x", "y"])
    for key in ("x", "y"):
        finish(scene, key, nbytes=int(1.2 * GIB))
    assert scene.state("z") == "processing"


def test_a_value_that_no_worker_can_hold_is_not_scattered(scene: Scene) -> None:
    scene.join("a", nthreads=2, memory_limit=2 * GIB)
    first = scene.actor("c").new_numbers(["v"])
    scene.call(PlaceScatter, first=first, keys=[Key("v")], nbytes=[3 * GIB], ncopies=1)
    [line] = scene.take()
    assert line.startswith("c: refused NotEnoughMemory: The value 'v' takes 3.00 GiB, and no")
