"""Tasks of the cluster that are done again in the client's process."""

import asyncio
import os
import threading

import dask
import dask.array
import pytest

from shoal import wait
from tests.cluster.faces import ask


def inc(x):
    return x + 1


def divide(a, b):
    return a / b


def where():
    return os.getpid(), threading.get_ident()


async def inc_later(x):
    await asyncio.sleep(0)
    return x + 1


def test_a_task_is_done_again_here_with_its_inputs(play_in_processes):
    async def scenario(client):
        x = client.submit(inc, 1)
        large = client.submit(bytes, 100_000)
        y = client.submit(lambda x, large, b=0: x + len(large) + b, x, large, b=3)
        assert await ask(client.recreate_task_locally(y)) == 100_005
        assert await ask(client.recreate_task_locally(y.key)) == 100_005
        here = await ask(client.recreate_task_locally(client.submit(where)))
        assert here == where()  # in the thread that asks, where a debugger is
        assert await ask(client.recreate_task_locally(client.submit(inc_later, 1))) == 2

    play_in_processes(scenario)


def test_an_error_is_raised_here_with_its_frames(play):
    """Over inproc too; of several, the one that failed; of dependents, what they failed with."""

    async def scenario(client):
        fine = client.submit(inc, 1)
        failing = client.submit(divide, fine, 0)
        dependent = client.submit(inc, failing)
        persisted = client.persist(dask.delayed(inc)(failing))
        for asked in (failing, dependent, [fine, failing], persisted):
            with pytest.raises(ZeroDivisionError) as caught:
                await ask(client.recreate_error_locally(asked))
            assert caught.traceback[-1].name == "divide"
            assert caught.traceback[-1].frame.f_locals["a"] == 2
        with pytest.raises(ValueError, match="no failed task"):
            await ask(client.recreate_error_locally(fine))
        with pytest.raises(ValueError, match="No task is known"):
            await ask(client.recreate_task_locally("nobody's"))

    play(scenario)


def test_inputs_that_were_let_go_are_computed_again(play):
    async def scenario(client):
        failing = client.submit(divide, client.submit(inc, 1), 0)
        await ask(wait(failing))
        await ask(client.nthreads())  # by now the input is released
        with pytest.raises(ZeroDivisionError):
            await ask(client.recreate_error_locally(failing))

    play(scenario)


def test_a_task_of_a_collection_is_done_again_here(play):
    async def scenario(client):
        total = client.compute((dask.array.ones(10, chunks=5) + 1).sum())
        assert await ask(client.recreate_task_locally(total)) == 20

    play(scenario)


def test_a_normalized_collection_has_futures_in_place_of_what_is_there(play):
    async def scenario(client):
        x = dask.delayed(inc)(1, dask_key_name="x")
        y = dask.delayed(inc)(x, dask_key_name="y")
        assert client.normalize_collection(y) is y
        persisted = client.persist(x)
        normalized = client.normalize_collection(y)
        graph = dict(normalized.__dask_graph__())
        further = dask.delayed(inc)(y, dask_key_name="z")
        at_y = client.persist(y)
        assert set(client.normalize_collection(further).__dask_graph__()) == {"y", "z"}
        assert graph["x"].status in ("pending", "finished")
        assert await ask(client.compute(normalized).result()) == 3
        assert set(client.collections_to_dsk([y])) >= {"y"}
        del persisted, at_y

    play(scenario)
