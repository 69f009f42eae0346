"""What the page and scripts are told is what the state says."""

from shoal.observe.facts import facts_of_worker
from shoal.protocol.coordination import AcquireLease, AcquireLock
from shoal.protocol.keys import to_canonical
from shoal.protocol.memory import PauseChanged
from shoal.protocol.messages import WorkerHeartbeat
from shoal.web.feeds.counts import counts, nawaited_in
from shoal.web.feeds.shuffles import SHUFFLES_MAX, shuffle_columns
from shoal.web.feeds.status import (
    LOCKS_MAX,
    WORKERS_MAX,
    lock_columns,
    nbusy_of,
    prefix_columns,
    runs_of,
    status,
    worker_columns,
)
from tests.scenes.scheduler.scene import Scene
from tests.scenes.scheduler.shuffling import cut, join, submit_shuffle

COUNTS = [
    *("bytes", "clients", "cores", "erred", "hosts", "idle", "memory", "processing", "released"),
    *("saturated", "tasks", "unrunnable", "waiting", "waiting_data", "workers", "desired_workers"),
]


def test_counts_have_upstreams_names_in_upstreams_order() -> None:
    """Scripts read them."""
    assert list(counts(Scene().machine.state, 0, 5.0)) == COUNTS


def test_counts_are_those_of_the_state() -> None:
    """Two workers hold one result, run two tasks; one has failed and four inputs are waited for."""
    scene = Scene()
    scene.workers("a", "b")
    scene.submit(**{"x1": []})
    scene.finish("x1", nbytes=70_000)
    scene.submit(**{"e1": []})
    scene.fail("e1")
    scene.submit(**{"y1": [], "y2": [], "z1": ["y1", "y2"], "z2": ["y1", "y2"]})
    state = scene.machine.state
    found = counts(state, nawaited_in(state.tasks.values()), 5.0)
    assert found | {"hosts": 0} == {
        "bytes": 70_000,
        "clients": 1,
        "cores": 2,
        "erred": 1,
        "hosts": 0,
        "idle": 0,
        "memory": 1,
        "processing": 2,
        "released": 0,
        "saturated": 0,
        "tasks": 6,
        "unrunnable": 0,
        "waiting": 2,
        "waiting_data": 4,
        "workers": 2,
        "desired_workers": 2,  # both are busy
    }


def test_tasks_that_wait_without_a_worker_are_unrunnable_so_that_the_counts_add_up() -> None:
    """Ready ones are; the one that waits for inputs waits for those first."""
    scene = Scene()
    scene.submit(**{"x1": [], "x2": [], "y1": ["x1", "x2"]})
    found = counts(scene.machine.state, 2, 5.0)
    assert (found["unrunnable"], found["waiting"]) == (2, 1)
    states = ("erred", "memory", "processing", "released", "unrunnable", "waiting")
    assert sum(found[state] for state in states) == found["tasks"] == 3


def test_workers_are_desired_for_what_is_ready() -> None:
    """Ten seconds of work, to be done in two."""
    scene = Scene()
    scene.submit(**{f"x{i}": [] for i in range(20)})
    assert counts(scene.machine.state, 0, 2.0)["desired_workers"] == 5


def test_progress_counts_from_when_a_prefix_last_had_no_tasks() -> None:
    """Two of three are done, of the second time; the four of the first time are history."""
    scene = Scene()
    scene.workers("a")
    first = {f"x{i}": [] for i in range(4)}
    scene.submit(**first)
    for key in first:
        scene.finish(key)
    scene.release(*first)
    scene.submit(**{"x5": [], "x6": [], "x7": []})
    scene.finish("x5")
    scene.finish("x6")
    columns = prefix_columns(scene.machine.state.prefixes)
    row = {name: values[0] for name, values in columns.items()}
    assert row | {"duration_us": 0} == {
        "name": "x",
        "done": 2,
        "processing": 1,
        "left": 0,
        "erred": 0,
        "memory": 2,
        "duration_us": 0,
    }


def test_a_result_that_is_let_go_of_stays_done() -> None:
    """A program that drops its futures as they come sees its bar grow all the same."""
    scene = Scene()
    scene.workers("a")
    scene.submit(**{"x1": [], "x2": []})
    scene.finish("x1")
    scene.release("x1")
    columns = prefix_columns(scene.machine.state.prefixes)
    assert (columns["done"], columns["processing"]) == ([1], [1])


def test_prefixes_with_work_left_come_first_then_the_newest() -> None:
    """So what goes on is at the top."""
    scene = Scene()
    scene.workers("a")
    scene.submit(**{"old1": []})
    scene.submit(**{"mid1": []})
    scene.submit(**{"new1": []})
    for key in ("mid1", "new1"):
        scene.finish(key)
    assert prefix_columns(scene.machine.state.prefixes)["name"] == ["old", "new", "mid"]


def test_a_worker_shows_what_its_threads_run() -> None:
    """Two threads, three tasks: the oldest two."""
    scene = Scene()
    scene.workers("a", nthreads=2)
    scene.submit(**{"x1": [], "x2": [], "y1": []})
    worker = scene.worker("a")
    assert runs_of(worker) == {"x": 2}
    scene.finish("x1")
    assert runs_of(worker) == {"x": 1, "y": 1}
    columns = worker_columns([worker])
    assert columns["nprocessing"] == [2]
    assert {len(values) for values in columns.values()} == {1}


