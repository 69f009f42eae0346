"""Where a worker listens, and what it may not be asked for."""

import asyncio
import socket

import pytest

from shoal import Scheduler, Worker
from shoal.errors import UnknownInterface, UnsupportedOption
from shoal.worker.shell.listening import ports_asked

ADDRESS = "tcp://127.0.0.1:8786"


@pytest.mark.parametrize(
    ("asked", "ports"),
    [(None, [0]), (7, [7]), ("7", [7]), ("7:9", [7, 8, 9]), ((3, 1), [3, 1])],
)
def test_ports_may_be_one_or_several(asked, ports):
    assert ports_asked(asked) == ports


@pytest.mark.parametrize("asked", ["9:7", "a", "", []])
def test_what_is_no_port_is_said(asked):
    with pytest.raises(ValueError, match=r"port|invalid literal"):
        ports_asked(asked)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"fruit": "apple"}, TypeError),
        ({"security": True}, UnsupportedOption),
        ({"interface": "nowhere0"}, UnknownInterface),
        ({"port": "9:7"}, ValueError),
    ],
)
def test_what_a_worker_can_not_use_is_refused(options, kind):
    with pytest.raises(kind):
        Worker(ADDRESS, **options)


def test_of_several_ports_the_first_that_is_free_is_taken_and_a_file_leads_to_the_scheduler(
    tmp_path,
):
    path = str(tmp_path / "scheduler.json")

    async def start(taken, free):
        async with Scheduler(scheduler_file=path, interface="lo") as scheduler:
            options = {"scheduler_file": path, "nthreads": 1, "dashboard": False, "nanny": None}
            async with Worker(host="127.0.0.1", port=[taken, free], **options) as worker:
                assert worker.address == f"tcp://127.0.0.1:{free}"
                assert worker.address in scheduler.workers
            with pytest.raises(OSError, match=str(taken)):
                await Worker(host="127.0.0.1", port=[taken, taken], **options)

    with socket.create_server(("127.0.0.1", 0)) as busy:
        with socket.create_server(("127.0.0.1", 0)) as other:
            free = other.getsockname()[1]
        asyncio.run(start(busy.getsockname()[1], free))
    assert list(tmp_path.iterdir()) == []
