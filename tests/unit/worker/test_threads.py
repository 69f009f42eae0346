"""Whatever a task does, its run ends, the thread lives, and nothing of it stays behind."""

import asyncio
import ctypes
import gc
import os
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any

import msgspec
import pytest
from dask._task_spec import DataNode, Task, TaskRef

from shoal.ids import CodeId, Key, RunId, TaskId
from shoal.protocol.exceptions import RemoteError, from_failure
from shoal.protocol.messages import RunTask
from shoal.protocol.payload import InputRef, dump_call, dump_function, load
from shoal.worker.model.entities import FAILED, FINISHED, Run, RunEnded
from shoal.worker.shell.context import get_worker
from shoal.worker.shell.execution import Inline, Job
from shoal.worker.shell.functions import Code
from shoal.worker.shell.threads import RunThreads
from tests.unit.worker.fake_scheduler import run

Ended = tuple[RunEnded, object]


class Bench:
    """Threads, and whatever they report."""

    address = "tcp://me:1"
    name = "bench"
    scheduler_address = ""
    local_directory = ""
    data: Mapping[Any, object] = {}

    def __init__(self, nthreads: int = 1) -> None:
        self.nthreads = nthreads
        self.ended: list[Ended] = []
        self.nreports = 0
        self._changed = asyncio.Event()
        self.threads = RunThreads(self, nthreads, self._on_ended)

    def _on_ended(self, ended: list[Ended]) -> None:
        self.ended += ended
        self.nreports += 1
        self._changed.set()

    def job(
        self, function: object, *args: object, inputs: tuple[object, ...] = (), number: int = 1
    ) -> Job:
        message = RunTask(
            TaskId(number),
            RunId(number),
            Key(f"key-{number}"),
            CodeId(1),
            dump_call(args, {}),
            0.0,
            number,
        )
        code = function if isinstance(function, Code) else Code(dump_function(function))
        has_inline = any(isinstance(item, Inline) for item in inputs)
        return Job(Run(message), code, list(inputs), has_inline)

    async def reported(self, nruns: int = 1) -> list[Ended]:
        while len(self.ended) < nruns:
            self._changed.clear()
            await self._changed.wait()
        ended, self.ended = self.ended, []
        return ended

    async def outcome(self, function: object, *args: object, **inputs: Any) -> Ended:
        self.threads.start([self.job(function, *args, **inputs)])
        return (await self.reported())[0]


def with_bench(scene: Callable[[Bench], Awaitable[None]], nthreads: int = 1) -> None:
    async def work() -> None:
        bench = Bench(nthreads)
        try:
            await scene(bench)
        finally:
            assert await bench.threads.close(5.0) == 0

    run(work())


def add(x: Any, y: Any) -> Any:
    return x + y


def raise_it(error: BaseException) -> None:
    raise error


def recurse() -> None:
    recurse()


def unpicklable_error() -> None:
    error = ValueError("with a lock")
    error.lock = threading.Lock()  # type: ignore[attr-defined]
    raise error


class Liar:
    """Says that it is of a negative size."""

    def __sizeof__(self) -> int:
        return -5


class Bomb:
    """Raises whenever it is pickled or measured."""

    def __sizeof__(self) -> int:
        raise RuntimeError("no size")

    def __reduce__(self) -> Any:
        raise RuntimeError("no pickle")


