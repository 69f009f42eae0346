"""A cluster on this machine, with real processes: how it starts, what it says, how it ends."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import dask
import psutil
import pytest

from shoal import Client, LocalCluster, Worker
from shoal.client.errors import WorkersLate
from shoal.comms import ListenError
from shoal.deploy.errors import ClusterClosed, UnknownOptions, WrongWith
from shoal.errors import UnsupportedOption
from shoal.nanny.errors import NotPlain, ProcessDied
from tests.programs import STRICT, printed_by_script

SCRIPT = """
import json, sys
from shoal import LocalCluster
cluster = LocalCluster(n_workers=1, threads_per_worker=1, processes=True)
print(json.dumps([cluster.scheduler.pid, cluster.workers[0].pid]), flush=True)
how = sys.stdin.readline().strip()
if how == "exit":
    sys.exit(0)
sys.stdin.readline()
"""


def test_scheduler_and_workers_have_processes_of_their_own() -> None:
    with LocalCluster(n_workers=2, threads_per_worker=3, processes=True) as cluster:
        pids = [cluster.scheduler.pid, *(w.pid for w in cluster.workers.values())]
        assert len({os.getpid(), *pids}) == 4
        assert {child.pid for child in psutil.Process().children(recursive=True)} >= set(pids)
        assert set(cluster.workers) == {0, 1}
        facts = cluster.scheduler_info
        assert facts["address"] == cluster.scheduler_address
        assert facts["total_threads"] == 6
        assert {w["pid"] for w in facts["workers"].values()} == set(pids[1:])
        assert cluster.plan == cluster.requested == cluster.observed == {0, 1}
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert cluster.status == "closed"


def test_a_token_stands_in_no_command_line_and_no_environment() -> None:
    with LocalCluster(n_workers=1, processes=True) as cluster:
        secret = cluster.token.decode()
        for pid in (cluster.scheduler.pid, cluster.workers[0].pid):
            process = psutil.Process(pid)
            assert secret not in " ".join(process.cmdline())
            assert secret not in str(process.environ())
            assert secret not in repr(cluster) + cluster._repr_html_()


LOOK = """
import sys
from shoal import Client
heavy = {"numpy", "pandas", "dask.array", "tornado", "pytest"}
with Client(n_workers=1, threads_per_worker=1, processes=True) as client:
    print(client.submit(lambda: sorted(heavy & set(sys.modules))).result())
    print(client.submit(lambda: sys.modules["__main__"].__dict__.get("__file__")).result())
