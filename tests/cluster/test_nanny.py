"""A nanny made by hand: its worker lives in a process of its own, and is started again."""

import asyncio
import inspect
import logging
import os
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import dask
import psutil
import pytest

from shoal import Client, LocalCluster, Nanny, Scheduler, Worker, get_worker
from shoal.comms import AuthenticationError
from shoal.comms.scheduler_file import write_scheduler_file
from shoal.errors import KilledWorker, UnknownInterface, UnsupportedOption
from shoal.nanny.errors import (
    CrashLoop,
    NotPlain,
    ProcessDied,
    StartAbandoned,
    UnknownOption,
)
from shoal.observe.errors import NoSchedulerGiven

Scenario = Callable[[Any, Any], Awaitable[None]]


def play(scenario: Scenario) -> None:
    """Play `scenario` with a scheduler in this process, and a client."""

    async def story() -> None:
        async with Scheduler() as scheduler, Client(scheduler.address, asynchronous=True) as client:
            await scenario(scheduler, client)

    asyncio.run(story())


def test_its_worker_has_a_process_of_its_own_and_ends_with_it() -> None:
    async def scenario(scheduler: Any, client: Any) -> None:
        async with Nanny(scheduler.address, nthreads=3, name="alice", memory_limit="1 GB") as nanny:
            assert nanny.status == "running"
            assert nanny.is_alive()
            assert nanny.process.is_alive()
            assert nanny.pid == nanny.process.pid != os.getpid()
            assert await client.submit(os.getpid) == nanny.pid
            assert await client.submit(lambda: get_worker().name) == "alice"
            assert await client.nthreads() == {nanny.worker_address: 3}
            assert nanny.memory_limit == 10**9
            pid = nanny.pid
        assert nanny.status == "closed"
        assert not nanny.is_alive()
        assert not psutil.pid_exists(pid)
        await nanny.close()
        await nanny.finished()
        assert await client.nthreads() == {}

    play(scenario)


def test_a_worker_that_dies_is_started_again_and_its_work_done() -> None:
    async def scenario(scheduler: Any, client: Any) -> None:
        async with Nanny(scheduler.address, nthreads=1) as nanny:
            first = nanny.pid
            nanny.process.kill()
            second = await client.submit(os.getpid)
            assert second not in (first, os.getpid())
            assert nanny.pid == second

    play(scenario)


def test_it_can_be_ended_started_and_restarted() -> None:
    async def scenario(scheduler: Any, client: Any) -> None:
        async with Nanny(scheduler.address, nthreads=1) as nanny:
            await nanny.instantiate()  # it is there already
            first = nanny.pid
            assert await nanny.restart() == "OK"
            assert await client.submit(os.getpid) == nanny.pid != first
            await nanny.kill()
            assert nanny.status == "stopped"
            assert not nanny.is_alive()
            assert await client.nthreads() == {}
            assert await nanny.instantiate() == "running"
            assert await client.submit(os.getpid, pure=False) == nanny.pid

    play(scenario)


def test_a_worker_that_shall_close_gracefully_is_not_started_again() -> None:
    async def scenario(scheduler: Any, client: Any) -> None:
        async with Nanny(scheduler.address, nthreads=1) as nanny:
            nanny.close_gracefully()
            assert nanny.status == "closing_gracefully"
            nanny.process.kill()
            await nanny.finished()
            assert not nanny.is_alive()
            assert nanny.status == "closed"

    play(scenario)


