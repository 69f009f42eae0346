"""Tasks that secede and rejoin, that are to run elsewhere, and that name who runs them."""

import asyncio
import os
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import current_process, get_context
from os import getpid

import dask
import psutil
import pytest

from shoal import (
    Client,
    Event,
    LocalCluster,
    Lock,
    Queue,
    Reschedule,
    Scheduler,
    Semaphore,
    Variable,
    Worker,
    as_completed,
    get_client,
    get_worker,
    rejoin,
    secede,
    wait,
    worker_client,
)
from tests.cluster.conftest import SMALL
from tests.cluster.faces import ask

ONE = SMALL | {"n_workers": 1}


def long_run(started, end):
    secede()
    started.set()
    assert end.wait(20)
    return get_worker().get_current_task()


def send_back_at(address):
    if get_worker().address == address:
        raise Reschedule
    return get_worker().address


def refuse_once(seen):
    """Fails with an error if it is run a second time by the same worker."""
    if not seen.exists():
        seen.touch()
        raise Reschedule
    return "the second time"


def squared_inside(n, separate_thread=True):
    with worker_client(separate_thread=separate_thread) as client:
        return client.submit(pow, n, 2).result()


def is_in_pool_again():
    before = threading.current_thread() in get_worker().executor._threads
    secede()
    outside = threading.current_thread() in get_worker().executor._threads
    rejoin()
    return before, outside, threading.current_thread() in get_worker().executor._threads


async def squared_by_coroutine(n):
    secede()
    client = await get_client()
    squared = await client.submit(pow, n, 2)
    rejoin()
    return squared


def states_here(dask_worker):
    tasks = dask_worker.state.tasks
    return {key: task.state for key, task in tasks.items() if key in ("long", "other")}


async def long_running_is_told(client):
    started, end = Event("started"), Event("end")
    future = client.submit(long_run, started, end, key="long")
    other = client.submit(long_run, started, end, key="other")
    await ask(started.wait(timeout=10))
    shorts = client.map(abs, range(-9, 0))
    assert await ask(client.gather(shorts)) == list(range(9, 0, -1))
    states = await ask(client.run(states_here))
    assert sorted(key for here in states.values() for key in here) == ["long", "other"]
    assert {state for here in states.values() for state in here.values()} == {"long-running"}
    info = await ask(client.scheduler_info())
    counts = [worker["metrics"]["task_counts"] for worker in info["workers"].values()]
    assert [count.get("long-running") for count in counts] == [1, 1]
    assert all("executing" not in count for count in counts)
    await ask(end.set())
    assert await ask(client.gather([future, other])) == ["long", "other"]
    assert "long-running" in [record[2] for record in await ask(client.story("long"))]


def test_a_task_that_seceded_is_long_running_wherever_one_looks_and_others_run(play):
    play(long_running_is_told)


async def those_sent_back_run_elsewhere(client):
    info = await ask(client.scheduler_info())
    first, second = list(info["workers"])
    futures = client.map(send_back_at, [first] * 6, pure=False, retries=1)
    assert await ask(client.gather(futures)) == [second] * 6


def test_what_raises_reschedule_runs_elsewhere(play):
    play(those_sent_back_run_elsewhere)


def test_the_only_worker_runs_it_again_and_nothing_is_counted_as_failure(tmp_path):
    with LocalCluster(processes=False, **ONE) as cluster, Client(cluster) as client:
        assert client.submit(refuse_once, tmp_path / "seen", key="x").result() == "the second time"
        task = cluster.scheduler.tasks["x"]
        assert (task.suspicious, task.retries) == (0, 0)
        assert "erred" not in {record[2] for record in cluster.scheduler.story("x")}


@pytest.mark.parametrize("separate_thread", [True, False])
def test_a_worker_of_one_thread_runs_what_its_tasks_submit(separate_thread):
    with LocalCluster(**ONE) as cluster, Client(cluster) as client:
        futures = client.map(squared_inside, range(5), separate_thread=separate_thread)
        assert client.gather(futures) == [0, 1, 4, 9, 16]
        assert client.gather(client.map(squared_by_coroutine, range(3))) == [0, 1, 4]
        assert client.submit(is_in_pool_again).result() == (True, False, True)
        [worker] = {said["worker"] for _, said in client.get_events("worker-client")}
        assert worker in client.scheduler_info()["workers"]


WAITS = {
    "as_completed": lambda future, name: [f.result() for f in as_completed([future])] == [4],
    "wait": lambda future, name: not wait([future], timeout=15).not_done,
    "gather": lambda future, name: get_client().gather([future]) == [4],
    "result": lambda future, name: future.result() == 4,
    "get": lambda future, name: Queue(name).get(timeout=15) == 4,
    "event": lambda future, name: Event(name).wait(timeout=15),
    "variable": lambda future, name: Variable(name).get(timeout=15) == 4,
    "compute": lambda future, name: dask.delayed(pow)(2, 2).compute() == 4,
}


def wait_inside(how):
    """Waits for what another task, which it submits, does; by one thread for both."""
    name = f"waited for by {how}"
    return WAITS[how](get_client().submit(let_go_on, how, name), name)


def let_go_on(how, name):
    if how == "get":
        Queue(name).put(4)
    elif how == "event":
        Event(name).set()
    elif how == "variable":
        Variable(name).set(4)
    return 4


@pytest.mark.parametrize("how", sorted(WAITS))
def test_what_waits_inside_of_a_task_lets_others_have_its_thread(how, one):
    assert one.submit(wait_inside, how).result(timeout=20) is True


