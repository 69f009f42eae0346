"""Threads of runs that secede and rejoin: never more with a slot than there are slots."""

import asyncio
import ctypes
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from shoal import Reschedule
from shoal.observe.inside import current_task
from shoal.worker.model.entities import FINISHED, RESCHEDULED
from shoal.worker.shell.slots import Slots
from tests.unit.worker.test_substitutes import names_of_threads
from tests.unit.worker.test_threads import Bench, Job, add, raise_it, with_bench

SECONDS_MAX = 10


class Gates:
    """Events by name, that runs and the test wait for."""

    def __init__(self) -> None:
        self.events: dict[str, threading.Event] = {}

    def of(self, name: str) -> threading.Event:
        return self.events.setdefault(name, threading.Event())


gates = Gates()


@pytest.fixture(autouse=True)
def _closed_gates() -> Iterator[None]:
    gates.events.clear()
    yield
    for event in list(gates.events.values()):
        event.set()  # nobody is left behind where a test has failed


def this_run() -> Any:
    return current_task.get()


def long_run(*steps: str) -> list[str]:
    """Does each step, opening a gate of its name once it is done; "until x" waits for that gate."""
    threads, run = this_run().worker.threads, this_run().run
    said = []
    for step in steps:
        if step == "secede":
            said.append(f"seceded: {threads.secede(run)}")
        elif step == "rejoin":
            said.append(f"rejoined: {threads.rejoin(run, waits=True)}")
        elif step == "take":
            said.append(f"took: {threads.rejoin(run, waits=False)}")
        else:
            assert gates.of(step.removeprefix("until ")).wait(SECONDS_MAX)
        gates.of(f"{run.key} {step}").set()
    return said


async def opened(name: str) -> None:
    assert await asyncio.to_thread(gates.of(name).wait, SECONDS_MAX), name


def jobs(bench: Bench, *runs: tuple[str, ...]) -> list[Job]:
    return [bench.job(long_run, *steps, number=i + 1) for i, steps in enumerate(runs)]


def test_a_run_that_secedes_has_its_place_taken_at_once_without_the_loop() -> None:
    async def scene(bench: Bench) -> None:
        bench.threads.start(jobs(bench, ("secede", "until key-2 until on"), ("until on",)))
        assert gates.of("key-1 secede").wait(SECONDS_MAX)
        gates.of("on").set()
        assert gates.of("key-2 until on").wait(SECONDS_MAX)
        gates.of("key-2 until on").set()
        ended = await bench.reported(2)
        assert [end.how for end, _ in ended] == [FINISHED, FINISHED]

    with_bench(scene)


def test_a_run_that_rejoins_goes_before_what_has_not_begun() -> None:
    async def scene(bench: Bench) -> None:
        bench.threads.start(
            jobs(bench, ("secede", "until back", "rejoin"), ("until on",), ("until never",))
        )
        await opened("key-1 secede")
        gates.of("back").set()
        await opened("key-1 until back")
        assert not gates.of("key-1 rejoin").is_set()
        gates.of("on").set()
        ended = await bench.reported(2)
        assert {end.run.key for end, _ in ended} == {"key-1", "key-2"}
        gates.of("never").set()
        await bench.reported(1)
        assert len(bench.threads.with_slots()) == 1

    with_bench(scene)


def test_a_run_that_rejoins_where_a_thread_idles_does_not_wait() -> None:
    async def scene(bench: Bench) -> None:
        bench.threads.start(jobs(bench, ("secede", "rejoin", "rejoin", "secede", "secede", "take")))
        [(_, said)] = await bench.reported(1)
        assert said == [
            "seceded: True",
            "rejoined: True",
            "rejoined: False",
            "seceded: True",
            "seceded: False",
            "took: True",
        ]
        assert (await bench.outcome(add, 1, 2))[1] == 3

    with_bench(scene)


def test_threads_that_are_too_many_end_and_those_that_are_left_are_as_many_as_slots() -> None:
    async def scene(bench: Bench) -> None:
        bench.threads.start(jobs(bench, *[("secede", "until on")] * 5))
        for i in range(5):
            await opened(f"key-{i + 1} secede")
        assert len(names_of_threads()) == 2 + 5
        gates.of("on").set()
        await bench.reported(5)
        assert (await bench.outcome(add, 1, 2))[1] == 3
        assert len(bench.threads.with_slots()) == 2

    with_bench(scene, nthreads=2)


