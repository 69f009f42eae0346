"""What services are asked for: where their scheduler is."""

import pickle
from pathlib import Path

import dask.config
import pytest

from shoal.comms.scheduler_file import write_scheduler_file
from shoal.observe.asked import find_scheduler
from shoal.observe.errors import NoSchedulerGiven

ADDRESS = "tcp://127.0.0.1:8786"


@pytest.mark.parametrize(
    "said",
    [
        (ADDRESS, None, None, None),
        ("127.0.0.1:8786", None, None, None),
        ("127.0.0.1", 8786, None, None),
        ("tcp://127.0.0.1", 8786, None, "tcp://"),
        ("127.0.0.1:8786", None, None, "tcp"),
    ],
)
def test_a_scheduler_may_be_named_in_several_ways(said):
    assert find_scheduler("Worker", *said) == (ADDRESS, None)


def test_a_scheduler_may_be_named_by_its_file_or_the_settings(tmp_path):
    path = str(tmp_path / "scheduler.json")
    with pytest.raises(NoSchedulerGiven, match=r"scheduler\.json is not there"):
        find_scheduler("Worker", None, None, path, None)
    write_scheduler_file(path, {"address": ADDRESS}, b"secret")
    assert find_scheduler("Worker", None, None, path, None) == (ADDRESS, b"secret")
    with dask.config.set({"scheduler-address": ADDRESS}):
        assert find_scheduler("Worker", None, None, None, None) == (ADDRESS, None)


def test_a_file_counts_more_than_an_address_for_workers_and_nannies_alike(tmp_path: Path) -> None:
    path = str(tmp_path / "scheduler.json")
    write_scheduler_file(path, {"address": ADDRESS}, None)
    for what in ("Worker", "Nanny"):
        assert find_scheduler(what, "tcp://127.0.0.1:1", None, path, None) == (ADDRESS, None)


@pytest.mark.parametrize("what", ["Worker", "Nanny"])
def test_who_names_no_scheduler_is_told_how(what: str) -> None:
    unset = dask.config.set({"scheduler-address": None})
    with unset, pytest.raises(NoSchedulerGiven) as caught:
        find_scheduler(what, None, None, None, None)
    assert f"{what}('tcp://host:8786')" in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
