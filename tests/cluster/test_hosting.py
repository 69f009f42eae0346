"""What a worker does for its actors, whatever these do and whatever the system denies it."""

import asyncio
import threading
from concurrent.futures import Executor

import dask
import pytest

from shoal import Client
from tests.cluster.conftest import SMALL

BEGUN, GATE, GONE = threading.Event(), threading.Event(), threading.Event()


@pytest.fixture(autouse=True)
def gate():
    for event in (BEGUN, GATE, GONE):
        event.clear()
    Odd.is_odd = False
    yield
    GATE.set()


class Slow:
    """Of which the first takes long to be made."""

    nmade = 0

    def __init__(self):
        Slow.nmade += 1
        self.number = Slow.nmade
        if self.number == 1:
            BEGUN.set()
            assert GATE.wait(10)

    def __del__(self):
        if self.number == 1:
            GONE.set()

    def which(self):
        return self.number


class Sleeper:
    async def sleep(self):
        BEGUN.set()
        await asyncio.Event().wait()

    def watch(self, other):
        return other.sleep().result()


def stop(_):
    raise StopIteration


class Stops:
    """Large, and not to be loaded, or not even to be pickled."""

    def __init__(self, unpicklable=False):
        self.content = bytes(2**21)
        self.unpicklable = unpicklable

    def __sizeof__(self):
        return len(self.content)

    def __reduce__(self):
        if self.unpicklable:
            raise StopIteration
        return stop, (self.content,)


class Odd:
    """Whose class can't be asked for a method, all of a sudden."""

    is_odd = False

    def __get__(self, instance, kind):
        if Odd.is_odd:
            raise LookupError("ask me later")
        return abs


class Counter:
    n = 0
    odd = Odd()

    def __init__(self, start=0):
        self.n = start

    def inc(self):
        self.n += 1
        return self.n

    async def ainc(self):
        return self.inc()

    @property
    def late(self):
        BEGUN.set()
        return GATE.wait(10)

    async def take(self, thing):
        return thing

    def give(self):
        return Stops()

    async def give_from_loop(self):
        return Stops(unpicklable=True)


def test_a_worker_that_closes_ends_what_its_actors_wait_for_of_each_other():
    with Client(processes=False, **SMALL | {"n_workers": 1}) as client:
        actors = [client.submit(Sleeper, actor=True, pure=False).result() for _ in range(2)]
        waiting = actors[0].watch(actors[1])
        assert BEGUN.wait(10)
        (thread,) = [t for t in threading.enumerate() if t.name.startswith("shoal-actor-")]
    thread.join(10)
    assert not thread.is_alive()
    assert waiting.done()


def test_an_actor_that_was_given_up_while_it_was_made_leaves_its_successor_alone():
    Slow.nmade = 0
    with Client(processes=False, n_workers=1, threads_per_worker=2) as client:
        first = client.submit(Slow, actor=True, key="slow")
        assert BEGUN.wait(10)
        first.release()
        del first
        slow = client.submit(Slow, actor=True, key="slow").result(timeout=10)
        GATE.set()
        assert GONE.wait(10)  # the first was made in the end, and thrown away
        assert slow.which().result(timeout=10) == 2


def test_what_a_class_raises_when_it_is_asked_for_a_method_is_raised_where_it_was_called():
    with Client(processes=False, **SMALL) as client:
        actor = client.submit(Counter, actor=True).result()
        method = actor.odd
        Odd.is_odd = True
        with pytest.raises(LookupError, match="ask me later"):
            method(1).result(timeout=10)
        Odd.is_odd = False
        assert actor.inc().result(timeout=10) == 1


def test_what_asyncio_would_lose_ends_a_call_all_the_same():
    """A StopIteration, raised by a thread that a loop waits for, is never heard of again."""
    with Client(processes=False, **SMALL) as client:
        counter = client.submit(Counter, actor=True).result()
        for call in (counter.take(Stops()), counter.give(), counter.give_from_loop()):
            with pytest.raises(RuntimeError, match="StopIteration"):
                call.result(timeout=10)


def test_a_property_that_takes_long_holds_up_nobody_else():
    with Client(processes=False, **SMALL | {"n_workers": 1}) as client:
        counter = client.submit(Counter, actor=True).result()
        reading = threading.Thread(target=lambda: read.append(counter.late))
        read: list = []
        reading.start()
        assert BEGUN.wait(10)
        assert [counter.ainc().result(timeout=5) for _ in range(3)] == [1, 2, 3]
        GATE.set()
        reading.join(10)
        assert read == [True]


def test_an_actor_that_gets_no_thread_says_so_and_asks_again(monkeypatch):
    start = threading.Thread.start

    def refuse(thread):
        if thread.name.startswith("shoal-actor-"):
            raise RuntimeError("can't start new thread")
        start(thread)

    with Client(processes=False, **SMALL) as client:
        counter = client.submit(Counter, actor=True).result()
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", refuse)
            with pytest.raises(RuntimeError, match="can't be called, as the system gives it no"):
                counter.inc().result(timeout=10)
            assert counter.ainc().result(timeout=10) == 1
        assert counter.inc().result(timeout=10) == 2


def test_an_actor_is_made_by_its_worker_whatever_executor_has_its_task():
    """One in another process could not be called."""

    class Elsewhere(Executor):
        def submit(self, fn, /, *args, **kwargs):
            raise AssertionError("it was sent elsewhere")

    with Client(processes=False, **SMALL | {"n_workers": 1}) as client:
        (worker,) = client.cluster.workers.values()
        worker.executors["elsewhere"] = Elsewhere()
        with dask.annotate(executor="elsewhere"):
            counter = client.submit(Counter, actor=True).result(timeout=10)
            other = client.compute(dask.delayed(Counter)(4), actors=True).result(timeout=10)
            with pytest.raises(AssertionError, match="sent elsewhere"):
                client.submit(abs, 1).result(timeout=10)
        assert (counter.inc().result(timeout=10), other.inc().result(timeout=10)) == (1, 5)
