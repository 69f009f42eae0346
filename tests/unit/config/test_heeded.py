"""What each setting of `distributed` that is heeded here does, seen where it acts.

`ROWS` has one for each: a value, what is looked at, and what is seen then.  What a scheduler's
machine does with its numbers is told by its scenes.  `ELSEWHERE` are those whose effect is in
another process, and the tests that set them.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import struct
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final
from unittest import mock

import dask
import psutil
import pytest

from shoal import Client, LocalCluster, Scheduler, Worker, config
from shoal.client.options import connect_seconds
from shoal.comms import connect, listen
from shoal.comms.compressing import accepted_compressions, effort
from shoal.compat.log_settings import DEFAULTS, initialize_logging
from shoal.config.legacy import LEGACY
from shoal.config.unheeded import NOT_YET
from shoal.deploy.child import loop_factory
from shoal.errors import NoWorkerError
from shoal.nanny.document import worker_environ
from shoal.storage.scratch import Scratch
from shoal.storage.spill import Spill
from shoal.web.answers import counts_as_json
from shoal.worker.shell.introduction import spill_maker
from tests.unit.client.fake_scheduler import TOKEN, FakeScheduler
from tests.unit.comms.ends import DECODER, KEYS, End

Look = Callable[[], Awaitable[object]]

_OF_COPIES = "distributed.active_memory_manager"

ARGUED = """
import click

@click.command()
@click.argument("word")
def dask_setup(service, word): service.mark = word
"""
PRELOAD = "def dask_setup(service): service.mark = 'set up'"


def of_machine(field: str) -> Look:
    """A number that the scheduler's machine decides by."""

    async def look() -> object:
        return getattr(Scheduler(protocol="inproc").machine.state.settings, field)

    return look


def of_scheduler(field: str) -> Look:
    """What a scheduler that serves has under this name."""

    async def look() -> object:
        async with Scheduler() as scheduler:
            return _plain(getattr(scheduler, field))

    return look


def of_worker(*path: str) -> Look:
    """What a worker that serves has, name by name."""

    async def look() -> object:
        async with Scheduler(protocol="inproc") as scheduler, Worker(scheduler.address) as worker:
            found: Any = worker
            for name in path:
                found = getattr(found, name)
            return _plain(found)

    return look


async def of_memory(what: str) -> object:
    """At which part of its limit a worker does something, as far as it goes by its process."""
    async with (
        Scheduler(protocol="inproc") as scheduler,
        Worker(scheduler.address, memory_limit="1 GiB") as worker,
    ):
        assert worker.feed.memory is not None
        bounds = worker.feed.memory.thresholds
        found = {
            "pause": bounds.pause,
            "spill": bounds.spill,
            "incoming": worker.feed.machine.state.settings.incoming_bytes_max,
        }
        return (found[what] or 0) / bounds.limit


async def has_old_memory() -> object:
    async with (
        Scheduler(protocol="inproc") as scheduler,
        Worker(scheduler.address, memory_limit="1 GiB") as worker,
    ):
        assert worker.feed.memory is not None
        return worker.feed.memory.tell()["unmanaged_old_bytes"] > 0


async def of_target() -> object:
    """How much of its limit a worker's results may take in memory."""
    async with (
        Scheduler(protocol="inproc") as scheduler,
        Worker(scheduler.address, memory_limit="1 GiB") as worker,
    ):
        return worker.feed.spilling.target_bytes / 2**30


def spilled_by() -> Spill:
    """What a worker would write its results by."""
    return spill_maker(Scratch(None), config.read(config.Memory), None)()


def _plain(value: object) -> object:
    """Lists compare as tuples."""
    return tuple(value) if isinstance(value, list) else value


async def of_client(field: str) -> object:
    async with (
        Scheduler(protocol="inproc") as scheduler,
        Client(scheduler.address, asynchronous=True, set_as_default=False) as client,
    ):
        return getattr(client, field)


async def lifetimes() -> object:
    """Whether those of many workers are within the spread, and not all the same."""
    found = {Worker("inproc://nowhere").lifetime for _ in range(20)}
    return len(found) > 1 and all(5.0 <= (seconds or 0.0) <= 15.0 for seconds in found)


async def end_of_idle_scheduler() -> object:
    async with Scheduler(protocol="inproc") as scheduler:
        await asyncio.wait_for(scheduler.finished(), 10)
        return scheduler.status.value


async def error_without_workers() -> object:
    async with (
        Scheduler(protocol="inproc") as scheduler,
        Client(scheduler.address, asynchronous=True, set_as_default=False) as client,
    ):
        return type(await client.submit(len, "abc").exception(timeout=10))


