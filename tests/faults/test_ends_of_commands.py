"""Commands that are killed, or asked to end, whatever they do just then."""

import signal
from pathlib import Path
from time import monotonic

import psutil
import pytest

from tests.faults.kit.ears import Ear
from tests.faults.kit.roles import Cast
from tests.faults.kit.tasks import begun

SECONDS_MAX = 5.0
LONG_SECONDS = 30.0


def test_a_worker_goes_with_its_nanny_and_the_next_one_removes_what_it_left(
    tmp_path: Path,
) -> None:
    with Cast(tmp_path) as cast:
        _, address = cast.scheduler()
        nanny, _ = cast.worker(address)
        with cast.client(address) as client:
            [folder] = client.run(lambda dask_worker: dask_worker.local_directory).values()
            Path(folder).mkdir(parents=True, exist_ok=True)
            Path(folder, "left").write_text("by a task")
            processes = nanny.children()
            assert processes
            nanny.kill()
            _, alive = psutil.wait_procs(processes, timeout=SECONDS_MAX)
            assert alive == []
            cast.worker(address)
            client.wait_for_workers(1, timeout=20)
            assert not Path(folder).exists()
            assert client.submit(sum, [1, 2]).result(timeout=20) == 3
        assert cast.complaints() == []


MOMENTS = ("at its start", "idle", "busy", "busy, with its scheduler")


@pytest.mark.parametrize("moment", MOMENTS)
def test_all_commands_end_in_time_whatever_they_do_when_they_are_asked_to(
    moment: str, tmp_path: Path
) -> None:
    """With a nanny; a task that goes on keeps nobody for longer than that."""
    with Ear(tmp_path / "ear") as ear, Cast(make(tmp_path / "cast")) as cast:
        scheduler, address = cast.scheduler()
        if moment == "at its start":
            worker = cast.start("worker", "-m", "shoal", "worker", address)
            asked = [worker]
        else:
            worker, _ = cast.worker(address)
            asked = [worker]
        with cast.client(address) as client:
            future = None
            if moment.startswith("busy"):
                future = client.submit(begun, ear.path, LONG_SECONDS)
                ear.next()
                asked += [scheduler] if "scheduler" in moment else []
            told_at = monotonic()
            for role in asked:
                role.signal(signal.SIGTERM)
            codes = [role.end() for role in asked]
            taken = monotonic() - told_at
            del future
        assert taken < SECONDS_MAX
        # Who has not begun to listen to signals is ended by them.
        assert set(codes) <= {0, -signal.SIGTERM} if moment == "at its start" else {0}
        assert cast.complaints() == []


def make(folder: Path) -> Path:
    folder.mkdir()
    return folder
