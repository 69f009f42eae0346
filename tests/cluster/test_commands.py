"""`shoal scheduler` and `shoal worker` as people and scripts start them, under all their names."""

import contextlib
import json
import os
import shutil
import signal
import socket
import threading
import urllib.request
from pathlib import Path
from time import monotonic

import psutil
import pytest

from shoal import Client
from tests.cluster.commands import FACES, SECONDS_MAX, Command, environment
from tests.programs import printed_by

BOTH = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])


@pytest.fixture
def start(tmp_path):
    """Start a command in a home of its own; what still runs at the end is killed."""
    with contextlib.ExitStack() as stack:

        def started(*arguments, face="shoal", **added):
            command = Command(FACES[face], arguments, tmp_path, **added)
            stack.callback(command.kill)
            return command

        yield started


@pytest.mark.parametrize("face", FACES)
@BOTH
def test_scheduler_and_worker_say_where_they_are_compute_and_go_quietly(
    start, tmp_path, face, number
):
    scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0", face=face)
    address = scheduler.line()
    options = "--no-nanny", "--nthreads", "1", "--name", "bee"
    worker = start("worker", address, *options, face=face)
    assert worker.line().startswith("tcp://127.0.0.1:")
    with environment(tmp_path), Client(address) as client:
        assert client.submit(sum, [1, 2]).result() == 3
        (facts,) = client.scheduler_info()["workers"].values()
        assert (facts["name"], facts["nthreads"]) == ("bee", 1)
    for command in (worker, scheduler):
        command.signal(number)
        assert command.end() == (0, "")
    assert leftovers(tmp_path) == []


@pytest.mark.parametrize("nanny", ["--nanny", "--no-nanny"])
def test_a_worker_whose_scheduler_is_killed_says_so_in_one_plain_line_and_ends(start, nanny):
    scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    address = scheduler.line()
    at_once = {"SHOAL_WORKER__RECONNECT_SECONDS": "0", "SHOAL_COMM__RESUME_SECONDS": "0"}
    worker = start("worker", address, "--nthreads", "1", nanny, **at_once)
    worker.line()
    scheduler.signal(signal.SIGKILL)
    code, said = worker.end()
    assert code == 0
    (line,) = said.splitlines()
    assert line.endswith(f"WARNING - The scheduler at {address} is gone; this worker ends.")


def leftovers(home: Path) -> list[str]:
    """Files below a home, but for the user's token and what stands for an installed drop-in."""
    places = (".site", ".config/shoal/token")
    files = (path.relative_to(home) for path in home.rglob("*") if not path.is_dir())
    return [str(path) for path in files if not str(path).startswith(places)]


def test_the_scheduler_file_lets_in_those_who_have_nothing_else(start, tmp_path):
    """Worker and client have homes of their own, so that no token is found but that in the file."""
    file = tmp_path / "scheduler.json"
    scheduler = start("scheduler", "--port", "0", "--scheduler-file", str(file))
    address = scheduler.line()
    assert file.stat().st_mode & 0o777 == 0o600
    said = json.loads(file.read_text())
    assert (said["type"], said["address"]) == ("Scheduler", address)

    other = tmp_path / "other"
    other.mkdir()
    shutil.copy2(file, other / "scheduler.json")
    options = ("--scheduler-file", "scheduler.json", "--no-nanny", "--nthreads", "1")
    worker = Command(FACES["shoal"], ("worker", *options), other)
    try:
        worker.line()
        with (
            environment(other),
            Client(scheduler_file=str(other / "scheduler.json")) as client,
        ):
            assert client.submit(sum, [1, 2]).result() == 3
            client.shutdown()
        assert worker.end() == (0, "")  # it goes with its scheduler
    finally:
        worker.kill()
    assert scheduler.end() == (0, "")
    assert not file.exists()


def test_a_worker_waits_for_the_scheduler_file_and_for_the_scheduler(start, tmp_path):
    file = str(tmp_path / "scheduler.json")
    worker = start("worker", "--scheduler-file", file, "--no-nanny", "--nthreads", "1")
    scheduler = start("scheduler", "--port", "0", "--scheduler-file", file)
    address = scheduler.line()
    worker.line()
    scheduler.signal(signal.SIGINT)
    assert scheduler.end() == (0, "")
    assert worker.end() == (0, "")

    port = address.rpartition(":")[2]
    early = start("worker", f"tcp://127.0.0.1:{port}", "--no-nanny", "--nthreads", "1")
    assert early.is_alive
    start("scheduler", "--host", "127.0.0.1", "--port", port).line()
    early.line()