async def workers_wanted() -> object:
    """For twenty tasks of half a second, which nobody runs."""
    async with (
        Scheduler(protocol="inproc") as scheduler,
        Worker(scheduler.address, nthreads=1, resources={"room": 0}),
        Client(scheduler.address, asynchronous=True, set_as_default=False) as client,
    ):
        texts = [str(number) for number in range(20)]
        futures = client.map(len, texts, resources={"room": 1})
        await client.scheduler_info()  # by now it has heard of them
        found = json.loads((await counts_as_json(scheduler)).body)["desired_workers"]
        del futures
        return found


async def warning_of_large_graph() -> object:
    async with (
        Scheduler(protocol="inproc") as scheduler,
        Client(scheduler.address, asynchronous=True, set_as_default=False) as client,
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            future = client.compute(dask.delayed(len)(bytes(200_000)))
            del future
        return ["large graph" in str(warning.message) for warning in caught]


async def policies_of_copies() -> object:
    async with Scheduler(protocol="inproc") as scheduler:
        return [repr(policy) for policy in scheduler.rounds.policies]


async def latest_logs() -> object:
    async with Scheduler(protocol="inproc") as scheduler:
        for number in range(5):
            logging.getLogger("shoal.scheduler").warning("number %d", number)
        return [text.rpartition(" - ")[2] for _, text in scheduler.recent_logs.latest(None)]


async def log_line() -> object:
    loggers = [logging.getLogger(name) for name in (*DEFAULTS, "tests.format")]
    before = [(each.level, each.handlers[:], each.propagate) for each in loggers]
    try:
        with mock.patch.object(logging.root, "handlers", []):
            initialize_logging({"logging": {"tests.format": "info"}})
        logger = loggers[-1]
        record = logger.makeRecord(logger.name, logging.INFO, "", 0, "hello", (), None)
        return logger.handlers[0].format(record)
    finally:
        for each, (each.level, each.handlers[:], each.propagate) in zip(
            loggers, before, strict=True
        ):
            each.setLevel(each.level)


async def many_heartbeats() -> object:
    async with FakeScheduler() as scheduler:
        client = Client(scheduler.address, security=TOKEN, asynchronous=True, set_as_default=False)
        async with client:
            await scheduler.took(10)
        return "heard"


async def connection_options() -> object:
    """TCP's user time-out (ms) at both ends of a connection over a network's protocol."""
    accepted: list[End] = []
    sock = socket.create_server(("127.0.0.1", 0))
    listener = await listen(
        "", KEYS, lambda role: DECODER, lambda c: accepted.append(End(c)), sock=sock, shortcut=False
    )
    connection = await connect(listener.address, KEYS, "client", DECODER, timeout_seconds=10)
    port = sock.getsockname()[1]
    found = set()
    for one in psutil.Process().net_connections("tcp"):
        if one.status == psutil.CONN_ESTABLISHED and port in (one.laddr.port, one.raddr.port):
            with socket.socket(fileno=socket.dup(one.fd)) as end:
                found.add(end.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT))
    connection.abort()
    listener.close()
    await listener.wait_closed()
    return found


async def backlog() -> object:
    """As the system has it, of a listening socket: the seventh of the numbers of `tcp_info`."""
    sock = socket.create_server(("127.0.0.1", 0))
    listener = await listen("", KEYS, lambda role: DECODER, End, sock=sock, shortcut=False)
    facts = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    listener.close()
    return struct.unpack_from("I", facts, 8 + 5 * 4)[0]


async def marks(service: str) -> object:
    async with Scheduler(protocol="inproc") as scheduler:
        if service == "scheduler":
            return getattr(scheduler, "mark", None)
        if service == "worker":
            async with Worker(scheduler.address) as worker:
                return getattr(worker, "mark", None)
        async with Client(scheduler.address, asynchronous=True, set_as_default=False) as client:
            return getattr(client, "mark", None)


def at_once(function: Callable[..., object], *args: Any) -> Look:
    """What a plain function returns."""

    async def look() -> object:
        return function(*args)

    return look


def of_adaptive(name: str) -> Look:
    """As a cluster adapts that is told nothing else."""

    async def look() -> object:
        async with LocalCluster(
            n_workers=0, processes=False, asynchronous=True, dashboard_address=None
        ) as cluster:
            return getattr(cluster.adapt(), name)

    return look


