"""Which client dask computes with, whatever is installed under the name `distributed`."""

import re
import sys
import threading
from pathlib import Path

import pytest

from shoal.client import current
from tests.programs import DROP_IN, ROOT, printed_by

SCRIPT = """
import dask
import dask.config
from shoal.client.blocking import LoopThread
from shoal.client.client import Client
from tests.unit.client.fake_scheduler import TOKEN, FakeScheduler

scheduler = FakeScheduler()
thread = LoopThread.acquire()
thread.run(scheduler.__aenter__())
with Client(scheduler.address, security=TOKEN) as client:
    print(dask.config.get("scheduler") == "dask.distributed")
    x = dask.delayed(len)([1, 2])
    print(x.compute(), len(scheduler.numbers) > 0)
    [kept] = dask.persist(x)
    print(type(kept.dask[kept.key]).__name__, kept.compute())
print(dask.config.get("scheduler", None))
print(x.compute(scheduler="synchronous"))
thread.run(scheduler.__aexit__())
thread.release()
"""


WITHOUT = """
import sys

class Hidden:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "distributed":
            raise ModuleNotFoundError("No module named 'distributed'", name="distributed")

sys.meta_path.insert(0, Hidden)
"""
"""Hides the package `distributed`, whatever is installed."""


def run(*path: Path, script: str = SCRIPT) -> list[str]:
    return printed_by("-c", script, path=(*path, ROOT)).split("\n")[:-1]


@pytest.fixture
def another(tmp_path):
    """Some package called `distributed` that knows of no client."""
    package = tmp_path / "distributed"
    package.mkdir()
    (package / "__init__.py").write_text(
        "def get_client():\n    raise ValueError('no client')\n"
        "class Client:\n    current = classmethod(lambda cls, **_: get_client())\n"
    )
    (package / "worker.py").write_text("from distributed import get_client\n")
    return tmp_path


@pytest.fixture
def dropped_in(tmp_path):
    """The package that leads to us, as it is once installed."""
    (tmp_path / "distributed").symlink_to(DROP_IN / "distributed")
    return tmp_path


def test_dataframes_are_shuffled_by_the_way_that_leads_to_us_while_there_is_a_client():
    import dask

    from shoal.client.dask_settings import drop_in_is_ours

    class Somebody:
        """A client, as far as this goes."""

    client = Somebody()
    with dask.config.set({"array.rechunk.method": "p2p"}):
        current.add_default(client)
        try:
            ours = None if drop_in_is_ours() else "tasks"  # None: dask finds the client
            assert dask.config.get("dataframe.shuffle.method", None) == ours
            assert dask.config.get("array.rechunk.method") == "p2p"  # as the user said
        finally:
            current.remove_default(client)
    assert dask.config.get("dataframe.shuffle.method", None) is None


OURS = ["2 True", "Future 2", "None", "2"]


def test_dask_finds_us_without_the_name_distributed():
    assert run(script=WITHOUT + SCRIPT) == ["False", *OURS]


def test_dask_finds_us_though_another_distributed_is_installed(another):
    assert run(another) == ["False", *OURS]


def test_dask_finds_us_by_name_where_the_name_is_ours(dropped_in):
    assert run(dropped_in) == ["True", *OURS]


def test_where_there_is_no_client_whoever_knows_says_why():
    nobody_knows = str(current.absence())
    assert "Start a client" in nobody_knows
    why = ""
    current.add_reason(lambda: why)
    assert str(current.absence()) == nobody_knows
    why = "this is a task"
    with pytest.raises(ValueError, match=r"No clients found\nthis is a task"):
        current.get_client()
    why = ""


class Someone:
    """A client, as far as this goes."""


def test_dask_computes_with_the_client_of_a_block_whatever_a_user_had_set():
    import dask

    ours, others = Someone(), Someone()
    with dask.config.set(scheduler="threads"):
        with current.as_current(ours):
            assert dask.config.get("scheduler") == current._scheduler()
            assert current.find_client() is ours
            with current.as_current(others):
                assert current.find_client() is others
            assert dask.config.get("scheduler") == current._scheduler()
        assert dask.config.get("scheduler") == "threads"
        assert current.find_client() is None


def test_blocks_may_end_out_of_order_the_last_computes_to_its_end_and_leaves_dask_as_it_was():
    """As in the threads of a worker."""
    import dask

    with dask.config.set(scheduler="threads"):
        first = current.enter(Someone(), for_dask=True)
        second = current.enter(Someone(), for_dask=True)
        current.leave(first)
        assert dask.config.get("scheduler") == current._scheduler()
        current.leave(second)
        assert dask.config.get("scheduler") == "threads"
    current._context.set(None)


def test_what_a_user_sets_inside_of_a_block_stays():
    import dask

    with dask.config.set(scheduler="threads"):
        entered = current.enter(Someone(), for_dask=True)
        dask.config.set(scheduler="processes")
        current.leave(entered)
        assert dask.config.get("scheduler") == "processes"


def test_clients_that_come_and_go_in_many_threads_leave_dask_as_it_was():
    """Each round, the last to go must find that it is the last, and the first that it is not."""
    import dask

    def come_and_go(client):
        together.wait(10)
        current.add_default(client)
        current.remove_default(client)

    def told():
        return [dask.config.get(name, None) for name in ("scheduler", "array.rechunk.method")]

    together = threading.Barrier(4)
    before = told()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(200):
            threads = [threading.Thread(target=come_and_go, args=(Someone(),)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(10)
            assert told() == before
    finally:
        sys.setswitchinterval(interval)


def test_our_frames_are_left_out_of_tracebacks_unless_a_user_wants_them_all():
    import dask

    from shoal.client.dask_settings import settings_with_client

    [shown] = settings_with_client()["admin.traceback.shorten"][-1:]
    assert re.match(shown, str(ROOT / "src" / "shoal" / "client" / "client.py"))
    assert not re.match(shown, "/home/me/shoaling/work.py")
    with dask.config.set({"admin.traceback.shorten": []}):
        assert "admin.traceback.shorten" not in settings_with_client()
