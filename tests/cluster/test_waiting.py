"""Waiting for futures and calling back, through both faces."""

import asyncio
import pickle
import threading
import time
from collections import namedtuple
from concurrent.futures import CancelledError
from traceback import walk_tb
from typing import NamedTuple

import dask
import pytest

from shoal import Client, Future, as_completed, default_client, futures_of, progress, wait
from tests.cluster.conftest import SMALL
from tests.cluster.faces import ask
from tests.programs import printed_by_script

GATE = threading.Event()


@pytest.fixture(autouse=True)
def gate():
    GATE.clear()
    yield
    GATE.set()


def inc(x):
    return x + 1


def fail(x):
    raise ValueError(f"not {x}")


def held(n=0):
    assert GATE.wait(10)
    return n


async def completed(futures, **options):
    """All that `as_completed` gives, on either face."""
    if futures[0].client.asynchronous:
        return [each async for each in as_completed(futures, **options)]
    return list(as_completed(futures, **options))


def test_every_future_is_given_once_however_it_ends(play):
    async def scenario(client):
        futures = [client.submit(inc, 1), client.submit(fail, 2)]
        pairs = dict(await completed(futures, with_results=True, raise_errors=False))
        assert pairs[futures[0]] == 2
        assert pairs[futures[1]][0] is ValueError
        waiting = [client.submit(held, n, pure=False) for n in range(3)]
        iterating = as_completed(waiting)
        await ask(client.cancel(waiting))
        assert [future.status for future in await completed(waiting)] == ["cancelled"] * 3
        assert iterating.count() == 3
        GATE.set()

    play(scenario)


def test_the_first_failure_or_the_end_of_all_ends_the_wait(play):
    async def scenario(client):
        futures = [client.submit(held), client.submit(fail, 1)]
        done, not_done = await ask(wait(futures, return_when="FIRST_EXCEPTION"))
        assert (done, not_done) == ({futures[1]}, {futures[0]})
        GATE.set()
        done, not_done = await ask(wait(futures, timeout=10, return_when="FIRST_EXCEPTION"))
        assert done | not_done == set(futures)
        fine = client.map(inc, range(5))
        assert (await ask(wait(fine, return_when="FIRST_EXCEPTION"))).not_done == set()

    play(scenario)


def test_futures_may_be_added_while_one_iterates(play):
    async def scenario(client):
        iterating = as_completed([client.submit(inc, 0)], with_results=True)
        seen = []

        def grow(result):
            seen.append(result)
            if result < 10:
                iterating.add(client.submit(inc, result))

        if client.asynchronous:
            async for _, result in iterating:
                grow(result)
        else:
            for _, result in iterating:
                grow(result)
        assert seen == list(range(1, 11))

    play(scenario)


def test_large_results_come_with_their_futures_from_processes(play_in_processes):
    async def scenario(client):
        futures = client.map(bytes, [100_000, 200_000, 50_000])
        sizes = {f.key: len(r) for f, r in await completed(futures, with_results=True)}
        assert sorted(sizes.values()) == [50_000, 100_000, 200_000]

    play_in_processes(scenario)


def test_a_future_is_equal_to_itself_alone_and_can_be_a_key(play):
    async def scenario(client):
        first, second = client.submit(inc, 1), client.submit(inc, 1)
        assert first.key == second.key
        assert first != second
        assert len({first, second, first}) == 2
        assert await ask(client.gather({"a": first, "b": [second]})) == {"a": 2, "b": [2]}

    play(scenario)


def test_a_pickled_future_is_bound_to_the_client_that_there_is(play):
    async def scenario(client):
        future = client.submit(inc, 1)
        copy = pickle.loads(pickle.dumps(future))
        assert copy.client is client
        assert await ask(copy.result()) == 2
        named = Future(future.key, client)
        named.bind_client(client)
        assert await ask(named.result()) == 2

    play(scenario)


def test_a_future_without_a_client_is_bound_late():
    late = Future("late")
    assert late.status is None
    with pytest.raises(RuntimeError, match="not properly initialized"):
        late.result()
    with Client(processes=False, **SMALL) as client:
        future = client.submit(inc, 2, key="late")
        assert late.result() == future.result() == 3
        assert late.executor is client


def test_a_future_in_another_process_is_bound_to_the_tasks_client(play_in_processes):
    def total(parts):
        return sum(part.future.result() for part in parts)

    async def scenario(client):
        parts = [Hidden(client.submit(inc, n)) for n in range(3)]
        assert await ask(client.submit(total, parts).result()) == 6

    play_in_processes(scenario)


class Hidden:
    """Holds a future where no container shows it."""

    def __init__(self, future):
        self.future = future


def test_callbacks_are_called_in_order_in_one_thread_and_raise_into_the_log(caplog):
    with Client(processes=False, **SMALL) as client:
        future = client.submit(held, 1)
        called, threads, done = [], set(), threading.Event()

        def note(n):
            def callback(ended):
                called.append((n, ended.result()))
                threads.add(threading.current_thread().name)

            return callback

        def refuse(ended):
            raise LookupError("a callback's own")

        for n in range(3):
            future.add_done_callback(note(n))
        future.add_done_callback(refuse)
        future.add_done_callback(lambda ended: done.set())
        GATE.set()
        assert done.wait(10)
        assert called == [(0, 1), (1, 1), (2, 1)]
        assert len(threads) == 1
        assert threading.current_thread().name not in threads
    assert "a callback's own" in caplog.text
    caplog.clear()


def test_a_wait_for_workers_that_others_need_is_refused_on_the_loop():
    async def play():
        async with Client(asynchronous=True, processes=False, **SMALL) as client:
            future = client.submit(held)
            with pytest.raises(RuntimeError, match="would wait for the event loop"):
                next(as_completed([future]))
            GATE.set()
            await wait(future)

    asyncio.run(play())


