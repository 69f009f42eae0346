"""`shoal spec`, by all its names, and clusters of subprocesses."""

import contextlib
import json
import os
import signal
import socket

import pytest

from shoal import Client
from shoal.deploy.errors import SchedulerNotStarted
from shoal.deploy.subprocess import SubprocessCluster
from shoal.testing.clusters import gen_test
from tests.cluster.commands import FACES, Command, environment


@pytest.fixture
def start(tmp_path):
    """Start a command in a home of its own; what still runs at the end is killed."""
    with contextlib.ExitStack() as stack:

        def started(*arguments, face="shoal", **variables):
            command = Command(FACES[face], arguments, tmp_path, **variables)
            stack.callback(command.kill)
            return command

        yield started


def test_services_of_a_spec_serve_and_go_quietly(start, tmp_path):
    scheduler = {"cls": "dask.distributed.Scheduler", "opts": {"host": "127.0.0.1"}}
    workers = {name: {"cls": "shoal.Worker", "opts": {"nthreads": 1}} for name in ("a", "b")}
    file = tmp_path / "workers.yaml"
    file.write_text(json.dumps(workers))
    first = start("spec", "--spec", json.dumps(scheduler), face="dask")
    address = first.line()
    second = start("spec", address, "--spec-file", str(file), face="module")
    assert second.line().startswith("tcp://127.0.0.1:")
    with environment(tmp_path), Client(address) as client:
        client.wait_for_workers(2, timeout=20)
        assert client.submit(sum, [1, 2]).result() == 3
        names = {w["name"] for w in client.scheduler_info()["workers"].values()}
        assert names == {"a", "b"}
    for command in (second, first):
        command.signal(signal.SIGTERM)
        assert command.end() == (0, "")


def test_workers_of_a_spec_wait_for_their_scheduler(start, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    workers = {"cls": "shoal.Worker", "opts": {"nthreads": 1, "nanny": False}}
    worker = start("spec", f"tcp://127.0.0.1:{port}", "--spec", json.dumps(workers))
    with socket.create_server(("127.0.0.1", port)) as server:
        server.settimeout(20)
        server.accept()[0].close()  # it looks for its scheduler, and finds none
    scheduler = {"cls": "shoal.Scheduler", "opts": {"host": "127.0.0.1", "port": port}}
    assert start("spec", "--spec", json.dumps(scheduler)).line().endswith(f":{port}")
    assert worker.line().startswith("tcp://127.0.0.1:")


def test_a_cluster_of_subprocesses_follows_its_size():
    with (
        SubprocessCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=":0", worker_kwargs={"port": 0}
        ) as cluster,
        Client(cluster) as client,
    ):
        assert repr(cluster).startswith("SpecCluster(SubprocessCluster, 'tcp://127.0.0.1:")
        assert ", workers=1, threads=1, memory=" in repr(cluster)
        pid = client.submit(os.getpid, pure=False).result()
        assert pid != os.getpid()
        assert len(cluster.observed) == 1
        cluster.scale(2)
        client.wait_for_workers(2, timeout=20)
        cluster.sync(cluster._correct_state)
        assert list(cluster.workers) == [0, 1]
        cluster.scale(1)
        cluster.sync(cluster._correct_state)
        assert list(cluster.workers) == [0]
        assert list(client.run(os.getpid).values()) == [pid]


@gen_test()
async def test_a_scheduler_that_can_not_start_in_a_subprocess_says_why():
    with pytest.raises(RuntimeError, match=r"Scheduler failed to start: .*port") as caught:
        await SubprocessCluster(n_workers=0, scheduler_port=-1, asynchronous=True)
    assert isinstance(caught.value.__cause__, SchedulerNotStarted)


def test_a_worker_of_a_spec_that_is_given_up_is_a_failure_of_the_command(start, tmp_path):
    scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0")
    address = scheduler.line()
    kept = {"cls": "shoal.Nanny", "opts": {"nthreads": 1}}
    settings = {"DASK_SHOAL__NANNY__DEATHS_MAX": "1"}
    command = start("spec", address, "--spec", json.dumps(kept), **settings)
    command.line()
    with environment(tmp_path), Client(address) as client:
        dying = client.submit(os._exit, 3)
        code, said = command.end()
        assert dying.status == "pending"
    assert code == 1
    assert "exit code 3" in said
