"""A worker and a scheduler that says what it is told: runs, transfers, ends."""

import asyncio
import logging
import threading
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest

from shoal.comms import AuthenticationError, ConnectError
from shoal.ids import CodeId, Key, RunId, TaskId
from shoal.observe.status import Status
from shoal.protocol.answers import Answer
from shoal.protocol.directions import answered
from shoal.protocol.exceptions import from_failure
from shoal.protocol.messages import (
    AcquireReplicas,
    FreeReplicas,
    Input,
    InputsUnavailable,
    RecallRuns,
    ReplicasAdded,
    RunReturned,
    RunTask,
    Shutdown,
    TaskFailed,
    TaskFinished,
    WorkerLeaving,
)
from shoal.protocol.payload import InputRef, dump_call, dump_function, load
from shoal.protocol.running import Outcome, RunFunction
from shoal.worker.shell.context import get_worker
from shoal.worker.shell.errors import SchedulerSilent, UnknownCode, WorkerRefused
from tests.unit.worker.fake_scheduler import FakeScheduler, run, worker_of
from tests.until import until

ADDRESSES = ["inproc://", "tcp://127.0.0.1:0", "unix://@shoal-test-worker"]


def add(x: Any, y: Any) -> Any:
    return x + y


def total(x: Any) -> float:
    return float(x.sum())


