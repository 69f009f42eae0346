"""Tasks with a timeout on a real cluster: they end, their threads are free, retries are used."""

import threading
import time

import dask
import pytest

from shoal import Client, LocalCluster, RunInterrupted, TaskTimeout

begun, ended, released = threading.Event(), threading.Event(), threading.Event()


@pytest.fixture(autouse=True)
def anew():
    for event in (begun, ended, released):
        event.clear()
    yield
    released.set()


@pytest.fixture
def client(anew):
    """One worker of one thread, in this process, that waits no longer than need be."""
    with (
        dask.config.set({"shoal.worker.give-up-seconds": 1.0}),
        LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def turn(seconds=20):
    begun.set()
    deadline = time.monotonic() + seconds
    try:
        while time.monotonic() < deadline:
            pass
    except RunInterrupted:
        ended.set()
        raise


def stay_in_native_code():
    released.wait(20)  # which no exception reaches


def turn_once(seen):
    if not seen.exists():
        seen.touch()
        turn()
    return "the second time"


def inc(x):
    return x + 1


def test_a_task_that_runs_too_long_fails_and_its_thread_is_free_again(client):
    """Case C112."""
    error = client.submit(turn, timeout="100ms", pure=False).exception(timeout=10)
    assert isinstance(error, TaskTimeout)
    assert isinstance(error, TimeoutError)
    assert error.is_over
    assert client.submit(inc, 1, pure=False).result(timeout=5) == 2


def test_a_task_that_does_not_listen_fails_too_and_another_thread_runs_what_comes_next(client):
    future = client.submit(stay_in_native_code, timeout=0.1, pure=False)
    error = future.exception(timeout=10)
    assert isinstance(error, TaskTimeout)
    assert not error.is_over
    assert client.submit(inc, 1, pure=False).result(timeout=5) == 2


def test_a_timeout_is_a_failure_that_retries_are_for(client, tmp_path):
    future = client.submit(turn_once, tmp_path / "seen", timeout=0.3, retries=1, pure=False)
    assert future.result(timeout=10) == "the second time"


def test_tasks_of_a_graph_have_the_timeout_that_their_annotation_says(client):
    with dask.annotate(timeout=0.1):
        slow = dask.delayed(turn)(pure=False)
    with pytest.raises(TaskTimeout):
        dask.delayed(inc)(slow).compute()


def test_a_cancelled_task_that_may_be_ended_is_and_its_thread_is_free_again(client):
    future = client.submit(turn, timeout="5 minutes", pure=False)
    assert begun.wait(5)
    client.cancel(future)
    assert ended.wait(5)
    assert client.submit(inc, 1, pure=False).result(timeout=5) == 2