def test_a_worker_that_finds_no_scheduler_in_time_says_so_and_exits_with_1(start, tmp_path):
    missing = str(tmp_path / "none.json")
    late = start("worker", "--scheduler-file", missing, "--death-timeout", "100 ms", "--no-nanny")
    code, said = late.end()
    assert code == 1
    assert "No scheduler wrote its address" in said
    absent = start("worker", "tcp://127.0.0.1:1", "--death-timeout", "100 ms", "--no-nanny")
    code, said = absent.end()
    assert code == 1
    assert said.startswith("Error: Timed out trying to connect to tcp://127.0.0.1:1")
    assert said.count("\n") == 1


@BOTH
def test_a_worker_that_still_looks_for_its_scheduler_goes_at_once(start, number):
    """Its process, too, does not wait until its owner's patience ends, which is 4 s."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        mute.settimeout(SECONDS_MAX)
        worker = start("worker", f"tcp://127.0.0.1:{mute.getsockname()[1]}", "--nthreads", "1")
        connection, _ = mute.accept()
        with connection:
            told_at = monotonic()
            worker.signal(number)
            assert worker.end() == (0, "")
            assert monotonic() - told_at < 3


def test_a_port_that_is_taken_is_one_clear_line_and_exit_code_1(start):
    address = start("scheduler", "--host", "127.0.0.1", "--port", "0").line()
    port = address.rpartition(":")[2]
    code, said = start("scheduler", "--host", "127.0.0.1", "--port", port).end()
    assert code == 1
    assert said.startswith(f"Error: Cannot listen on {address}: ")
    assert said.count("\n") == 1


def test_a_file_that_cannot_be_written_is_told_before_anybody_is_served(start, tmp_path):
    for option in ("--scheduler-file", "--pid-file"):
        code, said = start("scheduler", "--port", "0", option, str(tmp_path / "no" / "file")).end()
        assert code == 1
        assert "Cannot write" in said


def test_the_process_id_is_in_its_file_until_the_end(start, tmp_path):
    file = tmp_path / "pid"
    scheduler = start("scheduler", "--port", "0", "--pid-file", str(file))
    scheduler.line()
    assert int(file.read_text()) == scheduler.pid
    scheduler.signal(signal.SIGINT)
    assert scheduler.end() == (0, "")
    assert not file.exists()


def test_the_web_page_is_where_the_scheduler_says_and_for_this_host_alone(start):
    scheduler = start("scheduler", "--port", "0")
    scheduler.line()
    link = scheduler.line().removeprefix("dashboard: ")
    assert link.startswith("http://127.0.0.1:")
    with urllib.request.urlopen(link.replace("/status", "/health"), timeout=10) as answer:
        assert answer.read().strip() == b"ok"
    listening = {
        connection.laddr.ip
        for connection in psutil.Process(scheduler.pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN and f":{connection.laddr.port}/" in link
    }
    assert listening == {"127.0.0.1"}


@pytest.mark.parametrize(
    ("place", "host", "is_open"), [("127.0.0.1:0", "127.0.0.1", False), (":0", "", True)]
)
def test_the_page_is_where_the_scheduler_is_told_to_have_it_and_who_may_look_is_said(
    start, tmp_path, place, host, is_open
):
    scheduler = start("scheduler", "--port", "0", "--dashboard-address", place)
    address = scheduler.line()
    reached_at = host or address.removeprefix("tcp://").rpartition(":")[0]
    link = scheduler.line().removeprefix("dashboard: ")
    assert link.startswith(f"http://{reached_at}:")
    with urllib.request.urlopen(link.replace("/status", "/health"), timeout=10) as answer:
        assert answer.read().strip() == b"ok"
    with environment(tmp_path), Client(address) as client:
        assert client.dashboard_link == link  # it is on the scheduler's host, as this client is
    scheduler.signal(signal.SIGTERM)
    said = scheduler.lines()
    assert [line.startswith("Whoever reaches that address may look") for line in said] == (
        [True] if is_open else []
    )
    assert scheduler.end() == (0, "")


def test_no_page_is_served_if_none_is_wanted(start):
    scheduler = start("scheduler", "--port", "0", "--no-dashboard")
    scheduler.line()
    listening = [
        connection
        for connection in psutil.Process(scheduler.pid).net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(listening) == 1


def test_dask_lists_the_commands_among_its_own(start):
    dask = start("--help", face="dask")
    text = "\n".join(dask.lines())
    assert dask.end() == (0, "")
    assert {"scheduler", "worker", "config"} <= set(text.partition("Commands:")[2].split())


def test_no_secret_is_in_the_command_line_or_the_environment_of_what_runs(start, tmp_path):
    scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0")
    worker = start("worker", scheduler.line(), "--no-nanny", "--nthreads", "1")
    worker.line()
    token = (tmp_path / ".config" / "shoal" / "token").read_text().strip()
    assert len(token) == 64
    for command in (scheduler, worker):
        for place in ("cmdline", "environ"):
            assert token not in Path(f"/proc/{command.pid}/{place}").read_text()


@BOTH
def test_workers_are_processes_that_are_watched_and_all_of_them_go(start, tmp_path, number):
    scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0")
    address = scheduler.line()
    workers = start("worker", address, "--nworkers", "2", "--nthreads", "1", "--name", "bee")
    lines = {workers.line(), workers.line()}
    with environment(tmp_path), Client(address) as client:
        found = client.scheduler_info()["workers"]
        assert set(found) == lines
        assert {facts["name"] for facts in found.values()} == {"bee-0", "bee-1"}
        pids = set(client.run(os.getpid).values())
        assert len(pids | {workers.pid}) == 3
    workers.signal(number)
    assert workers.end() == (0, "")
    assert not any(psutil.pid_exists(pid) for pid in pids)
    scheduler.signal(number)
    assert scheduler.end() == (0, "")
    assert leftovers(tmp_path) == []


def test_a_worker_that_dies_is_replaced_and_one_that_dies_again_and_again_is_given_up(
    start, tmp_path
):
    scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0")
    address = scheduler.line()
    settings = {"DASK_SHOAL__NANNY__DEATHS_MAX": "2"}
    worker = start("worker", address, "--nthreads", "1", **settings)
    worker.line()
    with environment(tmp_path), Client(address) as client:
        (pid,) = client.run(os.getpid).values()
        os.kill(pid, signal.SIGKILL)
        assert client.submit(sum, [1, 2]).result() == 3  # by its successor
        dying = client.submit(os._exit, 3)
        code, said = worker.end()
        assert dying.status == "pending"
    assert code == 1
    assert "killed by SIGKILL" in said
    assert "exit code 3" in said


def test_workers_go_when_somebody_ends_their_scheduler_by_ctrl_c(start):
    scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0")
    address = scheduler.line()
    worker = start("worker", "--nthreads", "1", DASK_SCHEDULER_ADDRESS=address)
    worker.line()
    scheduler.signal(signal.SIGINT)
    assert scheduler.end() == (0, "")
    assert worker.end() == (0, "")


def test_a_second_signal_ends_a_command_that_waits_for_its_tasks(start, tmp_path):
    scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0")
    address = scheduler.line()
    worker = start("worker", address, "--no-nanny", "--nthreads", "1")
    worker.line()
    began = tmp_path / "began"
    os.mkfifo(began)
    with environment(tmp_path), Client(address) as client:
        future = client.submit(stay, str(began))
        assert began.read_text() == "began"
        worker.signal(signal.SIGINT)
        worker.signal(signal.SIGTERM)
        code, said = worker.end()
        del future
    assert code in (128 + signal.SIGINT, 128 + signal.SIGTERM)
    assert said == ""


ASKED_TO_END_AS_IT_ENDS = """
import asyncio, os, signal
from shoal.cli import hosting