def test_threads_that_the_system_does_not_give_are_told_and_those_that_it_gave_end() -> None:
    """Each wants so much room for its stack that two don't fit into what the process may have."""
    script = """
import asyncio, resource, threading, psutil
from tests.unit.worker.test_threads import Bench
from shoal.worker.shell.errors import NoThreads

async def work():
    threading.stack_size(1 << 30)
    now = psutil.Process().memory_info().vms
    resource.setrlimit(resource.RLIMIT_AS, (now + (5 << 29), -1))
    before = threading.active_count()
    try:
        Bench(50)
    except NoThreads as error:
        assert 0 < error.nstarted < 50, error.nstarted
        print(error)
    assert threading.active_count() == before

asyncio.run(work())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("A worker was to have nthreads=50, and the system gave it only ")


def test_a_run_ends_with_its_value_its_size_and_its_time() -> None:
    """Small values come pickled as well, for the message."""

    async def scene(bench: Bench) -> None:
        end, value = await bench.outcome(add, InputRef(0), InputRef(1), inputs=(5, 7))
        assert (end.how, value) == (FINISHED, 12)
        assert load(end.value or b"") == 12
        assert end.nbytes > 0
        assert end.seconds >= 0
        end, value = await bench.outcome(add, [0], [1] * 2000)
        assert end.value is None
        assert end.kind == "builtins.list"
        inline = Inline(dump_function("inline"))
        end, value = await bench.outcome(add, InputRef(0), "!", inputs=(inline,))
        assert value == "inline!"

    with_bench(scene)


@pytest.mark.parametrize(
    "error",
    [SystemExit(1), KeyboardInterrupt(), GeneratorExit(), MemoryError(), StopIteration()],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_task_raises_the_thread_goes_on(error: BaseException) -> None:
    """Those that end a thread or a loop elsewhere, in functions and in coroutines."""

    async def later() -> None:
        await asyncio.sleep(0)
        raise error

    async def scene(bench: Bench) -> None:
        for function, args in ((raise_it, (error,)), (later, ())):
            end, value = await bench.outcome(function, *args)
            assert (end.how, value) == (FAILED, None)
            assert end.failure is not None
            arrived = from_failure(end.failure)
            if function is raise_it or not isinstance(error, StopIteration):
                assert type(arrived) is type(error)
            assert end.failure.origin == "key-1"
        assert (await bench.outcome(add, 1, 1))[1] == 2

    with_bench(scene)


def test_endless_recursion_and_unpicklable_exceptions_are_failures() -> None:
    """Told as well as can be."""

    async def scene(bench: Bench) -> None:
        end, _ = await bench.outcome(recurse)
        assert end.failure is not None
        assert isinstance(from_failure(end.failure), RecursionError)
        end, _ = await bench.outcome(unpicklable_error)
        assert end.failure is not None
        assert "with a lock" in end.failure.text
        arrived = from_failure(end.failure)
        assert type(arrived) is ValueError
        assert any("attribute 'lock'" in note for note in arrived.__notes__)

    with_bench(scene)


@pytest.mark.parametrize("kind", [Liar, Bomb])
def test_a_result_that_can_not_be_measured_or_pickled_is_a_result(kind: type) -> None:
    """It can still be used on this worker."""

    async def scene(bench: Bench) -> None:
        end, value = await bench.outcome(kind)
        assert end.how == FINISHED
        assert type(value) is kind
        assert end.nbytes > 0

    with_bench(scene)


def test_a_node_of_a_bundle_is_called_with_its_dependencies_by_key() -> None:
    """The argument is its place in the bundle; keys are the users' own."""
    bundle = [
        (Task("a", add, 1, 2), ()),
        (Task("b", add, TaskRef("a"), TaskRef(("x", 0))), ("a", ("x", 0))),
        (DataNode("c", 5), ()),
    ]
    code = Code(dump_function(bundle))

    async def scene(bench: Bench) -> None:
        for index, inputs, expected in ((0, (), 3), (1, (3, 10), 13), (2, (), 5)):
            job = bench.job(code, inputs=inputs)
            message = msgspec.structs.replace(job.run.message, argument=index)
            bench.threads.start([Job(Run(message), code, list(inputs), False)])
            assert (await bench.reported())[0][1] == expected

    with_bench(scene)


def test_code_or_arguments_that_can_not_be_loaded_fail_the_run() -> None:
    """A module that is missing here, rubbish, an input that does not load."""

    async def scene(bench: Bench) -> None:
        end, _ = await bench.outcome(Code(b"cno_such_module\nthing\n."))
        assert end.failure is not None
        assert isinstance(from_failure(end.failure), ModuleNotFoundError)
        end, _ = await bench.outcome(add, InputRef(0), 1, inputs=(Inline(b"rubbish"),))
        assert end.how == FAILED

    with_bench(scene)


def test_a_coroutine_runs_on_the_loop_and_knows_its_worker() -> None:
    """The thread waits for it, so that the number of threads still is the limit."""

    async def scene(bench: Bench) -> None:
        ident = threading.get_ident()

        async def where() -> tuple[int, object]:
            await asyncio.sleep(0)
            return threading.get_ident(), get_worker().name

        assert (await bench.outcome(where))[1] == (ident, "bench")

    with_bench(scene)


SETTING: ContextVar[str] = ContextVar("SETTING", default="unset")


def setting() -> str:
    found = SETTING.get()
    SETTING.set("set by a task")
    return found


def test_what_a_task_sets_in_its_context_is_gone_after_it() -> None:
    """The next one in the same thread doesn't see it."""

    async def scene(bench: Bench) -> None:
        assert (await bench.outcome(setting))[1] == "unset"
        assert (await bench.outcome(setting))[1] == "unset"

    with_bench(scene)


def test_many_runs_are_reported_together() -> None:
    """The loop is woken for batches and not for each of them."""

    async def scene(bench: Bench) -> None:
        code = Code(dump_function(add))
        jobs = [bench.job(code, number, 1, number=number) for number in range(2000)]
        bench.threads.start(jobs)
        ended = await bench.reported(2000)
        assert [value for _, value in ended] == list(range(1, 2001))
        assert bench.nreports < 1000

    with_bench(scene)


def test_a_withdrawn_job_is_not_run_and_one_that_begun_is_not_withdrawn() -> None:
    """Whoever takes it first has it."""

    async def scene(bench: Bench) -> None:
        begun, go = threading.Event(), threading.Event()
        EVENTS[:] = [begun, go]
        first, second = bench.job(wait), bench.job(add, 1, 2, number=2)
        bench.threads.start([first, second])
        await asyncio.to_thread(begun.wait)
        assert bench.threads.executing() == [first.run]
        assert bench.threads.withdraw([first.run, second.run]) == [second.run]
        go.set()
        assert [end.run for end, _ in await bench.reported()] == [first.run]

    with_bench(scene)