class Pauses(logging.Handler):
    """Sees in the log that a nanny pauses."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.seen = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if "Another in 60 s" in record.getMessage():
            self.seen.set()


def test_closing_gracefully_ends_a_start_and_a_pause_as_well() -> None:
    async def scenario(scheduler: Any, client: Any) -> None:
        nanny = Nanny(scheduler.address, nthreads=1, resources={"GPU": "many"})
        starting = asyncio.ensure_future(nanny.start())
        await asyncio.sleep(0)
        nanny.close_gracefully()
        with pytest.raises(StartAbandoned, match="closed before it was ready"):
            await starting
        await nanny.finished()
        assert nanny.status == "closed"

        pauses = Pauses()
        logging.getLogger("shoal.nanny").addHandler(pauses)
        async with Nanny(scheduler.address, nthreads=1) as nanny:
            killer = client.submit(os._exit, 7)
            await pauses.seen.wait()
            logging.getLogger("shoal.nanny").removeHandler(pauses)
            nanny.close_gracefully()
            await nanny.finished()
            assert nanny.status == "closed"
            assert not nanny.is_alive()
            killer.release()

    with dask.config.set(
        {
            "shoal.nanny.restart-pause-seconds": "60s",
            "shoal.nanny.restart-pause-seconds-max": "60s",
            "distributed.scheduler.allowed-failures": 100,
        }
    ):
        play(scenario)


def test_without_its_scheduler_the_worker_ends_and_so_does_the_nanny(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        scheduler = await Scheduler()
        nanny = await Nanny(scheduler.address, nthreads=1)
        await scheduler.close()
        await nanny.finished()
        assert nanny.status == "closed"
        assert nanny.failure is None
        assert not nanny.is_alive()

    with caplog.at_level(logging.WARNING, "shoal"):
        asyncio.run(story())
    assert not caplog.records


def test_a_crash_loop_ends_the_nanny_with_its_cause() -> None:
    async def scenario(scheduler: Any, client: Any) -> None:
        async with Nanny(scheduler.address, nthreads=1, name="bob") as nanny:
            killer = client.submit(os.kill, 0, signal.SIGKILL)
            await nanny.finished()
            assert nanny.status == "failed"
            assert isinstance(nanny.failure, CrashLoop)
            assert len(nanny.failure.causes) == 3
            text = str(nanny.failure)
            assert text.startswith("The process of worker bob died 3 times in a row")
            assert "killed by SIGKILL (somebody ended it, or the system did because memory" in text
            assert "of its limit of" in text
            killer.release()
            await nanny.instantiate()
            assert nanny.failure is None

    with dask.config.set(
        {
            "shoal.nanny.deaths-max": 3,
            "shoal.nanny.restart-pause-seconds": "10ms",
            "distributed.scheduler.allowed-failures": 100,
        }
    ):
        play(scenario)


def test_a_worker_that_can_not_start_is_an_error_at_once() -> None:
    async def scenario(scheduler: Any, client: Any) -> None:
        nanny = Nanny(scheduler.address, nthreads=1, name="carol", resources={"GPU": "many"})
        with pytest.raises(
            ProcessDied, match="worker carol could not start: SettingError"
        ) as caught:
            await nanny
        assert nanny.status == "failed"
        assert nanny.failure is caught.value

    play(scenario)


def test_a_nanny_that_is_closed_while_it_starts_says_so() -> None:
    async def scenario(scheduler: Any, client: Any) -> None:
        nanny = Nanny(scheduler.address, nthreads=1)
        starting = asyncio.ensure_future(nanny.start())
        await asyncio.sleep(0)
        await nanny.close()
        with pytest.raises(StartAbandoned, match="closed before it was ready"):
            await starting
        assert not nanny.is_alive()

    play(scenario)


def test_variables_and_settings_are_given_to_the_worker_alone() -> None:
    async def scenario(scheduler: Any, client: Any) -> None:
        with dask.config.set({"distributed.nanny.environ": {"COLOUR": "red", "SIZE": 3}}):
            nanny = Nanny(
                scheduler.address,
                nthreads=1,
                env={"COLOUR": "blue"},
                config={"answer": {"of": "all"}},
                resources={"GPU": 2},
            )
            async with nanny:
                assert await client.submit(os.getenv, "COLOUR") == "blue"
                assert await client.submit(os.getenv, "SIZE") == "3"
                assert await client.submit(dask.config.get, "answer.of") == "all"
                facts = await client.scheduler_info()
                assert facts["workers"][nanny.worker_address]["resources"] == {"GPU": 2}
        assert "COLOUR" not in os.environ
        assert dask.config.get("answer", None) is None

    play(scenario)


def leave_a_file() -> str:
    """Where it is."""
    path = Path(get_worker().local_directory) / "left"
    path.write_text("behind")
    return str(path)


@pytest.mark.parametrize("end", [partial(os._exit, 0), partial(os.kill, 0, signal.SIGKILL)])
def test_what_a_worker_left_on_disk_as_it_died_is_removed(
    end: Callable[[], None], tmp_path: Path
) -> None:
    """An exit code that looks clean is none of a worker that did not say farewell; and where its
    files are is known after the setting has changed, too."""

    async def scenario(scheduler: Any, client: Any) -> None:
        with dask.config.set({"temporary-directory": str(tmp_path)}):
            nanny = Nanny(scheduler.address, nthreads=1)
            await nanny
        path = Path(await client.submit(leave_a_file))
        assert path.is_relative_to(tmp_path)
        with pytest.raises(KilledWorker):
            await client.submit(end)
        await nanny.close()
        assert not list(tmp_path.iterdir())

    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        play(scenario)


def test_a_scheduler_is_found_by_its_file_by_host_and_port_and_by_the_configuration(
    tmp_path: Path,
) -> None:
    async def scenario(scheduler: Any, client: Any) -> None:
        path = str(tmp_path / "scheduler.json")
        write_scheduler_file(path, {"address": scheduler.address}, scheduler.token)
        host, _, port = scheduler.address.removeprefix("tcp://").rpartition(":")
        with dask.config.set({"scheduler-address": scheduler.address}):
            nannies = [Nanny(), Nanny(scheduler_file=path), Nanny(host, int(port))]
        assert {nanny.scheduler_address for nanny in nannies} == {scheduler.address}
        async with Nanny(scheduler_file=path, nthreads=1):
            assert len(await client.nthreads()) == 1

    play(scenario)
    with pytest.raises(NoSchedulerGiven, match="Nanny\\('tcp://host:8786'\\)"):
        Nanny()
    with pytest.raises(NoSchedulerGiven, match="nowhere is not there"):
        Nanny(scheduler_file="nowhere")


def test_a_nanny_without_a_token_is_told_where_to_get_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))

    async def start() -> None:
        await Nanny("tcp://127.0.0.1:9", nthreads=1)

    with pytest.raises(AuthenticationError, match="holds no key"):
        asyncio.run(start())


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"services": {"a": 1}}, UnsupportedOption),
        ({"security": True}, UnsupportedOption),
        ({"interface": "nowhere0"}, UnknownInterface),
        ({"worker_class": "shoal.Nothing"}, ImportError),
        ({"fruit": "apple"}, UnknownOption),
        ({"nthreads": 0}, ValueError),
        ({"memory_limit": "much"}, ValueError),
    ],
)
def test_options_that_can_not_be_used_are_refused(
    options: dict[str, Any], kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        Nanny("tcp://127.0.0.1:9", **options)


def test_objects_can_not_be_options_of_a_process() -> None:
    with pytest.raises(NotPlain, match="name"):
        Nanny("tcp://127.0.0.1:9", name=object())


def test_every_option_that_a_nanny_passes_on_is_one_of_a_worker() -> None:
    passed = {"nthreads", "memory_limit", "name", "port", "host", "contact_address", "resources"}
    passed |= {"local_directory", "death_timeout", "validate"}
    assert passed <= set(inspect.signature(Worker).parameters)


class NamedWorker(Worker):
    """A worker that can be told from others."""

    said = "it is one of ours"


class OwnNanny(Nanny):
    """A nanny that can be told from others."""


def test_a_nanny_may_have_a_worker_of_a_class_of_its_own_in_a_cluster_of_nannies() -> None:
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, worker_class=OwnNanny, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        (nanny,) = cluster.workers.values()
        assert isinstance(nanny, OwnNanny)
        assert list(client.run(os.getpid).values()) == [nanny.pid]

        async def start() -> Nanny:
            return await Nanny(
                cluster.scheduler_address,
                nthreads=1,
                worker_class=NamedWorker,
                token=cluster.token,
                interface="lo",
            )

        other = cluster.sync(start)
        said = client.run(lambda dask_worker: getattr(dask_worker, "said", ""))
        assert said == {nanny.worker_address: "", other.worker_address: NamedWorker.said}
        cluster.sync(other.close)


def test_the_workers_of_a_cluster_may_be_asked_for_as_nannies() -> None:
    with LocalCluster(n_workers=1, threads_per_worker=1, worker_class=Nanny) as cluster:
        assert cluster.processes
        assert isinstance(cluster.workers[0], Nanny)
        assert cluster.workers[0].is_alive()