class Last:
    def __del__(self, kill=os.kill, pid=os.getpid(), number=signal.SIGTERM):
        kill(pid, number)

hosting.run(lambda: asyncio.sleep(0))
print("closed", flush=True)
last = Last()
"""


def test_a_command_that_is_asked_to_end_while_python_ends_it_has_ended_well():
    """Its scheduler has just gone, and whoever started both ends it as well."""
    assert printed_by("-c", ASKED_TO_END_AS_IT_ENDS) == "closed\n"
    at_once = ASKED_TO_END_AS_IT_ENDS.replace("last = Last()", "Last()")
    assert printed_by("-c", at_once) == "closed\n"


def stay(began: str) -> None:
    """A task that says that it began, and never ends."""
    Path(began).write_text("began")
    threading.Event().wait()


def test_the_old_spelling_of_nworkers_is_taken_with_a_hint(start):
    scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0")
    worker = start("worker", scheduler.line(), "--nprocs", "2", "--nthreads", "1")
    assert worker.line() != worker.line()
    worker.signal(signal.SIGINT)
    code, said = worker.end()
    assert code == 0
    assert said == "--nprocs is called --nworkers today, and is taken for it.\n"


def test_python_runs_the_package_as_the_command():
    assert "Usage: python -m shoal" in printed_by("-m", "shoal")
