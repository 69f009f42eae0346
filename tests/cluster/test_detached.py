"""Work that nobody waits for: it outlives its futures and its client; it can be seen and ended."""

import threading
from concurrent.futures import CancelledError

import pytest

from shoal import Client, fire_and_forget, wait
from tests.cluster.conftest import SMALL
from tests.cluster.faces import ask

GATE, RAN = threading.Event(), threading.Event()


@pytest.fixture(autouse=True)
def gates():
    GATE.clear()
    RAN.clear()
    yield
    GATE.set()


def work():
    RAN.set()
    assert GATE.wait(10)


def pass_gate():
    assert GATE.wait(10)


def then(_):
    RAN.set()


def has_run():
    assert RAN.wait(10)


def is_known(dask_scheduler, key):
    return key in dask_scheduler.tasks


def test_it_runs_though_its_future_is_dropped(play):
    async def scenario(client):
        here, there = await ask(client.nthreads())
        first = client.submit(pass_gate, key="first", workers=here)
        fire_and_forget({"futures": [client.submit(then, first, key="second", workers=here)]})
        del first
        assert set(await ask(client.fire_and_forget_tasks())) == {"second"}
        GATE.set()
        await ask(client.submit(has_run, workers=there).result())
        await ask(client.submit(abs, 1, workers=here).result())  # so the one before it has ended
        assert await ask(client.fire_and_forget_tasks()) == {}

    play(scenario)


def test_another_client_lists_and_cancels_it_after_the_first_has_left():
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None) as main:
        with Client(main.cluster, set_as_default=False) as first:
            fire_and_forget(first.submit(work, key="bg"))
            later = first.submit(abs, 1, key=("later", 1))  # behind the other, on the one thread
            fire_and_forget([later])
            assert RAN.wait(10)
        assert main.fire_and_forget_tasks() == {"bg": "processing", ("later", 1): "processing"}
        names = main.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.clients))
        assert "fire-and-forget" in names
        main.cancel(["bg", ("later", 1)])
        assert main.fire_and_forget_tasks() == {}
        assert not main.run_on_scheduler(is_known, key="bg")
        GATE.set()
        assert main.submit(abs, -3).result() == 3


def test_a_cancelled_key_spares_other_clients_unless_forced():
    with (
        Client(processes=False, **SMALL) as client,
        Client(client.cluster, set_as_default=False) as other,
    ):
        future = client.submit(work, key="shared")
        fire_and_forget(future)
        assert RAN.wait(10)
        other.cancel("shared")
        assert other.fire_and_forget_tasks() == {}
        assert future.status == "pending"
        other.cancel("shared", force=True, reason="enough")
        with pytest.raises(CancelledError, match="reason: enough"):
            wait(future)
        assert not other.run_on_scheduler(is_known, key="shared")


def test_what_has_no_futures_needs_nothing():
    fire_and_forget([])
    fire_and_forget(1)