def test_who_waits_for_a_slot_goes_on_when_the_threads_are_closed() -> None:
    async def scene(bench: Bench) -> None:
        bench.threads.start(jobs(bench, ("secede", "until back", "rejoin"), ("until on",)))
        await opened("key-1 secede")
        gates.of("back").set()
        await opened("key-1 until back")
        asyncio.get_running_loop().call_later(0.05, gates.of("on").set)
        assert await bench.threads.close(SECONDS_MAX) == 0
        assert gates.of("key-1 rejoin").is_set()

    with_bench(scene)


def test_an_exception_thrown_into_an_idle_thread_does_not_keep_a_slot_from_who_wants_it() -> None:
    """It strikes as the thread is woken, since it is one too many."""
    throw = ctypes.pythonapi.PyThreadState_SetAsyncExc

    async def scene(bench: Bench) -> None:
        for _ in range(5):
            gates.events.clear()
            bench.threads.start(jobs(bench, ("secede", "until back", "rejoin")))
            await opened("key-1 secede")
            _, idle = await bench.outcome(threading.get_ident)
            assert throw(ctypes.c_ulong(idle), ctypes.py_object(SystemExit)) == 1
            gates.of("back").set()
            await opened("key-1 rejoin")
            await bench.reported(1)

    with_bench(scene)


def test_a_run_that_has_ended_can_neither_secede_nor_rejoin() -> None:
    async def scene(bench: Bench) -> None:
        end, _ = await bench.outcome(add, 1, 2)
        assert not bench.threads.secede(end.run)
        assert not bench.threads.rejoin(end.run, waits=True)

    with_bench(scene)


def test_a_run_that_raises_reschedule_is_no_failure() -> None:
    async def scene(bench: Bench) -> None:
        end, _ = await bench.outcome(raise_it, Reschedule())
        assert (end.how, end.failure) == (RESCHEDULED, None)

    with_bench(scene)


class Crowd:
    """How many runs have a slot just now, and the most that ever had."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.now = self.most = 0

    def change(self, by: int) -> None:
        with self.lock:
            self.now += by
            self.most = max(self.most, self.now)


crowd = Crowd()


def come_and_go(times: int) -> None:
    threads, run = this_run().worker.threads, this_run().run
    crowd.change(1)
    for _ in range(times):
        crowd.change(-1)
        threads.secede(run)
        threads.rejoin(run, waits=True)
        crowd.change(1)
    crowd.change(-1)


def test_never_more_runs_have_a_slot_than_there_are_slots_however_they_come_and_go() -> None:
    crowd.most = 0

    async def scene(bench: Bench) -> None:
        bench.threads.start([bench.job(come_and_go, n % 4, number=n + 1) for n in range(300)])
        assert len(await bench.reported(300)) == 300
        assert (crowd.now, crowd.most <= 3) == (0, True)
        assert (await bench.outcome(add, 1, 2))[1] == 3
        assert len(bench.threads.with_slots()) == 3

    with_bench(scene, nthreads=3)


def test_a_slot_is_given_back_only_when_fewer_run_than_there_are_slots() -> None:
    """One waits for others and has gone on, so two run in one slot; the first to end is no gain."""
    slots = Slots(1)
    slots.nalive = 3
    slots.secede(0)
    assert slots.settle() == -1
    event = slots.rejoin(0)
    assert slots.settle() == -2
    assert slots.leave(1)
    assert not event.is_set()
    assert slots.leave(2)
    assert event.is_set()
    assert (slots.nalive, slots.nsurplus, slots.nseceded) == (1, 0, 0)
    assert not slots.leave(0)


def test_a_slot_whose_run_begins_to_wait_goes_to_who_wants_one_back() -> None:
    slots = Slots(1)
    slots.nalive = 2
    slots.secede(0)
    event = slots.rejoin(0)
    slots.settle()
    assert not event.is_set()
    slots.nwaiting = 1
    assert slots.settle() == 0
    assert event.is_set()


def test_who_stops_waiting_for_a_slot_leaves_it_to_others() -> None:
    slots = Slots(1)
    slots.nalive = 2
    slots.secede(0)
    event = slots.rejoin(0)
    slots.settle()
    slots.stop_rejoining(0)
    assert slots.settle() == 0
    assert not slots.leave(1)
    assert slots.leave(0)
    assert not event.is_set()


def test_a_thread_that_seceded_and_had_no_substitute_is_there_for_others_later() -> None:
    slots = Slots(1)
    slots.nalive = 1
    slots.secede(0)
    assert slots.settle() == 1  # and the system has none to give
    assert not slots.leave(0)
    assert (slots.nalive, slots.nsurplus, slots.nseceded) == (1, 0, 0)