def test_a_task_that_waits_for_others_runs_but_keeps_no_thread_busy() -> None:
    """w waits, x has its thread's substitute, and y can't have begun."""
    scene = Scene()
    scene.workers("a")
    scene.submit(w=[], x=[], y=[])
    scene.from_worker("a", WorkerHeartbeat(nwaiting=1))
    worker = scene.worker("a")
    assert runs_of(worker) == {"w": 1, "x": 1}
    assert nbusy_of(worker) == 1
    scene.finish("x")
    scene.finish("y")
    assert nbusy_of(worker) == 0


def test_a_worker_shows_what_its_memory_is_used_for_and_that_it_is_paused() -> None:
    scene = Scene()
    scene.join("a", memory_limit=1000)
    heard = WorkerHeartbeat(
        memory_bytes=900,
        managed_bytes=300,
        spilled_bytes=200,
        spilled_disk_bytes=150,
        unmanaged_old_bytes=100,
        container_bytes=1500,
        container_limit_bytes=2000,
    )
    scene.from_worker("a", heard, PauseChanged(True, "full"))
    columns = worker_columns([scene.worker("a")])
    assert columns["paused"] == [True]
    assert columns["memory_bytes"] == [900]
    assert columns["spilled_bytes"] == [200]
    assert columns["unmanaged_old_bytes"] == [100]
    assert (columns["container_bytes"], columns["container_limit"]) == ([1500], [2000])
    assert status(scene.machine.state)["totals"]["spilled_bytes"] == 200

    facts = facts_of_worker(scene.worker("a").identity())
    metrics = facts["metrics"]
    assert facts["status"] == "paused"
    assert metrics["memory"] == 900
    assert metrics["spilled_bytes"] == {"memory": 200, "disk": 150}
    assert metrics["container"] == {"memory": 1500, "limit": 2000}


def test_bytes_that_workers_fetched_are_added_up_and_outlive_them() -> None:
    """The total is of the cluster's whole life."""
    scene = Scene()
    scene.workers("a", "b")
    scene.submit(**{"x1": []})
    scene.finish("x1", nbytes=500)
    scene.holds("b", "x1", nbytes=500)
    assert scene.worker("b").received_bytes == 500
    scene.lose("b")
    assert status(scene.machine.state)["totals"]["received_bytes"] == 500


def test_no_look_has_a_row_for_each_of_many_workers() -> None:
    """Their sums are complete."""
    scene = Scene()
    scene.workers(*(f"w{i}" for i in range(WORKERS_MAX + 5)))
    looked = status(scene.machine.state)
    assert looked["totals"]["workers"] == WORKERS_MAX + 5
    assert len(looked["workers"]["name"]) == WORKERS_MAX


def test_who_holds_a_lock_that_others_wait_for_is_shown() -> None:
    """One that nobody waits for keeps nobody from going on."""
    scene = Scene()
    for client, name, claim in (("c", "x", 1), ("d", "y", 1), ("d", "x", 2), ("d", "x", 3)):
        scene.call(AcquireLock, client, name=name, claim=claim)
    shown = {"name": ["x"], "holder": ["c"], "nwaiting": [2]}
    assert status(scene.machine.state)["locks"] == shown


def test_the_task_that_holds_a_lock_is_shown_by_its_key() -> None:
    """Names and keys as people write them."""
    scene = Scene()
    for claim in (1, 2):
        name, by = to_canonical(("x", 1)), to_canonical(("task", claim))
        scene.call(AcquireLease, name=name, claim=claim, by=by)
    shown = {"name": ["('x', 1)"], "holder": ["('task', 1)"], "nwaiting": [1]}
    assert status(scene.machine.state)["locks"] == shown


def test_no_more_locks_are_shown_than_fit() -> None:
    """With a thousand of them."""
    scene = Scene()
    for number in range(1000):
        scene.call(AcquireLock, name=f"x{number}", claim=2 * number)
        scene.call(AcquireLock, name=f"x{number}", claim=2 * number + 1)
    assert len(lock_columns(scene.machine.state.locks)["name"]) == LOCKS_MAX


def test_a_shuffle_is_shown_in_bytes_and_partitions_until_its_outputs_are_made() -> None:
    """`u1` gets three times what `u0` gets; 80 bytes within two seconds."""
    scene = Scene()
    scene.workers("a", "b")
    submit_shuffle(scene)
    assert status(scene.machine.state)["shuffles"]["name"] == ["s"]
    cut(scene, "t0", nbytes=(10, 30))
    scene.advance(2.0)
    cut(scene, "t1", nbytes=(10, 30))
    assert status(scene.machine.state)["shuffles"] == {
        "name": ["s"],
        "ninputs": [2],
        "nmade": [2],
        "noutputs": [2],
        "njoined": [0],
        "in_bytes": [80],
        "disk_bytes": [0],
        "out_bytes": [0],
        "bytes_per_second": [40],
        "skew": [1.5],
        "nagain": [0],
    }
    join(scene, "u0", 0)
    join(scene, "u1", 1)
    assert not status(scene.machine.state)["shuffles"]["name"]


def test_no_more_shuffles_are_shown_than_fit() -> None:
    """The newest are."""
    scene = Scene()
    for number in range(SHUFFLES_MAX + 5):
        submit_shuffle(scene, f"s{number}")
    shown = shuffle_columns(scene.machine.state.shuffles)["name"]
    assert (len(shown), shown[0]) == (SHUFFLES_MAX, f"s{SHUFFLES_MAX + 4}")