ROWS: Final[dict[str, tuple[Any, Look, object]]] = {
    "adaptive.interval": ("20ms", of_adaptive("interval"), 0.02),
    "adaptive.maximum": (3, of_adaptive("maximum"), 3),
    "adaptive.minimum": (1, of_adaptive("minimum"), 1),
    "adaptive.wait-count": (5, of_adaptive("wait_count"), 5),
    "adaptive.target-duration": ("1s", workers_wanted, 10),
    "admin.event-loop": ("asyncio", at_once(loop_factory), None),
    "admin.large-graph-warning-threshold": ("100kB", warning_of_large_graph, [True]),
    "admin.log-format": ("<%(message)s>", log_line, "<hello>"),
    "admin.log-length": (2, latest_logs, ["number 4", "number 3"]),
    "admin.low-level-log-length": (5, of_machine("topic_events_max"), 5),
    "client.direct-to-workers": (False, lambda: of_client("direct_to_workers"), False),
    "client.heartbeat": ("20ms", many_heartbeats, "heard"),
    "client.preload": ([PRELOAD], lambda: marks("client"), "set up"),
    "comm.compression": ("zlib", at_once(accepted_compressions), ["zlib"]),
    "comm.socket-backlog": (7, backlog, 7),
    "comm.timeouts.connect": ("100ms", at_once(connect_seconds, None), 0.1),
    "comm.timeouts.tcp": ("7s", connection_options, {7000}),
    "comm.zstd.level": (9, at_once(lambda: effort().zstd_level), 9),
    "comm.zstd.threads": (2, at_once(lambda: effort().zstd_threads), 2),
    "nanny.pre-spawn-environ": (
        {"SHOAL_OF_THE_TABLE": 7},
        at_once(lambda: worker_environ().get("SHOAL_OF_THE_TABLE")),
        "7",
    ),
    "p2p.storage.disk": (False, of_worker("shuffles", "may_write"), False),
    "scheduler.active-memory-manager.interval": ("9s", of_machine("reduction_seconds"), 9.0),
    "scheduler.active-memory-manager.measure": (
        "process", of_machine("replica_measure"), "process"
    ),
    "scheduler.active-memory-manager.policies": (
        [{"class": f"{_OF_COPIES}.RetireWorker", "address": "tcp://h:1"}],
        policies_of_copies, ["RetireWorker('tcp://h:1')"],
    ),
    "scheduler.active-memory-manager.start": (False, of_machine("reduces_replicas"), False),
    "scheduler.blocked-handlers": (["identity"], of_scheduler("blocked_handlers"), ("identity",)),
    "scheduler.bandwidth": ("1 MB", of_machine("bandwidth_bytes_per_second"), 1e6),
    "scheduler.contact-address": ("tcp://h:1", of_scheduler("address"), "tcp://h:1"),
    "scheduler.default-task-durations": ({"x": "2s"}, of_machine("known_seconds"), {"x": 2.0}),
    "scheduler.events-cleanup-delay": ("5s", of_machine("departed_topic_seconds"), 5.0),
    "scheduler.idle-timeout": ("10ms", end_of_idle_scheduler, "closed"),
    "scheduler.no-workers-timeout": ("10ms", error_without_workers, NoWorkerError),
    "scheduler.preload": ([PRELOAD], lambda: marks("scheduler"), "set up"),
    "scheduler.unknown-task-duration": ("3s", of_machine("unknown_duration_seconds"), 3.0),
    "scheduler.validate": (True, of_scheduler("validate"), True),
    "scheduler.work-stealing": (False, of_machine("moves_work"), False),
    "scheduler.worker-saturation": ("inf", of_machine("worker_saturation"), float("inf")),
    "scheduler.worker-ttl": ("9s", of_machine("worker_ttl_seconds"), 9.0),
    "scheduler.allowed-failures": (7, of_machine("allowed_failures"), 7),
    "worker.blocked-handlers": (["identity"], of_worker("blocked_handlers"), ("identity",)),
    "worker.connections.incoming": (3, of_worker("feed", "server", "transfers_max"), 3),
    "worker.connections.outgoing": (
        4, of_worker("feed", "machine", "state", "settings", "transfers_max"), 4
    ),
    "worker.lifetime.duration": ("9s", at_once(lambda: Worker("inproc://x").lifetime), 9.0),
    "worker.memory.pause": (0.5, lambda: of_memory("pause"), 0.5),
    "worker.memory.rebalance.measure": ("managed", of_machine("rebalance_measure"), "managed"),
    "worker.memory.rebalance.recipient-max": (0.5, of_machine("rebalance_recipient_ratio"), 0.5),
    "worker.memory.rebalance.sender-min": (0.4, of_machine("rebalance_sender_ratio"), 0.4),
    "worker.memory.rebalance.sender-recipient-gap": (0.2, of_machine("rebalance_gap_ratio"), 0.2),
    "worker.memory.recent-to-old-time": ("0s", has_old_memory, True),
    "worker.memory.spill": (0.5, lambda: of_memory("spill"), 0.5),
    "worker.memory.max-spill": ("5 MB", at_once(lambda: spilled_by().disk.nbytes_max), 5_000_000),
    "worker.memory.spill-compression": (
        "zlib", at_once(lambda: spilled_by().compressions), ["zlib"]
    ),
    "worker.memory.target": (0.5, of_target, 0.5),
    "worker.memory.transfer": (0.5, lambda: of_memory("incoming"), 0.5),
    "worker.preload": ([PRELOAD], lambda: marks("worker"), "set up"),
    "worker.resources": ({"GPU": 2}, of_worker("feed", "machine", "state", "settings", "resources"),
                         {"GPU": 2.0}),
    "worker.transfer.message-bytes-limit": (
        "1MB", of_worker("feed", "machine", "state", "settings", "transfer_bytes_max"), 10**6
    ),
    "worker.validate": (True, of_worker("validate"), True),
}  # fmt: skip
"""Old name -> a value, what is looked at, and what is seen."""