"""


def test_workers_start_without_heavy_imports_and_without_the_users_main(tmp_path: Path) -> None:
    """Of a program, that is, which has not imported them itself."""
    assert printed_by_script(LOOK, tmp_path) == "[]\nNone\n"


def test_workers_know_the_configuration_and_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "module_of_the_user.py").write_text("def answer():\n    return 42\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import module_of_the_user  # type: ignore[import-not-found]

    with (
        dask.config.set({"answer.of.the-user": [1, "two"]}),
        Client(n_workers=1, threads_per_worker=1, processes=True) as client,
    ):
        found = client.submit(lambda: dask.config.get("answer.of.the-user")).result()
        assert found == [1, "two"]
        assert client.submit(module_of_the_user.answer).result() == 42
        assert client.submit(sys.getswitchinterval).result() == pytest.approx(0.001)


def input_of_nobody() -> str:
    """All that standard input holds."""
    return open(0, closefd=False).read()


def test_tasks_find_an_empty_stdin_and_print_to_the_same_terminal(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with Client(n_workers=1, threads_per_worker=1, processes=True) as client:
        assert client.submit(input_of_nobody).result() == ""
        client.submit(lambda: print("said by a task", flush=True)).result()
    out, err = capfd.readouterr()
    assert out == "said by a task\n"
    assert err == ""


def test_no_processes_means_one_loop_and_no_sockets() -> None:
    before = psutil.Process().children()
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=False) as cluster:
        assert cluster.scheduler_address.startswith("inproc://")
        assert psutil.Process().children() == before
        assert len(cluster.scheduler.workers) == 2
        with Client(cluster) as client:
            assert client.submit(os.getpid).result() == os.getpid()


def test_a_cluster_grows_and_shrinks() -> None:
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, memory_limit="100MB"
    ) as cluster:
        cluster.scale(3)
        cluster.wait_for_workers(3, timeout=10)
        assert cluster.plan == {0, 1, 2}
        cluster.scale_down([0, cluster.workers[2].address])
        assert cluster.plan == {1}
        cluster.scale(cores=2)
        cluster.wait_for_workers(2, timeout=10)
        assert cluster.plan == {1, 3}  # a name is never used twice
        cluster.scale(memory="250MB")
        cluster.wait_for_workers(3, timeout=10)
        assert cluster.plan == {1, 3, 4}


def test_processes_are_started_and_ended_to_scale() -> None:
    async def story() -> None:
        async with LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, asynchronous=True
        ) as cluster:
            first = cluster.workers[0].pid
            await cluster.scale(2)
            assert cluster.scheduler_info["n_workers"] == 2
            await cluster.scale_down([0])
            assert not psutil.pid_exists(first)
            assert list(cluster.workers) == [1]
            await cluster.wait_for_workers(1, timeout=5)

    asyncio.run(story())


def test_workers_that_do_not_come_are_waited_for_no_longer_than_asked() -> None:
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False) as cluster:
        with pytest.raises(WorkersLate, match="Only 1/3 workers"):
            cluster.wait_for_workers(3, timeout=0.05)
        for wrong in (0, -1, 1.5, "2", True):
            with pytest.raises(ValueError, match="positive integer"):
                cluster.wait_for_workers(wrong)  # type: ignore[arg-type]


async def enter(cluster: LocalCluster) -> None:
    async with cluster:
        raise AssertionError("it was entered")


def test_each_kind_of_with_names_the_other() -> None:
    with (
        LocalCluster(n_workers=0, processes=False) as cluster,
        pytest.raises(WrongWith, match="please use 'with'"),
    ):
        asyncio.run(enter(cluster))
    waiting = LocalCluster(n_workers=0, processes=False, asynchronous=True)
    with pytest.raises(WrongWith, match="please use 'async with'"), waiting:
        raise AssertionError("it was entered")


def test_an_asynchronous_cluster_lives_on_its_users_loop() -> None:
    async def story() -> None:
        cluster = await LocalCluster(n_workers=1, processes=False, asynchronous=True)
        assert cluster.loop is asyncio.get_running_loop()
        async with Client(cluster, asynchronous=True) as client:
            assert await client.submit(sum, [1, 2]) == 3
        await cluster.close()
        await cluster.close()
        assert cluster.status == "closed"

    asyncio.run(story())


def test_a_closed_cluster_says_so() -> None:
    cluster = LocalCluster(n_workers=0, processes=False)
    cluster.close()
    cluster.close()
    with pytest.raises(ClusterClosed, match="is closed"):
        cluster.scale(1)
    with pytest.raises(ClusterClosed):
        cluster.wait_for_workers(1)
    with pytest.raises(RuntimeError, match="closed"):
        Client(cluster)


def test_a_process_that_dies_at_its_start_is_an_error_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "no number")
    with pytest.raises(ProcessDied, match="exit code 1") as caught:
        LocalCluster(n_workers=2, processes=True)
    assert caught.value.what == "the scheduler"
    assert "PYTHONHASHSEED must be" in caught.value.last_lines


def test_a_worker_that_can_not_start_ends_the_cluster_with_its_reason() -> None:
    with pytest.raises(ProcessDied, match="not iterable") as caught:
        LocalCluster(n_workers=1, resources=3, processes=True)
    assert caught.value.what == "worker 0"


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"n_workers": "two"}, TypeError, "n_workers is a whole number from 0 on, not 'two'"),
        ({"n_workers": 1.5}, TypeError, "n_workers is a whole number from 0 on, not 1.5"),
        ({"n_workers": -1}, ValueError, "n_workers is a whole number from 0 on, not -1"),
        ({"threads_per_worker": "2"}, TypeError, "threads_per_worker is a whole .* 1 on, not '2'"),
        ({"threads_per_worker": 0}, ValueError, "threads_per_worker is a whole .* 1 on, not 0"),
        ({"processes": "no"}, TypeError, "processes is True, False or None, not 'no'"),
    ],
)
def test_an_argument_that_makes_no_sense_is_told_with_what_is_allowed(
    options: dict[str, Any], kind: type[Exception], words: str
) -> None:
    for make in (LocalCluster, Client):
        with pytest.raises(kind, match=words):
            make(**options)


BEGAN, GO = threading.Event(), threading.Event()


def stay() -> None:
    BEGAN.set()
    GO.wait(30)


def test_a_task_that_goes_on_does_not_keep_a_cluster_of_threads_open(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, processes=False)
    try:
        with Client(cluster) as client:
            kept = client.submit(stay)
            assert BEGAN.wait(10)
            cluster.close(timeout=0.2)
            assert kept.status == "cancelled"
        assert cluster.status == "closed"
        assert cluster.scheduler.status == "closed"
        assert "they are left behind" in caplog.text
    finally:
        GO.set()


def test_a_worker_that_does_not_listen_is_ended_all_the_same() -> None:
    cluster = LocalCluster(n_workers=1, threads_per_worker=1, processes=True)
    os.kill(cluster.workers[0].pid, signal.SIGSTOP)
    cluster.close(timeout=0.1)
    assert cluster.status == "closed"


def test_unknown_options_are_named() -> None:
    with pytest.raises(UnknownOptions, match=r"n_wokers.*Did you mean n_workers"):
        LocalCluster(n_wokers=1)
    with pytest.raises(TypeError, match="fruit"):
        LocalCluster(fruit="apple")


@pytest.mark.parametrize(
    "options",
    [
        {"security": True},
        {"protocol": "tls://"},
        {"protocol": "inproc://", "processes": True},
        {"services": {"a": 1}},
        {"env": {"A": "b"}},
        {"worker_class": object, "processes": True},
    ],
)
def test_what_is_not_supported_is_refused_and_not_ignored(options: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedOption):
        LocalCluster(n_workers=0, **options)


def test_objects_can_not_be_options_of_processes() -> None:
    with pytest.raises(NotPlain, match="resources"):
        LocalCluster(n_workers=1, processes=True, resources={"GPU": object()})


def test_options_of_old_are_understood() -> None:
    with pytest.warns(DeprecationWarning, match="host="):
        cluster = LocalCluster(n_workers=0, ip="127.0.0.1", processes=False)
    cluster.close()
    with pytest.warns(UserWarning, match="starts when it is made"):
        cluster = LocalCluster(n_workers=0, start=False, processes=False)
    cluster.close()


def test_a_port_may_be_asked_for_and_may_be_taken() -> None:
    with LocalCluster(n_workers=0, processes=False, scheduler_port=0, protocol="tcp") as cluster:
        port = int(cluster.scheduler_address.rpartition(":")[2])
        assert cluster.scheduler_address == f"tcp://127.0.0.1:{port}"
        for processes in (True, False):
            with pytest.raises(ListenError, match=str(port)):
                LocalCluster(n_workers=0, processes=processes, scheduler_port=port)


@pytest.mark.parametrize("asynchronous", [True, False])
def test_no_client_is_made_for_a_closed_cluster(asynchronous: bool) -> None:
    cluster = LocalCluster(n_workers=0, processes=False, dashboard_address=None)
    cluster.close()
    with pytest.raises(RuntimeError, match="already closed or closing Cluster"):
        Client(cluster, asynchronous=asynchronous)


@pytest.mark.parametrize(
    "options", [{"host": "tcp://127.0.0.1"}, {"interface": "lo"}, {"host": "", "protocol": "tcp"}]
)
def test_where_it_listens_may_be_said_in_several_ways(options: dict[str, Any]) -> None:
    with LocalCluster(n_workers=0, processes=False, dashboard_address=None, **options) as cluster:
        assert cluster.scheduler_address.startswith("tcp://")
        with Client(f"tcp://127.0.0.1:{cluster.scheduler.port}", security=cluster.token) as client:
            assert client.nthreads() == {}


@pytest.mark.parametrize("processes", [True, False])
def test_a_scheduler_refuses_what_it_is_told_to_refuse(processes: bool) -> None:
    options: dict[str, Any] = {"processes": processes, "dashboard_address": None, "n_workers": 0}
    with (
        LocalCluster(blocked_handlers=["run_function"], **options) as cluster,
        Client(cluster) as client,
        pytest.raises(ValueError, match=r"'run_function' handler .* disallowed in Scheduler"),
    ):
        client.run_on_scheduler(os.getpid)


def test_workers_refuse_what_they_are_told_to_refuse() -> None:
    with dask.config.set({"distributed.worker.blocked-handlers": ["run"]}):
        cluster = LocalCluster(n_workers=1, processes=False, dashboard_address=None)
    with cluster, Client(cluster) as client:
        with pytest.raises(ValueError, match="'run' handler has been explicitly disallowed"):
            client.run(os.getpid)
        assert client.submit(abs, -1).result() == 1


def test_a_cluster_shows_what_it_has_and_what_its_workers_are_made_of() -> None:
    options: dict[str, Any] = {"processes": False, "dashboard_address": None}
    with LocalCluster(n_workers=2, threads_per_worker=2, memory_limit="2GiB", **options) as cluster:
        assert repr(cluster).endswith("workers=2, threads=4, memory=4.00 GiB)")
        assert list(cluster.worker_spec) == [0, 1]
        assert cluster.worker_spec[0]["cls"] is Worker
        assert cluster.worker_spec[0]["options"]["nthreads"] == 2
        assert list(cluster.new_worker_spec()) == [2]
    with LocalCluster(n_workers=1, threads_per_worker=2, memory_limit=0, **options) as cluster:
        assert repr(cluster).endswith("workers=1, threads=2)")


def test_a_blocking_cluster_is_asynchronous_on_its_own_loop() -> None:
    with LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster:

        async def look() -> bool:
            return cluster.asynchronous

        assert cluster.sync(look)
        assert not cluster.asynchronous
        assert cluster.scheduler.loop is cluster.loop


def test_a_cluster_that_takes_longer_to_start_than_it_may_is_late() -> None:
    with pytest.raises(TimeoutError):
        LocalCluster(n_workers=1, death_timeout=1e-9, dashboard_address=None)


def test_a_cluster_gives_the_client_that_is_there_or_makes_one() -> None:
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False) as cluster,
        cluster.get_client() as client,
    ):
        assert client.submit(sum, [1, 2]).result() == 3
        assert cluster.get_client() is client


def test_a_forgotten_cluster_warns_and_leaves_nothing() -> None:
    clusters = [LocalCluster(n_workers=1, threads_per_worker=1, processes=True)]
    pids = [clusters[0].scheduler.pid, clusters[0].workers[0].pid]
    with pytest.warns(ResourceWarning, match="unclosed cluster"):
        clusters.clear()
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_ctrl_c_while_it_starts_leaves_nothing() -> None:
    """The signal comes as soon as the first process exists."""
    before = descendants()
    ended = threading.Event()

    def interrupt() -> None:
        while descendants() == before and not ended.is_set():
            continue
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            LocalCluster(n_workers=2, threads_per_worker=1, processes=True).close()
    finally:
        ended.set()
        thread.join()


def descendants() -> set[int]:
    """Process ids of all that we have started, directly or not."""
    return {process.pid for process in psutil.Process().children(recursive=True)}


def start_script() -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """A program with a cluster, and the cluster's processes."""
    script = subprocess.Popen(
        [*STRICT, "-c", SCRIPT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert script.stdout is not None
    pids = json.loads(script.stdout.readline())
    return script, [psutil.Process(pid) for pid in pids]


def say_exit(script: subprocess.Popen[str]) -> None:
    """Let the program end as programs do."""
    assert script.stdin is not None
    script.stdin.write("exit\n")
    script.stdin.flush()


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (say_exit, ""),
        (subprocess.Popen.kill, ""),
        (lambda script: script.send_signal(signal.SIGINT), "KeyboardInterrupt\n"),
    ],
    ids=["exit", "kill", "ctrl-c"],
)
def test_processes_end_with_their_parent(
    end: Callable[[subprocess.Popen[str]], None], words: str
) -> None:
    script, processes = start_script()
    end(script)
    _, alive = psutil.wait_procs(processes, timeout=10)
    _, stderr = script.communicate(timeout=10)
    assert not alive
    assert stderr.endswith(words)
    if not words:
        assert stderr == ""


def test_a_coroutine_may_not_wait_for_a_blocking_cluster_of_the_same_loop() -> None:
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False) as cluster:

        async def ask() -> Coroutine[Any, Any, None]:
            return cluster.wait_for_workers(1)

        assert cluster.sync(lambda: _awaited(ask)) is None


async def _awaited(ask: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return await (await ask())


@pytest.mark.parametrize("n", [-1, "two", 1.5])
def test_a_number_of_workers_that_makes_no_sense_is_refused_and_changes_nothing(n):
    with LocalCluster(n_workers=1, processes=False) as cluster:
        with pytest.raises((TypeError, ValueError), match="n"):
            cluster.scale(n)
        assert len(cluster.workers) == 1
