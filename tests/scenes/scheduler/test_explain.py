"""What a task waits for, and why it ran where it did, in lines for people."""

import ast

from shoal.protocol.coordination import (
    AcquireJointly,
    AcquireLease,
    AwaitEvent,
    GetVariable,
    TakeFromQueue,
)
from shoal.protocol.memory import PauseChanged
from shoal.protocol.messages import TaskOptions, WorkerHeartbeat
from shoal.protocol.placement import ExplainTasks
from shoal.protocol.scaling import WorkersDeserved
from shoal.scheduler.policies.backlogs import PLACED_LOOKED_AT, Backlogs
from shoal.scheduler.policies.causes import Causes
from shoal.scheduler.policies.standing_in_line import Lines
from tests.scenes.scheduler.scene import Scene
from tests.scenes.scheduler.shuffling import cut, submit_shuffle


def explained(scene: Scene, *keys: str) -> list[str]:
    """The lines that a client gets."""
    scene.take()
    scene.call(ExplainTasks, keys=list(keys))
    [line] = scene.take()
    lines: list[str] = ast.literal_eval(line.removeprefix("c: answer "))
    return [text.strip() for text in lines]


def test_a_waiting_task_names_its_nearest_input(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], y=["x"], z=["y"])
    assert explained(scene, "z") == [
        "'z' is waiting:",
        "it waits for 1 of 1 inputs; next is 'x' (processing on worker a), 2 steps back",
        "'x': worker a runs it, or fetches what it needs (no such task has ended yet)",
        "with that one 2 tasks in a row go before it, of kinds of which none has ended yet",
    ]


def test_what_is_known_of_a_row_of_tasks_is_added_up(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x0=[])
    scene.finish("x0", seconds=2.0)
    scene.submit(x1=[], y=["x1"], z=["y"])
    assert explained(scene, "z")[2:] == [
        "'x1': worker a runs it, or fetches what it needs; such take 2.0 s",
        "with that one 2 tasks in a row go before it, 2.0 s of work without 1 of kinds of which "
        "none has ended yet",
    ]


def test_of_all_that_a_task_waits_for_the_one_that_nobody_may_run_is_named(scene: Scene) -> None:
    """It is neither the first input nor a near one, and the others run."""
    scene.workers("a")
    scene.submit(gpu=[], options=TaskOptions(resources={"GPU": 1.0}))
    scene.submit(x=[], u=["x", "gpu"], v=["x"], w=["v", "u"])
    scene.advance(2.0)
    assert explained(scene, "w") == [
        "'w' is waiting:",
        "it waits for 2 of 2 inputs; what keeps it is 'gpu' (no-worker), 2 steps back",
        "'gpu': it needs GPU=1 of one worker, and none has so much, for 2.0 s now; the most that "
        "one has: GPU=0",
    ]


def test_what_a_limit_keeps_weighs_more_than_what_runs(scene: Scene) -> None:
    scene.workers("a", nthreads=4)
    scene.submit(p=[], q=[], options=TaskOptions(limits={"db": 1}))
    scene.submit(x=[], y=["x", "q"])
    assert explained(scene, "y")[1:3] == [
        "it waits for 2 of 2 inputs; what keeps it is 'q' (queued)",
        "'q': of the tasks that name 'db' no more may run at once: 1 do",
    ]