def with_value(finished: TaskFinished) -> object:
    assert finished.value is not None
    return load(finished.value)


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_run_is_answered_and_its_result_is_kept_until_it_is_freed(address: str) -> None:
    """A worker adds two numbers, a second run uses the result, then it is freed."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start(address)
        async with worker_of(scheduler) as worker:
            first = scheduler.run(worker, add, 1, 2, task=1)
            finished = await scheduler.hear(worker, TaskFinished)
            assert (finished.task, finished.run) == (1, first.run)
            assert with_value(finished) == 3
            assert dict(worker.data) == {"key-1": 3}
            scheduler.run(worker, add, InputRef(0), 10, task=2, inputs=[TaskId(1)])
            assert with_value(await scheduler.hear(worker, TaskFinished)) == 13
            scheduler.say(worker, FreeReplicas([TaskId(1)]))
            scheduler.run(worker, add, InputRef(0), 1, task=3, inputs=[TaskId(2)])
            assert with_value(await scheduler.hear(worker, TaskFinished)) == 14
            assert sorted(map(str, worker.data)) == ["key-2", "key-3"]
        assert worker.status is Status.closed
        assert isinstance(await scheduler.hear(worker, WorkerLeaving), WorkerLeaving)
        await scheduler.close()

    run(scene())


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("nbytes", [80, 80_000, 8_000_000])
def test_inputs_are_fetched_from_a_peer_and_reported(address: str, nbytes: int) -> None:
    """a makes an array, b sums it: b fetches it, says so, and the array is intact."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start(address)
        async with worker_of(scheduler) as a, worker_of(scheduler) as b:
            scheduler.run(a, np.ones, nbytes // 8, task=1)
            await scheduler.hear(a, TaskFinished)
            item = Input(TaskId(1), Key("key-1"), nbytes, [a.address])
            scheduler.run(b, total, InputRef(0), task=2, inputs=[item])
            added = await scheduler.hear(b, ReplicasAdded)
            assert added.tasks == [1]
            assert with_value(await scheduler.hear(b, TaskFinished)) == nbytes / 8
            is_same = b.data["key-1"] is a.data["key-1"]
            assert is_same == (address == "inproc://")
        await scheduler.close()

    run(scene())


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_value_that_cannot_be_pickled_fails_its_dependent_with_the_cause(address: str) -> None:
    """a makes a lock, b needs it; within one process it is simply handed over."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start(address)
        async with worker_of(scheduler) as a, worker_of(scheduler) as b:
            scheduler.run(a, threading.Lock, task=1)
            finished = await scheduler.hear(a, TaskFinished)
            assert finished.value is None
            assert finished.kind == "_thread.lock"
            item = Input(TaskId(1), Key("key-1"), 8, [a.address])
            scheduler.run(b, type, InputRef(0), task=2, inputs=[item])
            if address == "inproc://":
                await scheduler.hear(b, ReplicasAdded)
                await scheduler.hear(b, TaskFinished)
            else:
                failed = await scheduler.hear(b, TaskFailed)
                error = from_failure(failed.failure)
                assert isinstance(error, TypeError)
                assert "lock" in str(error)
                assert failed.failure.worker == a.address
        await scheduler.close()

    run(scene())


def test_an_input_that_nobody_has_ends_the_run_unstarted() -> None:
    """One holder lacks it, the other is not there."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start("tcp://127.0.0.1:0")
        async with worker_of(scheduler) as a, worker_of(scheduler) as b:
            gone = "unix://@shoal-test-nobody"
            item = Input(TaskId(7), Key("x"), 8, [a.address, gone])
            message = scheduler.run(b, total, InputRef(0), task=2, inputs=[item])
            answer = await scheduler.hear(b, InputsUnavailable)
            assert answer == InputsUnavailable(TaskId(2), message.run, [TaskId(7)], [gone])
        await scheduler.close()

    run(scene())


def test_a_run_that_raises_fails_with_its_exception() -> None:
    """Whatever it raises: the thread lives and runs the next one."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        async with worker_of(scheduler) as worker:
            scheduler.run(worker, add, 1, "x")
            failed = await scheduler.hear(worker, TaskFailed)
            error = from_failure(failed.failure)
            assert isinstance(error, TypeError)
            assert failed.failure.origin == "key-1"
            assert error.__traceback__ is not None
            assert error.__traceback__.tb_frame.f_code.co_name == "add"
            scheduler.run(worker, add, 1, 1)
            await scheduler.hear(worker, TaskFinished)
        await scheduler.close()

    run(scene())


def test_a_recalled_run_that_has_not_begun_never_runs() -> None:
    """The only thread is busy; the second run is given back at once, the first one ends."""

    async def scene() -> None:
        begun, go = threading.Event(), threading.Event()
        BLOCK[:] = [begun, go]
        scheduler = await FakeScheduler().start()
        async with worker_of(scheduler) as worker:
            first = scheduler.run(worker, block, task=1)
            await asyncio.to_thread(begun.wait)
            second = scheduler.run(worker, add, 1, 2, task=2)
            runs = [(message.task, message.run) for message in (first, second)]
            scheduler.say(worker, RecallRuns(runs))
            assert (await scheduler.hear(worker, RunReturned)).task == 2
            go.set()
            assert (await scheduler.hear(worker, TaskFinished)).task == 1
        await scheduler.close()

    run(scene())


BLOCK: list[threading.Event] = []


def block() -> None:
    BLOCK[0].set()
    BLOCK[1].wait()


def test_a_copy_is_acquired_when_the_scheduler_asks() -> None:
    """Both ways: a small value that comes along, and one to be fetched."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        async with worker_of(scheduler) as a, worker_of(scheduler) as b:
            scheduler.run(a, np.arange, 10, task=1)
            await scheduler.hear(a, TaskFinished)
            inline = Input(TaskId(2), Key("small"), 8, [], dump_function("small value"))
            fetched = Input(TaskId(1), Key("key-1"), 80, [a.address])
            scheduler.say(b, AcquireReplicas([inline, fetched]))
            assert (await scheduler.hear(b, ReplicasAdded)).tasks == [2]
            assert (await scheduler.hear(b, ReplicasAdded)).tasks == [1]
            assert b.data["small"] == "small value"
        await scheduler.close()

    run(scene())


async def name_of(dask_worker: Any) -> object:
    return dask_worker.name


def worker_name() -> object:
    return get_worker().name


async def worker_name_later() -> object:
    await asyncio.sleep(0)
    return get_worker().name


def test_a_function_beside_the_tasks_gets_its_worker() -> None:
    """RunFunction: coroutines are awaited, failures come back."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        async with worker_of(scheduler, name="alice") as worker:

            async def outcome(function: object, *args: object) -> Outcome:
                call = RunFunction(1, dump_function((function, args, {})))
                scheduler.say(worker, call)
                found = answered(RunFunction, await scheduler.hear(worker, Answer))
                assert isinstance(found, Outcome)
                return found

            assert load((await outcome(name_of)).value) == "alice"
            assert load((await outcome(worker_name)).value) == "alice"
            failure = (await outcome(add, 1, "x")).failure
            assert failure is not None
            assert isinstance(from_failure(failure), TypeError)
        await scheduler.close()

    run(scene())


def test_code_in_a_task_knows_its_worker() -> None:
    """Functions in threads and coroutines on the loop, several workers in one process."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        async with worker_of(scheduler, name="a"), worker_of(scheduler, name="b") as b:
            scheduler.run(b, worker_name)
            assert with_value(await scheduler.hear(b, TaskFinished)) == "b"
            scheduler.run(b, worker_name_later)
            assert with_value(await scheduler.hear(b, TaskFinished)) == "b"
            with pytest.raises(ValueError, match="2 workers run in this process"):
                get_worker()
        with pytest.raises(ValueError, match="no worker runs"):
            get_worker()
        await scheduler.close()

    run(scene())


def test_an_unknown_function_fails_the_run() -> None:
    """The scheduler never sent it, or let it be forgotten."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        async with worker_of(scheduler) as worker:
            message = RunTask(TaskId(1), RunId(1), Key("x"), CodeId(99), dump_call((), {}), 0.0, 1)
            scheduler.say(worker, message)
            failed = await scheduler.hear(worker, TaskFailed)
            assert isinstance(from_failure(failed.failure), UnknownCode)
        await scheduler.close()

    run(scene())


def test_a_worker_that_is_sent_away_closes() -> None:
    """Shutdown after the welcome ends it; before, it is a refusal that names the reason."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start("tcp://127.0.0.1:0")
        worker = await worker_of(scheduler)
        scheduler.say(worker, Shutdown("enough"))
        await worker.finished()
        assert worker.status is Status.closed

        scheduler.welcomes = False
        refused = worker_of(scheduler)
        starting = asyncio.ensure_future(refused.start())
        registration = await scheduler.registered()
        scheduler.connections[registration.address].send([Shutdown("no room.")])
        with pytest.raises(WorkerRefused, match="did not accept this worker: no room"):
            await starting
        assert refused.status is Status.failed
        await scheduler.close()

    run(scene())


def test_what_goes_wrong_at_the_start_is_said_and_leaves_nothing_behind() -> None:
    """No scheduler, another token, a scheduler that says nothing."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start("tcp://127.0.0.1:0")
        with pytest.raises(AuthenticationError):
            await worker_of(scheduler, token=b"another")
        scheduler.welcomes = False
        with pytest.raises(SchedulerSilent, match="did not answer"):
            await worker_of(scheduler, death_timeout=0.1)
        await scheduler.close()
        with pytest.raises(ConnectError):
            await worker_of(scheduler)

    run(scene())


def test_a_worker_whose_scheduler_is_gone_closes() -> None:
    """It has nobody to work for, and was not told to wait."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start("tcp://127.0.0.1:0")
        worker = await worker_of(scheduler)
        await scheduler.close()
        await worker.finished()
        assert worker.status is Status.closed

    run(scene())


def test_a_worker_that_reconnects_tells_what_it_holds() -> None:
    """Under its number, where that means something; in another epoch under one of its own."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start("tcp://127.0.0.1:0")
        async with worker_of(scheduler, reconnect_seconds=10) as worker:
            scheduler.run(worker, add, 1, 2)
            await scheduler.hear(worker, TaskFinished)
            for epoch, is_own in ((1, False), (2, False), (2, True)):
                scheduler.epoch = epoch
                scheduler.connections[worker.address].close()
                registration = await scheduler.registered()
                [item] = registration.inventory
                assert (item.key, item.task < 0) == ("key-1", is_own)
                scheduler.run(worker, add, 1, 2, task=5)
                await scheduler.hear(worker, TaskFinished)
                scheduler.say(worker, FreeReplicas([TaskId(5)]))
        await scheduler.close()

    run(scene())


def test_close_leaves_a_stuck_task_behind_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """A thread that doesn't come back costs the time given, one line, and no hang."""

    async def scene() -> None:
        begun, go = threading.Event(), threading.Event()
        BLOCK[:] = [begun, go]
        scheduler = await FakeScheduler().start()
        worker = await worker_of(scheduler)
        scheduler.run(worker, block)
        await asyncio.to_thread(begun.wait)
        with caplog.at_level(logging.WARNING, "shoal.worker"):
            await worker.close(timeout_seconds=0.05)
        assert "1 of 1 threads still run tasks (key-1)" in caplog.text
        go.set()
        await scheduler.close()

    run(scene())


def test_what_it_does_can_be_looked_at() -> None:
    """One task executes, one is ready behind it, one result is held; the story is told."""

    async def scene() -> None:
        begun, go = threading.Event(), threading.Event()
        BLOCK[:] = [begun, go]
        scheduler = await FakeScheduler().start()
        async with worker_of(scheduler, name="alice") as worker:
            scheduler.run(worker, add, 1, 2, task=1)
            await scheduler.hear(worker, TaskFinished)
            scheduler.run(worker, block, task=2)
            scheduler.run(worker, add, 1, 2, task=3)
            await asyncio.to_thread(begun.wait)
            await until(lambda: len(worker.state.tasks) == 3)
            states = {key: view.state for key, view in worker.state.tasks.items()}
            assert states == {"key-1": "memory", "key-2": "executing", "key-3": "ready"}
            assert [what for _, what, _ in worker.story("key-1")] == [
                "handed to the threads",
                "finished",
            ]
            shown = worker.state.story("key-1")
            assert [entry[1] for entry in shown] == ["handed to the threads", "finished"]
            assert worker.state.story(shown[0][3]) == shown
            assert worker.scheduler.address == worker.scheduler_address == scheduler.address
            assert "running, 1 threads, 1 results" in repr(worker)
            go.set()
            await scheduler.hear(worker, TaskFinished)
        await scheduler.close()

    run(scene())


def test_files_go_into_a_directory_that_is_removed(tmp_path: Path) -> None:
    """Unless the user named one."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        with dask.config.set({"temporary-directory": str(tmp_path)}):
            async with worker_of(scheduler) as worker:
                made = Path(worker.local_directory)
                assert tmp_path in made.parents
                (made / "file").write_text("left behind")
            assert not made.exists()
        async with worker_of(scheduler, local_directory=str(tmp_path)) as worker:
            assert worker.local_directory == str(tmp_path)
        assert tmp_path.exists()
        await scheduler.close()

    run(scene())


def test_a_machine_that_raises_closes_the_worker_with_its_story(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The scheduler says what no scheduler says; within a process nothing decodes it."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        worker = await worker_of(scheduler)
        scheduler.run(worker, add, 1, 2)
        await scheduler.hear(worker, TaskFinished)
        with caplog.at_level(logging.ERROR, "shoal.worker"):
            scheduler.say(worker, WorkerLeaving("not for a worker"))
            await worker.finished()
        assert "because of an error in shoal" in caplog.text
        assert "handed to the threads" in caplog.text
        assert (await scheduler.hear(worker, WorkerLeaving)).reason.startswith("internal error")
        await scheduler.close()

    run(scene())


def test_a_worker_that_was_never_started_can_be_closed() -> None:
    """And says so when it is asked for what it does not have yet."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        worker = worker_of(scheduler)
        with pytest.raises(RuntimeError, match="was not started"):
            _ = worker.state
        await worker.close()
        assert worker.status is Status.closed
        await worker.close()
        with pytest.raises(ValueError, match="at least one thread"):
            worker_of(scheduler, nthreads=0)
        await scheduler.close()

    run(scene())
