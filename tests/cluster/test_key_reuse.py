"""One key again and again: wanted, released, cancelled and wanted anew, with nothing in between."""

import asyncio
import signal
import threading
from collections import OrderedDict, defaultdict, namedtuple
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import Any

import dask
import pytest

from shoal import Client, LocalCluster, as_completed
from shoal.client.errors import BlockingCall, TakenKeyWarning
from tests.cluster.conftest import SMALL
from tests.cluster.faces import ask

GATE, INTERRUPTED = threading.Event(), threading.Event()


@pytest.fixture(autouse=True)
def gate():
    GATE.clear()
    yield
    GATE.set()


def inc(x):
    return x + 1


def dec(x):
    return x - 1


def pass_gate(x):
    assert GATE.wait(20)
    return x + 1


def test_a_value_that_is_scattered_over_and_over_is_never_lost(play_in_processes):
    async def scenario(client):
        for i in range(200):
            value = await ask(client.scatter(123))
            incremented = client.submit(inc, value, pure=False)
            assert await ask(incremented.result()) == 124, i
            del value, incremented

    play_in_processes(scenario)


def test_what_was_cancelled_can_be_had_again_at_once(play_in_processes):
    async def scenario(client):
        for i in range(50):
            future = client.submit(inc, 5)
            if i % 2:
                assert await ask(future.result()) == 6
            await ask(future.cancel())
            if i % 3:
                del future
            again = client.submit(inc, 5)
            assert await ask(again.result()) == 6, i
            assert await ask(client.submit(inc, again).result()) == 7, i
            del again

    play_in_processes(scenario)


def test_what_was_cancelled_as_it_ran_can_be_had_again(play):
    async def scenario(client):
        for i in range(5):
            first = client.submit(pass_gate, i)
            dependent = client.submit(inc, first)
            await ask(client.cancel([first]))
            with pytest.raises(CancelledError):
                await ask(dependent.result())
            again = client.submit(pass_gate, i)
            GATE.set()
            assert await ask(again.result()) == i + 1
            GATE.clear()

    play(scenario)


def test_another_call_by_the_name_of_one_that_is_wanted_is_warned_of(play):
    async def scenario(client):
        future = client.submit(inc, 1, key="one")
        assert await ask(client.submit(inc, 1, key="one").result()) == 2  # the very same
        for function, x in ((dec, 1), (inc, 2)):
            with pytest.warns(TakenKeyWarning, match="'one' is that of another call") as caught:
                taken = client.submit(function, x, key="one")
            assert caught[0].filename == __file__
            assert await ask(taken.result()) == 2
        del future, taken
        assert await ask(client.submit(dec, 1, key="one").result()) == 0  # it was free

    play(scenario)


def test_as_completed_gives_each_cancelled_future_once_and_ends(play):
    async def scenario(client):
        futures = client.map(pass_gate, range(3))
        completed = as_completed(futures)
        await ask(client.cancel(futures))
        if client.asynchronous:
            given = [future async for future in completed]
        else:
            given = list(completed)
        assert sorted(f.key for f in given) == sorted(f.key for f in futures)
        assert [future.status for future in given] == ["cancelled"] * 3

    play(scenario)


def interrupt():
    """As Ctrl-C does.  A signal that comes just before the main thread waits does not wake it."""
    while not INTERRUPTED.is_set():
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        INTERRUPTED.wait(0.05)
    return pass_gate(0)


@pytest.fixture
def interrupted_once():
    def raise_once(number, frame):
        if not INTERRUPTED.is_set():
            INTERRUPTED.set()
            raise KeyboardInterrupt

    INTERRUPTED.clear()
    before = signal.signal(signal.SIGINT, raise_once)
    yield
    signal.signal(signal.SIGINT, before)


def wanted_keys(dask_scheduler):
    return [key for key, task in dask_scheduler.tasks.items() if task.who_wants]


def test_an_interrupted_computation_is_wanted_no_more(interrupted_once):
    options = SMALL | {"threads_per_worker": 4, "processes": False}
    with Client(**options) as client:
        held = [dask.delayed(pass_gate)(i) for i in range(3)]
        later = [dask.delayed(inc)(x) for x in (*held, dask.delayed(interrupt)())]
        with pytest.raises(KeyboardInterrupt):
            dask.compute(later)
        assert client.run_on_scheduler(wanted_keys) == []
        GATE.set()
        assert client.submit(inc, 1).result(timeout=10) == 2


Pair = namedtuple("Pair", "first second")


class Named(dict):
    """A dictionary of a class of its own."""


@dataclass
class Plain:
    part: Any
    others: list = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Frozen:
    part: Any


class Opaque:
    """No container that anybody knows."""

    def __init__(self, inside):
        self.inside = inside


def test_futures_are_found_in_all_containers_and_arrive_alive_in_other_objects(play):
    async def scenario(client):
        future = client.submit(inc, 1)
        lists = defaultdict(list, k=future)
        for holder, expected in (
            ({"k": future}, {"k": 2}),
            (OrderedDict(k=future), OrderedDict(k=2)),
            (lists, defaultdict(list, k=2)),
            (Named(k=[future]), Named(k=[2])),
            (Pair(future, 0), Pair(2, 0)),
            ({future}, {2}),
            ([{"a": [(future,)]}], [{"a": [(2,)]}]),
            (Plain(future, [future, 1]), Plain(2, [2, 1])),
            ([Frozen(Plain(future))], [Frozen(Plain(2))]),
        ):
            found = await ask(client.submit(lambda x: (x,), holder, pure=False).result())
            assert found == (expected,)
            assert type(found[0]) is type(expected)
        assert lists["k"] is future  # what the user holds is as it was
        inside = client.submit(lambda holder: holder.inside.result(), Opaque(future))
        assert await ask(inside.result()) == 2
        mapped = client.map(sum, [[future, future]])
        assert await ask(client.gather(mapped)) == [4]
        keywords = client.map(lambda x, k: x + k, [1], k=future)
        assert await ask(client.gather(keywords)) == [3]

    play(scenario)


def test_a_blocking_client_on_the_loop_of_its_cluster_is_refused_at_once():
    async def main():
        options = SMALL | {"processes": False, "asynchronous": True}
        async with LocalCluster(**options) as cluster:
            with pytest.raises(BlockingCall, match="asynchronous client"):
                Client(cluster)
            async with Client(cluster, asynchronous=True) as client:
                assert await client.submit(inc, 1) == 2
                assert await client.compute(dask.delayed(inc)(1)) == 2
            other = await asyncio.to_thread(Client, cluster, set_as_default=False)
            try:
                assert await asyncio.to_thread(other.submit(inc, 2).result) == 3
            finally:
                await asyncio.to_thread(other.close)

    asyncio.run(main())
