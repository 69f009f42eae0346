"""Clusters of processes, as scripts and notebooks start them."""

import _thread
import os
import signal
import subprocess

import numpy as np
import pytest

from shoal import wait
from tests.cluster.faces import ask
from tests.programs import DROP_IN, printed_by_script

VERBATIM = """
from {module} import Client

client = Client(n_workers=2, threads_per_worker=1, processes={processes})
a = client.submit(lambda: list(range(100_000)), key="big-data")
b = client.submit(len, a, key="needs-big")
print(b.result())
holders = client.who_has([a, b])
print(tuple(holders["big-data"]) == tuple(holders["needs-big"]) != ())
print(len(client.scheduler_info()["workers"]))
print(client.run_on_scheduler(
    lambda dask_scheduler: dask_scheduler.tasks["needs-big"].state))
client.close()
"""


@pytest.mark.parametrize("processes", [False, True])
@pytest.mark.parametrize("module", ["shoal", "dask.distributed"])
def test_a_script_without_a_main_guard_runs_and_prints_nothing_else(module, processes, tmp_path):
    text = VERBATIM.format(module=module, processes=processes)
    printed = printed_by_script(text, tmp_path, path=(DROP_IN,))
    assert printed.split() == ["100000", "True", "2", "memory"]


MAIN_CLASSES = """
import dataclasses
from shoal import Client

@dataclasses.dataclass
class Point:
    x: int

def double(point):
    return Point(2 * point.x)

with Client(n_workers=1, threads_per_worker=1, processes=True) as client:
    future = client.submit(double, Point(2))
    again = client.submit(double, future)
    result = again.result()
    print(result, type(result) is Point)
"""


def test_classes_of_the_script_itself_travel_both_ways(tmp_path):
    assert printed_by_script(MAIN_CLASSES, tmp_path) == "Point(x=8) True\n"


def test_large_arrays_move_between_workers_and_to_the_client(play_in_processes):
    async def scenario(client):
        first, second = await ask(client.nthreads())
        big = client.submit(np.arange, 2_000_000, workers=[first])
        doubled = client.submit(lambda array: array * 2, big, workers=[second])
        result = await ask(doubled.result())
        assert result.dtype == np.int64
        assert int(result[-1]) == 2 * 1_999_999
        assert result.flags.writeable
        await ask(wait(doubled))
        holders = await ask(client.who_has([big]))
        assert sorted(holders[big.key]) == sorted([first, second])  # a copy was fetched

    play_in_processes(scenario)


def test_workers_are_processes_of_their_own_and_so_is_the_scheduler(play_in_processes):
    async def scenario(client):
        pids = set((await ask(client.run(os.getpid))).values())
        pids |= {await ask(client.run_on_scheduler(os.getpid)), os.getpid()}
        assert len(pids) == 4

    play_in_processes(scenario)


def test_the_worker_lives_on_after_tasks_that_end_oddly(play_in_processes):
    def exit_():
        raise SystemExit(5)

    def interrupt():
        raise KeyboardInterrupt

    def recurse():
        return recurse()

    def unpicklable():
        return (line for line in "abc")

    async def scenario(client):
        address, _ = await ask(client.nthreads())
        pid = (await ask(client.run(os.getpid)))[address]
        for function, error in (
            (exit_, SystemExit),
            (interrupt, KeyboardInterrupt),
            (recurse, RecursionError),
        ):
            failure = await ask(client.submit(function, workers=[address]).exception())
            assert isinstance(failure, error), function
        with pytest.raises(TypeError, match="generator"):
            await ask(client.submit(unpicklable, workers=[address]).result())
        assert await ask(client.submit(os.getpid, workers=[address]).result()) == pid

    play_in_processes(scenario)


def interrupt_ourselves():
    """As Ctrl-C does, and as `interrupt_main`, by which some watchdogs end a program."""
    os.kill(os.getpid(), signal.SIGINT)
    _thread.interrupt_main()
    return os.getpid()


def interrupt_another_program():
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as program:
        program.send_signal(signal.SIGINT)
        return program.wait(20)


def test_a_task_that_interrupts_its_own_process_does_not_end_the_worker(play_in_processes):
    async def scenario(client):
        address, _ = await ask(client.nthreads())
        pid = (await ask(client.run(os.getpid)))[address]
        for _ in range(2):
            future = client.submit(interrupt_ourselves, workers=[address], pure=False)
            assert await ask(future.result()) == pid
        interrupted = client.submit(interrupt_another_program, workers=[address])
        assert await ask(interrupted.result()) == -signal.SIGINT  # it has inherited nothing of it

    play_in_processes(scenario)


FORKS = """
import os, sys, warnings
from shoal import Client, LocalCluster, get_worker

warnings.simplefilter("ignore", DeprecationWarning)  # a fork of a process with threads

def leave_a_file():
    path = os.path.join(get_worker().local_directory, "file")
    open(path, "w").close()
    return path

cluster = LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None)
client = Client(cluster)
path = client.submit(leave_a_file).result()
waiting = client.submit(sum, [1, 2], workers=["nobody"], allow_other_workers=False)

def use_it():
    for use in (waiting.result, lambda: client.submit(sum, [1, 2])):
        try:
            use()
        except Exception as error:
            print(type(error).__name__, flush=True)

for end in (lambda: sys.exit(0), cluster.close, client.close, use_it):
    child = os.fork()
    if child == 0:
        end()
        os._exit(0)
    print(os.waitpid(child, 0)[1], os.path.exists(path))
    print(client.submit(sum, [1, 2], pure=False).result())
with Client(cluster.scheduler_address, set_as_default=False) as another:
    print(another.submit(sum, [1, 2], pure=False).result())
client.close()
cluster.close()
print(os.path.exists(path))
"""


def test_children_of_a_fork_end_at_once_and_leave_the_cluster_and_its_files_alone(tmp_path):
    assert printed_by_script(FORKS, tmp_path).split() == [
        *(["0", "True", "3"] * 3),
        *["FutureCancelledError", "ClientClosed", "0", "True", "3"],
        *["3", "False"],
    ]


FACTS = """
import dask
from shoal import Client, LocalCluster

def facts():
    import os
    import numpy
    return os.environ["OMP_NUM_THREADS"], hash("text"), os.getppid()

with dask.config.set({{"shoal.nanny.start-method": {method!r}}}):
    for _ in range(2):
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
            with Client(cluster) as client:
                print(*sorted({{str(found) for found in client.run(facts).values()}}), sep="\\n")
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_agree_on_hashes_and_their_libraries_start_no_threads(method, tmp_path):
    environ = {
        k: v for k, v in os.environ.items() if k not in ("OMP_NUM_THREADS", "PYTHONHASHSEED")
    }
    text = FACTS.format(method=method)
    lines = printed_by_script(text, tmp_path, environ=environ).splitlines()
    assert len(lines) == 2  # both workers of a cluster say the same: one parent, one hash
    assert lines[0] == lines[1]  # and so does the next cluster, whose parent is the same
    assert lines[0].startswith("('1', ")
