"""Clients that are killed, or stand still, while they want things."""

from pathlib import Path

from tests.faults.kit.ears import Ear
from tests.faults.kit.ends import count_tasks, until
from tests.faults.kit.roles import Cast
from tests.faults.kit.tasks import begun
from tests.faults.table import of_fault

LETTING_GO_SECONDS_MAX = 5.0
NTASKS = 50

WANTING = f"""
import sys, threading
from shoal import Client
from tests.faults.kit.tasks import begun
address, ear, seconds = sys.argv[1:]
client = Client(address)
shared = client.submit(begun, "", 0.0, "shared", key="shared", pure=False)
shared.result()
one = dict(pure=False, resources=dict(ONE=1))
wanted = [client.submit(begun, ear, float(seconds), n, **one) for n in range({NTASKS})]
print("wanting", flush=True)
client.gather(wanted)
print("done", flush=True)
threading.Event().wait()
"""
"""A client that wants much, and waits for it; one task of its at a time."""


def test_what_only_a_killed_client_wanted_is_gone_and_what_others_want_goes_on(
    tmp_path: Path,
) -> None:
    stage = tmp_path / "stage"
    stage.mkdir()
    with Ear(tmp_path / "ear") as ear, Cast(stage) as cast:
        _, address = cast.scheduler()
        cast.worker(address, "--nthreads", "2", "--resources", "ONE=1")
        wanting = cast.program("client", WANTING, address, ear.path, "1")
        assert wanting.line() == "wanting"
        ear.next()
        with cast.client(address) as client:
            shared = client.submit(begun, "", 0.0, "shared", key="shared", pure=False)
            assert shared.result(timeout=20) == "shared"
            assert client.run_on_scheduler(count_tasks) == NTASKS + 1
            wanting.kill()
            until(lambda: client.run_on_scheduler(count_tasks) == 1, LETTING_GO_SECONDS_MAX)
            assert client.submit(begun, "", 0.0, shared).result(timeout=20) == "shared"
            until(lambda: client.run_on_scheduler(count_tasks) == 1)
        assert cast.complaints() == []


@of_fault("F12")
def test_a_frozen_client_is_given_up_after_its_time_and_has_its_results_when_it_goes_on(
    tmp_path: Path,
) -> None:
    stage = tmp_path / "stage"
    stage.mkdir()
    with Ear(tmp_path / "ear") as ear, Cast(stage) as cast:
        _, address = cast.scheduler(DASK_SHOAL__SCHEDULER__CLIENT_TTL_SECONDS="2s")
        cast.worker(address, "--nthreads", "2", "--resources", "ONE=1")
        wanting = cast.program("client", WANTING, address, ear.path, "0.05")
        assert wanting.line() == "wanting"
        ear.next()
        wanting.freeze()
        with cast.client(address) as client:
            until(lambda: client.run_on_scheduler(count_tasks) == 0, 3 * LETTING_GO_SECONDS_MAX)
            wanting.thaw()
            assert wanting.line() == "done"
        wanting.kill()
        wanting.end()
        assert cast.complaints("has been silent for", "its scheduler at") == []
