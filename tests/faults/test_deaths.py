"""Whatever dies, and when: what can survive does, nothing is left behind, and little is said.

A small part of what `tools/accept/gates_processes.py` measures.
"""

import asyncio
import logging
import os
import re
import signal
from pathlib import Path
from time import monotonic
from typing import Any

import dask
import numpy as np
import pytest

from shoal import Client, LocalCluster, Scheduler, Worker
from shoal.errors import KilledWorker
from shoal.nanny.errors import CrashLoop, MemoryTooSmall
from tests.faults.dying import VICTIMS, Ending, complaints, die, run_to_end

SECONDS_MAX = 20.0
"""In which a crash loop has ended, on a machine that does other things as well."""


@pytest.mark.parametrize("victim", VICTIMS)
def test_one_process_is_killed_and_nothing_is_left(victim: str, tmp_path: Path) -> None:
    assert complaints(die(victim, 1, tmp_path)) == []


def test_what_is_left_behind_or_said_too_much_is_complained_about() -> None:
    ending = Ending(
        "worker", 3, 1, 9.0, {"error": "Broken: x"}, "one line\nand another\n", ["process 1"]
    )
    assert complaints(ending) == [
        "worker killed at step 3: the result is not right, but {'error': 'Broken: x'}",
        "worker killed at step 3: stderr has 2 lines: 'one line\\nand another\\n'",
        "worker killed at step 3: it took 9.0 s",
        "worker killed at step 3: left behind: process 1",
    ]


BEGINNING = """
import socket, sys, threading, time
from shoal import Client, LocalCluster
def begin(**options):
    client = Client(n_workers=1, threads_per_worker=1, dashboard_address=None, **options)
    assert client.submit(sum, [1, 2]).result() == 3
    return client
"""
"""A program's first lines; it never closes what it begins."""

TASK = """
listening = socket.create_server(("127.0.0.1", 0))
port = listening.getsockname()[1]
def work():
    socket.create_connection(("127.0.0.1", port)).close()
    time.sleep(60)
def began():
    with listening:
        listening.accept()[0].close()
"""
"""A task that takes long, and how to wait until it has begun."""

ENDINGS = {
    "at its last line": ("client = begin()", 0, ""),
    "without processes": ("client = begin(processes=False)", 0, ""),
    "while a task runs": (
        TASK + "client = begin(); future = client.submit(work); began()",
        0,
        "",
    ),
    "by sys.exit": ("client = begin(); sys.exit(3)", 3, ""),
    "by an exception": ("client = begin(); 1 / 0", 1, "ZeroDivisionError: division by zero\n"),
    "in a thread": ("t = threading.Thread(target=begin); t.start(); t.join()", 0, ""),
    "while a thread waits for a task": (
        TASK + "t = threading.Thread(target=lambda: begin().submit(work).result(), daemon=True)\n"
        "t.start(); began()",
        0,
        "cancelled, reason: client-closed.\n",  # that is the thread's
    ),
    "twice": ("first = begin(); second = begin(processes=False)", 0, ""),
    "by os._exit": ("import os; client = begin(); os._exit(4)", 4, ""),
}
"""How a program ends → its lines, its exit code, and how what it writes to stderr ends."""


@pytest.mark.parametrize("how", ENDINGS)
def test_a_program_that_closes_nothing_leaves_nothing(how: str, tmp_path: Path) -> None:
    lines, exit_code, last_words = ENDINGS[how]
    ending = run_to_end(BEGINNING + lines, tmp_path)
    assert ending.exit_code == exit_code
    assert ending.stderr.endswith(last_words)
    assert last_words or not ending.stderr
    assert ending.left == []


def kill_ourselves(name: str) -> None:
    """As native code does that crashes, or the system if memory is short."""
    os.kill(os.getpid(), signal.Signals[name])