def test_a_coroutine_of_ones_own_may_take_only_so_long(play):
    async def scenario(client):
        async def work(seconds):
            await asyncio.sleep(seconds)
            return seconds

        assert await ask(client.sync(work, 0)) == 0
        with pytest.raises(TimeoutError, match=r"timed out after 0.01 s"):
            await ask(client.sync(work, 30, callback_timeout="10 ms"))

    play(scenario)


def test_options_that_make_no_sense_are_refused(play):
    async def scenario(client):
        for call in (
            lambda: client.submit(inc, 1, allow_other_workers=True),
            lambda: client.map(inc, [1], allow_other_workers=True),
        ):
            with pytest.raises(ValueError, match="allow_other_workers"):
                call()
        with pytest.raises(TypeError, match="at least one iterable"):
            client.map(inc)
        with pytest.raises(TypeError, match=r"wait\(\[x, y\]\)"):
            wait(client.submit(inc, 1), client.submit(inc, 2))
        nested = client.map(sum, [[client.submit(inc, 1), 5]])
        assert await ask(client.gather(nested)) == [7]

    play(scenario)


def test_progress_may_leave_out_what_has_ended(capsys):
    with Client(processes=False, **SMALL) as client:
        futures = client.map(inc, range(3))
        wait(futures)
        progress(futures, complete=False)
        assert capsys.readouterr().out == ""
        progress(futures, multi=False, group_by=lambda task: task)
        assert "3 of 3" in capsys.readouterr().out
        with pytest.raises(ValueError, match="`group_by` should be"):
            progress(futures, group_by="colour")


def test_futures_and_executors_that_live_until_the_interpreter_ends_say_nothing(tmp_path):
    script = """
from shoal import Client, as_completed, fire_and_forget

if __name__ == "__main__":
    client = Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None)
    futures = client.map(abs, range(10))
    executor = client.get_executor()
    call = executor.submit(abs, -1)
    iterating = as_completed(futures)
    fire_and_forget(client.submit(abs, -5))
    futures.append(futures)
    print(next(iterating).status, call.result())
"""
    assert printed_by_script(script, tmp_path) == "finished 1\n"


def test_a_cancelled_future_tells_why(play):
    async def scenario(client):
        future = client.submit(held)
        await ask(future.cancel(reason="too slow", msg="Take the fast one.", force=True))
        with pytest.raises(CancelledError, match=r"reason: too slow\. Take the fast") as caught:
            await ask(future.result())
        assert (caught.value.reason, caught.value.msg) == ("too slow", "Take the fast one.")
        GATE.set()

    play(scenario)


def test_waiting_inside_a_task_gives_its_thread_away(play_in_processes):
    def nested(n):
        from shoal import get_client

        futures = get_client().map(inc, range(n))
        wait(futures)
        return sum(result for _, result in as_completed(futures, with_results=True))

    async def scenario(client):
        started_at = time.monotonic()
        assert await ask(client.gather(client.map(nested, [3, 3, 3, 3], pure=False))) == [6] * 4
        assert time.monotonic() - started_at < 30

    play_in_processes(scenario)


def test_a_client_that_is_no_default_is_meant_only_where_it_is_named():
    with Client(processes=False, **SMALL) as client:
        with Client(client.cluster, set_as_default=False) as other:
            assert Client.current() is client
            with other.as_current():
                assert Client.current(allow_global=False) is other
            assert default_client() is client
        with Client(client.cluster) as other:
            assert Client.current() is other
        assert Client.current() is client


def test_errors_show_users_code_and_little_else(play):
    async def scenario(client):
        future = client.submit(fail, 1)
        for call in (future.result, lambda: client.gather([future])):
            with pytest.raises(ValueError, match="not 1") as caught:
                await ask(call())
            frames = [frame.f_code.co_name for frame, _ in walk_tb(caught.value.__traceback__)]
            assert frames[0] == "scenario"
            assert frames[-1] == "fail"
            assert len(frames) <= 7

    play(scenario)


def test_a_class_of_collections_has_no_futures():
    array = pytest.importorskip("dask.array")
    assert futures_of([array.Array, int]) == []


class Point(NamedTuple):
    x: object
    y: object = 0


class Labelled(namedtuple("Labelled", "value label")):
    def __new__(cls, value):
        return super().__new__(cls, value, "made here")

    def __getnewargs__(self):
        return (self.value,)


def test_futures_in_named_tuples_are_results(play):
    async def scenario(client):
        def kinds(point, labelled):
            return type(point).__name__, tuple(point), labelled.value, labelled.label

        x, y = client.submit(inc, 1), client.submit(inc, 2)
        future = client.submit(kinds, Point(x, [y]), labelled=Labelled(x))
        assert await ask(future.result()) == ("Point", (2, [3]), 2, "made here")
        assert await ask(client.gather(Point(x, y))) == Point(2, 3)

    play(scenario)


def test_annotations_that_are_functions_of_the_key_hold_for_each_task_of_a_graph(play):
    async def scenario(client):
        first, second = sorted(await ask(client.nthreads()))
        parts = [dask.delayed(inc)(n, dask_key_name=("part", n)) for n in range(4)]

        def place(key):
            return [first if key[1] % 2 else second]

        with dask.annotate(workers=place):
            kept = client.persist(parts, optimize_graph=False)
        await ask(wait(kept))
        holders = await ask(client.who_has(kept))
        expected = {("part", n): (first if n % 2 else second,) for n in range(4)}
        assert {key: tuple(where) for key, where in holders.items()} == expected
        with dask.annotate(workers=place), pytest.raises(TypeError, match="workers="):
            client.submit(inc, 1)

    play(scenario)
