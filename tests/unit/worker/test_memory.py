"""A worker's eye on its memory: what it finds, what it has done, and what it tells."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, cast

import pytest

from shoal import config
from shoal.ids import CodeId, Epoch, Key, RunId, TaskId
from shoal.protocol.memory import RunsGauged, WantsReplacement
from shoal.protocol.messages import RunTask, TaskFinished, WorkerWelcome
from shoal.storage.results import Results
from shoal.worker.machine.effects import Send, StartRuns, Write
from shoal.worker.machine.step import WorkerMachine
from shoal.worker.model.entities import (
    FINISHED,
    WITHDRAWN,
    MachineSettings,
    Replica,
    Residence,
    Run,
    RunEnded,
)
from shoal.worker.policies.looking import CALM_FACTOR, CALM_LOOKS, IDLE_FACTOR
from shoal.worker.shell.memory import MemoryWatch
from shoal.worker.shell.readings import ProcessMemory

MIB = 1 << 20
LIMIT = 100 * MIB
INTERVAL_SECONDS = 0.01


class FakeProcess:
    """Memory as a test says that it is; `reads` counts looks."""

    def __init__(self) -> None:
        self.nbytes = 10 * MIB
        self.highest = 0
        self.nlooks = 0
        self.looked = asyncio.Event()

    def now(self) -> int:
        self.nlooks += 1
        self.looked.set()
        return self.nbytes

    def peak(self, now: int) -> int:
        highest, self.highest = self.highest, 0
        return max(now, highest)


class FakeThreads:
    """Runs that go on, as a test says."""

    def __init__(self) -> None:
        self.runs: list[Run] = []

    def executing(self) -> list[Run]:
        return list(self.runs)

    @property
    def nexecuting(self) -> int:
        return len(self.runs)


class FakeFeed:
    """A worker without any connection: notes what it is to do."""

    def __init__(self) -> None:
        self.memory: MemoryWatch | None = None
        self.machine = WorkerMachine(MachineSettings(address="me", writable_nbytes_min=1))
        self.machine.receive([WorkerWelcome(Epoch(1), 1, 1.0)], 0.0)
        self.results = Results()
        self.threads = FakeThreads()
        self.link = self
        self.did: list[Any] = []
        self.done = asyncio.Event()
        self.spilling_nbytes = 0
        self.is_sending = False
        self.server = self
        self.disk_trouble = ""
        self.does_on_resume: Callable[[], object] = bool
        self.has_threads = True

    def note(self, *words: Any) -> None:
        self.did.append(words)
        self.done.set()

    def send(self, messages: Sequence[Any]) -> None:
        self.note(*messages)

    def asked(self) -> list[WantsReplacement]:
        return [did[0] for did in self.did if isinstance(did[0], WantsReplacement)]

    def spill(self, nbytes: int, why: str) -> int:
        self.note("spill", nbytes // MIB)
        return nbytes

    @property
    def leaving_nbytes(self) -> int:
        return self.spilling_nbytes

    def on_looked(self, process_bytes: int | None = None) -> None:
        if self.memory is not None:
            self.memory.room.look(process_bytes)

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def on_pause(self, why: str) -> None:
        self.note("pause", why)

    def on_resume(self, why: str) -> None:
        self.note("resume", why)
        self.does_on_resume()

    def on_gauged(self, gauged: Sequence[tuple[Run, int]]) -> None:
        for run, nbytes in gauged:
            self.note(run.key, nbytes // MIB)

    def do_aside(self, function: Callable[[], Any]) -> Future[Any]:
        if not self.has_threads:
            raise RuntimeError("can't start new thread")
        self.note("aside", function.__name__)
        done: Future[Any] = Future()
        done.set_result(0.0)
        return done

    def spawn(self, work: Coroutine[Any, Any, None]) -> object:
        return asyncio.ensure_future(work)

    def run(self, key: str) -> Run:
        """One that goes on, of the machine."""
        number = TaskId(ord(key))
        self.machine.receive([RunTask(number, RunId(1), Key(key), CodeId(1), b"", 0.0, 1)], 0.0)
        runs = [e.runs for e in self.machine.take_effects() if isinstance(e, StartRuns)]
        self.threads.runs += runs[0]
        return runs[0][0]


class Watching:
    """A watch over a fake worker, and what there is to tell it."""

    def __init__(self, *, is_watched: bool = True, limit: int = LIMIT, **settings: Any) -> None:
        self.process, self.feed = FakeProcess(), FakeFeed()
        memory = config.read(config.Memory, monitor_seconds=INTERVAL_SECONDS, **settings)
        self.nbeats = 0
        self.watch = MemoryWatch(
            cast(Any, self.feed),
            "tcp://me",
            limit,
            memory,
            is_watched=is_watched,
            beat=self.beat,
            process=cast(ProcessMemory, self.process),
        )

    def beat(self) -> None:
        self.nbeats += 1

    async def __aenter__(self) -> Watching:
        self.watch.begin()
        return self

    async def __aexit__(self, *exception: object) -> None:
        self.watch.close()

    async def does(self, word: str) -> list[Any]:
        """All that it has done until it did something called so."""
        async with asyncio.timeout(5):
            while not (found := [i for i, did in enumerate(self.feed.did) if did[0] == word]):
                self.feed.done.clear()
                await self.feed.done.wait()
        did = self.feed.did[: found[0] + 1]
        del self.feed.did[: found[0] + 1]
        return did

    async def seconds_of_a_look(self) -> float:
        """How long it takes until the next one."""
        began = asyncio.get_running_loop().time()
        await self.looks()
        return asyncio.get_running_loop().time() - began

    async def looks(self, n: int = 1) -> None:
        """It looks so many times."""
        async with asyncio.timeout(5):
            for _ in range(n):
                self.process.looked.clear()
                await self.process.looked.wait()


def test_it_frees_then_spills_then_pauses_and_resumes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        async with Watching() as worker:
            worker.feed.results.put(TaskId(1), Key("big"), "value", 60 * MIB)
            worker.feed.machine.replicas_put([(TaskId(1), Key("big"), 60 * MIB)], 0.0)
            worker.process.nbytes = 75 * MIB
            did = await worker.does("spill")
            assert did == [("aside", "_collect"), ("aside", "give_back"), ("spill", 15)]
            worker.process.nbytes = 90 * MIB
            why = (await worker.does("pause"))[-1][1]
            assert "90.00 MiB of its limit of 100.00 MiB: 60.00 MiB of results" in why
            assert worker.nbeats == 1
            worker.process.nbytes = 40 * MIB
            assert "40.00 MiB" in (await worker.does("resume"))[-1][1]
            assert worker.nbeats == 2
        assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
        paused, resumed = [record.getMessage() for record in caplog.records]
        assert "is paused" in paused
        assert "The largest: big (60.00 MiB)." in paused
        assert "goes on" in resumed

    asyncio.run(story())


def test_short_pauses_in_a_row_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        caplog.set_level(logging.WARNING)
        async with Watching() as worker:
            for _ in range(3):
                worker.process.nbytes = 90 * MIB
                await worker.does("pause")
                worker.process.nbytes = 40 * MIB
                await worker.does("resume")
        assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]

    asyncio.run(story())


def test_trouble_with_the_disk_is_told_with_the_pause(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        caplog.set_level(logging.WARNING)
        async with Watching() as worker:
            worker.feed.disk_trouble = "The disk is full."
            worker.process.nbytes = 90 * MIB
            await worker.does("pause")
        assert "The disk is full." in caplog.records[0].getMessage()

    asyncio.run(story())


def test_trouble_with_the_disk_that_comes_while_it_is_paused_is_told_then() -> None:
    async def story() -> None:
        async with Watching() as worker:
            worker.process.nbytes = 90 * MIB
            assert (await worker.does("pause"))[-1][1].endswith("no result")
            worker.feed.disk_trouble = "The disk is full."
            assert (await worker.does("pause"))[-1][1].endswith("no result. The disk is full.")
            await worker.looks(3)
            assert [did for did in worker.feed.did if did[0] == "pause"] == []
            worker.feed.disk_trouble = ""
            assert (await worker.does("pause"))[-1][1].endswith("no result")

    asyncio.run(story())


def test_what_is_on_disk_is_not_named_among_what_takes_memory(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        async with Watching() as worker:
            machine = worker.feed.machine
            machine.replicas_put([(TaskId(n), Key(f"x{n}"), n * MIB) for n in (30, 20)], 0.0)
            assert machine.spill(30 * MIB, 0.0) == 30 * MIB
            writes = [e for e in machine.take_effects() if isinstance(e, Write)]
            assert machine.value_written(writes[0], 0.0)
            worker.process.nbytes = 90 * MIB
            await worker.does("pause")
        assert "The largest: x20 (20.00 MiB)." in caplog.records[0].getMessage()

    asyncio.run(story())


def test_looks_that_are_asked_for_come_once_and_in_place_of_the_next() -> None:
    """Be they asked for in a look: values that come back at once as it resumes are results, too."""

    async def story() -> None:
        async with Watching() as worker:
            worker.feed.does_on_resume = worker.watch.look
            worker.process.nbytes = 90 * MIB
            await worker.does("pause")
            worker.process.nbytes = 40 * MIB
            await worker.does("resume")
            nlooks = worker.process.nlooks
            await asyncio.sleep(0)  # the loop is free
            assert worker.process.nlooks == nlooks + 1
            worker.watch.look()
            worker.watch.look()
            worker.watch.stir()
            assert worker.process.nlooks == nlooks + 1
            await asyncio.sleep(0)
            assert worker.process.nlooks == nlooks + 2

    asyncio.run(story())


def test_memory_is_freed_though_the_system_has_no_more_threads() -> None:
    async def story() -> None:
        async with Watching() as worker:
            worker.feed.has_threads = False
            worker.process.nbytes = 75 * MIB
            await worker.looks(2)
            worker.feed.has_threads = True
            assert (await worker.does("aside"))[-1] == ("aside", "give_back")

    asyncio.run(story())


def test_a_leak_has_the_worker_replaced_if_it_has_a_nanny() -> None:
    async def story() -> None:
        async with Watching(recycle_after_seconds=0.05) as worker:
            worker.process.nbytes = 90 * MIB
            asked = (await worker.does("pause"))[-1:]
            await worker.looks(3)
            while not (asked := worker.feed.asked()):
                await worker.looks()
            assert asked[0].reason.startswith("recycled: its process has 90.00 MiB")
            worker.feed.run("x")
            await worker.looks(2)
            worker.feed.did.clear()
            await worker.looks(10)  # more than it takes to ask again
            assert not worker.feed.asked()

    asyncio.run(story())


def test_without_a_nanny_nobody_would_start_another() -> None:
    async def story() -> None:
        async with Watching(is_watched=False, recycle_after_seconds=0.01) as worker:
            worker.process.nbytes = 90 * MIB
            await worker.does("pause")
            await worker.looks(5)
            assert not worker.feed.asked()

    asyncio.run(story())


def test_what_runs_have_taken_is_told_before_how_they_ended() -> None:
    async def story() -> None:
        async with Watching() as worker:
            run, feed = worker.feed.run("x"), worker.feed
            await worker.looks()
            worker.process.nbytes, worker.process.highest = 50 * MIB, 60 * MIB
            feed.threads.runs.clear()
            ended = RunEnded(run, FINISHED, 30 * MIB, seconds=1.0)
            assert worker.watch.gauge([(ended, None)])
            feed.machine.runs_ended([ended], 1.0)
            feed.results.put(run.task, run.key, "value", 30 * MIB)
            worker.watch.settle()
            said = next(e.messages for e in feed.machine.take_effects() if isinstance(e, Send))
            assert said[0] == RunsGauged([run.task], [run.number], [50 * MIB])
            assert isinstance(said[1], TaskFinished)
            other = RunEnded(feed.run("y"), FINISHED, 0, seconds=1.0)
            assert worker.watch.gauge([(other, None)])
            assert not [e for e in feed.machine.take_effects() if isinstance(e, Send)]

    asyncio.run(story())


def test_short_runs_cost_no_look() -> None:
    async def story() -> None:
        async with Watching() as worker:
            await worker.looks()
            nlooks = worker.process.nlooks
            ended = RunEnded(worker.feed.run("x"), FINISHED, 8, seconds=0.001)
            assert not worker.watch.gauge([(ended, None)])
            assert worker.process.nlooks == nlooks

    asyncio.run(story())


def test_a_run_that_came_back_unbegun_says_nothing_of_what_its_kind_takes() -> None:
    async def story() -> None:
        async with Watching() as worker:
            room = worker.feed.machine.state.room
            assert room is not None
            an_input = Replica(TaskId(7), Key("a"), 10 * MIB)
            an_input.residence = Residence()
            run = worker.feed.run("x")
            for how, known in (WITHDRAWN, False), (FINISHED, True):
                room.reserved_bytes = run.reserved_bytes = 10 * MIB
                worker.watch.gauge([(RunEnded(run, how, 8), None)])
                room.reserved_bytes = run.reserved_bytes = 0
                run.pins = [an_input]
                assert room.growth_bytes(run) == (0 if known else 10 * MIB)
                run.pins = []

    asyncio.run(story())


def test_a_run_that_goes_on_is_told_of_as_it_grows() -> None:
    async def story() -> None:
        async with Watching() as worker:
            worker.feed.run("x")
            await worker.looks()
            worker.process.nbytes = 50 * MIB
            assert (await worker.does("x")) == [("x", 40)]

    asyncio.run(story())


def test_it_looks_with_a_sign_of_life_while_nothing_goes_on_and_only_then() -> None:
    async def story() -> None:
        async with Watching() as worker:
            await worker.looks(3)
            nlooks = worker.process.nlooks
            assert worker.watch.look_beside() == worker.process.nbytes
            assert worker.process.nlooks == nlooks + 1
            worker.watch.stir()
            assert worker.watch.look_beside() is None
            assert worker.process.nlooks == nlooks + 1

    asyncio.run(story())


def test_it_looks_less_often_while_nothing_goes_on_until_something_comes() -> None:
    async def story() -> None:
        async with Watching() as worker:
            await worker.looks(3)
            loop = asyncio.get_running_loop()
            began = loop.time()
            await worker.looks()
            assert loop.time() - began > IDLE_FACTOR * INTERVAL_SECONDS / 2
            worker.feed.run("x")
            worker.watch.stir()
            nlooks, began = worker.process.nlooks, loop.time()
            await worker.looks(5)
            assert (
                loop.time() - began
                < (worker.process.nlooks - nlooks) * IDLE_FACTOR * INTERVAL_SECONDS
            )

    asyncio.run(story())


def test_what_a_process_had_before_its_worker_began_need_not_count() -> None:
    async def story() -> None:
        worker = Watching(is_watched=False)
        worker.process.nbytes = 90 * MIB
        async with worker:
            await worker.looks(3)
            assert worker.feed.did == []
            worker.process.nbytes += 90 * MIB
            assert "its process has 90.00 MiB" in (await worker.does("pause"))[-1][1]

    asyncio.run(story())


def test_it_looks_less_often_at_a_run_that_takes_no_more_until_it_does() -> None:
    async def story() -> None:
        async with Watching() as worker:
            worker.feed.run("x")
            await worker.looks(CALM_LOOKS + 2)
            assert await worker.seconds_of_a_look() > CALM_FACTOR * INTERVAL_SECONDS / 2
            worker.process.nbytes += 20 * MIB
            await worker.looks()
            seconds = [await worker.seconds_of_a_look() for _ in range(5)]
            assert min(seconds) < CALM_FACTOR * INTERVAL_SECONDS / 2

    asyncio.run(story())


def test_without_a_limit_only_heartbeats_ask() -> None:
    async def story() -> None:
        worker = Watching(limit=0)
        worker.watch.begin()
        assert worker.feed.memory is None
        told = worker.watch.tell()
        assert told["memory_bytes"] == 10 * MIB
        assert worker.process.nlooks == 1
        worker.watch.close()

    asyncio.run(story())


def test_a_heartbeat_tells_results_in_memory_and_what_is_old() -> None:
    async def story() -> None:
        worker = Watching(recent_to_old_seconds=0.0)
        worker.feed.results.put(TaskId(1), Key("big"), "value", 4 * MIB)
        told = worker.watch.tell()
        assert told["managed_bytes"] == 4 * MIB
        assert told["unmanaged_old_bytes"] == 6 * MIB
        assert told["spilled_bytes"] == told["spilled_disk_bytes"] == 0

    asyncio.run(story())
