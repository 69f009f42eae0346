"""What a failure leaves behind on either face, which is nothing, and what it says."""

import gc
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError

import pytest

from shoal import as_completed, wait
from tests.cluster.faces import ask, play_asynchronous


def fail(x):
    raise ValueError(f"not {x}")


def read(path):
    return path.read_text()


def inc(x):
    return x + 1


@pytest.fixture
def uncollected() -> Iterator[None]:
    """No garbage collection: what refers to itself would stay."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


async def of_result(client):
    with pytest.raises(ValueError, match="not 1"):
        await ask(client.submit(fail, 1).result())


async def of_await(client):
    with pytest.raises(ValueError, match="not 1"):
        await client.submit(fail, 1)


async def of_gather(client):
    with pytest.raises(ValueError, match="not"):
        await ask(client.gather({"a": client.map(fail, [1, 2])}))


async def of_graph(client):
    with pytest.raises(ValueError, match="not 1"):
        await ask(client.get({"x": (fail, 1), "y": (inc, "x")}, "y"))


async def of_exception(client):
    error = await ask(client.submit(fail, 1).exception())
    assert str(error) == "not 1"
    trace = await ask(client.submit(fail, 1).traceback())
    assert trace.tb_frame.f_back is None


async def of_as_completed(client):
    completed = as_completed([client.submit(fail, 1)], with_results=True)
    with pytest.raises(ValueError, match="not 1"):
        await ask(completed.__anext__() if client.asynchronous else completed.next())


async def of_cancelled(client):
    future = client.submit(inc, 1, workers=["nobody"])
    await ask(client.cancel(future))
    with pytest.raises(CancelledError, match="cancelled"):
        await ask(future.result())


async def of_late_result(client):
    with pytest.raises(TimeoutError, match=r"late has not ended within 0\.01 s"):
        await ask(client.submit(inc, 1, workers=["nobody"], key="late").result(timeout=0.01))
    with pytest.raises(TimeoutError, match=r"late has not ended within 0\.01 s"):
        await ask(client.submit(inc, 1, workers=["nobody"], key="late").exception(timeout=0.01))


async def of_late_wait(client):
    done = client.submit(inc, 1)
    await ask(done.result())
    never = [client.submit(inc, x, workers=["nobody"]) for x in (2, 3)]
    with pytest.raises(TimeoutError, match=r"2 of 3 futures have not ended within 0\.01 s"):
        await ask(wait([done, *never], timeout=0.01))


async def of_late_as_completed(client):
    completed = as_completed([client.submit(inc, 1, workers=["nobody"])], timeout=0.01)
    with pytest.raises(TimeoutError, match="1 future has not ended in time"):
        await ask(completed.__anext__() if client.asynchronous else completed.next())


async def of_run(client):
    future = client.submit(inc, 1)
    with pytest.raises(ValueError, match="not 1"):
        await ask(client.run(fail, 1))
    assert await ask(future.result()) == 2


async def of_unpicklable_graph(client):
    future = client.submit(inc, 1)
    with pytest.raises(TypeError, match="Could not serialize"):
        await ask(client.get({"x": (inc, threading.Lock()), "y": (inc, "x")}, "y"))
    assert await ask(future.result()) == 2


EVERY_FAILURE = [
    of_result,
    of_gather,
    of_graph,
    of_exception,
    of_as_completed,
    of_cancelled,
    of_late_result,
    of_late_wait,
    of_late_as_completed,
    of_run,
    of_unpicklable_graph,
]


@pytest.mark.parametrize("failure", EVERY_FAILURE, ids=lambda failure: failure.__name__)
def test_nothing_stays_wanted_after_a_failure(play, failure, uncollected):
    async def scenario(client):
        await failure(client)
        await ask(client.run_on_scheduler(int))  # asyncio holds what it threw until the next tick
        assert dict(client.futures) == {}

    play(scenario)


def test_nothing_stays_wanted_after_a_failed_future_was_awaited(uncollected):
    async def scenario(client):
        await of_await(client)
        assert dict(client.futures) == {}

    play_asynchronous(scenario, processes=False, n_workers=1, dashboard_address=None)


def test_a_call_that_failed_is_made_anew_once_its_cause_is_mended(play, tmp_path, uncollected):
    path = tmp_path / "value"

    async def scenario(client):
        with pytest.raises(FileNotFoundError):
            await ask(client.submit(read, path).result())
        with pytest.raises(FileNotFoundError):
            await ask(client.gather(client.map(read, [path])))
        path.write_text("there")
        assert await ask(client.submit(read, path).result()) == "there"

    play(scenario)


def make_lock():
    return threading.Lock()


def count():
    yield from range(3)


@pytest.mark.parametrize(("make", "kind"), [(make_lock, "_thread.lock"), (count, "generator")])
def test_a_result_that_can_not_be_sent_is_told_with_its_task_and_type(
    play_in_processes, make, kind, uncollected
):
    async def scenario(client):
        with pytest.raises(TypeError, match="cannot pickle") as caught:
            await ask(client.submit(make, key="made").result())
        text = str(caught.value)
        assert f"The result of task 'made', of type {kind}, can't be sent" in text
        assert "Return plain data" in text
        assert type(caught.value.__cause__) is TypeError
        del caught
        assert dict(client.futures) == {}

    play_in_processes(scenario)


def test_what_needs_a_result_that_cannot_be_sent_runs_where_that_is(play_in_processes):
    """It is tried first where it is said to run, if it may run elsewhere too."""

    async def scenario(client):
        holder, other = sorted(client.scheduler_info()["workers"])
        lock = client.submit(make_lock, workers=[holder])
        await ask(wait(lock))
        for places in ({}, {"workers": [other], "allow_other_workers": True}):
            found = client.submit(lambda lock: lock.locked(), lock, pure=False, **places)
            assert await ask(found.result()) is False
        never = client.submit(lambda lock: lock.locked(), lock, workers=[other])
        with pytest.raises(TypeError, match="can't be sent to where it is needed"):
            await ask(never.result())

    play_in_processes(scenario)


@pytest.mark.parametrize("key", [("a", [1]), ["l"], {}])
def test_a_key_that_is_none_is_told_what_a_key_is(play, key):
    async def scenario(client):
        with pytest.raises(TypeError, match="use str, bytes, int"):
            client.submit(inc, 1, key=key)
        with pytest.raises(TypeError, match="use str, bytes, int"):
            client.map(inc, [1], key=[key])

    play(scenario)


@pytest.mark.parametrize(("key", "words"), [("a\ud800", "surrogate"), ("", "key=''")])
def test_a_key_that_can_not_travel_is_refused_at_once(play, key, words):
    async def scenario(client):
        with pytest.raises(ValueError, match=words):
            client.submit(inc, 1, key=key)
        for keys in (key, [key]):
            with pytest.raises(ValueError, match=words):
                client.map(inc, [1], key=keys)
        with pytest.raises(ValueError, match=words):
            await ask(client.scatter({key: 1}))
        assert dict(client.futures) == {}

    play(scenario)


def test_a_method_of_upstream_that_is_not_there_says_so(play):
    async def scenario(client):
        assert not hasattr(client, "profile")
        with pytest.raises(AttributeError, match=r"does not have Client\.profile"):
            client.profile()

    play(scenario)


def test_the_traceback_of_a_result_has_one_frame_of_the_client_at_most(play):
    async def scenario(client):
        failed = client.submit(fail, 1)
        for waits in (
            failed.result,
            lambda: client.gather(failed),
            lambda: client.gather([failed]),
        ):
            with pytest.raises(ValueError, match="1") as caught:
                await ask(waits())
            ours = [entry.name for entry in caught.traceback if "client" in entry.path.parts]
            assert len(ours) <= 1, ours
            assert caught.traceback[-1].name == "fail"

    play(scenario)