def hold_until_told(name, kind):
    held = Lock(name) if kind == "lock" else Semaphore(1, name)
    with held:
        Event(f"{name} is held").set()
        return Event(f"{name} may go").wait(timeout=15)


def let_go(name):
    Event(f"{name} may go").set()


@pytest.mark.parametrize("kind", ["lock", "semaphore"])
def test_what_waits_for_what_another_holds_lets_others_have_its_thread(kind, one):
    """Of three tasks on one thread, the last lets the first go on, for which the second waits."""
    holds, waits = [one.submit(hold_until_told, kind, kind, pure=False) for _ in range(2)]
    assert Event(f"{kind} is held", client=one).wait(timeout=10)
    one.submit(let_go, kind).result(timeout=20)
    assert one.gather([holds, waits]) == [True, True]


@pytest.fixture(scope="module")
def one():
    """A client of one worker with one thread, in a process."""
    with LocalCluster(**ONE) as cluster, Client(cluster) as client:
        yield client


def test_executors_of_a_worker_run_the_tasks_that_name_them(one):
    with dask.annotate(executor="offload"):
        assert "-offload" in one.submit(name_of_thread, pure=False).result(timeout=10)
        assert one.compute(dask.delayed(is_in_task)()).result(timeout=10) is True
    with dask.annotate(executor="default"):
        assert "-thread-" in one.submit(name_of_thread, pure=False).result(timeout=10)
    with dask.annotate(executor="bad"):
        future = one.submit(name_of_thread, pure=False)
    with pytest.raises(ValueError, match=r"Invalid executor 'bad'; expected one of: .*offload"):
        future.result(timeout=10)


def name_of_thread():
    return threading.current_thread().name


def is_in_task():
    return get_worker().get_current_task().startswith("is_in_task")


async def tasks_by_executors():
    pools = {"foo": ThreadPoolExecutor(1, "foo")}
    async with (
        Scheduler(dashboard_address=None) as scheduler,
        Worker(scheduler.address, nthreads=1, executor=pools) as worker,
        Client(scheduler.address, asynchronous=True) as client,
    ):
        with dask.annotate(executor="foo"):
            assert await client.submit(name_of_thread) == "foo_0"
        assert sorted(worker.executors) == ["actor", "default", "foo", "offload"]
        assert worker.executor.submit(pow, 2, 3).result(5) == 8
    with pytest.raises(RuntimeError, match="after shutdown"):
        pools["foo"].submit(int)


async def tasks_by_one_executor():
    with ThreadPoolExecutor(1, "all") as pool:
        async with (
            Scheduler(dashboard_address=None) as scheduler,
            Worker(scheduler.address, nthreads=1, executor=pool) as worker,
            Client(scheduler.address, asynchronous=True) as client,
        ):
            assert worker.executor is pool
            assert await client.submit(name_of_thread) == "all_0"
            assert await client.submit(squared_by_coroutine, 3) == 9


async def no_tasks_at_all():
    pool = ThreadPoolExecutor(1)
    async with (
        Scheduler(dashboard_address=None) as scheduler,
        Worker(scheduler.address, nthreads=1, executor=pool) as worker,
    ):
        assert pool.submit(pow, 2, 3).result(5) == 8
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(int)
    with pytest.raises(RuntimeError, match="after shutdown"):
        worker.executors["offload"].submit(int)


@pytest.mark.parametrize("scenario", [tasks_by_executors, tasks_by_one_executor, no_tasks_at_all])
def test_executors_that_a_worker_is_given_run_its_tasks(scenario):
    asyncio.run(scenario())


def have_processes(dask_worker):
    dask_worker.executors["apart"] = ProcessPoolExecutor(1, mp_context=get_context("spawn"))


def let_processes_go(dask_worker):
    dask_worker.executors.pop("apart").shutdown()


def test_a_pool_of_processes_runs_tasks_apart_and_what_they_raise_is_their_error(one):
    one.run(have_processes)
    with dask.annotate(executor="apart"):
        apart = one.submit(getpid, pure=False).result(timeout=20)
        with pytest.raises(ZeroDivisionError):
            one.submit(divmod, 1, 0).result(timeout=20)
    assert apart not in one.run(getpid).values()
    one.run(let_processes_go)


def is_daemonic():
    return current_process().daemon


def start_a_process():
    process = get_context("spawn").Process(target=int)
    process.start()
    process.join(20)
    return process.exitcode, process.daemon


def test_a_worker_says_that_it_is_daemonic_and_its_tasks_start_processes_all_the_same(one):
    assert one.submit(is_daemonic).result(timeout=20)
    assert one.submit(start_a_process).result(timeout=20) == (0, False)


def test_a_worker_that_shall_not_be_daemonic_does_not_say_so():
    with (
        dask.config.set({"distributed.worker.daemon": False}),
        LocalCluster(processes=True, **ONE) as cluster,
        Client(cluster) as client,
    ):
        assert not client.submit(is_daemonic).result(timeout=20)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
def test_a_fork_in_a_task_is_no_part_of_it_and_ends_with_the_worker():
    with LocalCluster(processes=True, **ONE) as cluster, Client(cluster) as client:
        pid, said = client.submit(fork_inside).result(timeout=20)
        assert said.startswith("NotInTask")
        assert psutil.pid_exists(pid)
    assert not psutil.pid_exists(pid)


def fork_inside():
    said = get_context("fork").SimpleQueue()
    process = get_context("fork").Process(target=secede_in_fork, args=(said,))
    process.start()
    return process.pid, said.get()


def secede_in_fork(said):
    try:
        secede()
        said.put("it seceded")
    except ValueError as error:
        said.put(repr(error))
    threading.Event().wait(60)