TOGETHER: Final[dict[str, tuple[dict[str, Any], Look, object]]] = {
    "client.preload-argv": (
        {"client.preload": [ARGUED], "client.preload-argv": ["word"]},
        lambda: marks("client"), "word",
    ),
    "scheduler.preload-argv": (
        {"scheduler.preload": [ARGUED], "scheduler.preload-argv": ["word"]},
        lambda: marks("scheduler"), "word",
    ),
    "worker.preload-argv": (
        {"worker.preload": [ARGUED], "worker.preload-argv": ["word"]},
        lambda: marks("worker"), "word",
    ),
    "worker.lifetime.stagger": (
        {"worker.lifetime.duration": "10s", "worker.lifetime.stagger": "5s"}, lifetimes, True
    ),
}  # fmt: skip
"""As `ROWS`, of those that mean nothing alone."""

ELSEWHERE: Final = {
    "comm.require-encryption": "unit/config/test_settings_of_distributed.py",
    "dashboard.link": "unit/observe/test_links.py",
    "deploy.lost-worker-timeout": "cluster/test_spec_cluster.py",
    "nanny.environ": "cluster/test_nanny.py",
    "nanny.preload": "cluster/test_preloads.py",
    "nanny.preload-argv": "unit/config/test_heeded.py",
    "worker.daemon": "cluster/test_slots.py",
    "worker.lifetime.restart": "cluster/test_restarts.py",
    "worker.memory.monitor-interval": "unit/nanny/test_zygote.py",
    "worker.memory.terminate": "unit/nanny/test_zygote.py",
}
"""Old name -> the file of a test that sets it."""


def test_every_setting_that_is_heeded_is_looked_at() -> None:
    looked_at = [*ROWS, *TOGETHER, *ELSEWHERE]
    assert sorted(looked_at) == sorted(old for old, new in LEGACY.items() if new not in NOT_YET)


@pytest.mark.parametrize("name", ROWS)
def test_a_setting_makes_the_difference_that_it_is_for(name: str) -> None:
    value, look, seen = ROWS[name]
    assert asyncio.run(_or_late(look)) != seen
    with dask.config.set({f"distributed.{name}": value}):
        assert asyncio.run(look()) == seen


@pytest.mark.parametrize("name", TOGETHER)
def test_settings_make_the_difference_together(name: str) -> None:
    values, look, seen = TOGETHER[name]
    with dask.config.set({f"distributed.{each}": value for each, value in values.items()}):
        assert asyncio.run(look()) == seen


@pytest.mark.parametrize("name", ELSEWHERE)
def test_the_other_tests_set_what_they_are_said_to_set(name: str) -> None:
    written = (Path(__file__).parents[2] / ELSEWHERE[name]).read_text()
    assert f"distributed.{name}" in written


async def _or_late(look: Look) -> object:
    """What is seen; "late" if that would take long, as there is nothing to be seen."""
    try:
        return await asyncio.wait_for(look(), 0.3)
    except TimeoutError:
        return "late"


def test_services_in_processes_have_the_loop_and_their_nannies_the_arguments_that_are_set() -> None:
    settings = {
        "distributed.admin.event-loop": "asyncio",
        "logging": {"distributed.worker": "error"},
        "distributed.nanny.preload": [ARGUED],
        "distributed.nanny.preload-argv": ["word"],
    }
    with (
        dask.config.set(settings),
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        assert set(client.run(_module_of_loop).values()) == {"asyncio.unix_events"}
        assert set(client.run(_level_of_log).values()) == {logging.ERROR}
        assert [nanny.mark for nanny in cluster.workers.values()] == ["word"]


def _level_of_log() -> int:
    return logging.getLogger("shoal.worker").level


async def _module_of_loop() -> str:
    return type(asyncio.get_running_loop()).__module__
