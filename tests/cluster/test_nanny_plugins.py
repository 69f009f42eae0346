"""Plugins of nannies, and what is done by them: environments, installations, workers anew."""

import os

import pytest

from shoal import Client, Environ, InstallPlugin, LocalCluster, NannyPlugin, WorkerPlugin
from tests.cluster.conftest import SMALL


class Noting(NannyPlugin):
    """Writes down what becomes of it; nannies of a LocalCluster are in our process."""

    def __init__(self, folder, *, fails=""):
        self.folder, self.fails = folder, fails

    async def setup(self, nanny):
        (self.folder / f"setup-{nanny.name}").touch()
        if self.fails == "setup":
            raise LookupError("not beside this worker")

    def teardown(self, nanny):
        (self.folder / f"teardown-{nanny.name}").touch()
        if self.fails == "teardown":
            raise LookupError("it does not go away")


class Anew(NannyPlugin):
    """Has workers started anew."""

    name = "anew"
    restart = True


class Set(WorkerPlugin):
    """Shows that a worker's own plugins come to its successor as well."""

    name = "set"

    def setup(self, worker):
        worker.is_set = True


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_nanny_has_its_plugins_as_long_as_it_lives(tmp_path):
    with LocalCluster(**SMALL) as cluster, Client(cluster) as client:
        told = client.register_plugin(Noting(tmp_path), name="noting")
        assert told == {worker: {"status": "OK"} for worker in client.run(os.getpid)}
        assert names(tmp_path) == ["setup-0", "setup-1"]
        cluster.scale(3)
        client.wait_for_workers(3)
        assert names(tmp_path) == ["setup-0", "setup-1", "setup-2"]
        client.unregister_worker_plugin("noting", nanny=True)
        assert len(names(tmp_path)) == 6
        with pytest.raises(ValueError, match="'noting'"):
            client.unregister_worker_plugin("noting", nanny=True)
        client.register_plugin(Noting(tmp_path), name="noting")
        for path in tmp_path.iterdir():
            path.unlink()
    assert names(tmp_path) == ["teardown-0", "teardown-1", "teardown-2"]


@pytest.mark.filterwarnings("ignore")
def test_its_errors_reach_whoever_registers_it(tmp_path):
    with LocalCluster(**SMALL, silence_logs=50) as cluster, Client(cluster) as client:
        with pytest.raises(LookupError, match="not beside this worker"):
            client.register_plugin(Noting(tmp_path, fails="setup"))
        client.register_plugin(Noting(tmp_path, fails="teardown"), name="late")
        with pytest.raises(LookupError, match="does not go away"):
            client.unregister_worker_plugin("late", nanny=True)


def test_an_environment_is_that_of_workers_to_come_as_well():
    with LocalCluster(**SMALL) as cluster, Client(cluster) as client:
        before = client.run(os.getpid)
        client.register_plugin(Set())
        client.register_plugin(Environ({"SHOAL_TEST": 17}))
        after = client.run(os.getpid)
        assert len(after) == 2
        assert not set(before.values()) & set(after.values())
        cluster.scale(3)
        client.wait_for_workers(3)
        assert set(client.run(os.getenv, "SHOAL_TEST").values()) == {"17"}
        assert len(client.run(os.getpid)) == 3
        assert set(client.run(lambda dask_worker: dask_worker.is_set).values()) == {True}


def test_what_runs_as_workers_are_started_anew_is_run_elsewhere():
    with LocalCluster(**SMALL) as cluster, Client(cluster) as client:
        futures = client.map(lambda x: x + 1, range(200))
        client.register_plugin(Anew())
        assert client.gather(futures) == list(range(1, 201))
        client.register_plugin(Anew())  # it is there already
        assert client.submit(abs, -1).result() == 1


def test_a_function_can_be_called_beside_the_workers():
    with LocalCluster(**SMALL) as cluster, Client(cluster) as client:
        told = client.run(pid_and_name, nanny=True)
        assert sorted(told) == sorted(client.run(os.getpid))
        assert sorted(told.values()) == [(os.getpid(), "0"), (os.getpid(), "1")]
        with pytest.raises(ZeroDivisionError):
            client.run(lambda: 1 / 0, nanny=True)
        one = next(iter(told))
        assert list(client.run(os.getpid, nanny=True, workers=[one])) == [one]
    with Client(processes=False, **SMALL) as client:
        assert client.run(os.getpid, nanny=True) == {}


def pid_and_name(dask_worker):
    return os.getpid(), dask_worker.name


def test_workers_without_a_nanny_are_left_out(tmp_path):
    with Client(processes=False, **SMALL) as client:
        assert client.register_plugin(Noting(tmp_path)) == {}
        assert names(tmp_path) == []


def test_an_installation_runs_in_the_scheduler_and_beside_each_worker(tmp_path):
    log = tmp_path / "installed"

    def install():
        with log.open("a") as opened:
            opened.write(f"{os.getpid()}\n")

    with LocalCluster(**SMALL) as cluster, Client(cluster) as client:
        before = client.run(os.getpid)
        client.register_plugin(InstallPlugin(install, restart_workers=True))
        pids = [int(line) for line in log.read_text().split()]
        assert pids.count(os.getpid()) == 2  # the nannies are here
        assert len(pids) == 3
        assert not set(before.values()) & set(client.run(os.getpid).values())


def test_an_installation_without_nannies_runs_in_the_workers(tmp_path):
    log = tmp_path / "installed"

    def install():
        with log.open("a") as opened:
            opened.write("x")

    with Client(processes=False, **SMALL) as client:
        client.register_plugin(InstallPlugin(install, restart_workers=False))
    assert log.read_text() == "xxx"


def test_an_installation_that_fails_is_registered_nowhere():
    def install():
        raise LookupError("no such package")

    with Client(processes=False, **SMALL) as client:
        with pytest.raises(LookupError, match="no such package"):
            client.register_plugin(InstallPlugin(install, restart_workers=False))
        scheduler = client.cluster.scheduler
        known = [scheduler.plugins, scheduler.worker_plugins, scheduler.nanny_plugins]
        assert not any(known)