def test_a_value_that_is_not_there_yet_weighs_more_than_what_runs(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    scene.scatter("v")
    scene.submit(y=["x"], z=["y", "v"])
    lines = explained(scene, "z")
    assert "'v'" in lines[1]


def test_so_many_tasks_are_looked_at_and_no_more_for_all_that_is_asked(scene: Scene) -> None:
    scene.workers("a")
    leaves = [f"x{i}" for i in range(10)]
    scene.submit(**{key: [] for key in leaves}, y=leaves)
    causes = Causes(scene.machine.state, lambda task: False, nlooks_max=4)
    cause, is_all = causes.of(scene.task("y"))
    assert cause is not None
    assert cause.task is scene.task("x0")
    assert not is_all
    assert causes.of(scene.task("y")) == (None, False)


def test_a_queued_task_says_how_many_go_before_it(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(**{f"x{i}": [] for i in range(6)})
    assert explained(scene, "x5") == [
        "'x5' is queued:",
        "the 1 threads of worker a have enough to do",
        "3 queued tasks go before it",
    ]


def test_tasks_that_may_take_much_memory_count_though_they_wait_elsewhere(scene: Scene) -> None:
    """Nothing is known of their kind, so that they are in a queue of their own."""
    scene.join("a", memory_limit=8 << 30)
    scene.submit(**{f"x{i}": [] for i in range(6)})
    assert scene.machine.state.footprints.queues
    assert not scene.machine.state.queue.nentries
    assert explained(scene, "x5")[-1] == "3 queued tasks go before it"


def test_of_tasks_with_a_limit_those_alike_go_before_it(scene: Scene) -> None:
    scene.workers("a", nthreads=4)
    scene.submit(**{f"x{i}": [] for i in range(4)}, options=TaskOptions(limits={"db": 1}))
    assert explained(scene, "x3") == [
        "'x3' is queued:",
        "of the tasks that name 'db' no more may run at once: 1 do",
        "2 queued tasks that need the same go before it",
    ]


def test_turns_of_other_clients_are_told_with_the_weights() -> None:
    scene = Scene(shares={"d*": 3.0})
    scene.workers("a")
    scene.submit(**{f"p{i}": [] for i in range(20)})
    scene.submit(**{f"q{i}": [] for i in range(20)}, client="d")
    [*_, ahead, turns] = explained(scene, "p19")
    assert ahead == "37 queued tasks go before it"
    assert turns == (
        "clients take turns, and of the 37 next before it 20 are other clients'; their weights: "
        "c 1, d 3"
    )


def test_a_client_that_is_alone_hears_of_no_turns(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(**{f"x{i}": [] for i in range(6)})
    assert not [line for line in explained(scene, "x5") if "turns" in line]


def test_without_workers_that_is_the_reason(scene: Scene) -> None:
    scene.submit(x=[])
    assert explained(scene, "x") == ["'x' is queued:", "no worker is there"]


def test_a_restriction_to_nobody_is_told_with_who_is_there(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[], options=TaskOptions(workers=["typo"]))
    scene.advance(2.0)
    assert explained(scene, "x") == [
        "'x' is no-worker:",
        "it may run on typo only, and none of that name or address is there, for 2.0 s now; "
        "there are workers a, b",
    ]


def test_resources_that_nobody_has_are_told_with_the_most_that_there_is(scene: Scene) -> None:
    scene.join("a", resources={"MEM": 1.0})
    scene.submit(x=[], options=TaskOptions(resources={"MEM": 2.0}))
    assert explained(scene, "x")[1].startswith("it needs MEM=2 of one worker, and none has so much")
    assert explained(scene, "x")[1].endswith("the most that one has: MEM=1")


def test_resources_that_others_have_are_counted(scene: Scene) -> None:
    scene.join("a", nthreads=4, resources={"MEM": 3.0})
    scene.submit(x=[], y=[], options=TaskOptions(resources={"MEM": 2.0}))
    assert explained(scene, "y") == [
        "'y' is queued:",
        "it needs MEM=2: 1 of 1 workers have so much, 0 of them have it left now",
    ]


def test_paused_workers_are_a_reason_with_their_numbers(scene: Scene) -> None:
    scene.workers("a")
    scene.from_worker("a", PauseChanged(True, "1.7 GiB of 2 GiB"))
    scene.submit(x=[])
    assert explained(scene, "x")[1] == (
        "1 of 1 workers are paused and begin nothing: worker a (1.7 GiB of 2 GiB)"
    )


def test_a_placed_task_says_what_goes_before_it_and_why_it_is_there(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[], options=TaskOptions(workers=["a"]))
    scene.finish("x", nbytes=10_000_000_000)
    scene.submit(**{f"y{i}": ["x"] for i in range(4)})
    assert explained(scene, "y3") == [
        "'y3' is placed (processing):",
        "it is placed on worker a and not sent: 3 tasks go before it there, of kinds of which "
        "none has ended yet; another worker may take it",
        "placed just now on worker a: it held inputs, and there it was expected to begin first",
    ]


def test_a_sent_task_says_what_it_fetches(scene: Scene) -> None:
    scene.workers("a", "b")
    scene.submit(x=[], options=TaskOptions(workers=["a"]))
    scene.finish("x", nbytes=1 << 20)
    scene.submit(y=["x"], options=TaskOptions(workers=["b"]))
    assert explained(scene, "y")[1:3] == [
        "worker b runs it, or fetches what it needs (no such task has ended yet)",
        "1 inputs come from elsewhere, 1.00 MiB from worker a",
    ]


def test_a_result_says_where_it_is_and_why_it_was_made_there(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x", nbytes=2048)
    scene.advance(3.0)
    assert explained(scene, "x") == [
        "'x' is memory:",
        "its result, 2.00 kiB, is on worker a",
        "placed 3.0 s ago on worker a: of the workers with room, and with what it needs, it had "
        "the least to do",
    ]


def test_what_was_taken_by_another_says_so(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    scene.finish("x")
    scene.submit(**{f"y{i}": ["x"] for i in range(6)})
    scene.join("b")
    assert explained(scene, "y5")[-1] == (
        "taken just now by worker b, which had nothing to do, from worker a, which would have come "
        "to it later"
    )


def test_a_failed_task_names_the_input_that_failed(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], y=["x"])
    scene.fail("x", "ValueError: no")
    assert explained(scene, "y") == ["'y' is erred:", "its input 'x' failed: ValueError: no"]


def test_what_is_not_known_is_said_to_be(scene: Scene) -> None:
    assert explained(scene, "x") == ["'x' is not known: it was never submitted, or is forgotten"]


def test_of_very_many_workers_fewer_tasks_are_explained_at_once(scene: Scene) -> None:
    """Each may look at all workers; 600 of them leave time for 16 tasks."""
    scene.workers(*(f"w{i}" for i in range(600)))
    keys = [f"x{i}" for i in range(100)]
    lines = explained(scene, *keys)
    assert lines[15].startswith("'x15' is not known")
    assert lines[16:] == ["and 84 more"]


def test_an_input_that_is_about_to_be_placed_does_not_wait_for_inputs() -> None:
    scene = Scene(placements_max=2)
    scene.workers("a")
    scene.submit(**{f"x{i}": [] for i in range(6)}, y=["x5"])
    assert explained(scene, "y") == [
        "'y' is waiting:",
        "it waits for 1 of 1 inputs; next is 'x5' (waiting)",
        "'x5': it has all inputs, and is about to be placed",
    ]


def test_so_many_queued_tasks_are_looked_at_in_all_orders_together(scene: Scene) -> None:
    scene.workers("a", nthreads=4)
    scene.submit(**{f"x{i}": [] for i in range(8)}, options=TaskOptions(limits={"db": 1}))
    scene.submit(**{f"y{i}": [] for i in range(8)}, options=TaskOptions(limits={"web": 1}))
    lines = Lines(scene.machine.state, nlooks_max=5)
    assert list(lines.ahead(scene.task("x7"))) == [
        "at least 5 queued tasks that need the same go before it"
    ]
    assert list(lines.ahead(scene.task("y7"))) == [
        "some of up to 7 queued tasks that need the same may go before it"
    ]
    assert list(Lines(scene.machine.state, nlooks_max=7).ahead(scene.task("y7"))) == [
        "6 queued tasks that need the same go before it"
    ]


def test_so_many_placed_tasks_are_looked_at_on_all_workers_together(scene: Scene) -> None:
    for name in ("a", "b"):
        scene.workers(name)
        tasks: dict[str, list[str]] = {f"{name}{i}": [] for i in range(6)}
        scene.submit(**tasks, options=TaskOptions(workers=[name]))
    backlogs = Backlogs(nlooks_max=4)
    on_a, on_b = (backlogs.of(scene.worker(name), lambda task: 100) for name in ("a", "b"))
    work = on_a.before(scene.task("a5"))
    assert (work.ntasks, work.known_us, on_a.is_all) == (4, 400, False)
    assert on_a.nsent_before(scene.task("a1")) == 1
    assert (on_b.before(scene.task("b5")).ntasks, on_b.is_all) == (0, False)


def test_of_very_many_placed_and_sent_tasks_no_more_is_said_than_is_known() -> None:
    """Not all that is placed on the worker was looked at."""
    scene = Scene(placements_max=2 * PLACED_LOOKED_AT)
    scene.workers("a")
    options = TaskOptions(workers=["a"])
    scene.submit(**{f"x{i}": [] for i in range(PLACED_LOOKED_AT + 2)}, options=options)
    lines = explained(scene, f"x{PLACED_LOOKED_AT + 1}", "x0")
    assert lines[1].startswith(
        f"it is placed on worker a and not sent: at least {PLACED_LOOKED_AT} tasks go before it "
    )
    assert lines[4] == "worker a has it, and may run others first"


def test_what_is_queued_while_all_are_paused_weighs_more_than_what_runs(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[])
    scene.from_worker("a", PauseChanged(True, "1.7 GiB of 2 GiB"))
    scene.submit(q=[], y=["x", "q"])
    assert explained(scene, "y")[1:3] == [
        "it waits for 2 of 2 inputs; what keeps it is 'q' (queued)",
        "'q': 1 of 1 workers are paused and begin nothing: worker a (1.7 GiB of 2 GiB)",
    ]


def test_an_output_of_a_shuffle_says_how_many_input_partitions_are_missing(scene: Scene) -> None:
    """First as they were never there; then as a worker was lost with one of them."""
    scene.workers("a", "b")
    submit_shuffle(scene, ninputs=3, noutputs=6)
    cut(scene, "t0", nbytes=(1,) * 6)
    assert "the barrier of shuffle 's' waits for 2 of 3 input partitions" in explained(scene, "u0")
    cut(scene, "t1", nbytes=(1,) * 6)
    cut(scene, "t2", nbytes=(1,) * 6)
    scene.lose("b", expected=True)
    assert (
        "the barrier of shuffle 's' waits for 1 of 3 input partitions; 1 is computed again, as "
        "shards went with worker b"
    ) in explained(scene, "u0")


def test_where_nobody_is_there_clusters_that_adapt_say_what_they_do(scene: Scene) -> None:
    """Until they go."""
    scene.submit(x=[])
    scene.call(WorkersDeserved, "Cluster-tide", said="target 2, have 0, waiting for 2")
    scene.call(WorkersDeserved, "silent")
    assert explained(scene, "x")[1:3] == [
        "no worker is there",
        "Cluster-tide adapts: target 2, have 0, waiting for 2",
    ]
    scene.lose_client("Cluster-tide")
    assert "adapts" not in " ".join(explained(scene, "x"))
    assert not scene.machine.state.adapting


def test_a_result_that_was_lost_says_with_whom_and_that_it_is_computed_again(scene: Scene) -> None:
    """W08.  Both x and y go with worker a, which alone had them."""
    scene.workers("a")
    scene.submit(x=[], y=[])
    scene.finish("x")
    scene.finish("y")
    scene.submit(z=["x"])
    scene.workers("b")
    scene.lose("a")
    scene.advance(2.0)
    assert explained(scene, "z")[1:5] == [
        "it waits for 1 of 1 inputs; next is 'x' (processing on worker b)",
        "'x': worker b runs it, or fetches what it needs; such take 1.0 s",
        "'x': its result was lost with worker a 2.0 s ago, and is computed again; 1 others that "
        "went with it are not back yet",
        "worker a was lost 2.0 s ago, as it had this: it is run again",
    ]
    scene.finish("x", on="b")
    assert "lost" not in "".join(explained(scene, "x"))


def test_a_retry_says_which_one_it_is_and_what_was_raised(scene: Scene) -> None:
    """W09."""
    scene.workers("a")
    scene.submit(x=[], options=TaskOptions(retries=3))
    scene.fail("x", "ValueError: no\nmore of it")
    scene.fail("x", "KeyError: 'k'")
    scene.advance(1.0)
    lines = explained(scene, "x")
    assert "this is retry 2 of 3: 1.0 s ago it raised on worker a: KeyError: 'k'" in lines


def test_what_is_run_again_is_forgotten_once_it_has_ended(scene: Scene) -> None:
    scene.workers("a")
    scene.submit(x=[], y=[], z=[], options=TaskOptions(retries=1))
    scene.fail("x")
    scene.finish("x")
    scene.fail("y")
    scene.fail("y")
    scene.fail("z")
    scene.release("z")
    assert not scene.machine.state.reruns


def test_a_task_that_waits_for_a_lock_says_who_holds_it(scene: Scene) -> None:
    """W10.  It weighs more than what only takes its time."""
    scene.workers("a", nthreads=2)
    scene.submit(h=[], w=[], x=["w"])
    scene.call(AcquireLease, name="gate", claim=1, by="h")
    scene.advance(3.0)
    scene.call(AcquireLease, name="gate", claim=2, by="w")
    scene.advance(2.0)
    line = "it has waited 2.0 s for the lock 'gate', held by 'h' on worker a for 5.0 s"
    assert line in explained(scene, "w")
    assert explained(scene, "x")[1].endswith("what keeps it is 'w' (processing on worker a)")


def test_a_task_that_waits_for_other_things_by_name_says_for_which(scene: Scene) -> None:
    scene.workers("a", nthreads=5)
    scene.submit(s=[], e=[], q=[], v=[], j=[])
    scene.call(AcquireLease, name="few", claim=1, leases_max=2)
    scene.call(AcquireLease, name="few", claim=2, leases_max=2)
    scene.call(AcquireLease, name="few", claim=3, leases_max=2, by="s")
    scene.call(AwaitEvent, name="go", claim=4, by="e")
    scene.call(TakeFromQueue, name="line", claim=5, by="q")
    scene.call(GetVariable, name="value", claim=6, by="v")
    scene.call(AcquireJointly, names=["m", "n"], claim=7, count=2)
    scene.call(AcquireJointly, names=["n"], claim=8, count=1, by="j")
    assert explained(scene, "s")[2] == (
        "it waits for one of the 2 leases of the semaphore 'few', held by c, c"
    )
    assert explained(scene, "e")[2] == "it waits for the event 'go'"
    assert explained(scene, "q")[2] == (
        "it waits for values in the queue 'line', which has 0 of the 1 that it takes"
    )
    assert explained(scene, "v")[2] == "it waits for a value of the variable 'value'"
    assert explained(scene, "j")[2] == "it waits for 1 of the locks 'n' together, held by c"


def test_a_run_that_takes_far_longer_than_usual_says_so(scene: Scene) -> None:
    """W11.  Its worker tells of what was being executed at an earlier heartbeat already."""
    scene.workers("a")
    scene.submit(x0=[], x1=[])
    scene.finish("x0", seconds=2.0)
    _, _, run = scene.run("x1")
    scene.from_worker("a", WorkerHeartbeat(runs=[run], run_seconds=[5.0]))
    assert explained(scene, "x1")[1] == (
        "worker a has been executing it for 5.0 s or more; such take 2.0 s"
    )
    scene.advance(20.0)
    assert explained(scene, "x1")[1] == (
        "worker a has been executing it for 25.0 s or more; such take 2.0 s: far less. "
        "`client.call_stack` shows where it is"
    )
    scene.heartbeat("a")
    assert not scene.worker("a").executing


def test_a_scheduler_that_is_late_with_what_is_due_says_so(scene: Scene) -> None:
    """W13."""
    scene.workers("a")
    scene.submit(x=[])
    due = scene.machine.wake_at
    assert due is not None
    scene.now = due - 1.0
    scene.heartbeat("a")
    scene.now = due + 0.5
    scene.machine.wake(scene.now)
    line = "the scheduler is busy: what was due lately had to wait 500 ms"
    assert line in explained(scene, "x")
    scene.now += 11.0
    assert line not in explained(scene, "x")
