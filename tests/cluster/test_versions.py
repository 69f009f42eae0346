"""Other versions of this package: they work with this one, or one clear message says why not.

Each is a copy of the sources with another number and other messages, in processes of its own.
"""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal import Client, LocalCluster
from shoal.observe.versions import VersionMismatchWarning
from shoal.version import VERSION
from tests.cluster.versions import (
    EARLIER_PATCH,
    HEARS_NOT_ALL,
    LATER_PATCH,
    OTHER_PROTOCOL,
    SAYS_THE_UNHEARD_OF,
    OtherVersion,
)
from tests.programs import path_with

HERE = {
    "protocol": "tcp://",
    "processes": False,
    "threads_per_worker": 1,
    "dashboard_address": None,
}

CLIENT = """
import asyncio, sys, warnings
from shoal import Client, wait
from shoal.observe.versions import VersionMismatchWarning

address, token = sys.argv[1], bytes.fromhex(sys.argv[2])


def told(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = function()
    assert [warning.category for warning in caught] == [VersionMismatchWarning], caught
    return made


async def awaited():
    async with Client(address, security=token, asynchronous=True) as client:
        return await client.gather(client.map(abs, range(-3, 0), pure=False))


with told(lambda: Client(address, security=token)) as client:
    futures = client.map(abs, range(-3, 0), pure=False)
    print(client.gather(futures))
    del futures
    print(client.submit(sum, client.scatter([1, 2])).result(timeout=10))
    client.nthreads()  # an answer that comes after what was let go of
    print(client.submit(abs, -4).result(timeout=10))
print(told(lambda: asyncio.run(awaited())))
"""

CLUSTER = """
import sys
from shoal import LocalCluster

if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        print(cluster.scheduler_address, cluster.token.hex(), flush=True)
        sys.stdin.read()
"""


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    """One that can be reached from other processes."""
    with LocalCluster(n_workers=1, **HERE) as started:
        yield started


@pytest.fixture
def scheduler_alone() -> Iterator[LocalCluster]:
    """The same without a worker."""
    with LocalCluster(n_workers=0, **HERE) as started:
        yield started


def run_client(version: OtherVersion, folder: Path, cluster: LocalCluster) -> tuple[int, str, str]:
    """How a client of that version ends, and what it says."""
    script = folder / "client.py"
    script.write_text(CLIENT)
    done = subprocess.run(
        [sys.executable, str(script), cluster.scheduler_address, cluster.token.hex()],
        capture_output=True,
        text=True,
        env={"PATH": "", "PYTHONPATH": path_with(version.build(folder / "built"))},
        timeout=30,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@contextlib.contextmanager
def cluster_of(version: OtherVersion, folder: Path) -> Iterator[tuple[str, bytes]]:
    """The address and the token of a cluster of that version."""
    script = folder / "cluster.py"
    script.write_text(CLUSTER)
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PATH": "", "PYTHONPATH": path_with(version.build(folder / "built"))},
    ) as process:
        assert process.stdout is not None
        address, token = process.stdout.readline().split()
        yield address, bytes.fromhex(token)
        _, said = process.communicate("", timeout=30)
        assert said == ""


@contextlib.contextmanager
def worker_of(
    version: OtherVersion, folder: Path, cluster: LocalCluster
) -> Iterator["subprocess.Popen[str]"]:
    """A worker of that version, which looks for the cluster's scheduler; ended at the end."""
    environ = {"PYTHONPATH": path_with(version.build(folder / "built")), "HOME": str(folder)}
    command = [sys.executable, "-m", "shoal", "worker", cluster.scheduler_address, "--no-nanny"]
    with subprocess.Popen(
        [*command, "--nthreads", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PATH": "", "SHOAL_TOKEN": cluster.token.decode(), **environ},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("version", [EARLIER_PATCH, LATER_PATCH], ids=lambda one: one.version)
def test_a_client_of_another_patch_version_works_and_says_what_differs(cluster, tmp_path, version):
    code, printed, said = run_client(version, tmp_path, cluster)
    assert (code, said) == (0, "")
    assert printed == "[3, 2, 1]\n3\n4\n[3, 2, 1]\n"


def test_a_cluster_of_another_patch_version_serves_and_it_is_said_what_differs(tmp_path):
    with cluster_of(LATER_PATCH, tmp_path) as (address, token):
        with pytest.warns(VersionMismatchWarning, match=f"shoal.*{VERSION}.*0.1.9"):
            client = Client(address, security=token)
        with client:
            assert client.submit(abs, -1).result(timeout=10) == 1
            assert client.gather(client.map(abs, range(-3, 0))) == [3, 2, 1]


@pytest.mark.parametrize(
    ("version", "clear"),
    [
        (OTHER_PROTOCOL, "the service 1, whoever connects to it 2. Install the same version"),
        (SAYS_THE_UNHEARD_OF, "does not understand: Invalid value 199"),
        (HEARS_NOT_ALL, "does not understand: Invalid value 21"),
    ],
    ids=lambda one: one.version if isinstance(one, OtherVersion) else "",
)
def test_a_client_that_can_not_be_understood_is_told_in_one_clear_message(
    cluster, tmp_path, caplog, version, clear
):
    code, _, said = run_client(version, tmp_path, cluster)
    assert code == 1
    last = said.splitlines()[-1]
    assert clear in last
    assert "nstall the same" in last
    assert said.count("Traceback") == 1
    with Client(cluster) as client:  # others go on as if nothing had been
        assert client.submit(abs, -1).result(timeout=10) == 1
    logged = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert all(clear in text for text in logged)
    assert bool(logged) is (version is not HEARS_NOT_ALL)  # which has only hung up


@pytest.mark.parametrize(
    ("version", "code", "clear"),
    [
        (LATER_PATCH, 0, ""),
        (OTHER_PROTOCOL, 1, "the service 1, whoever connects to it 2. Install the same version"),
        (SAYS_THE_UNHEARD_OF, 0, "did not accept this worker: not understood: A frame"),
        (HEARS_NOT_ALL, 0, "This worker does not understand its scheduler"),
    ],
    ids=lambda one: one.version if isinstance(one, OtherVersion) else "",
)
def test_a_worker_of_another_version_works_or_says_once_why_not(
    scheduler_alone, tmp_path, version, code, clear
):
    started = worker_of(version, tmp_path, scheduler_alone)
    with Client(scheduler_alone) as client, started as worker:
        if version is not OTHER_PROTOCOL:
            assert worker.stdout.readline().startswith("tcp://")  # it has registered
        future = client.submit(abs, -1, pure=False)
        if clear:
            said = worker.communicate(timeout=30)[1].strip()
            assert clear in said
            assert len(said.splitlines()) == 1
            assert "nstall the same" in said
        else:
            assert future.result(timeout=10) == 1
            worker.terminate()
            assert worker.communicate(timeout=30)[1].strip() == ""
        assert worker.returncode == code