@pytest.mark.parametrize(
    ("function", "argument", "cause"),
    [
        (os._exit, 7, "exit code 7"),
        (kill_ourselves, "SIGSEGV", "killed by SIGSEGV (native code crashed)"),
        (kill_ourselves, "SIGKILL", "killed by SIGKILL (somebody ended it, or the system did"),
    ],
)
def test_a_task_that_kills_every_worker_fails_and_the_workers_are_there_again(
    function: Any, argument: Any, cause: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Both workers survive it, as a task may kill fewer than a worker may die in a row."""
    started_at = monotonic()
    with (
        caplog.at_level(logging.WARNING, "shoal"),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True) as cluster,
        Client(cluster) as client,
    ):
        with pytest.raises(KilledWorker, match="4 workers"):
            client.submit(function, argument).result(SECONDS_MAX)
        client.wait_for_workers(2, timeout=SECONDS_MAX)
        assert client.submit(sum, [1, 2]).result(SECONDS_MAX) == 3
    deaths = [record.getMessage() for record in caplog.records]
    assert len(deaths) == 4
    assert all(cause in text for text in deaths)
    assert not any("as it started" in text or "just started" in text for text in deaths)
    assert monotonic() - started_at < SECONDS_MAX


def test_a_crash_in_native_code_shows_where_it_was_and_no_other_thread(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(n_workers=1, threads_per_worker=1, processes=True) as cluster,
        Client(cluster) as client,
    ):
        with pytest.raises(KilledWorker):
            client.submit(kill_ourselves, "SIGSEGV").result(SECONDS_MAX)
        client.wait_for_workers(1, timeout=SECONDS_MAX)
    errors = capfd.readouterr().err
    assert errors.count("Fatal Python error: Segmentation fault") == 1
    assert errors.count("(most recent call first)") == 1
    assert "lifeline" not in errors


def test_a_worker_that_is_given_up_for_its_silence_is_named_with_how_long_it_was(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story() -> None:
        async with (
            Scheduler(worker_ttl=0.1) as scheduler,
            Worker(scheduler.address, name="mute", token=scheduler.token, nthreads=1) as worker,
        ):
            await worker.finished()

    with (
        caplog.at_level(logging.WARNING, "shoal.scheduler"),
        dask.config.set({"shoal.worker.heartbeat-seconds": 100}),
    ):
        asyncio.run(story())
    (text,) = [r.getMessage() for r in caplog.records if r.name == "shoal.scheduler"]
    assert text.startswith("Worker mute (tcp://127.0.0.1:")
    assert re.search(r"is given up, as it was silent for \d\.\d s; what it ran and held is", text)


def grow() -> int:
    """Take memory until somebody stops us."""
    taken = []
    while True:
        taken.append(np.ones(4_000_000))


def test_a_worker_whose_tasks_take_all_its_memory_ends_with_the_limit_as_the_cause() -> None:
    """A task is given up when it has killed two; their worker, when three have died in a row."""
    settings = {
        "shoal.nanny.memory-deaths-max": 3,
        "shoal.nanny.restart-pause-seconds": 0.01,
        "distributed.scheduler.allowed-failures": 100,
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, memory_limit="250 MiB"
        ) as cluster,
        Client(cluster) as client,
    ):
        with pytest.raises(KilledWorker):
            client.submit(grow).result(SECONDS_MAX)
        with pytest.raises(
            MemoryTooSmall, match=r"its memory 3 times in a row.*250\.00 MiB"
        ) as told:
            client.submit(grow, key="another").result(SECONDS_MAX)
        assert "must be in memory at once" in str(told.value)
        with pytest.raises(MemoryTooSmall):
            client.submit(sum, [1, 2, 3]).result(SECONDS_MAX)


def test_a_task_that_takes_all_memory_is_ended_before_the_machine_is_and_that_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        caplog.at_level(logging.WARNING, "shoal"),
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, memory_limit="300 MiB"
        ) as cluster,
        Client(cluster) as client,
    ):
        with pytest.raises(KilledWorker):
            client.submit(grow).result(SECONDS_MAX)
        client.wait_for_workers(1, timeout=SECONDS_MAX)
    (record,) = caplog.records
    assert "its memory limit of 300.00 MiB. Another takes" in record.getMessage()


def test_workers_that_have_too_little_memory_to_live_end_with_that_as_the_cause() -> None:
    """They may start, and are ended right after that; or they don't even start."""
    with (
        dask.config.set({"shoal.nanny.deaths-max": 3}),
        pytest.raises((CrashLoop, RuntimeError), match=r"its memory limit of 10\.00 MiB"),
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, memory_limit="10 MiB"
        ) as cluster,
    ):
        cluster.wait_for_workers(2, timeout=SECONDS_MAX)