EVENTS: list[threading.Event] = []


def wait() -> None:
    EVENTS[0].set()
    EVENTS[1].wait()


class Big:
    """Something whose life can be watched."""


def make_big() -> Big:
    big = Big()
    WATCHED.append(weakref.ref(big))
    return big


def fail_with_big() -> None:
    big = make_big()
    raise ValueError(len(repr(big)))


WATCHED: list[weakref.ref[Big]] = []


def test_nothing_of_a_run_stays_behind() -> None:
    """Neither its value nor what its exception's frames held, without any collection."""

    async def scene(bench: Bench) -> None:
        WATCHED.clear()
        gc.disable()
        try:
            ended = await bench.outcome(make_big)
            assert isinstance(ended[1], Big)
            del ended
            await bench.outcome(fail_with_big)
            await bench.outcome(add, 1, 1)
            assert [watched() for watched in WATCHED] == [None, None]
        finally:
            gc.enable()

    with_bench(scene)


def test_two_threads_run_two_tasks_at_once() -> None:
    """Each waits for the other."""

    async def scene(bench: Bench) -> None:
        BARRIER[:] = [threading.Barrier(2)]
        bench.threads.start([bench.job(meet, number=1), bench.job(meet, number=2)])
        ended = await bench.reported(2)
        assert sorted(value for _, value in ended) == [0, 1]  # type: ignore[type-var]

    with_bench(scene, nthreads=2)


BARRIER: list[threading.Barrier] = []


def meet() -> int:
    return BARRIER[0].wait(10)


def test_close_cancels_coroutines_and_drops_what_has_not_begun() -> None:
    """A coroutine that would never end does not keep its thread."""

    async def scene() -> None:
        bench = Bench()
        begun = asyncio.Event()

        async def forever() -> None:
            begun.set()
            await asyncio.Event().wait()

        FOREVER[:] = [forever]
        bench.threads.start([bench.job(call_forever), bench.job(add, 1, 1, number=2)])
        await begun.wait()
        assert await bench.threads.close(5.0) == 0
        assert bench.ended == []

    run(scene())


FOREVER: list[Callable[[], Awaitable[None]]] = []


def call_forever() -> Awaitable[None]:
    return FOREVER[0]()


def test_an_exception_thrown_into_a_thread_between_two_runs_loses_none() -> None:
    """A watchdog that was set for a run strikes when that is over."""
    throw = ctypes.pythonapi.PyThreadState_SetAsyncExc

    async def scene(bench: Bench) -> None:
        for _ in range(20):
            _, thread = await bench.outcome(threading.get_ident)
            assert throw(ctypes.c_ulong(thread), ctypes.py_object(SystemExit)) == 1
            bench.threads.start([bench.job(add, 1, number, number=number) for number in range(3)])
            ended = await bench.reported(3)
            assert sorted(value for _, value in ended) == [1, 2, 3]  # type: ignore[type-var]
            assert bench.threads.nexecuting == 0

    with_bench(scene)


def test_a_fork_that_comes_back_from_a_task_ends_there() -> None:
    """Else there were two workers, and one of them an orphan."""

    async def scene(bench: Bench) -> None:
        end, child = await bench.outcome(fork)
        assert end.how == FINISHED
        assert isinstance(child, int)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0

    with_bench(scene)


def fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn, rightly
        return os.fork()


def test_a_task_can_raise_the_recursion_limit_and_not_lower_it_for_others() -> None:
    """It is one for all threads, and the loop needs what it was given."""
    limit = sys.getrecursionlimit()

    async def scene(bench: Bench) -> None:
        await bench.outcome(sys.setrecursionlimit, limit - 1)
        assert sys.getrecursionlimit() == limit
        await bench.outcome(sys.setrecursionlimit, limit + 1)
        assert sys.getrecursionlimit() == limit + 1

    try:
        with_bench(scene)
    finally:
        sys.setrecursionlimit(limit)


class Hidden(BaseException):
    """Raises whatever it is asked for."""

    def __getattribute__(self, name: str) -> Any:
        raise KeyboardInterrupt

    def __setattr__(self, name: str, value: object) -> None:
        raise KeyboardInterrupt


def raise_hidden() -> None:
    raise Hidden


def test_an_exception_that_can_not_be_looked_at_is_a_failure() -> None:
    """The thread lives, and the type is told."""

    async def scene(bench: Bench) -> None:
        end, _ = await bench.outcome(raise_hidden)
        assert end.failure is not None
        assert end.failure.text.startswith("Hidden")
        assert isinstance(from_failure(end.failure), RemoteError)
        assert (await bench.outcome(add, 1, 2))[1] == 3

    with_bench(scene)
